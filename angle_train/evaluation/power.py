"""How often a gain is found with so many graded pairs, before anything is trained.

A difference of two Spearman correlations on n pairs errs by about 0.6 / √n (typical of models tuned from the
backbone they are compared with), and is found if its 95 % interval lies above 0. Pairs that a language model
graded beside n of one's own make these count like more, by the prediction-powered bootstrap
(https://arxiv.org/abs/2311.01453): n / (1 - r² · N / (n + N)), where r says how its grades go with people's.
"""

from __future__ import annotations

from statistics import NormalDist

SPREAD = 0.6
"""Standard error of a difference of two Spearman correlations, times √pairs."""
GRADER = 0.64
"""r of a language model: beside 600 of its grades, 30, 50 and 100 of people's counted like 51, 81 and
147, the means over four domains (benchmarks/log/judged.md)."""

_LEVEL = NormalDist().inv_cdf(0.975)
_GAIN = 0.10
_JUDGED = 600
_WISHED = 0.8


def share_found(gain: float, pairs: float) -> float:
    """Return how often (0..1) a true gain in Spearman (0..1) is found with so many pairs."""
    return NormalDist().cdf(gain * pairs**0.5 / SPREAD - _LEVEL)


def pairs_needed(gain: float, share: float) -> int:
    """Return how many pairs find a gain so often."""
    return round(((_LEVEL + NormalDist().inv_cdf(share)) * SPREAD / gain) ** 2)


def worth_of_judged(pairs: int, judged: int) -> float:
    """Return how many pairs so many count like beside others that a language model graded."""
    return pairs / (1 - GRADER**2 * judged / (pairs + judged))


def power_sentence(pairs: int, judged: int | None = None) -> str:
    """Return what so many test pairs find, and what would find more.

    `judged` is how many others a language model graded; None where none did.
    """
    count = worth_of_judged(pairs, judged or 0)
    now = _tenths(share_found(_GAIN, count))
    said = f"with your {pairs:,} test pairs a gain of {100 * _GAIN:.0f} (Spearman x 100) is found {now}"
    if judged:
        said += ", if the language model's grades go with yours"
    if share_found(_GAIN, count) >= _WISHED:
        return said
    more = f"{pairs_needed(_GAIN, _WISHED):,} pairs of your own would make it 8"
    if judged is not None:
        return f"{said}; {more}"
    with_judged = _tenths(share_found(_GAIN, worth_of_judged(pairs, _JUDGED)))
    beside = f"{_JUDGED} graded by a language model beside them (--judged) would make it {with_judged}"
    return f"{said}; {beside}; {more}"


def _tenths(share: float) -> str:
    """Return a share as times in 10."""
    if share >= 0.95:
        return "nearly always"
    return f"{round(10 * share)} times in 10" if share >= 0.15 else "hardly ever"
