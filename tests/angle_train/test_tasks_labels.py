"""Labels of classes and of binary pairs however a file writes them, and sets too small to measure on."""

import numpy as np
import pytest

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluate.tasks import logistic
from angle_train.evaluate.tasks import transfer as task_transfer
from angle_train.evaluate.tasks.logistic import Classified
from angle_train.evaluate.tasks.registry import Settings, load_task
from angle_train.evaluate.tasks.sources import DataFolder, class_in

SETTINGS = Settings()


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
    assert class_in({"label": written}, ("label",), "f:1") == name


@pytest.mark.parametrize("written", [None, "", "  ", 0.5, float("nan"), [1], {"a": 1}])
def test_what_is_no_class_is_refused_with_its_place(written):
    with pytest.raises(InputError, match="f:7: label must be a class, got "):
        class_in({"label": written}, ("label",), "f:7")


def test_the_first_column_with_a_value_counts():
    assert class_in({"label": None, "coarse_label": 3}, ("label", "coarse_label"), "f:1") == "3"
    assert class_in({"coarse_label": 3, "label": 2}, ("label", "coarse_label"), "f:1") == "2"
    with pytest.raises(InputError, match="f:1: label must be a class, got None"):
        class_in({"text": "x"}, ("label", "coarse_label"), "f:1")


def pair(number, label):
    return {"text1": f"a {number}", "text2": f"b {number}", "label": label}


def text(number, label):
    return {"text": f"t {number}", "label": label}


def apart(items):
    """Embeddings that tell the even numbers at the end of the first text from the odd ones."""
    odd = [int((item if isinstance(item, str) else item[0]).split()[1]) % 2 for item in items]
    noise = np.random.default_rng(0).normal(size=(len(items), 3))
    return np.c_[np.array(odd) * 8 - 4, noise].astype(np.float32)


def write(root, split, rows):
    write_jsonl(root / f"{split}.jsonl", rows)


@pytest.mark.parametrize("kind", [float, bool, str, lambda label: f"{label}.0"])
def test_training_and_test_may_write_classes_in_other_ways(tmp_path, kind):
    root = tmp_path / "transfer" / "sst2"
    write(root, "train", (text(i, i % 2) for i in range(40)))
    write(root, "validation", (text(i, str(i % 2)) for i in range(20)))
    write(root, "test", (text(i, kind(i % 2)) for i in range(20)))
    task = load_task("sst2")
    outcome = task.measure(task.load(DataFolder(tmp_path)), apart, SETTINGS)
    assert outcome.statistics["accuracy"].value() == 1
    assert outcome.details["dev_accuracy"] == 1


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_class_that_training_lacks_is_one_line_with_its_place(tmp_path, split):
    root = tmp_path / "transfer" / "sst2"
    for name in ("train", "validation", "test"):
        write(root, name, (text(i, i % 2) for i in range(40)))
    write(root, split, (text(i, i % 3) for i in range(20)))
    with pytest.raises(InputError) as error:
        load_task("sst2").load(DataFolder(tmp_path))
    assert str(error.value) == (
        f"{root}/{split}.jsonl:3: class 2 is not among those of transfer/sst2/train: 0, 1"
    )


def test_texts_without_an_agreed_label_are_left_out_by_all_their_names(tmp_path):
    rows = [{"premise": f"p {i}", "hypothesis": "h", "label": i % 3} for i in range(60)]
    unknown = [row | {"label": label} for row, label in zip(rows, (-1, -1.0, "-1", "-"), strict=False)]
    for split in ("train", "validation", "test"):
        write(tmp_path / "snli", split, rows + unknown)
    data = load_task("snli").load(DataFolder(tmp_path))
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [60, 60, 60]
    write(tmp_path / "snli", "test", unknown)
    with pytest.raises(InputError, match="snli/test: no row has a label"):
        load_task("snli").load(DataFolder(tmp_path))


@pytest.mark.parametrize(
    ("name", "split", "labels", "message"),
    [
        # A fold of ten takes two of eleven, and nine are not divided into ten again.
        ("mr", "all", [0] * 11 + [1] * 30, "2 classes, the rarest with 11 of 41 texts; ten folds need two"),
        (
            "trec",
            "train",
            [0] * 9 + [1] * 30,
            "the rarest with 9 of 39 texts; .* classes of at least 10 each",
        ),
        ("trec", "train", [1] * 30, "1 classes, the rarest with 30 of 30 texts; ten folds need two classes"),
        ("sst2", "train", [0] + [1] * 39, "2 classes, the rarest with 1 of 40 texts; without a validation"),
        ("sst2", "train", [0, 1] * 3, "2 classes, the rarest with 3 of 6 texts; without a validation split"),
        ("sst2", "train", [0, 1, 2] * 6, "3 classes, the rarest with 6 of 18 texts; .* a tenth is held out"),
    ],
)
def test_sets_that_are_too_small_are_one_line(tmp_path, name, split, labels, message):
    task = load_task(name)
    root = tmp_path / task.data.folder
    write(root, split, (text(i, label) for i, label in enumerate(labels)))
    write(root, "test", (text(i, 1) for i in range(5)))
    with pytest.raises(InputError, match=f"{task.data.folder}/{split}: .*{message}"):
        task.load(DataFolder(tmp_path))


