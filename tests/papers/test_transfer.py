"""Classification with frozen embeddings: protocols against a plain loop, features, odd and small sets."""

import numpy as np
import pytest
import transfer as task_transfer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from tasks import TASKS
from transfer import MRPC, NLI, SST2, classify

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluation.task import Source


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


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_class_that_training_lacks_is_one_line_with_its_place(tmp_path, split):
    root = tmp_path / "transfer" / "sst2"
    for name in ("train", "validation", "test"):
        write(root, name, (text(i, i % 2) for i in range(40)))
    write(root, split, (text(i, i % 3) for i in range(20)))
    with pytest.raises(InputError) as error:
        TASKS["sst2"].load(Source(tmp_path))
    assert str(error.value) == (
        f"{root}/{split}.jsonl:3: class 2 is not among those of transfer/sst2/train: 0, 1"
    )


def test_texts_without_an_agreed_label_are_left_out_by_all_their_names(tmp_path):
    rows = [{"premise": f"p {i}", "hypothesis": "h", "label": i % 3} for i in range(60)]
    unknown = [row | {"label": label} for row, label in zip(rows, (-1, -1.0, "-1", "-"), strict=False)]
    for split in ("train", "validation", "test"):
        write(tmp_path / "snli", split, rows + unknown)
    data = TASKS["snli"].load(Source(tmp_path))
    assert {name: len(part) for name, part in data.items()} == {"train": 60, "validation": 60, "test": 60}
    write(tmp_path / "snli", "test", unknown)
    with pytest.raises(InputError, match="snli/test: no row has a label"):
        TASKS["snli"].load(Source(tmp_path))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        # A fold of ten takes two of eleven, and nine are not divided into ten again.
        ([0] * 11 + [1] * 30, "2 classes, the rarest with 11 of 41 texts; .* at least 12 each"),
        ([1] * 30, "1 classes, the rarest with 30 of 30 texts; two classes of"),
    ],
)
def test_sets_that_are_too_small_are_one_line(tmp_path, labels, message):
    write(tmp_path / "transfer" / "mr", "all", (text(i, label) for i, label in enumerate(labels)))
    with pytest.raises(InputError, match=f"transfer/mr/all: .*{message}"):
        TASKS["mr"].load(Source(tmp_path))


@pytest.mark.parametrize(
    ("name", "split", "labels"),
    [
        ("mr", "all", [0] * 12 + [1] * 14),
        ("trec", "train", [0] * 12 + [1] * 14),
        ("sst2", "train", [0] * 12 + [1] * 12 + [2] * 12),
    ],
)
def test_the_smallest_sets_allowed_are_measured_without_a_warning(tmp_path, monkeypatch, name, split, labels):
    monkeypatch.setattr(task_transfer, "GRIDS", dict.fromkeys(task_transfer.GRIDS, (1.0,)))  # one C will do
    task = TASKS[name]
    root = tmp_path / task.data.folder
    write(root, split, (text(i, label) for i, label in enumerate(labels)))
    write(root, "test", (text(i, 1) for i in range(5)))
    outcome = task.measure(task.load(Source(tmp_path)), apart)
    assert 0 <= outcome.statistics["accuracy"].value() <= 1


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
    data = TASKS["mrpc-transfer"].load(Source(tmp_path))
    assert [first for (first, _), _ in data["test"]] == ["b", "c", "d", "a", "e f"]


