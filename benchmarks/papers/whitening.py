"""BERT-whitening: embeddings made uncorrelated, with variance 1 in every direction; nothing is trained.

    python benchmarks/papers/whitening.py --data TRAIN --backbone MODEL --out DIR [--width 256]

Mean and covariance are those of the texts of the training pairs. The map is one `Dense` module, so the result
opens in Sentence Transformers as any other model.

Source: Su et al., Whitening Sentence Representations (https://arxiv.org/abs/2103.15316). Their rows average
the first and the last layer, which `poolings.py` does.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from common import options  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from poolings import set_pooling  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import Dense, Normalize  # noqa: E402

from angle_train.data.pairs import load_pairs  # noqa: E402
from angle_train.model.load import load_backbone, save_model  # noqa: E402

Array = NDArray[np.float64]


def whitening(embeddings: NDArray[np.float32], width: int | None = None) -> tuple[Array, Array]:
    """Return W (D, width) and the mean μ (D,), such that (x - μ) W has covariance 1 over the rows (N, D).

    Directions come in the order of their variance; `width` keeps the first ones, by default all. Directions
    in which the rows do not vary are left out: they cannot be scaled to variance 1.
    """
    rows = embeddings.astype(np.float64)
    mean = rows.mean(axis=0)
    vectors, variances, _ = np.linalg.svd(np.cov(rows, rowvar=False, bias=True))
    kept = variances > variances[0] * 1e-9
    return (vectors[:, kept] / np.sqrt(variances[kept]))[:, :width], mean


def add_whitening(model: SentenceTransformer, texts: list[str], width: int | None = None) -> None:
    """Append the whitening of these texts to `model`; a normalisation at its end is taken off first."""
    if isinstance(model[-1], Normalize):
        del model[-1]
    kernel, mean = whitening(model.encode(texts, show_progress_bar=False), width)
    dense = Dense(
        len(mean),
        kernel.shape[1],
        activation_function=torch.nn.Identity(),
        init_weight=torch.tensor(kernel.T, dtype=torch.float32),
        init_bias=torch.tensor(-mean @ kernel, dtype=torch.float32),
    )
    model.append(dense.to(model.device))


def main() -> None:
    """Whiten and save one model."""
    parser = options(__doc__)
    parser.add_argument("--data", required=True, help="pairs whose texts give mean and covariance")
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--pooling", default="first-last-avg", help="or cls-last-avg, or `own`: the model's")
    parser.add_argument("--width", type=int, help="directions to keep; default all")
    parser.add_argument("--dev", help="not used: nothing is chosen")
    parser.add_argument("--seed", help="not used: nothing is drawn")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if (given.out / "modules.json").exists():
        print(f"{given.out}: already there")
        return
    model = load_backbone(given.backbone)
    if given.pooling != "own":
        set_pooling(model, given.pooling)
    pairs = load_pairs(given.data, one_score=True)
    add_whitening(model, list(dict.fromkeys([*pairs.text1, *pairs.text2])), given.width)
    save_model(model, given.out)
    print(f"{given.out}: width {model.get_embedding_dimension()}")


if __name__ == "__main__":
    main()
