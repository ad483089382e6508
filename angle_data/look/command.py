"""The commands `angle-data show` and `angle-data grade`: options in, one call, what to look at out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_data.errors import InputError

_SHOWN, _ON_A_PAGE = 20, 500
_DATA = "Output folder of any angle-data command, or a file of pairs."

Seed = Annotated[int, typer.Option(help="Random seed for the draw.")]
Json = Annotated[bool, typer.Option("--json", help="Print the full result as JSON.")]


def show(
    data: Annotated[Path, typer.Argument(metavar="RUN|DATASET", help=_DATA)],
    n: Annotated[
        int | None,
        typer.Option(
            "--n", help="Number of items to show.", show_default=f"{_SHOWN}, with --html {_ON_A_PAGE}"
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Show only items with this reason, flag or other word from the counts.")
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(help="Show only items by this annotator or grader.")
    ] = None,
    seed: Seed = 0,
    html: Annotated[
        Path | None, typer.Option(help="Write an HTML page to filter and search in a browser.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Inspect data before training: all counts, then a sample of what was kept, flipped and rejected.

    The sample alternates between kinds, reasons, and polarities or degrees. Each text is shown beside what
    was written for it, with the reply that a rejected part came from.

    Example: angle-data show runs/chatgpt --reason echo_source

    As a page: angle-data show pairs --html pairs.html
    """
    configure_logging()
    from angle_data.look.show import check_ending, look, print_look, write_page

    if html is not None:
        check_ending("--html", html, ".html")
    wanted = n if n is not None else _SHOWN if html is None else _ON_A_PAGE
    found = look(data, n=wanted, reason=reason, annotator=annotator, seed=seed)
    if html is not None:
        write_page(html, "show", found)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
    elif html is not None:
        typer.echo(f"{len(found['items']):,} of {found['matching']:,} in {html}")
    else:
        print_look(found)


def grade(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATASET|FILE", help=_DATA, show_default=False)
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Number of pairs to draw, at least 2.")] = 150,
    out: Annotated[
        Path | None, typer.Option(help="CSV to fill in; the page is the .html next to it.")
    ] = None,
    dev_share: Annotated[float, typer.Option(help="Share of the pairs to use as dev pairs.")] = 0.5,
    seed: Seed = 0,
    finish: Annotated[Path | None, typer.Option(help="Filled-in CSV: write its dev and test pairs.")] = None,
    as_json: Json = False,
) -> None:
    """Draw pairs across the range of scores to grade from 0 to 5 yourself, as dev and test pairs for fit.

    Grade on the page with the keyboard, or in a spreadsheet, then with --finish. No text is in two pairs,
    and no machine's score is shown.

    Example: angle-data grade pairs --n 150 --out my.csv

    From a spreadsheet: angle-data grade --finish my.csv
    """
    configure_logging()
    from angle_data.look.grade import SPLITS, draw_pairs, finish_grading, write_grading

    if finish is not None and data is None and out is None:
        written = finish_grading(finish)
        lines = [*(f"{count:,} pairs in {path}" for path, count in written.items()), _next(*written)]
        typer.echo(json.dumps(written) if as_json else "\n".join(lines))
        return
    if finish is not None or data is None or out is None:
        raise InputError("give DATASET and --out my.csv to draw pairs, or --finish my.csv alone to end")
    pairs, scores = draw_pairs(data, n=n, seed=seed, dev_share=dev_share)
    page = write_grading(out, pairs)
    found = {"pairs": len(pairs), "scores": scores, "sheet": str(out), "page": str(page)}
    short = "" if len(pairs) == n else f", not {n:,}: no text may be in two"
    lines = [
        f"pairs   {len(pairs):,}{short}",
        f"scores  {', '.join(f'{name}: {count}' for name, count in scores.items())}",
        f"page    {page}  (open it, grade with the keys 0 to 5, download two files)",
        f"or      {out}  (fill the column score, then angle-data grade --finish {out})",
        _next(*(str(out.with_name(f"{out.stem}-{split}.csv")) for split in SPLITS)),
    ]
    typer.echo(json.dumps(found) if as_json else "\n".join(lines))


def _next(dev: str, test: str) -> str:
    return (
        f"then    angle-train fit --data DATA --dev {dev} --test {test} --drop-leaks\n"
        "        (these pairs must not train: --drop-leaks leaves them out of the training pairs, but not\n"
        "        other pairs of the same texts)"
    )
