"""Reading tasks' rows from a folder or the hub, and what is said when something is missing."""

import pytest

from angle_data.errors import InputError
from angle_train.data.columns import class_in
from angle_train.evaluation.task import Source, TaskData
from angle_train.evaluation.tasks.pairs import QNLI, SICK_R
from angle_train.evaluation.tasks.transfer import MR


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *((value, "1") for value in (1, 1.0, True, "1", "1.0", " 1 ", "1.", "true", "True")),
        *((value, "0") for value in (0, 0.0, False, "0", "0.0", "-0", "FALSE")),
        *((value, "-1") for value in (-1, -1.0, "-1", "-1.0")),
        (12, "12"),
        ("1.5", "1.5"),
        ("ABBR", "ABBR"),
        (" entailment", "entailment"),
    ],
)
def test_a_class_has_one_name_however_it_is_written(written, name):
    assert class_in({"label": written}, "f:1") == name


@pytest.mark.parametrize("written", [None, "", "  ", 0.5, float("nan"), [1], {"a": 1}])
def test_what_is_no_class_is_refused_with_its_place(written):
    with pytest.raises(InputError, match="f:7: label must be a class, got "):
        class_in({"label": written}, "f:7")


def test_the_first_column_with_a_value_counts():
    assert class_in({"label": None, "coarse_label": 3}, "f:1") == "3"
    assert class_in({"coarse_label": 3, "label": 2}, "f:1") == "2"
    with pytest.raises(InputError, match="f:1: label must be a class, got None"):
        class_in({"text": "x"}, "f:1")


@pytest.fixture
def hub(monkeypatch):
    """A hub that holds the given rows and remembers what it was asked for."""
    import datasets

    asked = []

    def answer(rows):
        def load_dataset(name, config=None, *, split, revision):
            asked.append((name, config, split, revision))
            return datasets.Dataset.from_list(rows)

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        return asked

    return answer


def test_a_task_asks_the_hub_for_its_own_split_and_columns(hub):
    row = {"sentence_A": "a", "sentence_B": "b", "relatedness_score": 3.5, "entailment_judgment": "x"}
    asked = hub([row, row | {"relatedness_score": 1.0}])
    pairs, _ = SICK_R.load(Source())
    assert (pairs.text1, pairs.text2, pairs.score.tolist()) == (["a", "a"], ["b", "b"], [3.5, 1.0])
    assert asked == [("RobZamp/sick", None, "test", "refs/convert/parquet")]


def test_qnli_counts_label_0_as_positive_and_tunes_on_train(hub):
    asked = hub([{"question": f"q{i}", "sentence": "s", "label": i % 2} for i in range(4)])
    data = QNLI.load(Source())
    assert data[0].score.tolist() == [1, 0, 1, 0]
    assert data[1].name == "train"
    assert {(name, config, split) for name, config, split, _ in asked} == {
        ("nyu-mll/glue", "qnli", "train"),
        ("nyu-mll/glue", "qnli", "validation"),
    }


def test_splits_of_the_hub_are_joined_where_a_task_has_one(hub):
    asked = hub([{"text": f"text {i}", "label": i % 2} for i in range(24)])
    assert len(MR.load(Source())["train"]) == 24
    assert asked[0][2] == "train+validation+test"


def test_pictures_are_not_decoded(monkeypatch):
    import datasets

    rows = datasets.Dataset.from_dict(
        {"caption": [["a", "b"]], "image": [None]},
        features=datasets.Features({"caption": [datasets.Value("string")], "image": datasets.Image()}),
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: rows)
    ((_, row),) = Source().rows(TaskData("x", "some/pictures"), "test")
    assert row == {"caption": ["a", "b"]}
