"""The `angle-data llm-score` command: options in, one call, a short table out.

Holds no logic of its own and imports nothing heavy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_data.labelling import options as opt
from angle_data.labelling.command import plan_counts, plan_table, result_table


def llm_score(
    model: opt.Model,
    pairs: Annotated[
        Path,
        typer.Option(
            help="Pairs: .jsonl[.gz], .csv[.gz] or .parquet with text1 and text2, sentence1 and sentence2, "
            "or source and text (candidates.jsonl)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")],
    pairs_per_call: Annotated[int, typer.Option(help="Most pairs in one request.")] = 1,
    both_orders: Annotated[
        bool, typer.Option("--both-orders", help="Grade every pair in both orders; the mean counts.")
    ] = False,
    prompt: Annotated[
        Path | None, typer.Option(help="Prompt file with {pairs}.", show_default="the toolkit's own")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Use only the first pairs.")] = None,
    shard: opt.Shard = None,
    retry_rejected: Annotated[
        bool, typer.Option("--retry-rejected", help="Ask once more what the server refused.")
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
    temperature: opt.Temperature = 0.0,
    seed: opt.Seed = None,
    max_tokens: opt.MaxTokens = 1024,
    dry_run: opt.DryRun = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    as_json: opt.Json = False,
) -> None:
    """Let a language model grade pairs from 0 (unrelated) to 5 (same meaning).

    The grades make graded labels and cross-checks: `angle-data ensemble --scores RUN`. Replies are journalled
    as they come: nothing is asked, or paid for, twice. Exit codes as for llm-label.

    Example: angle-data llm-score --model chatgpt --pairs runs/llama/candidates.jsonl --out runs/graded
    """
    given = locals()
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.labelling.score import ScoreConfig, plan_score, score

    config = ScoreConfig(
        engine=opt.engine_config(given),
        pairs=pairs,
        out=out,
        pairs_per_call=pairs_per_call,
        both_orders=both_orders,
        prompt=prompt,
        limit=limit,
        retry_rejected=retry_rejected,
    )
    if dry_run:
        counts = plan_counts(plan_score(config))
        typer.echo(json.dumps(counts) if as_json else plan_table(counts))
    else:
        result = score(config)
        typer.echo(json.dumps(result.counts) if as_json else result_table(result))
