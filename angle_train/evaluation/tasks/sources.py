"""The rows of evaluation tasks, from a folder of the user's or from data sets on the hub or in its cache."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.tables import Rows, read_table
from angle_train.data.sources import load_hub_dataset
from angle_train.evaluation.task import TaskData

log = logging.getLogger("angle.evaluate")

SUFFIXES = (".jsonl.gz", ".jsonl", ".csv", ".tsv", ".parquet")


@dataclass(frozen=True, slots=True)
class Source:
    """The hub, or the user's folder `root`, with `ROOT/TASK/SPLIT.jsonl.gz` or another of `SUFFIXES`."""

    root: Path | None = None

    def has(self, data: TaskData, split: str) -> bool:
        """Return whether the split exists there, as far as that is known without the network."""
        if self.root:
            return self._file(data, split) is not None
        return data.hub is not None and split in data.splits

    def rows(self, data: TaskData, split: str) -> list[tuple[str, dict[str, Any]]]:
        """Return all rows of a split, each with its place: `file:line`, or `hub:ID: row N`.

        Raises:
            InputError: The split is not there, cannot be read, or is empty.
        """
        path = self._file(data, split)
        if self.root and path is None:
            # Without the folder's own path: reports, which people pass on, hold this line.
            wanted = f"{data.folder}/{split}{SUFFIXES[0]}"
            others = ", ".join(SUFFIXES[1:])
            raise InputError(f"--data-dir has no {wanted} (nor {others}); put the data there")
        if not (rows := list(read_table(path) if path else _hub_rows(data, split))):
            raise InputError(f"{data.folder}/{split}: no rows in it")
        return rows

    def _file(self, data: TaskData, split: str) -> Path | None:
        paths = (Path(f"{self.root}/{data.folder}/{split}{suffix}") for suffix in SUFFIXES)
        return next((path for path in paths if self.root and path.is_file()), None)


def _hub_rows(data: TaskData, split: str) -> Rows:
    if data.hub is None or split not in data.splits:
        raise InputError(f"{data.folder} has no split {split} on the hub; give a folder with --data-dir")
    log.info("loading %s (split %s) from the hub", data.hub, data.splits[split])
    rows = load_hub_dataset(
        data.hub,
        data.splits[split],
        config=data.config,
        revision=data.revision,
        instead=", or give a folder with --data-dir",
    )
    # Decoding pictures takes longer than everything else.
    images = [name for name, kind in rows.features.items() if type(kind).__name__ == "Image"]
    rows = rows.remove_columns(images)
    return ((f"hub:{data.hub}: row {number}", dict(row)) for number, row in enumerate(rows, start=1))
