"""The class of a row of the papers' tasks, one way of writing for each."""

from __future__ import annotations

import re

from angle_data.errors import InputError
from angle_train.data.sources import Row

CLASSES = ("label", "coarse_label", "is_duplicate")
"""Names of the class of a text or of a pair; the first with a value counts."""

_WHOLE_NUMBER = re.compile(r"([+-]?\d+)(?:\.0*)?")
_TRUTH = {"true": "1", "false": "0"}


def class_in(row: Row, place: str) -> str:
    """Return the class of a row, one way of writing for each.

    1, 1.0, true, "1", "1.0" and "True" are all class `1`: one kind of file writes numbers where another
    writes text, and a column with gaps makes fractions of whole numbers. Other fractions are none.
    """
    column = next((name for name in CLASSES if row.get(name) is not None), CLASSES[0])
    value = row.get(column)
    written = str(value).strip() if isinstance(value, str | bool | int | float) else ""
    number = _WHOLE_NUMBER.fullmatch(written)
    if number:
        return str(int(number[1]))
    if not written or isinstance(value, float):
        raise InputError(f"{place}: {column} must be a class, got {value!r}")
    return _TRUTH.get(written.lower(), written)
