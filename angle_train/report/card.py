"""The model's card: README.md as the hub shows it, the conclusion first; `card.md` has the words."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from angle_data.jsonl import write_text
from angle_train.evaluation.compare import SPEARMAN
from angle_train.model.roles import tokens_read
from angle_train.report.page import render
from angle_train.report.result import DataNote, FitReport
from angle_train.report.text import results_table
from angle_train.report.verdict import BACKBONE, TUNED

_NOUNS = {"keep": "texts", "search": "queries", "dev search": "queries"}
_CARRIED = ("license", "license_name", "license_link", "language")  # from the backbone's card


_SIMILARITY: dict[str, Any] = {"task_type": "sentence-similarity", "task_name": "Semantic similarity"}
_SEARCH: dict[str, Any] = {"task_type": "information-retrieval", "task_name": "Information retrieval"}


def write_card(path: Path, report: FitReport, model: SentenceTransformer) -> None:
    """Write the card of a saved model, atomically. It names no place on this machine and quotes no text."""
    base = report.data[0].name.split("/")[0] if report.base == "model" else report.base
    name = re.sub(r"[^\w.-]+", "-", f"{base}-tuned" if report.kept == TUNED else report.base)
    text = render(
        "card.md",
        metadata=_metadata(name, report, getattr(model, "_model_card_text", None)),
        name=name,
        report=report,
        table=results_table(report.results),
        lines=[*report.verdict.lines[1:], *report.verdict.evidence, *report.notes],
        facts=_facts(report, model),
    )
    write_text(path, text + "\n")


def _facts(report: FitReport, model: SentenceTransformer) -> list[str]:
    what = "tuned from" if report.kept == TUNED else "the untouched weights of"
    found = [
        f"A Sentence Transformers model, {what} {report.details.get('base_model') or report.base}.",
        f"Embeddings of width {model.get_embedding_dimension()}, to be compared by their cosine; "
        f"{tokens_read(model)} tokens of a text are read.",
    ]
    roles = {"train": "Training data", "human": "Human-graded training data",
             "teacher": "Scored by a teacher, without labels",
             "keep": "Unlabelled texts that stay as the backbone has them", "dev": "Chosen on",
             "test": "Tested on", "judged": "Graded by a language model, to test on too",
             "judged dev": "Graded by a language model, to choose by too",
             "search": "Tested on the search", "dev search": "Chosen on the search",
             "guard": "Guarded by"}  # fmt: skip
    if report.kept == TUNED and (trained := _objective(report)):
        found.append(trained)
    return found + [f"{roles[note.role]}: {note.name}, {_counted(note)}." for note in report.data]


def _counted(note: DataNote) -> str:
    return f"{note.pairs:,} {_NOUNS.get(note.role, 'pairs')}"


def _objective(report: FitReport) -> str:
    """Return which terms trained, with weights and temperatures; nothing where the report does not say."""
    objective = report.recipe.get("objective", {})
    terms = [
        f"{said} (weight {weight:g}, temperature {objective[f'{term}_tau']:g})"
        for term, said in (("cosine", "cosine"), ("in_batch", "in-batch"), ("angle", "angle"))
        if (weight := objective.get(f"{term}_weight"))
    ]
    if not terms:
        return ""
    source = "[AoE: Angle-optimized Embeddings](https://aclanthology.org/2024.acl-long.101)"
    named = terms[0] if len(terms) == 1 else f"{', '.join(terms[:-1])} and {terms[-1]}"
    return f"Trained with the {'terms' if len(terms) > 1 else 'term'} {named} of {source}."


def _metadata(name: str, report: FitReport, backbone_card: str | None) -> str:
    """Return the card's metadata as YAML: base model, data sets of the hub, the figures on the test sets."""
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    carried: dict[str, Any] = {}
    with suppress(Exception):  # a card of somebody else's may hold anything
        known: Any = ModelCard(backbone_card, ignore_metadata_errors=True).data if backbone_card else {}
        carried = {key: value for key in _CARRIED if (value := known.get(key))}
    words = shlex.split(report.details.get("command", ""))
    trained_on = [
        word.removeprefix("hub:")
        for option, word in pairwise(words)
        if option in ("--data", "--human") and word.startswith("hub:")
    ]
    saved = BACKBONE if report.kept == BACKBONE else TUNED
    tested = [
        EvalResult(
            **(_SIMILARITY if result.metric == SPEARMAN else _SEARCH),
            dataset_type=result.pairs,  # results of one type are taken for one set
            dataset_name=result.pairs,
            metric_type="spearman_cosine" if result.metric == SPEARMAN else f"cosine_{result.metric}",
            metric_name="Spearman of cosines" if result.metric == SPEARMAN else result.metric,
            metric_value=round(result.score.value, 4),
        )
        for result in report.results
        if result.model == saved and result.role == "test"
    ]
    data = ModelCardData(
        model_name=name,
        base_model=report.details.get("base_model"),
        datasets=trained_on or None,
        eval_results=tested or None,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "feature-extraction"],
        **carried,
    )
    return data.to_yaml().strip()
