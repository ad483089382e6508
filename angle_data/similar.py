"""How alike texts are, by the tokens that they share: one definition for `ensemble`, `mine` and `gis`.

A text is its `tokens`. Which texts are like it is found through its rarest tokens, so that no text is
compared with all others:

- `NearSets` finds texts that are all but the same: sets of tokens with a Jaccard index above a limit. Exact.
- `Index` ranks texts by what they share, where a token weighs the more the fewer texts hold it.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic
from zlib import crc32

from angle_data.disjoint import DisjointSets, Node
from angle_data.text import stable_hash

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Tokens = frozenset[str]

_WORD = re.compile(r"\w+")
_UNSPACED = "\u0e00"  # from Thai on, scripts are read by two characters rather than by words
_ROUNDING = 1e-9
_K1, _B = 1.2, 0.75  # of BM25: how soon repeats count no more, and how much length counts


def tokens(text: str) -> list[str]:
    """Return the case-folded words of `text` in order, and of scripts without spaces every two characters."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if word >= _UNSPACED:
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.append(word)
    return found


class NearSets(Generic[Node]):
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
        tokens_of: Callable[[Node], Tokens],
        sample: Iterable[Node],
        *,
        ascending: bool = False,
    ) -> None:
        self.groups: DisjointSets[Node] = DisjointSets()
        self._least, self._tokens_of = least, tokens_of
        # The share of its tokens that a text must have in common with any that is added later and near it.
        self._indexed = 2 * least / (1 + least) if ascending else least
        self._often = Counter(token for name in sample for token in tokens_of(name))
        self._same: dict[int, Node] = {}  # of texts with the same tokens, the first
        # By token, then by the number of a text's tokens and how many are left from this one on: the names,
        # by the leader of their group. A token of one text alone holds these three as they are.
        self._index: dict[str, Any] = {}

    def neighbours(self, name: Node) -> list[Node]:
        """Return the leader of each other group that has a text near that of `name`."""
        return self._find(name, self._tokens_of(name))

    def add(self, name: Node) -> list[Node]:
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

    def _find(self, name: Node, bag: Tokens) -> list[Node]:
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

    def _rarest(self, bag: Tokens, share: float) -> Iterator[tuple[str, int]]:
        """Yield tokens, and how many are left from each on, while these are at least a share of all.

        Who has that share of the tokens has one of those yielded.
        """
        size = len(bag)
        for place, token in enumerate(sorted(bag, key=lambda token: (self._often[token], token))):
            if size - place < share * size - _ROUNDING:
                break
            yield token, size - place

    def _entries(self, token: str) -> dict[tuple[int, int], dict[Node, list[Node]]]:
        held = self._index.get(token, {})
        if isinstance(held, tuple):
            size, left, name = held
            held = self._index[token] = {(size, left): {name: [name]}}
        return held  # type: ignore[no-any-return]

    def _enter(self, token: str, size: int, left: int, name: Node) -> None:
        if token not in self._index:
            self._index[token] = size, left, name
            return
        groups = self._entries(token).setdefault((size, left), {})
        groups.setdefault(self.groups.leader(name), []).append(name)

    def _by_leader(self, groups: dict[Node, list[Node]]) -> dict[Node, list[Node]]:
        """Return the names by the leaders of today: groups may have been joined since."""
        for old in [leader for leader in groups if self.groups.leader(leader) != leader]:
            few, many = sorted((groups.pop(old), groups.get(self.groups.leader(old), [])), key=len)
            many.extend(few)  # the larger list stays, so that many merges stay cheap
            groups[self.groups.leader(old)] = many
        return groups

    def _any_near(self, bag: Tokens, names: Iterable[Node]) -> bool:
        others = map(self._tokens_of, names)
        return any(self._reaches(len(bag & other), len(bag), len(other)) for other in others)

    def _reaches(self, shared: int, one: int, other: int) -> bool:
        """Return whether sets of so many tokens, `shared` of them common, are near."""
        return shared >= self._least * (one + other - shared)


def _hash(bag: Tokens) -> int:
    return stable_hash("\n".join(sorted(bag)))


def numbered(found: Iterable[str]) -> Array:
    """Return tokens as numbers, so that memory does not grow with the vocabulary; repeats stay."""
    import numpy as np

    return np.fromiter((crc32(token.encode()) for token in found), dtype=np.uint32)


