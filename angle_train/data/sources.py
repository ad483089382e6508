"""Rows from files, dataset directories and the Hugging Face hub, each with its place, and their columns.

A source is a file or folder that `angle_data.tables` reads, or `hub:ID`. Texts and score stand in columns
with one of the usual names, the same for all readers: `fit` and `eval --pairs` read scored pairs by them, the
evaluation tasks their own data. What a function does not find is an InputError that names the `place` of the
row. Imports no torch.
"""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.folders import file_of_grades, splits_of
from angle_data.jsonl import loads
from angle_data.records import PURPOSES, read_run_file
from angle_data.tables import (
    HUB_PREFIX,
    TABLE_KINDS,
    TEXT_COLUMNS,
    Rows,
    is_table,
    load_hub_dataset,
    number_of,
    read_table,
    read_texts,
    text_of,
)

log = logging.getLogger("angle.pairs")

Row = Mapping[str, Any]
Item = tuple[str, dict[str, Any]]
"""The place of a row, for error messages, and the row."""

SCORES = ("score", "relatedness_score", "similarity_score", "label", "gold_label", "is_duplicate")
"""Names of the gold score, or of the class of a pair; the first that a row has counts."""
_LINES = (".txt", ".txt.gz")  # a text a line
_SHEET = {"sentence1", "sentence2", "score", "split"}  # of `angle-data grade`


def read_rows(spec: str, split: str, *, texts: bool = False) -> Rows:
    """Yield `(place, row)` of every row, where place is `file:line` or `file: row N`.

    Args:
        spec: A file, a dataset directory or a run of `llm-score` (see `angle_data.folders.splits_of`), or
            `hub:ID` for a dataset on the Hugging Face hub.
        split: Which split of a directory or hub dataset; files, and directories without splits, have none.
        texts: Whether it may hold texts alone, and be a .txt[.gz], whose lines are read as `text`.

    Raises:
        InputError: The source is missing, damaged, of an unknown kind, or lacks the split.
    """
    check_source(spec, texts=texts)
    path = Path(spec)
    if texts and spec.lower().endswith(_LINES) and path.is_file():
        return (item for item in read_texts(path, "text", "id", (), "") if item[1]["text"].strip())
    if spec.startswith(HUB_PREFIX):
        log.info("loading %s (split %s) from the hub", spec.removeprefix(HUB_PREFIX), split)
        rows = load_hub_dataset(spec.removeprefix(HUB_PREFIX), split)
        return ((f"{spec}: row {number}", dict(row)) for number, row in enumerate(rows, start=1))
    return read_table(path, split=split)


def check_source(spec: str, *, texts: bool = False) -> None:
    """Raise an InputError unless `read_rows` can read a source, as far as its name says; asks no hub."""
    path = Path(spec)
    is_lines = spec.lower().endswith(_LINES)
    if spec.startswith(HUB_PREFIX):
        return
    if path.is_dir():
        splits_of(path)
    elif not path.exists():
        hub = "" if is_table(path) or is_lines else ", or write hub:ID for a dataset on the hub"
        raise InputError(f"{path} does not exist; check the path{hub}")
    elif not (is_table(path) or (texts and is_lines)):
        lines = ", or .txt[.gz] (one text per line)" if texts else ""
        project = f"`angle-data start {shlex.quote(spec)}` has a model write pairs for the texts"
        hint = (
            f"; {project}, and fit --keep and fit --teacher-pairs take them as they are" if is_lines else ""
        )
        raise InputError(f"{path}: unknown kind of file; give {TABLE_KINDS}{lines}{hint}")


def warn_if_unfinished(spec: str) -> None:
    """Warn of a run of `llm-score` that has not graded all its pairs yet."""
    if not spec.startswith(HUB_PREFIX) and read_run_file(Path(spec)).get("finished") is False:
        log.warning("warning: %s is not finished; the pairs that it has graded so far are used", spec)


