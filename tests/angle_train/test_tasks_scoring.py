"""The tasks' own arithmetic: thresholds, classifiers, caption and duplicate search, against slow loops."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluate.similarity import unit_rows
from angle_train.evaluate.tasks import logistic
from angle_train.evaluate.tasks.captions import CaptionTask
from angle_train.evaluate.tasks.duplicates import DuplicateTask
from angle_train.evaluate.tasks.logistic import (
    Examples,
    cross_validated,
    nested_cross_validation,
    split_validated,
)
from angle_train.evaluate.tasks.neighbours import ranks_of, top_k
from angle_train.evaluate.tasks.pairs import BUG_DUPLICATES, PairTask, best_threshold
from angle_train.evaluate.tasks.registry import Settings
from angle_train.evaluate.tasks.sources import DataFolder, TaskData
from angle_train.evaluate.tasks.sts import STS12
from angle_train.evaluate.tasks.transfer import MRPC, NLI, SST2, TREC, TransferTask

SETTINGS = Settings()


def table(vectors):
    """An encoder that looks items up."""
    return lambda items: np.array([vectors[item] for item in items], dtype=np.float32)


def angle(degrees):
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def test_years_are_scored_over_all_subsets_at_once(tmp_path):
    rows = [("a", 0, 4, "x"), ("b", 60, 3, "x"), ("c", 30, 2, "y"), ("d", 90, 1, "y")]
    write_jsonl(
        tmp_path / "sts12" / "test.jsonl",
        ({"sentence1": "o", "sentence2": t, "score": s, "subset": x} for t, _, s, x in rows),
    )
    encode = table({"o": angle(0)} | {text: angle(degrees) for text, degrees, _, _ in rows})
    outcome = STS12.measure(STS12.load(DataFolder(tmp_path)), encode, SETTINGS)
    # Each subset alone is in perfect order; together ranks 4 2 3 1 against 4 3 2 1: 1 - 6·2/(4·15).
    assert outcome.statistics["spearman"].value() == pytest.approx(0.8)
    assert outcome.similarity == pytest.approx(np.cos(np.radians([0, 60, 30, 90])), abs=1e-6)


@pytest.mark.parametrize("measure", ["accuracy", "f1"])
@pytest.mark.parametrize("seed", range(6))
def test_no_threshold_does_better_on_dev_than_the_one_found(measure, seed):
    rng = np.random.default_rng(seed)
    gold, similarity = rng.random(30) < 0.5, rng.integers(0, 8, size=30) / 10

    def quality(threshold):
        called = similarity > threshold
        hits = (called & gold).sum()
        return (called == gold).mean() if measure == "accuracy" else 2 * hits / (called.sum() + gold.sum())

    found = best_threshold(gold, similarity, measure)
    assert quality(found) == max(quality(t) for t in np.arange(-1.05, 2, 0.1))
    assert not np.isclose(similarity, found).any()  # halfway between, so rounding does not matter


def test_thresholds_come_from_dev_and_are_applied_to_test(tmp_path):
    def write(split, rows):
        write_jsonl(
            tmp_path / "bug-duplicates" / f"{split}.jsonl",
            ({"text1": "o", "text2": f"{d}", "label": label} for d, label in rows),
        )

    write("train", [(0, 1), (10, 1), (50, 0), (60, 0)])  # best threshold between cos 10° and cos 50°
    write("validation", [(20, 1), (80, 1), (25, 0), (85, 0)])
    encode = table({"o": angle(0)} | {f"{d}": angle(d) for d in range(91)})
    outcome = BUG_DUPLICATES.measure(BUG_DUPLICATES.load(DataFolder(tmp_path)), encode, SETTINGS)
    between = (np.cos(np.radians(10)) + np.cos(np.radians(50))) / 2
    assert outcome.details["accuracy_threshold"] == pytest.approx(between, abs=1e-6)
    assert outcome.details["threshold_found_on"] == "train (4 pairs)"
    # Above 0.81 are 20° and 25°: one hit, one false alarm; 80° is missed.
    assert outcome.statistics["accuracy"].value() == pytest.approx(0.5)
    assert outcome.statistics["f1"].value() == pytest.approx(0.5)
    assert outcome.statistics["auc"].value() == pytest.approx(0.75)


def test_without_a_dev_split_no_threshold_is_made_up(tmp_path):
    task = PairTask(TaskData("x"), None)
    rows = [{"text1": "a", "text2": "b", "label": 1}, {"text1": "a", "text2": "c", "label": 0}]
    write_jsonl(tmp_path / "x" / "test.jsonl", rows)
    outcome = task.measure(
        task.load(DataFolder(tmp_path)), table({t: angle(i) for i, t in enumerate("abc")}), SETTINGS
    )
    assert set(outcome.statistics) == {"spearman", "auc", "average_precision"}
    write_jsonl(tmp_path / "x" / "test.jsonl", rows[:1] * 3)
    with pytest.raises(InputError, match="x/test: all 3 labels say the same"):
        task.load(DataFolder(tmp_path))


def blobs(n, classes, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return Examples((rng.normal(size=(n, 4)) + labels[:, None] * 0.7).astype(np.float32), labels)


def slow_choice(train, grid, parts, seed):
    def accuracy(c):
        return np.mean(
            [
                LogisticRegression(C=c, random_state=seed, max_iter=1000)
                .fit(train.features[a], train.labels[a])
                .score(train.features[b], train.labels[b])
                for a, b in parts
            ]
        )

    scores = [round(100 * accuracy(c), 2) for c in grid]
    best = grid[int(np.argmax(scores))]
    return LogisticRegression(C=best, random_state=seed, max_iter=1000).fit(train.features, train.labels)


def test_nested_folds_equal_a_plain_loop():
    data, ten = blobs(61, 2, 0), StratifiedKFold(3, shuffle=True, random_state=1111)
    accuracies, predicted = [], np.full(61, -1)
    for a, b in ten.split(data.features, data.labels):
        train = data.take(a)
        parts = list(ten.split(train.features, train.labels))
        final = slow_choice(train, [0.25, 0.5, 1, 2, 4, 8], parts, 1111)
        predicted[b] = final.predict(data.features[b])
        accuracies.append((predicted[b] == data.labels[b]).mean())
    found = nested_cross_validation(data, seed=1111, folds=3)
    assert found.predicted.tolist() == predicted.tolist()
    correct = (found.predicted == data.labels).astype(float)
    assert np.average(correct, weights=found.weights) == pytest.approx(np.mean(accuracies))
    assert len(found.regularisation) == 3


def test_folds_of_train_equal_a_plain_loop():
    train, test = blobs(60, 3, 1), blobs(30, 3, 2)
    parts = list(StratifiedKFold(3, shuffle=True, random_state=5).split(train.features, train.labels))
    final = slow_choice(train, [0.5, 1, 2, 4, 8, 16, 32], parts, 5)
    found = cross_validated(train, test.features, seed=5, folds=3)
    assert found.predicted.tolist() == final.predict(test.features).tolist()
    assert found.regularisation == (final.C,)


def test_the_dev_split_chooses_c_and_is_not_learned_from():
    train, dev, test = blobs(40, 2, 3), blobs(40, 2, 4), blobs(40, 2, 5)
    scores = {
        c: LogisticRegression(C=c).fit(train.features, train.labels).score(dev.features, dev.labels)
        for c in (0.25, 0.5, 1, 2, 4, 8)
    }
    best = max(scores, key=lambda c: (round(scores[c], 4), -c))
    found = split_validated(train, dev, test.features, seed=1)
    assert found.regularisation == (best,)
    assert found.dev_accuracy == pytest.approx(scores[best])
    expected = LogisticRegression(C=best).fit(train.features, train.labels).predict(test.features)
    assert found.predicted.tolist() == expected.tolist()


def test_grids_are_sentevals():
    assert logistic._NESTED_GRID == (0.25, 0.5, 1, 2, 4, 8)
    assert logistic._CROSS_GRID == (0.5, 1, 2, 4, 8, 16, 32)
    assert logistic.FOLDS == 10
    assert SETTINGS.seed == 1111


def write_classes(folder, split, n=24, classes=2, **columns):
    write_jsonl(
        folder / f"{split}.jsonl",
        (
            {"text": "w " * (i % 5) + f"t{i}", "label": i % classes}
            | {k: v.format(i) for k, v in columns.items()}
            for i in range(n)
        ),
    )


def numbers(items):
    rng = {item: np.random.default_rng(abs(len(str(item)) * 7 + sum(map(ord, str(item))))) for item in items}
    return np.array([rng[item].normal(size=3) for item in items], dtype=np.float32)


def test_texts_are_put_into_sentevals_order_before_the_folds(tmp_path):
    write_classes(tmp_path / "transfer" / "trec", "train")
    write_classes(tmp_path / "transfer" / "trec", "test")
    data = TREC.load(DataFolder(tmp_path))
    keys = [(len(t.split()), label) for t, label in zip(data.train.items, data.train.labels, strict=True)]
    assert keys == sorted(keys)


def test_features_of_pairs_are_difference_and_product(tmp_path):
    seen = {}

    def fit(train, test, seed):
        seen["train"], seen["test"] = train, test
        return cross_validated(train, test, seed, folds=2)

    write_classes(tmp_path / "mrpc", "train", sentence1="a{}", sentence2="b{}")
    write_classes(tmp_path / "mrpc", "test", sentence1="c{}", sentence2="d{}")
    data = MRPC.load(DataFolder(tmp_path))
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr("angle_train.evaluate.tasks.transfer.cross_validated", fit)
        outcome = MRPC.measure(data, numbers, SETTINGS)
    u, v = numbers([a for a, _ in data.train.items]), numbers([b for _, b in data.train.items])
    assert np.allclose(seen["train"].features, np.c_[np.abs(u - v), u * v])
    assert seen["test"].shape == (24, 6)
    assert set(outcome.statistics) == {"accuracy", "f1"}


def test_inference_gives_the_encoder_both_sentences_as_one_input(tmp_path):
    seen = []
    for split in ("train", "validation"):
        write_classes(tmp_path / "nli", split, premise="p{}", hypothesis="h{}")
    data = NLI.load(DataFolder(tmp_path))
    assert data.validation is None  # it is what is judged; C is chosen on a part of train

    def encode(items):
        seen.extend(items)
        return numbers(items)

    outcome = NLI.measure(data, encode, SETTINGS)
    assert ("p3", "h3") in seen
    assert outcome.details["train"] == 24


def test_a_task_without_dev_split_holds_out_a_tenth(tmp_path, monkeypatch):
    seen = {}

    def fit(train, dev, test, seed):
        seen["sizes"] = len(train.labels), len(dev.labels)
        return split_validated(train, dev, test, seed)

    monkeypatch.setattr("angle_train.evaluate.tasks.transfer.split_validated", fit)
    for split in ("train", "test"):
        write_classes(tmp_path / "transfer" / "sst2", split, n=40)
    SST2.measure(SST2.load(DataFolder(tmp_path)), numbers, SETTINGS)
    assert seen["sizes"] == (36, 4)
    write_classes(tmp_path / "transfer" / "sst2", "validation", n=30)
    SST2.measure(SST2.load(DataFolder(tmp_path)), numbers, SETTINGS)
    assert seen["sizes"] == (40, 30)


def test_rows_without_an_agreed_label_are_left_out_and_missing_ones_refused(tmp_path):
    task = TransferTask(TaskData("x"), None, "split")
    rows = [{"text": "a", "label": 0}, {"text": "b", "label": 1}, {"text": "c", "label": -1}]
    for split in ("train", "validation", "test"):
        write_jsonl(tmp_path / "x" / f"{split}.jsonl", rows)
    assert task.load(DataFolder(tmp_path)).train.items == ["a", "b"]
    write_jsonl(tmp_path / "x" / "test.jsonl", [*rows, {"text": "d"}])
    with pytest.raises(InputError, match=r"test.jsonl:4: label must be a class, got None"):
        task.load(DataFolder(tmp_path))
    write_jsonl(tmp_path / "transfer" / "trec" / "train.jsonl", rows)
    with pytest.raises(InputError, match="2 classes, the rarest with 1 of 2 texts; ten folds need"):
        TREC.load(DataFolder(tmp_path))


def circle(degrees):
    return unit_rows(np.array([angle(d) for d in degrees]))


@pytest.mark.parametrize("block", [10_000_000, 7])
def test_nearest_in_order_and_equal_ones_by_position(monkeypatch, block):
    monkeypatch.setattr("angle_train.evaluate.tasks.neighbours._BLOCK_CELLS", block)
    documents = circle([50, 10, 10, 0, 90])
    found = top_k(circle([0, 88]), documents, 3, use_faiss=False)
    assert found.tolist() == [[3, 1, 2], [4, 0, 1]]


def test_faiss_finds_the_same():
    pytest.importorskip("faiss")
    unit = unit_rows(np.random.default_rng(0).normal(size=(500, 16)))
    assert np.array_equal(
        top_k(unit[:50], unit, 5, use_faiss=True), top_k(unit[:50], unit, 5, use_faiss=False)
    )


@pytest.mark.parametrize("block", [10_000_000, 9])
def test_ranks_leave_out_the_query_and_count_ties_against_the_model(monkeypatch, block):
    monkeypatch.setattr("angle_train.evaluate.tasks.neighbours._BLOCK_CELLS", block)
    # From 0°: 5° (rank 1), 10° twice (one relevant: last of the two, rank 3), 40° (4), 80° (5).
    unit = circle([0, 10, 5, 10, 80, 40])
    queries = np.array([0, 4])
    relevant = [np.array([1, 4]), np.array([5, 0])]
    assert [r.tolist() for r in ranks_of(relevant, queries, unit)] == [[3, 5], [1, 5]]
    assert ranks_of([np.array([1])], np.array([0]), circle([0, 120, 100]))[0].tolist() == [2]  # far below 0
    same = np.ones((4, 2)) / np.sqrt(2)
    assert ranks_of([np.array([1, 2])], np.array([0]), same)[0].tolist() == [2, 3]


def captions(tmp_path, images):
    write_jsonl(tmp_path / "flickr30k" / "test.jsonl", ({"captions": texts} for texts in images))
    task = CaptionTask(TaskData("flickr30k"), None)
    return task, task.load(DataFolder(tmp_path))


@pytest.mark.parametrize(
    ("within", "protocol"),
    [(True, "top 3, the query among the captions to be found"), (False, "top 2, the query not among")],
)
def test_strict_accuracy_wants_all_captions_of_the_image_and_no_other(tmp_path, within, protocol):
    degrees = {"a1": 0, "a2": 1, "a3": 2, "b1": 40, "b2": 41, "b3": 80, "c1": 78, "c2": 120, "c3": 121}
    task, data = captions(tmp_path, [["a1", "a2", "a3"], ["b1", "b2", "b3"], ["c1", "c2", "c3"]])
    outcome = task.measure(
        data, table({t: angle(d) for t, d in degrees.items()}), Settings(query_in_index=within)
    )
    # a finds its own. b has b2 beside it, but a3 (38° away) comes before b3 (40°). c has b3 beside it.
    assert outcome.statistics["strict_accuracy"].value() == pytest.approx(1 / 3)
    assert outcome.details["protocol"].startswith(protocol)
    own = [3, 2, 1] if within else [2, 1, 0]
    assert outcome.statistics["recall"].value() == pytest.approx(np.mean(own) / (3 if within else 2))


def test_captions_that_read_alike_are_the_same_caption(tmp_path):
    task, data = captions(tmp_path, [["x", "dog"], ["y", "dog"]])
    encode = table({"x": angle(0), "y": angle(90), "dog": angle(30)})
    assert task.measure(data, encode, SETTINGS).statistics["strict_accuracy"].value() == 1
    with pytest.raises(InputError, match=r"images have \[1, 2\] captions"):
        captions(tmp_path, [["x", "y"], ["z"]])
    with pytest.raises(InputError, match="captions must be a list of texts, got 'x'"):
        captions(tmp_path, ["x"])


def test_duplicates_are_searched_among_all_reports(tmp_path):
    degrees = [0, 5, 10, 60, 65]
    clusters = ["a", "b", "a", "c", "a"]
    write_jsonl(
        tmp_path / "bugs" / "test.jsonl",
        ({"title": f"{d}", "body": "", "cluster": c} for d, c in zip(degrees, clusters, strict=True)),
    )
    task = DuplicateTask(TaskData("bugs"), None, "test")
    data = task.load(DataFolder(tmp_path))
    assert data.queries.tolist() == [0, 2, 4]
    outcome = task.measure(data, table({f"{d}\n": angle(d) for d in degrees}), SETTINGS)
    # From 0°: 10° at rank 2, 65° at 4. From 10°: 0° at 2, 65° at 4. From 65°: 10° at 2, 0° at 4.
    assert outcome.statistics["map"].value() == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert outcome.statistics["mrr"].value() == pytest.approx(1 / 2)
    assert outcome.statistics["recall@1"].value() == 0
    assert outcome.statistics["recall@5"].value() == 1
    write_jsonl(tmp_path / "bugs" / "test.jsonl", [{"text": "x", "cluster": 1}, {"text": "y", "cluster": 2}])
    with pytest.raises(InputError, match="no two reports are in one cluster"):
        task.load(DataFolder(tmp_path))
    write_jsonl(tmp_path / "bugs" / "test.jsonl", [{"text": "x"}])
    with pytest.raises(InputError, match="no cluster; a report without duplicates has one of its own"):
        task.load(DataFolder(tmp_path))
