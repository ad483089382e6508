"""The evaluation tasks by name, and what each of them has to offer.

A task is an object with the methods of `Task`. Adding one is an entry in `TASKS` (and in `GROUPS`, to be
run with its kind); no function is edited. The modules are imported when a task is asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.resources import load_object
from angle_train.evaluate.statistics import Statistic
from angle_train.evaluate.tasks.sources import Source, TaskData

Item = str | tuple[str, str]
"""What a model encodes: a text, or two as one input, `[CLS]a[SEP]b[SEP]`."""
Encode = Callable[[Sequence[Item]], NDArray[np.float32]]
"""Gives embeddings (N, D) of N items in their order."""

_HERE = "angle_train.evaluate.tasks"
TASKS: dict[str, str] = {
    "sts12": f"{_HERE}.sts:STS12",
    "sts13": f"{_HERE}.sts:STS13",
    "sts14": f"{_HERE}.sts:STS14",
    "sts15": f"{_HERE}.sts:STS15",
    "sts16": f"{_HERE}.sts:STS16",
    "stsb": f"{_HERE}.sts:STS_B",
    "sick-r": f"{_HERE}.sts:SICK_R",
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
    "flickr30k": f"{_HERE}.captions:FLICKR30K",
    "bug-duplicates-retrieval": f"{_HERE}.duplicates:BUG_DUPLICATES",
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
    """What a user may choose about the tasks.

    Attributes:
        seed: Decides the folds and held-out parts of the classifiers; 1111 is SentEval's.
        query_in_index: Whether flickr30k's query caption is among the captions to be found. The paper's
            "all top five equal the five references" takes it so.
    """

    seed: int = 1111
    query_in_index: bool = True


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """B text pairs with gold scores, larger for more similar pairs."""

    text1: Sequence[str]
    text2: Sequence[str]
    gold: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one model did on one task.

    Attributes:
        statistics: Its figures by name, of the same items in the same order; the first is the main one.
            All are larger for better models and at most 1.
        details: What else is worth knowing: thresholds, chosen regularisation, protocol.
        similarity: Cosines (B,) of the task's pairs, where it is about pairs.
    """

    statistics: Mapping[str, Statistic]
    details: Mapping[str, Any] = field(default_factory=dict)
    similarity: NDArray[np.float64] | None = None


class Task(Protocol):
    """One evaluation task."""

    @property
    def data(self) -> TaskData:
        """Where its rows stand."""
        ...

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

    def pairs(self, data: Any) -> ScoredPairs | None:
        """Return the scored pairs that the analyses may look at; None where the task is not about pairs."""
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
        InputError: A name is neither; says which come close.
    """
    found: list[str] = []
    for name in names:
        if name not in TASKS and name not in GROUPS:
            close = difflib.get_close_matches(name, [*GROUPS, *TASKS], n=3)
            fix = (
                f"did you mean {' or '.join(close)}?"
                if close
                else f"there are {', '.join(GROUPS)} and {', '.join(TASKS)}"
            )
            raise InputError(f"no task {name!r}; {fix}")
        found += [name] if name in TASKS else GROUPS[name]
    return list(dict.fromkeys(found))
