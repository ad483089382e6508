"""Reads runs of `llm-label` (`candidates.jsonl`) and `llm-score` (`scores.jsonl`), with their `run.json`.

Grades come out by unordered pair of normalised texts. Run directories are never written to, and journals
never read.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from angle_data.calling.options import check_named_once
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.records import (
    Candidate,
    Polarity,
    made_anew_by,
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

NO_GRADES: Grades = {}
SAME_DEGREE = 4
"""The least degree, and grade, of pairs that mean the same."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an annotator: its name, the model behind it (`records.model_behind`), and its candidates.

    `facts` go into the report: `sha256` of the candidates in any order, `finished` if it is not, `usd` if the
    cost is known, and settings.
    """

    model: str
    behind: str
    candidates: tuple[Candidate, ...]
    facts: dict[str, Any]


class Source(NamedTuple):
    """One source text: `key` is the normalised text; `id` and `text` are the smallest that share the key."""

    key: str
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Offer:
    """One candidate together with the source it belongs to; `text_key` is the candidate's normalised text."""

    source: Source
    candidate: Candidate
    text_key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text_key", normalise(self.candidate.text))

    @property
    def key(self) -> tuple[str, str]:
        """The `text.pair_key` of source and candidate."""
        one, other = self.source.key, self.text_key
        return (one, other) if one <= other else (other, one)

    @property
    def asked(self) -> str:
        """What was asked for, in words: `synonym`, `antonym`, `degree 5` … `degree 1`."""
        return self.candidate.polarity or f"degree {self.candidate.degree}"

    @property
    def side(self) -> Polarity:
        """`synonym` for what is to mean the same (synonyms, degrees 5 and 4), else `antonym`."""
        degree = self.candidate.degree or 0
        return self.candidate.polarity or ("synonym" if degree >= SAME_DEGREE else "antonym")


@dataclass(frozen=True, slots=True)
class GradeSet:
    """The grades of all runs by pair; by grader the number of `rows` read, and the models behind its name.

    A pair that a grader graded more than once has the mean. `facts` are those of `Run`, for all together;
    `unknown` counts the graded pairs that are neither candidates nor given, once that is known.
    """

    grades: Grades
    rows: dict[str, int]
    models: dict[str, set[str]]
    facts: dict[str, Any]
    unknown: int = 0


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs, sorted by annotator and digest.

    Runs of one annotator count as one: shards, or its answers to several settings.

    Raises:
        InputError: A path is no run directory, is given twice, or holds nothing or a malformed line.
    """
    check_named_once(paths)
    return sorted(map(_read_run, paths), key=lambda run: (run.model, run.facts["sha256"]))


def offers_of(candidates: Iterable[Candidate]) -> list[Offer]:
    """Return the candidates with their sources, by the keys of these; the order of `candidates` is no matter.

    Two sources are one when their normalised texts are equal, whatever their ids.
    """
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(normalise(candidate.source), []).append(candidate)
    offers = []
    for key, group in sorted(groups.items()):
        source = Source(key, *min((c.source_id, c.source) for c in group))
        offers += sorted((Offer(source, candidate) for candidate in group), key=_canonical)
    return offers


def _canonical(offer: Offer) -> tuple[str | int, ...]:
    c = offer.candidate
    return c.polarity or "", c.degree or 0, offer.text_key, c.model, c.text, c.key, c.source_id, c.source


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
        with made_anew_by("llm-score"):
            for line, row in read_jsonl(file):
                for name in ("text1", "text2", "model"):
                    if not isinstance(row.get(name), str) or not row[name]:
                        got = f"{name} must be a non-empty string, got {row.get(name)!r}"
                        raise InputError(f"{file}:{line}: {got}")
                grader, score = row["model"], float(read_score(row, f"{file}:{line}"))
                found = grades.setdefault(pair_key(row["text1"], row["text2"]), {})
                found.setdefault(grader, []).append(score)
                rows[grader] += 1
                models.setdefault(grader, set()).add(model_behind(grader, recorded[-1]))
        if not line:
            raise InputError(f"{file} holds no grades; see rejected.jsonl beside it for the reasons")
    means = {
        pair: {grader: math.fsum(values) / len(values) for grader, values in sorted(found.items())}
        for pair, found in sorted(grades.items())
    }
    digest = hashlib.sha256()
    for (one, other), mean in means.items():
        digest.update(f"{one}\n{other}\n{mean}\n".encode())
    costs: list[Any] = [run.get("usd") for run in recorded]
    facts = {
        **({"finished": False} if any(run.get("finished") is False for run in recorded) else {}),
        **({} if None in costs else {"usd": math.fsum(costs)}),
        "sha256": digest.hexdigest(),
    }
    return GradeSet(means, dict(sorted(rows.items())), models, facts)


def names_as_annotators(read: GradeSet, runs: Iterable[Run]) -> dict[str, set[str]]:
    """Return for each grader its names among annotators: its own, and those of runs of the same model."""
    names = {}
    for grader, models in read.models.items():
        same = {run.model for run in runs if any(same_model(run.behind, model) for model in models)}
        names[grader] = {grader, *same}
        if others := ", ".join(sorted(same - {grader})):
            said = "warning: %s is one model with %s (%s): its grades of these sentences do not count"
            log.warning(said, grader, others, ", ".join(sorted(models)))
    return names


def without_own(
    grades: Grades, offers: Iterable[Offer], names: Mapping[str, Collection[str]] = {}
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the grades without those that a model gave its own sentences.

    `names` are those of each grader as annotator, if it has others than as grader.
    """
    authors: dict[tuple[str, str], set[str]] = {}
    for offer in offers:
        if offer.key in grades:
            authors.setdefault(offer.key, set()).add(offer.candidate.model)
    return {
        pair: {
            name: row[name] for name in row if authors.get(pair, set()).isdisjoint(names.get(name, (name,)))
        }
        for pair, row in grades.items()
    }


def _read_run(path: Path) -> Run:
    candidates = tuple(read_candidates(path))
    recorded = _recorded(path, "llm-label")
    model, *others = sorted({c.model for c in candidates})
    if others:
        names = ", ".join((model, *others))
        file = path / "candidates.jsonl"
        raise InputError(f"{file} mixes the annotators {names}; a run holds one annotator")
    rows = sorted("\n".join(map(str, candidate.to_dict().values())) for candidate in candidates)
    facts = {
        "sha256": hashlib.sha256("\n\n".join(rows).encode()).hexdigest(),
        **({"finished": False} if recorded.get("finished") is False else {}),
        **({} if recorded.get("usd") is None else {"usd": recorded["usd"]}),
        **{name: recorded[name] for name in _SETTINGS if name in recorded},
    }
    return Run(model, model_behind(model, recorded), candidates, facts)


def _recorded(path: Path, command: str) -> dict[str, Any]:
    """Return the content of a run.json, empty if there is none; warn of an unfinished run."""
    run = read_run_file(path)
    if run.get("finished") is False:
        log.warning("%s is unfinished: run its `angle-data %s` command again to complete it", path, command)
    return run
