"""The pages that `angle-train fit` and `angle-train eval` write, made from the tiny model's own results."""

import gzip
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from angle_data.jsonl import write_jsonl
from angle_train.cli import main
from angle_train.data.inputs import RunData, load_run_data, run_leaks
from angle_train.data.pairs import PairSet, distinct_names
from angle_train.recipe import Recipe
from angle_train.report.result import NAMING_NOTES, Measured, Trained, make_report
from angle_train.train.trainer import Training
from angle_train.train.watch import Evaluation


@pytest.fixture
def rows(examples):
    """30 graded pairs."""
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()[:30]
    return [{key: value for key, value in json.loads(line).items() if key != "split"} for line in lines]


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["angle-train", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        assert not code, capsys.readouterr().err

    return call


def test_fit_hands_over_what_the_report_shows(run, tiny_model_dir, rows, tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    write_jsonl(pairs, rows)
    run(
        *("fit", "--data", pairs, "--dev", pairs, "--test", pairs, "--backbone", tiny_model_dir, "--quiet"),
        *("--out", tmp_path / "out", "--epochs", 4, "--batch-size", 8, "--learning-rate", "1e-3"),
    )
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    page = (tmp_path / "out" / "report.html").read_text()
    assert report["advice"] in page
    assert report["details"]["command"] == (
        "angle-train fit --recipe recipe.toml --backbone model --data pairs.jsonl --dev pairs.jsonl "
        "--test pairs.jsonl --out again"
    )
    assert str(tmp_path) not in page
    (shown,) = report["details"]["analysis"]
    assert shown["pairs"] == "pairs"
    assert set(shown["models"]) == {"backbone", "tuned"}
    assert shown["models"]["backbone"] != shown["models"]["tuned"]
    train, *_, test = report["data"]
    assert (train["role"], sum(train["scores"].values())) == ("train", train["pairs"])
    assert sum(test["scores"].values()) == 30


@pytest.mark.parametrize("task", [True, False])
def test_eval_writes_a_page_on_tasks_and_on_pairs(run, tiny_model_dir, rows, tmp_path, task):
    (tmp_path / "data" / "stsb").mkdir(parents=True)
    with gzip.open(tmp_path / "data" / "stsb" / "test.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    source = (
        ["--task", "stsb", "--data-dir", tmp_path / "data"] if task else ["--pairs", tmp_path / "p.jsonl"]
    )
    write_jsonl(tmp_path / "p.jsonl", rows)
    checkpoint = tiny_model_dir.parent / "checkpoint"
    run(
        *("eval", "--model", checkpoint, "--baseline", tiny_model_dir, *source, "--quiet"),
        *("--report", tmp_path / "page.html"),
    )
    page = (tmp_path / "page.html").read_text()
    name = "stsb" if task else "p"
    assert f"A closer look at {name}</h2>" in page
    assert "checkpoint: Not reliably better than model" in page
    assert (
        f"angle-train eval --model checkpoint --baseline model --{'task stsb' if task else 'pairs p.jsonl'}"
        in page
    )
    assert str(tmp_path) not in page


def test_files_of_one_name_are_told_apart_everywhere(
    run, capsys, tiny_model_dir, rows, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name, part in (("a", rows[:15]), ("b", rows[15:])):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "test.jsonl", part)
    run(
        *("eval", "--model", tiny_model_dir, "--pairs", "a/test.jsonl", "--pairs", "b/test.jsonl"),
        *("--report", "page.html"),
    )
    table = capsys.readouterr().out.splitlines()[2:-1]
    assert [line.split()[0] for line in table] == ["a/test", "a/test", "b/test", "b/test"]
    page = (tmp_path / "page.html").read_text()
    for name in ("a/test", "b/test"):
        assert f"<li>{name}: model, " in page
        assert f"A closer look at {name}</h2>" in page
        assert f'aria-label="Spearman × 100 on {name}: word overlap' in page
    data = load_run_data(
        [str(tmp_path / "a" / "test.jsonl")],
        (),
        ["a/test.jsonl"],
        [str(tmp_path / "a" / "test.jsonl"), "b/test.jsonl"],
        recipe=Recipe(),
    )
    (dev,), test = data.dev, data.test
    assert dev.name == "test"  # its role tells it from the others
    assert [pairs.name for pairs in test] == ["a/test", "b/test"]
    assert {leak.name for leak in run_leaks(data)} == {"test", "a/test", "b/test"}


@pytest.mark.parametrize(
    ("specs", "names"),
    [
        (["test.jsonl", "b/test.jsonl", "dev.jsonl"], ["test", "b/test", "dev"]),
        (["x/a/test.csv", "y/a/test.csv"], ["x/a/test", "y/a/test"]),
        (["/r/a/test.csv", "/r/b/test.csv"], ["a/test", "b/test"]),
        (["hub:one/pairs", "hub:two/pairs"], ["one/pairs", "two/pairs"]),
        (["u/run/dataset", "v/run/dataset"], ["u/run", "v/run"]),
        (["a/test.jsonl", "a/test.jsonl"], ["test #1", "test #2"]),
        (["a/test.csv", "b/test.csv", "b/test.gz"], ["a/test", "b/test #1", "b/test #2"]),
    ],
)
def test_names_get_as_many_folders_as_they_need(specs, names):
    sets = [made(name.split(" ")[0].split("/")[-1]) for name in names]
    assert [pairs.name for pairs in distinct_names(sets, specs)] == names


def made(name, gold=(0, 0.2, 0.4, 0.6, 0.8, 1)):
    texts = [f"{name} {i}" for i in range(len(gold))]
    return PairSet(name, texts, texts, np.array(gold), np.ones(len(gold)))


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [(0.6, 0.7, "tuned"), (0.6, 0.6, "backbone"), (-0.1, 0.0, "backbone"), (-0.1, 0.01, "tuned")],
)
def test_a_model_is_saved_that_ranks_better_than_the_backbone_and_than_chance(before, after, kept):
    dev = made("dev")
    like = Measured([dev.score], [None])
    training = Training([Evaluation(2, 1.0, after)], 2, 2, 2, 0)
    trained = Trained(training, [("dev", dev)], like, like, before, after, {})
    model = SimpleNamespace(device=torch.device("cpu"))
    report = make_report(Recipe(), RunData(dev, [dev], []), trained, "some/model", {"leaks": []}, model)
    assert report.kept == kept


def test_a_run_that_its_parts_advise_against_has_no_tuned_figures():
    human = made("human")
    data = RunData(human, [], [], human)
    like = Measured([human.score], [None])
    folds = {"sizes": [3, 3], "evaluation": 0, "share": 0.0, "scores": [0.5, 0.7], "mean": 0.6, "spread": 0.1,
             "backbone": 0.6, "progress": [1.0], "means": [0.4], "shared_texts": [2, 6]}  # fmt: skip
    curve = [Evaluation(2, 1.0, 0.4)]
    trained = Trained(Training(curve, 0, 2, 0, 0), [("dev", human)], like, like, 0.6, 0.6, {"folds": folds})
    model = SimpleNamespace(device=torch.device("cpu"))
    report = make_report(Recipe(), data, trained, "some/model", {"leaks": []}, model)
    assert (report.kept, report.tuned_name) == ("backbone", None)
    assert [result.model for result in report.shown()] == ["word overlap", "backbone"]
    assert NAMING_NOTES[1] in report.notes
    assert any(note.startswith("2 of the 6 texts of the human-graded pairs") for note in report.notes)
    assert "(40.0 at best, backbone 60.0)" in report.verdict()[0]
