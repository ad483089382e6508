"""What a project folder has, what was spent, and what comes next; reads the files that the steps wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from angle_data.calling.defaults import Options, shared_options
from angle_data.calling.options import is_path, path_of
from angle_data.jsonl import loads
from angle_data.look.grade import SHEET_SPLITS, split_file
from angle_data.project.steps import ASKING, Step
from angle_data.records import read_run_file
from angle_data.tables import read_table
from angle_data.text import counted

_NEXT = "Next: "  # how the sentence of a report begins that says what to do


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """Where a project is.

    Attributes:
        rows: What there is, by part: a name and a sentence each.
        usd: What all runs cost so far; None where the price of one is not known.
        next: The command that comes next; a sentence where there is none.
    """

    rows: Sequence[tuple[str, str]]
    usd: float | None
    next: str

    def __str__(self) -> str:
        """Show it to people."""
        unknown = "not known: a price is missing (--price of pilot and run)"
        spent = unknown if self.usd is None else f"{self.usd:.4f} USD"
        rows = [*self.rows, ("spent", spent), ("next", self.next)]
        return "\n".join(f"{name:<10} {said}" for name, said in rows)


def status_of(
    folder: Path, sections: Mapping[str, Options], steps: Sequence[Step], problems: Sequence[str] = ()
) -> ProjectStatus:
    """Return where a project is; `steps` are those of its `sections`, `problems` what is in their way."""
    rows = [_row_of(folder, step) for step in steps]
    out: Any = shared_options(sections.get("fit", {})).get("out")
    model = path_of(out if is_path(out) else "model")  # what is no path is among the problems
    rows.append(("model", _model(folder, model)))
    runs = [folder / step.out for step in steps if step.command in ASKING]
    usd = None if any(map(_is_unpriced, runs)) else sum(map(spent_usd, runs))
    rows += [("mend", problem) for problem in problems]
    then = _next(folder, steps, model)
    return ProjectStatus(rows, usd, f"mend that, then {then}" if problems else then)


def spent_usd(run: Path) -> float:
    """Return what a run folder cost so far; 0 where no price is known or nothing was asked."""
    return float(read_run_file(run).get("usd") or 0.0)


def _is_unpriced(run: Path) -> bool:
    """Return whether a run took tokens that have no known price; one that got no reply took none."""
    found = read_run_file(run)
    paid = found.get("engine") in ("server", "batch")
    tokens = found.get("tokens")
    took = any(tokens.values()) if isinstance(tokens, dict) else bool(tokens)
    return paid and took and found.get("usd") is None


def forecast_usd(counts: Sequence[Mapping[str, Any]]) -> float | None:
    """Return what runs will cost in all, by the counts of their pilots; None where that is not known."""
    each = [found.get("pilot", {}).get("measured", {}).get("USD", {}).get("all") for found in counts]
    return None if any(usd is None for usd in each) else sum(each)


def _row_of(folder: Path, step: Step) -> tuple[str, str]:
    out = folder / step.out
    if step.command in ASKING:
        return step.command, f"{step.out}: {_asked(out)}"
    if step.command == "grade":
        graded, drawn = _graded(out)
        return "grade", f"{step.out}: " + (f"{graded} of {drawn} pairs graded" if drawn else "not drawn")
    if step.command == "ensemble":
        return "ensemble", f"{step.out}: {_pairs(out)}"
    return step.command, f"{step.out}: {'made' if out.exists() else 'not made'}"


def _asked(run: Path) -> str:
    """Return how far a run of a model is."""
    found = read_run_file(run)
    counts = found.get("counts")
    if not isinstance(counts, dict):
        return "not begun"
    done = f"{_answered(counts):,} of {counts.get('requests', 0):,} requests answered"
    cost = "price not known" if _is_unpriced(run) else f"{spent_usd(run):.4f} USD"
    return f"{done}, {counts.get('kept', 0):,} kept, {cost}"


def _answered(counts: Mapping[str, Any]) -> int:
    """Return how many requests got a reply, by the counts of a run; a failed one got none."""
    failed = counts.get("failed")
    without = sum(failed.values()) if isinstance(failed, dict) else 0
    return int(counts.get("requests", 0) - counts.get("unanswered", 0) - without)


def _pairs(out: Path) -> str:
    """Return how many pairs a data set has, by split."""
    splits = _json(out / "report.json").get("pairs")
    if not isinstance(splits, dict):
        return "not made"
    return ", ".join(f"{name} {sum(kinds.values()):,}" for name, kinds in splits.items()) + " pairs"


def _graded(sheet: Path) -> tuple[int, int]:
    """Return how many pairs of a sheet have a grade, and how many there are."""
    rows = [row for _, row in read_table(sheet)] if sheet.is_file() else []
    return sum(bool(row.get("score", "").strip()) for row in rows), len(rows)


def _model(folder: Path, out: Path) -> str:
    headline = _json(folder / out / "report.json").get("headline")
    return f"{out}: {headline}" if headline else "not trained"


def _kept(run: Mapping[str, Any]) -> int:
    """Return how much of use a run holds, by its run.json."""
    return int((run.get("counts") or {}).get("kept") or 0)


def _useless(folder: Path, steps: Sequence[Step]) -> Path | None:
    """Return the first run that was answered, and of whose answers none was of use."""
    for step in steps:
        run = read_run_file(folder / step.out) if step.command in ASKING else {}
        counts = run.get("counts") or {}
        if _answered(counts) and not _kept(run):
            return step.out
    return None


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a file; nothing where there is none, or it cannot be read."""
    try:
        found = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _next(folder: Path, steps: Sequence[Step], model: Path) -> str:
    """Return the command that comes next."""
    runs = [read_run_file(folder / step.out) for step in steps if step.command in ASKING]
    if (useless := _useless(folder, steps)) is not None:
        return (
            f"angle-data show {useless}; no reply there was of use: name another model in angle.toml, move "
            f"{useless} away, and take angle-data pilot again"
        )
    if not any(_kept(run) for run in runs):
        return "angle-data pilot"
    made = all((folder / step.out).exists() for step in steps)
    if not made or not all(run.get("finished") for run in runs):
        priced = all(run.get("usd_per_million") for run in runs if run)
        return "angle-data run" + " --max-usd 2" * priced
    if (texts := _changed_texts(folder, steps)) is not None:
        return f"angle-data run; {texts} changed since (nothing is asked twice)"
    sheets = [step for step in steps if step.command == "grade"]
    files = [split_file(folder / sheet.out, split) for sheet in sheets for split in SHEET_SPLITS]
    if not all(file.is_file() for file in files):
        return "angle-data grade"
    report = _json(folder / model / "report.json")
    if not report:
        return "angle-train fit"
    if _is_newer(folder, steps, folder / model / "report.json"):
        return "angle-train fit --overwrite; the training pairs were made anew since"
    if (more := _graded_since(files, report)) != 0:
        than = "more" if more > 0 else "fewer"
        return f"angle-train fit --overwrite; {counted(abs(more), 'pair')} {than} graded than it has seen"
    return f"open {model / 'report.html'}{_advised(folder, sheets, report)}"


