"""The options of `angle-train`'s commands: each field is one, with its default and its help.

Those of `fit` that replace a value of the recipe are None where they were not given. Imports nothing heavy.
"""

# ruff: noqa: RUF009 - each call makes a field
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from angle_data.calls import option

SEED = 1111
"""Of `eval`: SentEval's."""

_PAIRS = ".jsonl[.gz], .csv[.gz], .tsv[.gz] or .parquet"
_OF_PURPOSE = "opposites or topics as the data says, else default"

_backbone = partial(option, "Model to start from: directory or hub id.")
_data = partial(option, f"Training pairs: dataset directory, {_PAIRS} file, or hub:ID. Repeatable.")
_scale = partial(option, "Scale of the scores, LOW-HIGH such as 0-5.", None, shown="detected")
_device = partial(option, "cpu, cuda or mps (Apple).", None, shown="the fastest there is")
_keep = partial(
    option,
    "Pairs of general text, without scores, to keep the similarity that the backbone gives them "
    "(angle-data mine makes such). Repeatable.",
    None,
)
_drop_leaks = partial(option, "Leave out training pairs that are dev or test pairs too.", False)
_setting = partial(option, "Any value of the recipe. Repeatable.", None, flag="set", metavar="KEY=VALUE")
_of_recipe = partial(option, default=None, shown="recipe's")


def _toml(text: str) -> object:
    from angle_train.recipe import toml_value

    return toml_value(text) if text else text


@dataclass(frozen=True)
class FitOptions:
    """Those of `fit`."""

    backbone: str = _backbone()
    out: Path = option("Directory for model and report; the same command goes on there.")
    data: list[str] | None = _data(None)
    human: list[str] | None = option(
        "Human-graded training pairs; without --dev they also choose when to stop.", None
    )
    recipe: str | None = option("Name of a built-in recipe, or a .toml file.", None, shown=_OF_PURPOSE)
    dev: list[str] | None = option(
        "Pairs that choose the checkpoint (rows with split dev, if split). Repeatable.",
        None,
        shown="--human in turn, or validation split, or a tenth of the data",
    )
    test: list[str] | None = option("Pairs to report on (rows with split test, if split). Repeatable.", None)
    keep: list[str] | None = _keep()
    scale: str | None = _scale()
    epochs: float | None = _of_recipe("Passes over the data.")
    batch_size: int | None = _of_recipe("Pairs per step, of all processes.")
    learning_rate: float | None = _of_recipe("Peak rate.")
    max_seq_length: Any = option(
        "Tokens per text, or auto: from the data.", None, shown="recipe's or checkpoint's", read=_toml
    )
    precision: str | None = _of_recipe("auto, fp32, bf16 or fp16.")
    seed: int | None = _of_recipe("Seeds everything random.")
    merge_back: Any = _of_recipe("Share of the backbone in the final weights, or auto.", read=_toml)
    setting: list[str] | None = _setting()
    drop_leaks: bool = _drop_leaks()
    require_better: bool = option(
        "Save the backbone, and exit 1, unless dev chose tuned weights and test shows a gain.", False
    )
    report_to: str | None = option(
        "tensorboard, wandb, trackio … (what transformers knows), with commas between.", None, shown="none"
    )
    device: str | None = _device()
    overwrite: bool = option("Replace an earlier run in --out.", False)


@dataclass(frozen=True)
class GridOptions:
    """Those of `grid`."""

    data: list[str] = _data()
    backbone: str = _backbone()
    dev: list[str] = option("Pairs to choose on (rows with split dev, if split). Repeatable.")
    out: Path = option("Directory for table and recipe; the same command goes on there.")
    human: list[str] | None = option("Human-graded training pairs. Repeatable.", None)
    keep: list[str] | None = _keep()
    recipe: str | None = option("Recipe to search around: a name or .toml file.", None, shown=_OF_PURPOSE)
    setting: list[str] | None = _setting()
    trials: int = option("Recipes to try, the given one among them.", 27, min=2)
    rungs: int = option("Rounds; each trains the best third, and RECIPE, for three times as long.", 3, min=1)
    seed: int = option("Decides which recipes are tried.", 0, min=0)
    scale: str | None = _scale()
    drop_leaks: bool = _drop_leaks()
    device: str | None = _device()
    overwrite: bool = option("Replace an earlier grid in --out.", False)


@dataclass(frozen=True)
class EvalOptions:
    """Those of `eval`."""

    model: list[str] = option("Model to measure: directory or hub id. Repeatable.")
    pairs: list[str] | None = option(
        f"Scored pairs: {_PAIRS} file, dataset directory, or hub:ID. Repeatable.", None
    )
    task: list[str] | None = option(
        "Task or group to measure on: sts, transfer, pairs, inference, retrieval, all, stsb, trec … "
        "Repeatable. An unknown name lists them all.",
        None,
    )
    data_dir: Path | None = option(
        "Folder with the tasks' data, TASK/SPLIT.jsonl.gz.", None, shown="from the hub"
    )
    baseline: str | None = option("Model to compare the others with.", None)
    split: str | None = option(
        "Rows of a file with a split column (else all), or split of a dataset (else test).", None
    )
    scale: str | None = _scale()
    seed: int | None = option(
        "Of the folds of tasks with classifiers.", None, shown=str(SEED), min=0, max=2**32 - 1
    )
    report: Path | None = option("Also write the result as a page, FILE.html.", None)
    device: str | None = _device()


@dataclass(frozen=True, slots=True)
class EncodeConfig:
    """What to embed, with what, and how: the options of `encode`."""

    model: str = option("Model to embed with: directory or hub id.")
    texts: Path = option(f"Texts: {_PAIRS}, or .txt (one a line).")
    out: Path = option(".npy (one array, rows as in --texts) or .parquet (id, embedding).")
    text_field: str = option("Field that holds the text.", "text")
    id_field: str | None = option("Field that holds the id.", None, shown="id, if there is one")
    batch_size: int = option("Texts per forward pass.", 32)
    normalize: bool = option("Scale every embedding to length 1.", False)
    prompt: str | None = option("Text before every text.", None, shown="model's")
    max_seq_length: int | None = option("Tokens per text.", None, shown="model's")
    device: str | None = _device()
