"""Batches that a resumed run sees again: rows and random swaps follow from the seed alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler

from angle_train.batching import PairCollator, blocked_order

__all__ = ["EpochSampler", "ReplayableCollator"]


class EpochSampler(DefaultBatchSampler):
    """Random batches that depend on seed and epoch alone, so that a resumed run sees the same ones.

    `sources` and `block` keep pairs of one source together, see `batching.blocked_order`; by default each
    pair is on its own.
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
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, valid_label_columns, generator, seed)
        self._sources = sources if sources is not None else [""] * len(dataset)
        self._block = block

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = blocked_order(self._sources, self._block, generator)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch


class ReplayableCollator:
    """A collator whose random swaps depend on seed and rows alone, not on what was drawn before.

    The data loader fetches ahead, so with shared random numbers a resumed run would swap other pairs.
    `equal_batches` counts the batches whose scores were all equal.
    """

    def __init__(self, collate: PairCollator, seed: int) -> None:
        self._collate = collate
        self._seed = seed
        self.valid_label_columns = collate.valid_label_columns
        self.equal_batches = 0

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of `rows`, see `PairCollator`."""
        self.equal_batches += len({row["score"] for row in rows}) == 1
        key = repr((self._seed, [(row["text1"], row["text2"]) for row in rows]))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]))
            return self._collate(rows)
