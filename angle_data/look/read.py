"""Rows of any run, ensemble, data set or file of pairs as items, and a sample spread over their kinds."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.tables import TABLE_KINDS, is_table, read_table
from angle_data.text import stable_hash

BANDS = 5
"""Equal parts of the range of scores."""

_TEXTS = (("text1", "text2"), ("sentence1", "sentence2"), ("source", "text"))
_FACTS = ("score", "label", "weight", "supervision", "evidence")


@dataclass(frozen=True, slots=True)
class Item:
    """One candidate, pair, or part of a reply that was dropped.

    `kind` is `kept`, `flipped` or `rejected`; `group` what was asked for (polarity, degree) or how the pair
    was made, empty where the data do not say; `reason` the code of a rejection; `flags` notes on what is
    kept; `facts` the columns of numbers and the like; `raw` the whole reply, empty where it is `text2`.
    """

    kind: str
    group: str
    text1: str
    text2: str
    reason: str
    flags: tuple[str, ...]
    annotators: tuple[str, ...]
    facts: Mapping[str, Any]
    raw: str

    @property
    def marks(self) -> tuple[str, ...]:
        """What `--reason` finds the item by."""
        return (self.kind, *self.flags, *([self.reason] if self.reason else []))

    @property
    def score(self) -> float | None:
        """The score of the pair, else its label as a number, on the data's own scale."""
        for name in ("score", "label"):
            try:
                return float(self.facts[name])
            except (KeyError, TypeError, ValueError):
                continue
        return None


@dataclass(frozen=True, slots=True)
class Source:
    """What can be looked at: `what` it is, the files of its rows, and what its reason codes mean."""

    path: Path
    what: str
    files: tuple[Path, ...]
    reasons: Mapping[str, str]

    def items(self) -> Iterator[Item]:
        """Yield every row in the order of the files.

        Raises:
            InputError: A row holds no two texts.
        """
        for file in self.files:
            split = file.name.split("-")[0] if file.suffix == ".parquet" else ""
            for place, row in read_table(file):
                yield _item(row, place, split)


@dataclass(slots=True)
class Counts:
    """How many items there are of each kind, mark, group and annotator, and the range of their scores."""

    kinds: Counter[str]
    marks: Counter[tuple[str, str]]
    groups: Counter[tuple[str, str]]
    annotators: Counter[str]
    low: float
    high: float

    def band(self, item: Item) -> int:
        """Return the part of the range of scores, 0 to `BANDS` - 1, that an item is in; -1 without score."""
        if item.score is None:
            return -1
        width = self.high - self.low
        return min(int(BANDS * (item.score - self.low) / width), BANDS - 1) if width else 0


def find(path: Path) -> Source:
    """Return what stands at `path`; nothing but its names is read.

    Raises:
        InputError: It is no run, ensemble, data set or table; the message says what to do.
    """
    if not path.is_dir():
        if path.exists() and not is_table(path):
            raise InputError(f"{path}: unknown kind of file; give a folder, or {TABLE_KINDS}")
        return Source(path, "pairs of a file", (path,), {})
    rejected = (path / "rejected.jsonl",) if (path / "rejected.jsonl").is_file() else ()
    for name, command in (("candidates", "llm-label"), ("scores", "llm-score")):
        if (file := path / f"{name}.jsonl").is_file():
            state = " (unfinished)" if _json(path / "run.json").get("finished") is False else ""
            return Source(path, f"run of {command}{state}", (file, *rejected), {})
    for home in (path / "dataset" / "data", path / "data", path):
        if files := tuple(sorted(home.glob("*.parquet"))):
            reasons = _json(path / "report.json").get("reasons") if rejected else None
            what = "ensemble" if rejected else "data set"
            return Source(path, what, (*files, *rejected), reasons if isinstance(reasons, dict) else {})
    if (path / "journal.jsonl").is_file() or (path / "run.json").is_file():
        raise InputError(
            f"{path} is a run that was cut off before it wrote its results; run its command again"
        )
    raise InputError(
        f"{path} is no run or data set; give a folder of llm-label, llm-score, ensemble or gis, or a file"
    )


