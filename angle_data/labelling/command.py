"""The commands `angle-data llm-label`, `llm-score` and `mine`: options in, one call, a short table out.

The options of the first two are made from the fields of their configs, so that both agree in names, help and
defaults. Imports nothing heavy.
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
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.tables import TABLE_KINDS

if TYPE_CHECKING:
    from angle_data.labelling.asking.forecast import SessionPlan
    from angle_data.labelling.asking.session import SessionResult
    from angle_data.labelling.pilot import PilotResult

_SWITCHES = {
    "dry_run": typer.Option("--dry-run", help="Forecast requests, tokens and cost, and send nothing."),
    "quiet": typer.Option("--quiet", help="Show warnings and errors only."),
    "verbose": typer.Option("--verbose", help="Show details."),
    "as_json": typer.Option("--json", help="Print the counts as JSON."),
}

_Command = Callable[[Any, bool], Any]


def with_options(config: type, **defaults: Any) -> Callable[[_Command], Callable[..., None]]:
    """Give a command an option for each field of `EngineConfig` and of `config`, and print what it returns.

    `defaults` replace those of `EngineConfig`.
    """

    def decorate(command: _Command) -> Callable[..., None]:
        def run(**given: Any) -> None:
            dry_run, quiet, verbose, as_json = (given.pop(name) for name in _SWITCHES)
            configure_logging(quiet=quiet, verbose=verbose)
            engine = EngineConfig(**_take(EngineConfig, given))
            done = command(config(engine=engine, **_take(config, given)), dry_run)
            if as_json:
                typer.echo(json.dumps(done.counts))
            else:
                say_result(_text(done))

        model, *engine = _parameters(EngineConfig, defaults)
        shown = [model, *_parameters(config, {}), *engine]
        shown += [_parameter(name, bool, False, look) for name, look in _SWITCHES.items()]
        run.__doc__ = command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return run

    return decorate


def _options(config: type) -> list[tuple[str, Any, Option]]:
    """Return the name, the default and the look of each field that is an option."""
    return [(f.name, f.default, f.metadata["option"]) for f in fields(config) if "option" in f.metadata]


def _parameters(config: type, defaults: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameter of each field that is an option, as typer wants it."""
    types = get_type_hints(config)
    for name, default, option in _options(config):
        kind, default = types[name], defaults.get(name, default)
        if option.read is not None:
            kind = list[str] | None if option.many else str | None
            default = None if option.many or default is None else str(default)
        flag = (f"--{name.replace('_', '-')}",) if kind is bool else ()  # without a --no-...
        look: Any = typer.Option(
            *flag, help=option.help, metavar=option.metavar, show_default=option.shown or True
        )
        if option.argument:
            look = typer.Argument(help=option.help, metavar=option.metavar, show_default=False)
        yield _parameter(option.flag or name, kind, default, look)


