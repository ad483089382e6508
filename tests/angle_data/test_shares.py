"""Who goes to train, validation and test."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.errors import InputError
from angle_data.splits import check_ratios, draw_split, fill_shares, missed_shares, parse_ratios

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}


def groups(*sizes):
    return {(1, n): size for n, size in enumerate(sizes)}


def totals(found, given):
    return {name: sum(given[key] for key in found if found[key] == name) for name in SHARES}


@pytest.mark.parametrize("few", [False, True])
def test_shares_are_met(few):
    given = groups(*[1 + n % 3 for n in range(300)])
    found = totals(fill_shares(given, SHARES, seed=0, few=few), given)
    wanted = {"train": 480, "validation": 60, "test": 60}
    assert fill_shares(given, SHARES, seed=0, few=few) != fill_shares(given, SHARES, seed=1, few=few)
    assert found == {name: pytest.approx(size, abs=4) for name, size in wanted.items()}


def test_large_groups_do_not_overfill_a_small_split():
    """220 pairs, some groups of 18 to 40: 7 % are 15.4 pairs, and a hundredth is 2.2."""
    given = groups(40, 30, 24, 18, *[1 + n % 5 for n in range(37)])
    shares = {"train": 0.86, "validation": 0.07, "test": 0.07}
    for seed in range(20):
        found = totals(fill_shares(given, shares, seed=seed), given)
        assert max(found["validation"], found["test"]) <= 0.07 * 220 + 2.2
        assert found["train"] <= 0.86 * 220 + 2.2


def test_a_missed_share_is_told():
    assert missed_shares({"train": 82, "validation": 9, "test": 9}, SHARES) == ""
    assert missed_shares({"train": 88, "validation": 6, "test": 6}, SHARES) == (
        "train 88% instead of 80%, validation 6% instead of 10%, test 6% instead of 10%"
    )


@given(st.lists(st.integers(0, 5), min_size=3, max_size=30), st.integers(0, 3), st.booleans())
def test_every_group_has_a_split_and_none_is_empty(sizes, seed, few):
    given = groups(*sizes)
    found = fill_shares(given, SHARES, seed=seed, few=few)
    assert found == fill_shares(given, SHARES, seed=seed, few=few)
    assert found.keys() == given.keys()
    if sum(size > 0 for size in sizes) >= 3:
        assert {found[leader] for leader in given if given[leader]} == set(SHARES)


def test_keys_are_drawn_by_their_shares():
    drawn = [draw_split(f"key {n}", SHARES) for n in range(2_000)]
    assert drawn.count("train") == pytest.approx(1_600, abs=80)
    assert drawn.count("test") == pytest.approx(200, abs=50)
    assert drawn == [draw_split(f"key {n}", SHARES) for n in range(2_000)]


def test_ratios():
    assert check_ratios(parse_ratios("0.9,0,0.1")) == {"train": 0.9, "test": 0.1}
    assert check_ratios((1.0,)) == {"train": 1.0}


@pytest.mark.parametrize(
    "bad",
    [(), (0.5, 0.1), (0.5, 0.6, -0.1), (0, 0.5, 0.5), (0.25,) * 4, (float("nan"), 0.5, 0.5), (float("inf"),)],
)
def test_ratios_that_are_none(bad):
    with pytest.raises(InputError, match="give the shares of train, validation, test, in sum 1"):
        check_ratios(bad)
