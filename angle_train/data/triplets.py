"""Rows of anchors, positives and negatives, turned into rows of scored pairs.

Imports no torch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from angle_data.errors import InputError
from angle_data.text import normalise
from angle_train.data.sources import Item, Row, names_of, score_column, text_in

_PAIRED = (("anchor", "positive"), ("query", "positive"), ("query", "pos"))  # columns of positives alone
_ANCHORS = ("anchor", "query", "text1", "sentence1")
_POSITIVES = ("positive", "positives", "pos", "text2", "sentence2")
_NEGATIVE = re.compile(r"neg|negatives|negative(?:_\d+)?")


def pairs_of_triplets(items: list[Item]) -> list[Item]:
    """Return rows `text1, text2, score, source_id`: every positive scored 1 and every negative scored 0.

    Rows of triplets have a column `negative`, or `negative_1`, `negative_2` …, or lists of texts, as `pos`
    and `neg` of FlagEmbedding, and no score or label; the first row decides what all are, and rows of scored
    pairs pass through unchanged. The pairs of one anchor have one source, and a pair that several rows hold
    comes once. Negatives after the first may be missing, and a list of them be empty; beside `anchor` or
    `query` and positives there need be none at all.

    Raises:
        InputError: A row lacks its anchor, its positive or all negatives.
    """
    first = items[0][1] if items else {}
    negatives = [name for name in first if _NEGATIVE.fullmatch(str(name))]
    paired = any(first.keys() >= set(columns) for columns in _PAIRED)
    if not (negatives or paired) or score_column(first):
        return items
    anchor, positive = (_triplet_column(names, items[0]) for names in (_ANCHORS, _POSITIVES))
    found: dict[tuple[str, str, int], Item] = {}
    for place, row in items:
        text = text_in(row, anchor, place, blank=False)
        shared = {"source_id": str(row.get("source_id") or normalise(text))}
        shared |= {key: row[key] for key in ("split", "weight") if key in row}
        for partner, score in _partners(row, positive, negatives, place):
            pair = {"text1": text, "text2": partner, "score": score} | shared
            found.setdefault((text, partner, score), (place, pair))
    return list(found.values())


def _partners(row: Row, positive: str, negatives: Sequence[str], place: str) -> list[tuple[str, int]]:
    """Return the positives of a row with 1, and then its negatives with 0."""
    present = [
        name for name in negatives if isinstance(row.get(name), list) or str(row.get(name) or "").strip()
    ]
    if negatives and not present:
        raise InputError(f"{place}: {negatives[0]} must be a text that is not blank; remove the row")
    positives = _texts(row, positive, place)
    if not positives:
        raise InputError(f"{place}: {positive} holds no text; remove the row")
    opposed = [text for name in present for text in _texts(row, name, place)]
    return [(text, 1) for text in positives] + [(text, 0) for text in opposed]


def _texts(row: Row, column: str, place: str) -> list[str]:
    """Return the texts of a cell that holds one, or a list of them."""
    cell = row.get(column)
    cells = cell if isinstance(cell, list) else [cell]
    return [text_in({column: text}, column, place, blank=False) for text in cells]


def _triplet_column(names: Sequence[str], item: Item) -> str:
    place, row = item
    column = next((name for name in names if name in row), None)
    if column is None:
        raise InputError(
            f"{place}: a row with negatives needs a column {', '.join(names[:-1])} or {names[-1]}; "
            f"found: {names_of(row)}"
        )
    return column