def _parameter(name: str, kind: Any, default: Any, look: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    annotation = Annotated[kind, look]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _take(config: type, given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `config` out of those that were given, and return the values of its fields.

    Raises:
        InputError: A value cannot be read.
    """
    values = {}
    for name, _, option in _options(config):
        value = given.pop(option.flag or name)
        if option.read is None:
            values[name] = value
        elif value is not None:
            values[name] = option.read(value)
    return values


@with_options(LabelConfig)
def llm_label(config: LabelConfig, dry_run: bool) -> SessionPlan | SessionResult | PilotResult:
    """Let a language model write synonymous and opposite sentences for every text, or one for each degree.

    `--prompts degrees` asks for a sentence at each degree of similarity, 5 (same meaning) to 1 (same topic).
    Replies are journalled as they come: nothing is asked, or paid for, twice. Exit codes: 0 all answered, but
    for texts that were set aside: those that a server refuses or gives no reply to while it answers others;
    1 an error to be mended, every request failed, or no reply is of use; 75 a limit was reached, batches are
    still worked on, the server went away, or some requests failed: the same command goes on; 130 interrupted
    (Ctrl-C, SIGTERM, SIGHUP). What was answered is written in every case.

    Example: angle-data llm-label --model chatgpt --prompts structured --texts notes.jsonl --out runs/chatgpt
    --max-usd 5
    """
    from angle_data.labelling.label import label, plan_label
    from angle_data.labelling.pilot import pilot

    if dry_run:
        return plan_label(config)
    return label(config) if config.pilot is None else pilot(config)


@with_options(ScoreConfig, temperature=0.0, max_tokens=1024)
def llm_score(config: ScoreConfig, dry_run: bool) -> SessionPlan | SessionResult:
    """Let a language model grade pairs from 0 (unrelated) to 5 (same meaning).

    Pairs are the candidates of run folders, and rows of files (--pairs). Each distinct pair is graded once,
    whatever its order and wherever it stands; one without a grade is asked again alone, then the other way
    round, and is then set aside in rejected.jsonl. The grades make graded labels and cross-checks:
    `angle-data ensemble --scores RUN`. Replies are journalled as they come: nothing is asked, or paid for,
    twice. Exit codes as for llm-label.

    Example: angle-data llm-score runs/llama runs/chatglm --pairs mined.jsonl --model chatgpt --out
    runs/graded --pairs-per-call 10
    """
    from angle_data.labelling.score import plan_score, score

    return plan_score(config) if dry_run else score(config)


def _text(done: SessionPlan | SessionResult | PilotResult) -> str:
    """Show what a command returned to people."""
    from angle_data.labelling.asking.forecast import SessionPlan
    from angle_data.labelling.asking.session import SessionResult

    if isinstance(done, SessionPlan):
        return _plan_text(done)
    return _result_text(done) if isinstance(done, SessionResult) else str(done)


def mine(
    texts: Annotated[Path, typer.Option(help=f"Texts: {TABLE_KINDS}, or .txt[.gz] (one a line).")],
    out: Annotated[Path, typer.Option(help="File of pairs, .jsonl, for `llm-score --pairs`.")],
    n: Annotated[
        int | None, typer.Option("--n", help="Pairs to draw.", show_default="2000, or all there are")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is drawn.")] = 0,
    text_field: Annotated[str, typer.Option(help="Field or column of the text.")] = "text",
    embeddings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy",
            help="Find neighbours by these embeddings of the same file, made by `angle-train encode --texts "
            "TEXTS --out FILE.npy`.",
            show_default="shared words",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Draw pairs among the texts themselves, from near to unrelated, to be graded by llm-score.

    What people will ask of a model is between their own texts. Each pair has a kind that says how it was
    drawn: near, between or random. The same texts and options give the same file.

    Example: angle-data mine --texts notes.jsonl --out mined.jsonl --n 2000
    """
    configure_logging(quiet=quiet)
    from angle_data.labelling.mine import MineConfig, summary
    from angle_data.labelling.mine import mine as draw

    result = draw(MineConfig(texts, out, n, seed, text_field, embeddings))
    if as_json:
        typer.echo(json.dumps(asdict(result), default=str))
    else:
        say_result(summary(result))


def _plan_text(plan: SessionPlan) -> str:
    about = {"model", "counted_by", "paid", "usd", "spent_usd"}
    lines = [_table({name: count for name, count in plan.counts.items() if name not in about})]
    if plan.usd is not None:
        spent = f" ({plan.spent_usd:.4f} USD spent so far)" if plan.spent_usd else ""
        lines.append(f"about {plan.usd:.4f} USD{spent}")
    elif plan.paid:
        lines.append(f"cost unknown: no price is listed for {plan.model}; give --price IN,OUT")
    return "\n".join([*lines, f"source of the token counts: {plan.counted_by}"])


def _result_text(result: SessionResult) -> str:
    """Show what a session did, without needless zeros."""
    counts = dict(result.counts)
    failed, rejected, degrees = counts.pop("failed"), counts.pop("rejected"), dict(counts.pop("degrees", {}))
    always = ("requests", "asked", "kept")
    shown = {name: count for name, count in counts.items() if count or name in always}
    shown |= {f"failed: {kind}": count for kind, count in failed.items()}
    shown |= {f"rejected: {reason}": count for reason, count in rejected.items()}
    told = f"{_degrees_text(degrees)}\n" if degrees else ""
    return f"{_table(shown)}\n{told}{result.model} -> {result.run}"


def _degrees_text(degrees: dict[str, Any]) -> str:
    """Show the sentences of each degree, and how many words they share with their texts."""
    share = degrees.pop("higher_shares_more")
    lines = [
        f"degree {name}: {row['kept']:,} kept, word overlap {row['overlap']:.2f}"
        for name, row in degrees.items()
        if row["kept"]
    ]
    if share is not None:
        lines.append(f"a 5 or 4 shares more words than a 3 or 2: {share:.0%} (50% tells nothing)")
    return "\n".join(lines)


def _table(rows: dict[str, int]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name.replace('_', ' '):<{width}} {count:>9,}" for name, count in rows.items())
