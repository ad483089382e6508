"""Densities, saturation, halves, alignment and uniformity against their definitions."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from angle_train.evaluate import analysis
from angle_train.evaluate.analysis import (
    alignment,
    analyse,
    density,
    density_by_band,
    gradient_sizes,
    halves,
    plane,
    saturation,
    uniformity,
)
from angle_train.evaluate.similarity import cosine_rows

RNG = np.random.default_rng(0)


def test_density_is_the_gaussian_kernel_estimate():
    values = RNG.normal(size=200) * 0.2
    curve = density(values, -1, 1)
    spread = min(values.std(), np.subtract(*np.percentile(values, [75, 25])) / 1.34)
    kernel = gaussian_kde(values, bw_method=0.9 * spread * 200**-0.2 / values.std(ddof=1))
    assert curve.y == pytest.approx(kernel(curve.x))
    assert (curve.x[0], curve.x[-1], curve.count) == (-1, 1, 200)
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(1, abs=0.01)


def test_constant_values_have_a_narrow_peak():
    curve = density(np.full(10, 0.5), 0, 1)
    assert np.argmax(curve.y) == 50
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(1, abs=0.02)


def test_bands_divide_the_pairs_by_gold_score():
    gold = np.array([0, 0.5, 1, 2.9, 4.1, 5, 5])
    curves = density_by_band(np.linspace(-0.5, 0.9, 7), gold)
    assert {name: curve.count for name, curve in curves.items()} == {
        "all": 7,
        "gold": 7,
        "0-1": 2,
        "1-2": 1,
        "2-3": 1,
        "4-5": 3,
    }
    assert (curves["gold"].x[0], curves["gold"].x[-1]) == (0, 1)


def pairs_at(degrees):
    """Unit vectors (B, 4) and partners at the given angles, in a random plane each."""
    first = RNG.normal(size=(len(degrees), 4))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    other = RNG.normal(size=first.shape)
    other -= (other * first).sum(1, keepdims=True) * first
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    radians = np.radians(degrees)[:, None]
    return first.astype(np.float32), (np.cos(radians) * first + np.sin(radians) * other).astype(np.float32)


def test_gradients_are_those_of_the_similarities():
    degrees = np.array([1.0, 10, 60, 120])
    first, second = pairs_at(degrees)
    sizes = gradient_sizes(first * 7, second * 0.1)  # lengths do not matter
    assert sizes["cosine"] == pytest.approx(np.sin(np.radians(degrees)), abs=1e-4)
    assert sizes["angle, symmetric"] == pytest.approx(np.full(4, 2 / np.pi), abs=1e-3)
    # |s| = √2·cos φ, so its gradient is √2·sin φ = √(2 - s²).
    (a, b), (c, d) = np.split(first, 2, axis=1), np.split(second, 2, axis=1)
    published = ((a * c + b * d).sum(1) + (b * c - a * d).sum(1)).astype(float)
    assert sizes["angle, published"] == pytest.approx(np.sqrt(2 - published**2), abs=1e-3)
    assert "angle, published" not in gradient_sizes(first[:, :3], second[:, :3])


def test_saturation_counts_pairs_and_takes_gradients_inside_and_outside():
    first, second = pairs_at(np.array([5.0, 10, 30, 80]))  # cosines .996 .985 .866 .174
    found = saturation(first, second)
    assert (found.above_95, found.above_80) == (0.5, 0.75)
    inside, outside = np.sin(np.radians([5, 10])), np.sin(np.radians([30, 80]))
    assert found.gradient["cosine"] == pytest.approx(inside.mean(), abs=1e-3)
    assert found.gradient_elsewhere["cosine"] == pytest.approx(outside.mean(), abs=1e-3)
    assert saturation(*pairs_at(np.array([80.0]))).gradient["cosine"] is None


def test_halves_are_measured_apart():
    first = np.array([[1, 0, 0, 0], [0, 0, 0, 2]], dtype=np.float32)
    second = np.array([[0, 1, 0, 0], [0, 0, 1, 0]], dtype=np.float32)
    found = halves(first, second)
    assert found.real == pytest.approx([np.sqrt(2), 0])
    assert found.imaginary == pytest.approx([0, np.sqrt(2)])
    assert found.mean_real == found.mean_imaginary == pytest.approx(np.sqrt(2) / 2)
    assert halves(first[:, :3], second[:, :3]) is None


@pytest.mark.parametrize("block", [1024, 4])
def test_alignment_and_uniformity_equal_slow_loops(monkeypatch, block):
    monkeypatch.setattr(analysis, "_BLOCK", block)
    first, second = pairs_at(RNG.random(9) * 90)
    assert alignment(first, second) == pytest.approx(np.mean(((first - second) ** 2).sum(1)), rel=1e-5)
    slow = [np.exp(-2 * ((first[i] - first[j]) ** 2).sum()) for i in range(9) for j in range(9) if i != j]
    assert uniformity(first * 3) == pytest.approx(np.log(np.mean(slow)), rel=1e-5)


def test_everything_together_is_plain_json_with_a_map_of_the_saturated_pairs():
    first, second = pairs_at(np.linspace(1, 90, 40))
    found = analyse(first, second, np.linspace(5, 0, 40))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    near = found["saturation"]["above_95"] * 40
    assert near >= 5
    assert {name: np.shape(points) for name, points in found["tsne"].items()} == {
        "real": (2 * near, 2),
        "imaginary": (2 * near, 2),
    }
    # Alignment is over the pairs in the top fifth of the gold scores: here those at the smallest angles.
    assert found["alignment"] == pytest.approx(alignment(first[:8], second[:8]))
    assert "tsne" not in analyse(first[20:], second[20:], np.linspace(5, 0, 20))


def skewed_pairs(count=60):
    """Pairs whose first and second texts are spread differently, with gold scores that follow the angle."""
    degrees = np.linspace(1, 90, count)
    first, second = pairs_at(degrees)
    first[:, 0] += 2
    return first, second, np.linspace(5, 0, count)


def test_each_value_is_that_of_its_own_analysis_on_these_pairs():
    first, second, gold = skewed_pairs()
    found = analyse(first, second, gold)
    cosine = cosine_rows(first, second)
    curves = density_by_band(cosine, gold)
    assert found["density"] == {name: asdict(curve) for name, curve in curves.items()}
    assert found["density"]["all"]["y"] == pytest.approx(density(cosine, -1, 1).y)
    assert found["saturation"] == asdict(saturation(first, second))
    assert found["saturation"] != asdict(saturation(second, first))
    assert found["uniformity"] == pytest.approx(uniformity(np.vstack([first, second])))
    close = gold >= gold.min() + 0.8 * (gold.max() - gold.min())
    assert 0 < close.sum() < len(gold)
    assert found["alignment"] == pytest.approx(alignment(first[close], second[close]))
    assert found["halves"] == asdict(halves(first, second))


def test_saturation_has_medians_and_counts_beyond_its_bounds_only():
    first, second = pairs_at(np.array([2.0, 4, 17, 30, 36, 37, 80]))  # cos 36° = .809, cos 37° = .799
    found = saturation(first, second)
    assert (found.above_95, found.above_80) == (pytest.approx(3 / 7), pytest.approx(5 / 7))
    assert found.gradient["cosine"] == pytest.approx(np.sin(np.radians(4)), abs=1e-3)
    assert found.gradient_elsewhere["cosine"] == pytest.approx(np.sin(np.radians(36.5)), abs=1e-3)
    edge = np.array([[1.0, 0, 0, 0]], dtype=np.float32)
    assert saturation(edge, np.array([[0.8, 0.6, 0, 0]])).above_80 == 0


def test_the_map_is_of_250_saturated_pairs_at_most_with_its_seed(monkeypatch):
    seen = []

    def note(embeddings, seed):
        seen.append((embeddings, seed))
        return np.zeros((len(embeddings), 2))

    monkeypatch.setattr(analysis, "plane", note)
    first, second = pairs_at(np.r_[[80.0], np.linspace(1, 10, 300)])
    found = analyse(first, second, np.linspace(0, 5, 301), seed=7)
    assert {name: len(points) for name, points in found["tsne"].items()} == {"real": 500, "imaginary": 500}
    (real, seed), (imaginary, _) = seen
    assert seed == 7
    assert np.array_equal(real, np.vstack([first[1:251, :2], second[1:251, :2]]))
    assert np.array_equal(imaginary, np.vstack([first[1:251, 2:], second[1:251, 2:]]))


@pytest.mark.parametrize(("count", "perplexity"), [(200, 30.0), (31, 10.0), (2, 0.5)])
def test_t_sne_is_asked_for_neighbours_that_there_are(monkeypatch, count, perplexity):
    asked = {}

    class Maps:
        def __init__(self, **options):
            asked.update(options)

        def fit_transform(self, embeddings):
            return embeddings[:, :2]

    monkeypatch.setattr("sklearn.manifold.TSNE", Maps)
    assert plane(RNG.normal(size=(count, 4)).astype(np.float32), seed=3).shape == (count, 2)
    assert asked == {"perplexity": pytest.approx(perplexity), "random_state": 3, "init": "pca"}


def test_of_very_many_texts_uniformity_takes_some_from_first_to_last(monkeypatch):
    texts = RNG.normal(size=(41, 4)).astype(np.float32)
    monkeypatch.setattr(analysis, "_MOST_SPREAD", 5)
    assert uniformity(texts) == pytest.approx(uniformity(texts[[0, 10, 20, 30, 40]]))
