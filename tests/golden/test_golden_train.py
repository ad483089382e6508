"""What `angle-train` writes and prints on the tiny backbone: weights, reports, figures of tasks."""

import hashlib
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from labelling_runs import read_rows
from safetensors.numpy import load_file

from angle_data.jsonl import write_jsonl

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "examples" / "cloud-ops"
SHORT = """
[objective]
loss = "papers"

[training]
epochs = 2
batch_size = 16
learning_rate = 1e-3
evals_per_epoch = 2
"""


def graded(name, split):
    """The demo's graded pairs of a split."""
    rows = read_rows(EXAMPLES / f"eval_{name}.jsonl")
    return [{k: v for k, v in row.items() if k != "split"} for row in rows if row["split"] == split]


@pytest.fixture(scope="session")
def backbone(run, tiny_model_dir):
    """The tiny model of the tests, at a path that is the same in every run."""
    torch.set_num_threads(1)  # sums in another order differ
    shutil.copytree(tiny_model_dir, run.tmp / "tiny")
    return run.tmp / "tiny"


@pytest.fixture(scope="session")
def inputs(run):
    """Files of scored pairs, and a recipe of a second."""
    folder = run.tmp / "inputs"
    write_jsonl(folder / "train.jsonl", graded("natural", "test")[:96])
    write_jsonl(folder / "dev.jsonl", graded("natural", "dev")[:50])
    write_jsonl(folder / "seen.jsonl", graded("natural", "test")[:60])  # trained on: tuning is surely better
    near = [row | {"sentence2": f"{row['sentence2']} today"} for row in graded("natural", "test")[:60]]
    write_jsonl(folder / "near.jsonl", near)  # nearly trained on: test pairs show it, too
    write_jsonl(folder / "test.jsonl", graded("contrast", "test")[:80])
    write_jsonl(folder / "human.jsonl", graded("contrast", "dev")[:40])
    (folder / "short.toml").write_text(SHORT)
    return folder


def shortened(value):
    """JSON with the beginnings of its long lists, such as the points of figures."""
    if isinstance(value, dict):
        return {key: shortened(inside) for key, inside in value.items()}
    if isinstance(value, list):
        more = [f"{len(value)} items"] if len(value) > 8 else []
        return [*map(shortened, value[: 4 if more else 8]), *more]
    return value


def weights(path):
    """Every tensor's shape, sum, sum of squares and first values.

    But for the keys' biases: softmax is blind to them, so their gradients are rounding errors, which Adam
    scales up and every kind of processor makes otherwise.
    """
    tensors = {name: it for name, it in load_file(path).items() if not name.endswith("key.bias")}
    return {
        name: {
            "shape": list(tensor.shape),
            "sum": float(tensor.astype(np.float64).sum()),
            "squares": float((tensor.astype(np.float64) ** 2).sum()),
            "first": [float(value) for value in tensor.ravel()[:4]],
        }
        for name, tensor in sorted(tensors.items())
    }


def model_folder(run, out, said):
    """What a training run left and said."""
    stdout, stderr = said
    keep = ("warning", "step 0", "training pairs", "rows with")
    return {
        "files": sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()),
        "stdout": stdout.splitlines(),
        "stderr": [line for line in stderr.splitlines() if line.startswith(keep)],
        "report": run.json(out / "report.json"),
        "recipe": hashlib.sha256((out / "recipe.toml").read_bytes()).hexdigest(),
        "modules": run.json(out / "modules.json"),
        "weights": weights(out / "model.safetensors"),
    }


