"""The commands `angle-data gis`, `gis explain` and `gis rehydrate`: options in, a table out.

They import nothing heavy until they run.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from angle_data.calling.options import option, with_options
from angle_data.console import configure_logging
from angle_data.errors import InputError
from angle_data.gis.crawl.selection import API_HELP, LIMIT_HELP, PUBLIC_API, TOKEN_HELP, GisConfig

if TYPE_CHECKING:
    from angle_data.gis.build.build import GisSummary
    from angle_data.gis.crawl.crawl import CrawlSummary

Quiet = Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show more detail.")]


def _gis_defaults(given: dict[str, Any]) -> None:
    """Fill in the folder, by the name of the list of repositories."""
    if given["out"] is None and given["repos"] is not None:
        given["out"] = Path("runs", given["repos"].stem)


@with_options(GisConfig, is_group=True, complete=_gis_defaults, out=None, ratios="0.86,0.07,0.07")
def gis(config: GisConfig) -> tuple[dict[str, Any], str]:
    """Crawl duplicate issues from GitHub and build labelled pairs from them.

    Everything fetched is kept in crawl.sqlite: a stopped crawl resumes where it stopped, and a finished one
    fetches only what changed. One token allows 5,000 requests an hour; a repository with 100,000 issues
    takes about 1,100. Without a token: 60 requests an hour, and comments only. Try --dry-run first.
    --repos, --since, --until and --strategy also select which part of an earlier, larger crawl goes into the
    data set. Exit codes: 75 stopped at a limit, 130 interrupted; rerun the same command to resume.

    Example: angle-data gis --repos recipes/gis-paper-repositories.txt --out gis
    """
    from angle_data.gis.build.build import build_gis
    from angle_data.gis.build.report import token_counter

    # All is checked before hours of crawling, the list and the tokenizer too.
    config.selection()
    token_counter(config.tokenizer, fetch=not config.no_crawl)
    crawled = None
    if not config.no_crawl:
        if config.dry_run:
            from angle_data.gis.crawl.forecast import forecast
            from angle_data.text import counted

            found = forecast(config)
            repositories = counted(found["repositories"], "repository", "repositories")
            return found, f"about {found['requests']:,} requests for {repositories}"
        if config.archives:
            from angle_data.gis.crawl.archive import read_archives

            crawled = read_archives(config)
        else:
            from angle_data.gis.collect import crawl_repos

            crawled = crawl_repos(config)
    built = build_gis(config)
    counts = {"counts": built.counts, "dataset": built.dataset, "left_out": built.report["left_out"]}
    return counts | ({"crawl": asdict(crawled)} if crawled else {}), _table(crawled, built)


def explain(
    comments: Annotated[
        Path,
        typer.Option(help="Comments: .jsonl[.gz] lines with repo, number, author and body; - reads stdin."),
    ],
    why: Annotated[bool, typer.Option("--why", help="Add denials, retractions, and texts read.")] = False,
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
        raise InputError(f"{source}: no comments; each line needs repo, number, author and body, see --help")


@dataclass(frozen=True, slots=True)
class RehydrateConfig:
    """What `gis rehydrate` needs, see its options."""

    data: Path = option("Folder of the data set without texts.")  # noqa: RUF009
    out: Path = option("A different folder, for the new dataset/.")  # noqa: RUF009
    api_url: str = option(API_HELP, PUBLIC_API)
    token_env: str = option(TOKEN_HELP, "GITHUB_TOKEN")
    max_requests: int | None = option(LIMIT_HELP, None)


@with_options(RehydrateConfig)
def rehydrate(config: RehydrateConfig) -> tuple[dict[str, Any], str]:
    """Fetch the texts of an ids-only data set again; pairs with a deleted issue are left out and counted.

    One request fetches fifty issues with a token, one issue without.

    Example: angle-data gis rehydrate --data ids/dataset --out texts
    """
    from angle_data.gis.crawl.github import GitHubClient
    from angle_data.gis.rehydrate import rehydrate_dataset

    client = GitHubClient(config.api_url, config.token_env, config.max_requests)
    found = rehydrate_dataset(config.data, config.out, client)
    left_out = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in found["dropped"].items())
    return found, (
        f"pairs     {found['kept']:,} of {found['rows']:,}\nleft out  {left_out or 'none'}\n"
        f"edited    {found['edited']:,}\nrequests  {found['requests']:,}\ndata set  {found['dataset']}"
    )


def _table(crawled: CrawlSummary | None, summary: GisSummary) -> str:
    """What is stored and what it cost, what could not be read, what was built; the report has the rest."""
    rows = [(name.replace("_", " "), f"{count:,}") for name, count in summary.counts.items()]
    if crawled is not None:
        stored = [(name.replace("_", " "), f"{count:,}") for name, count in crawled.rows.items()]
        cost = f"{crawled.requests:,} ({crawled.points:,} points)"
        aside = [("set aside", f"{issue}: {reason}") for issue, reason in crawled.set_aside.items()]
        rows = [*stored, ("requests", cost), *aside, *rows]
    rows += [("left out", f"{name}: {reason}") for name, reason in summary.report["left_out"].items()]
    rows.append(("data set", str(summary.dataset)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)
