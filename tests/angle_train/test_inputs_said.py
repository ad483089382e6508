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


def test_grades_that_train_for_a_question_of_yes_and_no_are_told_of_the_threshold(tmp_path, rows, caplog):
    """Not where the dev pairs are grades too, nor where a threshold is given, nor of what an LLM wrote."""
    grades = write(tmp_path / "judged.jsonl", [row | {"score": i % 6} for i, row in enumerate(rows)])
    wrote = write(
        tmp_path / "degrees.jsonl",
        [row | {"score": i % 6, "supervision": "degrees"} for i, row in enumerate(rows)],
    )
    answers = write(tmp_path / "dev.jsonl", [row | {"score": i % 2} for i, row in enumerate(rows)])
    cases = [
        (grades, answers, {}, 1),
        (grades, grades, {}, 0),
        (wrote, answers, {}, 0),
        (grades, answers, {"threshold": 3.0}, 0),
    ]
    with caplog.at_level("INFO", logger="angle"):
        for data, dev, more, told in cases:
            caplog.clear()
            read(tmp_path, data, dev=[dev], **more)
            said = [line for line in caplog.messages if "--threshold" in line]
            assert len(said) == told, (data, dev, more)
        read(tmp_path, grades, dev=[answers])
    assert "judged has grades, and the pairs of dev are answered with yes or no: --threshold" in caplog.text
