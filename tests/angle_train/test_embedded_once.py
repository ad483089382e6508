"""A text is embedded once while a model's weights stay what they are, whatever it is measured for."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from train_runs import run_of, write

from angle_train.api import evaluate
from angle_train.evaluation.known import KnownVectors
from angle_train.run import fit

FAST = {"loss": "papers", "epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}


class Embedded(Counter):
    """How often each text was embedded, by the weights that did it: `(weights, text) -> times`."""

    @property
    def again(self):
        return {text: times for (_, text), times in self.items() if times > 1}

    def states(self, text):
        """Under how many weights a text was embedded."""
        return sum(found == text for _, found in self)


@pytest.fixture
def embedded(monkeypatch):
    found, encode = Embedded(), SentenceTransformer.encode

    def counted(self, texts, **options):
        weights = torch.cat([value.detach().flatten() for value in self.parameters()])
        state = float(weights.double() @ torch.arange(1.0, len(weights) + 1, dtype=torch.float64))
        found.update((state, text) for text in texts)
        return encode(self, texts, **options)

    monkeypatch.setattr(SentenceTransformer, "encode", counted)
    return found


@pytest.fixture
def files(tmp_path, rows):
    """Pairs to train, choose, report on and guard; the last three share half of their pairs' texts."""
    other = [row | {"sentence2": f"{row['sentence2']} again"} for row in rows]
    made = {"data": rows[:40], "dev": rows[40:60], "test": other[50:70], "guard": other[45:75]}
    return {name: [write(tmp_path / f"{name}.jsonl", found)] for name, found in made.items()}


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_run_embeds_no_text_twice_under_the_same_weights(embedded, files, tiny_model_dir, tmp_path, share):
    values = FAST | {"average_with_backbone": share, "keep_general": True}
    fit(run_of(tiny_model_dir, tmp_path / "out", files["data"][0], values, **files))
    assert embedded.again == {}
    both = json.loads(Path(files["dev"][0]).read_text().splitlines()[15])[
        "sentence1"
    ]  # in test and guard too
    assert embedded.states(both) == 3  # the backbone, and the weights after each of two epochs


def test_a_run_without_dev_pairs_embeds_none_twice(embedded, files, tiny_model_dir, tmp_path, two_parts):
    more = {"data": None, "dev": None, "human": files["data"], "test": files["test"], "guard": files["guard"]}
    values = FAST | {"keep_general": True}
    fit(run_of(tiny_model_dir, tmp_path / "out", "", values, **more))
    assert embedded.again == {}


def test_an_evaluation_embeds_none_twice_under_one_model(embedded, files, tiny_model_dir):
    evaluate(str(tiny_model_dir), pairs=[*files["dev"], *files["test"], *files["guard"]], device="cpu")
    assert embedded
    assert embedded.again == {}


def test_memory_is_bounded_and_what_was_forgotten_is_asked_for_again():
    known = KnownVectors(most=3 * 8)  # three rows of two numbers
    known.add(known.missing(["a", "b", "a"]), np.array([[1, 2], [3, 4]], dtype=np.float32))
    assert known.missing(["b", "c", "b"]) == ["c"]
    assert known.missing(["b", "c", "d"]) == ["b", "c", "d"]  # a is forgotten, and with it b
    known.add(["b", "c", "d"], np.arange(6, dtype=np.float32).reshape(3, 2))
    assert known.rows_of(["d", "b", "d"]).tolist() == [[4, 5], [0, 1], [4, 5]]
    assert known.missing(["a"]) == ["a"]
