"""Pairs over the range of scores for people to grade: dev and test pairs of their own.

Nothing of what a machine thinks of the pairs is written. No text is in two of them, so none is in dev and in
test.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_data.look.page import write_page
from angle_data.look.read import BANDS, Counts, Item, count, find, spread
from angle_data.tables import read_table
from angle_data.text import content_id, counted, pair_key, stable_hash

SPLITS = ("dev", "test")
TOP = 5
COLUMNS = ("sentence1", "sentence2", "score")

_SPARE = 20  # candidates kept in memory for each pair wanted, as texts may be taken
_FORMULA = ("=", "+", "-", "@", "\t")
_SCORE = re.compile(r"\d(\.\d*)?")


@dataclass(frozen=True, slots=True)
class Drawn:
    """Pairs as two texts and their split, in an order that tells nothing; counts by range of scores."""

    pairs: tuple[tuple[str, str, str], ...]
    bands: dict[str, int]


def draw_pairs(data: Path, *, n: int, seed: int = 0, dev_share: float = 0.5) -> Drawn:
    """Draw `n` pairs in equal shares from each fifth of the range of scores, and deal them to dev and test.

    Within a fifth polarities, degrees or kinds alternate. Without scores they alternate alone.

    Raises:
        InputError: `data` holds no two pairs whose texts are all different, or a number is out of its range.
    """
    if n < 2:
        raise InputError(f"--n must be at least 2, got {n}")
    if not 0 < dev_share < 1:
        raise InputError(f"--dev-share must lie between 0 and 1, got {dev_share:g}")
    source = find(data)
    counts = count(source)
    used: set[str] = set()

    def rank(item: Item) -> int:
        return stable_hash("\n".join((f"{seed} grade", *_key(item))))

    usable = (item for item in source.items() if item.kind != "rejected" and all(_key(item)))
    order = spread(
        (item for item in usable if len(set(_key(item))) == 2),
        stratum=lambda item: (counts.band(item), item.group),
        rank=rank,
        most=_SPARE * n,
        accept=lambda item: used.isdisjoint(_key(item)),
    )
    chosen: list[Item] = []
    for item in islice(order, n):
        used.update(_key(item))
        chosen.append(item)
    chosen.sort(key=lambda item: (counts.band(item), item.group, rank(item)))
    dealt = [SPLITS[int((i + 1) * dev_share) == int(i * dev_share)] for i in range(len(chosen))]
    if missing := set(SPLITS) - set(dealt):
        raise InputError(
            f"{data}: {counted(len(chosen), 'pair')} with texts of their own leave none for {missing.pop()}; "
            "give more"
        )
    rows = sorted(zip(chosen, dealt, strict=True), key=lambda row: stable_hash(f"{seed} {rank(row[0])}"))
    bands = Counter(_band_name(counts, counts.band(item)) for item in chosen)
    pairs = tuple((item.text1.strip(), item.text2.strip(), split) for item, split in rows)
    return Drawn(pairs, dict(bands))


def write_grading(out: Path, drawn: Drawn) -> Path:
    """Write the pairs as a CSV to fill in to `out`, and as a page beside it, whose path is returned.

    Raises:
        InputError: `out` is no .csv, or one of the files exists and may hold grades.
    """
    if out.suffix.lower() != ".csv":
        raise InputError(f"--out {out}: give a name that ends in .csv")
    page = out.with_suffix(".html")
    for path in (out, page):
        if path.exists():
            raise InputError(f"{path} exists and may hold grades; move it away, or give another --out")
    key = content_id("\n".join(f"{one}\n{other}\n{split}" for one, other, split in drawn.pairs))
    write_page(page, "grade", out.stem, {"key": key, "pairs": drawn.pairs})
    sheet = [(_guarded(one), _guarded(other), "", split) for one, other, split in drawn.pairs]
    _write(out, [(*COLUMNS, "split"), *sheet], mark="\ufeff")  # else Excel does not take it for UTF-8
    return page


def finish_grading(sheet: Path) -> dict[Path, int]:
    """Write the graded pairs of a filled `sheet` to one file for each split; return the count of each.

    Pairs without a score are left out. What was written there before is replaced.

    Raises:
        InputError: A column is missing, a score is no number from 0 to 5 or a split unknown (both by line),
            or a split has no score.
    """
    graded: dict[str, list[tuple[str, ...]]] = {split: [] for split in SPLITS}
    for place, row in read_table(sheet, require=(*COLUMNS, "split")):
        said = str(row["score"] or "").strip().replace(",", ".")
        if not said:
            continue
        if not _SCORE.fullmatch(said) or float(said) > TOP:
            raise InputError(f"{place}: score must be a number from 0 to {TOP}, got {row['score']!r}")
        if row["split"] not in graded:
            raise InputError(f"{place}: split must be {' or '.join(SPLITS)}, got {row['split']!r}")
        texts = (_unguarded(row[name]) for name in COLUMNS[:2])
        graded[row["split"]].append((*texts, f"{float(said):g}"))
    if empty := [split for split, rows in graded.items() if not rows]:
        raise InputError(f"{sheet}: no pair of {' or '.join(empty)} has a score; grade pairs of dev and test")
    files = {sheet.with_name(f"{sheet.stem}-{split}.csv"): rows for split, rows in graded.items()}
    for path, rows in files.items():
        _write(path, [COLUMNS, *rows])
    return {path: len(rows) for path, rows in files.items()}


def _key(item: Item) -> tuple[str, str]:
    return pair_key(item.text1, item.text2)


def _band_name(counts: Counts, band: int) -> str:
    """Return the range of scores of a band, such as `0.2-0.4`."""
    if band < 0:
        return "without score"
    low, high = (counts.low + step * (counts.high - counts.low) / BANDS for step in (band, band + 1))
    return f"{low:.3g}-{high:.3g}"


def _write(path: Path, rows: Iterable[Sequence[str]], mark: str = "") -> None:
    with replace_file(path) as stream:
        stream.write(mark)
        csv.writer(stream, lineterminator="\n").writerows(rows)


def _guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula, and so lose."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _unguarded(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text
