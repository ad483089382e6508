"""The commands `angle-data gis sample` and `gis rehydrate`: options in, one call, a short table out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from angle_data.console import configure_logging
from angle_data.errors import InputError

if TYPE_CHECKING:
    from angle_data.gis.sample import ErrorRate


def sample(
    out: Annotated[
        Path | None, typer.Option(help="Folder that `gis --out` wrote (or a data set folder itself).")
    ] = None,
    n: Annotated[int, typer.Option("--n", help="How many pairs to draw.")] = 100,
    seed: Annotated[int, typer.Option(help="Another seed draws other pairs.")] = 0,
    to: Annotated[
        Path | None, typer.Option(help="File to write; default sample.csv in the --out folder.")
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option(help="The file, read and filled in: compute the error rate.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write pairs to a CSV for reading by hand, or turn the verdicts in it into an error rate.

    Fill the column `verdict` with right, wrong or unclear (r, w, u): is the label right?

    Example: angle-data gis sample --out gis --n 100

    Example: angle-data gis sample --verdicts gis/sample.csv
    """
    configure_logging()
    from angle_data.gis.sample import error_rates, read_verdicts, write_sample

    if verdicts is not None:
        rates = error_rates(read_verdicts(verdicts))
        typer.echo(json.dumps([asdict(rate) for rate in rates]) if as_json else _rates(rates))
        return
    if out is None:
        raise InputError("give --out, a folder with a data set to draw from, or --verdicts, a file to count")
    if not out.is_dir():
        raise InputError(f"{out} does not exist; give the folder that `angle-data gis --out` wrote")
    dataset = out / "dataset" if (out / "dataset").is_dir() else out
    target = to or out / "sample.csv"
    if to is None and dataset == out:
        raise InputError(
            f"{out} is a data set folder, which holds no other files; give --to, a file to write"
        )
    count = write_sample(dataset, target, count=n, seed=seed)
    typer.echo(json.dumps({"pairs": count, "file": str(target)}) if as_json else f"{count} pairs in {target}")


def rehydrate(
    data: Annotated[Path, typer.Option(help="Data set folder without texts.")],
    out: Annotated[Path, typer.Option(help="Another folder, to write dataset/ to.")],
    api_url: Annotated[
        str, typer.Option(help="REST address; GitHub Enterprise: https://HOST/api/v3.")
    ] = "https://api.github.com",
    token_env: Annotated[str, typer.Option(help="Variable that holds the token.")] = "GITHUB_TOKEN",
    max_requests: Annotated[
        int | None, typer.Option(help="Stop after so many requests; the same command goes on.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show details.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Fetch the texts of a data set of ids again; pairs with a deleted issue are left out and counted.

    Fifty issues a request with a token, one without.

    Example: angle-data gis rehydrate --data ids/dataset --out texts
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.gis.rehydrate import RehydrateConfig, rehydrate_dataset

    found = rehydrate_dataset(RehydrateConfig(data, out, api_url, token_env, max_requests))
    if as_json:
        typer.echo(json.dumps({**asdict(found), "dataset": str(found.dataset)}))
        return
    left_out = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in found.dropped.items())
    lost = "".join(f"left out  {name}: {reason}\n" for name, reason in found.repositories.items())
    typer.echo(
        f"pairs     {found.kept:,} of {found.rows:,}\nleft out  {left_out or 'none'}\n{lost}"
        f"edited    {found.edited:,}\nrequests  {found.requests:,}\ndata set  {found.dataset}"
    )


def _rates(rates: list[ErrorRate]) -> str:
    lines = [f"{'kind':<24}{'read':>6}{'wrong':>7}{'unclear':>9}  {'error rate (95 %)':<26}not clearly right"]
    for rate in rates:
        error = f"{rate.rate:.1%} ({rate.low:.1%} to {rate.high:.1%})"
        if rate.read == rate.unclear:
            error = "unknown: all unclear"
        unclear = f"{rate.not_clear:.1%} ({rate.not_clear_low:.1%} to {rate.not_clear_high:.1%})"
        lines.append(f"{rate.kind:<24}{rate.read:>6}{rate.wrong:>7}{rate.unclear:>9}  {error:<26}{unclear}")
    return "\n".join(lines)
