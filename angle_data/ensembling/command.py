"""The `angle-data ensemble` command: a config in, one call, a short table out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from angle_data.calling.options import with_options
from angle_data.ensembling.config import EnsembleConfig

if TYPE_CHECKING:
    from angle_data.ensembling.report import EnsembleSummary


@with_options(EnsembleConfig)
def ensemble(config: EnsembleConfig) -> tuple[dict[str, Any], str]:
    """Merge the annotators' candidates into one labelled data set.

    Every candidate is kept or listed in rejected.jsonl with a reason. The same runs, options and seed give
    the same files.

    Example: angle-data ensemble runs/chatgpt runs/llama --out pairs --purpose opposites

    With grades: angle-data ensemble runs/chatgpt runs/llama --pairs mined.jsonl --scores runs/grades
    --out pairs
    """
    from angle_data.ensembling.build import build_ensemble

    summary = build_ensemble(config)
    return asdict(summary), _as_table(summary)


def _as_table(summary: EnsembleSummary) -> str:
    total = sum(summary.dropped.values())
    rows = [
        ("candidates", f"{summary.candidates} = {summary.kept} kept + {total} dropped"),
        ("dropped", _counts(summary.dropped) or "none"),
    ]
    if summary.near_copies:
        copies = "antonyms that differ from their text in a word or two, as --prompts contrast asks"
        rows.append(("near copies", f"{summary.near_copies} {copies}"))
    if summary.flipped:
        rows.append(("flipped", f"{summary.flipped} of those kept: now with the other polarity"))
    for name, counts in summary.annotators.items():
        lost = f", dropped {_counts(counts['dropped'])}" if counts["dropped"] else ""
        rows.append((name, f"{counts['candidates']} candidates, in {counts['supports']} pairs{lost}"))
    if summary.given:
        rows.append(("given", f"{sum(summary.given.values())} pairs: {_counts(summary.given)}"))
    if graded := summary.graded:
        share = f"{graded['graded_pairs']} of {graded['candidate_pairs']} candidate pairs"
        rows.append(("graded", f"{share}, by {', '.join(graded['graders'])}"))
    for name, pairs in summary.pairs.items():
        rows.append((name, f"{sum(pairs.values())} pairs: {_counts(pairs)}"))
    rows.append(("data set", str(summary.dataset)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
