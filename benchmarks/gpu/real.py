"""MiniLM on graded pairs in fp32, bf16 and fp16: does half precision train a real model as well?

Trained on the 410 dev pairs of `benchmarks/cloud-ops-dev`, measured on the demo's two test sets. One seed: it
shows what is broken, not what is better.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guard import Skip, attempt
from lora import score_of
from models import bert
from setting import ROOT, Setting, write_rows
from training import fit_once

_TRAIN = ROOT / "benchmarks" / "cloud-ops-dev"
_TEST = ROOT / "examples" / "cloud-ops"


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield the scores before and after, for each precision."""
    backbone = bert(setting) if setting.tiny else setting.minilm
    if backbone is None:
        raise Skip("there is no MiniLM here; give its folder with --minilm")
    train = _graded(setting, [_TRAIN / "natural.jsonl", _TRAIN / "contrast.jsonl"], "train")
    test = _graded(setting, [_TEST / "eval_natural.jsonl", _TEST / "eval_contrast.jsonl"], "test")
    for precision in ("fp32", "bf16", *(["fp16"] if setting.on_gpu else [])):
        yield attempt(precision, lambda p=precision: _train(setting, backbone, train, test, p))


def _graded(setting: Setting, files: list[Path], name: str) -> Path:
    """Write the pairs of some files into one, with `tiny` the first of each."""
    rows = []
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()[: setting.pick(None, 12)]
        rows += [json.loads(line) for line in lines]
    return write_rows(setting.work / "pairs" / f"real-{name}.jsonl", rows)


def _train(setting: Setting, backbone: Path, train: Path, test: Path, precision: str) -> dict[str, Any]:
    values = {"precision": precision, "epochs": setting.pick(4, 1), "batch_size": setting.pick(32, 4)}
    values |= {"learning_rate": 5e-5, "scale": "0-5", "test": str(test), "dev": str(train), "loss": "graded"}
    fitted, clock = fit_once(setting, f"real-{precision}", backbone, train, values)
    found = {"before": score_of(fitted, "backbone"), "score": score_of(fitted, "tuned")}
    return found | clock.figures()
