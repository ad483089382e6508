"""Links to clusters, clusters to positive pairs."""

from collections import Counter
from itertools import permutations

import pytest
from fake_gis_store import SomeTexts
from hypothesis import given
from hypothesis import strategies as st

from angle_data.gis.build.evidence import Statement
from angle_data.gis.build.facts import Facts, Rank
from angle_data.gis.build.links import unordered
from angle_data.gis.build.positives import HUB, find_clusters, positive_pairs


def link(duplicate, canonical, *, kind="duplicate", rank=Rank.WRITE_ROLE, status="accepted", at="2021"):
    return Statement(
        (1, duplicate), "org/one", canonical, "this_is_dup_of", "comment", kind, rank,
        f"https://x/{duplicate}", at, Facts(), status=status, ends=((1, duplicate), (1, canonical)),
    )  # fmt: skip


def pairs_of(*links, most=10, same=(), seed=0):
    return positive_pairs(find_clusters(links), SomeTexts(same), most=most, seed=seed)


def test_accepted_links_merge_in_chains_and_the_rest_stays_apart():
    clusters = find_clusters([link(3, 2), link(2, 1), link(6, 5), link(8, 1, status="tentative")])
    assert clusters.sizes() == {(1, 1): 3, (1, 5): 2}
    assert clusters.issues == {(1, n) for n in (1, 2, 3, 5, 6)}


def test_weak_words_make_a_pair_and_merge_nothing():
    links = [link(2, 1), link(4, 3), link(3, 2, kind="same"), link(3, 2, kind="same:pull")]
    clusters = find_clusters(links)
    assert len(clusters.edges) == 3
    assert clusters.sizes() == {(1, 1): 2, (1, 3): 2}
    assert len({clusters.every.leader((1, n)) for n in (1, 2, 3, 4)}) == 1
    # Nor do they make the duplicates of one original siblings.
    pairs, _, _ = pairs_of(link(3, 1, kind="same"), link(2, 1))
    assert sorted((pair.one[1], pair.other[1]) for pair in pairs) == [(2, 1), (3, 1)]


def test_the_best_statement_of_a_link_is_kept():
    ranked = [link(2, 1, rank=Rank.ADMITTED, at="2020"), link(2, 1, rank=Rank.EVENT, at="2022"), link(1, 2)]
    for order in permutations(ranked):
        (edge,) = find_clusters(order).edges
        assert edge.rank is Rank.EVENT
        assert (edge.duplicate, edge.canonical) == ((1, 2), (1, 1))


NUMBERS = st.integers(1, 12)


@given(st.lists(st.tuples(NUMBERS, NUMBERS).filter(lambda pair: pair[0] != pair[1]), max_size=20))
def test_clusters_are_equivalence_classes(pairs):
    clusters = find_clusters([link(*pair) for pair in pairs])
    reach = {n: {n} for n in range(1, 13)}
    for _ in range(12):
        for one, other in pairs:
            reach[one] |= reach[other]
            reach[other] |= reach[one]
    for one in reach:
        for other in reach:
            together = clusters.strong.leader((1, one)) == clusters.strong.leader((1, other))
            assert together == (other in reach[one])


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
    everything = [*pairs, *(pair for _, pair in dropped)]
    assert len({unordered(pair.one, pair.other) for pair in everything}) == 6 * 5 // 2
    chain, _, _ = pairs_of(link(3, 2), link(2, 1))
    assert {pair.evidence for pair in chain} == {"comment:duplicate:write_role"}


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
