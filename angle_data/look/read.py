"""Rows of any run, ensemble, data set or file of pairs as items, and a sample spread over their kinds."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from math import isfinite
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.folders import find_splits, refuse_stopped, split_of
from angle_data.records import read_run_file
from angle_data.tables import TABLE_KINDS, TEXT_COLUMNS, is_table, number_of, read_table

_BANDS = 5  # equal parts of the range of scores
_TEXTS = (*TEXT_COLUMNS, ("source", "text"))
_NEEDED = "; ".join(" and ".join(pair) for pair in _TEXTS)
_FACTS = ("score", "label", "weight", "supervision", "evidence")

Stratum = tuple[Any, ...]  # what a sample alternates between: its first parts, within each the next ones


@dataclass(frozen=True, slots=True)
class ShownItem:
    """One candidate, pair, or part of a reply that was dropped.

    `kind` is `kept`, `flipped` or `rejected`; `group` what was asked for (polarity, degree) or how the pair
    was made, empty where the data do not say; `marks` the reason of a rejection, or the flags of what is
    kept; `score` that of the pair, else its label, on the data's own scale; `facts` the columns to show;
    `raw` the whole reply, empty where it is `text2`.
    """

    kind: str
    group: str
    marks: tuple[str, ...]
    annotators: tuple[str, ...]
    text1: str
    text2: str
    raw: str
    score: float | None
    facts: Mapping[str, Any]


@dataclass(slots=True)
class Counts:
    """Items of each kind; of each kind with each group and mark; of each annotator; the range of scores."""

    kinds: Counter[str] = field(default_factory=Counter)
    parts: Counter[tuple[str, str]] = field(default_factory=Counter)
    annotators: Counter[str] = field(default_factory=Counter)
    low: float = float("inf")
    high: float = float("-inf")

    def band(self, item: ShownItem) -> int:
        """Return the part of the range of scores that an item is in, from 0; -1 if it has no score."""
        if item.score is None:
            return -1
        width = self.high - self.low
        return min(int(_BANDS * (item.score - self.low) / width), _BANDS - 1) if width else 0

    def band_name(self, item: ShownItem) -> str:
        """Return the scores of an item's part of the range, such as `0.2 to 0.4`."""
        step = (self.high - self.low) / _BANDS
        low = self.low + step * self.band(item)
        return "without score" if item.score is None else f"{round(low, 2):g} to {round(low + step, 2):g}"


def find(path: Path) -> tuple[str, tuple[Path, ...]]:
    """Return what stands at `path`, in words, and the files that hold its rows; nothing but names is read."""
    if not path.is_dir():
        if not is_table(path):
            said = f"{path} is neither a folder nor a file of pairs ({TABLE_KINDS})"
            raise InputError(f"{said}; check the path")
        return "pairs of a file", (path,)
    rejected = (path / "rejected.jsonl",) if (path / "rejected.jsonl").is_file() else ()
    for name, command in (("candidates.jsonl", "llm-label"), ("scores.jsonl", "llm-score")):
        if (path / name).is_file():
            state = " (unfinished)" if read_run_file(path).get("finished") is False else ""
            return f"run of {command}{state}", (path / name, *rejected)
    refuse_stopped(path)
    if files := tuple(file for part in find_splits(path).values() for file in part):
        return "ensemble" if rejected else "data set", (*files, *rejected)
    said = f"{path} is not a run or data set"
    raise InputError(f"{said}; give a folder written by llm-label, llm-score, ensemble or gis, or a file")


def items_of(files: Iterable[Path]) -> Iterator[ShownItem]:
    """Yield every row in the order of the files; an `InputError` where one holds no two texts."""
    for file in files:
        split = {"split": name} if file.suffix == ".parquet" and (name := split_of(file)) else {}
        for place, row in read_table(file):
            yield from (_item(pair, place, split) for pair in _pairs_in(row))


