"""Graded pairs as tasks: gold scores as files write them, one correlation a year; thresholds of pairs."""

import numpy as np
import pytest
from train_runs import table

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluation.compare import best_threshold
from angle_train.evaluation.sts import STS12
from angle_train.evaluation.task import Source, load_task


def test_years_are_scored_over_all_subsets_at_once(tmp_path):
    rows = [("a", 0, 4, "x"), ("b", 60, 3, "x"), ("c", 30, 2, "y"), ("d", 90, 1, "y")]
    write_jsonl(
        tmp_path / "sts12" / "test.jsonl",
        ({"sentence1": "o", "sentence2": t, "score": s, "subset": x} for t, _, s, x in rows),
    )
    encode = table({"o": 0} | {text: degrees for text, degrees, _, _ in rows})
    outcome = STS12.measure(STS12.load(Source(tmp_path)), encode)
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


@pytest.mark.parametrize("column", ["score", "relatedness_score", "similarity_score", "label"])
def test_gold_scores_are_found_by_all_their_names(tmp_path, column):
    rows = [{"sentence1": "a", "sentence2": f"b {i}", column: i / 2} for i in range(3)]
    write_jsonl(tmp_path / "sts12" / "test.jsonl", rows)
    assert load_task("sts12").load(Source(tmp_path)).score.tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("scores", [[2.5], [3, 3, 3]])
def test_scores_that_say_the_same_are_refused(tmp_path, scores):
    rows = [{"text1": "a", "text2": f"b {i}", "score": score} for i, score in enumerate(scores)]
    write_jsonl(tmp_path / "stsb" / "test.jsonl", rows)
    message = f"stsb/test: all {len(scores)} scores are {scores[0]}; a correlation needs others too"
    with pytest.raises(InputError, match=message):
        load_task("stsb").load(Source(tmp_path))
