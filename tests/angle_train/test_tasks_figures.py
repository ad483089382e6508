"""What tasks count, on sets small enough to count by hand: recall, strict accuracy, thresholds, ties."""

from types import SimpleNamespace

import numpy as np
import pytest

from angle_data.jsonl import write_jsonl
from angle_train.evaluate import similarity as sts
from angle_train.evaluate.similarity import cosine_rows, embed_pairs, unit_rows
from angle_train.evaluate.tasks import duplicates as task_duplicates
from angle_train.evaluate.tasks import logistic, neighbours
from angle_train.evaluate.tasks import pairs as task_pairs
from angle_train.evaluate.tasks.captions import CaptionTask
from angle_train.evaluate.tasks.duplicates import DuplicateTask
from angle_train.evaluate.tasks.neighbours import ranks_of, top_k
from angle_train.evaluate.tasks.registry import TASKS, Settings, load_task
from angle_train.evaluate.tasks.sources import DataFolder, TaskData
from angle_train.evaluate.views import sample

SETTINGS = Settings()
RNG = np.random.default_rng(0)


def angle(degrees):
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def table(degrees):
    """An encoder that looks up the direction of every text."""
    return lambda items: np.array([angle(degrees[item]) for item in items], dtype=np.float32)


def test_sets_have_the_published_sizes():
    # SemEval 2012-2016, STS Benchmark, SICK; GIS; GLUE; SentEval's transfer tasks; Karpathy's flickr30k.
    sizes = {name: size for name in TASKS if (size := load_task(name).standard_size) is not None}
    years = dict(sts12=3108, sts13=1500, sts14=3750, sts15=3000, sts16=1186)
    pairs = dict(gis=1548, mrpc=1725, qqp=40_430, qnli=5463, snli=9824, mnli=19_647)
    transfer = dict(mr=10_662, cr=3775, subj=10_000, mpqa=10_606, sst2=1821, trec=500)
    assert sizes == years | pairs | transfer | {
        "stsb": 1379,
        "sick-r": 4927,
        "mrpc-transfer": 1725,
        "flickr30k": 1000,
    }


@pytest.mark.parametrize("column", ["score", "relatedness_score", "similarity_score", "label"])
def test_gold_scores_are_found_by_all_their_names(tmp_path, column):
    rows = [{"sentence1": "a", "sentence2": f"b {i}", column: i / 2} for i in range(3)]
    write_jsonl(tmp_path / "sts12" / "test.jsonl", rows)
    assert load_task("sts12").load(DataFolder(tmp_path)).gold.tolist() == [0, 0.5, 1]


def pool(tmp_path, clusters):
    rows = ({"text": f"t{i}", "cluster": cluster} for i, cluster in enumerate(clusters))
    write_jsonl(tmp_path / "bugs" / "test.jsonl", rows)
    task = DuplicateTask(TaskData("bugs"), None, "test")
    return task, task.load(DataFolder(tmp_path))


def test_recall_counts_what_stands_at_the_depth_itself(tmp_path, monkeypatch):
    ranks = [[1], [2], [5], [6], [10, 11], [100, 101]]
    monkeypatch.setattr(task_duplicates, "ranks_of", lambda *given: [np.array(rank) for rank in ranks])
    task, data = pool(tmp_path, "aabbcc")
    outcome = task.measure(data, table({f"t{i}": i for i in range(6)}), SETTINGS)
    found = {name: statistic.value() for name, statistic in outcome.statistics.items()}
    assert found == {
        "map": pytest.approx(
            (1 + 1 / 2 + 1 / 5 + 1 / 6 + (1 / 10 + 2 / 11) / 2 + (1 / 100 + 2 / 101) / 2) / 6
        ),
        "mrr": pytest.approx((1 + 1 / 2 + 1 / 5 + 1 / 6 + 1 / 10 + 1 / 100) / 6),
        "recall@1": pytest.approx(1 / 6),
        "recall@5": pytest.approx(3 / 6),
        "recall@10": pytest.approx(4.5 / 6),
        "recall@100": pytest.approx(5.5 / 6),
    }


