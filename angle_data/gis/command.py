"""The `angle-data gis` command: options in, crawl and build, a short table out.

Holds no logic of its own and imports nothing heavy.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from angle_data.console import configure_logging
from angle_data.errors import InputError

if TYPE_CHECKING:
    from angle_data.gis.build.build import BuildConfig, GisSummary
    from angle_data.gis.crawl.crawl import CrawlConfig, CrawlSummary
    from angle_data.gis.crawl.selection import Selection


class GisGroup(TyperGroup):
    """The command with its subcommands; takes several files after one `--archive`, as of a shell's `*.gz`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of the files."""
        spelled: list[str] = []
        for argument in args:
            file = not argument.startswith("-") and argument not in self.commands
            if file and len(spelled) > 1 and spelled[-2] == "--archive":
                spelled.append("--archive")
            spelled.append(argument)
        return super().parse_args(ctx, spelled)


def gis(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option(help="Folder for crawl.sqlite, dataset/, audit/ and report.json.")
    ] = None,
    repos: Annotated[
        Path | None, typer.Option(help="Repositories, one owner/name or GitHub URL a line.")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="events: marks by GitHub's own button. comments: what people write. both.")
    ] = "both",
    api_url: Annotated[
        str, typer.Option(help="REST address; GitHub Enterprise: https://HOST/api/v3.")
    ] = "https://api.github.com",
    token_env: Annotated[str, typer.Option(help="Variable that holds the token.")] = "GITHUB_TOKEN",
    since: Annotated[
        str | None,
        typer.Option(
            help="Only issues opened on this day or later, such as 2024-01-31; the crawl skips what was not "
            "updated since."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="Only issues opened on this day or earlier, whenever they were marked."),
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(help="Stop after so many requests; the same command goes on.")
    ] = None,
    archive: Annotated[
        list[Path] | None,
        typer.Option(
            help="Event dumps (GH Archive, .json or .json.gz) to read instead of the API; repeatable."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Forecast requests and time, one request per repository.")
    ] = False,
    no_crawl: Annotated[bool, typer.Option("--no-crawl", help="Build from what was crawled before.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of negatives, splits and order.")] = 0,
    negatives: Annotated[float, typer.Option(help="Negative pairs for each positive one.")] = 1.0,
    split_by: Annotated[
        str,
        typer.Option(help="cluster, repo, or time: then pairs that reach over a border are left out."),
    ] = "cluster",
    ratios: Annotated[str, typer.Option(help="Shares of train, validation and test.")] = "0.86,0.07,0.07",
    max_pairs_per_cluster: Annotated[int, typer.Option(help="Most positive pairs of one cluster.")] = 10,
    cross_repo: Annotated[
        bool, typer.Option("--cross-repo", help="Allow duplicates in two repositories.")
    ] = False,
    ids_only: Annotated[
        bool, typer.Option("--ids-only", help="Leave the texts out; gis rehydrate fetches them again.")
    ] = False,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="tokenizer.json, or its folder, for the statistics of length.", show_default="an estimate"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show details.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Crawl duplicate issues from GitHub and build labelled pairs from them.

    Everything fetched is kept in crawl.sqlite: a stopped crawl goes on where it was, and a finished one
    asks only for what changed. One token allows 5,000 requests an hour; a repository with 100,000 issues
    takes about 6,000. Without a token: 60 requests an hour, and comments only. See --dry-run first.
    --repos, --since, --until and --strategy also say what of an earlier, larger crawl goes into the data set.
    Exit codes: 75 stopped on a limit, 130 interrupted; the same command goes on from there.

    Example: angle-data gis --repos recipes/gis-paper-repositories.txt --out gis
    """
    if context.invoked_subcommand is not None:
        return
    if out is None:
        raise InputError("give --out, the folder to write to")
    configure_logging(quiet=quiet, verbose=verbose)
    build = _build_config(
        out=out, seed=seed, negatives=negatives, split_by=split_by, ratios=_parse_ratios(ratios),
        max_pairs_per_cluster=max_pairs_per_cluster, cross_repo=cross_repo, ids_only=ids_only,
        tokenizer=tokenizer, selection=_selection(repos, api_url, since, until, strategy, tell=no_crawl),
    )  # fmt: skip
    if not no_crawl:
        from angle_data.gis.crawl.crawl import CrawlConfig, crawl_repos

        config = CrawlConfig(
            repos=repos,
            out=out,
            strategy=strategy,  # type: ignore[arg-type]  # checked by the configuration
            api_url=api_url,
            token_env=token_env,
            since=since,
            max_requests=max_requests,
            archives=tuple(archive or ()),
        )
        if dry_run and archive:
            raise InputError("--dry-run forecasts requests, and --archive sends none; give one of them")
        if dry_run:
            _forecast(config, as_json=as_json)
            return
    elif dry_run:
        raise InputError("--dry-run forecasts the crawl and --no-crawl leaves it out; give one of them")
    crawled = None if no_crawl else crawl_repos(config)

    from angle_data.gis.build.build import build_gis

    summary = build_gis(build)
    typer.echo(_as_json(crawled, summary) if as_json else _as_table(crawled, summary))


def _selection(
    repos: Path | None, api_url: str, since: str | None, until: str | None, strategy: str, *, tell: bool
) -> Selection:
    from angle_data.gis.crawl.selection import Selection, read_repos

    names = read_repos(repos, api_url, tell=tell).names if repos is not None else None
    return Selection(names, since, until, strategy)  # type: ignore[arg-type]  # checked there


def _build_config(**options: Any) -> BuildConfig:
    from angle_data.gis.build.build import BuildConfig
    from angle_data.gis.build.tokens import token_counter

    config = BuildConfig(**options)
    # A tokenizer that is none should not be found out after hours of crawling.
    token_counter(config.tokenizer)
    return config


def _forecast(config: CrawlConfig, *, as_json: bool) -> None:
    from angle_data.gis.crawl.forecast import forecast

    found = forecast(config)
    sums = {"rest": found.rest, "graphql": found.graphql, "points": found.points, "hours": found.hours}
    typer.echo(json.dumps({**asdict(found), **sums}) if as_json else found.table())


def _parse_ratios(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--ratios {text!r}: give numbers separated by commas, such as 0.86,0.07,0.07"
        ) from None


def _as_json(crawled: CrawlSummary | None, summary: GisSummary) -> str:
    shown: dict[str, Any] = {"counts": summary.counts, "dataset": str(summary.dataset)}
    shown["left_out"] = summary.report["left_out"]
    if crawled is not None:
        shown["crawl"] = {**asdict(crawled), "store": str(crawled.store)}
    return json.dumps(shown, ensure_ascii=False)


def _as_table(crawled: CrawlSummary | None, summary: GisSummary) -> str:
    rows: list[tuple[str, str]] = []
    if crawled is not None:
        rows += [(name.replace("_", " "), f"{count:,}") for name, count in crawled.rows.items()]
        rows.append(("requests", f"{crawled.requests:,}, {crawled.unchanged:,} of them unchanged"))
        left_out = summary.report["left_out"]
        unread = {name: status for name, status in crawled.repos.items() if status != "ok"}
        rows += [(name, why.removeprefix("error:")) for name, why in unread.items() if name not in left_out]
        rows += [("set aside", f"{issue}: {reason}") for issue, reason in crawled.set_aside.items()]
        if crawled.archive is not None:
            counts = asdict(crawled.archive).items()
            rows.append(("archive", ", ".join(f"{name} {count:,}" for name, count in counts if count)))
    rows += [("left out", f"{name}: {reason}") for name, reason in summary.report["left_out"].items()]
    rows += [(name.replace("_", " "), f"{count:,}") for name, count in summary.counts.items()]
    rows.append(("split by", _split_by(summary.report)))
    rows.append(("data set", str(summary.dataset)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _split_by(report: dict[str, Any]) -> str:
    borders = ", ".join(f"{name} until {last[:10]}" for name, last in report["periods"].items() if last)
    return f"{report['options']['split_by']}{f' ({borders})' if borders else ''}"
