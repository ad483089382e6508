"""Rows of labelled pairs from any supported source, each with the place it came from for error messages.

Sources: .jsonl(.gz), .csv and .parquet files, dataset directories, `hub:ID`. Knows nothing about columns.
"""

from __future__ import annotations

import logging
from pathlib import Path

from angle_data.errors import InputError
from angle_data.tables import TABLE_KINDS, Rows, is_table, read_table
from angle_train.data.hub import load_hub_dataset

log = logging.getLogger("angle.pairs")

HUB_PREFIX = "hub:"


def read_rows(spec: str, split: str) -> Rows:
    """Yield `(place, row)` of every row, where place is `file:line` or `file: row N`.

    Args:
        spec: A file, a dataset directory (`DIR` or `DIR/dataset` holding `data/SPLIT-*.parquet`), or
            `hub:ID` for a dataset on the Hugging Face hub.
        split: Which split of a directory or hub dataset; files have none.

    Raises:
        InputError: The source is missing, damaged, of an unknown kind, or lacks the split.
    """
    check_source(spec)
    path = Path(spec)
    if spec.startswith(HUB_PREFIX):
        return _hub_rows(spec.removeprefix(HUB_PREFIX), split)
    return _directory_rows(path, split) if path.is_dir() else read_table(path)


def check_source(spec: str) -> None:
    """Check that a source is there and of a known kind, without reading it; a hub dataset is taken on trust.

    Raises:
        InputError: It is not.
    """
    path = Path(spec)
    if spec.startswith(HUB_PREFIX):
        return
    if path.is_dir():
        _data_directory(path)
    elif not path.exists():
        hub = "" if is_table(path) else ", or write hub:ID for a dataset on the hub"
        raise InputError(f"{path} does not exist; check the path{hub}")
    elif not is_table(path):
        raise InputError(f"{path}: unknown kind of file; give {TABLE_KINDS}")


def is_dataset(spec: str) -> bool:
    """Return whether `spec` names something that is divided into splits: a directory or a hub dataset."""
    return spec.startswith(HUB_PREFIX) or Path(spec).is_dir()


def dataset_splits(spec: str) -> list[str]:
    """Return the names of the splits of a dataset directory or hub dataset, sorted; none for a file.

    Raises:
        InputError: The hub dataset cannot be loaded.
    """
    if spec.startswith(HUB_PREFIX):
        return sorted(load_hub_dataset(spec.removeprefix(HUB_PREFIX), None))
    if not Path(spec).is_dir():
        return []
    return sorted({file.name.split("-")[0] for file in _data_directory(Path(spec)).glob("*-*.parquet")})


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
    return (item for file in files for item in read_table(file))


def _hub_rows(dataset_id: str, split: str) -> Rows:
    log.info("loading %s (split %s) from the hub", dataset_id, split)
    rows = load_hub_dataset(dataset_id, split)
    return ((f"hub:{dataset_id}: row {number}", dict(row)) for number, row in enumerate(rows, start=1))
