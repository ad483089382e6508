"""Batches that a resumed run sees again: rows and random swaps follow from the seed alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler

from angle_data.text import stable_hash
from angle_train.objective.batches import PairCollator, blocked_order


class EpochSampler(DefaultBatchSampler):
    """Random batches that depend on seed and epoch alone, so that a resumed run sees the same ones.

    `sources` and `block` keep pairs of one source together, see `batching.blocked_order`; by default each
    pair is on its own. With `scores` their levels are spread evenly over the batches.
    """

    sampler: Dataset  # the trainer hands over the data itself

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
        sources: Sequence[str] | None = None,
        block: int = 1,
        scores: Sequence[float] | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, valid_label_columns, generator, seed)
        self._sources = sources if sources is not None else [""] * len(dataset)
        self._block = block
        self._scores = scores

    def __iter__(self) -> Iterator[list[int]]:
        # Their sum would give seed 1 in its second epoch the batches of seed 2 in its first.
        generator = torch.Generator().manual_seed(stable_hash(f"{self.seed}\n{self.epoch}"))
        order = blocked_order(self._sources, self._block, generator, self._scores)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch


def count_equal_batches(
    sampler: EpochSampler, scores: Sequence[float], steps: int, accumulation: int = 1
) -> int:
    """Return how many batches of the first `steps` steps have equal scores throughout: they rank nothing.

    Counted from the sampler, so that a resumed run counts the batches before its checkpoint too.

    Args:
        sampler: Makes the batches; its epoch is changed.
        scores: Gold score of each row of the data.
        steps: Optimiser steps, from the first on.
        accumulation: Batches per step; the last step of an epoch takes what is left.
    """
    per_epoch = -(-len(sampler) // accumulation)
    count = 0
    for epoch in range(-(-steps // per_epoch)):
        sampler.set_epoch(epoch)
        batches = islice(sampler, (steps - epoch * per_epoch) * accumulation)
        count += sum(len({scores[row] for row in batch}) == 1 for batch in batches)
    return count


class ReplayableCollator:
    """A collator whose random swaps depend on seed and rows alone, not on what was drawn before.

    The data loader fetches ahead, so with shared random numbers a resumed run would swap other pairs. The
    generator is the collator's own: what dropout draws, on any device, is not touched.
    """

    def __init__(self, collate: PairCollator, seed: int) -> None:
        self._collate = collate
        self._seed = seed
        self.valid_label_columns = collate.valid_label_columns

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of `rows`, see `PairCollator`."""
        key = repr((self._seed, [(row["text1"], row["text2"]) for row in rows]))
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
        return self._collate(rows, torch.Generator().manual_seed(seed))
