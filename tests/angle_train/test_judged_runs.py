"""`--judged` of `eval` and `fit`: many pairs that a language model graded beside few of people's."""

import json
from pathlib import Path

import numpy as np
import pytest
from train_runs import write

from angle_data.jsonl import read_jsonl, write_jsonl
from angle_train import inputs
from angle_train.data import splits
from angle_train.data.leaks import pair_keys
from angle_train.inputs import load_data
from angle_train.options import FitOptions
from angle_train.recipe import Recipe

FAST = "[training]\nepochs = 2\nbatch_size = 16\nlearning_rate = 1e-3\nevals_per_epoch = 1\n"


@pytest.fixture
def files(tmp_path, rows, tiny_model_dir):
    """30 of 100 pairs graded by people; 80 by a language model, half a point off; 40 of all train."""
    generator = np.random.default_rng(0)
    mixed = [rows[n] for n in generator.permutation(len(rows))]
    graded = [
        {"text1": row["sentence1"], "text2": row["sentence2"], "model": "gpt-x"}
        | {"score": float(np.clip(row["score"] + generator.normal(0, 0.5), 0, 5))}
        for row in mixed[20:]
    ]
    write_jsonl(tmp_path / "judged" / "scores.jsonl", graded)
    (tmp_path / "run.toml").write_text(FAST)
    return {
        "train": write(tmp_path / "train.jsonl", mixed[:40]),
        "dev": write(tmp_path / "dev.jsonl", mixed[40:60]),
        "test": write(tmp_path / "test.jsonl", mixed[60:90]),
        "judged": str(tmp_path / "judged"),
        "recipe": str(tmp_path / "run.toml"),
        "model": str(tiny_model_dir),
        "checkpoint": str(tiny_model_dir.parent / "checkpoint"),
    }


def test_eval_prints_what_the_grades_are_worth_and_keeps_what_people_alone_say(program, files, tmp_path):
    page = tmp_path / "page.html"
    common = ("eval", "--model", files["model"], "--pairs", files["test"], "--judged", files["judged"])
    code, table, err = program(*common, "--report", page)
    assert code == 0, err
    assert "test: gpt-x graded 30 of the 30 pairs, and 50 pairs more" in err
    assert ["30 (+50 judged)" in line for line in table.splitlines()[2:4]] == [True] * 2
    said = table.splitlines()[-1]
    assert said.startswith("test: 30 graded by you and 80 by gpt-x count like ")
    assert said in page.read_text()
    assert "--judged judged" in page.read_text()
    code, out, _ = program(*common, "--json")
    note = json.loads(out)["results"][1]["judged"]
    assert (note["graded"], note["judged"], note["unused"]) == (30, 80, "")
    assert note["counts_like"] > 30
    alone = json.loads(program("eval", "--model", files["model"], "--pairs", files["test"], "--json")[1])
    assert note["alone"] == alone["results"][1]["score"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--pairs TRAIN --pairs TEST --judged JUDGED",
            "--judged goes with one --pairs: the pairs that people",
        ),
        ("--task stsb --judged JUDGED", "--judged goes with --pairs only; leave it out"),
        (
            "--pairs TEST --judged DEV",
            "--judged DEV: none of its 20 pairs is among the 30 of test; grade some",
        ),
        ("--pairs TEST --judged TEST", "--judged TEST: it grades no pairs beyond those of test"),
        ("--pairs TEST --judged nowhere", "nowhere does not exist; check the path"),
    ],
)
def test_mistakes_are_one_line(program, files, arguments, message):
    def filled(text):
        for name in ("train", "test", "dev", "judged"):
            text = text.replace(name.upper(), files[name])
        return text

    code, out, err = program("eval", "--model", files["model"], "--quiet", *filled(arguments).split())
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert filled(message) in err


def test_fit_tests_on_both_and_reports_it_everywhere(program, files, tmp_path):
    options = {
        "--data": files["train"], "--dev": files["dev"], "--test": files["test"], "--out": tmp_path / "out",
        "--judged": files["judged"], "--recipe": files["recipe"], "--backbone": files["model"],
    }  # fmt: skip
    given = [part for pair in options.items() for part in pair]
    code, out, err = program("fit", *given)
    assert code == 0, err
    assert "gpt-x: 40 judged pairs left out: they train, choose or test" in err
    assert "test: 30 graded by you and 40 by gpt-x count like " in out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    notes = {
        result["model"]: result.get("judged") for result in report["results"] if result["role"] == "test"
    }
    assert {note["judged"] for note in notes.values()} == {40}
    assert all(result.get("judged") is None for result in report["results"] if result["role"] == "dev")
    assert {note["role"]: note["pairs"] for note in report["data"]}["judged"] == 10
    assert "judged" not in report["details"]["choice"]  # 20 dev pairs are too few
    assert "--judged" in report["details"]["command"]
    for name in ("README.md", "report.html"):
        assert "30 graded by you and 40 by gpt-x" in (tmp_path / "out" / name).read_text()
    assert "already finished" in program("fit", *given)[2]
    grades = tmp_path / "judged" / "scores.jsonl"
    rows = [json.loads(line) for line in grades.read_text().splitlines()]
    write_jsonl(grades, [row | {"score": 5 - row["score"]} for row in rows])
    code, _, err = program("fit", *given)
    assert code == 1
    assert "judged pairs" in err


@pytest.fixture
def enough(files, monkeypatch):
    """Files whose 20 dev pairs are enough for a language model to help to choose."""
    monkeypatch.setattr(inputs, "FEWEST_TO_CHOOSE", 20)
    return files


