"""The tokens of a text, and the texts that are all but the same by theirs.

A `Nearness` says what "near" means. `NEAR_TEXTS`, over `word_pairs`, is that of issues, whose texts are long;
that of sources, which are sentences, is over single words (`ensembling/splits.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Generic

from angle_data.disjoint import DisjointSets, Member
from angle_data.text import stable_hash

TokenSet = frozenset[str]
Signature = str | tuple[str, str]  # one token, or two in the order of their rarity

_WORD = re.compile(r"\w+")
_IN_NUMBER = re.compile(r"(?<=\d)[^\w\s](?=\d)")  # the dots of 1.2.10
_UNSPACED = "\u0e00"  # from Thai on, scripts are read by two characters rather than by words
_ROUNDING = 1e-9
_RARE = 4  # texts of the sample that hold a rare token, at most
_SHORT = 40  # tokens of a short text, at most: a longer one has too many pairs of tokens


def tokens(text: str) -> list[str]:
    """Return the case-folded words of `text` in order, and of scripts without spaces every two characters."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if word >= _UNSPACED:
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.append(word)
    return found


def word_pairs(text: str) -> TokenSet:
    """Return the distinct pairs of tokens that follow one another in `text`, or its only token.

    Their order counts, and a version or a date such as 1.2.10 is one word.
    """
    found = tokens(_IN_NUMBER.sub("", text))
    return frozenset(map(" ".join, pairwise(found)) if len(found) > 1 else found)


@dataclass(frozen=True, slots=True)
class Nearness:
    """When two sets of tokens are near: at a Jaccard index of at least `least`, or if all but few are shared.

    The latter: each has at least `spare_from` tokens and lacks at most `spared` of the larger one's.
    """

    least: float
    spared: int = 0
    spare_from: int = 1

    def reached(self, shared: int, one: int, other: int) -> bool:
        """Return whether sets of so many tokens, `shared` of them common, are near."""
        if shared >= self.least * (one + other - shared):
            return True
        return min(one, other) >= self.spare_from and shared >= max(one, other) - self.spared

    def least_shared(self, size: int, share: float) -> float:
        """Return how many tokens a set shares at least with one near it that shares `share` by its index."""
        return min(share * size, size - self.spared if size >= self.spare_from else size)


NEAR_TEXTS = Nearness(least=0.82, spared=2, spare_from=9)
"""Of `word_pairs`: texts of which about one word in twenty differs, or one word of at least ten."""


def is_near(one: str, other: str) -> bool:
    """Return whether two texts are near-identical."""
    mine, theirs = word_pairs(one), word_pairs(other)
    return bool(mine) and NEAR_TEXTS.reached(len(mine & theirs), len(mine), len(theirs))


