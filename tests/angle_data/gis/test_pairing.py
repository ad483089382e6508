"""Clusters to positive pairs."""

from collections import Counter

import pytest

from angle_data.gis.build.clean import Cleaned
from angle_data.gis.build.evidence import CONFIDENCE, Facts, Rank, Statement
from angle_data.gis.build.links import Link, unordered
from angle_data.gis.build.positives import HUB, find_clusters, positive_pairs


class SomeTexts:
    """A text of its own for every issue, but for those in `same`."""

    def __init__(self, same=()):
        self._same = same

    def get(self, node):
        n = 0 if node[1] in self._same else node[1]
        return Cleaned(" ".join(f"{n}x{i}" for i in range(40)))


def link(duplicate, canonical, *, kind="duplicate", rank=Rank.WRITE_ROLE):
    said = Statement(
        (1, duplicate), "o/r", canonical, "this_is_dup_of", "comment", kind, rank, CONFIDENCE[rank],
        f"https://x/{duplicate}", "2021", Facts(),
    )  # fmt: skip
    return Link(said, "accepted", "", (1, duplicate), (1, canonical))


def pairs_of(*links, most=10, same=(), seed=0):
    return positive_pairs(find_clusters(links), SomeTexts(same), most=most, seed=seed)


def test_the_duplicate_comes_first_with_its_evidence():
    (pair,), dropped, hubs = pairs_of(link(1, 2))
    assert (pair.one, pair.other, pair.label, pair.kind) == ((1, 1), (1, 2), 1, "duplicate")
    assert (pair.evidence, pair.evidence_url) == ("comment:duplicate:write_role", "https://x/1")
    assert pair.cluster == (1, 1)
    assert (dropped, hubs) == ([], 0)


def test_siblings_follow_the_links_and_are_no_more_than_these():
    pairs, dropped, _ = pairs_of(*(link(n, 1) for n in range(2, 7)))
    assert [pair.evidence == "transitive" for pair in pairs] == [False] * 5 + [True] * 5
    assert Counter(reason for reason, _ in dropped) == {"closure": 5}
    assert len({unordered(pair.one, pair.other) for pair in pairs}) == 10
    everything = [*pairs, *(pair for _, pair in dropped)]
    assert len({unordered(pair.one, pair.other) for pair in everything}) == 6 * 5 // 2


def test_a_chain_has_no_siblings():
    pairs, _, _ = pairs_of(link(3, 2), link(2, 1))
    assert {pair.evidence for pair in pairs} == {"comment:duplicate:write_role"}


def test_weak_links_give_no_siblings():
    pairs, _, _ = pairs_of(link(3, 1, kind="same"), link(2, 1))
    assert [(pair.one[1], pair.other[1]) for pair in pairs] == [(2, 1), (3, 1)] or len(pairs) == 2
    assert all(pair.evidence != "transitive" for pair in pairs)


def test_the_cap_keeps_the_best_backed():
    links = [link(n, 1, rank=Rank.EVENT if n == 5 else Rank.ADMITTED) for n in range(2, 9)]
    pairs, dropped, _ = pairs_of(*links, most=3)
    assert len(pairs) == 3
    assert pairs[0].one == (1, 5)
    assert Counter(reason for reason, _ in dropped)["cluster_cap"] == 7 + 7 - 3


@pytest.mark.parametrize(("size", "hubs"), [(HUB, 0), (HUB + 1, HUB * (HUB - 1) // 2)])
def test_a_hub_gives_its_links_only(size, hubs):
    pairs, dropped, found = pairs_of(*(link(n, 1) for n in range(2, size + 1)), most=1_000)
    assert found == hubs
    assert any(pair.evidence == "transitive" for pair in pairs) == (hubs == 0)
    assert len(pairs) + len(dropped) + found == size * (size - 1) // 2


def test_one_pair_of_copies_is_enough():
    pairs, dropped, _ = pairs_of(link(2, 1), link(3, 1), link(4, 1), same=(1, 2, 3))
    copies = [pair for pair in pairs if {pair.one[1], pair.other[1]} <= {1, 2, 3}]
    assert len(copies) == 1
    assert [reason for reason, _ in dropped] == ["near_identical"] * 2


def test_another_seed_chooses_others():
    links = [link(n, 1) for n in range(2, 12)]
    chosen = [{pair.one for pair in pairs_of(*links, most=5, seed=seed)[0]} for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]