def test_what_is_drawn_for_intervals_of_duplicate_search_are_clusters(tmp_path, monkeypatch):
    # Cluster b has three queries that find nothing at rank 1, a has two that do.
    ranks = {0: [1], 2: [2, 3], 3: [3, 4], 4: [2, 3], 5: [1]}
    monkeypatch.setattr(
        task_duplicates, "ranks_of", lambda relevant, queries, unit: [np.array(ranks[row]) for row in queries]
    )
    task, data = pool(tmp_path, "acbbba")
    assert data.cluster.tolist() == [0, 1, 1, 1, 0]
    outcome = task.measure(data, table({f"t{i}": i for i in range(6)}), SETTINGS)
    assert outcome.details == {"pool": 6, "queries": 5, "clusters": 2}
    recall = outcome.statistics["recall@1"]
    assert (recall.size, recall.value()) == (2, pytest.approx(2 / 5))
    # Only a; only b; a twice and b once: four of seven queries.
    assert recall.resampled(np.array([[2, 0], [0, 2], [2, 1]])) == pytest.approx([1, 0, 4 / 7])


def captions(tmp_path, images):
    write_jsonl(tmp_path / "flickr" / "test.jsonl", ({"captions": texts} for texts in images))
    task = CaptionTask(TaskData("flickr"), None)
    return task, task.load(DataFolder(tmp_path))


def test_four_of_five_captions_are_not_all_of_them(tmp_path):
    degrees = {"a1": 0, "a2": 1, "a3": 2, "a4": 3, "a5": 9, "b1": 8, "b2": 90, "b3": 91, "b4": 92, "b5": 93}
    task, data = captions(tmp_path, [[f"{image}{n}" for n in range(1, 6)] for image in "ab"])
    found = task.measure(data, table(degrees), SETTINGS)
    # a finds b1 before a5. b1 finds itself, a5 and three more of a.
    assert found.statistics["strict_accuracy"].value() == 0
    assert found.statistics["recall"].value() == pytest.approx((4 + 1) / 10)
    degrees["a5"] = 7
    found = task.measure(data, table(degrees), SETTINGS)
    assert found.statistics["strict_accuracy"].value() == pytest.approx(1 / 2)


def test_a_twin_of_another_image_stands_for_one_caption_not_for_two(tmp_path):
    task, data = captions(tmp_path, [["a", "dog", "cat"], ["b", "dog", "far"]])
    degrees = {"a": 0, "dog": 5, "cat": 30, "b": 90, "far": 100}
    found = task.measure(data, table(degrees), SETTINGS)
    # a finds itself and both dogs: the second takes the place of cat. b finds itself, far and cat.
    assert found.statistics["recall"].value() == pytest.approx((2 + 2) / 6)
    assert found.statistics["strict_accuracy"].value() == 0


def test_without_the_queries_a_twin_of_the_query_is_no_caption_to_be_found(tmp_path):
    task, data = captions(tmp_path, [["a", "dog"], ["b", "a"]])
    degrees = {"a": 0, "dog": 5, "b": 40}
    found = task.measure(data, table(degrees), Settings(query_in_index=False))
    # The index holds dog and the second image's a: a finds its twin, b finds dog.
    assert found.statistics["strict_accuracy"].value() == 0
    found = task.measure(data, table(degrees), SETTINGS)
    assert found.statistics["strict_accuracy"].value() == 0  # itself and its twin in place of dog


def rows_at(pairs):
    return ({"text1": "o", "text2": f"{degrees}", "label": label} for degrees, label in pairs)


DEGREES = {"o": 0} | {f"{degrees}": degrees for degrees in range(181)}


def test_f1_has_a_threshold_of_its_own(tmp_path):
    # Dev: at 10° alone accuracy is 4/6 and F1 2/4; down to 60° 4/6 (no better: the higher one) and 6/8.
    dev = [(10, 1), (20, 0), (30, 0), (50, 1), (60, 1), (80, 0)]
    write_jsonl(tmp_path / "gis" / "validation.jsonl", rows_at(dev))
    write_jsonl(tmp_path / "gis" / "test.jsonl", rows_at([(5, 1), (40, 1), (45, 0), (90, 0)]))
    task = load_task("gis")
    outcome = task.measure(task.load(DataFolder(tmp_path)), table(DEGREES), SETTINGS)
    between = {name: (angle(a)[0] + angle(b)[0]) / 2 for name, a, b in (("acc", 10, 20), ("f1", 60, 80))}
    assert outcome.details["accuracy_threshold"] == pytest.approx(between["acc"], abs=1e-6)
    assert outcome.details["f1_threshold"] == pytest.approx(between["f1"], abs=1e-6)
    assert outcome.statistics["accuracy"].value() == 3 / 4  # 5° alone
    assert outcome.statistics["f1"].value() == pytest.approx(4 / 5)  # 5°, 40° and, wrongly, 45°


