"""Runs and grades for an ensemble, written by hand, and what a build of them left."""

import json

from pyarrow import parquet

from angle_data.ensembling import strategies
from angle_data.ensembling.evidence import Evidence
from angle_data.ensembling.read import offers_of, without_own
from angle_data.ensembling.screen import screen
from angle_data.jsonl import write_jsonl


def evidence_of(rows, grades=None, given=(), *, topic=True):
    """The evidence on candidates; each grader has one name, as an annotator too."""
    offers, grades = offers_of(rows), grades or {}
    graders = {name for row in grades.values() for name in row}
    return Evidence(screen(offers, topic=topic), without_own(grades, offers), given, graders)


def outcome_of(strategy, rows, grades=None):
    """What a strategy, by its name, makes of candidates."""
    return getattr(strategies, strategy)(evidence_of(rows, grades, topic=strategy != "concat"))


def write_run(folder, rows, settings=None):
    """A run of llm-label with these candidates, rows or records."""
    rows = (row if isinstance(row, dict) else row.to_dict() for row in rows)
    write_jsonl(folder / "candidates.jsonl", rows)
    if settings is not None:
        (folder / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def write_polar_run(folder, things):
    """A run with a synonym and an antonym of a text about each thing."""
    rows = [
        {"source_id": f"t{i}", "source": f"The {thing} is down.", "polarity": polarity,
         "text": f"{start} {thing}.", "model": "m", "key": f"{polarity}{i}"}
        for i, thing in enumerate(things)
        for polarity, start in (("synonym", "We lost the"), ("antonym", "All is well with the"))
    ]  # fmt: skip
    return write_run(folder, rows)


def write_grades(folder, rows):
    """A run of llm-score with these grades."""
    write_jsonl(folder / "scores.jsonl", rows)
    return folder


def report(out):
    """The report of a build."""
    return json.loads((out / "report.json").read_text())


def card(out):
    """The card of its data set."""
    return (out / "dataset" / "README.md").read_text()


def split_rows(out):
    """The rows of each split of its data set."""
    files = sorted((out / "dataset" / "data").iterdir())
    return {file.name.split("-")[0]: parquet.read_table(file).to_pylist() for file in files}
