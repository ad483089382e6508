"""Groups to splits, and near-identical texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.errors import InputError
from angle_data.gis.build.clean import Cleaned
from angle_data.gis.build.near import NearTexts, grams, overlap
from angle_data.gis.build.splits import find_periods
from angle_data.splits import check_ratios, fill_shares, missed_shares

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}


def groups(*sizes):
    return {(1, n): size for n, size in enumerate(sizes)}


def totals(found, given):
    sums = dict.fromkeys(SHARES, 0)
    for leader, name in found.items():
        sums[name] += given[leader]
    return sums


@pytest.mark.parametrize("few", [False, True])
def test_shares_are_met(few):
    given = groups(*[1 + n % 3 for n in range(300)])
    found = totals(fill_shares(given, SHARES, few=few, seed=0), given)
    assert found["train"] == pytest.approx(480, abs=4)
    assert found["validation"] == pytest.approx(60, abs=4)
    assert found["test"] == pytest.approx(60, abs=4)


def test_large_groups_are_in_every_split():
    given = groups(*[10 if n % 5 == 0 else 1 for n in range(400)])
    found = fill_shares(given, SHARES, seed=1)
    assert {found[leader] for leader, size in given.items() if size == 10} == set(SHARES)


def test_large_groups_do_not_overfill_a_small_split():
    """220 pairs, some groups of 18 to 40: 7 % are 15.4 pairs, and a hundredth is 2.2."""
    for seed in range(20):
        given = groups(40, 30, 24, 18, *[1 + n % 5 for n in range(37)])
        assert sum(given.values()) == 220
        shares = {"train": 0.86, "validation": 0.07, "test": 0.07}
        found = totals(fill_shares(given, shares, seed=seed), given)
        assert max(found["validation"], found["test"]) <= 0.07 * 220 + 2.2
        assert found["train"] <= 0.86 * 220 + 2.2


def test_a_missed_share_is_told():
    assert missed_shares({"train": 82, "validation": 9, "test": 9}, SHARES) == ""
    assert missed_shares({"train": 88, "validation": 6, "test": 6}, SHARES) == (
        "train 88% instead of 80%, validation 6% instead of 10%, test 6% instead of 10%"
    )


def test_periods_follow_each_other_and_meet_the_shares():
    pairs = [(f"2020-{n:03}", f"2020-{n + 1:03}") for n in range(500)]
    periods = find_periods(pairs, SHARES)
    kept = [0, 0, 0]
    for oldest, latest in pairs:
        first, last = periods.split_of(oldest), periods.split_of(latest)
        if first == last:
            kept[periods.splits.index(first)] += 1
    assert periods.splits == ("train", "validation", "test")
    assert periods.borders[0] < periods.borders[1]
    assert kept == [pytest.approx(400, abs=10), pytest.approx(50, abs=10), pytest.approx(50, abs=10)]


def test_long_reaches_move_the_borders_until_the_shares_are_met():
    """Every second pair goes back to the first day: it can be kept in the first period alone."""
    pairs = [("2020-000" if n % 2 else f"2020-{n:03}", f"2020-{n:03}") for n in range(400)]
    periods = find_periods(pairs, {"train": 0.5, "test": 0.5})
    train = sum(latest <= periods.borders[0] for _, latest in pairs)
    test = sum(oldest > periods.borders[0] for oldest, _ in pairs)
    assert train == pytest.approx(test, abs=8)


def test_a_border_belongs_to_the_older_period_and_few_days_make_few_periods():
    periods = find_periods([("a", "a"), ("b", "b")], SHARES)
    assert (periods.splits, periods.borders) == (("train", "validation"), ("a",))
    assert [periods.split_of(time) for time in ("", "a", "aa", "z")] == [
        "train", "train", "validation", "validation",
    ]  # fmt: skip
    assert find_periods([("a", "a")], SHARES).split_of("z") == "train"


def test_three_repositories_of_one_size_fill_three_splits():
    found = fill_shares(groups(10, 10, 10), SHARES, few=True, seed=0)
    assert sorted(found.values()) == ["test", "train", "validation"]


@given(st.lists(st.integers(0, 5), min_size=3, max_size=30), st.integers(0, 3))
def test_every_group_has_a_split_and_none_is_empty(sizes, seed):
    given = groups(*sizes)
    for few in (False, True):
        found = fill_shares(given, SHARES, few=few, seed=seed)
        assert found.keys() == given.keys()
        if sum(size > 0 for size in sizes) >= 3:
            assert {found[leader] for leader in given if given[leader]} == set(SHARES)


def test_another_seed_another_split():
    given = groups(*[1] * 50)
    assert fill_shares(given, SHARES, seed=0) == fill_shares(given, SHARES, seed=0)
    assert fill_shares(given, SHARES, seed=0) != fill_shares(given, SHARES, seed=1)


def test_ratios():
    assert check_ratios((0.9, 0.0, 0.1)) == {"train": 0.9, "test": 0.1}
    assert check_ratios((1.0,)) == {"train": 1.0}
    for bad in (
        (),
        (0.5, 0.1),
        (0.5, 0.6, -0.1),
        (0, 0.5, 0.5),
        (0.25,) * 4,
        (float("nan"), 0.5, 0.5),
        (0.5, float("nan")),
        (float("inf"),),
    ):
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