def is_dataset(spec: str) -> bool:
    """Return whether a source has splits: whether it is a hub dataset, or a directory with splits."""
    return spec.startswith(HUB_PREFIX) or bool(dataset_splits(spec))


def dataset_splits(spec: str) -> list[str]:
    """Return the names of the splits of a dataset directory or hub dataset, sorted; none if it has none."""
    if spec.startswith(HUB_PREFIX):
        return sorted(load_hub_dataset(spec.removeprefix(HUB_PREFIX), None))
    return [name for name in splits_of(Path(spec)) if name] if Path(spec).is_dir() else []


def stated_purpose(spec: str) -> str | None:
    """Return what a source says its pairs are for, see `records.PURPOSES`; None if it does not.

    `angle-data ensemble --purpose` writes it into every row, and the first one is read: files may be large.
    """
    splits = dataset_splits(spec) or ["train"]
    _, row = next(iter(read_rows(spec, "train" if "train" in splits else splits[0])), ("", {}))
    purpose = row.get("purpose")
    return purpose if purpose in PURPOSES else None


def labels_usd(spec: str) -> float:
    """Return what the labels of a dataset directory cost, by the report beside it; 0 if that is not known.

    That is what annotators' runs and graders' together cost: a part of it would understate them. Of a run of
    `llm-score` alone nothing is known of what its texts cost.
    """
    if spec.startswith(HUB_PREFIX) or not Path(spec).is_dir() or file_of_grades(Path(spec)):
        return 0.0
    folder = Path(spec)
    beside = folder if (folder / "dataset").is_dir() else folder.parent
    try:
        report = loads((beside / "report.json").read_text(encoding="utf-8"))
        paid = [*report["runs"], *([report["scores"]] if "scores" in report else [])]
        costs = [run["usd"] for run in paid]
    except (OSError, ValueError, LookupError, TypeError):
        return 0.0
    return float(sum(costs))


def names_of(row: Row) -> str:
    """Return the names of a row's columns, for errors."""
    return ", ".join(map(str, row)) or "none"


def text_columns(row: Row) -> tuple[str, str] | None:
    """Return the names of the columns of both texts, if the row has them."""
    return next((names for names in TEXT_COLUMNS if names[0] in row and names[1] in row), None)


def score_column(row: Row) -> str | None:
    """Return the name of the column of the score, or else of the class, if the row has one."""
    return next((name for name in SCORES if name in row), None)


def pair_in(row: Row, place: str) -> tuple[str, str]:
    """Return the two texts of a row, whichever of the usual names they have."""
    names = text_columns(row)
    if names is None:
        known = " or ".join(f"{one}, {other}" for one, other in TEXT_COLUMNS)
        raise InputError(f"{place}: no text columns {known}; found: {names_of(row)}")
    return text_in(row, names[0], place), text_in(row, names[1], place)


def text_in(row: Row, column: str, place: str, *, blank: bool = True) -> str:
    """Return the text of a column; `blank` says whether it may be, as some texts of the standard sets are."""
    text = text_of(row, column, place)
    if text is None or not (blank or text.strip()):
        kind = "a text" if blank else "a text that is not blank"
        raise InputError(f"{place}: {column} must be {kind}, got {row.get(column)!r}; fix or remove the row")
    return text


def number_in(row: Row, columns: Sequence[str], place: str) -> float:
    """Return the finite number in the first of `columns` that the row has."""
    column = next((name for name in columns if name in row), None)
    if column is None:
        raise InputError(f"{place}: no column {' or '.join(columns)}; found: {names_of(row)}")
    number = number_of(row[column])
    if not math.isfinite(number):
        path = place.rpartition(":")[0]
        then = f"`angle-data grade --finish {shlex.quote(path)}` makes dev and test pairs"
        sheet = row.keys() == _SHEET and row["score"] == "" and path.endswith(".csv")
        mend = f"; fill in this sheet, then {then}" if sheet else ""
        raise InputError(f"{place}: {column} must be a number, got {row[column]!r}{mend}")
    return number
