"""Tasks about text pairs: gold scores and labels as files write them, thresholds, one correlation a year."""

import numpy as np
import pytest
from train_runs import table

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluation.compare import best_threshold
from angle_train.evaluation.task import Source, load_task
from angle_train.evaluation.tasks import pairs as task_pairs
from angle_train.evaluation.tasks.pairs import BUG_DUPLICATES, STS12

SEED = 1111


def test_years_are_scored_over_all_subsets_at_once(tmp_path):
    rows = [("a", 0, 4, "x"), ("b", 60, 3, "x"), ("c", 30, 2, "y"), ("d", 90, 1, "y")]
    write_jsonl(
        tmp_path / "sts12" / "test.jsonl",
        ({"sentence1": "o", "sentence2": t, "score": s, "subset": x} for t, _, s, x in rows),
    )
    encode = table({"o": 0} | {text: degrees for text, degrees, _, _ in rows})
    outcome = STS12.measure(STS12.load(Source(tmp_path)), encode, SEED)
    # Each subset alone is in perfect order; together ranks 4 2 3 1 against 4 3 2 1: 1 - 6·2/(4·15).
    assert outcome.statistics["spearman"].value() == pytest.approx(0.8)
    assert outcome.similarity == pytest.approx(np.cos(np.radians([0, 60, 30, 90])), abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_no_threshold_does_better_on_dev_than_the_one_found(seed):
    rng = np.random.default_rng(seed)
    gold, similarity = rng.random(30) < 0.5, rng.integers(0, 8, size=30) / 10

    def right(threshold):
        return ((similarity > threshold) == gold).mean()

    found = best_threshold(gold, similarity)
    assert right(found) == max(map(right, np.arange(-1.05, 2, 0.1)))
    assert not np.isclose(similarity, found).any()  # halfway between, so rounding does not matter


def write_at(path, pairs):
    """Labelled pairs of directions that are so many degrees apart."""
    write_jsonl(path, ({"text1": "o", "text2": f"{degrees}", "label": label} for degrees, label in pairs))


def test_thresholds_come_from_dev_and_are_applied_to_test(tmp_path):
    folder = tmp_path / "bug-duplicates"
    # The best threshold is between cos 10° and cos 50°.
    write_at(folder / "train.jsonl", [(0, 1), (10, 1), (50, 0), (60, 0)])
    write_at(folder / "validation.jsonl", [(20, 1), (80, 1), (25, 0), (85, 0)])
    encode = table({"o": 0} | {f"{d}": d for d in range(91)})
    outcome = BUG_DUPLICATES.measure(BUG_DUPLICATES.load(Source(tmp_path)), encode, SEED)
    # Above 0.81 are 20° and 25°: one hit, one false alarm; 80° is missed.
    assert outcome.statistics["accuracy"].value() == pytest.approx(0.5)
    assert outcome.statistics["auc"].value() == pytest.approx(0.75)


@pytest.mark.parametrize("column", ["score", "relatedness_score", "similarity_score", "label"])
def test_gold_scores_are_found_by_all_their_names(tmp_path, column):
    rows = [{"sentence1": "a", "sentence2": f"b {i}", column: i / 2} for i in range(3)]
    write_jsonl(tmp_path / "sts12" / "test.jsonl", rows)
    assert load_task("sts12").load(Source(tmp_path))[0].score.tolist() == [0, 0.5, 1]


def test_thresholds_are_found_on_validation_where_there_is_one(tmp_path):
    for split in ("train", "validation", "test"):
        write_at(tmp_path / "gis" / f"{split}.jsonl", [(5, 1), (40, 0)])
    assert load_task("gis").load(Source(tmp_path))[1].name == "validation"
    (tmp_path / "gis" / "validation.jsonl").unlink()
    assert load_task("gis").load(Source(tmp_path))[1].name == "train"


def test_a_sample_of_many_dev_pairs_keeps_texts_and_labels_together(tmp_path, monkeypatch):
    monkeypatch.setattr(task_pairs, "MOST_DEV_PAIRS", 20)
    rows = [{"text1": f"a {i}", "text2": f"b {i}", "label": i * i % 3 % 2} for i in range(60)]
    write_jsonl(tmp_path / "qqp" / "train.jsonl", rows)
    write_jsonl(tmp_path / "qqp" / "validation.jsonl", rows)
    data = load_task("qqp").load(Source(tmp_path))
    assert (len(data[0].score), len(data[1].score)) == (60, 20)
    numbers = [int(text.split()[1]) for text in data[1].text1]
    assert data[1].text2 == [f"b {i}" for i in numbers]
    assert data[1].score.tolist() == [i * i % 3 % 2 for i in numbers]
    assert len(set(numbers)) == 20
    assert numbers != list(range(20))
    assert load_task("qqp").load(Source(tmp_path))[1].text1 == data[1].text1


def pair(number, label):
    return {"text1": f"a {number}", "text2": f"b {number}", "label": label}


@pytest.mark.parametrize(("name", "label"), [("mrpc", -1), ("gis", 3), ("qnli", "maybe")])
def test_binary_pairs_have_0_and_1_only(tmp_path, name, label):
    task = load_task(name)
    rows = [pair(0, 0), pair(1, 1), pair(2, label)]
    write_jsonl(tmp_path / task.data.folder / f"{task.split}.jsonl", rows)
    place = f"{tmp_path}/{task.data.folder}/{task.split}.jsonl:3"
    with pytest.raises(InputError, match=f"{place}: label must be 0 or 1, got {label}; leave out"):
        task.load(Source(tmp_path))


def test_binary_pairs_may_write_them_in_any_way(tmp_path):
    written = [1, 0, 1.0, 0.0, True, False, "1", "0.0"]
    write_jsonl(tmp_path / "mrpc" / "test.jsonl", (pair(i, label) for i, label in enumerate(written)))
    assert load_task("mrpc").load(Source(tmp_path))[0].score.tolist() == [1, 0] * 4
    rows = ({"question1": "a", "question2": "b", "is_duplicate": i} for i in (0, 1))
    write_jsonl(tmp_path / "mrpc" / "test.jsonl", rows)
    assert load_task("mrpc").load(Source(tmp_path))[0].score.tolist() == [0, 1]


@pytest.mark.parametrize("scores", [[2.5], [3, 3, 3]])
def test_scores_that_say_the_same_are_refused(tmp_path, scores):
    rows = [{"text1": "a", "text2": f"b {i}", "score": score} for i, score in enumerate(scores)]
    write_jsonl(tmp_path / "stsb" / "test.jsonl", rows)
    message = f"stsb/test: all {len(scores)} scores are {scores[0]}; a correlation needs different ones"
    with pytest.raises(InputError, match=message):
        load_task("stsb").load(Source(tmp_path))
