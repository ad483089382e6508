"""The commands `angle-data show` and `angle-data grade`: options in, one call, what to look at out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_data.errors import InputError

_SHOWN, _ON_A_PAGE = 20, 500

Seed = Annotated[int, typer.Option(help="Another seed draws others.")]


def show(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|DATASET", help="Folder of any command of angle-data, or a file of pairs."
        ),
    ],
    n: Annotated[
        int | None,
        typer.Option("--n", help="How many to show.", show_default=f"{_SHOWN}, with --html {_ON_A_PAGE}"),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Only these: a reason of rejection, a flag, kept, flipped or rejected.")
    ] = None,
    annotator: Annotated[str | None, typer.Option(help="Only what this annotator wrote or graded.")] = None,
    seed: Seed = 0,
    html: Annotated[
        Path | None, typer.Option(help="Write a page to filter and search, for any browser.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print counts and items as JSON, with whole replies.")
    ] = False,
) -> None:
    """Look before you train: counts of every reason, then a sample of what was kept, flipped and rejected.

    The sample alternates between kinds, reasons, polarities or degrees; each text stands beside what was
    written for it, with the reply where one was rejected.

    Example: angle-data show runs/chatgpt --reason echo

    As a page: angle-data show pairs --html pairs.html
    """
    configure_logging()
    from angle_data.look.show import look, print_look, write_show_page

    wanted = n if n is not None else _SHOWN if html is None else _ON_A_PAGE
    found = look(data, n=wanted, reason=reason, annotator=annotator, seed=seed)
    if html is not None:
        write_show_page(html, found)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    elif html is not None:
        typer.echo(f"{len(found.items):,} of {found.counts.kinds.total():,} items in {html}")
    else:
        print_look(found)


def grade(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATASET|FILE", help="What to draw pairs from: as for show.", show_default=False
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="How many pairs.")] = 150,
    out: Annotated[
        Path | None, typer.Option(help="CSV to fill in a spreadsheet; the page goes beside it, as .html.")
    ] = None,
    dev_share: Annotated[float, typer.Option(help="Share of the pairs that become dev pairs.")] = 0.5,
    seed: Seed = 0,
    finish: Annotated[
        Path | None, typer.Option(help="A filled CSV: write its dev and test pairs beside it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print counts and paths as JSON.")] = False,
) -> None:
    """Draw pairs over the range of scores, to be graded from 0 to 5 by people: the dev and test pairs of fit.

    Grade on the page with the keyboard, or in a spreadsheet and then with --finish. No text is in two pairs,
    and no machine's score is shown.

    Example: angle-data grade pairs --n 150 --out my.csv

    From a spreadsheet: angle-data grade --finish my.csv
    """
    configure_logging()
    from angle_data.look.grade import draw_pairs, finish_grading, write_grading

    if (finish is None) == (data is None or out is None):
        raise InputError("give DATASET and --out my.csv to draw pairs, or --finish my.csv to end")
    if finish is not None:
        written = {str(path): count for path, count in finish_grading(finish).items()}
        lines = [f"{count:,} pairs in {path}" for path, count in written.items()]
        typer.echo(json.dumps(written) if as_json else "\n".join([*lines, _next(*written)]))
        return
    assert data is not None
    assert out is not None
    drawn = draw_pairs(data, n=n, seed=seed, dev_share=dev_share)
    page = write_grading(out, drawn)
    if as_json:
        found = {"pairs": len(drawn.pairs), "by_score": drawn.bands, "sheet": str(out), "page": str(page)}
        typer.echo(json.dumps(found))
        return
    short = "" if len(drawn.pairs) == n else f" of {n:,} wanted: no text may be in two pairs"
    bands = ", ".join(f"{name}: {count}" for name, count in drawn.bands.items())
    later = [str(out.with_name(f"{out.stem}-{split}.csv")) for split in ("dev", "test")]
    typer.echo(
        f"pairs  {len(drawn.pairs):,}{short}\nscores {bands}\n"
        f"page   {page}: open it in a browser, grade with the keys 0 to 5, download both files\n"
        f"sheet  {out}: or fill the column score, then angle-data grade --finish {out}\n{_next(*later)}"
    )


def _next(dev: str, test: str) -> str:
    return (
        f"then   angle-train fit --data DATA --dev {dev} --test {test} --drop-leaks\n"
        "       (these pairs must not train: --drop-leaks leaves them out of the training pairs)"
    )
