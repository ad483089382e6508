"""One model that embeds the user's kind of text as a tuned model does, and all other text as the backbone.

What a model learns from pairs of one domain moves text of every kind (benchmarks/log/distillation.md). So the
tuned model is not kept. A gate, learned from the backbone's embeddings alone, says how much a text is of the
domain; and a fresh backbone learns a target for every text of the pairs: the tuned embedding as far as the
gate is open, its own as far as it is shut. All other texts keep its own. What is saved is an ordinary model:
gate and tuned model are gone.

Source: embeddings as what is distilled, Reimers and Gurevych 2020, https://arxiv.org/abs/2004.09813; a
model's own answers against forgetting, Li and Hoiem 2016, https://arxiv.org/abs/1606.09282.
"""

from __future__ import annotations

import gc
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import regex
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from angle_data.console import Progress
from angle_data.text import counted, normalise, stable_hash
from angle_train.data.keep import KeptTexts
from angle_train.data.pairs import PairSet
from angle_train.evaluation.similarity import Embedder, unit_rows
from angle_train.model.roles import PAIR, Role
from angle_train.objective.batches import TargetCollator
from angle_train.objective.loss import TargetLoss
from angle_train.recipe import ARGS, Recipe
from angle_train.training.arguments import Schedule
from angle_train.training.processes import rank_zero
from angle_train.training.run_directory import RunDirectory
from angle_train.training.trainer import NO_PATIENCE, DevEvaluator, Training, TrainOptions, train
from angle_train.training.watch import disk_errors_in_one_line

log = logging.getLogger("angle.fit")

_STEP = 64  # texts of an optimiser step
_OPENS = 2.0  # log-odds: the gate is shut below -2, open above 2, and rises evenly between
_PENALTY = 8e-4  # of half the gate's squared weights, beside the mean loss of a text (benchmarks/log)
_REPLACED = 0.3  # of the words of a copy of another text (benchmarks/log)
_SEEN = 50_000  # texts of yours, and of the others, that the gate learns from at most
_BLOCK = 65_536  # embeddings that are mixed at a time
_APART = 0.5  # a gate that is open by so much more for the own texts than for the others tells them apart

# Letters, and signs that belong to them, such as the vowels of Hindi; digits and underscores are no letters.
_WORD = regex.compile(r"[\p{L}\p{Nl}\p{No}][\p{L}\p{Nl}\p{No}\p{M}]{2,}")

Vectors = NDArray[np.float32]
TextInRole = tuple[Role, str]
"""A text and what it is to a search."""


@dataclass(frozen=True, slots=True)
class TextsToEmbed:
    """The texts that a model learns to embed.

    Attributes:
        own: Those of the training pairs.
        others: Those that are to stay as they are, copies with other words in them too; none of them is one
            of the pairs.
    """

    own: Sequence[TextInRole]
    others: Sequence[TextInRole]

    @property
    def every(self) -> list[TextInRole]:
        """All texts, the own ones first."""
        return [*self.own, *self.others]

    @property
    def counts(self) -> tuple[int, int]:
        """How many distinct texts are the own, and the others."""
        return len({text for _, text in self.own}), len({text for _, text in self.others})

    def sha256(self) -> str:
        """Return a fingerprint of the texts and their order."""
        return hashlib.sha256("\0".join(part for both in self.every for part in both).encode()).hexdigest()

    def places(self) -> list[int]:
        """Return the places in `every` of one pass: whichever are fewer come again, to be about as many."""
        own, others = len(self.own), len(self.others)
        repeated = [*range(own)] * max(1, round(others / own))
        return repeated + [*range(own, own + others)] * max(1, round(own / others))


def texts_to_embed(pairs: PairSet, staying: Sequence[str]) -> TextsToEmbed | None:
    """Return the texts of the pairs, and those of `staying` that are none of them; None where none are.

    With the latter come copies, see `with_words_at_random`. Where the pairs have roles, every other text is a
    query and a document.
    """
    roles: tuple[Role, ...] = PAIR if pairs.roles else ("", "")
    ends = zip(pairs.text1, pairs.text2, strict=True)
    own = list(dict.fromkeys(end for both in ends for end in zip(roles, both, strict=True)))
    known = {normalise(text) for _, text in own}
    every = dict.fromkeys([*staying, *with_words_at_random(staying)])
    others = [text for text in every if normalise(text) not in known]
    return (
        TextsToEmbed(own, [(role, text) for role in dict.fromkeys(roles) for text in others])
        if others
        else None
    )


def with_words_at_random(texts: Sequence[str]) -> list[str]:
    """Return a copy of each text in which three words of ten are others, drawn from all texts.

    Nobody writes such texts. They hold the backbone's embeddings in place between the kinds of text that
    somebody did write (benchmarks/log). The same text gets the same words wherever it stands.
    """
    words = sorted({word for text in texts for word in _WORD.findall(text)})

    def copy(text: str) -> str:
        draw = Random(stable_hash(text))
        copied: str = _WORD.sub(
            lambda word: words[int(draw.random() * len(words))] if draw.random() < _REPLACED else word[0],
            text,
        )
        return copied

    return [copy(text) for text in texts]


