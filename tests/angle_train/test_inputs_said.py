"""What `fit` says of pairs that can train nothing, or hardly what was meant, before torch is loaded."""

import csv

import pytest
from train_runs import write

from angle_data.errors import InputError
from angle_train.inputs import load_data
from angle_train.options import FitOptions
from angle_train.recipe import Recipe


def read(tmp_path, *data, **more):
    return load_data(FitOptions(data=list(data), backbone="", out=tmp_path / "out", recipe=Recipe(), **more))


def test_three_pairs_are_counted_and_what_is_missing_is_named(tmp_path, rows):
    with pytest.raises(InputError, match=r"3 training pairs, too few .* give some hundred .* --dev"):
        read(tmp_path, write(tmp_path / "three.jsonl", rows[:3]))


def test_a_column_of_numbers_is_warned_of(tmp_path, rows, caplog):
    path = tmp_path / "numbers.csv"
    with path.open("w", newline="") as stream:
        lines = [
            (f"{number:,}", row["sentence2"], row["score"]) for number, row in enumerate(rows, start=900)
        ]
        csv.writer(stream).writerows([("sentence1", "sentence2", "score"), *lines])
    dev = write(tmp_path / "dev.jsonl", rows)
    read(tmp_path, str(path), dev=[dev])
    (said,) = [line for line in caplog.messages if "are numbers" in line]
    assert said.startswith(
        "warning: numbers: the first texts are numbers, such as '900'; check which columns"
    )
    caplog.clear()
    read(tmp_path, dev, dev=[dev])
    assert "are numbers" not in caplog.text


@pytest.mark.parametrize("answers", [[0, 1], [0, 2, 5]])
def test_labels_made_of_scores_decide_the_objective_beside_what_people_graded(tmp_path, rows, answers):
    def file(name, scores, **more):
        graded = [row | more | {"score": scores[i % len(scores)]} for i, row in enumerate(rows)]
        return write(tmp_path / f"{name}.jsonl", graded)

    data, human = file("judged", [0, 1, 2, 3, 4, 5], supervision="grades"), file("human", answers)
    dev = write(tmp_path / "dev.jsonl", [row | {"sentence1": f"{row['sentence1']} Again."} for row in rows])
    for threshold, kind in ((None, "graded"), (3.0, "near_misses")):  # random labels, so near misses
        _, recipe = read(tmp_path, data, human=[human], dev=[dev], scale="0-5", threshold=threshold)
        assert recipe.objective.loss == kind
