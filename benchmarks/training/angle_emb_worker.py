"""Trains with angle_emb 0.6.1; run by `ways.angle_emb` in an environment of its own, without this project.

    python angle_emb_worker.py FOLDER

FOLDER holds `settings.json`, `{train,dev,test}.jsonl` (`text1, text2, label`) and gets `result.json`.
Everything that angle_emb leaves to its caller is set to what the other ways have; the rest (its collator,
its filter of repeated texts, its evaluation after each epoch) is its own.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from angle_emb import AnglE
from datasets import Dataset
from transformers import set_seed

folder = Path(sys.argv[1])
settings = json.loads((folder / "settings.json").read_text())
torch.set_num_threads(1)


def pairs(name: str) -> Dataset:
    """Return the pairs of a file."""
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return Dataset.from_list([json.loads(line) for line in lines])


def load(path: object) -> AnglE:
    """Return a model with mean pooling."""
    options = {"pooling_strategy": "avg", "max_length": settings["max_length"], "device": "cpu"}
    return AnglE.from_pretrained(str(path), is_llm=False, **options)


def similarity(model: AnglE, rows: Dataset, batch_size: int = 64) -> np.ndarray:
    """Return the cosine of each pair; texts are encoded once, in batches of similar length."""
    texts = sorted({*rows["text1"], *rows["text2"]}, key=len)
    vectors = [model.encode(texts[start : start + batch_size]) for start in range(0, len(texts), batch_size)]
    matrix = np.concatenate(vectors).astype(np.float64)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    row = {text: number for number, text in enumerate(texts)}
    first, second = ([row[text] for text in rows[column]] for column in ("text1", "text2"))
    return (matrix[first] * matrix[second]).sum(axis=1)


set_seed(settings["seed"])
train = pairs("train")
model = load(settings["backbone"])
steps = -(-len(train) // settings["batch_size"]) * settings["epochs"]
cpu = time.process_time()
model.fit(
    train_ds=train,
    valid_ds_for_callback=pairs("dev") if settings["select"] else None,
    output_dir=str(folder / "angle-emb"),
    batch_size=settings["batch_size"],
    epochs=settings["epochs"],
    learning_rate=settings["learning_rate"],
    warmup_steps=round(settings["warmup_ratio"] * steps),
    logging_steps=settings["logging_steps"],
    save_strategy="epoch",
    filter_duplicate=settings["filter_duplicate"],
    loss_kwargs=settings["loss_kwargs"],
    argument_kwargs={
        "seed": settings["seed"],
        "weight_decay": settings["weight_decay"],
        "max_grad_norm": settings["max_grad_norm"],
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    },
)
result = {"cpu_seconds": time.process_time() - cpu, "steps": steps}
if settings["select"]:
    best = load(folder / "angle-emb" / "best-checkpoint")
    from scipy.stats import spearmanr

    dev = pairs("dev")
    result["dev"] = float(spearmanr(dev["label"], similarity(best, dev)).statistic)
    result["similarity"] = similarity(best, pairs("test")).tolist()
(folder / "result.json").write_text(json.dumps(result))
