"""Reads runs of `llm-label` (`candidates.jsonl`) and `llm-score` (`scores.jsonl`), with their `run.json`.

Candidates come out grouped by source text, grades by unordered pair of normalised texts. Run directories are
never written to, and journals never read.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from angle_data.calls import check_named_once
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.records import (
    Candidate,
    model_behind,
    read_candidates,
    read_run_file,
    read_score,
    results_file,
    same_model,
)
from angle_data.text import normalise, pair_key

log = logging.getLogger("angle.ensemble")

_SETTINGS = ("engine", "checkpoint", "size", "prompts", "sampling")  # of a run.json

Grades = Mapping[tuple[str, str], Mapping[str, float]]
"""Similarity 0 (unrelated) to 5 (same meaning) of pairs by `text.pair_key`, and of each pair by grader."""

NO_GRADES: Grades = MappingProxyType({})

Models = Mapping[str, Collection[str]]
"""The models behind each name of an annotator or grader, by `records.model_behind`."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an annotator: its name, its candidates and its recorded settings.

    `digest` is a sha256 of the candidates that does not depend on the order of their rows, `usd` what they
    cost, where that is known; `behind` is the model behind the name (`records.model_behind`).
    """

    path: Path
    model: str
    candidates: tuple[Candidate, ...]
    digest: str
    settings: dict[str, Any]
    unfinished: bool = False
    usd: float | None = None
    behind: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One source text with every candidate offered for it, in canonical order.

    `key` is the normalised text; `id` and `text` are the smallest of those that share the key.
    """

    key: str
    id: str
    text: str
    candidates: tuple[Candidate, ...]


class Offer(NamedTuple):
    """One candidate together with the source it belongs to."""

    source: Source
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class GradeSet:
    """The grades of all runs: `grades` by pair, `rows` read by grader, and a `digest` of them.

    A pair that a grader graded more than once has the mean. `digest` does not depend on the order of rows.
    `unfinished` says whether any run is, `usd` what all cost, where that is known; `models` has those
    behind each grader's name.
    """

    grades: Grades
    rows: dict[str, int]
    digest: str
    unfinished: bool = False
    usd: float | None = None
    models: Models = field(default_factory=dict)


NOTHING_READ = GradeSet(NO_GRADES, {}, "")


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs, sorted by annotator and digest.

    Runs of one annotator count as one: shards, or its answers to several settings.

    Raises:
        InputError: A path is no run directory, is given twice, or holds nothing or a malformed line.
    """
    check_named_once(paths)
    return sorted(map(_read_run, paths), key=lambda run: (run.model, run.digest))


def group_by_source(candidates: Iterable[Candidate]) -> list[Source]:
    """Return the sources in the order of their keys; the order of `candidates` does not matter.

    Two sources are one when their normalised texts are equal, whatever their ids.
    """
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(normalise(candidate.source), []).append(candidate)
    sources = []
    for key, group in sorted(groups.items()):
        group.sort(key=_canonical)
        source_id, text = min((c.source_id, c.source) for c in group)
        sources.append(Source(key, source_id, text, tuple(group)))
    return sources


def _canonical(c: Candidate) -> tuple[str | int, ...]:
    asked = c.polarity or "", c.degree or 0
    return *asked, normalise(c.text), c.model, c.text, c.key, c.source_id, c.source


def offers(sources: Iterable[Source]) -> Iterator[Offer]:
    """Yield every candidate with its source, in order."""
    for source in sources:
        for candidate in source.candidates:
            yield Offer(source, candidate)


def read_scores(paths: Sequence[Path]) -> GradeSet:
    """Read the grades of every run; runs may be shards, or of different graders.

    A row holds `text1`, `text2`, `score` from 0 to 5 and the grader's name as `model`.

    Raises:
        InputError: A path holds no grades, is given twice, or a row is malformed (`file:line`).
    """
    check_named_once(paths, "--scores ")
    grades: dict[tuple[str, str], dict[str, list[float]]] = {}
    rows, recorded = Counter[str](), []
    models: dict[str, set[str]] = {}
    for path in paths:
        file = results_file(path, "scores.jsonl", "llm-score")
        recorded.append(_recorded(path, "llm-score"))
        line = 0
        for line, row in read_jsonl(file):
            pair, grader, score = _read_grade(row, f"{file}:{line}")
            grades.setdefault(pair, {}).setdefault(grader, []).append(score)
            rows[grader] += 1
            models.setdefault(grader, set()).add(model_behind(grader, recorded[-1]))
        if not line:
            raise InputError(f"{file} holds no grades; see rejected.jsonl beside it for the reasons")
    means = {
        pair: {grader: math.fsum(values) / len(values) for grader, values in sorted(found.items())}
        for pair, found in sorted(grades.items())
    }
    digest = hashlib.sha256()
    for (one, other), found in means.items():
        digest.update(f"{one}\n{other}\n{found}\n".encode())
    costs: list[Any] = [run.get("usd") for run in recorded]
    usd = None if None in costs else math.fsum(costs)
    unfinished = any(map(_is_unfinished, recorded))
    return GradeSet(means, dict(sorted(rows.items())), digest.hexdigest(), unfinished, usd, models)


def own_work(graders: Models, annotators: Models) -> dict[str, set[str]]:
    """Return for each grader the annotators that are the same model, by their name or what is behind it."""
    return {
        grader: {
            name
            for name, models in annotators.items()
            if name == grader or any(same_model(a, b) for a in behind for b in models)
        }
        for grader, behind in graders.items()
    }


def without_own(
    grades: Grades, sources: Iterable[Source], own: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the grades without those of candidates by the grader itself: by a name that is its `own`."""
    authors: dict[tuple[str, str], set[str]] = {}
    for source, candidate in offers(sources):
        authors.setdefault(pair_key(source.text, candidate.text), set()).add(candidate.model)
    by_others = {}
    for pair, row in grades.items():
        wrote = authors.get(pair, set())
        if found := {name: row[name] for name in row if wrote.isdisjoint(own.get(name, (name,)))}:
            by_others[pair] = found
    return by_others


def _read_run(path: Path) -> Run:
    candidates = tuple(read_candidates(path))
    recorded = _recorded(path, "llm-label")
    models = sorted({c.model for c in candidates})
    if len(models) > 1:
        file = path / "candidates.jsonl"
        raise InputError(f"{file} mixes the annotators {', '.join(models)}; a run holds one annotator")
    rows = sorted("\n".join(map(str, candidate.to_dict().values())) for candidate in candidates)
    digest = hashlib.sha256("\n\n".join(rows).encode()).hexdigest()
    settings = {name: recorded[name] for name in _SETTINGS if name in recorded}
    unfinished = _is_unfinished(recorded)
    behind = model_behind(models[0], recorded)
    return Run(path, models[0], candidates, digest, settings, unfinished, recorded.get("usd"), behind)


def _read_grade(row: dict[str, Any], where: str) -> tuple[tuple[str, str], str, float]:
    for name in ("text1", "text2", "model"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise InputError(f"{where}: {name} must be a non-empty string, got {row.get(name)!r}")
    return pair_key(row["text1"], row["text2"]), row["model"], float(read_score(row, where))


def _recorded(path: Path, command: str) -> dict[str, Any]:
    """Return the content of a run.json, empty if there is none; warn of an unfinished run."""
    run = read_run_file(path)
    if _is_unfinished(run):
        log.warning("%s is unfinished: run its `angle-data %s` command again to complete it", path, command)
    return run


def _is_unfinished(run: Mapping[str, Any]) -> bool:
    return run.get("finished") is False
