"""Parts of few graded pairs, and what is chosen from what was measured on them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.errors import InputError
from angle_data.text import normalise
from angle_train.data.pairs import PairSet
from angle_train.data.splits import cut, shared_texts
from angle_train.train.choosing import FoldCurve, choose


def make(pairs, scores=None):
    scores = scores if scores is not None else np.linspace(0, 1, len(pairs))
    return PairSet(
        "made", [a for a, _ in pairs], [b for _, b in pairs], np.array(scores), np.ones(len(pairs))
    )


def single(count):
    return make([(f"a{i}", f"b{i}") for i in range(count)])


@given(st.integers(6, 60), st.integers(2, 8), st.integers(0, 5))
def test_every_pair_is_in_one_part_and_parts_are_alike(count, parts, seed):
    pairs = single(count)
    found = cut(pairs, parts, seed)
    assert sorted(i for part in found for i in part) == list(range(count))
    sizes = list(map(len, found))
    assert len(found) == min(parts, count // 3)
    assert max(sizes) - min(sizes) <= 1
    # Dealt by score: no part has the low or the high ones alone.
    means = [pairs.score[part].mean() for part in found]
    assert max(means) - min(means) < 1 / min(sizes)


def test_pairs_that_share_a_text_stay_together():
    chains = [(f"{chain}-{i}", f"{chain}-{i + 1}") for chain in range(12) for i in range(2)]
    pairs = make(chains)
    parts = cut(pairs, 4, seed=1)
    texts = [{normalise(t) for i in part for t in (pairs.text1[i], pairs.text2[i])} for part in parts]
    assert sum(map(len, texts)) == len(set().union(*texts))
    assert parts == cut(pairs, 4, seed=1)


def test_pairs_that_all_share_texts_are_dealt_singly(caplog):
    pairs = make([("hub", f"b{i}") for i in range(12)])
    assert sorted(map(len, cut(pairs, 3, seed=1))) == [4, 4, 4]
    assert "too many pairs share texts, so single pairs are dealt" in caplog.text


def test_parts_that_would_be_half_as_large_as_wanted_are_dealt_singly(caplog):
    # 40 pairs in 4 parts of 10: the group of 28 leaves 4 for each of the others.
    pairs = make([("hub", f"b{i}") for i in range(28)] + [(f"c{i}", f"d{i}") for i in range(12)])
    assert sorted(map(len, cut(pairs, 4, seed=1))) == [10, 10, 10, 10]
    assert "single pairs are dealt" in caplog.text


def test_texts_in_several_parts_are_counted():
    pairs = make([("Hub", "b0"), ("hub ", "b1"), ("c", "b0"), ("d", "e")])
    assert shared_texts(pairs, [[0, 3], [1, 2]]) == (2, 6)  # hub and b0 of hub, b0, b1, c, d, e
    assert shared_texts(pairs, [[0, 1, 2], [3]]) == (0, 6)


def test_too_few_pairs_are_refused():
    with pytest.raises(InputError, match="made: 5 pairs are too few to choose the number of steps on"):
        cut(single(5), 5, seed=0)


def curve(backbone, dev):
    return FoldCurve(backbone, dev, [])


def test_a_mean_that_is_clearly_best_over_the_parts_is_chosen():
    curves = [curve(0.1, [[0.2, 0.3], [0.9, 0.1]]), curve(0.3, [[0.4, 0.5], [0.2, 0.2], [9.0, 9.0]])]
    choice = choose(curves)  # the last evaluation is missing in the first part
    assert (choice.evaluation, choice.share) == (2, 0)
    assert choice.scores == [0.9, 0.2]
    assert choice.mean == pytest.approx(0.55)
    assert choice.spread == pytest.approx(np.std([0.9, 0.2], ddof=1))


@pytest.mark.parametrize(
    ("parts", "evaluation", "best"),
    [
        ([[0.6, 0.5], [0.6, 0.5], [0.6, 0.5]], 1, 1),  # worse by 0.1 everywhere
        ([[0.6, 0.5], [0.6, 0.5], [0.6, 0.69]], 2, 1),  # 0.0033 worse, and its error is 0.063
        ([[0.6, 0.5], [0.6, 0.5], [0.6, 0.6]], 1, 1),  # 0.067 worse, and its error is 0.033
        ([[0.6, 0.6], [0.6, 0.6], [0.6, 0.6]], 2, 1),  # the same everywhere
        ([[0.9, 0.2], [0.3, 0.2], [0.3, 0.2]], 1, 1),  # 0.3 worse, error 0.2, though, below the backbone
        ([[0.5, 0.6], [0.5, 0.6], [0.5, 0.6]], 2, 2),
    ],
)
def test_the_last_evaluation_within_an_error_of_the_best_is_chosen(parts, evaluation, best):
    choice = choose([curve(0.25, [[score] for score in part]) for part in parts])
    assert (choice.evaluation, choice.best) == (evaluation, best)
    assert choice.scores == [part[evaluation - 1] for part in parts]


def test_what_is_near_the_best_but_below_the_backbone_is_not_chosen():
    parts = [[0.9, 0.2], [0.3, 0.3], [0.3, 0.3]]  # 0.233 worse, error 0.233
    chosen = [choose([curve(b, [[score] for score in part]) for part in parts]) for b in (0.2, 0.3)]
    assert [choice.evaluation for choice in chosen] == [2, 1]


def test_the_share_is_chosen_too_and_the_backbone_may_win():
    assert choose([curve(0.0, [[0.1, 0.4]]), curve(0.0, [[0.1, 0.2]])]).share == 1
    assert choose([curve(0.5, [[0.5]]), curve(0.4, [[0.4]])]).evaluation == 0
