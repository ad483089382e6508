"""Which texts share most, by hand and by comparing each with each."""

import math
import random

import numpy as np
import pytest

from angle_data.similar.ranking import Index, numbered

TEXTS = ["disk full on web", "disk full full", "web is slow", "queue", "queue on web slow slow"]
RARITY = {
    word: math.log(6 / sum(word in text.split() for text in TEXTS))
    for word in ["disk", "full", "on", "web", "is", "slow", "queue"]
}


@pytest.fixture(scope="module")
def index():
    return Index(numbered(text.split()) for text in TEXTS)


def weight(words):
    return sum(RARITY.get(word, math.log(6)) for word in words)


@pytest.mark.parametrize(
    "other", ["disk full full", "web", "disk of web", "nothing at all", "full disk on web"]
)
def test_overlap_is_the_share_of_the_weights(index, other):
    one, two = {*TEXTS[0].split()}, {*other.split()}
    found = index.overlap(numbered(TEXTS[0].split()), numbered(other.split()))
    assert found == pytest.approx(weight(one & two) / weight(one | two))


def test_nearest_texts_are_those_of_all_comparisons_and_equals_take_turns():
    rng = random.Random(0)
    texts = [rng.sample(range(40), 6) for _ in range(60)] + [[99]]
    index = Index(np.array(text, dtype=np.uint32) for text in texts)
    weights = {
        word: math.log(62 / sum(word in text for text in texts))
        for word in range(100)
        if any(word in text for text in texts)
    }

    def share(one, other):
        both, either = ({*texts[one]} & {*texts[other]}), ({*texts[one]} | {*texts[other]})
        return sum(map(weights.get, both)) / sum(map(weights.get, either))

    for place in range(60):
        others = [other for other in range(60) if other != place and {*texts[place]} & {*texts[other]}]
        expected = sorted(others, key=lambda other: (-round(share(place, other), 9), (other - place) % 61))
        found, overlaps = index.nearest(place, 99, words=6, window=99)
        assert found.tolist() == expected
        assert overlaps.tolist() == pytest.approx([share(place, other) for other in expected])
    assert [len(part) for part in index.nearest(60, 99, words=6, window=99)] == [0, 0]


def test_a_common_token_leads_to_those_that_stand_beside_a_text():
    index = Index(numbered(["all"]) for _ in range(50))
    found, overlaps = index.nearest(25, 99, words=6, window=10)
    assert sorted(found.tolist()) == [20, 21, 22, 23, 24, 26, 27, 28, 29]
    assert sorted(index.nearest(0, 99, words=6, window=10)[0].tolist()) == list(range(1, 10))
    assert sorted(index.nearest(49, 99, words=6, window=10)[0].tolist()) == list(range(40, 49))
    assert set(overlaps.tolist()) == {1.0}
