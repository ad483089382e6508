"""Rows of labelled pairs from any supported source, each with the place it came from for error messages.

Sources: .jsonl(.gz), .csv and .parquet files, dataset directories, `hub:ID`. Knows nothing about columns.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import open_text, read_jsonl

__all__ = ["HUB_PREFIX", "dataset_splits", "is_dataset", "read_rows"]

log = logging.getLogger("angle.pairs")

HUB_PREFIX = "hub:"
Rows = Iterator[tuple[str, dict[str, Any]]]


def read_rows(spec: str, split: str) -> Rows:
    """Yield `(place, row)` of every row, where place is `file:line` or `file:row N`.

    Args:
        spec: A file, a dataset directory (`DIR` or `DIR/dataset` holding `data/SPLIT-*.parquet`), or
            `hub:ID` for a dataset on the Hugging Face hub.
        split: Which split of a directory or hub dataset; files have none.

    Raises:
        InputError: The source is missing, damaged, of an unknown kind, or lacks the split.
    """
    path = Path(spec)
    if spec.startswith(HUB_PREFIX):
        return _hub_rows(spec.removeprefix(HUB_PREFIX), split)
    if path.is_dir():
        return _directory_rows(path, split)
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return ((f"{path}:{line}", row) for line, row in read_jsonl(path))
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path, or write hub:ID for a dataset on the hub")
    if path.suffix == ".csv":
        return _csv_rows(path)
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    raise InputError(f"{path}: unknown kind of file; give .jsonl, .jsonl.gz, .csv or .parquet")


def is_dataset(spec: str) -> bool:
    """Return whether `spec` names something that is divided into splits: a directory or a hub dataset."""
    return spec.startswith(HUB_PREFIX) or Path(spec).is_dir()


def dataset_splits(spec: str) -> list[str]:
    """Return the names of a dataset directory's splits, sorted; none for anything else."""
    path = Path(spec)
    if spec.startswith(HUB_PREFIX) or not path.is_dir():
        return []
    return sorted({file.name.split("-")[0] for file in _data_directory(path).glob("*-*.parquet")})


def _data_directory(path: Path) -> Path:
    for candidate in (path / "dataset" / "data", path / "data"):
        if candidate.is_dir():
            return candidate
    raise InputError(f"{path} is no dataset directory: it has neither dataset/data nor data; give a file?")


def _directory_rows(path: Path, split: str) -> Rows:
    files = sorted(_data_directory(path).glob(f"{split}-*.parquet"))
    if not files:
        found = ", ".join(dataset_splits(str(path))) or "none"
        raise InputError(f"{path} has no split {split!r}; splits found: {found}")
    return (item for file in files for item in _parquet_rows(file))


def _parquet_rows(path: Path) -> Rows:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError):
        raise InputError(f"{path}: not a readable parquet file; write it again") from None
    return ((f"{path}:row {number}", row) for number, row in enumerate(table.to_pylist(), start=1))


def _csv_rows(path: Path) -> Rows:
    with open_text(path) as stream:
        reader = csv.DictReader(stream)
        try:
            for row in reader:
                where = f"{path}:{reader.line_num}"
                if None in row or None in row.values():
                    expected = len(reader.fieldnames or ())
                    raise InputError(f"{where}: expected {expected} fields as in the header; quote commas")
                yield where, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path}:{reader.line_num + 1}: not readable as UTF-8 CSV ({error})") from None


def _hub_rows(dataset_id: str, split: str) -> Rows:
    from datasets import load_dataset
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    # It warns of every attempt, and tries for half a minute before the error below.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    log.info("loading %s (split %s) from the hub", dataset_id, split)
    try:
        rows = load_dataset(dataset_id, split=split)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()).split(". ")[0][:200]
        raise InputError(
            f"hub:{dataset_id} (split {split}) cannot be loaded: {reason}; check the id and the split, "
            "or that the hub can be reached"
        ) from None
    return ((f"hub:{dataset_id}:row {number}", dict(row)) for number, row in enumerate(rows, start=1))
