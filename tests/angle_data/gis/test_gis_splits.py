"""Issues to splits by time, and near-identical texts; tests/angle_data/test_shares.py has how shares fill."""

import random

import pytest
from fake_gis_store import Listed, make_comment, make_issue, write_store

from angle_data.gis.build.build import build_gis
from angle_data.gis.build.links import Pair
from angle_data.gis.build.near import near_texts
from angle_data.gis.build.positives import Clusters
from angle_data.gis.build.report import check_splits
from angle_data.gis.build.splits import find_periods, split_at_time
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.rehydrate import read_dataset
from angle_data.similar.near import is_near

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
WORDS = [f"word{n}" for n in range(200)]


def test_periods_follow_each_other_and_meet_the_shares():
    pairs = [(f"2020-{n:03}", f"2020-{n + 1:03}") for n in range(500)]
    periods = find_periods(pairs, SHARES)
    kept = [0, 0, 0]
    for oldest, latest in pairs:
        first, last = split_at_time(periods, oldest), split_at_time(periods, latest)
        if first == last:
            kept[list(periods).index(first)] += 1
    assert list(periods) == ["train", "validation", "test"]
    assert periods["train"] < periods["validation"]
    assert kept == [pytest.approx(400, abs=10), pytest.approx(50, abs=10), pytest.approx(50, abs=10)]


def test_long_reaches_move_the_borders_until_the_shares_are_met():
    """Every second pair goes back to the first day: it can be kept in the first period alone."""
    pairs = [("2020-000" if n % 2 else f"2020-{n:03}", f"2020-{n:03}") for n in range(400)]
    periods = find_periods(pairs, {"train": 0.5, "test": 0.5})
    train = sum(latest <= periods["train"] for _, latest in pairs)
    test = sum(oldest > periods["train"] for oldest, _ in pairs)
    assert train == pytest.approx(test, abs=8)


def test_a_border_belongs_to_the_older_period_and_few_days_make_few_periods():
    periods = find_periods([("a", "a"), ("b", "b")], SHARES)
    assert list(periods.items()) == [("train", "a"), ("validation", None)]
    found = [split_at_time(periods, time) for time in ("", "a", "aa", "z")]
    assert found == ["train", "train", "validation", "validation"]
    assert find_periods([("a", "a")], SHARES) == {"train": None}


def test_near_identical_texts_are_found_and_others_are_not():
    text = " ".join(WORDS[:120])
    nearly = " ".join([*WORDS[:60], "other", *WORDS[61:120]])
    half = " ".join([*WORDS[:60], *(f"new{n}" for n in range(60))])
    assert is_near(text, nearly)
    assert not is_near(text, half)
    near = near_texts(Listed(text, nearly, half, text), [])
    assert [near.add((1, 0)), near.add((1, 0))] == [[], []]
    found = [list(near.neighbours((1, n))) for n in range(4)]
    assert found == [[], [(1, 0)], [], [(1, 0)]]


def test_groups_go_over_texts_between():
    texts = [" ".join(WORDS[shift : shift + 150]) for shift in (0, 10, 20)]
    assert is_near(texts[0], texts[1])
    assert not is_near(texts[0], texts[2])
    near = near_texts(Listed(*texts), [(1, 0)])
    for number in (0, 2, 1):
        near.add((1, number))
    assert near.groups.leader((1, 2)) == (1, 0)


def filled(number):
    """A template with a few words of its own."""
    words = WORDS[:100]
    for place in random.Random(number).sample(range(100), 6):
        words[place] = f"own{number}at{place}"
    return " ".join(words)


@pytest.fixture(scope="module")
def crowd():
    """Sixty texts of one template, then a copy and a near copy of each of the last ten."""
    firsts = [filled(number) for number in range(60)]
    copies = [f"  {text.upper()} " for text in firsts[50:]]
    return Listed(*firsts, *copies, *(text + " and a bit more" for text in firsts[50:]))


def test_copies_are_found_in_a_crowd_of_one_template(crowd):
    assert not is_near(crowd.texts[0], crowd.texts[1])
    near = near_texts(crowd, [(1, 0)])
    for number in range(60):
        assert near.add((1, number)) == []
    for number in range(50, 60):
        assert near.add((1, number + 10)) == [(1, number)]
        assert list(near.neighbours((1, number + 20))) == [(1, number)]


def short_text(number, words, version):
    """A report of so many words, of which the version is one."""
    drawn = random.Random(number).choices(WORDS, k=words - 2)
    place = number % (words - 1)
    return " ".join([*drawn[:place], "version", version, *drawn[place:]])


def test_short_texts_that_differ_in_a_version_lie_in_one_split(tmp_path):
    """Sixty of 10 to 32 words occur again in other clusters, with another version."""
    issues, marks = [], []
    for number in range(60):
        for again, version in enumerate((f"1.2.{number}", f"1.10.{number + 1}")):
            original = 200 * again + number + 1
            title, body = short_text(number, 10 + number % 23, version).split(" ", 1)
            own = [f"own{original}w{i}" for i in range(15)]
            issues.append(make_issue(original, title, body))
            issues.append(make_issue(original + 100, " ".join(own[:5]), " ".join(own[5:])))
            marks.append(make_comment(original, original + 100, f"Duplicate of #{original}", 900))
    path = write_store(tmp_path, issues=sorted(issues, key=lambda issue: issue.number), comments=marks)
    summary = build_gis(GisConfig(path.parent, ratios=(0.5, 0.25, 0.25)))
    splits = {number: split for split, row in read_dataset(summary.dataset)
              for number in (row["number1"], row["number2"])}  # fmt: skip
    assert {1, 60, 201, 260} <= set(splits)
    assert [n for n in range(1, 61) if splits[n] != splits[n + 200]] == []
    assert len(set(splits.values())) == 3


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("a b c d e f g h 12 j", "a b c d e f g h 13 j", True),
        ("on 2.10.1 a b c d e f g h", "on 3.0.12 a b c d e f g h", True),
        ("a b c d e f g h i j", "a b c d x f g h i y", False),
        ("App crashes on start", "App crashes on exit", False),
        ("", "", False),
        ("Crash", "crash!", True),
    ],
)
def test_near_is_one_word_in_a_short_text(one, other, near):
    assert is_near(one, other) is near


def pair(one, two):
    return Pair((1, one), (1, two), 1, "duplicate", "event", "", (1, one))


@pytest.mark.parametrize(
    ("other", "together", "found"),
    [((3, 4), (), (0, 0, 0)), ((2, 4), (), (1, 1, 0)), ((3, 4), (2, 3), (0, 1, 0)),
     ((60, 3), (), (0, 0, 1)), ((70, 3), (), (0, 0, 1))],
)  # fmt: skip
def test_what_is_in_two_splits_is_noticed(crowd, other, together, found):
    """An issue, a cluster, a copy of the text of 50, and a near copy of it."""
    clusters = Clusters()
    if together:
        clusters.every.join(*((1, n) for n in together))
    splits = {"train": [pair(50, 2)], "test": [pair(*other)]}
    assert tuple(check_splits(splits, clusters, crowd).values()) == found
