"""Saturation, alignment and uniformity against their definitions."""

import numpy as np
import pytest

from angle_train.evaluation import analysis
from angle_train.evaluation.analysis import alignment, saturation, uniformity

RNG = np.random.default_rng(0)


def test_saturation_counts_beyond_its_bounds_only():
    assert saturation(np.array([0.999, 0.96, 0.951, 0.95, 0.81, 0.8, 0.1])) == {
        "above_95": pytest.approx(3 / 7),
        "above_80": pytest.approx(5 / 7),
    }


def pairs_at(degrees):
    """Unit vectors (B, 4) and partners at the given angles, in a random plane each."""
    first = RNG.normal(size=(len(degrees), 4))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    other = RNG.normal(size=first.shape)
    other -= (other * first).sum(1, keepdims=True) * first
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    radians = np.radians(degrees)[:, None]
    return first.astype(np.float32), (np.cos(radians) * first + np.sin(radians) * other).astype(np.float32)


@pytest.mark.parametrize("block", [1024, 4])
def test_alignment_and_uniformity_equal_slow_loops(monkeypatch, block):
    monkeypatch.setattr(analysis, "_BLOCK", block)
    first, second = pairs_at(RNG.random(9) * 90)
    assert alignment(first, second) == pytest.approx(np.mean(((first - second) ** 2).sum(1)), rel=1e-5)
    slow = [np.exp(-2 * ((first[i] - first[j]) ** 2).sum()) for i in range(9) for j in range(9) if i != j]
    assert uniformity(first * 3) == pytest.approx(np.log(np.mean(slow)), rel=1e-5)


def test_of_very_many_texts_uniformity_takes_some_from_first_to_last(monkeypatch):
    texts = RNG.normal(size=(41, 4)).astype(np.float32)
    monkeypatch.setattr(analysis, "_MOST_SPREAD", 5)
    assert uniformity(texts) == pytest.approx(uniformity(texts[[0, 10, 20, 30, 40]]))
