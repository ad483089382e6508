"""The papers' pictures and the numbers in them, of any models on any scored pairs.

    python benchmarks/papers/figures.py densities --model A --model B --pairs stsb/test.jsonl.gz --out DIR
    python benchmarks/papers/figures.py parts --model A --pairs stsb/test.jsonl.gz --out DIR [--above 0.95]
    python benchmarks/papers/figures.py saturation --model A --pairs nli.jsonl

densities   cosines by gold score, and the golden scores (AnglE Figure 5, AoE Figures 4 and 5), with the
            area that the density of the cosines shares with that of the golden scores
parts       real and imaginary halves by t-SNE, and the distances of pairs in each (AoE Figures 3
            and 10); --above keeps pairs with a golden score (0 to 1) above it, which is the saturation zone
saturation  shares of pairs with a cosine above 0.95 and above 0.8 (AoE 4)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import options  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from angle_train.data.pairs import PairSet, load_pairs  # noqa: E402
from angle_train.evaluation.similarity import pair_similarity  # noqa: E402
from angle_train.evaluation.suite import Embedder, short_names  # noqa: E402
from angle_train.model.load import load_backbone  # noqa: E402

Array = NDArray[np.float64]
ZONES = (0.95, 0.8)
_GRID = np.linspace(-0.2, 1.2, 400)
_GROUPS = 5


def density(values: Array) -> Array:
    """Return a Gaussian kernel estimate of a density on `_GRID`; of equal values one narrow peak."""
    from scipy.stats import gaussian_kde

    if np.ptp(values) == 0:
        values = values + np.linspace(-1e-3, 1e-3, len(values))
    found: Array = gaussian_kde(values)(_GRID)
    return found


def shared_area(one: Array, other: Array) -> float:
    """Return the area under both of two densities on `_GRID`: 1 where they are the same."""
    return float(np.minimum(one, other).sum() * (_GRID[1] - _GRID[0]))


def draw_densities(pairs: PairSet, similarity: dict[str, Array], out: Path) -> dict[str, float]:
    """Draw the densities and return, by model, the area shared with the golden density."""
    from matplotlib.figure import Figure

    golden = density(pairs.score)
    figure = Figure(figsize=(4 * (len(similarity) + 1), 4))
    axes = figure.subplots(1, len(similarity) + 1, squeeze=False)[0]
    group = np.minimum((pairs.score * _GROUPS).astype(int), _GROUPS - 1)
    for axis, (name, cosines) in zip(axes, similarity.items(), strict=False):
        for number in np.unique(group):
            part = cosines[group == number]
            if len(part) > 1:
                axis.plot(_GRID, density(part), label=f"gold {number} to {number + 1}")
        axis.set(title=name, xlabel="cosine")
        axis.legend()
    axes[-1].plot(_GRID, golden)
    axes[-1].set(title="golden scores", xlabel="score, 0 to 1")
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "densities.png")
    return {name: shared_area(golden, density(cosines)) for name, cosines in similarity.items()}


def parts_of(embeddings: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return real and imaginary halves (N, D/2) of embeddings (N, D), as the angle term takes them."""
    real, imaginary = np.split(embeddings, 2, axis=1)
    return {"real": real, "imaginary": imaginary}


def distances(pairs: int, part: NDArray[Any]) -> Array:
    """Return the Euclidean distance (B,) of the two rows of each of B pairs: row i and row B + i."""
    found: Array = np.linalg.norm(part[:pairs] - part[pairs:], axis=1)
    return found


def draw_parts(embeddings: NDArray[Any], pairs: int, out: Path) -> dict[str, float]:
    """Draw both halves by t-SNE, and the densities of distances; return the mean distances."""
    from matplotlib.figure import Figure
    from sklearn.manifold import TSNE

    figure = Figure(figsize=(12, 4))
    axes = figure.subplots(1, 3)
    found: dict[str, float] = {}
    for axis, (name, part) in zip(axes, parts_of(embeddings).items(), strict=False):
        flat = TSNE(perplexity=min(30, len(part) - 1), random_state=42).fit_transform(part)
        axis.scatter(*flat.T, s=4)
        axis.set(title=f"{name}, t-SNE")
        apart = distances(pairs, part)
        found[f"{name}, mean distance"] = float(apart.mean())
        found[f"{name}, mean distance in t-SNE"] = float(distances(pairs, flat).mean())
        axes[2].hist(apart, bins=30, alpha=0.5, label=name)
    axes[2].set(title="distances of pairs")
    axes[2].legend()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "parts.png")
    return found


def shares(cosines: Array) -> dict[str, float]:
    """Return the shares of pairs whose cosine is above each of `ZONES`."""
    return {f"above {zone:g}": float((cosines > zone).mean()) for zone in ZONES}


def main() -> None:
    """Print the numbers, write the pictures."""
    parser = options(__doc__)
    parser.add_argument("what", choices=["densities", "parts", "saturation"])
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--pairs", required=True, help="scored pairs")
    parser.add_argument("--above", type=float, default=-1.0, help="golden score, 0 to 1")
    parser.add_argument("--out", type=Path, default=Path("runs/papers/figures"))
    given = parser.parse_args()
    pairs = load_pairs(given.pairs, one_score=True)
    pairs = pairs.take(np.flatnonzero(pairs.score > given.above).tolist(), pairs.name)
    similarity: dict[str, Array] = {}
    for model, name in short_names(given.model).items():
        encode = Embedder(load_backbone(model), model)
        similarity[name] = pair_similarity(pairs, encode)
        if given.what == "parts":
            embeddings = encode([*pairs.text1, *pairs.text2])
            print(name, draw_parts(embeddings, len(pairs), given.out / name))
        elif given.what == "saturation":
            print(name, shares(similarity[name]))
    if given.what == "densities":
        for name, area in draw_densities(pairs, similarity, given.out).items():
            print(f"{name}: shares {area:.3f} of its area with the golden density")


if __name__ == "__main__":
    main()
