"""What is saved opens in a process that has Sentence Transformers alone, and computes the same there."""

import json
import subprocess
import sys

import numpy as np
from tiny_backbones import checkpoint
from train_runs import moved

from angle_train.model.adapters import merge_adapters
from angle_train.model.load import load_for_training
from angle_train.model.pooling import POOLINGS
from angle_train.recipe import BackboneConfig

TEMPLATE = 'Summarize sentence "{text}" in one word:"'
TEXTS = ["the node failed", "a", "a much longer text about the api and its latency", "deploy to the cluster"]
LONG = ["word " * 500, 'a "quoted" text, {text} and {{ braces }}\n']
PROGRAM = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
for name, texts in json.load(open("texts.json")).items():
    model = SentenceTransformer(name, device="cpu")
    again, expected = model.encode(texts), np.load(name + ".npy")
    assert abs(again - expected).max() <= 1e-6, (name, abs(again - expected).max())
assert not any(module.startswith("angle_") for module in sys.modules)
"""


def models(tiny_model_dir, tmp_path):
    """Name, model and texts of everything that is saved in its own way."""
    base = str(tiny_model_dir)
    for name in POOLINGS:
        yield f"pooling-{name}", load_for_training(base, BackboneConfig(pooling=name), device="cpu"), TEXTS
    yield "prefix", load_for_training(base, BackboneConfig(), "about: {text}", device="cpu"), TEXTS
    yield "template", load_for_training(base, BackboneConfig(), TEMPLATE, device="cpu"), TEXTS + LONG
    llama = str(checkpoint("llama", tmp_path / "llama", pad=False))
    yield "llama", load_for_training(llama, BackboneConfig(), TEMPLATE, device="cpu"), TEXTS + LONG
    for backbone in (base, llama):
        config = BackboneConfig(lora_rank=2, lora_targets="all")
        model = moved(load_for_training(backbone, config, TEMPLATE, device="cpu"))
        merge_adapters(model)
        yield f"merged-{backbone == llama}", model, TEXTS


def test_saved_models_are_the_same_without_this_toolkit(tiny_model_dir, tmp_path):
    texts = {}
    for name, model, own in models(tiny_model_dir, tmp_path):
        np.save(tmp_path / f"{name}.npy", model.encode(own))
        model.save_pretrained(str(tmp_path / name), create_model_card=False)
        texts[name] = own
        written = json.loads((tmp_path / name / "modules.json").read_text())
        assert all(module["type"].startswith("sentence_transformers.") for module in written)
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
