"""What a run reports is what it saved: a fresh load of the model gives the figures of the report again."""

import json

import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from tiny_backbones import checkpoint
from train_runs import evaluate_model, now, run_of, tuned_weights, write

from angle_train import run as fit_module
from angle_train.data.pairs import load_pairs
from angle_train.evaluation.statistics import spearman
from angle_train.model import load as load_module
from angle_train.report.verdict import BESIDE
from angle_train.run import fit

FAST = {"epochs": 2, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}
LORA = {"lora_rank": 4, "learning_rate": 2e-2, "lora_targets": "all"}
PAPER = 'Summarize sentence "{text}" in one word:"'


@pytest.fixture
def start(rows, tmp_path, tiny_model_dir, monkeypatch):
    """Fit with some recipe keys, without the page; returns the directory and report.json."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)

    def run(backbone=tiny_model_dir, *, by_parts=False, name="out", **values):
        # It learns from what measures it, so that the tuned weights are better, and kept.
        parts = {"train": rows[:64] + now(rows[:64]) * by_parts, "dev": rows[:48], "test": rows[16:64]}
        train, dev, test = (write(tmp_path / f"{name}.jsonl", part) for name, part in parts.items())
        sources = {"dev": (), "human": [dev]} if by_parts else {"dev": [dev]}
        fit(run_of(backbone, tmp_path / name, train, FAST | values, test=[test], **sources))
        return tmp_path / name, json.loads((tmp_path / name / "report.json").read_text())

    return run


def score(model, rows):
    """Spearman of the cosines, computed without this toolkit."""
    first, second = (model.encode([row[key] for row in rows]) for key in ("sentence1", "sentence2"))
    cosines = torch.nn.functional.cosine_similarity(*(torch.tensor(v).double() for v in (first, second)))
    return spearmanr([row["score"] for row in rows], cosines.round(decimals=10)).statistic


def reported(report, role, model="tuned"):
    model = BESIDE if (model, report["kept"]) == ("tuned", "backbone") else model
    (found,) = [r for r in report["results"] if (r["role"], r["model"]) == (role, model)]
    return found["score"]["value"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"average_with_backbone": 0.3},
        {"precision": "bf16"},
        {"prompt": "about: "},
        {"prompt": PAPER, "max_seq_length": "auto", "pooling": "last-max"},
        LORA,
        LORA | {"average_with_backbone": 0.3, "precision": "bf16"},
    ],
)
def test_a_fresh_load_of_the_model_gives_the_figures_of_the_report(start, rows, values):
    out, report = start(**values)
    model = SentenceTransformer(str(tuned_weights(out)), device="cpu")
    dev = score(model, rows[:48])
    assert dev == pytest.approx(report["dev_after"], abs=1e-6)
    assert dev == pytest.approx(reported(report, "dev"), abs=1e-6)
    assert score(model, rows[16:64]) == pytest.approx(reported(report, "test"), abs=1e-6)


def test_weights_of_half_precision_are_measured_as_they_are_saved(start, rows, tmp_path, tiny_model):
    """Frozen weights keep their precision, so merging rounds: what is on disk is not what trained."""
    tiny_model.to(torch.bfloat16).save_pretrained(str(tmp_path / "half"))
    out, report = start(tmp_path / "half", precision="bf16", epochs=5, **LORA)
    model = SentenceTransformer(str(tuned_weights(out)), device="cpu")
    assert torch.bfloat16 in {parameter.dtype for parameter in model.parameters()}
    # In bf16 the last digits depend on which texts are encoded together: with the batches of the report.
    for name, figure in (("dev", report["dev_after"]), ("test", reported(report, "test"))):
        pairs = load_pairs(str(tmp_path / f"{name}.jsonl"))
        assert spearman(pairs.score, evaluate_model(model, pairs)) == pytest.approx(figure, abs=1e-6)


@pytest.mark.parametrize("values", [{}, LORA | {"learning_rate": 5e-3}])
def test_without_dev_pairs_the_test_figures_are_of_the_saved_model(start, rows, values, two_parts):
    out, report = start(by_parts=True, **{"loss": "papers", "epochs": 4} | values)
    assert [r["pairs"] for r in report["results"]][::3] == ["dev/held out in turn", "test"]
    model = SentenceTransformer(str(tuned_weights(out)), device="cpu")
    assert score(model, rows[16:64]) == pytest.approx(reported(report, "test"), abs=1e-6)


def test_the_backbone_that_is_kept_reads_as_many_tokens_as_the_one_that_was_measured(start, rows):
    out, report = start(learning_rate=1e-12, max_seq_length="auto")
    assert report["kept"] == "backbone"
    model = SentenceTransformer(str(out), device="cpu")
    assert model.max_seq_length == report["details"]["lengths"]["max_seq_length"]
    assert score(model, rows[:48]) == pytest.approx(reported(report, "dev", "backbone"), abs=1e-6)


def test_quantized_weights_are_left_before_anything_is_measured(start, rows, tmp_path, monkeypatch):
    """QLoRA with bitsandbytes' own 4-bit weights, on the CPU.

    Our check for a GPU is off, and bitsandbytes' packing for inference, which would cut the gradient off.
    """
    modules = pytest.importorskip("bitsandbytes.nn.modules")
    monkeypatch.setattr(modules, "has_avx512bf16", lambda: False)
    on_gpu = load_module.four_bit_settings(torch.device("cuda"))
    monkeypatch.setattr(
        load_module, "four_bit_settings", lambda device: on_gpu | {"device_map": {"": device}}
    )
    values = LORA | {"learning_rate": 5e-3, "epochs": 6, "precision": "bf16", "pooling": "last-token"}
    out, report = start(checkpoint("llama", tmp_path / "llama"), quantization="4bit", **values)
    model = SentenceTransformer(str(tuned_weights(out)), device="cpu")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert score(model, rows[:48]) == pytest.approx(report["dev_after"], abs=1e-6)
    assert score(model, rows[16:64]) == pytest.approx(reported(report, "test"), abs=1e-6)
    assert max(point["dev"] for point in report["curve"]) != pytest.approx(report["dev_after"], abs=1e-3)
