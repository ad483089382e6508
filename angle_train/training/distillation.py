"""One model that embeds the user's kind of text as a tuned model does, and all other text as the backbone.

What a model learns from pairs of one domain moves text of every kind (benchmarks/log/distillation.md). So the
tuned model is not kept. A gate, learned from the backbone's embeddings alone, says how much a text is of the
domain; and a fresh backbone learns a target for every text: the tuned embedding as far as the gate is open,
its own as far as it is shut. What is saved is an ordinary model: gate and tuned model are gone.

Source: embeddings as what is distilled, Reimers and Gurevych 2020, https://arxiv.org/abs/2004.09813; a
model's own answers against forgetting, Li and Hoiem 2016, https://arxiv.org/abs/1606.09282.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_data.text import normalise
from angle_train.data.pairs import PairSet
from angle_train.evaluation.similarity import Embedder, unit_rows
from angle_train.model.roles import PAIR, Role
from angle_train.objective.batches import TargetCollator
from angle_train.objective.loss import TargetLoss
from angle_train.recipe import Recipe
from angle_train.training.arguments import Schedule
from angle_train.training.processes import rank_zero
from angle_train.training.run_directory import RunDirectory
from angle_train.training.trainer import NO_PATIENCE, DevEvaluator, Training, TrainOptions, train

log = logging.getLogger("angle.fit")

_BATCH = 64  # texts a step
_OPENS = 2.0  # log-odds: the gate is shut below -2, open above 2, and rises evenly between
_PENALTY = (
    8e-4  # of the gate's squared weights, beside the mean loss of a text (benchmarks/log/distillation.md)
)

Vectors = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TextsToEmbed:
    """The texts that a model learns to embed.

    Attributes:
        own: Those of the training pairs, each with its role.
        others: Those that are to stay as they are; none of them is one of the pairs.
        role: Of the others.
    """

    own: Sequence[tuple[Role, str]]
    others: Sequence[str]
    role: Role = ""

    def __len__(self) -> int:
        """How many rows one pass takes."""
        return len(self.own) + self.repeats * len(self.others)

    @property
    def repeats(self) -> int:
        """How often the others come in one pass, so that they are about as many as the own."""
        return max(1, round(len(self.own) / len(self.others)))


def texts_to_embed(pairs: PairSet, staying: Sequence[str]) -> TextsToEmbed | None:
    """Return the texts of the pairs, and those of `staying` that are none of them; None where none are."""
    roles: tuple[Role, Role] = PAIR if pairs.roles else ("", "")
    ends = zip(pairs.text1, pairs.text2, strict=True)
    own = list(dict.fromkeys(end for both in ends for end in zip(roles, both, strict=True)))
    known = {normalise(text) for _, text in own}
    others = [text for text in staying if normalise(text) not in known]
    return TextsToEmbed(own, others, roles[1]) if others else None


@dataclass(frozen=True, slots=True)
class Stages:
    """A training on pairs and, where the recipe distils, what a fresh backbone learns of the result.

    Attributes:
        pairs: What to train on.
        recipe: How; settled.
        staying: Texts that the backbone is to embed as before, beside those of the pairs.
        load: Loads a model as training starts with it.
    """

    pairs: PairSet
    recipe: Recipe
    staying: Sequence[str]
    load: Callable[[], SentenceTransformer]

    @property
    def texts(self) -> TextsToEmbed | None:
        """What the last stage learns; None where the training on pairs is the last."""
        return texts_to_embed(self.pairs, self.staying) if self.recipe.training.distil_epochs else None

    @property
    def last(self) -> Recipe:
        """How the training goes whose weights are kept."""
        if self.texts is None:
            return self.recipe
        stage = {"epochs": self.recipe.training.distil_epochs, "batch_size": _BATCH}
        return self.recipe.with_overrides(stage)

    @property
    def schedule(self) -> Schedule:
        """The schedule of the training whose weights are kept."""
        return Schedule(self.last, len(self.texts or self.pairs))

    @property
    def first_steps(self) -> int:
        """How many steps the training on pairs takes before them; 0 where it is the last stage."""
        return Schedule(self.recipe, len(self.pairs)).steps if self.texts else 0

    @property
    def details(self) -> dict[str, Any]:
        """What a report says of a distillation; nothing where there is none."""
        found = self.texts
        return {"distillation": {"own": len(found.own), "others": len(found.others)}} if found else {}

    def train(
        self,
        model: SentenceTransformer,
        directory: RunDirectory,
        base: SentenceTransformer | None = None,
        *,
        evaluator: DevEvaluator | None = None,
        resume: Path | None = None,
        options: TrainOptions | None = None,
    ) -> Training:
        """Train `model` in place, as `trainer.train` does.

        Args:
            model: As it was loaded.
            directory: Of the run. Those of the stage before lie among its checkpoints.
            base: Whose embeddings stay; default those of `model`.
            evaluator: Measures the weights that may be kept.
            resume: Checkpoint of these weights to go on from.
            options: As `trainer.train`.

        Raises:
            InputError: As `trainer.train`, and DivergedError and KeyboardInterrupt.
        """
        options = options or TrainOptions()
        texts = self.texts
        pairs: PairSet | Dataset = self.pairs
        if texts is not None:
            file = self._targets(model if base is None else base, texts, directory, options)
            log.info(
                "a fresh backbone learns the tuned embeddings of %s texts, and keeps its own of %s others",
                f"{len(texts.own):,}",
                f"{len(texts.others):,}",
            )
            pairs = _rows(texts, np.load(file))
            cached = self.recipe.training.gradient_cache
            loss = partial(TargetLoss, config=self.recipe.objective, gradient_cache=cached)
            options = replace(options, kept=None, loss=loss, collator=TargetCollator)
        elif self.recipe.training.distil_epochs:
            log.warning("distil_epochs: no texts are kept, so nothing is distilled; set keep_general=true")
        checkpoints = directory.checkpoints
        return train(
            model, pairs, self.last, checkpoints, evaluator=evaluator, resume=resume, options=options
        )

    def _targets(
        self, base: SentenceTransformer, texts: TextsToEmbed, directory: RunDirectory, options: TrainOptions
    ) -> Path:
        """Train on the pairs, unless that was done, and return the file of the targets that this gives."""
        run = RunDirectory(directory.checkpoints / "tuned", {**directory.fingerprint, "part": "tuned"})
        file = run.path / "targets.npy"
        if not file.exists():
            tuned = self.load()
            train(
                tuned,
                self.pairs,
                self.recipe.with_overrides({"patience": NO_PATIENCE}),
                run.checkpoints,
                evaluator=options.first,
                resume=rank_zero(run.claim)(run.status(overwrite=False)),
                options=replace(options, stop_at=None),
            )
            _write_targets(file, base, tuned, texts)
            run.tidy()
        return file


@rank_zero
def _write_targets(
    file: Path, base: SentenceTransformer, tuned: SentenceTransformer, texts: TextsToEmbed
) -> None:
    """Write what the texts are to be embedded as, whole or not at all."""
    before = _embedded(Embedder(base, "the backbone"), texts)
    after = _embedded(Embedder(tuned, "the tuned model"), texts)
    part = file.with_name("part.npy")
    np.save(part, targets(before, after, len(texts.own)).astype(np.float32))
    part.replace(file)


def targets(before: Vectors, tuned: Vectors, own: int) -> Vectors:
    """Return what texts are to be embedded as (N, D), of length 1.

    Args:
        before: The backbone's embeddings (N, D); the first `own` are of the user's texts.
        tuned: Those of the tuned model.
        own: How many are the user's.
    """
    from sklearn.linear_model import LogisticRegression

    before, tuned = unit_rows(before), unit_rows(tuned)
    mine = np.arange(len(before)) < own
    # On one scale, so that the penalty means the same for a backbone whose embeddings are all alike.
    spread = before - before.mean(axis=0)
    spread /= max(float(np.sqrt(spread.var(axis=0).sum())), np.finfo(np.float32).tiny)
    strength = 1 / (_PENALTY * len(before))
    gate = LogisticRegression(C=strength, class_weight="balanced", max_iter=1_000).fit(spread, mine)
    open_by = np.clip(0.5 + gate.decision_function(spread) / (2 * _OPENS), 0, 1)[:, None]
    log.info(
        "a gate tells your texts from others: open by %.2f in the mean for yours, by %.2f for the others",
        open_by[mine].mean(),
        open_by[~mine].mean(),
    )
    return unit_rows(open_by * tuned + (1 - open_by) * before)


def _embedded(embed: Embedder, texts: TextsToEmbed) -> Vectors:
    """Return the embeddings of the texts, the own ones first."""
    rows = np.empty(0)
    by_role: dict[Role, list[int]] = {}
    every = [*texts.own, *((texts.role, text) for text in texts.others)]
    for place, (role, _) in enumerate(every):
        by_role.setdefault(role, []).append(place)
    for role, places in by_role.items():
        found = embed([every[place][1] for place in places], role)
        rows = np.zeros((len(every), found.shape[1])) if not rows.size else rows
        rows[places] = found
    return rows


def _rows(texts: TextsToEmbed, wanted: NDArray[np.float32]) -> Dataset:
    """Return the rows of one pass, as `TargetCollator` reads them."""
    own = [{"role": role, "text": text} for role, text in texts.own]
    others = [{"role": texts.role, "text": text} for text in texts.others]
    places = [*range(len(own)), *(list(range(len(own), len(wanted))) * texts.repeats)]
    every: list[dict[str, Any]] = [*own, *others]
    return Dataset.from_dict(
        {
            "role": [every[place]["role"] for place in places],
            "text": [every[place]["text"] for place in places],
            "target": [wanted[place] for place in places],
        }
    )
