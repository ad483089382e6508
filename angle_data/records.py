"""The records that flow from one step to the next, and the files of a run that several steps read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from angle_data.errors import InputError
from angle_data.jsonl import loads, read_jsonl

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Polarity = Literal["synonym", "antonym"]

PURPOSES = ("opposites", "topics", "search")
"""What pairs can be for: opposites are kept apart; or are of one topic; or a query and what answers it."""
RECORDED = "recorded-"
"""How the checkpoint of recorded replies begins; the digest of their file follows."""
_DATE = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{4})$")  # gpt-4o-mini-2024-07-18, gpt-3.5-turbo-0125
TOP_GRADE = 5
QUERY: Literal["query"] = "query"
"""The kind of a candidate that is a search query, which its source answers."""
MEANINGS = (
    "nothing in common",
    "only the field or a part of the subject in common",
    "the same subject, yet a different statement about it",
    "much the same statement, but an important detail differs or is missing",
    "the same statement, but for a small detail",
    "the same statement in other words",
)
"""What each grade means, from 0 to TOP_GRADE: the one scale of pages, prompts and documents."""
SCALE = "scale"
"""The column of a file of graded pairs that says, in every row, which scale its score is on: LOW-HIGH."""
GRADE_SCALE = f"0-{TOP_GRADE}"
"""What stands there in the files that `grade` writes, and `llm-score` with a packaged prompt."""
OPPOSITES = {
    "opposites": "Opposites must be kept apart here: give them 1 at most.",
    "topics": "Opposites are about the same subject here: give them 2.",
    None: "Opposites: give them 1 at most if they must be kept apart, else 2.",
}
"""Purpose of the pairs (None: not stated) -> which grade opposites get."""
DEGREES = (5, 4, 3, 2, 1)
"""Degrees of similarity that a sentence can be asked for: 5 same meaning … 1 the same topic only."""


@dataclass(frozen=True, slots=True)
class Record:
    """Base of the records: conversion to plain dictionaries."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in declaration order, ready for JSON; without a field that is None by default."""
        found = ((item, getattr(self, name)) for name, item in self.__dataclass_fields__.items())
        return {item.name: value for item, value in found if value is not None or item.default is not None}


@dataclass(frozen=True, slots=True)
class Text(Record):
    """One unlabelled domain text; `id` is unique within its file."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A sentence an annotator offered for a source text: as its synonym or antonym, or at a degree.

    Exactly one of `polarity` and `degree` is set; a `degree` or `kind` of None is not written. `model` is the
    annotator's name, `key` the journal key of the request that produced it. With the kind `QUERY` the text is
    a search query that the source answers: a synonym in that the two belong together, whatever their lengths.
    """

    source_id: str
    source: str
    polarity: Polarity | None
    text: str
    model: str
    key: str
    degree: int | None = None
    kind: Literal["query"] | None = None

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - with a type it would be a field

    @staticmethod
    def from_dict(row: dict[str, Any], where: str) -> Candidate:
        """Build the record from a dictionary; `where` (`file:line`) opens every `InputError`."""
        from pydantic import ValidationError

        try:
            candidate = _reader().validate_python(row)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            found = "" if first["type"] == "missing" else f"; it is {first['input']!r}"
            raise InputError(f"{where}: {name}: {first['msg']}{found}") from None
        degree = candidate.degree
        if (candidate.polarity is None) == (degree is None) or degree not in (None, *DEGREES):
            raise InputError(f"{where}: a candidate has a polarity or a degree from 1 to 5, one of the two")
        return candidate


