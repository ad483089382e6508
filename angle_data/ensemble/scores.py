"""Reads the grades written by `angle-data llm-score`: `scores.jsonl` of one or more run directories.

A row grades one pair: `text1`, `text2`, `score` from 0 (unrelated) to 5 (same meaning), the grader's name as
`model`, and the journal `key`. Pairs are unordered and compared after normalisation. Says nothing about what
a grade is worth; see `judging` and `graders`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.ensemble.runs import Unfinished, is_begun, read_unfinished
from angle_data.ensemble.sources import Grades
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.text import pair_key

_FILE = "scores.jsonl"
_TOP = 5


@dataclass(frozen=True, slots=True)
class GradeSet:
    """The grades of all runs: `grades` by pair, `rows` read by grader, and a `digest` of them.

    A pair that a grader graded more than once has the mean. `digest` does not depend on the order of rows.
    `unfinished` is what is open in all runs together, None if they are finished.
    """

    grades: Grades
    rows: dict[str, int]
    digest: str
    unfinished: Unfinished | None = None

    def unknown(self, pairs: Collection[tuple[str, str]]) -> int:
        """Return how many graded pairs are none of `pairs`."""
        return sum(pair not in pairs for pair in self.grades)


def read_scores(paths: Sequence[Path]) -> GradeSet:
    """Read the grades of every run; runs may be shards, or of different graders.

    Raises:
        InputError: A path holds no grades, is given twice, or a row is malformed (`file:line`).
    """
    seen: set[Path] = set()
    grades: dict[tuple[str, str], dict[str, list[float]]] = {}
    rows: dict[str, int] = {}
    opened: list[Unfinished] = []
    for path in paths:
        if path.resolve() in seen:
            raise InputError(f"--scores {path} is given twice; name each run once")
        seen.add(path.resolve())
        if not (path / _FILE).is_file() and is_begun(path, "llm-score"):
            raise InputError(f"{path} is unfinished (no {_FILE} yet): run the same llm-score command again")
        if not (path / _FILE).is_file():
            raise InputError(f"{path} holds no {_FILE}; grade pairs with `angle-data llm-score --out {path}`")
        unfinished = read_unfinished(path, "llm-score")
        opened += [unfinished] if unfinished else []
        for line, row in read_jsonl(path / _FILE):
            pair, grader, score = _read_row(row, f"{path / _FILE}:{line}")
            grades.setdefault(pair, {}).setdefault(grader, []).append(score)
            rows[grader] = rows.get(grader, 0) + 1
    means = {
        pair: {grader: math.fsum(values) / len(values) for grader, values in sorted(found.items())}
        for pair, found in sorted(grades.items())
    }
    digest = hashlib.sha256()
    for (one, other), found in means.items():
        digest.update(f"{one}\n{other}\n{found}\n".encode())
    return GradeSet(means, dict(sorted(rows.items())), digest.hexdigest(), _sum(opened))


def peer_grades(grades: Grades, pair: tuple[str, str], supporters: Collection[str]) -> dict[str, float]:
    """Return a pair's grades by grader, less those of its supporters: nobody grades their own work."""
    return {grader: grade for grader, grade in grades.get(pair, {}).items() if grader not in supporters}


def _sum(opened: Sequence[Unfinished]) -> Unfinished | None:
    if not opened:
        return None
    known = [unfinished.open for unfinished in opened if unfinished.open is not None]
    return Unfinished(sum(known) if len(known) == len(opened) else None)


def _read_row(row: dict[str, Any], where: str) -> tuple[tuple[str, str], str, float]:
    for name in ("text1", "text2", "model"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise InputError(f"{where}: {name} must be a non-empty string, got {row.get(name)!r}")
    score = row.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= _TOP:
        raise InputError(f"{where}: score must be a number from 0 to {_TOP}, got {score!r}")
    return pair_key(row["text1"], row["text2"]), row["model"], float(score)
