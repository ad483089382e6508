"""What the AnglE papers look at beyond scores: densities, saturation, the two halves of a vector, uniformity.

Pure functions from embeddings and gold scores to numbers and to the points of curves; drawing is elsewhere.
Shapes: B pairs, D width, N texts.

Sources: AoE (https://aclanthology.org/2024.acl-long.101), sections 4 and 5, figures 3-5; Wang and Isola,
Understanding contrastive representation learning through alignment and uniformity on the hypersphere
(https://arxiv.org/abs/2005.10242).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.similarity import cosine_rows, unit_rows

BANDS = 5
_POINTS = 101
_BLOCK = 1024
_MAPPED_PAIRS = 250
_FEWEST_MAPPED = 5
_MOST_SPREAD = 20_000  # rows; 200 million pairs tell the mean well
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """A density: points `x`, density `y` there, and how many values it stands for."""

    x: list[float]
    y: list[float]
    count: int


@dataclass(frozen=True, slots=True)
class Saturation:
    """How much of a set lies where the cosine is flat.

    Attributes:
        above_95: Share of pairs with a cosine above 0.95.
        above_80: Share above 0.8.
        gradient: Objective's similarity -> median length of its gradient at unit embeddings over the pairs
            above 0.95; None where there is none. In-batch negatives are made of cosines and have theirs.
        gradient_elsewhere: The same over all other pairs.
    """

    above_95: float
    above_80: float
    gradient: dict[str, float | None]
    gradient_elsewhere: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Halves:
    """Distances between the two texts of pairs in each half of the vector (real part, imaginary part).

    Attributes:
        real, imaginary: Euclidean distance (B,) between the first halves, and between the second halves, of
            unit embeddings.
        mean_real, mean_imaginary: Their means.
    """

    real: list[float]
    imaginary: list[float]
    mean_real: float
    mean_imaginary: float


def analyse(
    first: NDArray[np.float32], second: NDArray[np.float32], gold: Array, seed: int = 0
) -> dict[str, Any]:
    """Return all analyses of scored pairs (B, D) as plain values for JSON.

    Alignment is over the pairs in the highest fifth of the gold scores, uniformity over all texts, and the
    map of each half's vectors (`tsne`) over the first 250 pairs in the saturation zone, as two points a pair.
    """
    similarity = cosine_rows(first, second)
    inside = np.flatnonzero(similarity > 0.95)[:_MAPPED_PAIRS]
    unit = (gold - gold.min()) / (gold.max() - gold.min())
    close = unit >= 1 - 1 / BANDS
    parts = halves(first, second)
    result: dict[str, Any] = {
        "density": {name: asdict(curve) for name, curve in density_by_band(similarity, gold).items()},
        "saturation": asdict(saturation(first, second)),
        "alignment": alignment(first[close], second[close]),
        "uniformity": uniformity(np.vstack([first, second])),
        "halves": asdict(parts) if parts else None,
    }
    if parts and len(inside) >= _FEWEST_MAPPED:
        stacked = np.vstack([first[inside], second[inside]])
        result["tsne"] = {
            name: plane(half, seed).tolist()
            for name, half in zip(("real", "imaginary"), np.split(stacked, 2, axis=1), strict=True)
        }
    return result


def density(values: Array, low: float, high: float, points: int = _POINTS) -> Curve:
    """Return the Gaussian kernel density of values (n,) at equally spaced points of [low, high].

    Bandwidth by Silverman's rule, at least a hundredth of the range so that constant values have a curve.
    """
    x = np.linspace(low, high, points)
    spread = float(min(values.std(), np.subtract(*np.percentile(values, [75, 25])) / 1.34) or values.std())
    width = max(0.9 * spread * len(values) ** -0.2, (high - low) / 100)
    y = np.array([np.exp(-0.5 * ((point - values) / width) ** 2).sum() for point in x])
    y /= len(values) * width * np.sqrt(2 * np.pi)
    return Curve(x.tolist(), y.tolist(), len(values))


def density_by_band(similarity: Array, gold: Array, bands: int = BANDS) -> dict[str, Curve]:
    """Return the density of cosines for all pairs, for each band of gold scores, and of the gold scores.

    Args:
        similarity: Cosines (B,).
        gold: Gold scores (B,).
        bands: How many equal parts the range of gold scores is cut into; empty ones are left out.

    Returns:
        `all`, `gold` (scores mapped to 0..1) and `LOW-HIGH` for every band, in the scores' own units.
    """
    low, high = float(gold.min()), float(gold.max())
    unit = (gold - low) / (high - low)
    curves = {"all": density(similarity, -1.0, 1.0), "gold": density(unit, 0.0, 1.0)}
    band = np.minimum((unit * bands).astype(np.int64), bands - 1)
    for number in range(bands):
        inside = similarity[band == number]
        if len(inside):
            edges = (low + (high - low) * part / bands for part in (number, number + 1))
            curves["-".join(f"{edge:g}" for edge in edges)] = density(inside, -1.0, 1.0)
    return curves


def saturation(first: NDArray[np.float32], second: NDArray[np.float32]) -> Saturation:
    """Return how many pairs (B, D) lie in the saturation zone and how large gradients are there."""
    cosine = cosine_rows(first, second)
    inside = cosine > 0.95
    sizes = gradient_sizes(first, second)
    return Saturation(
        above_95=float(inside.mean()),
        above_80=float((cosine > 0.8).mean()),
        gradient={name: _median(size[inside]) for name, size in sizes.items()},
        gradient_elsewhere={name: _median(size[~inside]) for name, size in sizes.items()},
    )


def gradient_sizes(first: NDArray[np.float32], second: NDArray[np.float32]) -> dict[str, Array]:
    """Return the length (B,) of each objective's similarity's gradient in the first text's unit embedding.

    It is what the objective's own factor (how wrongly pairs are ranked) is multiplied by on its way into the
    model. Similarities that need an even width are left out where it is odd.
    """
    import torch

    from angle_train.objective.terms import ANGLE_SIMILARITIES, cosine_similarity

    x, y = (torch.from_numpy(unit_rows(rows).astype(np.float32)) for rows in (first, second))
    functions = {"cosine": cosine_similarity} | {
        f"angle, {mode}": function
        for mode, function in ANGLE_SIMILARITIES.items()
        if mode != "published" or x.shape[1] % 2 == 0
    }
    sizes = {}
    for name, function in functions.items():
        leaf = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(leaf, y).sum(), leaf)
        sizes[name] = gradient.norm(dim=1).numpy().astype(np.float64)
    return sizes


def halves(first: NDArray[np.float32], second: NDArray[np.float32]) -> Halves | None:
    """Return the distances of pairs (B, D) in each half of the vectors; None for an odd D."""
    if first.shape[1] % 2:
        return None
    apart = unit_rows(first) - unit_rows(second)
    real, imaginary = (np.linalg.norm(half, axis=1) for half in np.split(apart, 2, axis=1))
    return Halves(real.tolist(), imaginary.tolist(), float(real.mean()), float(imaginary.mean()))


def plane(embeddings: NDArray[np.float32], seed: int = 0) -> Array:
    """Return t-SNE coordinates (N, 2) of embeddings (N, D), N at least 2; van der Maaten and Hinton 2008."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    perplexity = min(30.0, (len(embeddings) - 1) / 3)
    # Its threads meet thousands of times for next to no work: on busy processors that takes minutes.
    with threadpool_limits(limits=1):
        points: Array = TSNE(perplexity=max(perplexity, 0.5), random_state=seed, init="pca").fit_transform(
            embeddings
        )
    return points.astype(np.float64)


