"""Groups to splits, and near-identical texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.errors import InputError
from angle_data.gis.cleaning import Cleaned
from angle_data.gis.near import NearTexts, grams, overlap
from angle_data.gis.splits import Group, assign_splits, check_ratios

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}


def groups(*sizes):
    return {(1, n): Group(size, f"2020-01-{n % 28 + 1:02}") for n, size in enumerate(sizes)}


def totals(found, given):
    sums = dict.fromkeys(SHARES, 0)
    for leader, name in found.items():
        sums[name] += given[leader].pairs
    return sums


@pytest.mark.parametrize("by", ["cluster", "time", "repo"])
def test_shares_are_met(by):
    given = groups(*[1 + n % 3 for n in range(300)])
    found = totals(assign_splits(given, SHARES, by=by, seed=0), given)
    assert found["train"] == pytest.approx(480, abs=4)
    assert found["validation"] == pytest.approx(60, abs=4)
    assert found["test"] == pytest.approx(60, abs=4)


def test_large_groups_are_in_every_split():
    given = groups(*[10 if n % 5 == 0 else 1 for n in range(400)])
    found = assign_splits(given, SHARES, by="cluster", seed=1)
    assert {found[leader] for leader, group in given.items() if group.pairs == 10} == set(SHARES)


def test_time_puts_the_oldest_first():
    given = {(1, n): Group(1, f"20{10 + n}") for n in range(10)}
    found = assign_splits(given, SHARES, by="time", seed=0)
    assert [found[1, n] for n in range(10)] == ["train"] * 8 + ["validation", "test"]


def test_the_middle_of_a_group_decides():
    given = {(1, n): Group(4 if n == 8 else 1, f"20{10 + n}") for n in range(9)}
    assert assign_splits(given, SHARES, by="time", seed=0)[1, 8] == "validation"


def test_three_repositories_of_one_size_fill_three_splits():
    found = assign_splits(groups(10, 10, 10), SHARES, by="repo", seed=0)
    assert sorted(found.values()) == ["test", "train", "validation"]


@given(st.lists(st.integers(0, 5), min_size=3, max_size=30), st.integers(0, 3))
def test_every_group_has_a_split_and_none_is_empty(sizes, seed):
    given = groups(*sizes)
    for by in ("cluster", "repo"):
        found = assign_splits(given, SHARES, by=by, seed=seed)
        assert found.keys() == given.keys()
        if sum(size > 0 for size in sizes) >= 3:
            assert {found[leader] for leader in given if given[leader].pairs} == set(SHARES)


def test_another_seed_another_split():
    given = groups(*[1] * 50)
    assert assign_splits(given, SHARES, by="cluster", seed=0) == assign_splits(
        given, SHARES, by="cluster", seed=0
    )
    assert assign_splits(given, SHARES, by="cluster", seed=0) != assign_splits(
        given, SHARES, by="cluster", seed=1
    )


def test_ratios():
    assert check_ratios((0.9, 0.0, 0.1)) == {"train": 0.9, "test": 0.1}
    assert check_ratios((1.0,)) == {"train": 1.0}
    for bad in ((), (0.5, 0.1), (0.5, 0.6, -0.1), (0, 0.5, 0.5), (0.25,) * 4):
        with pytest.raises(InputError, match="--ratios"):
            check_ratios(bad)


class SomeTexts:
    """Texts by number."""

    def __init__(self, *texts):
        self._texts = texts

    def get(self, node):
        return Cleaned(self._texts[node[1]])


def test_overlap_is_the_jaccard_index_of_five_grams():
    assert overlap(grams("abcdefg"), grams("abcdefg")) == 1
    assert overlap(grams("abcdefg"), grams("abcdefx")) == pytest.approx(2 / 4)
    assert overlap(grams("Abc  DEFG."), grams("abc defg")) == 1
    assert overlap(grams("ab"), grams("xy")) == 0
    assert overlap(grams("ab"), grams("ab")) == 1


def test_near_identical_texts_are_found_and_others_are_not():
    words = [f"word{n}" for n in range(120)]
    text = " ".join(words)
    nearly = " ".join([*words[:60], "other", *words[61:]])
    half = " ".join([*words[:60], *(f"new{n}" for n in range(60))])
    assert overlap(grams(text), grams(nearly)) > 0.9 > overlap(grams(text), grams(half))
    for salt in ("", "check"):
        near = NearTexts(SomeTexts(text, nearly, half, text), salt)
        near.add((1, 0))
        assert list(near.neighbours((1, 1))) == [(1, 0)]
        assert list(near.neighbours((1, 3))) == [(1, 0)]
        assert list(near.neighbours((1, 2))) == []
        assert list(near.neighbours((1, 0))) == []
