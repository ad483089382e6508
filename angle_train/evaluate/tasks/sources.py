"""The rows of evaluation tasks, from a folder of the user's or from data sets on the hub.

A folder holds one folder a task with `SPLIT.jsonl.gz` (or .jsonl, .csv, .parquet). The functions at the end
find texts, classes and numbers in a row under the names that the usual data sets give them.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from angle_data.errors import InputError
from angle_data.tables import Rows, read_table
from angle_data.text import whole_characters
from angle_train.data.pairs import PairSet
from angle_train.data.sources import load_hub_dataset
from angle_train.evaluate.task import Source, TaskData

log = logging.getLogger("angle.evaluate")

SUFFIXES = (".jsonl.gz", ".jsonl", ".csv", ".parquet")
_PAIR_COLUMNS = (
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("sentence_A", "sentence_B"),
)
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)(?:\.0*)?")
_TRUTH = {"true": "1", "false": "0"}


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The user's folder: `ROOT/TASK/SPLIT.jsonl.gz`, or .jsonl, .csv, .parquet."""

    root: Path

    def has(self, data: TaskData, split: str) -> bool:
        """Return whether one of the files is there."""
        return self._file(data, split) is not None

    def rows(self, data: TaskData, split: str) -> Rows:
        """Yield `(file:line, row)` of the file.

        Raises:
            InputError: There is none, or it is damaged.
        """
        path = self._file(data, split)
        if path is None:
            wanted = self.root / data.folder / f"{split}{SUFFIXES[0]}"
            raise InputError(f"{wanted} does not exist (nor {', '.join(SUFFIXES[1:])}); put the data there")
        return read_table(path)

    def _file(self, data: TaskData, split: str) -> Path | None:
        paths = (self.root / data.folder / f"{split}{suffix}" for suffix in SUFFIXES)
        return next((path for path in paths if path.is_file()), None)


@dataclass(frozen=True, slots=True)
class Hub:
    """The Hugging Face hub, or its local cache."""

    def has(self, data: TaskData, split: str) -> bool:
        """Return whether the data set is known to have the split."""
        return data.hub is not None and split in data.hub.splits

    def rows(self, data: TaskData, split: str) -> Rows:
        """Yield `(hub:ID: row N, row)` of a split.

        Raises:
            InputError: The data set is not on the hub, has no such split, or cannot be loaded.
        """
        hub = data.hub
        if hub is None or split not in hub.splits:
            raise InputError(f"{data.folder} has no split {split} on the hub; give a folder with --data-dir")
        log.info("loading %s (split %s) from the hub", hub.id, hub.splits[split])
        rows = load_hub_dataset(
            hub.id,
            hub.splits[split],
            config=hub.config,
            revision=hub.revision,
            instead=", or give a folder with --data-dir",
        )
        # Decoding pictures takes longer than everything else.
        images = [name for name, kind in rows.features.items() if type(kind).__name__ == "Image"]
        rows = rows.remove_columns(images)
        return ((f"hub:{hub.id}: row {number}", dict(row)) for number, row in enumerate(rows, start=1))


def read_rows_of(source: Source, data: TaskData, split: str) -> list[tuple[str, dict[str, Any]]]:
    """Return all rows of a split with their places.

    Raises:
        InputError: The split is not there, cannot be read, or is empty.
    """
    rows = list(source.rows(data, split))
    if not rows:
        raise InputError(f"{data.folder}/{split}: no rows in it")
    return rows


def pair_set(name: str, rows: Sequence[tuple[str, Mapping[str, Any]]], scores: Sequence[float]) -> PairSet:
    """Return the text pairs of rows with the given scores, which stay on their own scale."""
    texts = [pair_in(row, place) for place, row in rows]
    first, second = [a for a, _ in texts], [b for _, b in texts]
    return PairSet(name, first, second, np.array(scores, np.float64), np.ones(len(rows)), scale="as given")


def pair_in(row: Mapping[str, Any], place: str) -> tuple[str, str]:
    """Return the two texts of a row, whichever of the usual names they have.

    Raises:
        InputError: The row has none of the names, or its value is no text.
    """
    names = next((names for names in _PAIR_COLUMNS if names[0] in row and names[1] in row), None)
    if names is None:
        found = ", ".join(map(str, row)) or "none"
        raise InputError(f"{place}: no columns text1, text2 or sentence1, sentence2; found: {found}")
    return text_in(row, names[0], place), text_in(row, names[1], place)


def text_in(row: Mapping[str, Any], column: str, place: str) -> str:
    """Return the text of a column; it may be empty, as some are in the standard sets.

    Raises:
        InputError: It is missing or no text.
    """
    text = row.get(column)
    if not isinstance(text, str):
        raise InputError(f"{place}: {column} must be a text, got {text!r}")
    return whole_characters(text)


def class_in(row: Mapping[str, Any], columns: Sequence[str], place: str) -> str:
    """Return the class that the first of `columns` that the row has names, one way of writing for each.

    1, 1.0, true, "1", "1.0" and "True" are all class `1`: one kind of file writes numbers where another
    writes text, and a column with gaps makes fractions of whole numbers.

    Raises:
        InputError: It has none, or its value is empty, a fraction or no single value.
    """
    column = next((name for name in columns if row.get(name) is not None), columns[0])
    value = row.get(column)
    written = str(value).strip() if isinstance(value, str | bool | int | float) else ""
    number = _WHOLE_NUMBER.fullmatch(written)
    if number:
        return str(int(number[1]))
    if not written or isinstance(value, float):
        raise InputError(f"{place}: {column} must be a class, got {value!r}")
    return _TRUTH.get(written.lower(), written)


def number_in(row: Mapping[str, Any], columns: Sequence[str], place: str) -> float:
    """Return the number of the first of `columns` that the row has.

    Raises:
        InputError: It has none, or its value is no finite number.
    """
    column = next((name for name in columns if name in row), None)
    if column is None:
        raise InputError(f"{place}: no column {' or '.join(columns)}; found: {', '.join(map(str, row))}")
    try:
        number = float(row[column])
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{place}: {column} must be a number, got {row[column]!r}")
    return number
