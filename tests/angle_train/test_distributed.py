"""Several processes: the parameters of two after training are those of one, to the last bit on both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from angle_train.objective import distributed
from angle_train.objective.distributed import check_same_batch

PROGRAM = Path(__file__).with_name("two_processes.py")
NAMES = [
    "plain",
    "everything",
    "cached",
    "accumulated",
    "fewer texts than processes",
    "stock loss",
    "fsdp",
    "fsdp cached",
]


@pytest.fixture(scope="module")
def found(tiny_model_dir, tmp_path_factory):
    """What one process and each of two found: {"single" | "rank0" | "rank1": {scenario: results}}."""
    out = tmp_path_factory.mktemp("processes")
    environment = os.environ | {"PYTHONPATH": str(PROGRAM.parents[2]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tiny_model_dir), str(out)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: torch.load(out / f"{name}.pt") for name in ("single", "rank0", "rank1")}


def largest_difference(one, other):
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def test_the_processes_share_the_texts_and_one_may_have_fewer_or_none(found):
    assert [list(found[who])[: len(NAMES)] for who in found] == [NAMES] * 3
    texts = {who: found[who]["fewer texts than processes"]["texts"] for who in found}
    assert texts == {
        "single": [1, 9, 10, 3, 1],
        "rank0": [1, 5, 5, 2, 1],
        # 1 for a batch of one text: who has none encodes one for nothing, so that all take part in the step.
        "rank1": [1, 5, 5, 1, 1],
    }


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_train_like_one(found, name, tiny_model):
    single, rank0, rank1 = (found[who][name]["parameters"] for who in ("single", "rank0", "rank1"))
    before = {parameter: value.detach() for parameter, value in tiny_model.named_parameters()}
    assert largest_difference(rank0, rank1) == 0.0
    assert largest_difference(rank0, single) <= 1e-6
    assert largest_difference(single, before) > 5e-3


@pytest.mark.parametrize("name", NAMES)
def test_every_process_reports_the_loss_of_the_whole_batch(found, name):
    single, rank0, rank1 = (found[who][name]["terms"] for who in ("single", "rank0", "rank1"))
    assert rank0 == rank1
    assert rank0 == [pytest.approx(terms, rel=1e-5) for terms in single]


def test_caching_gradients_changes_nothing(found):
    for plain, cached in (("everything", "cached"), ("fsdp", "fsdp cached")):
        one, other = (found["rank0"][name]["parameters"] for name in (plain, cached))
        assert largest_difference(one, other) <= 1e-6


def test_cached_gradients_are_synchronised_once_a_step(found):
    counts = {name: found["rank0"][name]["synchronised"] for name in ("everything", "cached", "accumulated")}
    assert counts["everything"] >= 3  # steps
    assert counts["cached"] == counts["everything"]
    assert 3 * counts["accumulated"] == 2 * counts["everything"]  # four batches in two steps


def test_batches_of_the_same_sums_in_another_order_are_told_apart(monkeypatch):
    def batch(scores):
        none = torch.zeros(0)
        return {"first": none, "second": none, "score": torch.tensor(scores), "weight": none}

    def gather(sums, own):
        told.append(own)
        for place, value in zip(sums, (told[0], own), strict=True):
            place.copy_(value)

    told = []
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(distributed.dist, "all_gather", gather)
    check_same_batch(batch([0.0, 1.0, 0.0]))
    check_same_batch(batch([0.0, 1.0, 0.0]))
    # The same sum, 1, and the same one where each value counts by its place, 2.
    with pytest.raises(ValueError, match="different batches"):
        check_same_batch(batch([0.5, 0.0, 0.5]))


@pytest.mark.parametrize("rank", ["rank0", "rank1"])
def test_batches_that_were_not_made_for_the_processes_are_refused(found, rank):
    sharded, alone, other_length = found[rank]["refusals"]
    assert sharded.startswith(
        "the processes have different batches: each must get the rows of the whole batch"
    )
    assert alone.startswith("the batch is not shared out among 2 processes")
    assert other_length.startswith("this process encoded 2 texts instead of ")
