"""Reading tasks' rows from a folder or the hub, and what is said when something is missing."""

import gzip

import pytest

from angle_data.errors import InputError
from angle_train.data.columns import class_in, number_in, pair_in, text_in
from angle_train.evaluation.task import HubData, TaskData
from angle_train.evaluation.tasks.pairs import QNLI, SICK_R
from angle_train.evaluation.tasks.sources import Source
from angle_train.evaluation.tasks.transfer import MR

DATA = TaskData("some/task")


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl", ".csv", ".parquet"])
def test_every_kind_of_file_is_found(tmp_path, suffix):
    folder = tmp_path / "some" / "task"
    folder.mkdir(parents=True)
    path = folder / f"test{suffix}"
    if suffix == ".parquet":
        from datasets import Dataset

        Dataset.from_list([{"text1": "a", "text2": "b"}]).to_parquet(path)
    elif suffix == ".csv":
        path.write_text("text1,text2\na,b\n")
    else:
        with (gzip.open if suffix.endswith("gz") else open)(path, "wt") as stream:
            stream.write('{"text1": "a", "text2": "b"}\n')
    source = Source(tmp_path)
    assert source.has(DATA, "test")
    assert not source.has(DATA, "train")
    ((place, row),) = source.rows(DATA, "test")
    assert place.startswith(str(path))
    assert pair_in(row, place) == ("a", "b")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pair_in({"a": 1}, "f:3"), "f:3: no text columns text1, text2 or sentence1, sentence2 or"),
        (lambda: pair_in({"text1": "x", "text2": None}, "f:3"), "f:3: text2 must be a text, got None"),
        (lambda: text_in({}, "text", "f:1"), "f:1: text must be a text, got None"),
        (lambda: number_in({"x": 1}, ("score", "label"), "f:2"), "f:2: no column score or label; found: x"),
        (lambda: number_in({"score": "high"}, ("score",), "f:2"), "score must be a number, got 'high'"),
        (lambda: number_in({"score": float("nan")}, ("score",), "f:2"), "score must be a number, got nan"),
    ],
)
def test_malformed_rows_are_named(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value)


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
    pairs = SICK_R.load(Source())
    assert (pairs.text1, pairs.text2, pairs.score.tolist()) == (["a", "a"], ["b", "b"], [3.5, 1.0])
    assert asked == [("RobZamp/sick", None, "test", "refs/convert/parquet")]


def test_qnli_counts_label_0_as_positive_and_tunes_on_train(hub):
    asked = hub([{"question": f"q{i}", "sentence": "s", "label": i % 2} for i in range(4)])
    data = QNLI.load(Source())
    assert data.test.score.tolist() == [1, 0, 1, 0]
    assert data.dev.name == "train"
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
    ((_, row),) = Source().rows(TaskData("x", HubData("some/pictures")), "test")
    assert row == {"caption": ["a", "b"]}
