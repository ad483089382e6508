"""Texts from stdin and from the hub are kept as a file, and then read like any other."""

import io
import json
import sys
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest
from fake_openai import FakeOpenAI
from programs import run_here
from test_docs_commands import reply

from angle_data import Project
from angle_data.cli import main
from angle_data.errors import InputError
from angle_data.labelling import arriving

NOTES = ["The disk is full.", "No space is left, {says} the log."]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for each in (arriving._from_stdin, arriving._from_hub):
        each.cache_clear()
    yield
    for each in (arriving._from_stdin, arriving._from_hub):
        each.cache_clear()


def typed(monkeypatch, content):
    """The content arrives on stdin, once."""
    arriving._from_stdin.cache_clear()
    monkeypatch.setattr(
        sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content.encode()), isatty=lambda: False)
    )


@pytest.fixture
def server():
    with FakeOpenAI(reply) as server:
        yield server


def label(server, *more):
    line = ["llm-label", "--model", "m", "--base-url", server.url, "--out", "run", "--polarity", "synonym"]
    return run_here(main, *line, *more)


def asked(server):
    return {note for note in NOTES for seen in server.seen if note in seen.prompt}


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(NOTES),
        "\ufeff" + "\r\n".join(NOTES) + "\r\n",
        "\ufeff" + "\n".join(json.dumps({"text": note}) for note in NOTES),
        json.dumps([{"text": note, "id": n} for n, note in enumerate(NOTES)], indent=1),
    ],
)
def test_texts_from_stdin_are_asked_about_once(server, monkeypatch, content):
    typed(monkeypatch, content)
    pilot = label(server, "--texts", "-", "--pilot", "1")  # reads its texts several times
    assert pilot.returncode == 0, pilot.stderr
    assert len(server.seen) == 1
    typed(monkeypatch, content)
    assert label(server, "--texts", "-").returncode == 0
    assert asked(server) == {*NOTES}
    assert len(server.seen) == 2
    arriving._from_stdin.cache_clear()
    (kept,) = Path("run/.angle").glob("*/texts.*")
    assert kept.suffix == {"{": ".jsonl", "[": ".json"}.get(content.lstrip("\ufeff")[0], ".txt")
    assert label(server, "--texts", kept).returncode == 0
    assert len(server.seen) == 2


@pytest.mark.parametrize(("content", "said"), [("", "no texts on stdin"), (" \n", "no texts on stdin")])
def test_nothing_on_stdin_is_said(server, monkeypatch, content, said):
    typed(monkeypatch, content)
    done = label(server, "--texts", "-")
    assert done.returncode == 1
    assert said in done.stderr
    assert not Path("run").exists()


def test_texts_of_the_hub(server, monkeypatch):
    def load(dataset_id, config, *, split, revision):
        assert (dataset_id, split) == ("me/notes", "train")
        rows = [{"note": note, "nr": n, "on": date(2026, 1, 2)} for n, note in enumerate(NOTES)]
        return datasets.Dataset.from_list(rows)

    monkeypatch.setattr(datasets, "load_dataset", load)
    done = label(server, "--texts", "hub:me/notes", "--text-field", "note", "--id-field", "nr")
    assert done.returncode == 0, done.stderr
    assert asked(server) == {*NOTES}
    rows = [json.loads(line) for line in Path("run/candidates.jsonl").read_text().splitlines()]
    assert {row["source_id"] for row in rows} == {"0", "1"}
    # A project keeps them: what it reads is a file.
    project = Project.start("hub:me/notes", purpose="topics", model="gpt-4o-mini")
    assert project.folder.name == "notes"
    options = project.options_of("llm-label")
    assert options["text_field"] == "note"
    assert (project.folder / options["texts"]).is_file()
    assert "mend" not in str(project.status())
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: pytest.fail("asked again"))
    arriving._from_hub.cache_clear()
    assert Project("notes").status().next == "angle-data pilot"


def test_a_project_of_stdin(monkeypatch):
    typed(monkeypatch, "\n".join(NOTES))
    given = ["start", "-", "--purpose", "topics", "--model", "gpt-4o-mini"]
    nameless = run_here(main, *given)
    assert nameless.returncode == 1
    assert "no name for the project: give --out DIR" in nameless.stderr
    done = run_here(main, *given, "--out", "mine")
    assert done.returncode == 0, done.stderr
    assert "2 of -" in done.stdout
    assert (
        Project("mine").folder / Project("mine").options_of("llm-label")["texts"]
    ).read_text().splitlines() == NOTES


def test_a_project_of_a_table_with_other_columns(tmp_path):
    datasets.Dataset.from_dict({"n": [1, 2], "note": NOTES}).to_parquet("notes.parquet")
    project = Project.start("notes.parquet", purpose="topics", model="gpt-4o-mini")
    assert project.options_of("llm-label")["text_field"] == "note"
    with pytest.raises(InputError, match="no column 'nosuch'"):
        Project.start("notes.parquet", purpose="topics", model="gpt-4o-mini", text_field="nosuch", out="b")
