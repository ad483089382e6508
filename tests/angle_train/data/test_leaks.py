"""What training and measured pairs share, and which training pairs are left out."""

import numpy as np
import pytest

from angle_train.data.leaks import find_leaks, without_pairs_of
from angle_train.data.pairs import PairSet


def make(pairs, scores=None, name="made"):
    scores = scores or [i % 2 for i in range(len(pairs))]
    return PairSet(
        name=name,
        text1=[a for a, _ in pairs],
        text2=[b for _, b in pairs],
        score=np.array(scores, dtype=np.float64),
        weight=np.ones(len(pairs)),
    )


TRAIN = make([("The disk is full.", "No space"), ("x", "y")])
TEST = make([("no space", "the disk is full"), ("The disk is full", "x"), ("z", "w")], name="t")


def test_shared_pairs_and_texts_are_told_apart():
    leak = find_leaks("training", TRAIN, "test", TEST)
    assert (leak.pairs, leak.count) == (1, 3)  # order and form do not matter
    assert leak.texts == pytest.approx(3 / 5)  # of: no space, the disk is full, x, z, w
    assert leak.sentence() == "1 of 3 test pairs of t are training pairs too"
    assert find_leaks("training", TEST, "dev", make([("p", "q")])).texts == 0


def test_shared_pairs_can_be_left_out():
    kept = without_pairs_of(TRAIN, [TEST, make([("a", "b")])])
    assert list(kept.text1) == ["x"]
    assert kept.score.tolist() == [1.0]
    assert without_pairs_of(TRAIN, []) is TRAIN
