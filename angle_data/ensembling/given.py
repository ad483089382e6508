"""Pairs that no annotator was asked for, such as those mined among texts: rows if they are graded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from angle_data.calling.options import check_named_once
from angle_data.ensembling.read import Grades
from angle_data.ensembling.screen import gate
from angle_data.errors import InputError
from angle_data.records import Rejection
from angle_data.tables import TEXT_COLUMNS, read_table, text_of
from angle_data.text import pair_key


@dataclass(frozen=True, slots=True)
class GivenPair:
    """Two texts; `kind` is how the pair was found, or empty."""

    text1: str
    text2: str
    kind: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Its `text.pair_key`."""
        return pair_key(self.text1, self.text2)


def read_given(paths: Sequence[Path]) -> list[GivenPair]:
    """Read every row of the files of pairs, in an order that does not depend on theirs.

    Raises:
        InputError: A file cannot be read, is given twice or holds no pair, or a line has no two texts.
    """
    check_named_once(paths, "--pairs ")
    pairs: list[GivenPair] = []
    for path in paths:
        before = len(pairs)
        for where, row in read_table(path):
            names = next((names for names in TEXT_COLUMNS if names[0] in row), TEXT_COLUMNS[0])
            one, other = (text_of(row, name, where) for name in names)
            if one is None or other is None:
                raise InputError(
                    f"{where}: {names[0]} and {names[1]} must be strings; fields found: {', '.join(row)}"
                )
            pairs.append(GivenPair(one.strip(), other.strip(), str(row.get("kind") or "")))
        if len(pairs) == before:
            raise InputError(f"{path} holds no pairs; make some with `angle-data mine --out {path}`")
    return sorted(pairs, key=lambda pair: (pair.key, not pair.kind, pair.kind, pair.text1, pair.text2))


@dataclass(frozen=True, slots=True)
class GivenPairs:
    """The given pairs: those `kept`, each once, the rejections of the others, and the `keys` of all."""

    kept: list[GivenPair]
    dropped: list[Rejection]
    keys: frozenset[tuple[str, str]]

    def sift(self, judge: Callable[[GivenPair], str | None]) -> None:
        """Drop the kept pairs for which `judge` returns a reason."""
        reasons = [(pair, judge(pair)) for pair in self.kept]
        self.kept[:] = [pair for pair, reason in reasons if not reason]
        self.dropped.extend(
            Rejection("", pair.text1, None, pair.text2, "", "", reason, pair.text2)  # nobody was asked for it
            for pair, reason in reasons
            if reason
        )

    @property
    def counts(self) -> dict[str, int]:
        """The number of pairs kept, and dropped by reason; empty if none was given."""
        reasons = Counter(rejection.reason for rejection in self.dropped)
        return {"kept": len(self.kept), **dict(sorted(reasons.items()))} if self.keys else {}

    def notes(self) -> list[str]:
        """Return what to know about them, a line each, for the terminal and the card."""
        counts, total = self.counts, len(self.kept) + len(self.dropped)
        texts = {
            "ungraded": "have no grade that is used and are left out: `angle-data llm-score --pairs FILE`",
            "across_splits": "join texts of two splits and are left out: --ratios 1 keeps them",
        }
        return [
            f"{counts[name]} of {total} given pairs {text}" for name, text in texts.items() if name in counts
        ]


def screen_given(
    pairs: Sequence[GivenPair], grades: Grades, taken: Collection[tuple[str, str]]
) -> GivenPairs:
    """Keep the pairs that are graded; drop the others, those in `taken`, and repeated ones."""
    seen = set(taken)

    def judge(pair: GivenPair) -> str | None:
        reason = gate(pair.text1, pair.text2)
        if reason not in ("blank", "identical"):
            reason = "repeated" if pair.key in seen else None if grades.get(pair.key) else "ungraded"
        seen.add(pair.key)
        return reason

    found = GivenPairs(list(pairs), [], frozenset(pair.key for pair in pairs))
    found.sift(judge)
    return found
