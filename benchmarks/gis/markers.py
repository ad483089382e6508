"""Precision and recall of the markers on labelled comments.

    python benchmarks/gis/markers.py                  # the next two
    python benchmarks/gis/markers.py heldout          # tests/fixtures/gis/comments-heldout.jsonl
    python benchmarks/gis/markers.py held-out         # comments-held-out.jsonl, beside this file
    python benchmarks/gis/markers.py further          # comments-further.jsonl, on which rules are improved
    python benchmarks/gis/markers.py languages        # comments-languages.jsonl, 13 languages, as further
    python benchmarks/gis/markers.py languages-held-out
    python benchmarks/gis/markers.py my-comments.jsonl

A line holds `repo, number, author, body, links` and, if there are any, `category` and `denied` (numbers
said to be no duplicates); `links` are `{repo, number, direction, certainty}`. Scored are targets: an
explicit link found where the label has an explicit one is a hit, an explicit link anywhere else (also
where the label is tentative) a false one. No rule is tuned on `held-out`. A language model wrote the
files of languages; their lines name the `lang`, which has a row of its own. Four simple extractors were
compared once (../log).
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import ROOT, options

from angle_data.gis.comments.reading import Reading, read_comment
from angle_data.jsonl import read_jsonl

_COLUMNS = (
    *("comments", "explicit", "hit", "missed", "false", "wrong direction"),
    *("tentative", "tentative found", "false tentative"),
)


def main() -> None:
    """Score files and print their tables."""
    parser = options(__doc__)
    parser.add_argument("comments", nargs="*", help="dev, heldout, held-out, or files of labelled comments")
    for name in parser.parse_args().comments or ("heldout", "held-out"):
        folders = (ROOT / "tests" / "fixtures" / "gis", Path(__file__).parent)
        named = [folder / f"comments-{name}.jsonl" for folder in folders]
        report(next((path for path in named if path.exists()), Path(name)))


def score(row: dict[str, Any], read: Reading | None = None) -> Counter[str]:
    """Count hits, misses, false explicit links, wrong directions and tentative finds of one comment.

    `read` is what was read in it; by default what the markers read.
    """
    read = read or read_comment(row["body"], row["repo"], row["number"], author=row.get("author"))
    found = {link.target: link for link in read.links}
    labels = {(link["repo"].casefold(), link["number"]): link for link in row["links"]}
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
    count["denials found"] = len(denied & {denial.number for denial in read.denials})
    return count


def report(path: Path) -> None:
    """Print the counts of every category of a file, and what they come to."""
    total: Counter[str] = Counter()
    categories: dict[str, Counter[str]] = defaultdict(Counter)
    for _, row in read_jsonl(path):
        count = score(row)
        categories[row.get("category", "all")] += count
        if "lang" in row:
            categories[f"lang_{row['lang']}"] += count
        total += count
    print(f"{path.name}\n\n{'category':<16}" + "".join(f"  {name}" for name in _COLUMNS))
    for category, count in [*sorted(categories.items()), ("TOTAL", total)]:
        print(f"{category:<16}" + "".join(f"  {count[name]:>{len(name)}}" for name in _COLUMNS))
    hit, false, missed = total["hit"], total["false"], total["missed"]
    precision, recall = hit / max(hit + false, 1), hit / max(hit + missed, 1)
    f1 = 2 * precision * recall / ((precision + recall) or 1)
    print(f"\nexplicit links: P {precision:.3f}  R {recall:.3f}  F1 {f1:.3f}")
    print(f"direction right: {hit - total['wrong direction']} of {hit}")
    print(f"tentative taken for explicit: {total['tentative taken for explicit']} of {total['tentative']}")
    print(f"denials found: {total['denials found']} of {total['denials']}")
    traps = [count for name, count in categories.items() if name.startswith("trap_")]
    sums = [sum(count[name] for count in traps) for name in ("false", "comments")]
    print("explicit links in traps: {} in {} comments\n".format(*sums))


if __name__ == "__main__":
    main()
