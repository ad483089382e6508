"""Divides groups of issues among train, validation and test; a group never straddles.

What belongs together (clusters, near-identical texts, pairs that were said to be none) is joined before; how
the shares come about is decided here. Nothing is known of texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from angle_data.errors import InputError
from angle_data.gis.texts import Node
from angle_data.text import stable_hash

__all__ = ["SPLITS", "SPLIT_BY", "Group", "assign_splits", "check_ratios"]

SPLITS = ("train", "validation", "test")
SPLIT_BY = ("cluster", "time", "repo")


@dataclass(frozen=True, slots=True)
class Group:
    """Issues that stay together: how many positive pairs they make and when the oldest was opened."""

    pairs: int
    created_at: str


def check_ratios(ratios: tuple[float, ...]) -> dict[str, float]:
    """Return the share of each split that gets one, summing to 1.

    Raises:
        InputError: Not one to three shares, one below 0, the first is 0, or the sum is not 1.
    """
    known = 1 <= len(ratios) <= len(SPLITS)
    if not known or min(ratios) < 0 or ratios[0] <= 0 or abs(sum(ratios) - 1) > 0.01:
        shown = ",".join(f"{ratio:g}" for ratio in ratios)
        raise InputError(
            f"--ratios {shown}: give the shares of {', '.join(SPLITS)}, in sum 1, such as 0.86,0.07,0.07"
        )
    return {name: ratio / sum(ratios) for name, ratio in zip(SPLITS, ratios, strict=False) if ratio > 0}


def assign_splits(
    groups: Mapping[Node, Group], shares: Mapping[str, float], *, by: str, seed: int
) -> dict[Node, str]:
    """Return the split of every group.

    `cluster`: in random order, each to the split that lacks most for its size. `time`: by age, the oldest
    are for training. `repo`: the groups are whole repositories, the largest first to whatever lacks most.
    Groups without positive pairs are spread by chance according to the shares.
    """
    weighty = sorted(leader for leader in groups if groups[leader].pairs)
    total = sum(groups[leader].pairs for leader in weighty)
    if by == "time":
        weighty.sort(key=lambda leader: (groups[leader].created_at, leader))
        found = _by_time(weighty, groups, shares)
    else:
        weighty.sort(key=lambda leader: stable_hash(f"{seed} split {leader}"))
        if by == "repo":
            weighty.sort(key=lambda leader: -groups[leader].pairs)
        found = {}
        lacking = {name: share * total for name, share in shares.items()}
        for left, leader in zip(range(len(weighty), 0, -1), weighty, strict=True):
            empty = [name for name in shares if lacking[name] == shares[name] * total]
            choice = empty if left <= len(empty) else list(shares)
            # Of clusters there are many: relative to its size keeps the mix of large and small ones alike.
            # Of repositories there are few: what counts is to come near the shares at all.
            name = max(choice, key=lambda n: lacking[n] / (shares[n] if by == "cluster" else 1.0))
            found[leader] = name
            lacking[name] -= groups[leader].pairs
    for leader in groups.keys() - found.keys():
        found[leader] = _by_chance(stable_hash(f"{seed} rest {leader}") / 2**64, shares)
    return found


def _by_time(
    leaders: list[Node], groups: Mapping[Node, Group], shares: Mapping[str, float]
) -> dict[Node, str]:
    total, done = sum(groups[leader].pairs for leader in leaders), 0.0
    found: dict[Node, str] = {}
    for leader in leaders:
        # The middle of a group decides, so that a large one does not push the border far.
        found[leader] = _by_chance((done + groups[leader].pairs / 2) / total, shares)
        done += groups[leader].pairs
    return found


def _by_chance(position: float, shares: Mapping[str, float]) -> str:
    """The split in whose stretch of [0, 1) the position lies."""
    border = 0.0
    for name, share in shares.items():
        border += share
        if position < border:
            return name
    return list(shares)[-1]
