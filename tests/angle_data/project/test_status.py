"""What `status` says comes next once a model is trained, or what it was made of has changed."""

import csv
import json
import os
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI
from programs import run_here
from test_docs_commands import reply

from angle_data import Project
from angle_data.cli import main
from angle_data.look.grade import finish_grading
from angle_data.project.steps import steps_of


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of 12 notes up to its sheet, of which 8 pairs are graded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    rows = [(n, f"Disk {n} of primary number {n * 7} is full again.") for n in range(12)]
    with Path("notes.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("nr", "note"), *rows])
    with FakeOpenAI(reply) as server:
        given = {"purpose": "opposites", "model": "writer", "base_url": server.url}
        project = Project.start("notes.csv", **given)
        project.run()
    fill(project, 8)
    return project


def fill(project, count=None):
    """Grade the first so many pairs of the sheet, or all; return how many there are."""
    sheet = project.folder / "grades.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows):
        row["score"] = str(number % 6) if count is None or number < count else ""
    with sheet.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    finish_grading(sheet, replace=True)
    return len(rows)


def trained(project, *verdict, more=0):
    """Write the part of a report that status reads; it had `more` dev pairs than there are."""
    lines = {split: (project.folder / f"grades-{split}.csv").read_text() for split in ("dev", "test")}
    counts = {split: len(text.splitlines()) - 1 for split, text in lines.items()}
    counts["dev"] += more
    data = [{"role": split, "name": f"grades-{split}", "pairs": count} for split, count in counts.items()]
    content = {"headline": "A headline.", "verdict": ["Use the tuned model.", *verdict], "data": data}
    (project.folder / "model/.angle").mkdir(parents=True, exist_ok=True)
    (project.folder / "model/.angle/fit_state.json").write_text("{}")
    (project.folder / "model/report.json").write_text(json.dumps(content))


def test_a_gain_that_is_shown_needs_no_more_grades(project):
    trained(project, "What got worse: nothing.")
    assert project.status().next == "open model/report.html"


def test_what_the_report_says_comes_next_is_said_with_how_to_do_it(project):
    more = "grade about 60 more test pairs (about 12 min) and fit again"
    trained(project, f"Next: {more}")
    begins = f"open model/report.html; then {more}; "
    assert project.status().next.startswith(begins)
    assert project.status().next.endswith("pairs of grades.csv have no grade yet: angle-data grade")
    fill(project)
    trained(project, f"Next: {more}")
    assert project.status().next == (
        f"{begins}draw them with `angle-data grade runs/pairs --graded grades.csv --out more.csv`, and add "
        "its files to dev and test below [fit]"
    )
    trained(project, "Next: label more texts")
    assert project.status().next == "open model/report.html; then label more texts"


@pytest.mark.parametrize(("more", "said"), [(-1, "1 pair more"), (2, "2 pairs fewer")])
def test_grades_that_the_model_has_not_seen_are_trained_with(project, more, said):
    trained(project, "Next: label more texts", more=more)
    assert project.status().next == f"angle-train fit --overwrite; {said} graded than it has seen"


def test_a_report_that_is_damaged_or_of_another_kind_is_no_traceback(project):
    trained(project)
    report = project.folder / "model/report.json"
    damaged = (
        '{"data": [{}], "verdict": [1]}',
        '{"data": [1, {"name": ["a"]}], "verdict": null}',
        '{"data": null, "verdict": 3}',
        '{"data": [{"name": "grades-dev", "role": "dev", "pairs": null}]}',
    )
    for text in damaged:
        report.write_text(text)
        assert project.status().next == "open model/report.html"
    report.write_text("{")
    assert project.status().next == "angle-train fit"


def test_pairs_that_were_made_anew_are_trained_on(project):
    trained(project)
    written = (project.folder / "model/report.json").stat().st_mtime
    pairs = project.folder / "runs/pairs/report.json"
    os.utime(pairs, (written + 10, written + 10))
    said = "angle-train fit --overwrite; the training pairs were made anew since"
    assert project.status().next == said
    os.utime(pairs, (written - 10, written - 10))
    assert project.status().next == "open model/report.html"
    project.run()  # asks nothing, and makes the same pairs
    assert project.status().next == "open model/report.html"


def test_texts_that_changed_are_labelled_first(project):
    trained(project)
    asked = (project.folder / "runs/structured/run.json").stat().st_mtime
    os.utime("notes.csv", (asked + 10, asked + 10))
    assert project.status().next == "angle-data run; ../notes.csv changed since (nothing is asked twice)"
    os.utime("notes.csv", (asked - 10, asked - 10))
    assert project.status().next == "open model/report.html"


def test_what_is_in_the_home_folder_is_found_there(tmp_path, monkeypatch):
    """A folder is the same however it is spelled: what one section writes, another reads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    Path("notes.txt").write_text("".join(f"Disk {n} of primary {n * 7} is full.\n" for n in range(12)))
    with FakeOpenAI(reply) as server:
        started = Project.start("notes.txt", purpose="opposites", model="writer", base_url=server.url)
        file = started.folder / "angle.toml"
        for before, after in (
            ('texts = "../notes.txt"', 'texts = "~/notes.txt"'),
            ('out = "runs/', 'out = "~/notes/runs/'),
            ('out = "grades.csv"', 'out = "~/notes/grades.csv"'),
            ('out = "model"', 'out = "~/notes/model"'),
        ):
            assert before in file.read_text()
            file.write_text(file.read_text().replace(before, after))
        alias = tmp_path / "alias"  # the same folder by another name
        alias.symlink_to(started.folder)
        assert 'data = "runs/pairs"' in file.read_text()
        file.write_text(
            file.read_text().replace('data = "runs/pairs"', f'data = "{alias}/runs/../runs/pairs"')
        )
        project = Project(started.folder)
        assert not [said for name, said in project.status().rows if name == "mend"]
        project.run()
        assert [step.command for step in project.steps][-2:] == ["ensemble", "grade"]
        project = Project(started.folder)
    fill(project)
    trained(project)
    status = project.status()
    assert status.rows[0][1].startswith(f"{tmp_path}/notes/runs/structured: 24 of 24 requests answered")
    assert status.rows[-1] == ("model", f"{tmp_path}/notes/model: A headline.")
    assert status.next == f"open {tmp_path}/notes/model/report.html"
    asked = (project.folder / "runs/structured/run.json").stat().st_mtime
    os.utime("notes.txt", (asked + 10, asked + 10))
    assert "~/notes.txt changed since" in project.status().next


@pytest.mark.parametrize("read", ["pairs", "other/../pairs", "~/pairs", "alias/pairs"])
def test_a_step_comes_after_what_it_reads_however_that_is_spelled(tmp_path, monkeypatch, read):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "alias").symlink_to(tmp_path)
    ensemble = {"runs": ["a-run"], "out": "pairs"}
    steps = steps_of({"mine": {"runs": [read], "out": "mined.jsonl"}, "ensemble": ensemble}, tmp_path)
    assert [step.command for step in steps] == ["ensemble", "mine"]
    steps = steps_of({"mine": {"runs": ["elsewhere"], "out": "mined.jsonl"}, "ensemble": ensemble}, tmp_path)
    assert [step.command for step in steps] == ["mine", "ensemble"]


def test_a_step_does_not_wait_for_itself(tmp_path):
    assert len(steps_of({"mine": {"runs": ["pairs"], "out": "pairs"}}, tmp_path)) == 1


@pytest.mark.parametrize("path", ["loop", "no\\u0000path", "missing/../../notes.csv"])
def test_what_leads_nowhere_is_a_line_to_mend(project, path):
    (project.folder / "loop").symlink_to("loop")
    file = project.folder / "angle.toml"
    file.write_text(file.read_text().replace('texts = "../notes.csv"', f'texts = "{path}"'))
    mend = [said for name, said in Project(project.folder).status().rows if name == "mend"]
    assert "texts: " in mend[0]
    assert "is not there" in mend[0]


@pytest.mark.parametrize(("tokens", "said"), [(0, "0.0000 USD"), (7, "not known: a price is missing")])
def test_a_run_without_a_reply_costs_nothing_though_its_price_is_not_known(project, tokens, said):
    for step in project.steps:
        run = project.folder / step.out / "run.json"
        if step.command == "llm-label":
            found = json.loads(run.read_text()) | {"usd": None, "usd_per_million": None}
            run.write_text(json.dumps(found | {"tokens": {"prompt_tokens": tokens, "total_tokens": tokens}}))
    assert f"spent      {said}" in str(project.status())


def test_a_request_that_failed_got_no_answer_and_says_nothing_of_the_model(project):
    (run,) = (project.folder / step.out / "run.json" for step in project.steps if step.run == "structured")
    found = json.loads(run.read_text())
    counts = {"requests": 24, "replied": 0, "failed": {"server": 19}, "unanswered": 5, "kept": 0}
    run.write_text(json.dumps(found | {"counts": found["counts"] | counts, "finished": False}))
    said = str(project.status())
    assert "runs/structured: 0 of 24 requests answered" in said
    assert "no reply there was of use" not in said
    run.write_text(json.dumps(found | {"counts": found["counts"] | counts | {"unanswered": 4}}))
    assert "runs/structured; no reply there was of use" in str(project.status())


def test_the_json_of_status_has_every_row(project, monkeypatch):
    path = project.folder / "angle.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('model = "writer"', 'model = ""'), encoding="utf-8")
    found = Project(project.folder).status()
    names = [name for name, _ in found.rows]
    assert len(names) > len(set(names))
    monkeypatch.chdir(project.folder)
    parts = json.loads(run_here(main, "status", "--json").stdout)["parts"]
    assert [(part["part"], part["says"]) for part in parts] == [*found.rows]
