"""What every entry of the task registry must do, on made-up data that has the columns of all tasks."""

import numpy as np
import pytest

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluation.task import GROUPS, TASKS, Source, expand_names, load_task

SPLITS = ("test", "issues-validation")
ROWS = 24


def row(number):
    """A row for any task: reports 2k and 2k+1 are duplicates."""
    return {
        "text1": f"first {number} of {number // 2}",
        "text2": f"second {number} of {number // 2}",
        "score": number % 6,
        "text": f"text {number} of {number // 2}",
        "cluster": number // 2,
    }


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for name in TASKS:
        for split in SPLITS:
            path = root / load_task(name).data.folder / f"{split}.jsonl"
            if not path.exists():
                write_jsonl(path, (row(number) for number in range(ROWS)))
    return root


def encode(items):
    """Embeddings that depend on the characters of the item and nothing else."""
    return np.array([[str(item).count(c) + 0.1 for c in "aefirst0123456789"] for item in items], np.float32)


@pytest.mark.parametrize("name", TASKS)
def test_contract(name, data_dir):
    task = load_task(name)
    assert task.standard_size is None or task.standard_size > 100
    data = task.load(Source(data_dir))
    outcome = task.measure(data, encode)
    assert outcome.statistics
    sizes = {statistic.size for statistic in outcome.statistics.values()}
    assert len(sizes) == 1
    for statistic in outcome.statistics.values():
        value = statistic.value()
        assert -1 <= value <= 1
        # Every item drawn once is the set itself.
        assert statistic.resampled(np.ones((2, statistic.size))) == pytest.approx([value, value])
    again = task.measure(task.load(Source(data_dir)), encode)
    assert [s.value() for s in again.statistics.values()] == [s.value() for s in outcome.statistics.values()]
    assert len(outcome.similarity) == (0 if outcome.pairs is None else len(outcome.pairs))


def test_sets_have_the_published_sizes():
    # SemEval 2012-2016, STS Benchmark, SICK.
    sizes = {name: size for name in TASKS if (size := load_task(name).standard_size) is not None}
    years = dict(sts12=3108, sts13=1500, sts14=3750, sts15=3000, sts16=1186)
    assert sizes == years | {"stsb": 1379, "sick-r": 4927}


@pytest.mark.parametrize("name", TASKS)
def test_missing_data_names_the_expected_path(name, tmp_path):
    task = load_task(name)
    with pytest.raises(InputError, match=f"--data-dir has no {task.data.folder}/.*jsonl.gz"):
        task.load(Source(tmp_path))


@pytest.mark.parametrize("name", [name for name in TASKS if load_task(name).data.hub is None])
def test_tasks_that_the_hub_does_not_have_ask_for_a_folder(name):
    with pytest.raises(InputError, match="give a folder with --data-dir"):
        load_task(name).load(Source())


def test_names_and_groups_are_expanded_once_in_order():
    assert expand_names(["stsb", "bug-duplicates-retrieval", "sts"]) == [
        "stsb",
        "bug-duplicates-retrieval",
        *(name for name in GROUPS["sts"] if name != "stsb"),
    ]
    assert not GROUPS.keys() & TASKS.keys()  # else the task hides the group
    assert expand_names(["all"]) == list(TASKS)
    assert {name for names in GROUPS.values() for name in names} == set(TASKS)


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="unknown task 'zzz'; choose from sts, all and sts12"):
        expand_names(["zzz"])