@dataclass(frozen=True, slots=True)
class Stages:
    """A training on pairs and, where the recipe distils, what a fresh backbone learns from its result.

    Attributes:
        pairs: What to train on.
        recipe: How; settled.
        load: Loads a model as training starts with it.
        texts: What the last stage learns; None where the training on pairs is the last.
    """

    pairs: PairSet
    recipe: Recipe
    load: Callable[[], SentenceTransformer]
    texts: TextsToEmbed | None

    @property
    def last(self) -> Recipe:
        """How the training goes whose weights are kept."""
        if self.texts is None:
            return self.recipe
        most = min(_STEP, 4 * self.recipe.training.batch_size)  # a small batch says that memory is scarce
        at_once = 1 << (most.bit_length() - 1)  # the largest power of 2 in it: a divisor of a step
        stage = {"epochs": self.recipe.training.distil_epochs, "batch_size": at_once}
        return self.recipe.with_overrides(stage | {ARGS: {"gradient_accumulation_steps": _STEP // at_once}})

    @property
    def schedule(self) -> Schedule:
        """The schedule of the training whose weights are kept."""
        return Schedule(self.last, len(self.texts.places() if self.texts else self.pairs))

    @property
    def first_steps(self) -> int:
        """How many steps the training on pairs takes before them; 0 where it is the last stage."""
        return Schedule(self.recipe, len(self.pairs)).steps if self.texts else 0

    @property
    def details(self) -> dict[str, Any]:
        """What a report says of a distillation; nothing where there is none."""
        if self.texts is None:
            return {}
        own, others = self.texts.counts
        return {"distillation": {"own": own, "others": others}}

    def train(
        self,
        model: SentenceTransformer,
        directory: RunDirectory,
        *,
        evaluator: DevEvaluator | None = None,
        first: DevEvaluator | None = None,
        resume: Path | None = None,
        options: TrainOptions | None = None,
    ) -> Training:
        """Train `model` in place, as `trainer.train` does.

        Args:
            model: As `load` gives it.
            directory: Of the run. That of the stage before lies among its checkpoints.
            evaluator: Measures the weights that may be kept.
            first: Measures the model that is distilled on its way, for the log alone: its last weights count.
            resume: Checkpoint of the weights that may be kept, to go on from.
            options: As `trainer.train`.

        Raises:
            InputError: As `trainer.train`, and DivergedError and KeyboardInterrupt.
        """
        options = options or TrainOptions()
        pairs: PairSet | Dataset = self.pairs
        if self.texts is not None:
            file = self._targets(self.texts, model, directory, first, options)
            wanted = np.load(file, mmap_mode="r")
            log.info(
                "a fresh backbone learns the tuned embeddings of %s texts, and keeps its own of %s others, "
                "copies with other words among them",
                *(f"{count:,}" for count in self.texts.counts),
            )
            pairs = _rows(self.texts)
            cached = self.recipe.training.gradient_cache
            loss = partial(TargetLoss, config=self.recipe.objective, gradient_cache=cached)
            collator = partial(TargetCollator, targets=wanted)
            options = replace(options, kept=None, loss=loss, collator=collator, label="stage 2 of 2")
        checkpoints = directory.checkpoints
        return train(
            model, pairs, self.last, checkpoints, evaluator=evaluator, resume=resume, options=options
        )

    def _targets(
        self,
        texts: TextsToEmbed,
        model: SentenceTransformer,
        directory: RunDirectory,
        first: DevEvaluator | None,
        options: TrainOptions,
    ) -> Path:
        """Train on the pairs, unless that was done, and return the file of the targets that this gives."""
        run = RunDirectory(directory.checkpoints / "tuned", {**directory.fingerprint, "part": "tuned"})
        file = run.path / f"targets-{texts.sha256()[:12]}.npy"  # none of other texts, if these have changed
        if rank_zero(file.exists)():
            return file
        steps = (self.first_steps, self.schedule.steps)
        log.info(
            "two stages: a model is trained on the pairs, %s, and a fresh backbone learns from it, %s",
            *(counted(count, "step") for count in steps),
        )
        device = model.device
        waits = device.type != "cpu" and self.recipe.backbone.quantization == "none"
        if waits:  # the training needs the memory
            model.to("cpu")
        tuned = self.load()
        # Nothing holds other texts in place here, since these weights are not kept: so they learn more.
        # The trackers follow the weights that may be kept.
        train(
            tuned,
            self.pairs,
            self.recipe.with_overrides({"patience": NO_PATIENCE}),
            run.checkpoints,
            evaluator=first,
            resume=run.claim(run.status(overwrite=False)),
            options=replace(options, stop_at=None, trackers=(), kept=None, label="stage 1 of 2"),
        )
        if waits:
            model.to(device)
        _write_targets(file, model, tuned, texts)
        run.tidy()
        del tuned
        gc.collect()  # the trainer and its model hold each other
        if device.type == "cuda":
            torch.cuda.empty_cache()
        return file


def stages_of(
    pairs: PairSet, recipe: Recipe, staying: KeptTexts | None, load: Callable[[], SentenceTransformer]
) -> Stages:
    """Return the stages of a training; `staying` are texts that a distillation lets stay as they are."""
    distils = recipe.training.distil_epochs > 0
    texts = texts_to_embed(pairs, staying.texts) if staying is not None and distils else None
    return Stages(pairs, recipe, load, texts)


@rank_zero
def _write_targets(
    file: Path, model: SentenceTransformer, tuned: SentenceTransformer, texts: TextsToEmbed
) -> None:
    """Write what the texts are to be embedded as, whole or not at all."""
    log.info("embedding %s texts with the backbone and with the tuned model", f"{sum(texts.counts):,}")
    with Progress("embedding", len(texts.every) + len(texts.own)) as progress:
        with _counted_by(progress, model):
            before = _embedded(Embedder(model, "the backbone"), texts.every)
        with _counted_by(progress, tuned):
            after = _embedded(Embedder(tuned, "the tuned model"), texts.own)
    part = file.with_name("part.npy")
    wanted = targets(before, after)
    with disk_errors_in_one_line(file.parent):
        np.save(part, wanted)
        part.replace(file)


@contextmanager
def _counted_by(progress: Progress, model: SentenceTransformer) -> Iterator[None]:
    """Count the texts that a model embeds inside the block, batch by batch."""

    def count(_: object, __: object, features: Mapping[str, Tensor]) -> None:
        progress.advance(len(next(iter(features.values()))))

    hook = model[0].register_forward_hook(count)
    try:
        yield
    finally:
        hook.remove()


def targets(before: Vectors, tuned: Vectors) -> Vectors:
    """Return what texts are to be embedded as (N, D), of length 1.

    Args:
        before: The backbone's embeddings (N, D); the first are of the user's texts.
        tuned: Those of the user's texts by the tuned model (M, D), M < N.
    """
    own = len(tuned)
    wanted = unit_rows(before).astype(np.float32)
    seen, mine = _seen_by_gate(len(wanted), own)
    # On one scale, so that the penalty means the same for a backbone whose embeddings are all alike.
    centre = wanted[seen].mean(axis=0)
    spread = wanted[seen] - centre
    scale = max(float(np.sqrt(spread.var(axis=0).sum())), np.finfo(np.float32).tiny)
    spread /= scale
    gate = LogisticRegression(C=1 / (_PENALTY * len(seen)), class_weight="balanced", max_iter=1_000)
    gate.fit(spread, mine)
    opening = _opening(gate, spread)
    yours, theirs = float(opening[mine].mean()), float(opening[~mine].mean())
    log.info("the gate is open by %.2f in the mean for your texts, by %.2f for the others", yours, theirs)
    if yours - theirs < _APART:
        log.warning(
            "warning: the texts that are to stay are much like yours, so the model learns less from your "
            "pairs; --keep texts of other kinds"
        )
    for start in range(0, own, _BLOCK):
        rows = slice(start, min(start + _BLOCK, own))
        open_by = _opening(gate, (wanted[rows] - centre) / scale)
        mixed = open_by * unit_rows(tuned[rows]) + (1 - open_by) * wanted[rows]
        wanted[rows] = unit_rows(mixed)
    return wanted  # the others as they were, so that what is near to the user's texts stays, too


def _seen_by_gate(count: int, own: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the rows that the gate learns from, and which of them are the user's."""
    draw = np.random.default_rng(0)
    both = (np.arange(own), np.arange(own, count))
    seen = np.concatenate(
        [rows if len(rows) <= _SEEN else np.sort(draw.choice(rows, _SEEN, replace=False)) for rows in both]
    )
    return seen, seen < own


def _opening(gate: LogisticRegression, spread: Vectors) -> Vectors:
    """Return how far the gate is open for each text (N, 1), 0 to 1."""
    log_odds: NDArray[np.float64] = gate.decision_function(spread)
    return np.clip(0.5 + log_odds / (2 * _OPENS), 0, 1).astype(np.float32)[:, None]


def _embedded(embed: Embedder, texts: Sequence[TextInRole]) -> Vectors:
    """Return the embeddings of texts, in their order."""
    by_role: dict[Role, list[int]] = {}
    for place, (role, _) in enumerate(texts):
        by_role.setdefault(role, []).append(place)
    found = {role: embed([texts[place][1] for place in places], role) for role, places in by_role.items()}
    rows = np.empty((len(texts), next(iter(found.values())).shape[1]), dtype=np.float32)
    for role, places in by_role.items():
        rows[places] = found[role]
    return rows


def _rows(texts: TextsToEmbed) -> Dataset:
    """Return the rows of one pass, as `TargetCollator` reads them."""
    every, places = texts.every, texts.places()
    columns = {"role": [every[place][0] for place in places], "text": [every[place][1] for place in places]}
    return Dataset.from_dict(columns | {"place": places})
