"""The `angle-data llm-label` command: options in, one call, a short table out.

Holds no logic of its own and imports nothing heavy.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from angle_data.console import configure_logging
from angle_data.labelling import options as opt

if TYPE_CHECKING:
    from angle_data.labelling.forecast import SessionPlan
    from angle_data.labelling.session import SessionResult


def llm_label(
    model: opt.Model,
    texts: Annotated[
        Path, typer.Option(help="Texts: .jsonl[.gz], .csv[.gz], .parquet or .txt (one a line).")
    ],
    out: Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")],
    size: Annotated[int, typer.Option(help="Sentences to ask for, per text and polarity.")] = 2,
    polarity: Annotated[str, typer.Option(help="both, synonym or antonym.")] = "both",
    prompts: Annotated[str, typer.Option(help="paper, structured, or a folder of prompts.")] = "paper",
    text_field: Annotated[str, typer.Option(help="Field or column of the text.")] = "text",
    id_field: Annotated[str, typer.Option(help="Field or column of the id, if there is one.")] = "id",
    limit: Annotated[int | None, typer.Option(help="Use only the first texts.")] = None,
    shard: opt.Shard = None,
    retry_rejected: Annotated[
        bool,
        typer.Option(
            "--retry-rejected",
            help="Ask once more where a reply gave no sentence at all, or the server refused the request.",
        ),
    ] = False,
    engine: opt.Engine = "auto",
    checkpoint: opt.Checkpoint = None,
    revision: opt.Revision = None,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.ApiKeyEnv = None,
    replies: opt.Replies = None,
    engine_option: opt.EngineOption = None,
    concurrency: opt.Concurrency = 64,
    requests_per_minute: opt.RequestsPerMinute = None,
    tokens_per_minute: opt.TokensPerMinute = None,
    max_usd: opt.MaxUsd = None,
    max_tokens_total: opt.MaxTokensTotal = None,
    usd_per_million: opt.UsdPerMillion = None,
    temperature: opt.Temperature = 0.7,
    seed: opt.Seed = None,
    max_tokens: opt.MaxTokens = 512,
    dry_run: opt.DryRun = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    as_json: opt.Json = False,
) -> None:
    """Let a language model write synonymous and opposite sentences for every text.

    Replies are journalled as they come: nothing is asked, or paid for, twice. Exit codes: 0 all answered, or
    refused for good by a server that answers others; 1 an error to be mended, every request failed, or no
    reply is of use; 75 a limit was reached, batches are still worked on, the server went away, or some
    requests failed: the same command goes on; 130 interrupted (Ctrl-C, SIGTERM). What was answered is written
    in every case.

    Example: angle-data llm-label --model chatgpt --texts notes.jsonl --out runs/chatgpt --max-usd 5
    """
    given = locals()
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.labelling.requests import LabelConfig
    from angle_data.labelling.run import label, plan_label

    config = LabelConfig(
        engine=opt.engine_config(given),
        texts=texts,
        out=out,
        size=size,
        polarity=polarity,
        prompts=prompts,
        text_field=text_field,
        id_field=id_field,
        limit=limit,
        retry_rejected=retry_rejected,
    )
    if dry_run:
        plan = plan_label(config)
        passed_over = {"blank": plan.blank, "repeated": plan.repeated}
        counts = {**plan_counts(plan.session), **passed_over}
        typer.echo(json.dumps(counts) if as_json else plan_table(counts))
    else:
        result = label(config)
        typer.echo(json.dumps(result.counts) if as_json else result_table(result))


def plan_counts(plan: SessionPlan) -> dict[str, Any]:
    """Return a forecast as plain values by name."""
    return {**asdict(plan), "to_ask": plan.to_ask}


def plan_table(counts: dict[str, Any]) -> str:
    """Return a forecast as a table for people."""
    counts = dict(counts)
    source, paid = counts.pop("counted_by"), counts.pop("paid")
    money = {name: counts.pop(name) for name in ("usd", "spent_usd")}
    lines = [_table(counts)]
    if money["usd"] is not None:
        spent = f" ({money['spent_usd']:.4f} USD spent so far)" if money["spent_usd"] else ""
        lines.append(f"about {money['usd']:.4f} USD{spent}")
    elif paid:
        lines.append("cost unknown: give --usd-per-million IN,OUT")
    return "\n".join([*lines, f"source of the token counts: {source}"])


def result_table(result: SessionResult) -> str:
    """Return what a session did as a table for people; counts of zero are left out, but for the main ones."""
    counts = dict(result.counts)
    failed, rejected = counts.pop("failed"), counts.pop("rejected")
    shown = {name: count for name, count in counts.items() if count or name in ("requests", "asked", "kept")}
    shown |= {f"failed: {kind}": count for kind, count in failed.items()}
    shown |= {f"rejected: {reason}": count for reason, count in rejected.items()}
    return f"{_table(shown)}\n{result.model} -> {result.run}"


def _table(rows: dict[str, int]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name.replace('_', ' '):<{width}} {count:>9,}" for name, count in rows.items())
