"""The `angle-data` program: every command reads its options, calls one function and prints the result.

angle-data llm-label --model chatgpt --texts notes.jsonl --out runs/chatgpt
angle-data ensemble runs/chatgpt runs/llama --out pairs
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from angle_data.console import configure_logging, run_app
from angle_data.ensemble.command import ensemble

if TYPE_CHECKING:
    from angle_data.labelling.run import LabelPlan, LabelSummary

__all__ = ["app", "llm_label", "main"]

app = typer.Typer(
    name="angle-data",
    help="Texts in, labelled sentence pairs out.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _program() -> None:
    """Texts in, labelled sentence pairs out."""


@app.command("llm-label")
def llm_label(
    model: Annotated[str, typer.Option(help="chatgpt, llama, chatglm, or another name (see --base-url).")],
    texts: Annotated[Path, typer.Option(help="Texts: .jsonl[.gz], .csv, .parquet or .txt (one a line).")],
    out: Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")],
    size: Annotated[int, typer.Option(help="Sentences to ask for, per text and polarity.")] = 2,
    polarity: Annotated[str, typer.Option(help="both, synonym or antonym.")] = "both",
    engine: Annotated[str, typer.Option(help="auto, server or recorded.")] = "auto",
    checkpoint: Annotated[
        str | None, typer.Option(help="Model as the server knows it.", show_default="the model's own")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server, such as http://localhost:8000/v1.")
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(help="Variable that holds the API key.", show_default="OPENAI_API_KEY for chatgpt"),
    ] = None,
    replies: Annotated[Path | None, typer.Option(help="Recorded replies, for --engine recorded.")] = None,
    prompts: Annotated[str, typer.Option(help="paper, structured, or a folder of prompts.")] = "paper",
    text_field: Annotated[str, typer.Option(help="Field or column of the text.")] = "text",
    id_field: Annotated[str, typer.Option(help="Field or column of the id, if there is one.")] = "id",
    limit: Annotated[int | None, typer.Option(help="Use only the first texts.")] = None,
    temperature: Annotated[float, typer.Option(help="Sampling temperature, 0 to 2.")] = 0.7,
    seed: Annotated[int | None, typer.Option(help="Sampling seed, if the server takes one.")] = None,
    max_tokens: Annotated[int, typer.Option(help="Longest reply in tokens.")] = 512,
    concurrency: Annotated[int, typer.Option(help="Requests in flight.")] = 64,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the requests and send none.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show details.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Let a language model write synonymous and opposite sentences for every text.

    Replies are journalled as they come: nothing is asked, or paid for, twice.

    Example: angle-data llm-label --model chatgpt --texts notes.jsonl --out runs/chatgpt
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.labelling.requests import LabelConfig
    from angle_data.labelling.run import label, plan_label

    config = LabelConfig(
        model=model,
        texts=texts,
        out=out,
        size=size,
        polarity=polarity,
        engine=engine,
        checkpoint=checkpoint,
        base_url=base_url,
        api_key_env=api_key_env,
        replies=replies,
        prompts=prompts,
        text_field=text_field,
        id_field=id_field,
        limit=limit,
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
        concurrency=concurrency,
    )
    if dry_run:
        plan = plan_label(config)
        typer.echo(json.dumps(_plan_counts(plan)) if as_json else _plan_table(plan))
    else:
        summary = label(config)
        typer.echo(json.dumps(summary.counts) if as_json else _summary_table(summary))


app.command("ensemble")(ensemble)


def main() -> None:
    """Run the program."""
    run_app(app, "angle-data")


def _plan_counts(plan: LabelPlan) -> dict[str, int]:
    return {**asdict(plan), "to_ask": plan.to_ask}


def _plan_table(plan: LabelPlan) -> str:
    return _table(_plan_counts(plan))


def _summary_table(summary: LabelSummary) -> str:
    counts = dict(summary.counts)
    failed, rejected = counts.pop("failed"), counts.pop("rejected")
    shown = {name: count for name, count in counts.items() if count or name in ("requests", "asked", "kept")}
    shown |= {f"failed: {kind}": count for kind, count in failed.items()}
    shown |= {f"rejected: {reason}": count for reason, count in rejected.items()}
    return f"{_table(shown)}\n{summary.model} -> {summary.out}"


def _table(rows: dict[str, Any]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name.replace('_', ' '):<{width}} {count:>9,}" for name, count in rows.items())
