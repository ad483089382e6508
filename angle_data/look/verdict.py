"""Labels checked by people: a random sample of pairs to judge, and the error rate that the verdicts give.

Whoever judges sees two texts, neither label nor kind. A verdict finds its pair again by the texts.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.look.grade import Drawn, text_key
from angle_data.look.read import ShownItem, find, items_of
from angle_data.look.show import check_ending
from angle_data.tables import read_table
from angle_data.text import pair_key, stable_hash

FILE = "verdicts"
"""What the page calls the file of the verdicts, where grades have `dev` and `test`."""

_VERDICTS = {said[:end]: said for said in ("duplicate", "not", "unsure") for end in (1, None)}
_LABELS = {"duplicate": 1, "not": 0}
_Z = 1.959964  # the 97.5 % point of the normal distribution


def draw_labelled(data: Path, *, n: int, seed: int = 0) -> Drawn:
    """Return a simple random sample of the labelled pairs of `data`, in an order that tells nothing."""
    if n < 1:
        raise InputError(f"--n must be at least 1, got {n}")
    keyed = ((stable_hash("\n".join((f"{seed} verdict", *text_key(item)))), item) for item in _labelled(data))
    drawn = nsmallest(n, keyed, key=lambda row: row[0])
    return tuple((item.text1.strip(), item.text2.strip(), FILE) for _, item in drawn)


def error_rates(data: Path, sheet: Path) -> list[dict[str, Any]]:
    """Return how many labels of `data` the verdicts in `sheet` contradict: of all pairs, then by kind.

    `rate` is the share of wrong labels among the pairs that are decided (`duplicate` or `not`), `low` and
    `high` are its 95 % Wilson interval. An `InputError` if a verdict cannot be read, belongs to no pair of
    `data`, or if there is none.
    """
    check_ending("--finish", sheet, ".csv")
    known = {text_key(item): (item.facts["label"], item.group) for item in _labelled(data)}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for place, row in read_table(sheet, require=("sentence1", "sentence2", "verdict")):
        if not (said := row["verdict"].strip().lower()):
            continue
        if said not in _VERDICTS:
            raise InputError(f"{place}: verdict must be duplicate, not or unsure, got {row['verdict']!r}")
        # What a sheet puts before a formula is no letter, so the key is the same.
        pair = known.get(pair_key(row["sentence1"], row["sentence2"]))
        if pair is None:
            raise InputError(
                f"{place}: no pair of {data} has these texts; give the data set it was drawn from"
            )
        label, kind = pair
        verdict = _VERDICTS[said]
        found = verdict if verdict == "unsure" else "right" if _LABELS[verdict] == label else "wrong"
        for name in dict.fromkeys(("all", kind or "other")):
            counts[name][found] += 1
    if not counts:
        raise InputError(f"{sheet}: no verdicts yet; write duplicate, not or unsure into the column verdict")
    return [_rate(kind, counts[kind]) for kind in ("all", *sorted(counts.keys() - {"all"}))]


def rates_table(rates: list[dict[str, Any]]) -> str:
    """Return error rates as lines of text."""
    width = max(len("pairs"), *(len(rate["kind"]) for rate in rates))
    lines = [f"{'pairs':<{width}}  {'read':>5}  {'wrong':>5}  {'unsure':>6}  error rate (95 %)"]
    for rate in rates:
        share = "{rate:.1%} ({low:.1%} to {high:.1%})".format(**rate)
        shown = share if rate["read"] > rate["unsure"] else "unknown: all unsure"
        lines.append(
            "{kind:<{width}}  {read:>5}  {wrong:>5}  {unsure:>6}  ".format(**rate, width=width) + shown
        )
    return "\n".join(lines)


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927, https://doi.org/10.2307/2276774)."""
    if total == 0:
        return 0.0, 1.0
    share, spread = hits / total, _Z**2 / total
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def _rate(kind: str, counts: Counter[str]) -> dict[str, Any]:
    wrong, decided = counts["wrong"], counts["wrong"] + counts["right"]
    low, high = wilson(wrong, decided)
    row = {"kind": kind, "read": counts.total(), "wrong": wrong, "unsure": counts["unsure"]}
    return row | {"rate": wrong / decided if decided else 0.0, "low": low, "high": high}


def _labelled(data: Path) -> Iterator[ShownItem]:
    """The kept pairs of a data set, which must all have a label of 0 or 1."""
    for item in items_of(find(data)[1]):
        if item.kind != "rejected":
            if item.facts.get("label") not in (0, 1):
                raise InputError(f"{data}: --verdict needs a label of 0 or 1 for each pair")
            yield item
