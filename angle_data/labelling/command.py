"""The commands `angle-data llm-label` and `angle-data llm-score`: options in, one call, a short table out.

The options of the asking are made from the fields of `EngineConfig`, so that both commands agree in names,
help and defaults. Imports nothing heavy.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from angle_data.annotators.spec import EngineConfig, Option
from angle_data.console import configure_logging, say_result

if TYPE_CHECKING:
    from angle_data.labelling.forecast import SessionPlan
    from angle_data.labelling.session import SessionResult

Out = Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Forecast requests, tokens and cost, and send nothing.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show details.")]
Json = Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")]


def with_engine_options(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of `EngineConfig`, in place of its parameter `engine`.

    `--model` comes first. `defaults` replace those of the fields.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            engine = _engine_config(given)
            command(engine=engine, **given)

        hints = get_type_hints(command, include_extras=True)
        model, *others = _engine_parameters(defaults)
        shown = [model]
        for name, parameter in inspect.signature(command).parameters.items():
            if name == "engine":
                shown += others
            else:
                shown.append(parameter.replace(annotation=hints[name]))
        run.__doc__ = command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return run

    return decorate


def _engine_parameters(defaults: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameter of each field of `EngineConfig`, as typer wants it."""
    types = get_type_hints(EngineConfig)
    for field in fields(EngineConfig):
        option: Option = field.metadata["option"]
        kind, default = types[field.name], defaults.get(field.name, field.default)
        if option.read is not None:
            kind, default = (list[str] | None if option.many else str | None), None
        look = typer.Option(help=option.help, metavar=option.metavar, show_default=option.shown or True)
        yield inspect.Parameter(
            option.flag or field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=Annotated[kind, look],
        )


def _engine_config(given: dict[str, Any]) -> EngineConfig:
    """Take the options of the asking out of those that were given, and return what they mean.

    Raises:
        InputError: A value cannot be read or is out of its range.
    """
    values = {}
    for field in fields(EngineConfig):
        option: Option = field.metadata["option"]
        value = given.pop(option.flag or field.name)
        if option.read is None:
            values[field.name] = value
        elif value is not None:
            values[field.name] = option.read(value)
    return EngineConfig(**values)


@with_engine_options()
def llm_label(
    *,
    texts: Annotated[
        Path, typer.Option(help="Texts: .jsonl[.gz], .csv[.gz], .parquet or .txt (one a line).")
    ],
    out: Out,
    size: Annotated[int, typer.Option(help="Sentences to ask for, per text and polarity.")] = 2,
    polarity: Annotated[str, typer.Option(help="both, synonym or antonym.")] = "both",
    prompts: Annotated[str, typer.Option(help="paper, structured, or a folder of prompts.")] = "paper",
    text_field: Annotated[str, typer.Option(help="Field or column of the text.")] = "text",
    id_field: Annotated[str, typer.Option(help="Field or column of the id, if there is one.")] = "id",
    limit: Annotated[int | None, typer.Option(help="Use only the first texts.")] = None,
    retry_rejected: Annotated[
        bool,
        typer.Option(
            "--retry-rejected",
            help="Ask once more where a reply gave no sentence at all, or the server refused the request.",
        ),
    ] = False,
    engine: EngineConfig,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Let a language model write synonymous and opposite sentences for every text.

    Replies are journalled as they come: nothing is asked, or paid for, twice. Exit codes: 0 all answered, or
    refused for good by a server that answers others; 1 an error to be mended, every request failed, or no
    reply is of use; 75 a limit was reached, batches are still worked on, the server went away, or some
    requests failed: the same command goes on; 130 interrupted (Ctrl-C, SIGTERM). What was answered is written
    in every case.

    Example: angle-data llm-label --model chatgpt --texts notes.jsonl --out runs/chatgpt --max-usd 5
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.labelling.label import LabelConfig, label, plan_label

    config = LabelConfig(
        engine=engine,
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
        _print_plan(plan_label(config), as_json=as_json, quiet=quiet)
    else:
        _print_result(label(config), as_json=as_json, quiet=quiet)


@with_engine_options(temperature=0.0, max_tokens=1024)
def llm_score(
    *,
    pairs: Annotated[
        Path,
        typer.Option(
            help="Pairs: .jsonl[.gz], .csv[.gz] or .parquet with text1 and text2, sentence1 and sentence2, "
            "or source and text (candidates.jsonl)."
        ),
    ],
    out: Out,
    pairs_per_call: Annotated[int, typer.Option(help="Most pairs in one request.")] = 1,
    both_orders: Annotated[
        bool, typer.Option("--both-orders", help="Grade every pair in both orders; the mean counts.")
    ] = False,
    prompt: Annotated[
        Path | None, typer.Option(help="Prompt file with {pairs}.", show_default="the toolkit's own")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Use only the first pairs.")] = None,
    retry_rejected: Annotated[
        bool, typer.Option("--retry-rejected", help="Ask once more what the server refused.")
    ] = False,
    engine: EngineConfig,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Let a language model grade pairs from 0 (unrelated) to 5 (same meaning).

    The grades make graded labels and cross-checks: `angle-data ensemble --scores RUN`. Replies are journalled
    as they come: nothing is asked, or paid for, twice. Exit codes as for llm-label.

    Example: angle-data llm-score --model chatgpt --pairs runs/llama/candidates.jsonl --out runs/graded
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.labelling.score import ScoreConfig, plan_score, score

    config = ScoreConfig(
        engine=engine,
        pairs=pairs,
        out=out,
        pairs_per_call=pairs_per_call,
        both_orders=both_orders,
        prompt=prompt,
        limit=limit,
        retry_rejected=retry_rejected,
    )
    if dry_run:
        _print_plan(plan_score(config), as_json=as_json, quiet=quiet)
    else:
        _print_result(score(config), as_json=as_json, quiet=quiet)


def _print_plan(plan: SessionPlan, *, as_json: bool, quiet: bool) -> None:
    """Print a forecast as JSON, as a table, or not at all."""
    counts = {**asdict(plan), "to_ask": plan.to_ask}
    counts |= counts.pop("passed_over")
    if as_json:
        typer.echo(json.dumps(counts))
    elif not quiet:
        about = {"counted_by", "paid", "usd", "spent_usd"}
        say_result(_table({name: count for name, count in counts.items() if name not in about}))
        if plan.usd is not None:
            spent = f" ({plan.spent_usd:.4f} USD spent so far)" if plan.spent_usd else ""
            say_result(f"about {plan.usd:.4f} USD{spent}")
        elif plan.paid:
            say_result("cost unknown: give --usd-per-million IN,OUT")
        say_result(f"source of the token counts: {plan.counted_by}")


def _print_result(result: SessionResult, *, as_json: bool, quiet: bool) -> None:
    """Print what a session did as JSON, as a table without needless zeros, or not at all."""
    if as_json:
        typer.echo(json.dumps(result.counts))
    elif not quiet:
        counts = dict(result.counts)
        failed, rejected = counts.pop("failed"), counts.pop("rejected")
        always = ("requests", "asked", "kept")
        shown = {name: count for name, count in counts.items() if count or name in always}
        shown |= {f"failed: {kind}": count for kind, count in failed.items()}
        shown |= {f"rejected: {reason}": count for reason, count in rejected.items()}
        say_result(f"{_table(shown)}\n{result.model} -> {result.run}")


def _table(rows: dict[str, int]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name.replace('_', ' '):<{width}} {count:>9,}" for name, count in rows.items())
