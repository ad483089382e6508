"""Texts that are all but the same: compared with what all comparisons give."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.similar.near import NearSets, tokens
from angle_data.text import jaccard


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Disk, the DISK!", ["the", "disk", "the", "disk"]),
        ("ｆｕｌｌ width", ["full", "width"]),
        ("磁盘已满 on web1", ["磁盘", "盘已", "已满", "on", "web1"]),
        ("満 ?", ["満"]),
        (" ... ", []),
    ],
)
def test_tokens_are_words_and_pairs_of_characters_where_no_spaces_are_written(text, found):
    assert tokens(text) == found


BAGS = st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=8), max_size=25)


@pytest.mark.parametrize("least", [0.5, 0.75, 0.9])
@given(bags=BAGS, data=st.data())
def test_groups_are_those_of_all_comparisons_whatever_the_order_and_the_sample(least, bags, data):
    ascending = data.draw(st.booleans())
    order = data.draw(st.permutations(range(len(bags))))
    if ascending:
        order = sorted(order, key=lambda name: len(bags[name]))
    sample = order[: data.draw(st.integers(0, len(order)))]
    near = NearSets(least, bags.__getitem__, sample, ascending=ascending)
    leader = {}
    for name in order:
        joined = {leader[other] for other in leader if jaccard(bags[name], bags[other]) >= least}
        if not ascending:
            assert set(near.neighbours(name)) == joined
        assert set(near.add(name)) == joined
        smallest = min({name, *joined})
        leader = {one: smallest if old in joined else old for one, old in leader.items()} | {name: smallest}
    assert {name: near.groups.leader(name) for name in order} == leader


def test_a_text_is_not_its_own_neighbour_and_may_be_added_twice():
    bags = dict(zip("abc", map(frozenset, ("wxyz", "wxyz", "wxy")), strict=True))
    near = NearSets(0.75, bags.__getitem__, [])
    assert [near.add("a"), near.add("a"), near.neighbours("a")] == [[], [], []]
    assert [near.neighbours("b"), near.neighbours("c")] == [["a"], ["a"]]


def test_texts_without_a_token_are_near_to_none():
    near = NearSets(0.5, dict.fromkeys("ab", frozenset()).__getitem__, "ab")
    assert [near.add("a"), near.add("b")] == [[], []]


def test_hardly_any_text_is_compared_where_rare_tokens_differ():
    """Three words that all hold, and nine of its own."""
    bags = {n: frozenset([*"xyz", *(f"{n}own{i}" for i in range(9))]) for n in range(300)}
    asked = []
    near = NearSets(0.5, lambda name: asked.append(name) or bags[name], bags)
    before = len(asked)
    assert not any(near.add(name) for name in bags)
    assert len(asked) - before == len(bags)
    assert len(list(itertools.combinations(bags, 2))) > 40_000
