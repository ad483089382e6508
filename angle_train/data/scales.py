"""Score scales: which one a column of gold scores is on, and its map to 0..1.

A monotone map: rank correlations do not depend on the choice, the objective's thresholds do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError

ASSUMED = "assumed"
"""Stands in the note of a scale that the scores do not settle."""
_STATED = re.compile(r"(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale from `low` to `high`; `note` says where it comes from, for logs and reports."""

    low: float
    high: float
    note: str

    def to_unit(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of any shape mapped from low..high to 0..1."""
        return (scores - self.low) / (self.high - self.low)


def parse_scale(text: str) -> Scale:
    """Read a stated scale such as `0-5`, `1-5` or `-1-1`.

    Raises:
        InputError: It is not of the form LOW-HIGH with LOW below HIGH.
    """
    match = _STATED.fullmatch(text.strip())
    if match is None or float(match[1]) >= float(match[2]):
        raise InputError(f"scale {text!r} must be LOW-HIGH with LOW below HIGH, such as 0-5 or 1-5")
    return Scale(float(match[1]), float(match[2]), f"{match[0]}, as stated")


def detect_scale(scores: NDArray[np.float64], places: list[str]) -> Scale:
    """Return the scale that scores (B,) are on: 0-1, or 0-5, or 1-5 where none is below 1.

    Scores from 1 on that do not reach both ends of 1-5 could be on either scale: real files on 0-5 nearly
    always hold a score below 1, so 1-5 is assumed, and the note says so.

    Args:
        scores: Finite gold scores.
        places: Where each of them stands, for the error.

    Raises:
        InputError: They fit none of these; names the first score that does not and the way to state it.
    """
    low, high = float(scores.min()), float(scores.max())
    if low >= 0 and high <= 1:
        return Scale(0.0, 1.0, "0-1, detected")
    misfits = np.flatnonzero((scores < 0) | (scores > 5))
    if len(misfits):
        first = misfits[0]
        raise InputError(
            f"{places[first]}: score {scores[first]:g} is on no scale that is recognised (0-1, 0-5, 1-5); "
            "state it with --scale LOW-HIGH"
        )
    if high <= 2 and not (scores % 1).any():
        # 0, 1, 2 may be grades, but are just as often the classes of an inference corpus, which rank nothing.
        raise InputError(
            f"{places[int(scores.argmax())]}: scores {low:g} to {high:g} may be classes or grades; "
            f"if they are grades, state --scale 0-{high:g}"
        )
    span = f"(lowest score {low:g}, highest {high:g})"
    if low < 1:
        return Scale(0.0, 5.0, f"0-5, detected {span}")
    return Scale(1.0, 5.0, f"1-5, {'detected' if (low, high) == (1, 5) else ASSUMED} {span}")
