"""Which columns of a row hold its two texts, its score and its class: the usual names, for all readers.

`fit` and `eval --pairs` read scored pairs by them, and the evaluation tasks their own data. What is
not as a function says is an InputError that names the `place` of the row. Imports no torch.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from angle_data.errors import InputError
from angle_data.tables import PAIR_COLUMNS
from angle_data.text import whole_characters

Row = Mapping[str, Any]

INFERENCE = (("premise", "hypothesis"), ("question", "sentence"))
"""Names of texts whose labels are classes of inference, not grades: in their numbers 0 is entailment."""
TEXTS = (
    *PAIR_COLUMNS,
    ("question1", "question2"),
    ("sentence_A", "sentence_B"),
    *INFERENCE,
)
SCORES = ("score", "relatedness_score", "similarity_score", "label", "is_duplicate")
"""Names of the gold score, or of the class of a pair; the first that a row has counts."""
CLASSES = ("label", "coarse_label", "is_duplicate")
"""Names of the class of a text or of a pair; the first with a value counts."""

_WHOLE_NUMBER = re.compile(r"([+-]?\d+)(?:\.0*)?")
_SHEET = {"sentence1", "sentence2", "score", "split"}  # of `angle-data grade`
_TRUTH = {"true": "1", "false": "0"}


def names_of(row: Row) -> str:
    """Return the names of a row's columns, for errors."""
    return ", ".join(map(str, row)) or "none"


def text_columns(row: Row) -> tuple[str, str] | None:
    """Return the names of the columns of both texts, if the row has them."""
    return next((names for names in TEXTS if names[0] in row and names[1] in row), None)


def score_column(row: Row) -> str | None:
    """Return the name of the column of the score, or else of the class, if the row has one."""
    return next((name for name in SCORES if name in row), None)


def pair_in(row: Row, place: str) -> tuple[str, str]:
    """Return the two texts of a row, whichever of the usual names they have."""
    names = text_columns(row)
    if names is None:
        raise InputError(
            f"{place}: no text columns {' or '.join(f'{a}, {b}' for a, b in TEXTS)}; found: {names_of(row)}"
        )
    return text_in(row, names[0], place), text_in(row, names[1], place)


def text_in(row: Row, column: str, place: str, *, blank: bool = True) -> str:
    """Return the text of a column; `blank` says whether it may be, as some texts of the standard sets are."""
    text = row.get(column)
    if not isinstance(text, str) or not (blank or text.strip()):
        kind = "a text" if blank else "a text that is not blank"
        raise InputError(f"{place}: {column} must be {kind}, got {text!r}; mend or remove the row")
    return whole_characters(text)


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


def number_in(row: Row, columns: Sequence[str], place: str) -> float:
    """Return the finite number in the first of `columns` that the row has."""
    column = next((name for name in columns if name in row), None)
    if column is None:
        raise InputError(f"{place}: no column {' or '.join(columns)}; found: {names_of(row)}")
    number = number_or_nan(row[column])
    if not math.isfinite(number):
        path = place.rpartition(":")[0]
        then = f"`angle-data grade --finish {shlex.quote(path)}` makes dev and test pairs"
        sheet = row.keys() == _SHEET and row["score"] == "" and path.endswith(".csv")
        mend = f"; fill in this sheet, then {then}" if sheet else ""
        raise InputError(f"{place}: {column} must be a number, got {row[column]!r}{mend}")
    return number


def number_or_nan(value: object) -> float:
    """Return a value as a number; NaN where it is none, or not finite."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan
