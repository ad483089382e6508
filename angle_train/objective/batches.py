"""From labelled pairs to batches: each distinct text is encoded once, in chunks of similar length.

Which pairs are in a batch never depends on their lengths (sorting all pairs by length would not leave batches
random: length goes with label). A batch's columns are named as the trainer expects (`PREFIX_input_ids` …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch import Tensor

from angle_data.text import normalise, stable_hash
from angle_train.objective.kept import Kept
from angle_train.objective.labels import batch_labels
from angle_train.recipe import Recipe

LABEL_COLUMNS = ("score", "weight", "scale")
# What one more forward and backward pass costs, in characters of padding: about 20 tokens of a small encoder
# on one CPU core, measured. Half or twice as much changes the time by a few per cent.
_PASS = 100
_TOKENS_AROUND = 8  # the two special tokens of each text, in characters

_Text = tuple[str, str]
"""The role of a text, empty where it has none, and the text."""
_Chunk = tuple[str, Sequence[str]]
"""The role of the texts of a chunk, and the texts."""


class EpochSampler(DefaultBatchSampler):
    """Random batches that depend on seed and epoch alone, so that a resumed run sees the same ones.

    Attributes:
        sources: Source of each row, where pairs of one source are to stand together.
        block: Rows of one source that stand together, see `blocked_order`.
    """

    sampler: Dataset  # the trainer hands over the data itself
    sources: Sequence[str] | None = None
    block: int = 1

    def __iter__(self) -> Iterator[list[int]]:
        # Their sum would give seed 1 in its second epoch the batches of seed 2 in its first.
        generator = torch.Generator().manual_seed(stable_hash(f"{self.seed}\n{self.epoch}"))
        order = blocked_order(self.sources or [""] * len(self.sampler), self.block, generator)
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]


def blocked_order(keys: Sequence[str], block: int, generator: torch.Generator) -> list[int]:
    """Return a random order of 0..len(keys)-1 in which rows of one key stand together, `block` at a time.

    The keys are the rows' sources. With `block` 1 it is a plain shuffle. Larger blocks put the pairs of one
    source text into one batch, which encodes the source once for all of them and lets the objectives compare
    its synonyms with its antonyms.
    """
    order: list[int] = torch.randperm(len(keys), generator=generator).tolist()
    if block == 1:
        return order
    rows: dict[str, list[int]] = {}
    for index in order:
        rows.setdefault(keys[index], []).append(index)
    blocks = [own[start : start + block] for own in rows.values() for start in range(0, len(own), block)]
    return [index for pick in torch.randperm(len(blocks), generator=generator) for index in blocks[pick]]


def fixed_chunks(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """Return consecutive chunks of `size` texts, the last one of what is left."""
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def adaptive_chunks(texts: Sequence[str], most: int) -> list[Sequence[str]]:
    """Return consecutive chunks of at most `most` texts that cost least in padding and forward passes.

    A chunk costs its number of texts times the length of its longest, plus a constant for the pass. The best
    cuts follow from the best cuts of every beginning of the list, in O(N · most) steps. Lengths are in
    characters: the chunks are made before they are tokenised, so that each is padded by itself.

    Args:
        texts: Sorted by length.
        most: Texts per chunk, at least 1.
    """
    cost = [0.0]
    cut = [0]
    for end in range(1, len(texts) + 1):
        longest = len(texts[end - 1]) + _TOKENS_AROUND
        choices = [(cost[start] + (end - start) * longest, start) for start in range(max(0, end - most), end)]
        least, start = min(choices)
        cost.append(least + _PASS)
        cut.append(start)
    chunks: list[Sequence[str]] = []
    end = len(texts)
    while end:
        chunks.append(texts[cut[end] : end])
        end = cut[end]
    return chunks[::-1]


@dataclass
class PairCollator:
    """Collates rows `{text1, text2, score[, weight, scale]}` into chunked, tokenised batches.

    The N distinct texts of the B rows are ordered by length and cut into chunks, each padded to its own
    longest text. The batch holds every chunk's model inputs under `chunkNNN_…` and, under `label`, a
    dictionary of tensors: `first`, `second` (B,), indices into the N texts in chunk order; `score`,
    `weight`, `scale` (B,), see `terms`; `positive`, `neutral` (B,), boolean; `group` (N,), see
    `labels.positive_groups`. With `transitive` these describe more pairs than rows.

    Several processes each get the rows of the whole batch and the same labels, and divide the texts among
    them. Two labels more then say how to put the embeddings together: `counts` (processes,), how many each
    process encodes, and `rows` (N,), where each text stands in all of them, one process after the other.

    With `swap` the two texts of a row are exchanged with probability one half: the published angle depends
    on their order, and in LLM-labelled pairs the second text is always the machine's. The seed decides the
    swaps together with the rows, not what was drawn before: the data loader fetches ahead, and a resumed run
    would swap other pairs.

    With `roles` text1 is a query and text2 a document: each text is read as what it is, a text that is both
    counts as two, and no chunk holds texts of two roles. The texts to keep are documents then.

    With `kept` texts some more texts stand behind the N of the rows, and the label `table` (M, M) has the
    cosines that these are to keep.

    Attributes:
        preprocess: Tokenises a list of texts into padded model inputs (`SentenceTransformer.preprocess`).
        recipe: Says everything about the pairs of a batch, and how many texts are in a forward pass.
        chunking: `fixed` fills every chunk, `adaptive` cuts where it saves time, see `adaptive_chunks`.
        prompt: Put before every text.
        process: Number of this process, from 0.
        processes: How many processes encode a batch together.
        kept: Texts that are to keep their similarities.
        roles: What `preprocess` is given for a `query` and for a `document`, in place of `prompt`; empty
            where texts have no roles.
    """

    preprocess: Callable[..., Mapping[str, Tensor]]
    recipe: Recipe
    chunking: str = "fixed"
    prompt: str | None = None
    process: int = 0
    processes: int = 1
    kept: Kept | None = None
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    valid_label_columns: list[str] = field(default_factory=lambda: list(LABEL_COLUMNS))

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of `rows`; see the class for its keys."""
        config = self.recipe.training
        pairs = [(row["text1"], row["text2"]) for row in rows]
        generator = torch.Generator().manual_seed(stable_hash(repr((config.seed, pairs))))
        sides = ("query", "document") if self.roles else ("", "")
        ends = [((sides[0], a), (sides[1], b)) for a, b in pairs]
        if config.swap:
            flips = torch.rand(len(pairs), generator=generator).lt(0.5).tolist()
            ends = [(b, a) if flip else (a, b) for (a, b), flip in zip(ends, flips, strict=True)]
        # Sorting by characters first and text second makes the order independent of the rows' order.
        distinct = {text for pair in ends for text in pair}
        texts = sorted(distinct, key=lambda text: (text[0], len(text[1]), text[1]))
        labels = self._labels(rows, ends, texts, generator)
        count = len(texts)
        if self.kept is not None:
            seed = stable_hash(repr(("kept", config.seed, [(a, b) for (_, a), (_, b) in ends])))
            places = self.kept.draw(config.keep_texts, torch.Generator().manual_seed(seed))
            texts = [*texts, *((sides[1], text) for text in self.kept.at(places))]
            labels["table"] = self.kept.table(places)
        return self._batch(texts, count, labels)

    def _batch(self, texts: Sequence[_Text], of_pairs: int, labels: dict[str, Tensor]) -> dict[str, Any]:
        """Return the inputs of the chunks of `texts`, see `_shares`, and the labels."""
        shares = _shares(texts, of_pairs, self.processes, self._cut)
        batch: dict[str, Any] = {}
        for number, (role, part) in enumerate(shares[self.process]):
            chunk = self.preprocess(part, **self.roles.get(role, {"prompt": self.prompt}))
            batch |= {f"chunk{number:03d}_{name}": value for name, value in chunk.items()}
        batch["label"] = labels
        if self.processes > 1:
            counts = torch.tensor([sum(len(part) for _, part in share) for share in shares])
            position = torch.arange(len(texts))
            before = counts.cumsum(0) - counts
            batch["label"] |= {
                "counts": counts,
                "rows": before[position % self.processes] + position // self.processes,
            }
        return batch

    def _cut(self, texts: Sequence[_Text]) -> list[_Chunk]:
        """Return the texts, sorted by role and length, in chunks of one role each."""
        cut = adaptive_chunks if self.chunking == "adaptive" else fixed_chunks
        by_role = groupby(texts, key=lambda text: text[0])
        of_roles = ((role, [text for _, text in own]) for role, own in by_role)
        return [(role, part) for role, own in of_roles for part in cut(own, self.recipe.training.chunk_size)]

    def _labels(
        self,
        rows: Sequence[Mapping[str, Any]],
        pairs: Sequence[tuple[_Text, _Text]],
        texts: Sequence[_Text],
        generator: torch.Generator,
    ) -> dict[str, Tensor]:
        index = {text: position for position, text in enumerate(texts)}
        identities: dict[str, int] = {}
        identity = torch.tensor([identities.setdefault(normalise(t), len(identities)) for _, t in texts])
        labelled = {
            "first": torch.tensor([index[a] for a, _ in pairs]),
            "second": torch.tensor([index[b] for _, b in pairs]),
            "score": torch.tensor([float(row["score"]) for row in rows]),
            "weight": torch.tensor([float(row.get("weight", 1.0)) for row in rows]),
            "scale": torch.tensor([int(row.get("scale", 1)) for row in rows]),
        }
        # The derived pairs come in order of length.
        swap = generator if self.recipe.training.swap else None
        return batch_labels(labelled, identity, self.recipe.objective, swap)


