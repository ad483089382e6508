"""A project for search: queries that a model writes, hard negatives, and what the model is judged by."""

import csv
import json
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI
from grading import grader
from programs import run_here
from test_docs_commands import reply
from train_runs import write
from typer.testing import CliRunner

from angle_data import Project
from angle_data.cli import app, main
from angle_data.errors import InputError
from angle_train import fit
from angle_train.cli import main as train_main


@pytest.fixture
def notes(tmp_path, monkeypatch, examples):
    """24 texts of the demo, a key, and the current folder."""
    texts = [json.loads(line)["text"] for line in (examples / "texts.jsonl").read_text().splitlines()[:24]]
    with (tmp_path / "notes.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("nr", "note"), *enumerate(texts)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    return texts


@pytest.fixture
def search(notes):
    """A search of the user's own: a few words of each text should find it."""
    Path("my-search/qrels").mkdir(parents=True)
    write(Path("my-search/corpus.jsonl"), [{"_id": f"d{n}", "text": text} for n, text in enumerate(notes)])
    asked = [{"_id": f"q{n}", "text": " ".join(text.split()[-4:])} for n, text in enumerate(notes)]
    write(Path("my-search/queries.jsonl"), asked)
    rows = [f"q{n}\td{n}\t1" for n in range(len(notes))]
    Path("my-search/qrels/test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]))
    return "my-search"


@pytest.fixture
def server():
    with FakeOpenAI(reply) as server:
        yield server


def start(server, **options):
    given = {"purpose": "search", "model": "writer", "base_url": server.url, "price": "1,1"}
    return Project.start("notes.csv", **given | options)


def ok(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_path_judged_by_pairs_that_one_grades(notes, server, tiny_model_dir, monkeypatch):
    said = ok(
        run_here(
            main, "start", "notes.csv", "--text-field", "note", "--purpose", "search", "--model", "writer",
            "--base-url", server.url, "--price", "1,1", "--backbone", tiny_model_dir, "--grader", "reader",
        )
    )  # fmt: skip
    assert "judged   by pairs of a query and a text, which you grade: does it answer the query?" in said
    assert "--search FOLDER" in said
    monkeypatch.chdir("notes")
    ok(run_here(main, "pilot", "--n", "4"))
    done = run_here(main, "run", "--max-usd", "2")
    assert "next       angle-data grade" in ok(done)
    lines = [line.split()[2] for line in done.stderr.splitlines() if line.startswith("$ angle-data")]
    assert lines == ["llm-label", "llm-score", "ensemble", "mine", "grade"]
    rows = [json.loads(line) for line in Path("runs/negatives.jsonl").read_text().splitlines()]
    assert all(row["positive"] in notes and set(row["negatives"]) <= set(notes) for row in rows)
    with grader():
        assert "next    angle-train fit" in ok(run_here(main, "grade")).replace("then ", "next ")
    graded = {row["sentence2"] for row in csv.DictReader(Path("grades-test.csv").read_text().splitlines())}
    assert graded <= set(notes)  # queries stand first, so that each is read as what it is
    done = run_here(train_main, "fit", "--epochs", "1", "--max-seq-length", "32")
    assert "recipe search: the pairs say what they are for: negatives for search" in done.stderr
    assert "angle.toml: --data runs/negatives.jsonl" in done.stderr
    ok(done)
    recipe = Path("model/recipe.toml").read_text()
    assert "roles = true" in recipe
    assert run_here(main, "status").stdout.splitlines()[-1].startswith("next       open model/report.html")


def test_the_path_judged_by_a_search_of_ones_own(notes, search, server, tiny_model_dir):
    project = start(server, backbone=str(tiny_model_dir), search=search)
    assert [step.command for step in project.steps] == ["llm-label", "ensemble", "mine"]
    project.run()
    assert project.status().next == "angle-train fit"
    result = fit(project, epochs=1, max_seq_length=32)
    found = [row for row in result.figures if (row["role"], row["metric"]) == ("test", "ndcg@10")]
    assert [(row["pairs"], row["count"]) for row in found] == [("my-search", len(notes))] * 3
    assert {found[0]["model"], found[1]["model"]} == {"BM25, words", "backbone"}


def test_a_search_that_is_none_or_is_not_wanted_is_refused_before_a_project_is_made(notes, search, server):
    with pytest.raises(InputError, match="--search is for --purpose search, got topics"):
        start(server, purpose="topics", search=search)
    with pytest.raises(InputError, match=r"\[fit\] none does not exist; give a folder with corpus"):
        start(server, search="none")
    Path("my-search/qrels/test.tsv").unlink()
    with pytest.raises(InputError, match=r"has no qrels; put test\.tsv there"):
        start(server, search=search)
    assert not Path("notes").exists()


def test_a_search_that_is_lost_later_stops_before_the_first_request(notes, search, server):
    project = start(server, search=search)
    Path("my-search").rename("other")
    for step in (project.pilot, project.run):
        with pytest.raises(InputError, match=r"\[fit\] .*my-search does not exist"):
            step()
    assert not server.seen


def test_search_is_an_answer_to_the_second_question(notes, monkeypatch):
    monkeypatch.setattr("angle_data.project.command.in_terminal", lambda: True)
    done = CliRunner().invoke(app, ["start", "notes.csv"], input="note\nperhaps\nSearch\ngpt-mine\n")
    assert done.exit_code == 0, done.output
    assert done.output.count("Must opposites be kept apart") == 2
    assert Project("notes").options_of("ensemble")["purpose"] == "search"


def test_steps_that_wait_for_each_other_are_named(notes, server):
    project = start(server)
    path = project.folder / "angle.toml"
    path.write_text(path.read_text().replace('runs = ["runs/queries"]', 'runs = ["runs/negatives.jsonl"]'))
    with pytest.raises(InputError, match=r"\[mine\] and \[ensemble\] and \[grade\] wait for each"):
        Project(project.folder).run()
