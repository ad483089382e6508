"""A random sample of pairs to read by hand, and the error rate that the readers' verdicts give."""

from __future__ import annotations

import csv
import heapq
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.gis.build.card import render_gis_card
from angle_data.gis.build.dataset import read_dataset, replace_card
from angle_data.jsonl import replace_file, write_json
from angle_data.tables import guarded, read_table
from angle_data.text import stable_hash

FIELDS = (
    "verdict", "label", "kind", "split", "url1", "url2", "evidence", "evidence_url", "text1", "text2",
)  # fmt: skip
"""Columns of the file; the reader fills in the first."""

VERDICTS = {said[:end]: said for said in ("right", "wrong", "unclear") for end in (1, None)}
"""What a reader may write, such as `r` or `right` -> what it means: whether the label is right."""

_Z = 1.959964  # the 97.5 % point of the normal distribution


def write_sample(dataset: Path, target: Path, *, count: int, seed: int = 0) -> int:
    """Write a simple random sample of the pairs of `dataset` as CSV to `target`; return how many it has."""
    if count < 1:
        raise InputError(f"--n must be at least 1, got {count}")
    if target.exists():
        raise InputError(f"{target} exists and may hold verdicts; move it away, or delete it")
    keyed = (
        (stable_hash(f"{seed} sample {row['url1']} {row['url2']}"), number, split, row)
        for number, (split, row) in enumerate(read_dataset(dataset))
    )
    drawn = heapq.nsmallest(count, keyed, key=lambda item: item[:2])
    with replace_file(target) as stream:
        writer = csv.DictWriter(stream, FIELDS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for _, _, split, row in drawn:
            safe = {name: guarded(value) if isinstance(value, str) else value for name, value in row.items()}
            writer.writerow({**safe, "split": split, "verdict": ""})
    return len(drawn)


def read_verdicts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (kind, verdict) of every row of a sample that has a verdict; an `InputError` if it is none."""
    for where, row in read_table(path, require=("verdict", "kind")):
        said = (row["verdict"] or "").strip().lower()
        if said in VERDICTS:
            yield row["kind"], VERDICTS[said]
        elif said:
            raise InputError(f"{where}: verdict must be right, wrong or unclear, got {said!r}")


def error_rates(verdicts: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return what readers found of all pairs together, then by kind; an `InputError` if there is no verdict.

    `rate` is the share of wrong labels among those decided (`right` or `wrong`), `low` and `high` its 95 %
    Wilson interval. `not_clear` is the share of all pairs read that are not clearly right, with its interval:
    the figure to compare with the 7 % that the paper reports.
    """
    counts: dict[str, Counter[str]] = {"all": Counter()}
    for kind, verdict in verdicts:
        counts["all"][verdict] += 1
        counts.setdefault(kind, Counter())[verdict] += 1
    if not counts["all"]:
        raise InputError("no verdicts yet; write right, wrong or unclear into the column verdict")
    rates = []
    for kind in ("all", *sorted(counts.keys() - {"all"})):
        read, wrong, unclear = counts[kind].total(), counts[kind]["wrong"], counts[kind]["unclear"]
        decided, bad = read - unclear, wrong + unclear
        (low, high), (least, most) = wilson(wrong, decided), wilson(bad, read)
        rates.append(
            {"kind": kind, "read": read, "wrong": wrong, "unclear": unclear}
            | {"rate": wrong / decided if decided else 0.0, "low": low, "high": high}
            | {"not_clear": bad / read, "not_clear_low": least, "not_clear_high": most}
        )
    return rates


def put_on_card(out: Path, verdicts: Path, rates: list[dict[str, Any]]) -> None:
    """Write error rates into `out`/report.json and the card of `out`/dataset, which `verdicts` must be of."""
    dataset, report_path = out / "dataset", out / "report.json"
    known = {(row["url1"], row["url2"]) for _, row in read_dataset(dataset)}
    for where, row in read_table(verdicts, require=("url1", "url2")):
        if (row["url1"], row["url2"]) not in known:
            raise InputError(f"{where}: no pair of {dataset}; draw the sample from the data set it is for")
    try:
        report = json.loads(report_path.read_text(encoding="utf-8")) | {"error_rates": rates}
        figures = sorted(path.name for path in (dataset / "figures").glob("*.png"))
        card = render_gis_card(report, figures=figures)
    except (OSError, ValueError, KeyError):
        raise InputError(f"{report_path} is no report of this version; build with `gis --no-crawl`") from None
    replace_card(dataset, card)
    write_json(report_path, report)


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927, https://doi.org/10.2307/2276774)."""
    if total == 0:
        return 0.0, 1.0
    share, spread = hits / total, _Z**2 / total
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
