"""Successive halving: many trials for a short time, the best of them for longer.

Jamieson and Talwalkar 2016 (https://arxiv.org/abs/1502.07943), with a factor of three. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

FACTOR = 3


def rung_share(rung: int, rungs: int) -> float:
    """Return the share of the full training that rung `rung`, from 0, takes; the last takes all."""
    return float(FACTOR) ** (rung + 1 - rungs)


def ranked(scores: Mapping[int, float]) -> list[int]:
    """Return the trials by their dev scores, the best first and the earlier of equals before the later."""
    return sorted(scores, key=lambda trial: (-scores[trial], trial))


def survivors(scores: Mapping[int, float]) -> list[int]:
    """Return the trials that go on to the next rung: the best third, and always trial 0, in order of number.

    Trial 0, to compare the winner with, does not take another one's place: of 27 go on 9, or 10 with it.

    Args:
        scores: Dev score of every trial of the rung; the earlier of equals goes on.
    """
    return sorted({0, *ranked(scores)[: _third(len(scores))]})


def planned(trials: int, rungs: int) -> list[int]:
    """Return how many trials each rung trains at most, which is where trial 0 is never among the best."""
    sizes = [trials]
    while len(sizes) < rungs:
        sizes.append(min(sizes[-1], _third(sizes[-1]) + 1))
    return sizes


def most_rungs(trials: int) -> int:
    """Return how many rungs make sense: in one after that, none could drop out any more."""
    sizes = planned(trials, trials + 1)
    return sum(size > sizes[-1] for size in sizes) + 2


def _third(count: int) -> int:
    return -(-count // FACTOR)
