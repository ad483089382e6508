"""Pairs that a language model graded: many, a few of which people graded too.

Grades are compared by rank alone, so the grader's scale does not matter; where the rows state one, the grades
must lie on it. Whether pairs are the same is judged by their texts, up to normalisation, in either order.
Imports no torch.
"""

from __future__ import annotations

import hashlib
import logging
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.records import results_file
from angle_data.tables import Rows, read_table
from angle_data.text import counted, stable_hash
from angle_train.data.leaks import pair_keys
from angle_train.data.pairs import PairSet, name_of
from angle_train.data.scores import check_stated
from angle_train.data.sources import SCORES, number_in, pair_in, read_rows, warn_if_unfinished

log = logging.getLogger("angle.pairs")

ONE_SET = "--judged goes with one {}: the pairs that people graded must be a sample of those that it graded"
"""What is wrong with several sets of pairs, or none; the option's name comes in."""

FEWEST_JUDGED = 20
"""Pairs that people and a language model graded: with fewer, nobody measured whether intervals are right
(benchmarks/log/judged.md)."""
FEWEST_TO_CHOOSE = 40
"""As many where they choose. With 30, a grader that favours tuned weights had them taken 12 times in 100
though they were no better, with 40 to 50 10 to 12 times, from 70 on 9; people's grades alone, 7
(benchmarks/log/shared-texts-choose.md)."""


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """What a language model says of n pairs that people graded, and of others of their kind.

    Attributes:
        grader: Its name.
        grades: Its grades (n,) of the pairs that people graded; NaN where it has none.
        rest: The pairs that it alone graded; their scores are its grades.
    """

    grader: str
    grades: NDArray[np.float64]
    rest: PairSet

    def with_roles(self) -> JudgedPairs:
        """Return them with text1 a query and text2 a document."""
        return replace(self, rest=replace(self.rest, roles=True))

    def sha256(self) -> str:
        """Return a fingerprint of all grades and of the texts that people did not grade."""
        return hashlib.sha256(f"{self.grades.tolist()} {self.rest.sha256()}".encode()).hexdigest()


def load_judged(spec: str) -> PairSet:
    """Return all distinct pairs that a language model graded, under its name; the scores are its grades.

    Of a pair that is there several times, the mean of a grader's grades counts, and of several graders the
    mean of their means: so the order of the rows makes no difference. A warning counts the pairs whose grades
    differ.

    Args:
        spec: The folder of an `angle-data llm-score`, or a file or data set of scored pairs.

    Raises:
        InputError: There is no such thing, a grade is missing or outside the scale that its row states, or
            rows state different scales; there are several graders, and not all rows state the scale.
    """
    items = list(_rows(spec))
    if not items:
        raise InputError(f"--judged {spec}: no graded pairs in it")
    grades = np.array([number_in(row, SCORES, place) for place, row in items])
    one_scale = check_stated(spec, items, grades)
    first, second = map(list, zip(*(pair_in(row, place) for place, row in items), strict=True))
    graders = sorted({str(row["model"]) for _, row in items if row.get("model")})
    pairs = PairSet(
        name=" and ".join(graders) or name_of(spec),
        text1=first,
        text2=second,
        score=grades,
        weight=np.ones(len(items)),
        scale="as graded",
    )
    warn_if_unfinished(spec)
    of_each = [str(row.get("model") or "") for _, row in items]
    if not one_scale and len(set(of_each)) > 1:
        raise InputError(
            f"--judged {spec}: several graders ({pairs.name}), on scales that not all rows state; state "
            "them in a column scale, or give one grader's grades, who is named in a column model of all rows"
        )
    return _each_once(pairs, of_each)


