"""Texts and GitHub in, labelled sentence pairs out. Never imports torch.

`cli` is the program, `api` what `import angle_data` offers. What every room may use:

- `errors`: the errors a user can meet, and their exit codes
- `console`: logging and progress
- `records`: the rows that flow from one step to the next
- `text`: normal forms, words, overlap and stable hashes of texts
- `jsonl`: JSON Lines in and out, and files that are replaced whole
- `folders`: which files a data set folder has, by split
- `tables`: rows of files and folders in the formats that people keep them in, and their cells
- `locking`: one process at a time in a directory
- `resources`: packaged folders, install commands
- `splits`: the shares of train, validation and test, and who goes where
- `disjoint`: which things belong together through any chain of links
- `http`: what an answer of a web service means for the next request
- `calling/`: how a step is called and stopped: options of commands from a config, interrupts, notebooks

Then the rooms, as data passes them:

- `labelling/`: texts to candidates and grades; it asks `annotators/`
- `ensembling/`: candidates and grades to one data set
- `publish/`: a data set's parquet and card
- `look/`: shows pairs, and serves the page to grade them
- `project/`: takes these steps in their order
- `gis/`: pairs from issues of GitHub
- `similar/`: how alike texts are, for several of these
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from angle_data.api import Pairs, Rows, Run, Shown, ensemble, grade, label, mine, score, show
    from angle_data.project.project import Project

__all__ = ["Pairs", "Project", "Rows", "Run", "Shown", "ensemble", "grade", "label", "mine", "score", "show"]


def __getattr__(name: str) -> Any:
    """Return a function or class of `api`, which is loaded when the first one is asked for."""
    if name in __all__:
        home = "angle_data.project.project" if name == "Project" else "angle_data.api"
        return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