def test_thresholds_are_found_on_validation_where_there_is_one(tmp_path):
    for split in ("train", "validation", "test"):
        write_jsonl(tmp_path / "gis" / f"{split}.jsonl", rows_at([(5, 1), (40, 0)]))
    assert load_task("gis").load(DataFolder(tmp_path)).dev_split == "validation"
    (tmp_path / "gis" / "validation.jsonl").unlink()
    assert load_task("gis").load(DataFolder(tmp_path)).dev_split == "train"


def test_a_sample_of_many_dev_pairs_keeps_texts_and_labels_together(tmp_path, monkeypatch):
    monkeypatch.setattr(task_pairs, "MOST_DEV_PAIRS", 20)
    rows = [{"text1": f"a {i}", "text2": f"b {i}", "label": i * i % 3 % 2} for i in range(60)]
    write_jsonl(tmp_path / "qqp" / "train.jsonl", rows)
    write_jsonl(tmp_path / "qqp" / "validation.jsonl", rows)
    data = load_task("qqp").load(DataFolder(tmp_path))
    assert (len(data.test.gold), len(data.dev.gold)) == (60, 20)
    numbers = [int(text.split()[1]) for text in data.dev.text1]
    assert data.dev.text2 == [f"b {i}" for i in numbers]
    assert data.dev.gold.tolist() == [i * i % 3 % 2 for i in numbers]
    assert len(set(numbers)) == 20
    assert numbers != list(range(20))
    assert load_task("qqp").load(DataFolder(tmp_path)).dev.text1 == data.dev.text1


@pytest.mark.parametrize("block", [4096, 3])
def test_equal_texts_have_equal_cosines_and_others_are_hardly_rounded(monkeypatch, block):
    monkeypatch.setattr(sts, "_BLOCK", block)
    first = RNG.normal(size=(200, 64)).astype(np.float32)
    noisy = (
        first + RNG.normal(size=first.shape).astype(np.float32) * 1e-7
    )  # as after encoding in other batches
    assert np.unique(cosine_rows(first, first)).tolist() == [1]
    assert np.unique(cosine_rows(first, noisy * 3)).tolist() == [1]
    second = RNG.normal(size=(200, 64)).astype(np.float32)
    slow = [
        np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b))
        for a, b in zip(first.astype(float), second.astype(float), strict=True)
    ]
    assert np.abs(cosine_rows(first, second) - slow).max() < 1e-10
    assert len(np.unique(cosine_rows(first, second))) == 200
    assert cosine_rows(np.zeros((1, 4)), np.ones((1, 4))).tolist() == [0]


@pytest.mark.parametrize("block", [10_000_000, 999 * 7, 999])
def test_copies_of_a_report_are_ties_whatever_block_they_are_in(monkeypatch, block):
    monkeypatch.setattr(neighbours, "_BLOCK_CELLS", block)
    one = unit_rows(RNG.normal(size=(333, 48)))
    unit = np.vstack([one, one, one])
    queries = np.arange(333)
    found = ranks_of([np.array([row + 333]) for row in queries], queries, unit)
    assert np.unique(np.concatenate(found)).tolist() == [2]  # behind the copy that is not relevant
    assert top_k(one, unit, 3, use_faiss=False).tolist() == [[row, row + 333, row + 666] for row in queries]


def test_a_text_that_stands_in_many_pairs_is_encoded_once():
    asked = []

    def encode(texts, **options):
        asked.extend(texts)
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)

    pairs = SimpleNamespace(text1=["a", "bb", "a"], text2=["bb", "ccc", "a"])
    first, second = embed_pairs(SimpleNamespace(encode=encode), pairs)
    assert sorted(asked) == ["a", "bb", "ccc"]
    assert (first[:, 0].tolist(), second[:, 0].tolist()) == ([1, 2, 1], [2, 3, 1])


def test_of_many_pairs_500_are_sampled_from_all_of_them():
    assert sample(7).tolist() == list(range(7))
    assert sample(500).tolist() == list(range(500))
    chosen = sample(5000)
    assert len(set(chosen.tolist())) == 500
    assert np.bincount(chosen // 500, minlength=10).min() > 30  # of each tenth


def test_of_accuracies_equal_in_hundredths_of_a_percent_the_first_c_is_chosen(monkeypatch):
    accuracy = {0.25: 0.5, 0.5: 0.71231, 1.0: 0.71234, 2.0: 0.7}
    monkeypatch.setattr(
        logistic, "_fit", lambda data, c, seed: SimpleNamespace(score=lambda x, y: accuracy[c])
    )
    part = logistic.Examples(np.zeros((2, 1), np.float32), np.array([0, 1]))
    assert logistic._choose(list(accuracy), [(part, part)], 0) == (0.5, pytest.approx(0.71231))