def test_what_helps_to_choose_does_not_measure(program, enough, tmp_path):
    options = {
        "--data": enough["train"], "--dev": enough["dev"], "--test": enough["test"],
        "--out": tmp_path / "out", "--judged": enough["judged"], "--recipe": enough["recipe"],
        "--backbone": enough["model"],
    }  # fmt: skip
    code, out, err = program("fit", *[part for pair in options.items() for part in pair])
    assert code == 0, err
    assert "test: 30 graded by you and 35 by gpt-x count like " in out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    sizes = {note["role"]: note["pairs"] for note in report["data"]}
    assert (sizes["judged"], sizes["judged dev"]) == (5, 5)
    assert report["details"]["choice"]["judged"] == 5
    assert "on the dev pairs and 5 that a language model graded" in err
    data, _ = load_data(FitOptions(**{key[2:]: [value] if key in ("--data", "--dev", "--test") else value
                                      for key, value in options.items()}
                                   | {"recipe": Recipe.from_toml(Path(enough["recipe"]))}))  # fmt: skip
    assert not set(pair_keys(data.judged.rest)) & set(pair_keys(data.judged_dev.rest))


def test_without_test_pairs_the_grades_help_to_choose_alone(program, enough, tmp_path):
    given = [
        "fit", "--data", enough["train"], "--dev", enough["dev"], "--out", tmp_path / "out", "--recipe",
        enough["recipe"], "--judged", enough["judged"], "--backbone", enough["model"],
    ]  # fmt: skip
    code, out, err = program(*given)
    assert code == 0, err
    assert "dev: gpt-x graded 20 of the 20 pairs, and 40 pairs more" in err
    assert "20 graded" not in out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["details"]["choice"]["judged"] == 40
    assert {result["role"] for result in report["results"]} == {"dev"}
    assert "dev pairs and 40 that a language model graded" in (tmp_path / "out" / "report.html").read_text()
    code, _, err = program(*given, "--dev", enough["test"], "--overwrite")
    assert (code, err.splitlines()[-1]) == (
        1,
        "angle-train: error: --judged goes with one --dev: the pairs that people graded must be a sample of "
        "those that it graded",
    )


def test_grades_that_say_nothing_of_the_dev_pairs_choose_nothing(program, enough, tmp_path):
    path = tmp_path / "judged" / "scores.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    scores = np.random.default_rng(3).permutation([row["score"] for row in rows])
    write_jsonl(path, [row | {"score": score} for row, score in zip(rows, scores.tolist(), strict=True)])
    code, _, err = program(
        "fit", "--data", enough["train"], "--dev", enough["dev"], "--out", tmp_path / "out", "--recipe",
        enough["recipe"], "--judged", enough["judged"], "--backbone", enough["model"],
    )  # fmt: skip
    assert code == 0, err
    assert "gpt-x chooses nothing: its grades do not go with people's" in err
    assert "judged" not in json.loads((tmp_path / "out" / "report.json").read_text())["details"]["choice"]


def test_pairs_that_nobody_graded_are_no_grades_of_people(enough, tmp_path, monkeypatch):
    """Without dev pairs some of the training pairs choose, and their scores may be the language model's."""
    rows = [row for _, row in read_jsonl(Path(enough["judged"]) / "scores.jsonl")]
    monkeypatch.setattr(inputs, "FEWEST_TO_CHOOSE", 1)
    monkeypatch.setattr(splits, "HELD_OUT_FRACTION", 0.4)  # enough to be of help
    training = write(tmp_path / "more.jsonl", rows[:40])
    recipe = Recipe.from_toml(Path(enough["recipe"]))
    options = {"data": [training], "test": [enough["test"]], "judged": enough["judged"], "recipe": recipe}
    data, _ = load_data(FitOptions(enough["model"], tmp_path / "out", **options, drop_leaks=True))
    assert data.dev[0].name.endswith("held-out")
    assert data.judged_dev is None


def test_few_dev_pairs_are_left_to_people(program, files, tmp_path):
    code, _, err = program(
        "fit", "--data", files["train"], "--dev", files["dev"], "--out", tmp_path / "out", "--recipe",
        files["recipe"], "--judged", files["judged"], "--backbone", files["model"],
    )  # fmt: skip
    assert code == 0, err
    assert "gpt-x chooses nothing: fewer than 40 pairs have both grades" in err


def test_a_run_serves_wherever_pairs_are_asked_for(program, files, tmp_path):
    rows = [row | {"scale": "0-5"} for _, row in read_jsonl(tmp_path / "judged" / "scores.jsonl")]
    runs = [str(tmp_path / f"run{number}") for number in range(3)]
    for number, run in enumerate(runs):
        write_jsonl(Path(run) / "scores.jsonl", rows[25 * number : 25 * number + 25])
    recipe = Recipe.from_toml(Path(files["recipe"]))
    options = {name: [run] for name, run in zip(("data", "dev", "guard"), runs, strict=True)}
    data, _ = load_data(
        FitOptions(files["model"], tmp_path / "out", **options, recipe=recipe, drop_leaks=True)
    )
    assert (data.train.name, [pairs.name for pairs in data.dev]) == ("run0", ["run1"])
    assert data.guards[0].pairs.name == "run2"
    code, out, err = program("eval", "--model", files["model"], "--pairs", runs[0])
    assert code == 0, err
    assert "run0 is a run of llm-score: its scores.jsonl is read" in err
    assert "run0" in out
