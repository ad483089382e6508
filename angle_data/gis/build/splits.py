"""Divides groups of issues among train, validation and test; a group never straddles.

What belongs together (clusters, near-identical texts, pairs that were said to be none) is joined before; how
the shares come about is decided here, and for splits by time in `periods`. Nothing is known of texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from angle_data.errors import InputError
from angle_data.gis.build.texts import Node
from angle_data.text import stable_hash

SPLITS = ("train", "validation", "test")
SPLIT_BY = ("cluster", "time", "repo")

_OVERFLOW = 0.01
_MISSED = 0.03


def check_ratios(ratios: tuple[float, ...]) -> dict[str, float]:
    """Return the share of each split that gets one, summing to 1.

    Raises:
        InputError: Not one to three shares, one below 0, the first is 0, or the sum is not 1.
    """
    known = 1 <= len(ratios) <= len(SPLITS) and all(map(math.isfinite, ratios))
    if not known or min(ratios) < 0 or ratios[0] <= 0 or abs(sum(ratios) - 1) > 0.01:
        shown = ",".join(f"{ratio:g}" for ratio in ratios)
        raise InputError(
            f"--ratios {shown}: give the shares of {', '.join(SPLITS)}, in sum 1, such as 0.86,0.07,0.07"
        )
    return {name: ratio / sum(ratios) for name, ratio in zip(SPLITS, ratios, strict=False) if ratio > 0}


def assign_splits(
    groups: Mapping[Node, int], shares: Mapping[str, float], *, by: str, seed: int
) -> dict[Node, str]:
    """Return the split of every group; `groups` are how many positive pairs each makes.

    `cluster`: in random order, each to the split that lacks most for its size, among those that it does not
    overfill by more than a hundredth of all pairs. `repo`: the groups are whole repositories, the largest
    first to whatever lacks most. Groups without positive pairs are spread by chance according to the shares.
    """
    weighty = sorted(leader for leader in groups if groups[leader])
    total = sum(groups[leader] for leader in weighty)
    weighty.sort(key=lambda leader: stable_hash(f"{seed} split {leader}"))
    slack = max(_OVERFLOW * total, 1.0)
    if by == "repo":
        weighty.sort(key=lambda leader: -groups[leader])
    else:
        # What is too large for the smallest split is placed while another one has room.
        weighty.sort(key=lambda leader: groups[leader] <= min(shares.values()) * total + slack)
    found: dict[Node, str] = {}
    lacking = {name: share * total for name, share in shares.items()}
    for left, leader in zip(range(len(weighty), 0, -1), weighty, strict=True):
        pairs = groups[leader]
        empty = [name for name in shares if lacking[name] == shares[name] * total]
        choice = empty if left <= len(empty) else list(shares)
        fitting = [name for name in choice if pairs <= lacking[name] + slack]
        # Of clusters there are many: relative to its size keeps the mix of large and small ones alike. Of
        # repositories there are few, and of clusters too large for any split: what counts is to come near
        # the shares at all.
        by_size = by == "cluster" and bool(fitting)
        name = max(fitting if by_size else choice, key=lambda n: lacking[n] / (shares[n] if by_size else 1.0))
        found[leader] = name
        lacking[name] -= pairs
    for leader in groups.keys() - found.keys():
        found[leader] = _by_chance(stable_hash(f"{seed} rest {leader}") / 2**64, shares)
    return found


def missed_shares(pairs: Mapping[str, int], shares: Mapping[str, float]) -> str:
    """Return which splits miss their share of the pairs by more than three hundredths, empty if none does."""
    total = max(sum(pairs.values()), 1)
    got = {name: pairs.get(name, 0) / total for name in shares}
    return ", ".join(
        f"{name} {got[name]:.0%} instead of {share:.0%}"
        for name, share in shares.items()
        if abs(got[name] - share) > _MISSED
    )


def _by_chance(position: float, shares: Mapping[str, float]) -> str:
    """The split in whose stretch of [0, 1) the position lies."""
    border = 0.0
    for name, share in shares.items():
        border += share
        if position < border:
            return name
    return list(shares)[-1]
