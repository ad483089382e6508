"""MiniLM on graded pairs in fp32, bf16, fp16 and with adapters: does each train a real model as well?

Trained on the 410 dev pairs of `benchmarks/cloud-ops-dev`, measured on the demo's two test sets. One seed: it
shows what is broken, not what is better. The training pairs choose the weights, too: tuned ones are saved.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from guard import Skip, attempt
from models import bert
from setting import ROOT, Setting, write_rows
from training import fit_once, saved_is_measured, score_of

_TRAIN = ROOT / "benchmarks" / "cloud-ops-dev"
_TEST = ROOT / "examples" / "cloud-ops"
_COLUMNS = ("sentence1", "sentence2", "score")


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield the scores before and after, for each precision, and with adapters."""
    if setting.minilm is None and not setting.tiny:
        raise Skip("there is no MiniLM here; give its folder with --minilm")
    backbone = bert(setting) if setting.minilm is None or setting.tiny else _in_fp32(setting)
    train = _graded(setting, [_TRAIN / "natural.jsonl", _TRAIN / "contrast.jsonl"], "train")
    test = _graded(setting, [_TEST / "eval_natural.jsonl", _TEST / "eval_contrast.jsonl"], "test")
    lora = {"precision": "bf16", "lora_rank": 16, "lora_targets": "all", "learning_rate": 1e-3}
    ways: dict[str, dict[str, Any]] = {"fp32": {"precision": "fp32"}, "bf16": {"precision": "bf16"}}
    if setting.on_gpu:
        ways["fp16"] = {"precision": "fp16"}
    ways["LoRA, bf16"] = lora
    if setting.on_gpu and find_spec("bitsandbytes") is not None:
        ways["QLoRA, bf16"] = lora | {"quantization": "4bit"}
    for what, values in ways.items():
        yield attempt(what, lambda v=values: _train(setting, backbone, train, test, v))


def _in_fp32(setting: Setting) -> Path:
    """Return MiniLM with weights in fp32, as adapters keep the type of frozen ones."""
    from sentence_transformers import SentenceTransformer

    folder = setting.work / "models" / "minilm"
    model = SentenceTransformer(str(setting.minilm), device="cpu").float()
    model.save(str(folder), create_model_card=False)
    return folder


def _graded(setting: Setting, files: list[Path], name: str) -> Path:
    """Write the pairs of some files into one, without dev pairs; with `tiny` the first of each."""
    rows = []
    for file in files:
        found = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        own = [row for row in found if row.get("split", "test") == "test"]
        rows += [{name: row[name] for name in _COLUMNS} for row in own[: setting.pick(None, 12)]]
    return write_rows(setting.work / "pairs" / f"real-{name}.jsonl", rows)


def _train(
    setting: Setting, backbone: Path, train: Path, test: Path, values: dict[str, Any]
) -> dict[str, Any]:
    asked = {
        "epochs": setting.pick(4, 1),
        "batch_size": setting.pick(32, 4),
        "learning_rate": setting.pick(5e-5, 2e-3),
        "loss": "graded",
        "scale": "0-5",
        "dev": str(train),
        "test": str(test),
        **values,
    }
    fitted, clock = fit_once(setting, "real", backbone, train, asked)
    found = {"before": score_of(fitted, "backbone"), **saved_is_measured(setting, fitted, test)}
    shutil.rmtree(fitted.path)
    return found | {"score": score_of(fitted, "tuned")} | clock.figures()
