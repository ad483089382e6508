"""Successive halving: many trials for a short time, the best of them for longer.

Jamieson and Talwalkar 2016 (https://arxiv.org/abs/1502.07943), with a factor of three. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FACTOR", "rung_share", "survivors"]

FACTOR = 3


def rung_share(rung: int, rungs: int) -> float:
    """Return the share of the full training that rung `rung`, from 0, takes; the last takes all."""
    return float(FACTOR) ** (rung + 1 - rungs)


def survivors(scores: Mapping[int, float]) -> list[int]:
    """Return the trials that go on to the next rung: the best third, and always trial 0, in order of number.

    Args:
        scores: Dev score of every trial of the rung; the earlier of equals goes on.
    """
    ranked = sorted(scores, key=lambda trial: (-scores[trial], trial))
    kept = ranked[: max(1, -(-len(ranked) // FACTOR))]
    return sorted({0, *kept})
