"""What an evaluation task is, and the tasks by name.

A task is an object with the methods of `Task`. Adding one is an entry in `TASKS` (and in `GROUPS`, to be
run with its kind); no function is edited. The modules are imported when a task is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.resources import load_object
from angle_train.data.pairs import PairSet
from angle_train.evaluation.bootstrap import RESAMPLES
from angle_train.evaluation.similarity import Encode
from angle_train.evaluation.statistics import Statistic

if TYPE_CHECKING:
    from angle_train.evaluation.tasks.sources import Source

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
class Settings:
    """What a user may choose about an evaluation.

    Attributes:
        seed: Decides the folds and held-out parts of the classifiers; 1111 is SentEval's.
        device: `cpu`, `cuda` …; default the best there is.
        resamples: Of the bootstrap; large sets get fewer.
    """

    seed: int = 1111
    device: str | None = None
    resamples: int = RESAMPLES


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

    def measure(self, data: Any, encode: Encode, settings: Settings) -> Outcome:
        """Return what the model behind `encode` does on what `load` returned."""
        ...


def load_task(name: str) -> Task:
    """Return the task of that name."""
    task: Task = load_object(TASKS[name])
    return task


def expand_names(names: Sequence[str]) -> list[str]:
    """Return the tasks that names of tasks and groups stand for, each once, in order.

    Raises:
        InputError: A name is neither; lists them all.
    """
    found: list[str] = []
    for name in names:
        if name not in TASKS and name not in GROUPS:
            raise InputError(f"no task {name!r}; there are {', '.join(GROUPS)} and {', '.join(TASKS)}")
        found += [name] if name in TASKS else GROUPS[name]
    return list(dict.fromkeys(found))
