"""The scaled Table 5: shares of the supervised gain by hand, and unsupervised SimCSE on a tiny model."""

import gzip
import importlib
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
NAMES = ("table5", "common", "cases", "ways", "llm_supervised")


@pytest.fixture
def table5(monkeypatch, tmp_path):
    """The script, with a few made-up STS-B pairs as its data."""
    for number, split in enumerate(("train", "validation", "test")):
        path = tmp_path / "data" / "stsb" / f"{split}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        pairs = [
            {
                "sentence1": f"pod {i} {'failed ' * (i % 3)}on node {number}",
                "sentence2": f"{'node ' * (i % 4)}restarts {i}",
                "score": i % 6,
            }
            for i in range(12)
        ]
        with gzip.open(path, "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(pair) + "\n" for pair in pairs)
    # What the scripts' imports would leave behind.
    monkeypatch.setenv("ANGLE_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.syspath_prepend(BENCHMARKS / "evaluation")
    yield importlib.import_module("table5")
    for name in NAMES:
        sys.modules.pop(name, None)


def test_shares_are_of_the_gain_of_the_same_seed(table5):
    scores = {"vote": {1: 65.0, 2: 60.0, 3: 99.0}, "supervised": {1: 70.0, 2: 60.0}}
    assert table5.shares(scores, untuned=50.0) == {"vote": [75.0, 100.0]}


def test_the_interval_is_students(table5):
    # mean 70, standard deviation 10, t(0.975; 2) = 4.302653
    half = 4.302653 * 10 / math.sqrt(3)
    assert table5.t_interval([60.0, 70.0, 80.0]) == pytest.approx((70 - half, 70 + half), abs=1e-4)


def test_simcse_trains_is_kept_and_never_worse_on_dev(table5, tiny_model_dir, monkeypatch, tmp_path):
    monkeypatch.setattr(table5, "minilm", lambda layers: tiny_model_dir)
    monkeypatch.setitem(table5._SIMCSE_TRAINING, "batch_size", 2)  # ten steps must move a few ranks
    monkeypatch.setitem(table5._SIMCSE_TRAINING, "learning_rate", 0.01)
    kept = tmp_path / "kept" / "simcse.json"
    texts = [f"node {i} was {'very ' * i}slow" for i in range(10)]
    found = table5.simcse(texts, 2, kept, seed=1)
    noted = json.loads(kept.read_text(encoding="utf-8"))
    untuned = table5.untuned_score(table5.llm_task(), str(tiny_model_dir))
    assert noted["test_tuned"] != untuned
    assert found == noted["test"] == (noted["test_tuned"] if noted["dev"] > noted["dev_untuned"] else untuned)
    assert table5.simcse([], 1, kept, seed=2) == found


@pytest.mark.parametrize(("kept", "expected"), [("tuned", 0.7), ("backbone", 0.6)])
def test_a_score_is_that_of_what_was_kept_on_the_test_pairs(table5, kept, expected):
    named = [
        ("dev", "tuned", 0.9),
        ("dev", "backbone", 0.8),
        ("test", "backbone", 0.6),
        ("test", "tuned", 0.7),
    ]
    results = [
        SimpleNamespace(role=role, model=model, score=SimpleNamespace(value=value))
        for role, model, value in named
    ]
    assert table5.kept_score(SimpleNamespace(kept=kept, results=results)) == expected


def test_texts_are_distinct_and_those_of_both_columns(table5):
    found = table5.texts_for("simcse-all")
    assert len(found) == len(set(found)) == 24
