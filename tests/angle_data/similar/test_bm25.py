"""BM25 against its definition, computed text by text."""

import math
import random

import pytest

from angle_data.similar.bm25 import BM25

WORDS = [f"w{number}" for number in range(40)]


def slow(texts, query):
    """The score of every text."""
    split = [text.split() for text in texts]
    mean = sum(map(len, split)) / len(split)
    scores = []
    for words in split:
        score = 0.0
        for word in query.split():
            holding = sum(word in other for other in split)
            rarity = math.log(1 + (len(split) - holding + 0.5) / (holding + 0.5))
            times = words.count(word)
            score += rarity * times * 2.2 / (times + 1.2 * (1 - 0.75 + 0.75 * len(words) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("seed", range(5))
def test_scores_and_order_are_those_of_the_definition(seed):
    dice = random.Random(seed)
    texts = [" ".join(dice.choices(WORDS, k=dice.randrange(1, 30))) for _ in range(60)]
    query = " ".join(dice.choices([*WORDS, "unknown"], k=5))
    index, expected = BM25(texts), slow(texts, query)
    assert index.scores(query).tolist() == pytest.approx(expected, rel=1e-5)
    places, scores = index.best(query, 7)
    order = sorted((at for at in range(60) if expected[at]), key=lambda at: (-expected[at], at))[:7]
    assert [round(expected[at], 4) for at in places] == [round(expected[at], 4) for at in order]
    assert scores.tolist() == sorted(scores, reverse=True)


def test_texts_that_share_no_word_are_not_found_and_no_texts_are_no_error():
    assert BM25(["a b", "c"]).best("d", 3)[0].tolist() == []
    assert BM25([]).best("d", 3)[0].tolist() == []
    assert BM25(["b b", "b", "a"]).best("a", 3)[0].tolist() == [2]
