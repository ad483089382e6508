"""Batches that depend on seed, epoch and rows alone."""

import numpy as np
import pytest
import torch
from datasets import Dataset

from angle_train.data.pairs import PairSet
from angle_train.objective.batches import PairCollator
from angle_train.recipe import Recipe
from angle_train.settings import TrainingConfig
from angle_train.train import trainer
from angle_train.train.replay import EpochSampler, ReplayableCollator, count_equal_batches


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
    assert list(sampler(drop_last=False, epoch=1)) != list(sampler(drop_last=False, seed=2))
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


def test_swapping_leaves_every_devices_random_numbers_alone(tiny_model, monkeypatch):
    # `torch.manual_seed` would seed the GPUs too, and dropout there would draw the same masks again.
    def forbidden(seed):
        raise AssertionError("the global generators were seeded")

    rows = [{"text1": f"a{i}", "text2": f"long text {i}", "score": i / 20} for i in range(20)]
    collator = ReplayableCollator(PairCollator(tiny_model.preprocess, transitive=True), seed=1)
    monkeypatch.setattr(torch, "manual_seed", forbidden)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", forbidden)
    state = torch.get_rng_state()
    assert 0 < sum(swapped(collator, rows)) < 20
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("steps", "accumulation", "counted"),
    # 10 rows in batches of 4, 4 and 2 an epoch; with 2 batches a step, an epoch is a step of 2 and one of 1.
    [(0, 1, 0), (1, 1, 1), (2, 1, 2), (3, 1, 3), (7, 1, 7), (1, 2, 2), (2, 2, 3), (3, 2, 5), (4, 2, 6)],
)  # fmt: skip
def test_batches_without_a_ranking_are_counted_up_to_a_step(steps, accumulation, counted):
    made = sampler(drop_last=False, epoch=5)
    assert count_equal_batches(made, [0.5] * 10, steps, accumulation) == counted
    assert count_equal_batches(made, list(range(10)), steps, accumulation) == 0


def test_the_batches_counted_are_those_of_each_epoch():
    scores = [0.0] * 9 + [1.0]
    batches = [batch for epoch in range(4) for batch in sampler(drop_last=False, epoch=epoch)]
    expected = [9 not in batch for batch in batches]  # row 9 is the only one with another score
    assert [count_equal_batches(sampler(drop_last=False), scores, n) for n in range(13)] == [
        sum(expected[:n]) for n in range(13)
    ]


def test_label_diverse_batches_all_have_something_to_rank():
    scores = [1.0] * 5 + [0.0] * 5  # the last batch has two rows
    for seed in range(20):
        made = sampler(seed=seed, drop_last=False, scores=scores)
        batches = list(made)
        assert sorted(row for batch in batches for row in batch) == list(range(10))
        assert count_equal_batches(made, scores, 6) == 0
    assert any(count_equal_batches(sampler(seed=seed, drop_last=False), scores, 6) > 0 for seed in range(20))


def test_label_diverse_order_follows_from_seed_and_epoch():
    options = {"drop_last": False, "scores": [0.0, 1.0] * 5}
    first = list(sampler(**options))
    assert list(sampler(**options)) == first
    assert list(sampler(**options, epoch=1)) != first
    assert list(sampler(**options, seed=2)) != first
    made = sampler(**options)
    list(made)
    made.set_epoch(1)  # a resumed run asks a new sampler for a later epoch
    assert list(made) == list(sampler(**options, epoch=1))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_run_has_the_batches_that_its_recipe_asks_for(tiny_model, tmp_path, monkeypatch):
    texts = [f"{word} {number}" for number in range(4) for word in ("disk", "node", "cable")]
    scores = np.array([1.0] * 3 + [0.0] * 9)
    pairs, seen = PairSet("few", texts, texts[::-1], scores, np.ones(12)), []

    class Recording(ReplayableCollator):
        def __call__(self, rows):
            seen.append({row["score"] for row in rows})
            return super().__call__(rows)

    monkeypatch.setattr(trainer, "ReplayableCollator", Recording)

    def equal_batches(diverse):
        seen.clear()
        config = TrainingConfig(epochs=3, batch_size=4, evals_per_epoch=1, label_diverse=diverse, seed=3)
        counted = trainer.train(tiny_model, pairs, [pairs], Recipe(training=config), tmp_path / str(diverse))
        assert counted.equal_batches == sum(len(levels) == 1 for levels in seen)
        return counted.equal_batches

    assert equal_batches(True) == 0
    assert equal_batches(False) > 0
