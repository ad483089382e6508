"""The options of `angle-train`'s commands: each field is one, with its default and its help.

Those of `fit` that replace a value of the recipe are None where they were not given. Imports nothing heavy.
"""

# ruff: noqa: RUF009 - each call makes a field
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from angle_data.calling.options import check_values, option
from angle_data.tables import TABLE_KINDS

VECTOR_KINDS = ".npy, .parquet or .jsonl[.gz]"
_OF_PURPOSE = "opposites, topics or search if the data says so, else default"

_backbone = partial(option, "Model to start from: directory or hub id.")
_data = partial(option, f"Training pairs: {TABLE_KINDS}, or hub:ID. Repeatable.")
_scale = partial(option, "Range of the scores, LOW-HIGH, such as 0-5.", None, shown="detected")
_device = partial(option, "cpu, cuda or mps (Apple).", None, shown="fastest available")
_keep = partial(
    option,
    "Texts, or pairs of them, without scores, that should stay as the backbone has them; also .txt[.gz] (one "
    "text per line). Repeatable.",
    None,
    shown="general text, if the recipe says so",
)
_judged = partial(
    option,
    "Many pairs that a language model graded, the graded ones among them, to make the figures (in fit the "
    "choice by dev pairs, too) surer: run of angle-data llm-score, or file.",
    None,
)
_drop_leaks = partial(option, "Leave out training pairs that are also dev or test pairs.", False)
_query_prompt = partial(
    option,
    "Text before every query (text1), such as 'query: '; says that pairs are queries and documents.",
    None,
    shown="model's own",
)
_document_prompt = partial(option, "The same before every document (text2).", None, shown="model's own")
_setting = partial(option, "Set any value of the recipe. Repeatable.", None, flag="set", metavar="KEY=VALUE")
_of_recipe = partial(option, default=None, shown="recipe's")


def _toml(text: str) -> object:
    from angle_train.recipe import toml_value

    return toml_value(text) if text else text


@dataclass(frozen=True)
class FitOptions:
    """Those of `fit`; `recipe` may be the recipe itself, as `run.fit` wants it, where values are in it."""

    backbone: str = _backbone()
    out: Path = option("Output directory for model and report; rerun the same command to resume.")
    data: list[str] | None = _data(None)
    human: list[str] | None = option(
        "Human-graded training pairs; without --dev, they also decide when to stop.", None
    )
    recipe: Any = option("Name of a built-in recipe, or .toml file.", None, shown=_OF_PURPOSE, read=str)
    dev: list[str] | None = option(
        "Pairs used to choose the checkpoint (rows with split dev, if split). Repeatable.",
        None,
        shown="--dev-search, else parts of --human in turn, else validation split, else a tenth of the data",
    )
    test: list[str] | None = option("Pairs to report on (rows with split test, if split). Repeatable.", None)
    dev_search: list[str] | None = option(
        "Search that chooses the checkpoint by nDCG@10, beside --dev pairs or in their place: as "
        "--test-search, with qrels/dev.tsv. Repeatable.",
        None,
    )
    test_search: list[str] | None = option(
        "Search to report on: folder in BEIR's layout, or hub:ID, as of eval --search. Repeatable.", None
    )
    judged: str | None = _judged()
    keep: list[str] | None = _keep()
    teacher: str | None = option(
        "Stronger embedding model whose cosines of pairs without labels are learned too: directory, hub id, "
        f"or its vectors ({VECTOR_KINDS} of texts and embeddings).",
        None,
    )
    teacher_pairs: list[str] | None = option(
        "What the teacher scores: pairs without labels (angle-data mine), or texts, also .txt[.gz] (one per "
        "line). Repeatable.",
        None,
        shown="pairs drawn among the texts of --data and --human",
    )
    guard: list[str] | None = option(
        "Labelled pairs of other text that must not get worse. Repeatable.",
        None,
        shown="general text and your own texts, which need no labels, in any case",
    )
    guard_loss: float | None = _of_recipe("Points (Spearman x 100) that a guard may lose.")
    scale: str | None = _scale()
    threshold: float | None = option(
        "For a question of yes and no: scores of --data above it, on their own scale, become label 1, below "
        "it 0, and pairs at it are left out. --human, --dev and --test keep their scores.",
        None,
        shown="scores are ranked",
    )
    epochs: float | None = _of_recipe("Passes over the data.")
    batch_size: int | None = _of_recipe("Pairs per step, across all processes.")
    learning_rate: float | None = _of_recipe("Peak learning rate.")
    max_seq_length: Any = option(
        "Maximum tokens per text, at least 2, or auto to choose from the data.",
        None,
        shown="recipe's or checkpoint's",
        read=_toml,
    )
    precision: str | None = _of_recipe("auto, fp32, bf16 or fp16.")
    seed: int | None = _of_recipe("Random seed.")
    roles: bool = option(
        "text1 is a query, text2 a document: read each with the prompt that the model has for it.",
        False,
        shown="recipe's",
    )
    query_prompt: str | None = _query_prompt()
    document_prompt: str | None = _document_prompt()
    merge_back: Any = _of_recipe("Share of the backbone in the final weights, below 1.", read=_toml)
    setting: list[str] | None = _setting()
    drop_leaks: bool = _drop_leaks()
    require_better: bool = option("Exit 1 unless the tuned model is shown to be better.", False)
    report_to: str | None = option(
        "Comma-separated trackers that transformers supports, such as tensorboard, wandb or trackio.",
        None,
        shown="none",
    )
    device: str | None = _device()
    overwrite: bool = option(
        "Replace an earlier model in --out once this run is done; resumes if interrupted.", False
    )
    push_to_hub: str | None = option(
        "Repository on the hub, NAME/MODEL, for a tuned model and its card; a new one is private.",
        None,
        shown="none",
    )


