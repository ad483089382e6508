"""Batches that depend on seed, epoch and rows alone."""

import pytest
import torch
from datasets import Dataset

from angle_train.batching import PairCollator
from angle_train.replay import EpochSampler, ReplayableCollator


def sampler(seed=1, epoch=0, **options):
    made = EpochSampler(
        Dataset.from_dict({"x": list(range(10))}), options.pop("batch_size", 4), **options, seed=seed
    )
    made.set_epoch(epoch)
    return made


@pytest.mark.parametrize(("drop_last", "sizes"), [(False, [4, 4, 2]), (True, [4, 4])])
def test_epoch_holds_each_row_once(drop_last, sizes):
    made = sampler(drop_last=drop_last)
    batches = list(made)
    assert [len(batch) for batch in batches] == sizes
    assert len(made) == len(sizes)
    assert len({row for batch in batches for row in batch}) == sum(sizes)


def test_order_follows_from_seed_and_epoch():
    first = list(sampler(drop_last=False))
    assert list(sampler(drop_last=False)) == first
    assert list(sampler(drop_last=False, epoch=1)) != first
    assert list(sampler(drop_last=False, seed=2)) != first
    # A resumed run asks a new sampler for a later epoch.
    made = sampler(drop_last=False)
    list(made)
    made.set_epoch(1)
    assert list(made) == list(sampler(drop_last=False, epoch=1))


def test_sources_stay_together_in_blocks():
    sources = ["a", "b", "c", "d", "e"] * 2
    batches = list(sampler(batch_size=2, drop_last=False, sources=sources, block=2))
    assert sorted(sources[first] + sources[second] for first, second in batches) == [
        "aa",
        "bb",
        "cc",
        "dd",
        "ee",
    ]


def swapped(collator, rows):
    label = collator(rows)["label"]
    return [int(a > b) for a, b in zip(label["first"].tolist(), label["second"].tolist(), strict=True)]


def test_swaps_follow_from_seed_and_rows(tiny_model):
    rows = [{"text1": f"a{i}", "text2": f"long text {i}", "score": i / 20} for i in range(20)]
    collator = ReplayableCollator(PairCollator(tiny_model.preprocess), seed=1)
    state = torch.get_rng_state()
    once = swapped(collator, rows)
    assert torch.equal(torch.get_rng_state(), state)  # what dropout draws next is not touched
    torch.manual_seed(99)
    assert swapped(collator, rows) == once
    assert 0 < sum(once) < 20
    assert swapped(ReplayableCollator(PairCollator(tiny_model.preprocess), seed=2), rows) != once
    assert swapped(collator, rows[::-1])[::-1] != once  # other epochs bring other neighbours and other swaps


def test_batches_without_a_ranking_are_counted(tiny_model):
    collator = ReplayableCollator(PairCollator(tiny_model.preprocess), seed=1)
    rows = [{"text1": "a", "text2": "b", "score": 1.0}, {"text1": "c", "text2": "d", "score": 1.0}]
    collator(rows)
    collator([rows[0], rows[1] | {"score": 0.0}])
    assert collator.equal_batches == 1
