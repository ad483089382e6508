"""The ways to train: this toolkit, sentence-transformers' own trainer, and the authors' package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, Way
from common import RESULTS

from angle_train.data.pairs import PairSet
from angle_train.recipe import Recipe

_PINS = ("angle-emb==0.6.1", "torch==2.13.0")
_WORKER = Path(__file__).with_name("angle_emb_worker.py")


def ours(*, merge: bool = False, peer: str | None = None, **values: Any) -> Way:
    """Return training with this toolkit; `values` of the recipe make the way.

    Args:
        merge: Average the weights with the untouched backbone, in the share that the dev pairs prefer; what
            the same training gives without is kept too.
        peer: Train with a loss of others, see `peers`.
        values: Of the recipe.
    """

    def run(model: Any, case: Case, recipe: Recipe, scratch: Path) -> dict[str, Any]:
        from peers import options_for

        from angle_train.evaluate.similarity import evaluate_model, spearman
        from angle_train.recipe import AUTO
        from angle_train.train.choosing import best_share, blend, blended, shares_to_try, snapshot
        from angle_train.train.trainer import DevEvaluator, train

        backbone = snapshot(model)
        chosen = recipe.with_overrides(values | ({"swap": False} if peer else {}))
        evaluator = DevEvaluator([pairs for pairs in (case.dev, case.more) if pairs is not None])
        training = train(model, case.train, chosen, scratch, evaluator=evaluator, options=options_for(peer))
        notes = {
            "dev": max(point.dev for point in training.curve),
            "steps": training.steps,
            "curve": [point.terms.get("loss") for point in training.curve],
        }
        if merge:
            notes["unmerged"] = {
                "dev": notes["dev"],
                "similarity": evaluate_model(model, case.test).round(6).tolist(),
            }
            shares, scores = shares_to_try(AUTO), []
            for share in shares:
                with blended(model, backbone, share):
                    scores.append(spearman(case.dev.score, evaluate_model(model, case.dev)))
            best = best_share(scores)
            blend(model, backbone, shares[best])
            notes |= {"dev": scores[best], "share": shares[best]}
        return notes

    return Way(run, {"toolkit": values, "merge": merge, "peer": peer}, values.get("pooling"))


def stock(loss_name: str, *, positives_only: bool = False) -> Way:
    """Return training with sentence-transformers' trainer, collator and loss.

    Args:
        loss_name: Class in `sentence_transformers.losses`.
        positives_only: Train on the positive pairs alone, without scores and without equal texts in a batch,
            as the documentation of MultipleNegativesRankingLoss asks.
    """

    def run(model: Any, case: Case, recipe: Recipe, scratch: Path) -> dict[str, Any]:
        from datasets import Dataset
        from sentence_transformers import SentenceTransformerTrainer
        from sentence_transformers.base.sampler import BatchSamplers
        from sentence_transformers.sentence_transformer import losses
        from transformers import PrinterCallback

        from angle_train.model.load import quiet_libraries
        from angle_train.train.arguments import training_arguments
        from angle_train.train.trainer import DevEvaluator

        pairs = case.train
        if positives_only:
            positive = np.flatnonzero(pairs.score >= recipe.objective.positive_score).tolist()
            pairs = pairs.take(positive, pairs.name)
        columns: dict[str, list[Any]] = {"text1": list(pairs.text1), "text2": list(pairs.text2)}
        if not positives_only:
            columns["score"] = pairs.score.tolist()
        with quiet_libraries():
            args = training_arguments(recipe.training, len(pairs), scratch, model.device)
            if positives_only:
                args.batch_sampler = BatchSamplers.NO_DUPLICATES
            trainer = SentenceTransformerTrainer(
                model=model,
                args=args,
                train_dataset=Dataset.from_dict(columns),
                loss=getattr(losses, loss_name)(model),
                evaluator=DevEvaluator([case.dev]),
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        log: Sequence[Mapping[str, Any]] = trainer.state.log_history
        return {
            "dev": trainer.state.best_metric,
            "steps": trainer.state.global_step,
            "curve": [entry["loss"] for entry in log if "loss" in entry],
        }

    return Way(run, {"stock": loss_name, "positives_only": positives_only})


def angle_emb(**loss_kwargs: float) -> Way:
    """Return training with angle_emb 0.6.1 in an environment of its own.

    Args:
        loss_kwargs: What differs from its README's example for STS-B; its temperatures multiply.
    """
    weights = {
        "cosine_w": 1.0,
        "ibn_w": 1.0,
        "angle_w": 0.02,
        "cosine_tau": 20.0,
        "ibn_tau": 20.0,
        "angle_tau": 20.0,
    }
    weights |= loss_kwargs

    def run(model: Any, case: Case, recipe: Recipe, scratch: Path) -> dict[str, Any]:
        for name in ("train", "dev", "test"):
            write_pairs(getattr(case, name), scratch / f"{name}.jsonl")
        # The transformer that was loaded is what it starts from; it is told the pooling by name.
        model.save(str(scratch / "backbone"), create_model_card=False)
        training = recipe.training
        settings = {
            "backbone": str(scratch / "backbone"),
            "max_length": training.max_seq_length,
            "epochs": int(training.epochs),
            "batch_size": training.batch_size,
            "learning_rate": training.learning_rate,
            "warmup_ratio": training.warmup_ratio,
            "weight_decay": training.weight_decay,
            "max_grad_norm": training.max_grad_norm,
            "seed": training.seed,
            "loss_kwargs": weights,
            "logging_steps": 10,
            "select": True,
            "filter_duplicate": True,
        }
        (scratch / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        return run_angle_emb(scratch)

    return Way(run, {"angle_emb": weights})


def run_angle_emb(folder: Path) -> dict[str, Any]:
    """Return what the worker writes after training as `folder` says."""
    # Compiling takes longer than these trainings; what it compiles here is not what trains anyway.
    environment = os.environ | {"TORCHDYNAMO_DISABLE": "1", "PYTHONPATH": ""}
    command = [angle_emb_python(), _WORKER, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"angle_emb failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return result


def angle_emb_python() -> Path:
    """Return the Python of angle_emb's environment; makes it on first use (about a minute and 2 GB)."""
    home = RESULTS / "peers" / "angle-emb"
    python = home / "bin" / "python"
    marker = home / "ready"
    if not marker.exists():
        print(f"installing {' '.join(_PINS)} in {home}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *_PINS], check=True)
        marker.write_text(" ".join(_PINS) + "\n", encoding="utf-8")
    return python


def write_pairs(pairs: PairSet, path: Path) -> None:
    """Write pairs as JSON lines with `text1, text2, label`."""
    rows = zip(pairs.text1, pairs.text2, pairs.score.tolist(), strict=True)
    lines = [json.dumps({"text1": a, "text2": b, "label": score}) for a, b, score in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