def _each_once(pairs: PairSet, graders: Sequence[str]) -> PairSet:
    """Return distinct pairs, each with the mean of what its `graders` (B,) gave it, see `load_judged`."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, key in enumerate(pair_keys(pairs)):
        places.setdefault(key, []).append(place)
    found = pairs.take([same[0] for same in places.values()], pairs.name)
    differ = 0
    for number, same in enumerate(places.values()):
        if np.ptp(pairs.score[same]) > 0:
            differ += 1
            by_grader: dict[str, list[float]] = {}
            for place in same:
                by_grader.setdefault(graders[place], []).append(float(pairs.score[place]))
            found.score[number] = _mean([_mean(grades) for grades in by_grader.values()])
    if differ:
        repeated = counted(differ, "pair")
        log.warning(
            "warning: %s: %s with several grades that differ; their mean counts", pairs.name, repeated
        )
    return found


def _mean(grades: Sequence[float]) -> float:
    return math.fsum(grades) / len(grades)  # exact, so that the order makes no difference


def _rows(spec: str) -> Rows:
    if not any((Path(spec) / name).is_file() for name in ("run.json", "scores.jsonl")):
        return read_rows(spec, "train")
    return read_table(results_file(Path(spec), "scores.jsonl", "llm-score"))


def match_judged(
    spec: str, graded: PairSet, elsewhere: Sequence[PairSet] = (), judged: PairSet | None = None
) -> JudgedPairs:
    """Return what a language model says of the pairs that people `graded`, and of others of their kind.

    Pairs that serve `elsewhere`, to train, choose or test, are left out of the others, as they would flatter.
    `judged` is what `load_judged` gave for `spec`, if that was called before.

    Raises:
        InputError: No pair has both grades, or the language model graded no others.
    """
    judged = load_judged(spec) if judged is None else judged
    keys = pair_keys(judged)
    known = dict(zip(keys, judged.score.tolist(), strict=True))
    own = pair_keys(graded)
    grades = np.array([known.get(key, np.nan) for key in own])
    both = int((~np.isnan(grades)).sum())
    draw = f"angle-data grade {shlex.quote(spec)} --out more.csv"
    if not both:
        said = f"none of its {len(judged):,} pairs is among the {len(graded):,} of {graded.name}"
        raise InputError(f"--judged {spec}: {said}; grade some of its pairs: {draw}")
    taken, used = set(own), {key for pairs in elsewhere for key in pair_keys(pairs)}
    alone = [number for number, key in enumerate(keys) if key not in taken]
    rest = judged.take([number for number in alone if keys[number] not in used], judged.name)
    rest = replace(rest, roles=graded.roles)
    if left := len(alone) - len(rest):
        log.info("%s: %s left out: they train, choose or test", judged.name, counted(left, "judged pair"))
    if not len(rest):
        if left:
            said = f"{judged.name} alone graded {left:,} pairs, and all of them train, choose or test here"
            mend = "take some out of --data, --dev and --teacher-pairs, or have others graded with"
        else:
            said, mend = f"it grades no pairs beyond those of {graded.name}", "have more pairs graded with"
        raise InputError(f"--judged {spec}: {said}; {mend} `angle-data llm-score`")
    log.info(
        "%s: %s graded %d of the %d pairs, and %s more",
        graded.name,
        judged.name,
        both,
        len(graded),
        counted(len(rest), "pair"),
    )
    return JudgedPairs(judged.name, grades, rest)


def holds_any(judged: PairSet, graded: PairSet) -> bool:
    """Return whether a language model graded any of the pairs that people `graded`."""
    return not set(pair_keys(judged)).isdisjoint(pair_keys(graded))


def halves(judged: PairSet) -> tuple[PairSet, PairSet]:
    """Return two halves of pairs, by hash: what chooses does not measure."""
    keys = pair_keys(judged)
    order = sorted(range(len(judged)), key=lambda place: (stable_hash("\0".join(keys[place])), keys[place]))
    middle = len(judged) // 2
    first, second = (judged.take(sorted(part), judged.name) for part in (order[:middle], order[middle:]))
    return first, second
