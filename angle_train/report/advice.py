"""The one sentence that a report starts with: whether to take the new model or to keep the old one.

Pure; rests on the paired intervals alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from angle_train.evaluate.bootstrap import Difference
from angle_train.report.text import seeds_note


@dataclass(frozen=True, slots=True)
class Compared:
    """How much better the new model is on one set.

    Attributes:
        name: Of the set.
        count: Its items, such as `200 pairs`.
        difference: New minus old.
    """

    name: str
    count: str
    difference: Difference


def advice(found: Sequence[Compared], old: str, new: str = "it", *, seen: bool = False) -> str:
    """Return the conclusion in a manager's words.

    Args:
        found: At least one set.
        old: What the old model is called, such as `the backbone`.
        new: What the new one is called at the end of the sentence.
        seen: Whether the new model learned from the sets, or they chose its weights: then they cannot decide.
    """
    verdicts = [compared.difference.verdict for compared in found]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    use = f"measure {new} on other pairs before you use it" if seen else f"use {new}"
    if len(found) == 1:
        return _of_one(found[0], old, use)
    sets = f"{len(found)} sets"
    every = "both sets" if len(found) == 2 else f"all {sets}"
    if better == len(found):
        sizes = sorted(100 * compared.difference.delta for compared in found)
        return f"Better than {old} on {every}, by {sizes[0]:.1f} to {sizes[-1]:.1f}: {use}."
    if better and worse:
        return (
            f"Better than {old} on {better} of {sets}, worse on {worse}: use {new} only where it is better."
        )
    if better:
        return f"Better than {old} on {better} of {sets}, not reliably different on the others: {use}."
    if worse:
        return f"Worse than {old} on {worse} of {sets} and better on none: keep {old}."
    return f"Not reliably better than {old} on any of {sets}: keep {old}."


def tone(found: Sequence[Compared]) -> str:
    """Return `good` if it is better somewhere and worse nowhere, `bad` if worse somewhere, else nothing."""
    verdicts = {compared.difference.verdict for compared in found}
    if "worse" in verdicts:
        return "bad"
    return "good" if "better" in verdicts else ""


def _of_one(compared: Compared, old: str, use: str) -> str:
    difference, where = compared.difference, f"on {compared.count}"
    if difference.verdict == "better":
        size = f"{100 * difference.delta:.1f} [{100 * difference.low:.1f}, {100 * difference.high:.1f}]"
        return f"Better than {old} by {size} {where}: {use}."
    if difference.verdict == "worse":
        size = f"{-100 * difference.delta:.1f} [{-100 * difference.high:.1f}, {-100 * difference.low:.1f}]"
        return f"Worse than {old} by {size} {where}: keep {old}."
    size = f"{100 * difference.delta:+.1f} [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    return f"Not reliably better than {old}{seeds_note(difference)} ({size} {where}): keep {old}."
