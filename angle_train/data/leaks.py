"""What pairs that measure share with pairs that were learned from.

Whether texts are the same is judged up to normalisation, pairs in either order. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from angle_data.text import normalise, pair_key
from angle_train.data.pairs import PairSet

SHARED_TEXTS = "%.0f %% of the texts of %s occur in %s pairs too"
"""For the log: a share in per cent, the name of the set, and what its texts occur in."""


@dataclass(frozen=True, slots=True)
class Leak:
    """What one set of pairs shares with what was learned from.

    Attributes:
        role: Role of the measured set, `dev` or `test`.
        name: Its name.
        origin: What it was compared with, `training` or `dev`.
        count: Its pairs.
        pairs: How many of them are in the other set too.
        texts: Share (0..1) of its distinct texts that occur in the other set, whatever their partner.
    """

    role: str
    name: str
    origin: str
    count: int
    pairs: int
    texts: float

    def sentence(self) -> str:
        """Return what is wrong with the shared pairs, for a warning."""
        return f"{self.pairs} of {self.count} {self.role} pairs of {self.name} are {self.origin} pairs too"


@dataclass(frozen=True, slots=True)
class Holding:
    """What a set of pairs holds, up to normalisation: a key for each pair, and the distinct texts."""

    pairs: PairSet
    keys: Sequence[tuple[str, str]]
    texts: Set[str]


def holding(pairs: PairSet) -> Holding:
    """Return what a set holds; for many pairs it takes a while."""
    first, second = ([normalise(text) for text in texts] for texts in (pairs.text1, pairs.text2))
    keys = [(a, b) if a <= b else (b, a) for a, b in zip(first, second, strict=True)]  # as `text.pair_key`
    return Holding(pairs, keys, {*first, *second})


def find_leaks(origin: str, seen: Holding, role: str, measured: Holding) -> Leak:
    """Return what `measured` shares with `seen`; that a text is shared is no fault, that a pair is shared is.

    A model that has learned one pair of a text may well be asked about another, so texts are only counted.
    """
    keys, own = set(seen.keys), measured.texts
    return Leak(
        role=role,
        name=measured.pairs.name,
        origin=origin,
        count=len(measured.pairs),
        pairs=sum(key in keys for key in measured.keys),
        texts=len(own & seen.texts) / len(own) if own else 0.0,
    )


def without_pairs_of(pairs: PairSet, others: Sequence[PairSet]) -> PairSet:
    """Return `pairs` without those that one of `others` holds too."""
    seen = {key for other in others for key in pair_keys(other)}
    keep = [i for i, key in enumerate(pair_keys(pairs)) if key not in seen]
    return pairs if len(keep) == len(pairs) else pairs.take(keep, pairs.name)


def pair_keys(pairs: PairSet) -> list[tuple[str, str]]:
    """Return for each pair what it shares with the same pair elsewhere, see `text.pair_key`."""
    return [pair_key(a, b) for a, b in zip(pairs.text1, pairs.text2, strict=True)]