class NearSets(Generic[Member]):
    """Groups of texts whose sets of tokens are near, be it over others.

    `nearness` says which are. `tokens_of` returns the tokens of a text by its name, and is called again
    whenever they are compared. `sample` are names of texts that show which tokens are common. `ascending`
    promises that texts are added in the order of how many tokens they have, which halves the work.

    The tokens of a text are looked at from the rarest on. If the first that two texts share is one of the
    last k of both, they share no more than k, which must be enough; so only the tokens up to there are
    indexed (Xiao et al. 2008, doi:10.1145/1367497.1367516). The more texts there are, the more of them hold
    a common token, but few hold two given ones. So a short text is indexed by its rare tokens, and by each
    common token together with a later one: the first two that near texts share are such a pair (Wang et al.
    2012, doi:10.1145/2213836.2213847: the longer the prefix, the more of its tokens must be shared).

    Before tokens are compared, a number with a bit for each of them tells most texts apart: two that differ
    in more bits than near texts have tokens of their own are not near. Of texts that are one group already
    one that is near is enough, so that a thousand lines of one template cost little more than a thousand
    comparisons.
    """

    def __init__(
        self,
        nearness: Nearness,
        tokens_of: Callable[[Member], TokenSet],
        sample: Iterable[Member],
        *,
        ascending: bool = False,
    ) -> None:
        self.groups: DisjointSets[Member] = DisjointSets()
        self._nearness = nearness
        self._tokens_of = tokens_of
        # By their index, the share of its tokens that a text has in common with any that is near it, and
        # with any of those that are added later.
        self._searched = nearness.least
        self._indexed = 2 * nearness.least / (1 + nearness.least) if ascending else nearness.least
        self._often = Counter(token for name in sample for token in tokens_of(name))
        self._bits: dict[Member, int] = {}  # of indexed texts
        self._same: dict[int, Member] = {}  # of texts with the same tokens, the first
        # By signature, then by the number of a text's tokens and the limit of how many are shared: the names,
        # by the leader of their group. A signature of one text alone holds these three as they are.
        self._index: dict[Signature, Any] = {}

    def neighbours(self, name: Member) -> list[Member]:
        """Return the leader of each other group that has a text near that of `name`."""
        return self._find(name, self._tokens_of(name))

    def add(self, name: Member) -> list[Member]:
        """Index the text of `name` and return the leaders of the groups that it joins."""
        bag = self._tokens_of(name)
        found = self._find(name, bag)
        self.groups.leader(name)
        for leader in found:
            self.groups.join(name, leader)
        if bag and self._same.setdefault(_hash(bag), name) == name:
            self._bits[name] = _bits(bag)
            short = len(bag) <= _SHORT
            for signature, limit in self._signatures(bag, self._indexed, of_short=short, of_long=not short):
                self._enter(signature, len(bag), limit, name)
        return found

    def _find(self, name: Member, bag: TokenSet) -> list[Member]:
        """Return the leaders of the groups with a text near `bag`, but for the group of `name` itself."""
        copy = self._same.get(_hash(bag))
        own = None if copy is None else self.groups.leader(copy)
        found = {} if own is None or copy == name else {own: None}
        bits = _bits(bag)
        for signature, limit in self._searched_for(bag):
            for (size, other_limit), groups in self._entries(signature).items():
                if not self._nearness.reached(min(limit, other_limit), len(bag), size):
                    continue
                if self._any_alike(bits, groups, _most_apart(self._nearness, len(bag), size)):
                    for leader, names in self._by_leader(groups).items():
                        if leader != own and leader not in found and self._any_near(bag, names):
                            found[leader] = None
        return [*found]

    def _searched_for(self, bag: TokenSet) -> Iterator[tuple[Signature, int]]:
        """Yield the signatures by which texts near `bag` may be indexed, whether these are short or long."""
        of_short = self._nearness.least_shared(len(bag), self._searched) - _ROUNDING <= _SHORT
        of_long = len(bag) >= self._searched * _SHORT - self._nearness.spared
        return self._signatures(bag, self._searched, of_short=of_short, of_long=of_long)

    def _signatures(
        self, bag: TokenSet, share: float, *, of_short: bool, of_long: bool
    ) -> Iterator[tuple[Signature, int]]:
        """Yield signatures of `bag`, each with the limit of how many tokens texts share that share it first.

        Whoever is near by an index that stands for that share of the tokens, or by all but few of them, has
        one of them. A common token is one itself in long texts; in short ones it takes a second.
        """
        enough = self._nearness.least_shared(len(bag), share) - _ROUNDING
        ordered = sorted(sorted(bag), key=self._often.__getitem__)
        for place, token in enumerate(ordered):
            left = len(ordered) - place
            if left < enough:
                break
            rare = self._often[token] <= _RARE
            if rare or of_long or enough <= 1:
                yield token, left
            if of_short and not rare:
                for skipped, second in enumerate(ordered[place + 1 :]):
                    if left - skipped < enough:
                        break
                    yield (token, second), left - skipped

    def _entries(self, signature: Signature) -> dict[tuple[int, int], dict[Member, list[Member]]]:
        held = self._index.get(signature, {})
        if isinstance(held, tuple):
            size, limit, name = held
            held = self._index[signature] = {(size, limit): {name: [name]}}
        return held  # type: ignore[no-any-return]

    def _enter(self, signature: Signature, size: int, limit: int, name: Member) -> None:
        if signature not in self._index:
            self._index[signature] = size, limit, name
            return
        groups = self._entries(signature).setdefault((size, limit), {})
        groups.setdefault(self.groups.leader(name), []).append(name)

    def _by_leader(self, groups: dict[Member, list[Member]]) -> dict[Member, list[Member]]:
        """Return the names by the leaders of today: groups may have been joined since."""
        for old in [leader for leader in groups if self.groups.leader(leader) != leader]:
            few, many = sorted((groups.pop(old), groups.get(self.groups.leader(old), [])), key=len)
            many.extend(few)  # the larger list stays, so that many merges stay cheap
            groups[self.groups.leader(old)] = many
        return groups

    def _any_alike(self, bits: int, groups: dict[Member, list[Member]], most: int) -> bool:
        """Return whether a text differs from one with these bits in at most so many."""
        return any(
            (bits ^ self._bits[name]).bit_count() <= most for names in groups.values() for name in names
        )

    def _any_near(self, bag: TokenSet, names: Iterable[Member]) -> bool:
        others = map(self._tokens_of, names)
        return any(self._nearness.reached(len(bag & other), len(bag), len(other)) for other in others)


@lru_cache(1 << 16)
def _most_apart(nearness: Nearness, one: int, other: int) -> int:
    """Return how many tokens only one of two near sets of so many has at most; below 0 if none are near."""
    most = one + other
    while most >= 0 and not nearness.reached((one + other - most) // 2, one, other):
        most -= 1
    return most


def _bits(bag: TokenSet) -> int:
    """Return a number with a bit for each token; which one it is differs between processes, and no result."""
    bits = 0
    for token in bag:
        bits |= 1 << (hash(token) & 127)
    return bits


def _hash(bag: TokenSet) -> int:
    return stable_hash("\n".join(sorted(bag)))
