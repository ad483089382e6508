"""What an evaluation task is, where its rows come from, and the tasks by name.

A task is an object with the methods of `Task`. Adding one is an entry in `TASKS` (and in `GROUPS`, to be
run with its kind); no function is edited. The modules are imported when a task is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from angle_data.errors import InputError
from angle_data.tables import load_hub_dataset, read_table
from angle_train.evaluation.compare import Outcome
from angle_train.evaluation.similarity import Encode

log = logging.getLogger("angle.evaluate")

SUFFIXES = (".jsonl.gz", ".jsonl", ".csv", ".tsv", ".parquet")
TASKS: dict[str, str] = {
    "sts12": "angle_train.evaluation.sts:STS12",
    "sts13": "angle_train.evaluation.sts:STS13",
    "sts14": "angle_train.evaluation.sts:STS14",
    "sts15": "angle_train.evaluation.sts:STS15",
    "sts16": "angle_train.evaluation.sts:STS16",
    "stsb": "angle_train.evaluation.sts:STS_B",
    "sick-r": "angle_train.evaluation.sts:SICK_R",
    "bug-duplicates-retrieval": "angle_train.evaluation.duplicates:BUG_DUPLICATES",
}
"""Name -> `module:Object`, an object of type `Task`."""

GROUPS: dict[str, tuple[str, ...]] = {
    "sts": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick-r"),
    "all": tuple(TASKS),
}
"""Names that stand for several tasks; no task has one of them."""


@dataclass(frozen=True, slots=True)
class TaskData:
    """Where a task's rows are.

    Attributes:
        folder: The folder's name under the data folder.
        hub: The data set on the Hugging Face hub, `USER/NAME`, if it is there.
        config: Its configuration, where it has several.
        splits: Our name of a split -> the hub's, several joined by `+`.
        revision: A branch other than main: `refs/convert/parquet` where main holds a loading script.
    """

    folder: str
    hub: str | None = None
    config: str | None = None
    splits: Mapping[str, str] = field(
        default_factory=lambda: {name: name for name in ("train", "validation", "test")}
    )
    revision: str | None = None


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
        """Return a split's rows with their places (`file:line`, `hub:ID: row N`); InputError without any."""
        path = self._file(data, split)
        if self.root and path is None:
            # Without the folder's own path: reports, which people pass on, hold this line.
            wanted = f"{data.folder}/{split}{SUFFIXES[0]}"
            others = ", ".join(SUFFIXES[1:])
            raise InputError(f"--data-dir has no {wanted} (nor {others}); put the data there")
        if not (rows := list(read_table(path)) if path else self._hub_rows(data, split)):
            raise InputError(f"{data.folder}/{split}: no rows; check the file")
        return rows

    def _file(self, data: TaskData, split: str) -> Path | None:
        paths = (Path(f"{self.root}/{data.folder}/{split}{suffix}") for suffix in SUFFIXES)
        return next((path for path in paths if self.root and path.is_file()), None)

    def _hub_rows(self, data: TaskData, split: str) -> list[tuple[str, dict[str, Any]]]:
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
        return [(f"hub:{data.hub}: row {number}", dict(row)) for number, row in enumerate(rows, start=1)]


class Task(Protocol):
    """One evaluation task."""

    @property
    def standard_size(self) -> int | None:
        """How many scored items the published version has; None where there is none."""
        ...

    def load(self, source: Source) -> Any:
        """Read and check the task's data.

        Raises:
            InputError: Something is missing or malformed; names the place.
        """
        ...

    def measure(self, data: Any, encode: Encode) -> Outcome:
        """Return what the model behind `encode` does on what `load` returned."""
        ...


def load_task(name: str) -> Task:
    """Return the task of that name."""
    task: Task = resolve_name(TASKS[name])
    return task


def expand_names(names: Sequence[str]) -> list[str]:
    """Return the tasks that names of tasks and groups stand for, each once; others are an InputError."""
    found: list[str] = []
    for name in names:
        if name not in TASKS and name not in GROUPS:
            raise InputError(f"unknown task {name!r}; choose from {', '.join(GROUPS)} and {', '.join(TASKS)}")
        found += [name] if name in TASKS else GROUPS[name]
    return list(dict.fromkeys(found))
