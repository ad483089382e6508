"""`fit` in bf16 on BERT-base shape beside sentence-transformers' own trainer with its CoSENT loss.

Both get the same pairs, batch size, learning rate, schedule, length and seed. `fit` encodes each distinct
text once, in chunks of similar length; the other pads each column of a batch to its longest text. Only the
steps are timed, see `setting.watch_steps`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from guard import attempt
from models import CONTEXT, bert, flop_per_token
from setting import Setting, StepClock, read_pairs, watch_steps, write_pairs

SHAPES = {"short": 2.6, "long": 4.6}
"""Shape -> mean of the logarithm of the number of words: 16 and 120 words on average."""
COSINE = {"loss": "papers", "in_batch_weight": 0.0, "angle_weight": 0.0, "swap": False}
"""The values of the recipe with which the objective is CoSENT's."""

_SHARED = {"epochs": 1, "learning_rate": 2e-5, "seed": 1}
_ARGS = {"warmup_ratio": 0.1, "weight_decay": 0.01}
_SHARED |= {"max_seq_length": CONTEXT, "evals_per_epoch": 1}


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield a row for every way and shape."""
    for shape, mean in SHAPES.items():
        size = setting.pick({"short": 128, "long": 64}[shape], 4)
        pairs = write_pairs(setting, size * setting.pick(50, 3), mean)
        ways: dict[str, dict[str, Any]] = {
            "fit, chunks of 32": {"chunk_size": 32, **COSINE},
            "fit, chunks of 128": {"chunk_size": 128, **COSINE},
            "fit, three terms": {"chunk_size": 128, "loss": "papers"},
        }
        if shape == "long" and setting.tiny:
            ways = {}
        for name, values in ways.items():
            asked = {"batch_size": size, "precision": "bf16", **values}
            yield attempt(f"{shape}, {name}", lambda p=pairs, a=asked: _fit(setting, p, a))
        yield attempt(
            f"{shape}, sentence-transformers' CoSENTLoss", lambda p=pairs, b=size: _stock(setting, p, b)
        )


def fit_once(
    setting: Setting, name: str, backbone: Path, pairs: Path, values: dict[str, Any]
) -> tuple[Any, StepClock]:
    """Return what `fit` returned, in the folder runs/NAME, and the clock of its steps.

    Without `dev` in `values`, further pairs choose the weights.
    """
    from angle_train import fit

    dev = values.get("dev") or write_pairs(setting, setting.pick(64, 144), seed=1)
    values = {"overwrite": True, "args": _ARGS, **_SHARED, **values, "dev": str(dev)}
    with watch_steps(setting.device, setting.pick(10, 1)) as clock:
        fitted = fit(
            str(pairs),
            backbone=str(backbone),
            out=setting.folder(name),
            device=setting.device,
            **values,
        )
    return fitted, clock


def rates(clock: StepClock, backbone: Path, pairs: Path, batch_size: int, **counted: Any) -> dict[str, Any]:
    """Return the figures of a training: steps, tokens and flops a second, and memory.

    Tokens are those of all texts as they are given, without padding, however often they were computed.
    """
    tokens, length = _tokens_per_pair(backbone, pairs)
    found: dict[str, Any] = clock.figures()
    if clock.measured:
        each_second = tokens * batch_size * clock.measured / clock.seconds
        found["tokens_per_s"] = each_second
        found["flop_per_s"] = each_second * flop_per_token(backbone, length, **counted)
    return found


def saved_is_measured(setting: Setting, fitted: Any, test: Path) -> dict[str, Any]:
    """Return how far the saved model is from what the report says of it."""
    from angle_train import evaluate

    figures = evaluate(fitted, pairs=str(test), device=setting.device).figures
    (saved,) = (row["score"] for row in figures if row["model"] != "word overlap")
    kept = fitted.report.kept
    measured = score_of(fitted, kept)
    return {"score": measured, "off": abs(saved - measured), "said": f"saved: {kept}"}


def score_of(fitted: Any, model: str) -> float:
    """Return Spearman on the test pairs of `tuned`, also where that was not saved, or of `backbone`."""
    rows = [row for row in fitted.figures if row["role"] == "test" and row["model"].startswith(model)]
    return float(rows[0]["score"])


@cache
def _tokens_per_pair(backbone: Path, pairs: Path) -> tuple[float, float]:
    """Return the mean number of tokens of a pair, and that of a text."""
    from transformers import AutoTokenizer

    columns = read_pairs(pairs)
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    texts = [*columns["text1"], *columns["text2"]]
    ids = tokenizer(texts, truncation=True, max_length=CONTEXT)["input_ids"]
    count = sum(map(len, ids))
    return count / len(columns["score"]), count / len(texts)


def _fit(setting: Setting, pairs: Path, values: dict[str, Any]) -> dict[str, Any]:
    fitted, clock = fit_once(setting, "training", bert(setting), pairs, values)
    shutil.rmtree(fitted.path)
    return rates(clock, bert(setting), pairs, values["batch_size"])


def _stock(setting: Setting, pairs: Path, batch_size: int) -> dict[str, Any]:
    """Train as the documentation of sentence-transformers says."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    model = SentenceTransformer(str(bert(setting)), device=setting.device)
    model.max_seq_length = CONTEXT
    out = setting.folder("stock")
    args = SentenceTransformerTrainingArguments(
        output_dir=str(out),
        num_train_epochs=_SHARED["epochs"],
        per_device_train_batch_size=batch_size,
        learning_rate=_SHARED["learning_rate"],
        warmup_steps=_ARGS["warmup_ratio"],
        weight_decay=_ARGS["weight_decay"],
        seed=_SHARED["seed"],
        max_grad_norm=1.0,
        bf16=True,
        use_cpu=not setting.on_gpu,
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    columns = read_pairs(pairs)
    trainer = SentenceTransformerTrainer(
        model=model, args=args, train_dataset=Dataset.from_dict(columns), loss=CoSENTLoss(model)
    )
    with watch_steps(setting.device, setting.pick(10, 1)) as clock:
        trainer.train()
    return rates(clock, bert(setting), pairs, batch_size)