def _pairs_in(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs of a row: of one of `mine --negatives` its query with each passage, else the row."""
    query, negatives = row.get("query"), row.get("negatives")
    if not isinstance(negatives, list) or "positive" not in row:
        return [row]
    answer = {"text1": query, "text2": row["positive"], "label": 1, "kind": "answer"}
    return [answer, *({"text1": query, "text2": no, "label": 0, "kind": "negative"} for no in negatives)]


def count(files: Iterable[Path]) -> Counts:
    """Return the counts of what files hold; an `InputError` where that is nothing, or a row is malformed."""
    found = Counts()
    for item in items_of(files):
        found.kinds[item.kind] += 1
        found.parts.update((item.kind, part) for part in sorted({item.group, *item.marks} - {"", item.kind}))
        found.annotators.update(item.annotators)
        if item.score is not None:
            found.low, found.high = min(found.low, item.score), max(found.high, item.score)
    if not found.kinds:
        names = ", ".join(map(str, files))
        raise InputError(f"{names}: empty: nothing was kept and nothing was rejected")
    return found


def spread(
    items: Iterator[ShownItem],
    stratum: Callable[[ShownItem], Stratum],
    rank: Callable[[ShownItem], Any],
    most: int,
    accept: Callable[[ShownItem], bool] = lambda item: True,
) -> Iterator[ShownItem]:
    """Yield items alternately from the strata, in each by `rank`, as long as they last.

    All are read first, but only the `most` of a stratum with the lowest ranks stay in memory. `accept` is
    asked when an item's turn comes, so it may depend on what was taken before.
    """
    drawn: dict[Stratum, list[tuple[Any, int, ShownItem]]] = {}
    for number, item in enumerate(items):
        found = drawn.setdefault(stratum(item), [])
        found.append((rank(item), number, item))
        if len(found) > 2 * most:
            found[:] = nsmallest(most, found)
    return _alternate({key: [row[2] for row in nsmallest(most, drawn[key])] for key in sorted(drawn)}, accept)


def _alternate(
    groups: dict[Stratum, list[ShownItem]], accept: Callable[[ShownItem], bool]
) -> Iterator[ShownItem]:
    if () in groups:
        yield from filter(accept, groups[()])
        return
    parts: dict[Any, dict[Stratum, list[ShownItem]]] = {}
    for key, items in groups.items():
        parts.setdefault(key[0], {})[key[1:]] = items
    queues = deque(_alternate(part, accept) for part in parts.values())
    while queues:
        if item := next(queue := queues.popleft(), None):
            yield item
            queues.append(queue)


def _item(row: dict[str, Any], place: str, split: dict[str, str]) -> ShownItem:
    names = next((pair for pair in _TEXTS if all(isinstance(row.get(name), str) for name in pair)), None)
    if names is None:
        fix = "fetch them with `angle-data gis rehydrate`" if "hash1" in row else f"needed: {_NEEDED}"
        raise InputError(f"{place}: no two texts; fields found: {', '.join(map(str, row))}; {fix}")
    reason = row.get("reason")
    flags = row.get("flags")
    models = row.get("models") or [row.get("model")]
    marks = (reason,) if reason else flags if isinstance(flags, list) else ()
    degree = f"degree-{row['degree']}" if row.get("degree") else ""
    facts = {name: row[name] for name in _FACTS if row.get(name) not in (None, "")}
    return ShownItem(
        kind="rejected" if reason else "flipped" if "flipped" in marks else "kept",
        group=str(row.get("polarity") or degree or row.get("kind") or row.get("supervision") or ""),
        marks=tuple(map(str, marks)),
        annotators=tuple(str(model) for model in models if model) if isinstance(models, list) else (),
        text1=row[names[0]],
        text2=row[names[1]],
        raw=raw if (raw := str(row.get("raw") or "")) != row[names[1]] else "",
        score=_score(row),
        facts=facts | split,
    )


def _score(row: dict[str, Any]) -> float | None:
    numbers = (number_of(row.get(name)) for name in ("score", "label"))
    return next((number for number in numbers if isfinite(number)), None)
