"""The one path, as a new user walks it: start, pilot, run, grade, fit, status; killed, repeated, by hand."""

import csv
import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Fault
from grading import grade_all, grader
from programs import run_here
from test_docs_commands import reply

from angle_data import Project
from angle_data.cli import main
from angle_data.errors import AnnotatorError, StoppedError
from angle_train import fit
from angle_train.cli import main as train_main

PRICE = "0.15,0.60"
USAGE = (1000, 1000)


@pytest.fixture
def world(tmp_path, monkeypatch, examples):
    """A folder with 24 notes, and a key."""
    lines = (examples / "texts.jsonl").read_text().splitlines()[:24]
    with (tmp_path / "notes.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [("nr", "note"), *((n, json.loads(x)["text"]) for n, x in enumerate(lines))]
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    return tmp_path


@pytest.fixture
def server():
    with FakeOpenAI(reply, usage=lambda body: USAGE) as server:
        yield server


def start(server, **options):
    given = {"purpose": "opposites", "model": "writer", "base_url": server.url, "price": PRICE}
    return Project.start("notes.csv", **given | options)


def ok(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def next_of(said):
    """The command that a step says comes next."""
    return next(line for line in said.splitlines() if line.startswith("next")).split(maxsplit=1)[1]


def test_the_path_from_notes_to_a_model(world, server, tiny_model_dir, monkeypatch):
    """A transcript: what each step says comes next is what is typed next, and nothing else."""
    said = ok(
        run_here(
            main, "start", "notes.csv", "--text-field", "note", "--purpose", "opposites", "--model", "writer",
            "--base-url", server.url, "--price", PRICE, "--backbone", tiny_model_dir,
        )
    )  # fmt: skip
    assert next_of(said).startswith("cd notes && angle-data pilot")
    monkeypatch.chdir("notes")
    pilot = run_here(main, "pilot", "--n", "4")
    assert "--prompts contrast --out runs/contrast --pilot 4" in pilot.stderr
    assert next_of(ok(pilot)) == "angle-data run --max-usd 2"
    asked = len(server.seen)
    done = run_here(main, "run", "--max-usd", "2")
    assert next_of(ok(done)) == "angle-data grade"
    assert len(server.seen) == 2 * 2 * 24  # two runs, two polarities; the pilot's are asked once
    assert asked == 2 * 2 * 4
    assert f"spent      {96 * (0.15 + 0.60) * 1000 / 1e6:.4f} USD" in done.stdout
    with grader():
        said = ok(run_here(main, "grade"))
    assert next_of(said) == "angle-train fit"
    page = Path("grades.csv").read_text()
    done = run_here(train_main, "fit", "--epochs", "1", "--max-seq-length", "32")
    assert done.returncode == 0, done.stderr
    assert "angle.toml: --data runs/pairs" in done.stderr
    report = json.loads(Path("model/report.json").read_text())
    status = run_here(main, "status").stdout
    assert report["headline"] in status
    assert next_of(status).startswith("open model/report.html")
    assert Path("grades.csv").read_text() == page
    # Every step again: nothing is asked, drawn or trained anew.
    ok(run_here(main, "run", "--max-usd", "2"))
    assert "already finished" in run_here(train_main, "fit", "--epochs", "1", "--max-seq-length", "32").stderr
    assert len(server.seen) == 96
    assert Path("grades.csv").read_text() == page


def test_the_same_in_python_from_anywhere(world, server, tiny_model_dir):
    project = start(server, backbone=str(tiny_model_dir), grader="reader")
    assert project.pilot(3)[0].forecast is not None
    pairs = project.run(max_usd=2)
    assert sum(len(split) for split in pairs.to_dataset().values()) > 100
    assert [step.command for step in project.steps].count("llm-score") == 1
    with grader():
        assert project.grade()["graded"] > 10
    result = fit(project, epochs=1, max_seq_length=32)
    assert result.path == world / "notes" / "model"
    assert (result.path / "report.html").is_file()
    assert Path.cwd() == world
    assert "open" in project.status().next


def test_a_budget_is_that_of_all_runs_together(world, server):
    project = start(server)
    first = 48 * (0.15 + 0.60) * 1000 / 1e6
    with pytest.raises(StoppedError, match="--max-usd"):
        project.run(max_usd=first * 1.2)
    runs = [
        json.loads((world / "notes/runs" / n / "run.json").read_text())["usd"]
        for n in ("structured", "contrast")
    ]
    assert runs[0] == pytest.approx(first)
    assert runs[0] + runs[1] <= first * 1.2 + 1e-9
    assert project.status().next == "angle-data run --max-usd 2"
    project.run(max_usd=2)
    assert len(server.seen) == 96


def test_a_step_that_failed_goes_on_where_it_was(world):
    faults = [None] * 20 + [Fault(401, message="no")]
    with FakeOpenAI(reply, faults=faults, usage=lambda body: USAGE) as server:
        project = start(server)
        with pytest.raises(AnnotatorError):
            project.run()
        before = len(server.seen)
        project.run()
        assert len(server.seen) - before <= 96 - 20 + 64  # what was answered is not asked again
        answered = sum(
            len((world / "notes/runs" / name / "journal.jsonl").read_text().splitlines())
            for name in ("structured", "contrast")
        )
        assert answered == 96


def test_every_step_can_be_repeated_by_hand_with_the_command_it_says(world, server, monkeypatch):
    project = start(server)
    project.run()
    monkeypatch.chdir("notes")
    before = Path("runs/pairs/rejected.jsonl").read_bytes()
    shutil.move("angle.toml", "elsewhere.toml")  # each line is complete
    for step in project.steps[:-1]:
        program, *words = shlex.split(step.line)
        assert program == "angle-data"
        ok(run_here(main, *words))
    assert Path("runs/pairs/rejected.jsonl").read_bytes() == before
    assert len(server.seen) == 96


def test_commands_take_what_is_missing_from_the_project_and_say_so(world, server, monkeypatch):
    start(server)
    monkeypatch.chdir("notes")
    done = run_here(main, "llm-label", "--prompts", "contrast", "--out", "runs/other", "--limit", "2")
    assert done.returncode == 0, done.stderr
    assert "angle.toml: --texts ../notes.csv --text-field note --model writer" in done.stderr
    fit_early = run_here(train_main, "fit")
    assert fit_early.returncode == 1
    assert "angle-data status" in fit_early.stderr


def test_grades_given_before_are_drawn_on_after_more_texts(world, server):
    project = start(server)
    project.run()
    with grader(lambda url: grade_all(url, 9)):
        project.grade()
    sheet = world / "notes/grades.csv"
    before = sheet.read_text()
    os.utime(sheet, (1, 1))
    project.run()
    assert sheet.read_text() == before
    assert "9 of" in dict(project.status().rows)["grade"]