@dataclass(frozen=True)
class EvalOptions:
    """Those of `eval`."""

    model: list[str] = option(
        f"Model to measure: directory, hub id, or its vectors ({VECTOR_KINDS} of texts and embeddings). "
        "Repeatable."
    )
    pairs: list[str] | None = option(f"Scored pairs: {TABLE_KINDS}, or hub:ID. Repeatable.", None)
    judged: str | None = _judged()
    search: list[str] | None = option(
        "Search to measure on: folder in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv), or "
        "hub:ID. Repeatable.",
        None,
    )
    corpus: str | None = option("Documents to search, _id, title, text; with --queries and --qrels.", None)
    queries: str | None = option("Queries: _id, text.", None)
    qrels: str | None = option("Grades, .tsv: query-id, corpus-id, score; above 0 is relevant.", None)
    task: list[str] | None = option(
        "Task or group to measure on, such as stsb, sick-r or sts (all seven sets). Repeatable. An unknown "
        "name lists them all.",
        None,
    )
    data_dir: Path | None = option(
        "Folder with the task data, TASK/SPLIT.jsonl.gz.", None, shown="from the hub"
    )
    roles: bool = option(
        "In --pairs, text1 is a query and text2 a document: read each with the prompt that the model has for "
        "it. Always so in a search.",
        False,
    )
    query_prompt: str | None = _query_prompt()
    document_prompt: str | None = _document_prompt()
    baseline: str | None = option("Model, or its vectors, to compare the others against.", None)
    split: str | None = option(
        "Rows of a file with a split column (default: all), or split of a dataset or qrels (default: test).",
        None,
    )
    scale: str | None = _scale()
    report: Path | None = option("Also write the result as an HTML page, FILE.html.", None)
    device: str | None = _device()


@dataclass(frozen=True, slots=True)
class EncodeConfig:
    """What to embed, with what, and how: the options of `encode`."""

    model: str = option("Model to embed with: directory or hub id.")
    texts: Path = option(f"Texts: {TABLE_KINDS}, or .txt[.gz] (one per line).")
    out: Path = option(
        "Output file: .npy (one array, rows as in --texts) or .parquet (id, text, embedding). Only the "
        ".parquet stands for a model in eval and fit --teacher as it is."
    )
    as_: Literal["query", "document"] | None = option(
        "Embed the texts as query or document: with the model's prompt and route for these.",
        None,
        shown="neither",
    )
    text_field: str = option("Field with the text.", "text")
    id_field: str | None = option("Field with the id.", None, shown="id, if there is one")
    batch_size: int = option("Texts per forward pass.", 32, ge=1)
    normalize: bool = option("Scale every embedding to length 1.", False)
    max_seq_length: int | None = option("Maximum tokens per text, at least 2.", None, shown="model's", ge=2)
    device: str | None = _device()

    def __post_init__(self) -> None:
        check_values(self)