FITS = {
    "plain": lambda inputs, voted: (
        "--data", inputs / "train.jsonl", "--dev", inputs / "seen.jsonl", "--test", inputs / "near.jsonl",
        "--recipe", inputs / "short.toml",
    ),
    "llm-folds": lambda inputs, voted: (
        "--data", voted / "dataset", "--human", inputs / "human.jsonl", "--test", inputs / "test.jsonl",
        "--recipe", "opposites", "--epochs", 1,
        "--merge-back", 0, "--max-seq-length", "auto", "--drop-leaks",
    ),
    "llm-dev": lambda inputs, voted: (
        "--data", voted / "dataset", "--dev", inputs / "dev.jsonl", "--test", inputs / "test.jsonl",
        "--recipe", "opposites", "--epochs", 1, "--learning-rate", 1e-3, "--set", "gradient_cache=true",
        "--set", "matryoshka_dims=[16]", "--set", "swap=false",
    ),
    "lora": lambda inputs, voted: (
        "--data", inputs / "train.jsonl", "--dev", inputs / "seen.jsonl", "--test", inputs / "test.jsonl",
        "--recipe", inputs / "short.toml", "--set", "lora_rank=4", "--set", "pooling=last-avg",
        "--learning-rate", 5e-2, "--epochs", 6, "--set", "angle_mode=published",
        "--set", "prompt=Summarize: {text}",
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def fitted(run, inputs, backbone, voted):
    """Train a variant once; returns its folder and what was said."""
    done = {}

    def fit(name):
        if name not in done:
            out = run.tmp / "models" / name
            options = ("--backbone", backbone, "--out", out, "--device", "cpu", *FITS[name](inputs, voted[0]))
            done[name] = (out, run("angle_train", "fit", *options))
        return done[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("angle_train.training.folds.PARTS", 2)  # `llm-folds` trains two models less
        yield fit


# Other processors round otherwise; training carries that on into the weights, the more, the higher the rate.
WEIGHTS = {"lora": 1e-3}
# Pairs whose cosines are nearly equal may change places with it, each time 7e-7 of the rank agreement of 256.
GUARDS = 1e-5


def tolerance(name, place):
    """Return how much a number at a place of a model's golden file may differ."""
    if place.startswith("$.weights"):
        return WEIGHTS.get(name, 1e-4)
    return GUARDS if place.startswith("$.report.details.guards") else 1e-6


@pytest.mark.parametrize("name", FITS)
def test_pairs_become_a_model(check, run, fitted, name):
    check(f"fit-{name}", model_folder(run, *fitted(name)), tolerance=partial(tolerance, name))


def test_models_are_measured_on_pairs(check, run, inputs, backbone, fitted):
    model, _ = fitted("plain")
    common = ("--model", model, "--baseline", backbone, "--pairs", EXAMPLES / "eval_natural.jsonl",
              "--split", "test")  # fmt: skip
    more = ("--pairs", EXAMPLES / "eval_contrast.jsonl", "--json", "--device", "cpu")
    out, err = run("angle_train", "eval", *common, *more)
    check("eval-pairs", {"json": run.plain(json.loads(out)), "stderr": err.splitlines()})


@pytest.fixture(scope="session")
def tasks(run):
    """Folders of two tiny tasks."""
    folder = run.tmp / "data"
    natural = graded("natural", "test")
    write_jsonl(folder / "stsb" / "test.jsonl", natural[:60])
    texts = dict.fromkeys(row["sentence1"] for row in natural)
    reports = [{"text": text, "cluster": number // 3} for number, text in enumerate(texts)]
    write_jsonl(folder / "bug-duplicates" / "issues-validation.jsonl", reports)
    return folder


def test_models_are_measured_on_tasks(check, run, backbone, tasks, fitted):
    model, _ = fitted("plain")
    names = [part for name in ("stsb", "bug-duplicates-retrieval") for part in ("--task", name)]
    out, err = run(
        "angle_train", "eval", "--model", model, "--model", fitted("llm-dev")[0],
        "--baseline", backbone,
        "--data-dir", tasks, *names, "--device", "cpu", "--json",
    )  # fmt: skip
    check("eval-tasks", {"json": shortened(run.plain(json.loads(out))), "stderr": err.splitlines()})


def test_texts_are_encoded(check, run, fitted):
    model, _ = fitted("plain")
    out = run.tmp / "texts.npy"
    said, _ = run(
        "angle_train", "encode", "--model", model, "--texts", EXAMPLES / "texts.jsonl", "--out", out,
        "--device", "cpu", "--json",
    )  # fmt: skip
    array = np.load(out).astype(np.float64)
    found = {
        "said": run.plain(json.loads(said)),
        "shape": list(array.shape),
        "first": [[float(value) for value in row] for row in array[:3]],
        "row_sums": [float(value) for value in array.sum(axis=1)],
        "mean": [float(value) for value in array.mean(axis=0)],
    }
    check("encode", found, tolerance=1e-5)