class Index:
    """An inverted index of texts, in flat arrays, made of the tokens of each as `numbered`.

    A text is known by its place among them. The weight of a token is log((N + 1) / n), where n of the N texts
    hold it.
    """

    def __init__(self, texts: Iterable[Array]) -> None:
        import numpy as np

        lengths, parts = array("I"), []
        for place, found in enumerate(texts):
            distinct, times = np.unique(found, return_counts=True)
            lengths.append(len(found))
            parts.append(np.array([distinct, np.full(len(distinct), place), times], dtype=np.uint32))
        numbers, places, times = np.concatenate(parts, axis=1)
        self._lengths = np.array(lengths, dtype=np.float64)
        self._tokens, self._of_texts = np.unique(numbers, return_inverse=True)
        order = np.argsort(self._of_texts, kind="stable")
        self._places, self._times = places[order], times[order].astype(np.float32)
        self._starts = np.append(0, np.bincount(self._of_texts).cumsum())  # of the texts of each token
        self._ends = np.bincount(places, minlength=len(lengths)).cumsum()  # of the tokens of each text
        self._often = np.diff(self._starts)
        self._weight = np.log((len(lengths) + 1) / self._often)

    def rank(self, text: Array, most: int, *, words: int, common: int) -> list[int]:
        """Return the `most` texts nearest to one that need not be among them, the best first; ties by place.

        They are ranked by BM25 (Robertson & Zaragoza 2009, doi:10.1561/1500000019) over the `words` rarest
        tokens; those that more than `common` texts hold say little and cost most, and do not count.
        """
        import numpy as np

        known = self._known(text)
        known = known[self._often[known] <= common]
        known = known[np.argsort(self._often[known], kind="stable")][:words]
        scores = np.zeros(len(self._lengths))
        for token in known:
            own = slice(self._starts[token], self._starts[token + 1])
            times, places = self._times[own], self._places[own]
            norm = _K1 * (1 - _B + _B * self._lengths[places] / max(self._lengths.mean(), 1.0))
            scores[places] += self._weight[token] * times * (_K1 + 1) / (times + norm)
        found = np.flatnonzero(scores)
        if len(found) > most:
            border = np.partition(scores[found], len(found) - most)[len(found) - most]
            found = found[scores[found] >= border]
        best: list[int] = found[np.argsort(-scores[found], kind="stable")][:most].tolist()
        return best

    def overlap(self, one: Array, other: Array) -> float:
        """Return the Jaccard index of two texts' tokens by their weights; a token of no text weighs most."""
        import numpy as np

        def weight(found: Array) -> float:
            known = self._known(found)
            others = (len(found) - len(known)) * np.log(len(self._lengths) + 1)
            return float(self._weight[known].sum() + others)

        mine, theirs = np.unique(one), np.unique(other)
        return weight(np.intersect1d(mine, theirs)) / max(weight(np.union1d(mine, theirs)), 1e-9)

    def nearest(self, place: int, most: int, *, words: int, window: int) -> tuple[Array, Array]:
        """Return up to `most` texts that share most with the one at `place`, and the `overlap` with each.

        Found by the `words` rarest tokens, each of which leads to the `window` texts that stand next to it of
        those that hold the token. Of equally near ones each text has others first: those that follow it.
        """
        import numpy as np

        own = self._tokens_at(place)
        own = own[np.lexsort((own, self._often[own]))]
        parts = []
        for token in own[:words]:
            holders = self._places[self._starts[token] : self._starts[token + 1]]
            start = min(np.searchsorted(holders, place) - window // 2, len(holders) - window)
            parts.append(holders[max(0, start) :][:window])
        if not parts:
            return np.zeros(0, dtype=int), np.zeros(0)
        shares = np.repeat(self._weight[own[:words]], [len(part) for part in parts])
        found, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        shared = np.bincount(inverse, shares)
        others = found != place
        found, shared = found[others].astype(int), shared[others]
        after = (found - place) % len(self._lengths)
        found = found[np.lexsort((after, -shared))][:most]
        overlaps = self._overlaps(own, found)
        order = np.lexsort(((found - place) % len(self._lengths), -overlaps))
        return found[order], overlaps[order]

    def _overlaps(self, own: Array, places: Array) -> Array:
        """Return the overlap of the tokens `own` with those of each text at `places`."""
        import numpy as np

        lists = [self._tokens_at(place) for place in places]
        owner = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
        held = np.concatenate([own[:0], *lists])
        weights = self._weight[held]
        common = np.bincount(owner, weights * np.isin(held, own), len(lists))
        either = self._weight[own].sum() + np.bincount(owner, weights, len(lists)) - common
        found: Array = common / either
        return found

    def _tokens_at(self, place: int) -> Array:
        start = self._ends[place - 1] if place else 0
        return self._of_texts[start : self._ends[place]]

    def _known(self, text: Array) -> Array:
        """Return the places of those tokens of a text that the index has, each once."""
        import numpy as np

        distinct = np.unique(text)
        places = np.minimum(np.searchsorted(self._tokens, distinct), len(self._tokens) - 1)
        known: Array = places[self._tokens[places] == distinct]
        return known