@pytest.mark.parametrize(
    ("name", "split", "labels"),
    [
        ("mr", "all", [0] * 12 + [1] * 14),
        ("trec", "train", [0] * 10 + [1] * 14),
        ("sst2", "train", [0] * 2 + [1] * 9),
        ("sst2", "train", [0] * 7 + [1] * 7 + [2] * 7),
    ],
)
def test_the_smallest_sets_allowed_are_measured_without_a_warning(tmp_path, monkeypatch, name, split, labels):
    for grid in ("_NESTED_GRID", "_CROSS_GRID"):  # one C will do
        monkeypatch.setattr(logistic, grid, (1.0,))
    task = load_task(name)
    root = tmp_path / task.data.folder
    write(root, split, (text(i, label) for i, label in enumerate(labels)))
    write(root, "test", (text(i, 1) for i in range(5)))
    outcome = task.measure(task.load(DataFolder(tmp_path)), apart, SETTINGS)
    assert 0 <= outcome.statistics["accuracy"].value() <= 1


def test_with_a_validation_split_a_class_of_one_text_will_do(tmp_path):
    root = tmp_path / "transfer" / "sst2"
    for split in ("validation", "test"):
        write(root, split, (text(i, i % 2) for i in range(10)))
    write(root, "train", [text(0, 0), *(text(2 * i + 1, 1) for i in range(10))])
    task = load_task("sst2")
    assert task.measure(task.load(DataFolder(tmp_path)), apart, SETTINGS).statistics["accuracy"].value() == 1
    write(root, "train", (text(i, 1) for i in range(10)))
    with pytest.raises(InputError, match="1 classes, the rarest with 10 of 10 texts; two classes are needed"):
        task.load(DataFolder(tmp_path))


def test_f1_is_of_class_1_and_needs_one(tmp_path, monkeypatch):
    def predict(train, test, seed):
        predicted = np.array([1, 1, 0, 0, 0])
        return Classified(predicted, np.ones(5), (1.0,), 0.5)

    monkeypatch.setattr(task_transfer, "cross_validated", predict)
    task = load_task("mrpc-transfer")
    write(tmp_path / "mrpc", "train", (pair(i, float(i % 2)) for i in range(40)))
    write(tmp_path / "mrpc", "test", (pair(i, label) for i, label in enumerate([1, 0, 0, 0, 1])))
    data = task.load(DataFolder(tmp_path))
    # In the order of words and labels: gold 0 0 0 1 1 against 1 1 0 0 0. No hit of class 1; one of class 0.
    assert data.test.labels == ["0", "0", "0", "1", "1"]
    outcome = task.measure(data, apart, SETTINGS)
    assert outcome.statistics["f1"].value() == 0
    assert outcome.statistics["accuracy"].value() == pytest.approx(1 / 5)
    write(tmp_path / "mrpc", "train", (pair(i, i % 2 + 2) for i in range(40)))
    with pytest.raises(InputError, match="mrpc/train: no text of class 1, which F1 is about"):
        task.load(DataFolder(tmp_path))


def test_pairs_are_ordered_by_the_length_of_both_texts(tmp_path):
    rows = [
        {"text1": "a", "text2": "x y z", "label": 0},
        {"text1": "b", "text2": "x", "label": 1},
        {"text1": "c", "text2": "x y", "label": 0},
        {"text1": "d", "text2": "x y", "label": 1},
        {"text1": "e f", "text2": "", "label": 0},
    ]
    write(tmp_path / "mrpc", "train", (pair(i, i % 2) for i in range(40)))
    write(tmp_path / "mrpc", "test", rows)
    data = load_task("mrpc-transfer").load(DataFolder(tmp_path))
    assert [first for first, _ in data.test.items] == ["b", "c", "d", "a", "e f"]


@pytest.mark.parametrize("seed", range(4))
def test_the_held_out_tenth_has_its_share_of_each_class(seed):
    labels = np.array([0] * 30 + [1] * 10)
    train = task_transfer.Examples(np.arange(40, dtype=np.float32)[:, None], labels)
    kept, held = task_transfer._hold_out(train, seed)
    assert np.bincount(held.labels).tolist() == [3, 1]
    assert sorted([*kept.features[:, 0], *held.features[:, 0]]) == list(range(40))


@pytest.mark.parametrize("label", [-1, 3, "maybe"])
@pytest.mark.parametrize("name", ["mrpc", "gis", "qnli"])
def test_binary_pairs_have_0_and_1_only(tmp_path, name, label):
    task = load_task(name)
    rows = [pair(0, 0), pair(1, 1), pair(2, label)]
    write(tmp_path / task.data.folder, task.split, rows)
    place = f"{tmp_path}/{task.data.folder}/{task.split}.jsonl:3"
    with pytest.raises(InputError, match=f"{place}: label must be 0 or 1, got {label}; leave out"):
        task.load(DataFolder(tmp_path))


def test_binary_pairs_may_write_them_in_any_way(tmp_path):
    written = [1, 0, 1.0, 0.0, True, False, "1", "0.0"]
    write(tmp_path / "mrpc", "test", (pair(i, label) for i, label in enumerate(written)))
    assert load_task("mrpc").load(DataFolder(tmp_path)).test.gold.tolist() == [1, 0] * 4
    write(
        tmp_path / "mrpc", "test", ({"question1": "a", "question2": "b", "is_duplicate": i} for i in (0, 1))
    )
    assert load_task("mrpc").load(DataFolder(tmp_path)).test.gold.tolist() == [0, 1]


@pytest.mark.parametrize("scores", [[2.5], [3, 3, 3]])
def test_scores_that_say_the_same_are_refused(tmp_path, scores):
    rows = [{"text1": "a", "text2": f"b {i}", "score": score} for i, score in enumerate(scores)]
    write(tmp_path / "stsb", "test", rows)
    message = f"stsb/test: all {len(scores)} scores are {scores[0]}; a correlation needs different ones"
    with pytest.raises(InputError, match=message):
        load_task("stsb").load(DataFolder(tmp_path))
