"""The commands `angle-data gis`, `gis explain`, `gis sample` and `gis rehydrate`: options in, a table out.

They import nothing heavy until they run.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from angle_data.console import configure_logging, say_result
from angle_data.errors import InputError

if TYPE_CHECKING:
    from angle_data.gis.build.build import GisSummary
    from angle_data.gis.crawl.crawl import CrawlSummary

Quiet = Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show more detail.")]
Json = Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")]
ApiUrl = Annotated[str, typer.Option(help="REST API URL; for GitHub Enterprise: https://HOST/api/v3.")]
TokenEnv = Annotated[str, typer.Option(help="Environment variable with the token.")]
MaxRequests = Annotated[
    int | None, typer.Option(help="Stop after this many requests; rerun the same command to resume.")
]
PUBLIC_API = "https://api.github.com"


def gis(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option(help="Output folder for crawl.sqlite, dataset/, audit/ and report.json.")
    ] = None,
    repos: Annotated[
        Path | None, typer.Option(help="File of repositories, one owner/name or GitHub URL per line.")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(help="events: marks made with GitHub's own button. comments: what people write. both."),
    ] = "both",
    api_url: ApiUrl = PUBLIC_API,
    token_env: TokenEnv = "GITHUB_TOKEN",
    since: Annotated[
        str | None,
        typer.Option(
            help="Use only issues opened on or after this day, such as 2024-01-31; the crawl skips issues "
            "not updated since."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="Use only issues opened on or before this day, whenever they were marked."),
    ] = None,
    max_requests: MaxRequests = None,
    archive: Annotated[
        list[Path] | None,
        typer.Option(
            help="Event dump (GH Archive, .json or .json.gz), or a folder of them, to read instead of the "
            "API. Repeatable."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Forecast requests and time; takes a request or two with a token."),
    ] = False,
    no_crawl: Annotated[bool, typer.Option("--no-crawl", help="Build from an earlier crawl.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed for negatives, splits and order.")] = 0,
    negatives: Annotated[float, typer.Option(help="Negative pairs per positive pair.")] = 1.0,
    split_by: Annotated[
        str,
        typer.Option(
            help="cluster, repo or time; with time, pairs that cross a split boundary are left out."
        ),
    ] = "cluster",
    ratios: Annotated[str, typer.Option(help="Shares of train, validation and test.")] = "0.86,0.07,0.07",
    max_pairs_per_cluster: Annotated[int, typer.Option(help="Maximum positive pairs per cluster.")] = 10,
    cross_repo: Annotated[
        bool, typer.Option("--cross-repo", help="Allow duplicates across two repositories.")
    ] = False,
    ids_only: Annotated[
        bool, typer.Option("--ids-only", help="Leave out the texts; gis rehydrate fetches them again.")
    ] = False,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Tokenizer for length statistics: tokenizer.json, its folder, a hub name, or estimate.",
            show_default="bert-base-uncased with the train extra, else an estimate",
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Crawl duplicate issues from GitHub and build labelled pairs from them.

    Everything fetched is kept in crawl.sqlite: a stopped crawl resumes where it stopped, and a finished one
    fetches only what changed. One token allows 5,000 requests an hour; a repository with 100,000 issues
    takes about 1,100. Without a token: 60 requests an hour, and comments only. Try --dry-run first.
    --repos, --since, --until and --strategy also select which part of an earlier, larger crawl goes into the
    data set. Exit codes: 75 stopped at a limit, 130 interrupted; rerun the same command to resume.

    Example: angle-data gis --repos recipes/gis-paper-repositories.txt --out gis
    """
    if context.invoked_subcommand is not None:
        return
    if out is None:
        raise InputError("give --out, the folder to write to")
    if dry_run and no_crawl:
        raise InputError("--dry-run forecasts the crawl and --no-crawl leaves it out; give one of them")
    if dry_run and archive:
        raise InputError("--dry-run forecasts requests, and --archive sends none; give one of them")
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.gis.build.build import BuildConfig, build_gis
    from angle_data.gis.build.report import token_counter
    from angle_data.gis.crawl.selection import Selection, read_repos
    from angle_data.splits import parse_ratios

    # All options are checked before hours of crawling, the tokenizer too.
    names = read_repos(repos, api_url, tell=no_crawl) if repos is not None else None
    selection = Selection(names, since, until, strategy)  # type: ignore[arg-type]  # checked there
    build = BuildConfig(
        out=out, seed=seed, negatives=negatives, split_by=split_by, ratios=parse_ratios(ratios),
        max_pairs_per_cluster=max_pairs_per_cluster, cross_repo=cross_repo, ids_only=ids_only,
        tokenizer=tokenizer, selection=selection,
    )  # fmt: skip
    token_counter(tokenizer, fetch=not no_crawl)
    crawled = None
    if not no_crawl:
        from angle_data.gis.crawl.crawl import CrawlConfig, crawl_repos, forecast, forecast_table

        crawl = CrawlConfig(
            repos=repos, out=out, strategy=build.selection.strategy, api_url=api_url, token_env=token_env,
            since=since, max_requests=max_requests, archives=tuple(archive or ()),
        )  # fmt: skip
        if dry_run:
            found = forecast(crawl)
            _show(found, forecast_table(found), as_json=as_json)
            return
        crawled = crawl_repos(crawl)
    summary = build_gis(build)
    _show(_counts(crawled, summary), _table(crawled, summary), as_json=as_json)


