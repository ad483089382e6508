"""What to do after a run, with the work that it takes: one sentence, which begins with `Next:`, or none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from angle_data.console import duration
from angle_train.evaluation.compare import Result
from angle_train.evaluation.power import pairs_needed
from angle_train.report.right_shares import open_results, two_digits

_SECONDS = 12  # to grade a pair: half an hour for the 150 of `angle-data grade`
_GAIN, _OFTEN = 0.10, 0.8  # a gain worth a new model, and how often it is to be found
_MOST = 1_000  # pairs: nobody grades more by hand
# 50 counted like 81 beside 600 of a language model, see docs/graded-pairs.md.
_JUDGED = "; a language model's grades beside yours (--judged) may spare you a third of that"
_NEW_TEXTS = "; where your texts do not give so many, label more texts first"
TOO_SMALL = (
    "Next: the gain is too small to be shown with pairs that one can grade by hand; label more texts, or "
    "have another model write (angle-data llm-label), and fit again"
)
TEST_SEARCH = (
    "Next: measure it on a search that chose nothing (--test-search), whose queries are not in --dev-search"
)
_FEWEST = 10  # more pairs: an interval is no more exact than that
_TO_BE_SURE = NormalDist().inv_cdf(0.975)


def gaining(compared: Sequence[Result]) -> list[Result]:
    """Return the results whose gain is above 0, and not shown."""
    return [result for result in open_results(compared) if result.gain.delta > 0]


def promising(compared: Sequence[Result]) -> list[Result]:
    """Return those whose gain would be shown by as many pairs as people can grade."""
    return [result for result in gaining(compared) if more_pairs(result) <= _MOST]


def more_pairs(result: Result) -> int:
    """Return how many pairs beside those of a result would show its gain 8 times in 10, if that is real.

    A standard error shrinks with the root of the number of pairs; the gain must be 2.8 of them.
    """
    error = result.gain.half / _TO_BE_SURE
    wanted = _TO_BE_SURE + NormalDist().inv_cdf(_OFTEN)
    needed = result.count * (wanted * error / result.gain.delta) ** 2
    return max(_FEWEST, math.ceil(needed - result.count))


def grade_more(compared: Sequence[Result]) -> str:
    """Return how many pairs to grade to be sure of a `promising` gain; of several sets the nearest one."""
    nearest = min(promising(compared), key=lambda result: (more_pairs(result), result.pairs))
    more = more_pairs(nearest)
    of = f" of {nearest.pairs}" if len(compared) > 1 else ""
    count = two_digits(more)
    others = _NEW_TEXTS if more > nearest.count else ""
    spared = "" if any(result.judged for result in compared) else _JUDGED
    return (
        f"Next: grade about {count:,} more test pairs{of} ({work(count)}) and fit again: a gain of this size "
        f"is then found 8 times in 10{others}{spared}"
    )


def grade_test_pairs() -> str:
    """Return how many test pairs to grade where there are none."""
    count = two_digits(pairs_needed(_GAIN, _OFTEN))
    return (
        f"Next: grade test pairs (angle-data grade): about {count:,} ({work(count)}) find a gain of "
        f"{100 * _GAIN:.0f} 8 times in 10"
    )


def work(pairs: int) -> str:
    """Return how long people take to grade so many pairs."""
    return f"about {duration(60 * math.ceil(pairs * _SECONDS / 60))} at {_SECONDS} seconds a pair"
