"""Every task of the papers by name, and the averages that they print."""

from __future__ import annotations

import captions
import pair_sets
import transfer

from angle_data.errors import InputError
from angle_train.evaluation.task import GROUPS as OURS
from angle_train.evaluation.task import TASKS as NAMES
from angle_train.evaluation.task import Task, load_task

TASKS: dict[str, Task] = {name: load_task(name) for name in NAMES} | {
    "gis": pair_sets.GIS,
    "mrpc": pair_sets.MRPC,
    "qqp": pair_sets.QQP,
    "qnli": pair_sets.QNLI,
    "bug-duplicates": pair_sets.BUG_DUPLICATES,
    "cqa-qatarliving": pair_sets.CQA_QATARLIVING,
    "mr": transfer.MR,
    "cr": transfer.CR,
    "subj": transfer.SUBJ,
    "mpqa": transfer.MPQA,
    "sst2": transfer.SST2,
    "trec": transfer.TREC,
    "mrpc-transfer": transfer.MRPC,
    "nli": transfer.NLI,
    "snli": transfer.SNLI,
    "mnli": transfer.MNLI,
    "flickr30k": captions.FLICKR30K,
}
"""Name -> what is measured; those of `angle-train eval --task` first."""

GROUPS: dict[str, tuple[str, ...]] = {
    "sts": OURS["sts"],
    "in-domain": ("mrpc", "stsb", "qqp", "qnli", "gis"),
    "transfer": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc-transfer"),
    "inference": ("snli", "mnli"),
    "all": tuple(TASKS),
}
"""Names that stand for several tasks; no task has one of them."""

AVERAGES = ("sts", "in-domain", "transfer", "inference")
"""The groups whose main figures the papers average; only where all of them are there in standard size."""


def tasks_of(names: list[str]) -> dict[str, Task]:
    """Return the tasks that names of tasks and groups stand for; others are an InputError."""
    found: dict[str, Task] = {}
    for name in names:
        if name not in TASKS and name not in GROUPS:
            raise InputError(f"no task {name!r}; there are {', '.join(GROUPS)} and {', '.join(TASKS)}")
        found |= {one: TASKS[one] for one in ([name] if name in TASKS else GROUPS[name])}
    return found
