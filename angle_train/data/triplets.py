"""Rows of an anchor, a positive and negatives as rows of scored pairs.

Knows the columns of such files, not where they come from; files of scored pairs pass through unchanged.
"""

from __future__ import annotations

import re
from typing import Any

from angle_data.errors import InputError
from angle_data.text import normalise

Item = tuple[str, dict[str, Any]]
"""Where a row stands, and the row."""

_PAIRED = (("anchor", "positive"), ("query", "positive"))  # columns of positives alone
_ANCHORS = ("anchor", "query", "text1", "sentence1")
_POSITIVES = ("positive", "text2", "sentence2")
_NEGATIVE = re.compile(r"negative(?:_\d+)?")
_KEPT = ("split", "weight")


def pairs_of_triplets(items: list[Item]) -> list[Item]:
    """Return rows `text1, text2, score, source_id`: the positive scored 1 and every negative scored 0.

    Rows of triplets have a column `negative` or `negative_1`, `negative_2` … and no score or label; the first
    row decides what all are. The pairs of one anchor have one source, and a pair that several rows hold comes
    once. Negatives after the first may be missing; beside `anchor` or `query` and `positive` there need be
    none at all.

    Raises:
        InputError: A row lacks its anchor, its positive or all negatives.
    """
    first = items[0][1] if items else {}
    negatives = [name for name in first if _NEGATIVE.fullmatch(str(name))]
    paired = any(first.keys() >= set(columns) for columns in _PAIRED)
    if not (negatives or paired) or {"score", "label"} & first.keys():
        return items
    anchor, positive = (_column(names, items[0]) for names in (_ANCHORS, _POSITIVES))
    found: dict[tuple[str, str, int], Item] = {}
    for place, row in items:
        present = [name for name in negatives if not _blank(row.get(name))]
        if negatives and not present:
            raise InputError(f"{place}: {negatives[0]} must be a text that is not blank; remove the row")
        text = _text(row, anchor, place)
        shared = {"source_id": str(row.get("source_id") or normalise(text))}
        shared |= {key: row[key] for key in _KEPT if key in row}
        for name, score in [(positive, 1), *((name, 0) for name in present)]:
            partner = _text(row, name, place)
            pair = {"text1": text, "text2": partner, "score": score} | shared
            found.setdefault((text, partner, score), (place, pair))
    return list(found.values())


def _column(names: tuple[str, ...], item: Item) -> str:
    place, row = item
    column = next((name for name in names if name in row), None)
    if column is None:
        raise InputError(
            f"{place}: a row with negatives needs a column {', '.join(names[:-1])} or {names[-1]}; "
            f"found: {', '.join(map(str, row))}"
        )
    return column


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _text(row: dict[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{place}: {column} must be a text that is not blank, got {value!r}; remove the row")
    return value
