"""The options of `angle-data show` and `angle-data grade`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from angle_data.calling.options import check_values, option, paths_option

SHOWN = 20
ON_A_PAGE = 500
"""How many items `show` shows on the terminal, and on a page."""

_DATA = "Output folder of any angle-data command, or a file of pairs."
_SEED = "Random seed for the draw."


@dataclass(frozen=True, slots=True)
class ShowConfig:
    """What `show` needs, see its options."""

    data: Path = option(_DATA, metavar="RUN|DATASET", argument=True)  # noqa: RUF009
    n: int | None = option("Number of items to show.", None, shown=f"{SHOWN}, with --html {ON_A_PAGE}")
    reason: str | None = option("Show only items with this reason, flag or other word from the counts.", None)
    annotator: str | None = option("Show only items by this annotator or grader.", None)
    seed: int = option(_SEED, 0)
    html: Path | None = option("Write an HTML page to filter and search in a browser.", None)  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class GradeConfig:
    """What `grade` needs, see its options."""

    data: Path | None = option(_DATA, None, metavar="DATASET|FILE", argument=True)  # noqa: RUF009
    n: int = option("Number of pairs to draw, at least 2.", 150, ge=2)
    out: Path | None = option(  # noqa: RUF009
        "CSV to fill in; the page is the .html next to it. A .jsonl: records for Argilla.", None
    )
    dev_share: float = option("Share of the pairs to use as dev pairs.", 0.5, gt=0, lt=1)
    graded: tuple[Path, ...] = paths_option(
        "Pairs that you graded before, so that they are not drawn again: CSV. Repeatable.", ()
    )
    seed: int = option(_SEED, 0)
    csv: bool = option(
        "Serve nothing: write a CSV for a spreadsheet, and a page whose grades are downloaded.",
        False,
    )
    no_browser: bool = option("Show the address of the page, but open no browser.", False)
    verdict: bool = option(
        "Check labels: say duplicate, not or unsure. --finish then gives the error rate of the labels.", False
    )
    finish: Path | None = option(  # noqa: RUF009
        "Filled-in CSV, or .json exported by Argilla: write its dev and test pairs.", None
    )
    second: Path | None = option(  # noqa: RUF009
        "With --finish: the same CSV filled in by a second person. How far do the two agree?", None
    )

    def __post_init__(self) -> None:
        check_values(self)