@dataclass(frozen=True, slots=True)
class Rejection(Record):
    """A reply, or a part of one, that became no candidate or no pair.

    `text` is the part dropped, `raw` the whole reply it came from, `reason` the code of what was wrong with
    it. Where degrees were asked for `polarity` is None; `degree` is None, and not written, for a part that
    belongs to no degree, such as a refusal.
    """

    source_id: str
    source: str
    polarity: Polarity | None
    text: str
    model: str
    key: str
    reason: str
    raw: str
    degree: int | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledPair(Record):
    """One training pair.

    `label` is the integer class of the AnglE papers (1 similar, 0 not); `score` orders pairs in [0, 1];
    `weight` in (0, 1] says how far the pair is trusted; `polarity` is `synonym`, `antonym` or `random`, and
    empty for others; `models` are the annotators that offered it, `flags` notes such as `near_copy`.
    `supervision` says what the score rests on, and so which scores can be compared: `polarity`, `degrees`
    (what was asked for), `grades` (of a pair that nobody was asked for) or `random` (the low end of each).
    `purpose`, one of `PURPOSES`, is that of the whole data set, in every row so that no copy loses it.
    """

    text1: str
    text2: str
    label: int
    score: float
    weight: float
    polarity: str
    source_id: str
    models: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    supervision: str = ""
    purpose: str | None = None


def candidates_file(run: Path) -> Path:
    """Return the file of the candidates of a folder of `llm-label`; an `InputError` if there are none."""
    file = results_file(run, "candidates.jsonl", "llm-label")
    with file.open("rb") as stream:
        is_empty = not any(map(bytes.strip, stream))
    if is_empty:
        raise InputError(f"{file} holds no candidates; see rejected.jsonl beside it for the reasons")
    return file


def read_candidates(run: Path) -> Iterator[Candidate]:
    """Yield the candidates of a folder of `llm-label`, lazily; an `InputError` names a bad `file:line`."""
    file = candidates_file(run)
    with made_anew_by("llm-label"):
        for line, row in read_jsonl(file):
            yield Candidate.from_dict(row, f"{file}:{line}")


@contextmanager
def made_anew_by(command: str) -> Iterator[None]:
    """Add to an error about a damaged result of a run how to make the result anew from the journal."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{error}; the same `angle-data {command}` again writes the file anew") from None


def results_file(run: Path, name: str, command: str) -> Path:
    """Return the file `name` of a run of `command`; an `InputError` if it is not there."""
    if (run / name).is_file():
        return run / name
    raise InputError(
        f"{run} holds no {name}; give the folder of an `angle-data {command}`, or run that again to finish it"
    )


def read_run_file(run: Path) -> dict[str, Any]:
    """Return the content of a folder's run.json, empty if there is none; an `InputError` if it is damaged."""
    file = run / "run.json"
    if not file.is_file():
        return {}
    try:
        found = loads(file.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{file}: not valid JSON; delete it and run the command that wrote it again")
    return found


def model_behind(name: str, run: Mapping[str, Any]) -> str:
    """Return the model behind the name of an annotator or grader, by the settings in run.json.

    It is the checkpoint, with the address of a server that may call any model so, and the name itself where
    no checkpoint is known, or only the file that replies were read from.
    """
    checkpoint = str(run.get("checkpoint") or "")
    servers = run.get("base_urls")
    if not checkpoint or checkpoint.startswith(RECORDED):
        return name
    return f"{checkpoint} at {', '.join(servers)}" if servers and "/" not in checkpoint else checkpoint


def same_model(one: str, other: str) -> bool:
    """Return whether two models are one: equal names, or one name with the date of a snapshot and without."""
    return one == other or undated(one) == other or one == undated(other)


def undated(checkpoint: str) -> str:
    """Return the name of a checkpoint without the date of a snapshot."""
    return _DATE.sub("", checkpoint)


def read_score(row: Mapping[str, Any], where: str) -> float:
    """Return the grade in the field `score` of a row; an `InputError` unless it is a number from 0 to 5."""
    score = row.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= TOP_GRADE:
        raise InputError(f"{where}: score must be a number from 0 to {TOP_GRADE}, got {score!r}")
    return score


@cache
def _reader() -> TypeAdapter[Candidate]:
    from pydantic import TypeAdapter

    return TypeAdapter(Candidate)
