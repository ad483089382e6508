"""Links to clusters."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from angle_data.gis.build.evidence import CONFIDENCE, Facts, Rank, Statement
from angle_data.gis.build.links import Link
from angle_data.gis.build.positives import find_clusters


def link(duplicate, canonical, *, kind="duplicate", rank=Rank.WRITE_ROLE, status="accepted", at="2021"):
    said = Statement(
        (1, duplicate), "org/one", canonical, "this_is_dup_of", "comment", kind, rank, CONFIDENCE[rank],
        f"https://x/{duplicate}-{canonical}-{at}", at, Facts(),
    )  # fmt: skip
    return Link(said, status, "" if status == "accepted" else "guess", (1, duplicate), (1, canonical))


def test_chains_merge_and_the_rest_stays_apart():
    clusters = find_clusters([link(3, 2), link(2, 1), link(6, 5)])
    assert clusters.sizes() == {(1, 1): 3, (1, 5): 2}


def test_only_accepted_links_count():
    assert find_clusters([link(2, 1, status="tentative")]).edges == []


def test_weak_words_make_a_pair_and_merge_nothing():
    clusters = find_clusters([link(2, 1), link(4, 3), link(3, 2, kind="same"), link(3, 2, kind="same:pull")])
    assert len(clusters.edges) == 3
    assert clusters.sizes() == {(1, 1): 2, (1, 3): 2}
    assert len({clusters.every.leader((1, n)) for n in (1, 2, 3, 4)}) == 1


def test_circles_are_counted_and_do_no_harm():
    clusters = find_clusters([link(2, 1), link(1, 2), link(3, 2), link(1, 3)])
    assert clusters.sizes() == {(1, 1): 3}
    assert (clusters.repeated, clusters.circles) == (1, 1)


def test_the_best_statement_of_a_link_is_kept():
    links = [
        link(2, 1, rank=Rank.ADMITTED, at="2020"),
        link(2, 1, rank=Rank.EVENT, at="2022"),
        link(1, 2, at="2021"),
    ]
    for order in permutations(links):
        (edge,) = find_clusters(order).edges
        assert edge.link.statement.rank is Rank.EVENT
        assert (edge.duplicate, edge.canonical) == ((1, 2), (1, 1))


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)).filter(lambda p: p[0] != p[1]), max_size=20)
)
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
