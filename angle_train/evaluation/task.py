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

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.tables import read_table
from angle_train.data.pairs import PairSet
from angle_train.data.sources import load_hub_dataset
from angle_train.evaluation.similarity import Encode
from angle_train.evaluation.statistics import Statistic

log = logging.getLogger("angle.evaluate")

SUFFIXES = (".jsonl.gz", ".jsonl", ".csv", ".tsv", ".parquet")
_HERE = "angle_train.evaluation.tasks"
TASKS: dict[str, str] = {
    "sts12": f"{_HERE}.pairs:STS12",
    "sts13": f"{_HERE}.pairs:STS13",
    "sts14": f"{_HERE}.pairs:STS14",
    "sts15": f"{_HERE}.pairs:STS15",
    "sts16": f"{_HERE}.pairs:STS16",
    "stsb": f"{_HERE}.pairs:STS_B",
    "sick-r": f"{_HERE}.pairs:SICK_R",
    "gis": f"{_HERE}.pairs:GIS",
    "mrpc": f"{_HERE}.pairs:MRPC",
    "qqp": f"{_HERE}.pairs:QQP",
    "qnli": f"{_HERE}.pairs:QNLI",
    "bug-duplicates": f"{_HERE}.pairs:BUG_DUPLICATES",
    "cqa-qatarliving": f"{_HERE}.pairs:CQA_QATARLIVING",
    "mr": f"{_HERE}.transfer:MR",
    "cr": f"{_HERE}.transfer:CR",
    "subj": f"{_HERE}.transfer:SUBJ",
    "mpqa": f"{_HERE}.transfer:MPQA",
    "sst2": f"{_HERE}.transfer:SST2",
    "trec": f"{_HERE}.transfer:TREC",
    "mrpc-transfer": f"{_HERE}.transfer:MRPC",
    "nli": f"{_HERE}.transfer:NLI",
    "snli": f"{_HERE}.transfer:SNLI",
    "mnli": f"{_HERE}.transfer:MNLI",
    "flickr30k": f"{_HERE}.retrieval:FLICKR30K",
    "bug-duplicates-retrieval": f"{_HERE}.retrieval:BUG_DUPLICATES",
}
"""Name -> `module:Object`, an object of type `Task`."""

GROUPS: dict[str, tuple[str, ...]] = {
    "sts": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick-r"),
    "pairs": ("gis", "mrpc", "qqp", "qnli", "bug-duplicates", "cqa-qatarliving"),
    "transfer": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc-transfer"),
    "inference": ("nli", "snli", "mnli"),
    "retrieval": ("flickr30k", "bug-duplicates-retrieval"),
    "all": tuple(TASKS),
}
"""Names that stand for several tasks; no task has one of them."""

AVERAGES: tuple[str, ...] = ("sts", "transfer")
"""The groups whose main figures the papers average; only where all of them are there in standard size."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one model did on one task.

    Attributes:
        statistics: Its figures by name, of the same items in the same order; the first is the main one.
            All are larger for better models and at most 1.
        pairs: The scored pairs, where the task is about pairs.
        similarity: Their cosines (B,); empty elsewhere.
    """

    statistics: Mapping[str, Statistic]
    pairs: PairSet | None = None
    similarity: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


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
            raise InputError(f"{data.folder}/{split}: no rows in it")
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
        # Decoding pictures takes longer than everything else.
        images = [name for name, kind in rows.features.items() if type(kind).__name__ == "Image"]
        rows = rows.remove_columns(images)
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

    def measure(self, data: Any, encode: Encode, seed: int) -> Outcome:
        """Return what the model behind `encode` does on what `load` returned.

        `seed` decides the folds and held-out parts of classifiers.
        """
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
            raise InputError(f"no task {name!r}; there are {', '.join(GROUPS)} and {', '.join(TASKS)}")
        found += [name] if name in TASKS else GROUPS[name]
    return list(dict.fromkeys(found))
