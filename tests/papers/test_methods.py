"""Other methods and poolings than the toolkit's, and the papers' pictures, on a tiny model."""

import baselines
import figures
import gis_statistics
import measure
import numpy as np
import poolings
import pytest
import times
import whitening
from sentence_transformers import SentenceTransformer

from angle_data.jsonl import write_jsonl

TEXTS = ["node one failed", "the disk of node two is full", "backup done"]


def opened(folder):
    """A saved model as the library alone opens it."""
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.mark.parametrize("method", ["simcse", "simcse-supervised", "sbert", "ct"])
def test_a_baseline_is_trained_and_saved_and_not_trained_twice(
    method, script, graded, tiny_model_dir, tmp_path
):
    train, _ = graded
    out = tmp_path / method
    given = (method, "--data", train, "--backbone", tiny_model_dir, "--out", out, "--set", "epochs=1")
    given += ("--set", "batch_size=8", "--set", "learning_rate=0.01", "--set", "max_seq_length=32")
    assert "seconds" in script(baselines, *given)
    assert not np.allclose(opened(out).encode(TEXTS), opened(tiny_model_dir).encode(TEXTS), atol=1e-4)
    assert "already trained" in script(baselines, *given)


def test_with_dev_pairs_the_best_weights_stay(script, graded, tiny_model_dir, tmp_path):
    train, dev = graded
    common = ("sbert", "--data", train, "--backbone", tiny_model_dir, "--set", "max_seq_length=32")
    common += ("--set", "epochs=4", "--set", "learning_rate=0.01")
    script(baselines, *common, "--out", tmp_path / "last")
    script(baselines, *common, "--out", tmp_path / "best", "--dev", dev)
    evaluator = baselines.evaluator_of(str(dev))
    last, best = (evaluator(opened(tmp_path / name))["dev_spearman_cosine"] for name in ("last", "best"))
    assert best > last


def test_classes_of_inference_make_triplets_and_a_softmax(script, tiny_model_dir, tmp_path):
    rows = [
        {"text1": f"premise {i}", "text2": f"{label} {i}", "label": label}
        for i in range(8)
        for label in baselines.CLASSES[: 2 + i % 2]
    ]
    write_jsonl(tmp_path / "nli.jsonl", rows)
    read = baselines.rows_of(str(tmp_path / "nli.jsonl"))
    assert baselines.triplets(read)[0] == {
        "anchor": "premise 0", "positive": "entailment 0", "negative": "contradiction 0",
    }  # fmt: skip
    model = opened(tiny_model_dir)
    assert type(baselines.prepare("sbert", read, model)[1]).__name__ == "SoftmaxLoss"
    assert type(baselines.prepare("sbert", [{"score": 1.0}], model)[1]).__name__ == "CosineSimilarityLoss"


def test_whitened_embeddings_have_covariance_one_and_are_native(tiny_model):
    rows = np.random.default_rng(0).normal(size=(200, 6)) @ np.diag([5, 3, 2, 1, 0.5, 0]) + 7
    kernel, mean = whitening.whitening(rows.astype(np.float32))
    white = (rows - mean) @ kernel
    assert white.shape == (200, 5)  # the sixth does not vary
    assert np.allclose(np.cov(white, rowvar=False, bias=True), np.eye(5), atol=1e-4)
    texts = [f"node {i} {'failed ' * (i % 5)} disk {i % 7}" for i in range(80)]
    plain = tiny_model.encode(texts)
    whitening.add_whitening(tiny_model, texts, width=4)
    kernel, mean = whitening.whitening(plain, 4)
    assert np.allclose(tiny_model.encode(texts), (plain - mean) @ kernel, atol=1e-2)


