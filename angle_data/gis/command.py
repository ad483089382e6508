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
from angle_data.errors import AngleError, InputError
from angle_data.gis.ask.config import GisCommandConfig
from angle_data.gis.crawl.selection import API_HELP, LIMIT_HELP, PUBLIC_API, TOKEN_HELP, GisConfig

if TYPE_CHECKING:
    from angle_data.gis.ask.ask import AskResult
    from angle_data.gis.build.build import GisSummary
    from angle_data.gis.crawl.crawl import CrawlSummary

Quiet = Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show more detail.")]


def _gis_defaults(given: dict[str, Any]) -> None:
    """Fill in the folder, by the name of the list of repositories."""
    if given["out"] is None and given["repos"] is not None:
        given["out"] = Path("runs", given["repos"].stem)


@with_options(
    GisCommandConfig,
    is_group=True,
    complete=_gis_defaults,
    out=None,
    ratios="0.86,0.07,0.07",
    temperature=0.0,
)
def gis(config: GisCommandConfig) -> tuple[dict[str, Any], str, *tuple[AngleError, ...]]:
    """Crawl duplicate issues from GitHub and build labelled pairs from them.

    Everything fetched is kept in crawl.sqlite: a stopped crawl resumes where it stopped, and a finished one
    fetches only what changed. One token allows 5,000 requests an hour; a repository with 100,000 issues
    takes about 1,100. Without a token: 60 requests an hour, and comments only. Try --dry-run first.
    --repos, --since, --until and --strategy also select which part of an earlier, larger crawl goes into the
    data set. --ask has a language model read comments whose words are doubtful; its replies are kept in
    asked/, and nothing is asked, or paid for, twice (forecast: --no-crawl --dry-run --ask MODEL). Exit codes:
    75 stopped at a limit, 130 interrupted; rerun the same command to resume. 1 also if the token may not read
    a listed repository; the data set is built of the others.

    Example: angle-data gis --repos recipes/gis-paper-repositories.txt --out gis
    """
    from angle_data.gis.build.build import build_gis
    from angle_data.gis.build.report import token_counter

    # All is checked before hours of crawling, the list and the tokenizer too.
    options = config.gis
    options.selection()
    token_counter(options.tokenizer, fetch=not options.no_crawl)
    if config.asks:
        from angle_data.gis.ask.ask import ask_doubtful, check_annotator

        check_annotator(config)
    if options.dry_run:
        return _forecast(config)
    crawled = None if options.no_crawl else _crawl(options)
    asked = ask_doubtful(config) if config.asks else None
    built = build_gis(options, asked.answers if asked else None)
    counts = {"counts": built.counts, "dataset": built.dataset, "left_out": built.report["left_out"]}
    problem = built.ledger.problem() if crawled else None
    counts |= {"ask": asked.session.counts if asked.session else {}} if asked else {}
    counts |= {"crawl": asdict(crawled)} if crawled else {}
    return counts, _table(crawled, asked, built), *([problem] if problem else [])


def _forecast(config: GisCommandConfig) -> tuple[dict[str, Any], str]:
    """What a crawl would take, and what the asking would, by what has been crawled already."""
    found: dict[str, Any] = {}
    lines: list[str] = []
    if not config.gis.no_crawl:
        from angle_data.gis.crawl.forecast import forecast
        from angle_data.text import counted

        found = forecast(config.gis)
        repositories = counted(found["repositories"], "repository", "repositories")
        lines.append(f"about {found['requests']:,} requests for {repositories}")
    if config.asks:
        from angle_data.gis.ask.ask import plan_asking
        from angle_data.gis.crawl.store import STORE_NAME

        if config.gis.no_crawl or (config.gis.out / STORE_NAME).exists():
            plan = plan_asking(config)
            found, lines = {**found, "ask": plan.counts}, [*lines, f"--ask {config.ask.model}:", str(plan)]
        else:
            lines.append(f"--ask {config.ask.model}: known after the crawl, by --no-crawl --dry-run")
    return found, "\n".join(lines)


def _crawl(config: GisConfig) -> CrawlSummary:
    """Bring the store up to date, from the API or from dumps."""
    if config.archives:
        from angle_data.gis.crawl.archive import read_archives

        return read_archives(config)
    from angle_data.gis.collect import crawl_repos

    return crawl_repos(config)


def explain(
    comments: Annotated[
        Path,
        typer.Option(help="Comments: .jsonl[.gz] lines with repo, number, author and body; - reads stdin."),
    ],
    why: Annotated[bool, typer.Option("--why", help="Add denials, retractions, and texts read.")] = False,
    api_url: Annotated[str, typer.Option(help=API_HELP)] = PUBLIC_API,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show the duplicate links that comments state: one JSON object per comment, in file order.

    Example: angle-data gis explain --comments comments.jsonl --why
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.gis.comments.explain import explain_comments
    from angle_data.gis.crawl.selection import site_of_api
    from angle_data.jsonl import dumps

    source = Path("/dev/stdin") if str(comments) == "-" else comments
    row: dict[str, object] | None = None
    for row in explain_comments(source, why=why, site=site_of_api(api_url)):
        sys.stdout.write(dumps(row) + "\n")
    if row is None:
        raise InputError(f"{source}: no comments; each line needs repo, number, author and body, see --help")


@dataclass(frozen=True, slots=True)
class RehydrateConfig:
    """What `gis rehydrate` needs, see its options."""

    data: Path = option("Folder of the data set without texts, or of the gis that wrote it.")  # noqa: RUF009
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


def _table(crawled: CrawlSummary | None, asked: AskResult | None, summary: GisSummary) -> str:
    """What is stored and what it cost, what could not be read, what was built; the report has the rest."""
    rows = [(name.replace("_", " "), f"{count:,}") for name, count in summary.counts.items()]
    if asked is not None:
        said = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in asked.answers.counts().items())
        rows = [("asked", said), *rows]
    if crawled is not None:
        stored = [(name.replace("_", " "), f"{count:,}") for name, count in crawled.rows.items()]
        cost = f"{crawled.requests:,} ({crawled.points:,} points)"
        rows = [*stored, ("requests", cost), *rows]
    rows += summary.ledger.rows()
    if asked is not None and asked.session is not None and asked.session.spent.tokens.total:
        rows.append(("spent on asking", str(asked.session.spent)))
    rows.append(("data set", str(summary.dataset)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)
