"""An asymmetric model (Router), before and after tuning: queries against documents, and the same text twice.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/router.py --seeds 1 2 3 [--layers 6]

Both routes begin with the weights of MiniLM's first layers, so that the same text has the cosine 1.000.
400 pairs of STS-B train, 500 test pairs, one pass, no dev pairs: what training does, whatever a rule would
take.
`one encoder` is how such a model was trained before it had roles: all texts went through the default route.
`as one` is what training does with routes that begin equal: they share their weights. `apart` trains two
encoders, as it was before: as they are; with the first texts of the pairs as pairs of the same text too
(score 1); and with half of the backbone mixed in afterwards (`average_with_backbone`). `one model, no routes`
has a single encoder. Rows are means over the seeds. One thread, fp32, on a CPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import data_folder, minilm, options, save_results, show  # noqa: E402
from llm_supervised import rows_of  # noqa: E402

_TRAIN, _TEST = 400, 500
_VALUES: dict[str, Any] = {"epochs": 1, "batch_size": 32, "learning_rate": 1e-4, "max_seq_length": 64}
_VALUES |= {"loss": "graded", "precision": "fp32", "device": "cpu"}
Row = tuple[str, str, float]


def plain(layers: int) -> Any:
    """Return the model with one encoder."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm(layers)), device="cpu")


def router(layers: int) -> Any:
    """Return a model with two routes of the same weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    query, document = (list(plain(layers)) for _ in range(2))
    routes = Router({"query": query, "document": document}, default_route="document")
    return SentenceTransformer(modules=[routes], device="cpu")


def one_encoder(layers: int, pairs: Sequence[Row], seed: int) -> Any:
    """Return a router of which only the route of documents was trained, on both texts of every pair."""
    trained, model = tuned(plain(layers), pairs, seed), router(layers)
    model[0].sub_modules["document"][0].load_state_dict(trained[0].state_dict())
    return model


def apart(layers: int, pairs: Sequence[Row], seed: int, share: float = 0.0) -> Any:
    """Return a router whose routes were trained apart, with a share of its backbone mixed in."""
    from angle_train.model import routes
    from angle_train.training.merging import blend, snapshot

    model = router(layers)
    backbone = snapshot(model)
    with patch.object(routes, "tie_equal_routes", lambda _: False):
        tuned(model, pairs, seed)
    blend(model, backbone, share)
    return model


def tuned(model: Any, pairs: Sequence[Row], seed: int) -> Any:
    """Return the model after training, in place."""
    from angle_train import train

    return train(model, pairs, seed=seed, **_VALUES).model


def measured(model: Any, pairs: Sequence[Row]) -> dict[str, float]:
    """Return Spearman of queries against documents, and the mean and least cosine of the same text, x 100."""
    from angle_train.evaluation.similarity import cosine_rows
    from angle_train.evaluation.statistics import spearman

    first, second, gold = zip(*pairs, strict=True)
    queries, documents = model.encode_query(list(first)), model.encode_document(list(second))
    same = cosine_rows(queries, model.encode_document(list(first)))
    return {
        "query-document": 100 * spearman(gold, cosine_rows(queries, documents)),
        "same text, mean": 100 * float(same.mean()),
        "same text, least": 100 * float(same.min()),
    }


def main() -> None:
    """Measure every way with every seed, and print the means."""
    import torch

    parser = options(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--layers", type=int, default=3, help="of MiniLM's six")
    asked = parser.parse_args()
    seeds, layers = asked.seeds, asked.layers
    torch.set_num_threads(1)
    folder = data_folder() / "data" / "stsb"
    train, test = (
        [(row["sentence1"], row["sentence2"], row["score"] / 5) for row in rows_of(folder / name)]
        for name in ("train.jsonl.gz", "test.jsonl.gz")
    )
    pairs, test = train[:: len(train) // _TRAIN][:_TRAIN], test[:: len(test) // _TEST][:_TEST]
    same: list[Row] = [(first, first, 1.0) for first, _, _ in pairs]
    ways: dict[str, Callable[[int], Any]] = {
        "one encoder, as before": lambda seed: one_encoder(layers, pairs, seed),
        "both routes, as one": lambda seed: tuned(router(layers), pairs, seed),
        "both, apart": lambda seed: apart(layers, pairs, seed),
        "both, apart, half of the backbone": lambda seed: apart(layers, pairs, seed, 0.5),
        "both, apart, and the same texts": lambda seed: apart(layers, [*pairs, *same], seed),
        "one model, no routes": lambda seed: tuned(plain(layers), pairs, seed),
    }
    begun = time.process_time()
    found = {"untouched": [measured(router(layers), test)]}
    for name, way in ways.items():
        found[name] = [measured(way(seed), test) for seed in seeds]
        print(name, found[name], file=sys.stderr, flush=True)
    for figure in ("query-document", "same text, mean", "same text, least"):
        show(figure, {name: [row[figure] for row in rows] for name, rows in found.items()})
    print(f"\n{time.process_time() - begun:.0f} CPU seconds")
    save_results(f"router-{layers}", found)


if __name__ == "__main__":
    main()
