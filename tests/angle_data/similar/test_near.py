"""Texts that are all but the same: compared with what all comparisons give."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from angle_data.similar.near import Nearness, NearSets, tokens, word_pairs


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


def test_word_pairs_keep_numbers_whole():
    assert word_pairs("Fails in v2.10.1 (2026-01-02)") == {"fails in", "in v2101", "v2101 20260102"}
    assert [word_pairs("Fails!"), word_pairs("!")] == [{"fails"}, set()]


BAGS = st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=8), max_size=25)


def is_near_by_hand(nearness, one, other):
    """As `Nearness` says it, by the sets themselves."""
    if len(one & other) >= nearness.least * len(one | other):
        return bool(one | other)
    long_enough = len(one) >= nearness.spare_from and len(other) >= nearness.spare_from
    return long_enough and len(one - other) <= nearness.spared and len(other - one) <= nearness.spared


NEARNESSES = [Nearness(0.5), Nearness(0.75), Nearness(0.9), Nearness(0.9, 2, 5), Nearness(0.8, 1, 3)]


@pytest.mark.parametrize("nearness", NEARNESSES)
@given(bags=BAGS, data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_groups_are_those_of_all_comparisons_whatever_the_order_and_the_sample(
    nearness, bags, data, monkeypatch
):
    ascending = data.draw(st.booleans())
    order = data.draw(st.permutations(range(len(bags))))
    if ascending:
        order = sorted(order, key=lambda name: len(bags[name]))
    sample = order[: data.draw(st.integers(0, len(order)))]
    # Which tokens are common and which texts are short decides only what is indexed.
    monkeypatch.setattr("angle_data.similar.near._RARE", data.draw(st.integers(0, 5)))
    monkeypatch.setattr("angle_data.similar.near._SHORT", data.draw(st.integers(0, 9)))
    near = NearSets(nearness, bags.__getitem__, sample, ascending=ascending)
    leader = {}
    for name in order:
        joined = {leader[other] for other in leader if is_near_by_hand(nearness, bags[name], bags[other])}
        if not ascending:
            assert set(near.neighbours(name)) == joined
        assert set(near.add(name)) == joined
        smallest = min({name, *joined})
        leader = {one: smallest if old in joined else old for one, old in leader.items()} | {name: smallest}
    assert {name: near.groups.leader(name) for name in order} == leader


@pytest.mark.parametrize("nearness", NEARNESSES)
@pytest.mark.parametrize("short", [0, 3, 6])
def test_any_two_sets_of_common_tokens_are_found_if_near(nearness, short, monkeypatch):
    monkeypatch.setattr("angle_data.similar.near._RARE", 0)
    monkeypatch.setattr("angle_data.similar.near._SHORT", short)
    for holders in itertools.product(("one", "other", "both", "neither"), repeat=6):
        bags = {
            name: frozenset(
                token for token, holder in zip("abcdef", holders, strict=True) if holder in (name, "both")
            )
            for name in ("one", "other")
        }
        near = NearSets(nearness, bags.__getitem__, bags)
        near.add("one")
        assert near.add("other") == ["one"] * is_near_by_hand(nearness, bags["one"], bags["other"]), bags


def test_a_text_is_not_its_own_neighbour_and_may_be_added_twice():
    bags = dict(zip("abc", map(frozenset, ("wxyz", "wxyz", "wxy")), strict=True))
    near = NearSets(Nearness(0.75), bags.__getitem__, [])
    assert [near.add("a"), near.add("a"), near.neighbours("a")] == [[], [], []]
    assert [near.neighbours("b"), near.neighbours("c")] == [["a"], ["a"]]


def test_texts_without_a_token_are_near_to_none():
    near = NearSets(Nearness(0.5), dict.fromkeys("ab", frozenset()).__getitem__, "ab")
    assert [near.add("a"), near.add("b")] == [[], []]


def test_hardly_any_text_is_compared_where_rare_tokens_differ():
    """Three words that all hold, and nine of its own."""
    bags = {n: frozenset([*"xyz", *(f"{n}own{i}" for i in range(9))]) for n in range(300)}
    asked = []
    near = NearSets(Nearness(0.5), lambda name: asked.append(name) or bags[name], bags)
    before = len(asked)
    assert not any(near.add(name) for name in bags)
    assert len(asked) - before == len(bags)
    assert len(list(itertools.combinations(bags, 2))) > 40_000


def test_hardly_any_text_is_compared_where_a_rare_token_is_all_that_is_shared():
    bags = {n: frozenset(["0", *(f"{n}own{i}" for i in range(9))]) for n in range(300)}
    asked = []
    near = NearSets(Nearness(0.5), lambda name: asked.append(name) or bags[name], [])
    assert not any(near.add(name) for name in bags)
    assert len(asked) < 2 * len(bags)