def _changed_texts(folder: Path, steps: Sequence[Step]) -> str | None:
    """Return the first file of texts that was written after a model was last asked about it."""
    for step in steps:
        texts, run = folder / path_of(step.options.get("texts", "")), folder / step.out / "run.json"
        labelled = step.command == "llm-label" and texts.is_file() and run.is_file()
        if labelled and texts.stat().st_mtime > run.stat().st_mtime:
            return str(step.options["texts"])
    return None


def _is_newer(folder: Path, steps: Sequence[Step], report: Path) -> bool:
    """Return whether training pairs were made after a report was written."""
    made = (folder / step.out / "report.json" for step in steps if step.command == "ensemble")
    return any(pairs.is_file() and pairs.stat().st_mtime > report.stat().st_mtime for pairs in made)


def _graded_since(files: Sequence[Path], report: Mapping[str, Any]) -> int:
    """Return how many more graded pairs there are than a training read, as far as it read these files."""
    notes = [note for note in _notes(report) if note.get("role") in SHEET_SPLITS]
    read = {note["name"]: note.get("pairs") for note in notes}
    now = {file.stem: sum(1 for _ in read_table(file)) for file in files}
    changed = [count - seen for name, count in now.items() if isinstance(seen := read.get(name), int)]
    return sum(changed) or next((count for count in changed if count), 0)


def _notes(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a report says of its data; nothing where it is damaged."""
    notes = report.get("data")
    every = notes if isinstance(notes, list) else []
    return [note for note in every if isinstance(note, dict) and isinstance(note.get("name"), str)]


def _advised(folder: Path, sheets: Sequence[Step], report: Mapping[str, Any]) -> str:
    """Return what a finished training says comes next, which is nothing where a gain is shown."""
    verdict = report.get("verdict")
    lines = map(str, verdict if isinstance(verdict, list) else ())
    said = next((line.removeprefix(_NEXT) for line in lines if line.startswith(_NEXT)), "")
    if not said.startswith("grade") or not sheets:
        return f"; then {said}" if said else ""
    sheet = sheets[0]
    graded, drawn = _graded(folder / sheet.out)
    if graded < drawn:
        return f"; then {said}; {drawn - graded:,} pairs of {sheet.out} have no grade yet: angle-data grade"
    data, graded_file = quote(str(sheet.options["data"])), quote(str(sheet.out))
    drawing = f"angle-data grade {data} --graded {graded_file} --out more.csv"
    return f"; then {said}; draw them with `{drawing}`, and add its files to dev and test below [fit]"
