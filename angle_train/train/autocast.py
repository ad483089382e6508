"""The mixed precision that a trainer leaves on a model: put aside to measure, taken off when it is trained.

accelerate replaces a model's `forward` by one that computes in half precision, and leaves it there. What is
reported has to be what the saved model computes, so measuring goes without it. Knows nothing of training.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

_FORWARD = "forward"
# What accelerate notes about a model that it has prepared; with the first it would not prepare it again.
_NOTES = ("_is_accelerate_prepared", "_original_forward")


@contextmanager
def without_autocast(model: nn.Module) -> Iterator[None]:
    """Let `model` compute in the precision of its weights inside the block, as its saved copy will."""
    replaced = model.__dict__.pop(_FORWARD, None)  # hides the method of the class
    try:
        yield
    finally:
        if replaced is not None:
            model.__dict__[_FORWARD] = replaced


def end_autocast(model: nn.Module) -> None:
    """Undo for good what accelerate did to `model`, which can then be trained again."""
    for name in (_FORWARD, *_NOTES):
        model.__dict__.pop(name, None)
