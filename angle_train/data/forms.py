"""Pairs in any form that people hold them in, as what `angle_data.calling.rows.sources` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from angle_data.errors import InputError

_SPLITS = {"train": "train", "validation": "dev", "dev": "dev", "test": "test"}


class GivenSplits(NamedTuple):
    """Pairs that were given as one, by what they are for; None where there are none."""

    train: Any
    dev: Any = None
    test: Any = None


def splits_in(value: Any) -> GivenSplits:
    """Return the splits of a `DatasetDict`, or of a mapping with such names; other pairs are to train on.

    Raises:
        InputError: It has no split `train`.
    """
    if not isinstance(value, Mapping):
        return GivenSplits(with_names(value))
    found = {_SPLITS[name]: with_names(part, name) for name, part in value.items() if name in _SPLITS}
    if "train" not in found:
        raise InputError(
            f"data: a {type(value).__name__} without a split train, with {', '.join(map(str, value))}; give "
            "one part of it"
        )
    return GivenSplits(**found)


def with_names(value: Any, name: str = "data") -> Any:
    """Return rows that are tuples as dictionaries, and anything else as it is.

    Two texts and a number are a scored pair; two texts are a positive pair; more are an anchor, its positive
    and its negatives.

    Args:
        value: Pairs in any form.
        name: What errors call them.

    Raises:
        InputError: A tuple is none of these.
    """
    if not isinstance(value, list | tuple) or not value or not isinstance(value[0], tuple):
        return value
    return [_named(row, f"{name}: item {number}") for number, row in enumerate(value, start=1)]


def _named(row: Any, place: str) -> dict[str, Any]:
    if isinstance(row, tuple) and len(row) > 1:
        *texts, last = row
        if all(isinstance(text, str) for text in row):
            negatives = {f"negative_{place}": text for place, text in enumerate(row[2:], start=1)}
            return {"anchor": row[0], "positive": row[1], **negatives}
        if len(texts) == 2 and all(isinstance(text, str) for text in texts) and not isinstance(last, str):
            return {"text1": texts[0], "text2": texts[1], "score": last}
    raise InputError(
        f"{place} is {row!r:.80}; give (text, text, score), (text, text) or (anchor, positive, negative, …)"
    )