@pytest.mark.parametrize("name", poolings.POOLINGS)
def test_poolings_are_what_a_slow_loop_computes_and_open_anywhere(name, tiny_model_dir, tmp_path):
    import torch

    model = opened(tiny_model_dir)
    poolings.set_pooling(model, name)
    assert not [p for module in list(model)[1:] for p in module.parameters() if p.requires_grad]
    model.save_pretrained(str(tmp_path / name), create_model_card=False)
    found = opened(tmp_path / name).encode(TEXTS)
    for text, embedding in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            inputs = model.tokenizer(text, return_tensors="pt")
            layers = model[0].auto_model(**inputs, output_hidden_states=True).hidden_states
        last = layers[-1][0]
        if name == "cls-last-avg":
            expected = (last[0] + last.mean(0)) / 2
        else:
            expected = (layers[1][0].mean(0) + last.mean(0)) / 2
        assert np.allclose(embedding, expected, atol=1e-5)


def test_angle_is_trained_under_a_pooling_whose_constants_stay(script, graded, tiny_model_dir, tmp_path):
    train, dev = graded
    out = tmp_path / "out"
    given = ("--pooling", "cls-last-avg", "--recipe", "paper-stsb", "--data", train, "--dev", dev)
    settings = ("--set", "epochs=1", "--set", "max_seq_length=32", "--set", "precision=fp32")
    script(poolings, *given, "--backbone", tiny_model_dir, "--out", out, *settings)
    model = opened(out)
    width = model.get_embedding_dimension()
    halves = np.hstack([np.eye(width), np.eye(width)]) / 2
    assert np.array_equal(model[2].linear.weight.detach().numpy(), halves)


def test_models_of_a_row_are_measured_beside_those_of_another(script, tiny_model_dir, tmp_path):
    rows = [{"text1": f"node {i}", "text2": "x " * (i % 5), "score": i % 5} for i in range(30)]
    for task in ("stsb", "sts12"):
        write_jsonl(tmp_path / task / "test.jsonl", rows)
    names = ("--task", "stsb", "--task", "sts12", "--data-dir", tmp_path, "--device", "cpu")
    other = tiny_model_dir.parent / "checkpoint"
    shown = script(measure, "--model", tiny_model_dir, "--against", other, *names)
    assert "paired t-test over the data sets" in shown
    assert "average" not in shown  # not of the published size, and not all seven


def test_pictures_are_drawn_and_their_numbers_printed(script, graded, tiny_model_dir, tmp_path):
    common = ("--model", tiny_model_dir, "--pairs", graded[0], "--out", tmp_path / "out")
    assert "of its area with the golden density" in script(figures, "densities", *common)
    assert (tmp_path / "out" / "densities.png").stat().st_size > 1000
    assert "imaginary, mean distance" in script(figures, "parts", *common)
    assert "above 0.95" in script(figures, "saturation", *common)


def test_the_numbers_of_the_pictures():
    one = figures.density(np.linspace(0, 1, 50))
    assert figures.shared_area(one, one) == pytest.approx(1, abs=0.05)
    assert figures.shared_area(one, figures.density(np.full(50, -0.1))) < 0.3
    assert figures.shares(np.array([0.99, 0.9, 0.5, 0.1])) == {"above 0.95": 0.25, "above 0.8": 0.5}
    part = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    assert figures.distances(2, part).tolist() == [5.0, 0.0]
    real, imaginary = figures.parts_of(np.array([[1, 2, 3, 4]])).values()
    assert (real.tolist(), imaginary.tolist()) == ([[1, 2]], [[3, 4]])


def test_the_statistics_of_issue_pairs(script, tmp_path):
    rows = [
        {"text1": "a b c", "text2": "a b d", "label": 1},
        {"text1": "a b", "text2": "c d", "label": 0},
    ]
    write_jsonl(tmp_path / "gis.jsonl", rows)
    shown = script(gis_statistics, "--pairs", tmp_path / "gis.jsonl")
    assert "1 positive, 1 negative, 2 in all" in shown
    assert "overlap of positives: 50, 33, 0" in shown  # 2 of 4 words, 1 of 3 bigrams, no trigram


def test_times_of_an_epoch_are_told_for_each_method(script, graded, tiny_model_dir):
    shown = script(times, "--data", graded[0], "--backbone", tiny_model_dir, "--max-seq-length", 32)
    assert [line.split(":")[0] for line in shown.splitlines()] == ["sbert", "simcse-supervised", "aoe"]
