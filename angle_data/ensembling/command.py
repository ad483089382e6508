"""The `angle-data ensemble` command: options in, one call, a short table out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from angle_data.console import configure_logging, say_result
from angle_data.ensembling.labels import ANTONYM_SCORE

if TYPE_CHECKING:
    from angle_data.ensembling.report import EnsembleSummary


def ensemble(
    out: Annotated[Path, typer.Option(help="Folder for dataset/, rejected.jsonl and report.json.")],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Folders written by llm-label.", show_default=False),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="concat: all that pass the gate. vote: annotators check each other. principled: annotators "
            "and grades are weighed, swapped polarities found.",
            show_default="principled with grades, else vote",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="binary: 1 or 0. ordinal: as asked for, antonyms between random pairs and synonyms. graded: "
            "as asked for and graded.",
            show_default="graded with grades or degrees, else binary",
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="More pairs, mined or your own; rows as far as --scores grades them. Repeatable.",
        ),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Folder written by llm-score; may be given several times."),
    ] = None,
    antonym_score: Annotated[
        float, typer.Option(help="Score of antonyms under ordinal and graded labels, 0 to 1.")
    ] = ANTONYM_SCORE,
    random_per_source: Annotated[
        int | None, typer.Option(help="Random pairs per source text.", show_default="binary 0, others 1")
    ] = None,
    max_per_source: Annotated[
        int | None,
        typer.Option(help="Most pairs per source text and polarity or degree.", show_default="no cap"),
    ] = None,
    ratios: Annotated[
        str, typer.Option(help="Shares of train, validation and test; by source text.")
    ] = "0.9,0.1",
    seed: Annotated[int, typer.Option(help="Seed of splits, random pairs and order.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show details.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Merge the annotators' candidates into one labelled data set.

    Every candidate is kept or listed in rejected.jsonl with a reason. The same runs, options and seed give
    the same files.

    Example: angle-data ensemble runs/chatgpt runs/llama --out pairs --labels ordinal

    With grades: angle-data ensemble runs/chatgpt runs/llama --pairs mined.jsonl --scores runs/grades
    --out pairs
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.ensembling.build import EnsembleConfig, build_ensemble
    from angle_data.splits import parse_ratios

    config = EnsembleConfig(
        runs=tuple(runs or ()),
        out=out,
        strategy=strategy,
        labels=labels,
        pairs=tuple(pairs or ()),
        scores=tuple(scores or ()),
        antonym_score=antonym_score,
        random_per_source=random_per_source,
        max_per_source=max_per_source,
        ratios=parse_ratios(ratios),
        seed=seed,
    )
    summary = build_ensemble(config)
    if as_json:
        shown = {name: value for name, value in asdict(summary).items() if value or name != "given"}
        typer.echo(json.dumps(shown, ensure_ascii=False, default=str))
    else:
        say_result(_as_table(summary))


def _as_table(summary: EnsembleSummary) -> str:
    total = sum(summary.dropped.values())
    rows = [
        ("candidates", f"{summary.candidates} = {summary.kept} kept + {total} dropped"),
        ("dropped", _counts(summary.dropped) or "none"),
    ]
    if summary.near_copies:
        rows.append(
            ("near copies", f"{summary.near_copies} antonyms kept that hardly differ from their text")
        )
    if summary.flipped:
        rows.append(("flipped", f"{summary.flipped} of those kept: now with the other polarity"))
    for name, counts in summary.annotators.items():
        lost = f", dropped {_counts(counts.dropped)}" if counts.dropped else ""
        rows.append((name, f"{counts.candidates} candidates, in {counts.supports} pairs{lost}"))
    if summary.given:
        rows.append(("given", f"{sum(summary.given.values())} pairs: {_counts(summary.given)}"))
    for name, pairs in summary.pairs.items():
        rows.append((name, f"{sum(pairs.values())} pairs: {_counts(pairs)}"))
    rows.append(("data set", str(summary.dataset)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
