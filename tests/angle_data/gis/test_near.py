"""Near-identical texts in crowds of texts that are merely alike."""

import random

import pytest

from angle_data.gis.build.clean import Cleaned
from angle_data.gis.build.near import NEAR, NearTexts, grams, overlap
from angle_data.gis.build.positives import Clusters, Pair
from angle_data.gis.build.report import check_splits

TEMPLATE = [f"template{n}" for n in range(100)]


def filled(number):
    """The template with a few words of its own."""
    words = list(TEMPLATE)
    for place in random.Random(number).sample(range(100), 6):
        words[place] = f"own{number}at{place}"
    return " ".join(words)


class Crowd:
    """Sixty texts of one template, then a copy and a near copy of each of the last ten."""

    def __init__(self):
        firsts = [filled(number) for number in range(60)]
        copies = [f"  {text.upper()} " for text in firsts[50:]]
        self.texts = [*firsts, *copies, *(text + " and a bit more" for text in firsts[50:])]

    def get(self, node):
        return Cleaned(self.texts[node[1]])


@pytest.mark.parametrize("salt", ["", "check"])
def test_copies_are_found_in_a_crowd_of_one_template(salt):
    crowd = Crowd()
    assert 0.7 < overlap(grams(crowd.texts[0]), grams(crowd.texts[1])) < NEAR
    near = NearTexts(crowd, salt)
    for number in range(60):
        assert near.add((1, number)) == []
    for number in range(50, 60):
        assert near.add((1, number + 10)) == [(1, number)]
        assert list(near.neighbours((1, number + 20))) == [(1, number)]


def test_groups_go_over_texts_between():
    words = [f"word{n}" for n in range(200)]
    texts = [" ".join(words[shift : shift + 150]) for shift in (0, 6, 12)]
    assert overlap(grams(texts[0]), grams(texts[2])) < NEAR < overlap(grams(texts[0]), grams(texts[1]))
    crowd = Crowd()
    crowd.texts = texts
    near = NearTexts(crowd)
    for number in (0, 2, 1):
        near.add((1, number))
    assert near.groups.leader((1, 2)) == (1, 0)


@pytest.mark.parametrize(
    ("other", "blind", "found"), [(60, False, 1), (60, True, 1), (70, False, 1), (1, False, 0)]
)
def test_the_check_of_the_splits_does_not_rely_on_the_index_for_copies(monkeypatch, other, blind, found):
    def pair(one, two):
        return Pair((1, one), (1, two), 1, "duplicate", "event", "", (1, one))

    if blind:
        monkeypatch.setattr(NearTexts, "add", lambda *_: [])
    splits = {"train": [pair(50, 2)], "test": [pair(other, 3)]}
    assert check_splits(splits, Clusters(), Crowd())["near_identical_texts"] == found


def test_a_text_added_twice_is_its_own_copy_once():
    near = NearTexts(Crowd())
    assert [near.add((1, 3)), near.add((1, 3))] == [[], []]
    assert near.add((1, 53)) == []
    assert near.add((1, 63)) == [(1, 53)]
