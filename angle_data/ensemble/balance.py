"""At most so many pairs per source and polarity, taken fairly from the annotators.

No cap is the default: three annotators with two sentences each offer at most six, and on the demo corpus
none of them is spare.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from angle_data.ensemble.sources import Choice, Outcome, reject

__all__ = ["balance"]


def balance(kept: Sequence[Choice], *, max_per_source: int, seed: int) -> Outcome:
    """Keep at most `max_per_source` choices per source and polarity; the others are dropped as `capped`.

    The pairs that most annotators support go first; of equals, the one whose annotators have had the fewest
    picks for this source and polarity, then the smallest sha256 of seed and texts. `kept` stays in order.
    """
    groups: dict[tuple[str, str], list[Choice]] = {}
    for choice in kept:
        groups.setdefault((choice.source.key, choice.candidate.polarity), []).append(choice)
    chosen = {id(choice) for group in groups.values() for choice in _pick(group, max_per_source, seed)}
    return Outcome(
        [choice for choice in kept if id(choice) in chosen],
        [reject(choice.candidate, "capped") for choice in kept if id(choice) not in chosen],
    )


def _pick(group: Sequence[Choice], count: int, seed: int) -> list[Choice]:
    left = sorted(group, key=lambda choice: _rank(choice, seed))
    picks: Counter[str] = Counter()
    chosen: list[Choice] = []
    while left and len(chosen) < count:
        # min() keeps the first of equals, so the hash order above breaks the ties.
        best = min(left, key=lambda c: (-len(c.models), sum(picks[m] for m in c.models)))
        left.remove(best)
        chosen.append(best)
        picks.update(best.models)
    return chosen


def _rank(choice: Choice, seed: int) -> str:
    text = f"{seed}\nbalance\n{choice.source.key}\n{choice.candidate.polarity}\n{choice.candidate.text}"
    return hashlib.sha256(text.encode()).hexdigest()
