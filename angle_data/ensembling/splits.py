"""Which split each text gets, so that no text and no near copy of a source stands in two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from angle_data.disjoint import DisjointSets
from angle_data.ensembling.given import GivenPair
from angle_data.ensembling.read import Source
from angle_data.ensembling.strategies import Choice
from angle_data.splits import draw_split
from angle_data.text import content_id, normalise, words

_NEAR = 0.75

Bag = frozenset[str]
Bucket = dict[str, list[Bag]]  # leader of a group -> sets of words of its members


def place_texts(
    kept: Sequence[Choice], given: Sequence[GivenPair], shares: Mapping[str, float], seed: int
) -> tuple[list[Source], dict[str, str]]:
    """Return the sources (of given pairs alone, their texts), and the split of each text of the user's."""
    sources = {choice.source.key: choice.source for choice in kept}
    partners: dict[str, list[str]] = {key: [] for key in sources}
    for choice in kept:
        partners[choice.source.key].append(choice.text_key)
    for text in (text for pair in given for text in (pair.text1, pair.text2)):
        partners.setdefault(normalise(text), [])
        if not kept:
            sources[normalise(text)] = Source(normalise(text), content_id(text), text)
    # Drawn by the group's hash: adding texts moves no other group, unless a new text ties two together.
    return [*sources.values()], {
        key: draw_split(f"{seed}\nsplit\n{leader}", shares) for key, leader in group_sources(partners).items()
    }


def group_sources(members: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the leader (the smallest key) of each source's group.

    `members` maps a source's normalised text to the normalised texts that it is paired with. Two sources
    share a group when a text of one (itself or a partner) is a text of the other, when their sets of words
    have a Jaccard of at least 0.75 ("scaled up" / "scaled down" in a sentence of ten words), or by a chain.
    """
    groups = DisjointSets(members)
    owner: dict[str, str] = {}
    for key in sorted(members):
        for text in (key, *members[key]):
            groups.join(owner.setdefault(text, key), key)
    _join_near(groups, sorted(members))
    return {key: groups.leader(key) for key in members}


def _join_near(groups: DisjointSets[str], texts: Sequence[str]) -> None:
    """Join every two of `texts` whose word Jaccard reaches `_NEAR`, by prefix and position filtering.

    Words are looked at from the rarest on. If the first that two sets share is one of the last k words of
    both, they share no more than k, which must be enough; so the rarest words alone are indexed (Xiao et al.
    2008, doi:10.1145/1367497.1367516). Texts that are joined already are not compared, so that a thousand
    lines of one template cost little more than a thousand comparisons.
    """
    bags: dict[Bag, str] = {}  # of texts with the same words, the first
    for text in texts:
        if bag := words(text):
            groups.join(bags.setdefault(bag, text), text)
    frequency = Counter(word for bag in bags for word in bag)
    index: dict[str, dict[tuple[int, int], Bucket]] = {}  # word -> (size of set, words left from this one on)
    for bag in sorted(bags, key=len):
        size = len(bag)
        for place, word in enumerate(sorted(bag, key=lambda w: (frequency[w], w))):
            left = size - place
            if left < _NEAR * size:
                break
            buckets = index.setdefault(word, {})
            for (other_size, other_left), bucket in buckets.items():
                if _is_near(min(left, other_left), size, other_size):
                    _join_one(groups, bag, bags[bag], bucket)
            if _is_near(left, size, size):  # all that come later are as large or larger
                bucket = buckets.setdefault((size, left), {})
                bucket.setdefault(groups.leader(bags[bag]), []).append(bag)


def _join_one(groups: DisjointSets[str], bag: Bag, text: str, bucket: Bucket) -> None:
    """Join `text` with every group of `bucket` that has a member near it; name groups by leader again."""
    for old in [name for name in bucket if groups.leader(name) != name]:
        few, many = sorted((bucket.pop(old), bucket.get(groups.leader(old), [])), key=len)
        many.extend(few)  # the larger list stays, so that many merges stay cheap
        bucket[groups.leader(old)] = many
    for name, others in bucket.items():
        if groups.leader(name) != groups.leader(text) and any(
            _is_near(len(bag & other), len(bag), len(other)) for other in others
        ):
            groups.join(name, text)


def _is_near(shared: int, one: int, other: int) -> bool:
    """Return whether the Jaccard of sets of so many words, `shared` of them common, reaches `_NEAR`."""
    return shared >= _NEAR * (one + other - shared)