def blobs(n, classes, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return (rng.normal(size=(n, 4)) + labels[:, None] * 0.7).astype(np.float32), labels


def slow_choice(x, y, grid, parts, seed):
    """Return a classifier of the first C whose mean accuracy over the parts is the best, and that C."""

    def classifier(c):
        return LogisticRegression(C=c, random_state=seed, max_iter=1000)

    means = [np.mean([classifier(c).fit(x[a], y[a]).score(x[b], y[b]) for a, b in parts]) for c in grid]
    return classifier(grid[int(np.argmax(means))])


def test_nested_folds_equal_a_plain_loop(monkeypatch):
    monkeypatch.setattr(task_transfer, "FOLDS", 3)
    (x, y), folds = blobs(61, 2, 0), StratifiedKFold(3, shuffle=True, random_state=1111)
    predicted = np.full(61, -1)
    for a, b in folds.split(x, y):
        final = slow_choice(x[a], y[a], [0.25, 0.5, 1, 2, 4, 8], list(folds.split(x[a], y[a])), 1111)
        predicted[b] = final.fit(x[a], y[a]).predict(x[b])
    assert classify("nested", (x, y), None, x, 1111).tolist() == predicted.tolist()


def test_folds_of_train_equal_a_plain_loop(monkeypatch):
    monkeypatch.setattr(task_transfer, "FOLDS", 3)
    (x, y), (test, _) = blobs(60, 3, 11), blobs(300, 3, 99)
    parts = list(StratifiedKFold(3, shuffle=True, random_state=5).split(x, y))
    final = slow_choice(x, y, [0.5, 1, 2, 4, 8, 16, 32], parts, 5)
    assert final.C != 0.5
    assert classify("folds", (x, y), None, test, 5).tolist() == final.fit(x, y).predict(test).tolist()


@pytest.mark.parametrize("given", [True, False])
def test_the_dev_split_or_a_tenth_chooses_c_and_is_not_learned_from(given):
    (x, y), dev, (test, _) = blobs(60, 2, 3), blobs(40, 2, 4), blobs(300, 2, 5)
    if given:
        found = classify("split", (x, y), dev, test, 1)
    else:
        found = classify("split", (x, y), None, test, 1)
        x, held_x, y, held_y = train_test_split(x, y, test_size=0.1, random_state=1, stratify=y)
        dev = held_x, held_y
    part = np.arange(len(y)), np.arange(len(y), len(y) + len(dev[1]))
    both = np.concatenate([x, dev[0]]), np.concatenate([y, dev[1]])
    final = slow_choice(*both, [0.25, 0.5, 1, 2, 4, 8], [part], 1)
    assert found.tolist() == final.fit(x, y).predict(test).tolist()


def numbers(items):
    rng = {item: np.random.default_rng(abs(len(str(item)) * 7 + sum(map(ord, str(item))))) for item in items}
    return np.array([rng[item].normal(size=3) for item in items], dtype=np.float32)


def test_features_of_pairs_are_difference_and_product(tmp_path, monkeypatch):
    seen = {}

    def note(protocol, train, dev, test, seed):
        seen["train"], seen["test"] = train, test
        return classify(protocol, train, dev, test, seed)

    for split in ("train", "test"):
        write(tmp_path / "mrpc", split, (pair(i, i % 2) for i in range(24)))
    data = MRPC.load(Source(tmp_path))
    monkeypatch.setattr(task_transfer, "classify", note)
    outcome = MRPC.measure(data, numbers)
    u, v = (numbers([item[side] for item, _ in data["train"]]) for side in (0, 1))
    assert np.allclose(seen["train"][0], np.c_[np.abs(u - v), u * v])
    assert seen["test"].shape == (24, 6)
    assert set(outcome.statistics) == {"accuracy"}


def test_inference_gives_the_encoder_both_sentences_as_one_input(tmp_path):
    seen = []
    for split in ("train", "validation"):
        write(tmp_path / "nli", split, (pair(i, i % 2) for i in range(24)))
    data = NLI.load(Source(tmp_path))
    assert "validation" not in data  # it is what is judged; C is chosen on a part of train

    def encode(items):
        seen.extend(items)
        return numbers(items)

    outcome = NLI.measure(data, encode)
    assert ("a 3", "b 3") in seen
    assert outcome.statistics["accuracy"].size == 24


def test_a_dev_split_is_read_where_there_is_one(tmp_path):
    for split in ("train", "test"):
        write(tmp_path / "transfer" / "sst2", split, (text(i, i % 2) for i in range(40)))
    assert list(SST2.load(Source(tmp_path))) == ["train", "test"]
    write(tmp_path / "transfer" / "sst2", "validation", (text(i, i % 2) for i in range(30)))
    assert len(SST2.load(Source(tmp_path))["validation"]) == 30
