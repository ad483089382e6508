"""The tokens of a text, and the texts that are all but the same by theirs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic

from angle_data.disjoint import DisjointSets, Member
from angle_data.text import stable_hash

TokenSet = frozenset[str]

_WORD = re.compile(r"\w+")
_UNSPACED = "\u0e00"  # from Thai on, scripts are read by two characters rather than by words
_ROUNDING = 1e-9


def tokens(text: str) -> list[str]:
    """Return the case-folded words of `text` in order, and of scripts without spaces every two characters."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if word >= _UNSPACED:
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.append(word)
    return found


class NearSets(Generic[Member]):
    """Groups of texts whose sets of tokens have a Jaccard index of at least `least`, be it over others.

    `tokens_of` returns the tokens of a text by its name, and is called again whenever they are compared.
    `sample` are names of texts that show which tokens are common. `ascending` promises that texts are added
    in the order of how many tokens they have, which halves the work.

    The tokens of a text are looked at from the rarest on. If the first that two texts share is one of the
    last k of both, they share no more than k, which must be enough; so the rarest tokens alone are indexed
    (Xiao et al. 2008, doi:10.1145/1367497.1367516). Of texts that are one group already one that is near is
    enough, so that a thousand lines of one template cost little more than a thousand comparisons.
    """

    def __init__(
        self,
        least: float,
        tokens_of: Callable[[Member], TokenSet],
        sample: Iterable[Member],
        *,
        ascending: bool = False,
    ) -> None:
        self.groups: DisjointSets[Member] = DisjointSets()
        self._least, self._tokens_of = least, tokens_of
        # The share of its tokens that a text must have in common with any that is added later and near it.
        self._indexed = 2 * least / (1 + least) if ascending else least
        self._often = Counter(token for name in sample for token in tokens_of(name))
        self._same: dict[int, Member] = {}  # of texts with the same tokens, the first
        # By token, then by the number of a text's tokens and how many are left from this one on: the names,
        # by the leader of their group. A token of one text alone holds these three as they are.
        self._index: dict[str, Any] = {}

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
            for token, left in self._rarest(bag, self._indexed):
                self._enter(token, len(bag), left, name)
        return found

    def _find(self, name: Member, bag: TokenSet) -> list[Member]:
        """Return the leaders of the groups with a text near `bag`, but for the group of `name` itself."""
        copy = self._same.get(_hash(bag))
        own = None if copy is None else self.groups.leader(copy)
        found = {} if own is None or copy == name else {own: None}
        for token, left in self._rarest(bag, self._least):
            for (size, other_left), groups in self._entries(token).items():
                if self._reaches(min(left, other_left), len(bag), size):
                    for leader, names in self._by_leader(groups).items():
                        if leader != own and leader not in found and self._any_near(bag, names):
                            found[leader] = None
        return [*found]

    def _rarest(self, bag: TokenSet, share: float) -> Iterator[tuple[str, int]]:
        """Yield tokens, and how many are left from each on, while these are at least a share of all.

        Who has that share of the tokens has one of those yielded.
        """
        size = len(bag)
        for place, token in enumerate(sorted(bag, key=lambda token: (self._often[token], token))):
            if size - place < share * size - _ROUNDING:
                break
            yield token, size - place

    def _entries(self, token: str) -> dict[tuple[int, int], dict[Member, list[Member]]]:
        held = self._index.get(token, {})
        if isinstance(held, tuple):
            size, left, name = held
            held = self._index[token] = {(size, left): {name: [name]}}
        return held  # type: ignore[no-any-return]

    def _enter(self, token: str, size: int, left: int, name: Member) -> None:
        if token not in self._index:
            self._index[token] = size, left, name
            return
        groups = self._entries(token).setdefault((size, left), {})
        groups.setdefault(self.groups.leader(name), []).append(name)

    def _by_leader(self, groups: dict[Member, list[Member]]) -> dict[Member, list[Member]]:
        """Return the names by the leaders of today: groups may have been joined since."""
        for old in [leader for leader in groups if self.groups.leader(leader) != leader]:
            few, many = sorted((groups.pop(old), groups.get(self.groups.leader(old), [])), key=len)
            many.extend(few)  # the larger list stays, so that many merges stay cheap
            groups[self.groups.leader(old)] = many
        return groups

    def _any_near(self, bag: TokenSet, names: Iterable[Member]) -> bool:
        others = map(self._tokens_of, names)
        return any(self._reaches(len(bag & other), len(bag), len(other)) for other in others)

    def _reaches(self, shared: int, one: int, other: int) -> bool:
        """Return whether sets of so many tokens, `shared` of them common, are near."""
        return shared >= self._least * (one + other - shared)


def _hash(bag: TokenSet) -> int:
    return stable_hash("\n".join(sorted(bag)))