@dataclass
class TargetCollator(PairCollator):
    """Collates rows `{text, role, place}` into batches like those of pairs.

    The label `target` (N, D) has what each of the N texts is to be embedded as, in the order of the chunks.

    Attributes:
        targets: What every text is to be embedded as (P, D), by its place.
    """

    targets: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    valid_label_columns: list[str] = field(default_factory=lambda: ["place"])

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of `rows`; see the class."""
        ordered = sorted(rows, key=lambda row: (row["role"], len(row["text"]), row["text"]))
        target = torch.from_numpy(np.array(self.targets[[row["place"] for row in ordered]]))
        return self._batch([(row["role"], row["text"]) for row in ordered], len(ordered), {"target": target})


def _shares(
    texts: Sequence[_Text],
    of_pairs: int,
    processes: int,
    cut: Callable[[Sequence[_Text]], list[_Chunk]],
) -> list[list[_Chunk]]:
    """Return the chunks of each process; it gets every n-th text, so that all have about as much to do.

    The first texts are those `of_pairs`, and no chunk holds both such and others.

    All get equally many chunks, since data-parallel models wait for each other at every forward pass: a
    process that lacks a chunk encodes a text for nothing.
    """
    shares = []
    for process in range(processes):
        own = texts[process::processes] or texts[:1]
        end = max(1, len(range(process, of_pairs, processes)))
        shares.append([*cut(own[:end]), *(cut(own[end:]) if own[end:] else ())])
    most = max(map(len, shares))
    padding = [(role, part[-1:]) for role, part in (chunks[-1] for chunks in shares)]
    return [chunks + [extra] * (most - len(chunks)) for chunks, extra in zip(shares, padding, strict=True)]
