"""The ways to train: this toolkit, sentence-transformers' own trainer, and the authors' package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, Way
from common import peer_python

from angle_data.jsonl import write_jsonl
from angle_train.recipe import AUTO, Recipe
from angle_train.training.presets import PRESETS, settle

_PINS = ("angle-emb==0.6.1", "torch==2.13.0")
_WORKER = Path(__file__).with_name("angle_emb_worker.py")
# The weights of its README's example for STS-B; its temperatures multiply.
_README = {
    "cosine_w": 1.0,
    "ibn_w": 1.0,
    "angle_w": 0.02,
    "cosine_tau": 20.0,
    "ibn_tau": 20.0,
    "angle_tau": 20.0,
}


def ours(**values: Any) -> Way:
    """Return training with this toolkit; `values` of the recipe make the way."""

    def run(model: Any, case: Case, recipe: Recipe, scratch: Path) -> dict[str, Any]:
        from angle_train.training.trainer import DevEvaluator, train

        dev = [pairs for pairs in (case.dev, case.more) if pairs is not None]
        evaluator = DevEvaluator(dev) if dev else None
        settled = settle(recipe.with_overrides(values), case.train)
        training = train(model, case.train, settled, scratch, evaluator=evaluator)
        best = max((point["dev"] for point in training.curve), default=None)
        return {"dev": best, "steps": training.steps}

    chosen = {"presets": PRESETS} if values.get("loss") == AUTO else {}
    return Way(run, {"toolkit": values, **chosen})


def stock(loss_name: str, *, positives_only: bool = False, **arguments: Any) -> Way:
    """Return training with sentence-transformers' trainer and collator, and a loss for it.

    Args:
        loss_name: `AngleLoss`, or a class in `sentence_transformers.losses`; the recipe's objective does not
            count.
        positives_only: Train on the positive pairs alone, without scores and without equal texts in a batch,
            as the documentation of MultipleNegativesRankingLoss asks. Otherwise batches are the toolkit's.
        **arguments: Of the loss.
    """

    def run(model: Any, case: Case, recipe: Recipe, scratch: Path) -> dict[str, Any]:
        from datasets import Dataset
        from sentence_transformers import SentenceTransformerTrainer
        from sentence_transformers.base.sampler import BatchSamplers
        from sentence_transformers.sentence_transformer import losses
        from transformers import PrinterCallback

        from angle_train import AngleLoss
        from angle_train.model.load import quiet_libraries
        from angle_train.training.arguments import training_arguments
        from angle_train.training.trainer import DevEvaluator

        pairs = case.train
        if positives_only:
            positive = np.flatnonzero(pairs.score >= settle(recipe, pairs).objective.positive_score).tolist()
            pairs = pairs.take(positive, pairs.name)

        columns: dict[str, list[Any]] = {"text1": list(pairs.text1), "text2": list(pairs.text2)}
        if not loss_name.startswith("MultipleNegatives"):
            columns["score"] = pairs.score.tolist()
        select = case.dev is not None
        loss_class = AngleLoss if loss_name == "AngleLoss" else getattr(losses, loss_name)
        with quiet_libraries():
            args = training_arguments(recipe, len(pairs), scratch, model.device, select=select)
            own = partial(_sampler, sources=pairs.sources(), block=recipe.training.source_block)
            args.batch_sampler = BatchSamplers.NO_DUPLICATES if positives_only else own
            trainer = SentenceTransformerTrainer(
                model=model,
                args=args,
                train_dataset=Dataset.from_dict(columns),
                loss=loss_class(model, **arguments),
                evaluator=DevEvaluator([case.dev]) if case.dev is not None else None,
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return {"dev": trainer.state.best_metric, "steps": trainer.state.global_step}

    return Way(run, {"stock": loss_name, "positives_only": positives_only, **arguments})


def _sampler(*given: Any, sources: Sequence[str], block: int, **more: Any) -> Any:
    """Return the toolkit's sampler for the stock trainer."""
    from angle_train.objective.batches import EpochSampler

    sampler = EpochSampler(*given, **more)
    sampler.sources, sampler.block = sources, block
    return sampler


def angle_emb(**loss_kwargs: float) -> Way:
    """Return training with angle_emb 0.6.1 in an environment of its own.

    It starts from the model's transformer and is told the pooling by name. Where nothing is selected its
    filter of repeated texts is off, too, so that all rows train.

    Args:
        loss_kwargs: What differs from its README's example for STS-B; its temperatures multiply.
    """

    def run(model: Any, case: Case, recipe: Recipe, scratch: Path) -> dict[str, Any]:
        for name, pairs in {"train": case.train, "dev": case.dev, "test": case.test}.items():
            if pairs is not None:
                rows = zip(pairs.text1, pairs.text2, pairs.score.tolist(), strict=True)
                lines = ({"text1": a, "text2": b, "label": score} for a, b, score in rows)
                write_jsonl(scratch / f"{name}.jsonl", lines)
        model.save(str(scratch / "backbone"), create_model_card=False)
        training, select = recipe.training, case.dev is not None
        same = {name: getattr(training, name) for name in ("batch_size", "learning_rate", "seed")}
        same |= {name: recipe.arguments[name] for name in ("warmup_ratio", "weight_decay", "max_grad_norm")}
        settings = same | {
            "backbone": str(scratch / "backbone"),
            "max_length": training.max_seq_length,
            "epochs": int(training.epochs),
            "loss_kwargs": _README | loss_kwargs,
            "logging_steps": 10,
            "select": select,
            "filter_duplicate": select,
        }
        (scratch / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        # Compiling takes longer than these trainings; what it compiles here is not what trains anyway.
        environment = os.environ | {"TORCHDYNAMO_DISABLE": "1", "PYTHONPATH": ""}
        command = [peer_python("angle-emb", _PINS), _WORKER, scratch]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"angle_emb failed:\n{done.stderr[-3000:]}")
        result: dict[str, Any] = json.loads((scratch / "result.json").read_text(encoding="utf-8"))
        return result

    return Way(run, {"angle_emb": _README | loss_kwargs})