def alignment(first: NDArray[np.float32], second: NDArray[np.float32], alpha: float = 2.0) -> float:
    """Return the mean of |x - y|^alpha over positive pairs (B, D) of unit embeddings; smaller is closer."""
    apart = np.linalg.norm(unit_rows(first) - unit_rows(second), axis=1)
    return float((apart**alpha).mean())


def uniformity(embeddings: NDArray[np.float32], t: float = 2.0) -> float:
    """Return log of the mean of exp(-t·|x - y|²) over all pairs of different rows (N, D).

    Smaller is spread wider. N must be at least 2; of more than 20,000 rows as many are taken, evenly spread.
    Works in blocks of rows: N² similarities are never held at once. Rows that are there several times, as
    texts that stand in several pairs, count each time.
    """
    rows = np.linspace(0, len(embeddings) - 1, min(len(embeddings), _MOST_SPREAD)).astype(np.int64)
    unit = unit_rows(embeddings[rows])
    total = 0.0
    for start in range(0, len(unit), _BLOCK):
        block = unit[start : start + _BLOCK]
        square = 2 - 2 * block @ unit.T
        potential = np.exp(-t * square)
        # A row and itself are no pair.
        potential[np.arange(len(block)), np.arange(start, start + len(block))] = 0.0
        total += float(potential.sum())
    return float(np.log(total / (len(unit) * (len(unit) - 1))))


def _median(values: Array) -> float | None:
    return float(np.median(values)) if len(values) else None
