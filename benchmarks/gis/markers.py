"""Precision and recall of the markers on labelled comments, beside four simple extractors.

    python benchmarks/gis/markers.py                  # the next two
    python benchmarks/gis/markers.py heldout          # tests/fixtures/gis/comments-heldout.jsonl
    python benchmarks/gis/markers.py held-out         # comments-held-out.jsonl, beside this file
    python benchmarks/gis/markers.py further          # comments-further.jsonl, on which rules are improved
    python benchmarks/gis/markers.py my-comments.jsonl

A line holds `repo, number, author, body, links` and, if there are any, `category` and `denied` (numbers said
to be no duplicates); `links` are `{repo, number, direction, certainty}`. Scored are targets: an explicit link
found where the label has an explicit one is a hit, an explicit link anywhere else (also where the label is
tentative) a false one. The simple extractors know no certainty or direction, so comments with tentative or
reverse labels are left out for them, and for the row that compares. No rule is tuned on `held-out`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from angle_data.gis.comments.reading import MarkerLink, Reading, read_comment  # noqa: E402

Target = tuple[str, int]
Row = dict[str, Any]

_REFERENCE = re.compile(
    r"(?:https?://(?:www\.)?github\.com/)?([\w.-]+/[\w.-]+)(?:#|/(?:issues|pull)/)(\d+)|(?:#|gh-)(\d+)", re.I
)
_START = re.compile(rf"\s*duplicate of ({_REFERENCE.pattern})", re.I)
_PAPER = re.compile(r"duplicate of #(\d+)", re.I)
_WORD = re.compile(r"dup(?:e|licate\w*)?\b", re.I)
_NEAR = re.compile(rf"dup(?:e|licate\w*)?\b.{{0,40}}?({_REFERENCE.pattern})", re.I | re.S)
_NOISE = re.compile(r"```.*?```|`[^`]*`|<!--.*?-->|^\s*>.*?$", re.S | re.M)


def _targets(text: str, repo: str) -> set[Target]:
    return {((m[1] or repo).casefold(), int(m[2] or m[3])) for m in _REFERENCE.finditer(text)}


BASELINES: dict[str, Callable[[str, str], set[Target]]] = {
    "official syntax at the start": lambda body, repo: (
        _targets(m[1], repo) if (m := _START.match(body)) else set()
    ),
    "the paper's phrase": lambda body, repo: {(repo.casefold(), int(n)) for n in _PAPER.findall(body)},
    "any dup-word, every reference": lambda body, repo: _targets(body, repo) if _WORD.search(body) else set(),
    "cleaned, word then reference": lambda body, repo: {
        target for m in _NEAR.finditer(_NOISE.sub(" ", body)) for target in _targets(m[1], repo)
    },
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Score a file and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("comments", nargs="*", help="dev, heldout, held-out, or files of labelled comments")
    options = parser.parse_args(arguments)
    for name in options.comments or ("heldout", "held-out"):
        folders = (ROOT / "tests" / "fixtures" / "gis", Path(__file__).parent)
        named = [folder / f"comments-{name}.jsonl" for folder in folders]
        _report(next((path for path in named if path.exists()), Path(name)))


def _report(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    print(f"{path.name}: {len(rows)} comments, {sum(len(row['links']) for row in rows)} labelled links\n")
    _by_category(rows)
    _compare(rows)


def _read(row: Row) -> Reading:
    return read_comment(row["body"], row["repo"], row["number"], author=row.get("author"))


def _found(row: Row) -> dict[Target, MarkerLink]:
    return {link.target: link for link in _read(row).links}


def _labels(row: Row) -> dict[Target, Row]:
    return {(link["repo"].casefold(), link["number"]): link for link in row["links"]}


def _score(row: Row) -> Counter[str]:
    """Count hits, misses, false explicit links, wrong directions and tentative finds of one comment."""
    found, labels = _found(row), _labels(row)
    count: Counter[str] = Counter(comments=1)
    for target, label in labels.items():
        link = found.get(target)
        sure = link is not None and link.certainty == "explicit"
        if label["certainty"] == "tentative":
            count["tentative"] += 1
            count["tentative found"] += link is not None and not sure
            count["tentative taken for explicit"] += sure
            count["false"] += sure
            continue
        count["explicit"] += 1
        count["hit" if sure else "missed"] += 1
        if sure and link is not None and link.direction != label["direction"]:
            count["wrong direction"] += 1
    for target, link in found.items():
        if target not in labels:
            count["false" if link.certainty == "explicit" else "false tentative"] += 1
    denied = set(row.get("denied", ()))
    count["denials"] = len(denied)
    count["denials found"] = len(denied & {denial.number for denial in _read(row).denials})
    return count


def _by_category(rows: Iterable[Row]) -> None:
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        count = _score(row)
        totals[row.get("category", "all")] += count
        totals["TOTAL"] += count
    columns = (
        "comments",
        "explicit",
        "hit",
        "missed",
        "false",
        "wrong direction",
        "tentative",
        "tentative found",
        "false tentative",
    )
    print("category".ljust(16) + "".join(name.rjust(len(name) + 2) for name in columns))
    for category in sorted(totals, key=lambda name: (name == "TOTAL", name)):
        cells = (str(totals[category][name]).rjust(len(name) + 2) for name in columns)
        print(category.ljust(16) + "".join(cells))
    total = totals["TOTAL"]
    print(f"\nexplicit links: {_ratios(total['hit'], total['false'], total['missed'])}")
    right = total["hit"] - total["wrong direction"]
    print(f"direction right: {right} of {total['hit']}")
    print(f"tentative taken for explicit: {total['tentative taken for explicit']} of {total['tentative']}")
    if total["denials"]:
        print(f"denials found: {total['denials found']} of {total['denials']}")
    traps = Counter({name: c["false"] for name, c in totals.items() if name.startswith("trap_")})
    print(
        f"explicit links in traps: {sum(traps.values())} in "
        f"{sum(totals[name]['comments'] for name in traps)} comments\n"
    )


def _compare(rows: Sequence[Row]) -> None:
    plain = [
        row
        for row in rows
        if all(
            link["certainty"] == "explicit" and link["direction"] == "this_is_dup_of" for link in row["links"]
        )
    ]
    print(f"explicit links of which the commented issue is the duplicate, {len(plain)} comments:")
    extractors: dict[str, Callable[[Row], set[Target]]] = {
        name: lambda row, find=find: find(row["body"], row["repo"]) for name, find in BASELINES.items()
    }
    extractors["angle_data.gis.comments.reading"] = lambda row: {
        t for t, link in _found(row).items() if link.certainty == "explicit"
    }
    for name, find in extractors.items():
        hit = false = missed = 0
        for row in plain:
            found = find(row) - {(row["repo"].casefold(), row["number"])}
            labels = set(_labels(row))
            hit += len(found & labels)
            false += len(found - labels)
            missed += len(labels - found)
        print(f"  {name:<32} {_ratios(hit, false, missed)}")


def _ratios(hit: int, false: int, missed: int) -> str:
    precision = hit / (hit + false) if hit + false else 0.0
    recall = hit / (hit + missed) if hit + missed else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return f"P {precision:.3f}  R {recall:.3f}  F1 {f1:.3f}  ({hit} hits, {false} false, {missed} missed)"


if __name__ == "__main__":
    main()