def explain(
    comments: Annotated[
        Path,
        typer.Option(help="Comments: .jsonl[.gz] lines with repo, number, author and body; - reads stdin."),
    ],
    why: Annotated[bool, typer.Option("--why", help="Add the text that each link was read from.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show the duplicate links that comments state: one JSON object per comment, in file order.

    Example: angle-data gis explain --comments comments.jsonl --why
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.gis.comments.explain import explain_comments
    from angle_data.jsonl import dumps

    source = Path("/dev/stdin") if str(comments) == "-" else comments
    row: dict[str, object] | None = None
    for row in explain_comments(source, why=why):
        sys.stdout.write(dumps(row) + "\n")
    if row is None:
        raise InputError(f"{source}: no comments; a line holds repo, number, author and body, see --help")


def sample(
    out: Annotated[
        Path | None, typer.Option(help="Folder written by `gis --out`; sample.csv is written there.")
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Number of pairs to draw.")] = 100,
    seed: Annotated[int, typer.Option(help="Random seed for the draw.")] = 0,
    verdicts: Annotated[Path | None, typer.Option(help="Filled-in CSV: compute the error rate.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write pairs to a CSV to check by hand, or compute an error rate from the verdicts in it.

    Fill in the column `verdict` with right, wrong or unclear (r, w, u): is the label right? With --verdicts
    and --out, the rate is added to the data set card.

    Example: angle-data gis sample --out gis --n 100

    Example: angle-data gis sample --verdicts gis/sample.csv --out gis
    """
    configure_logging()
    from angle_data.gis.build.card import error_table
    from angle_data.gis.sample import error_rates, put_on_card, read_verdicts, write_sample

    if verdicts is not None:
        rates = [asdict(rate) for rate in error_rates(read_verdicts(verdicts))]
        if out is not None:
            put_on_card(out, verdicts, rates)
        typer.echo(json.dumps(rates) if as_json else error_table(rates))
        return
    if out is None:
        raise InputError("give --out, the folder that `gis --out` wrote, or --verdicts, a file to count")
    target = out / "sample.csv"
    count = write_sample(out / "dataset", target, count=n, seed=seed)
    typer.echo(json.dumps({"pairs": count, "file": str(target)}) if as_json else f"{count} pairs in {target}")


def rehydrate(
    data: Annotated[Path, typer.Option(help="Folder of the data set without texts.")],
    out: Annotated[Path, typer.Option(help="A different folder, for the new dataset/.")],
    api_url: ApiUrl = PUBLIC_API,
    token_env: TokenEnv = "GITHUB_TOKEN",
    max_requests: MaxRequests = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Fetch the texts of an ids-only data set again; pairs with a deleted issue are left out and counted.

    One request fetches fifty issues with a token, one issue without.

    Example: angle-data gis rehydrate --data ids/dataset --out texts
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.gis.crawl.github import Connection
    from angle_data.gis.rehydrate import rehydrate_dataset

    found = rehydrate_dataset(data, out, Connection.from_environment(api_url, token_env, max_requests))
    left_out = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in found["dropped"].items())
    table = (
        f"pairs     {found['kept']:,} of {found['rows']:,}\nleft out  {left_out or 'none'}\n"
        f"edited    {found['edited']:,}\nrequests  {found['requests']:,}\ndata set  {found['dataset']}"
    )
    _show({**found, "dataset": str(found["dataset"])}, table, as_json=as_json)


def _show(found: dict[str, Any], table: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        say_result(table)


def _counts(crawled: CrawlSummary | None, summary: GisSummary) -> dict[str, Any]:
    left_out = summary.report["left_out"]
    found = {"counts": summary.counts, "dataset": str(summary.dataset), "left_out": left_out}
    return {**found, "crawl": {**asdict(crawled), "store": str(crawled.store)}} if crawled else found


def _table(crawled: CrawlSummary | None, summary: GisSummary) -> str:
    """What is stored and what it cost, what could not be read, what was built; the report has the rest."""
    rows = [(name.replace("_", " "), f"{count:,}") for name, count in summary.counts.items()]
    if crawled is not None:
        stored = [(name.replace("_", " "), f"{count:,}") for name, count in crawled.rows.items()]
        cost = f"{crawled.requests:,} ({crawled.points:,} points); the forecast says {crawled.forecast:,}"
        aside = [("set aside", f"{issue}: {reason}") for issue, reason in crawled.set_aside.items()]
        rows = [*stored, ("requests", cost), *aside, *rows]
    rows += [("left out", f"{name}: {reason}") for name, reason in summary.report["left_out"].items()]
    rows.append(("data set", str(summary.dataset)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)
