"""Labelled pairs in, fine-tuned embedding model and report out. Importing this package loads nothing heavy.

From Python, `fit` and `evaluate` are the commands `fit` and `eval`, see `api`:

    from angle_train import evaluate, fit

    result = fit("runs/pairs", backbone="sentence-transformers/all-MiniLM-L6-v2", out="runs/model")
    result.model.encode(["A node ran out of memory."])

`train` is the training alone, for a model in memory: it returns the model and its learning curve. `AngleLoss`
is the objective alone, as a loss for anyone's `SentenceTransformerTrainer`.

In reading order:
`cli`: the commands of `angle-train` and what they print.
`options`: their options.
`api`: the same as functions, for notebooks and scripts.
`given`: what they are given, or an angle.toml gives to `fit`, checked before slow imports.
`keywords`: what they take by name, typed.
`recipe`: everything that decides a run apart from data and backbone, validated; TOML files and overrides.
`trainer_arguments`: its table `[arguments]`: settings of the library's trainer.
`dropped`: keys that recipes had once.
`inputs`: the pairs of a run, read before anything heavy is loaded.
`reading`: how the pairs of a training are read: as queries and documents, or both alike.
`run`: one training run, from pairs to report.
`outcome`: what tuning came to, between training and report.
`in_memory`: one training in the hands of a program.
`encode`: the texts of a file as embeddings in a file.

Then the rooms: `data` (pairs), `model` (backbones), `objective` (the loss and its batches), `training` (one
training), `evaluation` (similarity, intervals, tasks) and `report` (what a run found: data, text and page).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from angle_train.api import Evaluated, Fitted, evaluate, fit, train
    from angle_train.objective.angle_loss import AngleLoss as AngleLoss

# Without `AngleLoss`: torch should not be loaded for a star.
__all__ = ["Evaluated", "Fitted", "evaluate", "fit", "train"]

_MODULES = dict.fromkeys(__all__, "angle_train.api") | {"AngleLoss": "angle_train.objective.angle_loss"}


def __getattr__(name: str) -> Any:
    """Return a public function or class; its module is loaded when it is first asked for."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
