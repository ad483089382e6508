"""Train, validation and test: their shares as a user gives them, and who goes where, by a seed."""

from __future__ import annotations

from collections.abc import Mapping

from angle_data.disjoint import Member
from angle_data.errors import InputError
from angle_data.text import stable_hash

SPLITS = ("train", "validation", "test")

_OVERFLOW = 0.01
_MISSED = 0.03


def parse_ratios(text: str) -> tuple[float, ...]:
    """Return the numbers of an option such as `0.86,0.07,0.07`; `check_ratios` says whether they will do."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--ratios {text!r}: give numbers separated by commas, such as 0.86,0.07,0.07"
        ) from None


def check_ratios(ratios: tuple[float, ...]) -> dict[str, float]:
    """Return the share of each split that gets one, summing to 1; an `InputError` for anything else."""
    known = 1 <= len(ratios) <= len(SPLITS) and ratios[0] > 0 and min(ratios) >= 0
    if not known or not abs(sum(ratios) - 1) <= 0.01:  # also refuses nan
        shown = ",".join(f"{ratio:g}" for ratio in ratios)
        raise InputError(
            f"--ratios {shown}: give the shares of {', '.join(SPLITS)}, in sum 1, such as 0.9,0.05,0.05"
        )
    return {name: ratio / sum(ratios) for name, ratio in zip(SPLITS, ratios, strict=False) if ratio > 0}


def draw_split(key: str, shares: Mapping[str, float]) -> str:
    """Return the split of `key`, drawn by its hash alone: however many others there are, it stays there."""
    position = stable_hash(key) / 2**64
    border = 0.0
    for name, share in shares.items():
        border += share
        if position < border:
            return name
    return list(shares)[-1]


def fill_shares(
    groups: Mapping[Member, int], shares: Mapping[str, float], *, seed: int, few: bool = False
) -> dict[Member, str]:
    """Return the split of every group; `groups` are the sizes that count towards the shares.

    In random order, each goes to the split that lacks most for its size, among those that it does not
    overfill by more than a hundredth of the whole. If they are `few`, such as whole repositories, the largest
    goes first to the split that lacks most. Groups of size 0 are spread by chance.
    """
    sized = sorted(leader for leader in groups if groups[leader])
    total = sum(groups[leader] for leader in sized)
    sized.sort(key=lambda leader: stable_hash(f"{seed} split {leader}"))
    slack = max(_OVERFLOW * total, 1.0)
    if few:
        sized.sort(key=lambda leader: -groups[leader])
    else:
        # What is too large for the smallest split is placed while another one has room.
        sized.sort(key=lambda leader: groups[leader] <= min(shares.values()) * total + slack)
    found: dict[Member, str] = {}
    lacking = {name: share * total for name, share in shares.items()}
    for left, leader in zip(range(len(sized), 0, -1), sized, strict=True):
        size = groups[leader]
        empty = [name for name in shares if lacking[name] == shares[name] * total]
        choice = empty if left <= len(empty) else list(shares)
        fitting = [name for name in choice if size <= lacking[name] + slack]
        # Relative to its size keeps the mix of large and small groups alike. Where groups are few, or too
        # large for any split, what counts is to come near the shares at all.
        by_size = not few and bool(fitting)
        name = max(fitting if by_size else choice, key=lambda n: lacking[n] / (shares[n] if by_size else 1.0))
        found[leader] = name
        lacking[name] -= size
    rest = groups.keys() - found.keys()
    return found | {leader: draw_split(f"{seed} rest {leader}", shares) for leader in rest}


def missed_shares(sizes: Mapping[str, int], shares: Mapping[str, float]) -> str:
    """Return which splits miss their share of `sizes` by more than three hundredths, empty if none does."""
    total = max(sum(sizes.values()), 1)
    got = {name: sizes.get(name, 0) / total for name in shares}
    missed = [name for name, share in shares.items() if abs(got[name] - share) > _MISSED]
    return ", ".join(f"{name} {got[name]:.0%} instead of {shares[name]:.0%}" for name in missed)