def count(source: Source) -> Counts:
    """Return the counts of a source.

    Raises:
        InputError: The source holds nothing, or a row is malformed.
    """
    found = Counts(Counter(), Counter(), Counter(), Counter(), float("inf"), float("-inf"))
    for item in source.items():
        found.kinds[item.kind] += 1
        found.marks.update((item.kind, mark) for mark in item.marks[1:] if mark != item.kind)
        found.groups[item.kind, item.group] += 1
        found.annotators.update(item.annotators)
        if (score := item.score) is not None:
            found.low, found.high = min(found.low, score), max(found.high, score)
    if not found.kinds:
        fix = (
            "; look at run.json for what went wrong, and run its command again"
            if "run" in source.what
            else ""
        )
        raise InputError(
            f"{source.path} ({source.what}) is empty: nothing was kept and nothing rejected{fix}"
        )
    return found


def spread(
    items: Iterator[Item],
    stratum: Callable[[Item], tuple[Any, ...]],
    rank: Callable[[Item], Any],
    most: int,
    accept: Callable[[Item], bool] = lambda item: True,
) -> Iterator[Item]:
    """Yield items alternately from the strata, in each by `rank`, as long as they last.

    Of strata (kind, group), say, kinds alternate, and within each kind its groups. All are read first, but
    only the `most` of a stratum with the lowest ranks stay in memory. `accept` is asked when an item's turn
    comes, so it may depend on what was taken before.
    """
    drawn: dict[tuple[Any, ...], list[tuple[Any, int, Item]]] = {}
    for number, item in enumerate(items):
        found = drawn.setdefault(stratum(item), [])
        found.append((rank(item), number, item))
        if len(found) > 2 * most:
            found[:] = nsmallest(most, found)
    lists = {key: [item for *_, item in nsmallest(most, found)] for key, found in sorted(drawn.items())}
    return _alternate(lists, accept)


def _alternate(groups: dict[tuple[Any, ...], list[Item]], accept: Callable[[Item], bool]) -> Iterator[Item]:
    if () in groups:
        yield from filter(accept, groups[()])
        return
    parts: dict[Any, dict[tuple[Any, ...], list[Item]]] = {}
    for key, items in groups.items():
        parts.setdefault(key[0], {})[key[1:]] = items
    queues = deque(_alternate(part, accept) for part in parts.values())
    while queues:
        queue = queues.popleft()
        for item in queue:
            yield item
            queues.append(queue)
            break


def by_source(seed: int) -> Callable[[Item], tuple[int, int]]:
    """Return a rank under which every stratum begins with the same first texts, each once, then each again.

    So what was kept and what was rejected of a text tend to be drawn together.
    """
    seen: Counter[int] = Counter()

    def rank(item: Item) -> tuple[int, int]:
        kind = stable_hash(f"{item.marks} {item.group} {item.text1}")
        seen[kind] += 1
        return seen[kind], stable_hash(f"{seed} look {item.text1}")

    return rank


def _item(row: dict[str, Any], place: str, split: str) -> Item:
    names = next((names for names in _TEXTS if all(isinstance(row.get(name), str) for name in names)), None)
    if names is None and "hash1" in row:
        raise InputError(f"{place}: ids without texts; `angle-data gis rehydrate` fetches them")
    if names is None:
        needed = "; ".join(" and ".join(names) for names in _TEXTS)
        raise InputError(f"{place}: no two texts; fields found: {', '.join(map(str, row))}; needed: {needed}")
    flags = tuple(row.get("flags") or ()) if not isinstance(row.get("flags"), str) else (row["flags"],)
    reason, raw = str(row.get("reason") or ""), str(row.get("raw") or "")
    kind = "rejected" if reason else "flipped" if "flipped" in flags else "kept"
    models = row.get("models") if isinstance(row.get("models"), list) else [row.get("model")]
    degree = f"degree {row['degree']}" if row.get("degree") else ""
    facts = {name: row[name] for name in _FACTS if row.get(name) not in (None, "")}
    return Item(
        kind=kind,
        group=str(row.get("polarity") or degree or row.get("kind") or row.get("supervision") or ""),
        text1=row[names[0]],
        text2=row[names[1]],
        reason=reason,
        flags=tuple(map(str, flags)),
        annotators=tuple(str(model) for model in models or () if model),
        facts=facts | ({"split": split} if split else {}),
        raw=raw if raw != row[names[1]] else "",
    )


def _json(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file, empty where there is none to be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
