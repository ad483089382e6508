"""The papers' pairs of two kinds, captions and classes, on sets counted by hand."""

import captions as captions_task
import numpy as np
import pair_sets
import pytest
from captions import CaptionTask, top_k
from classes import class_in
from pair_sets import BUG_DUPLICATES, QNLI
from tasks import TASKS
from train_runs import direction, table
from transfer import MR

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluation.similarity import unit_rows
from angle_train.evaluation.task import Source, TaskData


def circle(degrees):
    return unit_rows(np.array([direction(d) for d in degrees]))


def write_at(path, pairs):
    """Labelled pairs of directions that are so many degrees apart."""
    write_jsonl(path, ({"text1": "o", "text2": f"{degrees}", "label": label} for degrees, label in pairs))


def test_thresholds_come_from_dev_and_are_applied_to_test(tmp_path):
    folder = tmp_path / "bug-duplicates"
    # The best threshold is between cos 10° and cos 50°.
    write_at(folder / "train.jsonl", [(0, 1), (10, 1), (50, 0), (60, 0)])
    write_at(folder / "validation.jsonl", [(20, 1), (80, 1), (25, 0), (85, 0)])
    encode = table({"o": 0} | {f"{d}": d for d in range(91)})
    outcome = BUG_DUPLICATES.measure(BUG_DUPLICATES.load(Source(tmp_path)), encode)
    # Above 0.81 are 20° and 25°: one hit, one false alarm; 80° is missed.
    assert outcome.statistics["accuracy"].value() == pytest.approx(0.5)
    assert outcome.statistics["auc"].value() == pytest.approx(0.75)


def test_thresholds_are_found_on_validation_where_there_is_one(tmp_path):
    for split in ("train", "validation", "test"):
        write_at(tmp_path / "gis" / f"{split}.jsonl", [(5, 1), (40, 0)])
    assert TASKS["gis"].load(Source(tmp_path))[1].name == "validation"
    (tmp_path / "gis" / "validation.jsonl").unlink()
    assert TASKS["gis"].load(Source(tmp_path))[1].name == "train"


def test_a_sample_of_many_dev_pairs_keeps_texts_and_labels_together(tmp_path, monkeypatch):
    monkeypatch.setattr(pair_sets, "MOST_DEV_PAIRS", 20)
    rows = [{"text1": f"a {i}", "text2": f"b {i}", "label": i * i % 3 % 2} for i in range(60)]
    write_jsonl(tmp_path / "qqp" / "train.jsonl", rows)
    write_jsonl(tmp_path / "qqp" / "validation.jsonl", rows)
    data = TASKS["qqp"].load(Source(tmp_path))
    assert (len(data[0].score), len(data[1].score)) == (60, 20)
    numbers = [int(text.split()[1]) for text in data[1].text1]
    assert data[1].text2 == [f"b {i}" for i in numbers]
    assert data[1].score.tolist() == [i * i % 3 % 2 for i in numbers]
    assert len(set(numbers)) == 20
    assert numbers != list(range(20))
    assert TASKS["qqp"].load(Source(tmp_path))[1].text1 == data[1].text1


def pair(number, label):
    return {"text1": f"a {number}", "text2": f"b {number}", "label": label}


@pytest.mark.parametrize(("name", "label"), [("mrpc", -1), ("gis", 3), ("qnli", "maybe")])
def test_binary_pairs_have_0_and_1_only(tmp_path, name, label):
    task = TASKS[name]
    rows = [pair(0, 0), pair(1, 1), pair(2, label)]
    write_jsonl(tmp_path / task.data.folder / f"{task.split}.jsonl", rows)
    place = f"{tmp_path}/{task.data.folder}/{task.split}.jsonl:3"
    with pytest.raises(InputError, match=f"{place}: label must be 0 or 1, got {label}; leave out"):
        task.load(Source(tmp_path))


def test_binary_pairs_may_write_them_in_any_way(tmp_path):
    written = [1, 0, 1.0, 0.0, True, False, "1", "0.0"]
    write_jsonl(tmp_path / "mrpc" / "test.jsonl", (pair(i, label) for i, label in enumerate(written)))
    assert TASKS["mrpc"].load(Source(tmp_path))[0].score.tolist() == [1, 0] * 4
    rows = ({"question1": "a", "question2": "b", "is_duplicate": i} for i in (0, 1))
    write_jsonl(tmp_path / "mrpc" / "test.jsonl", rows)
    assert TASKS["mrpc"].load(Source(tmp_path))[0].score.tolist() == [0, 1]


@pytest.mark.parametrize("block", [10_000_000, 7])
def test_nearest_in_order_and_equal_ones_by_position(monkeypatch, block):
    monkeypatch.setattr("angle_train.evaluation.similarity._BLOCK_CELLS", block)
    documents = circle([50, 10, 10, 0, 90])
    found = top_k(circle([0, 88]), documents, 3)
    assert found.tolist() == [[3, 1, 2], [4, 0, 1]]


def captions(tmp_path, images):
    write_jsonl(tmp_path / "flickr30k" / "test.jsonl", ({"captions": texts} for texts in images))
    task = CaptionTask(TaskData("flickr30k"), None)
    return task, task.load(Source(tmp_path))


def test_strict_accuracy_wants_all_captions_of_the_image_and_no_other(tmp_path):
    degrees = {"a1": 0, "a2": 1, "a3": 2, "b1": 40, "b2": 41, "b3": 80, "c1": 78, "c2": 120, "c3": 121}
    task, data = captions(tmp_path, [["a1", "a2", "a3"], ["b1", "b2", "b3"], ["c1", "c2", "c3"]])
    outcome = task.measure(data, table(degrees))
    # a finds its own. b has b2 beside it, but a3 (38° away) comes before b3 (40°). c has b3 beside it.
    assert outcome.statistics["strict_accuracy"].value() == pytest.approx(1 / 3)
    assert outcome.statistics["strict_accuracy_without_query"].value() == pytest.approx(1 / 3)


def test_captions_that_are_none_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"images have \[1, 2\] captions"):
        captions(tmp_path, [["x", "y"], ["z"]])
    with pytest.raises(InputError, match="captions must be a list of texts, got 'x'"):
        captions(tmp_path, ["x"])


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
    ((_, row),) = captions_task._rows(Source(), TaskData("x", "some/pictures"), "test")
    assert row == {"caption": ["a", "b"]}
