"""Reads run directories written by `angle-data llm-label`: `candidates.jsonl` and `run.json`.

Never writes to them and never reads the journal.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.records import Candidate, check_polarity
from angle_data.text import normalise

log = logging.getLogger("angle.ensemble")

_SETTINGS = (
    "engine",
    "checkpoint",
    "size",
    "prompts.name",
    "prompts.synonym_sha256",
    "prompts.antonym_sha256",
    "sampling.temperature",
    "sampling.seed",
    "sampling.max_tokens",
)
_FIELDS = tuple(field.name for field in fields(Candidate))
_values = attrgetter(*_FIELDS)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What an unfinished run still has to ask: `open` requests, None where the run does not say how many."""

    open: int | None

    def __str__(self) -> str:
        """Return it in words, such as "3 requests open"."""
        if self.open is None:
            return "requests are open"
        return f"{self.open} request{'' if self.open == 1 else 's'} open"


@dataclass(frozen=True, slots=True)
class Run:
    """One run directory: its annotator's name, its candidates and its recorded settings.

    `digest` is a sha256 of the candidates that does not depend on the order of their rows; `unfinished` is
    None for a finished run.
    """

    path: Path
    model: str
    candidates: tuple[Candidate, ...]
    digest: str
    settings: dict[str, str | int | float]
    unfinished: Unfinished | None = None


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Read every run; runs of one annotator are shards if they share their settings and no source text.

    Raises:
        InputError: A path is no run directory, is given twice, holds nothing or a malformed line
            (`file:line`), or two runs of one annotator are no shards of each other.
    """
    if not paths:
        raise InputError("no run directory given; name at least one written by `angle-data llm-label`")
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise InputError(f"{path} is given twice; name each run once")
        seen.add(path.resolve())
    runs = [_read_run(path) for path in paths]
    _check_shards(runs)
    return runs


def _read_run(path: Path) -> Run:
    file = path / "candidates.jsonl"
    if not file.is_file():
        if is_begun(path, "llm-label"):
            raise InputError(
                f"{path} is unfinished (no candidates.jsonl yet): run the same llm-label command again"
            )
        if (path / "scores.jsonl").is_file() or is_begun(path, "llm-score"):
            raise InputError(f"{path} holds grades, no candidates; give it with --scores")
        raise InputError(
            f"{path} is no run directory (no candidates.jsonl); make one with `angle-data llm-label`"
        )
    candidates = tuple(_read_candidate(row, f"{file}:{line}") for line, row in read_jsonl(file))
    unfinished = read_unfinished(path, "llm-label", warn=bool(candidates))
    if not candidates and unfinished:
        raise InputError(
            f"{file} holds no candidates; {path} is unfinished ({unfinished}): "
            "run the same llm-label command again"
        )
    if not candidates:
        raise InputError(f"{file} holds no candidates; see rejected.jsonl beside it for the reasons")
    models = sorted({c.model for c in candidates})
    if len(models) > 1:
        raise InputError(f"{file} mixes the annotators {', '.join(models)}; a run holds one annotator")
    rows = sorted("\n".join(_values(candidate)) for candidate in candidates)
    digest = hashlib.sha256("\n\n".join(rows).encode()).hexdigest()
    return Run(path, models[0], candidates, digest, _read_settings(path / "run.json"), unfinished)


def _read_candidate(row: dict[str, Any], where: str) -> Candidate:
    candidate = Candidate.from_dict(row, where)
    for name, value in zip(_FIELDS, _values(candidate), strict=True):
        if not isinstance(value, str):
            raise InputError(f"{where}: {name} must be a string, got {value!r}")
    check_polarity(candidate.polarity, where)
    return candidate


def is_begun(path: Path, command: str) -> bool:
    """Return whether `path` holds a run of `command` that has written no results yet.

    Without a run.json a journal is taken to be of either command.
    """
    if any((path / name).is_file() for name in ("candidates.jsonl", "scores.jsonl")):
        return False
    run = _read_run_file(path / "run.json")
    begun = (path / "journal.jsonl").is_file() or run.get("finished") is False
    return begun and run.get("command", command) == command


def read_unfinished(path: Path, command: str, *, warn: bool = True) -> Unfinished | None:
    """Return what is open in a run, by its run.json, and say so in one line; without one it is finished."""
    run = _read_run_file(path / "run.json")
    if run.get("finished", True) is not False:
        return None
    counts = run.get("counts")
    counts = counts if isinstance(counts, dict) else {}
    failed = counts.get("failed")
    opened = [counts.get("unanswered"), *(failed.values() if isinstance(failed, dict) else [])]
    unfinished = Unfinished(sum(count for count in opened if isinstance(count, int)) or None)
    if warn:
        log.warning(
            "%s is unfinished (%s): run its `angle-data %s` command again to complete it",
            path, unfinished, command,
        )  # fmt: skip
    return unfinished


def _read_run_file(file: Path) -> dict[str, Any]:
    """Return the content of a run.json, empty if there is none.

    Raises:
        InputError: It is no JSON object.
    """
    if not file.is_file():
        return {}
    try:
        run = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        run = None
    if not isinstance(run, dict):
        raise InputError(f"{file}: not valid JSON; run the command that wrote it again to renew it")
    return run


def _read_settings(file: Path) -> dict[str, str | int | float]:
    """Return the settings of a run that tell how its sentences came about; unset ones are left out."""
    run = _read_run_file(file)
    found: dict[str, str | int | float] = {}
    for name in _SETTINGS:
        value: Any = run
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str | int | float):
            found[name] = value
    return found


def _check_shards(runs: Sequence[Run]) -> None:
    first: dict[str, Run] = {}
    owner: dict[tuple[str, str, str], Path] = {}
    for run in runs:
        other = first.setdefault(run.model, run)
        for name in sorted(run.settings.keys() | other.settings.keys()):
            one, two = other.settings.get(name), run.settings.get(name)
            if one != two:
                raise InputError(
                    f"{other.path} and {run.path} are both by {run.model} but differ in {name} "
                    f"({one} / {two}); label one of them under another annotator name"
                )
        for key in sorted({(run.model, c.polarity, normalise(c.source)) for c in run.candidates}):
            path = owner.setdefault(key, run.path)
            if path != run.path:
                raise InputError(
                    f"{path} and {run.path} both hold {key[1]}s by {run.model} for {key[2]!r}; "
                    "give one of them, or label one under another annotator name"
                )
