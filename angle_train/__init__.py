"""Labelled pairs in, fine-tuned embedding model and report out. Importing this package loads nothing heavy.

From Python, `fit` and `evaluate` are the commands `fit` and `eval`, see `api`:

    from angle_train import evaluate, fit

    result = fit("runs/pairs", backbone="sentence-transformers/all-MiniLM-L6-v2", out="runs/model")
    result.model.encode(["A node ran out of memory."])

In reading order:
`cli`: the commands of `angle-train` and what they print.
`options`: their options.
`api`: the same as functions, for notebooks and scripts.
`purpose`: which recipe a run takes.
`recipe`: everything that decides a run apart from data and backbone, validated; TOML files and overrides.
`inputs`: the pairs of a run, read before anything heavy is loaded.
`run`: one training run, from pairs to report.
`encode`: the texts of a file as embeddings in a file.

Then the rooms: `data` (pairs), `model` (backbones), `objective` (the loss and its batches), `train` (one
training), `evaluation` (similarity, intervals, tasks) and `report` (what a run found: data, text and page).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from angle_train.api import Evaluated, Fitted, evaluate, fit

__all__ = ["Evaluated", "Fitted", "evaluate", "fit"]


def __getattr__(name: str) -> Any:
    """Return a function or class of `api`, which is loaded when the first one is asked for."""
    if name in __all__:
        return getattr(import_module("angle_train.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
