"""Which split each text gets, so that no text and no near copy of a source stands in two of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from angle_data.ensembling.given import GivenPair
from angle_data.ensembling.read import Source
from angle_data.ensembling.strategies import Choice
from angle_data.similar.near import Nearness, NearSets, tokens
from angle_data.splits import draw_split
from angle_data.text import content_id, normalise

_NEAR = Nearness(least=0.75)  # of the words of two sources that share a split


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
    bags = {key: frozenset(tokens(key)) for key in sorted(members)}
    near = NearSets(_NEAR, bags.__getitem__, bags, ascending=True)
    owner: dict[str, str] = {}
    for key in bags:
        for text in (key, *members[key]):
            near.groups.join(owner.setdefault(text, key), key)
    for key in sorted(bags, key=lambda key: len(bags[key])):
        near.add(key)
    return {key: near.groups.leader(key) for key in members}
