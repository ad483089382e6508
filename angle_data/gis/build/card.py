"""The card of a data set of issue pairs: its text is in `card.md.txt`, its tables come from the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from angle_data.gis.build.clean import LONGEST_TEXT
from angle_data.gis.build.dataset import COLUMNS, FORMS, IDS_COLUMNS
from angle_data.gis.build.forms import SHARE
from angle_data.gis.build.links import REASONS
from angle_data.gis.build.negatives import DENIALS
from angle_data.gis.build.positives import DROPPED
from angle_data.gis.build.report import LIMIT
from angle_data.gis.crawl.ledger import dump_rows
from angle_data.publish.dataset import front_matter, table

IDS_NOTE = """\
The texts are not included. `angle-data gis rehydrate` fetches them again from GitHub and leaves out what was
deleted since.

"""
_NO_LICENCE = (
    "No licence is stated: the texts belong to those who wrote them. Add one for the compilation if you may."
)
_NEGATIVES = {
    "no_hard_partner": "no issue near by words or subject was found",
    "no_partner": "no other issue was found",
    "repeated": "said before",
    **DENIALS,
}
_COUNTS = ("positives", "negatives", "pairs", "random", "hard", "explicit_non_duplicate", "issues")


def render_gis_card(report: Mapping[str, Any], *, figures: Iterable[str] = ()) -> str:
    """Return the card as Markdown with YAML front matter.

    `report` is what `report.json` holds, `figures` are names of files in `figures/` beside the card.
    """
    splits = report["splits"]
    ids_only = report["options"]["ids_only"]
    until = ", ".join(f"{name} until {last}" for name, last in report["periods"].items() if last)
    template = Path(__file__).with_name("card.md.txt").read_text(encoding="utf-8")
    tables = {
        "front": front_matter(
            sum(found["pairs"] for found in splits.values()), "duplicate-detection", _NO_LICENCE
        ),
        "ids_note": IDS_NOTE if ids_only else "",
        "columns": columns_table(IDS_COLUMNS if ids_only else COLUMNS),
        "sizes": table(
            ("split", *_COUNTS),
            ((name, *(f"{found.get(count, 0):,}" for count in _COUNTS)) for name, found in splits.items()),
        ),
        "lengths": _lengths(report["tokens"]),
        "samples": _samples(report["samples"]),
        "lexical": _lexical(report["lexical"]) + _placeholder(report["placeholder"]),
        "repositories": _repositories(report),
        "figures": "".join(f"\n![{name[:-4].replace('-', ' ')}](figures/{name})\n" for name in figures),
        "evidence": table(
            ("evidence", "count"),
            ((f"`{name}`", f"{n:,}") for name, n in report["links"]["by_evidence"].items()),
        ),
        "asked": _asked(report.get("asked")),
        "asked_meaning": ", or a language model that was asked reads it there" if "asked" in report else "",
        "left_out": _left_out(report),
        "checks": ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in report["checks"].items()),
        "periods": f"\n  Every issue of a split was opened in its period: {until}, then the rest."
        if until
        else "",
    }
    fixed = {"limit": LIMIT, "longest": LONGEST_TEXT, "form_share": SHARE, "form_lines": FORMS}
    count = len(report["repositories"])
    return template.format(**{**report, **tables, **fixed, "repository_count": count})


def _asked(found: Mapping[str, Any] | None) -> str:
    """One paragraph on the annotator that was asked about doubtful comments; empty where none was."""
    if found is None:
        return ""
    counts = ", ".join(
        f"{name.replace('_', ' ')} {found[name]:,}" for name in ("confirm", "deny", "leave_open")
    )
    return (
        f"\n\nA language model, {found['model']}, was asked what {found['comments']:,} doubtful comments "
        f"state ({counts}). What it confirms has the kind `asked`; `answered` means that nothing else backs "
        "it. The audit has its replies."
    )


def columns_table(columns: Mapping[str, str]) -> str:
    """Return the table of a data set's columns."""
    return table(("column", "meaning"), ((f"`{name}`", meaning) for name, meaning in columns.items()))


def _lengths(tokens: Mapping[str, Any]) -> str:
    found = {name: row for name, row in tokens.items() if name != "tokenizer"}
    head = (column.replace("_", " ") for column in next(iter(found.values())))
    return table(("split", *head), ((name, *row.values()) for name, row in found.items()))


def _lexical(areas: Mapping[str, float]) -> str:
    """One line on how far counting words goes; empty where there is nothing to compare."""
    shown = ", ".join(f"`{kind}` {area}" for kind, area in areas.items())
    measure = "area under the ROC curve, 0.5 is chance"
    said = f"How well shared words alone tell duplicates from negatives ({measure}): {shown}."
    return f"\n\n{said}" if areas else ""


def _placeholder(found: Mapping[str, Mapping[str, float]]) -> str:
    """One line on what masked references alone tell; empty where there is nothing to compare."""
    if not found:
        return ""
    shares, areas = found["pairs_with_one"], found["auc"]
    return (
        f"\n\nMasked references stand in {shares['duplicates']:g} % of the duplicates and "
        f"{shares['negatives']:g} % of the negatives. How well they alone tell the two apart: by presence "
        f"{areas['presence']}, by count {areas['count']}."
    )


def _samples(samples: Mapping[str, Sequence[Mapping[str, str]]]) -> str:
    def cell(pair: Mapping[str, str], side: str) -> str:
        name = "#" + pair[f"url{side}"].rpartition("/")[2]
        text = pair[f"excerpt{side}"].translate({ord(sign): f"\\{sign}" for sign in "\\|`*_<>[]"})
        return f"[{name}]({pair[f'url{side}']}) {text}".rstrip()

    rows = (
        (f"`{kind}`", cell(pair, "1"), cell(pair, "2"), f"[{pair['evidence']}]({pair['evidence_url']})"
         if pair["evidence_url"] else pair["evidence"])
        for kind, pairs in samples.items()
        for pair in pairs
    )  # fmt: skip
    return table(("kind", "first", "second", "evidence"), rows)


def _repositories(report: Mapping[str, Any]) -> str:
    """Pairs, issues and comments of every repository, and how far it was read, most pairs first; the rest."""
    pairs, ledger = report["repositories"], report["ledger"]
    used = {one["name"]: one for one in ledger["repositories"] if one["used"]}
    rows = (
        (name, *(f"{pairs.get(name, {}).get(label, 0):,}" for label in _COUNTS[:2]),
         *(f"{used[name][what]:,}" for what in ("issues", "comments")), used[name]["read"])
        for name in (*pairs, *sorted(used.keys() - pairs))
    )  # fmt: skip
    found = table(("repository", "positives", "negatives", "issues", "comments", "read"), rows)
    outdated = [(one["name"], one["said"]) for one in used.values() if one["said"]]
    hidden = [(name, f"{one['hidden']:,}") for name, one in used.items() if one["hidden"]]
    reasons = Counter(ledger["issues"].values()).most_common()
    for said, head, listed in (
        ("Repositories left out", ("repository", "reason"), [*report["left_out"].items()]),
        ("Refused when last asked; what was read before counts", ("repository", "reason"), outdated),
        ("Issues that GitHub lists and does not show to the token", ("repository", "issues"), hidden),
        ("Issues that GitHub did not show, or not whole", ("reason", "issues"), reasons),
        ("Read from event dumps", ("what", "found"), dump_rows(ledger["dumps"])),
    ):
        if listed:
            found += f"\n\n{said}:\n\n{table(head, listed)}"
    return found


def _left_out(report: Mapping[str, Any]) -> str:
    links, meanings = report["links"], {**REASONS, **DROPPED, **_NEGATIVES}
    parts = {"tentative": links["tentative"], "rejected": links["rejected"]}
    parts |= {"pair": report["pairs"]["dropped"], "negative pair": report["negatives"]["dropped"]}
    rows = [
        (what, f"`{reason}`", meanings[reason.removeprefix("denial_")], f"{count:,}")
        for what, found in parts.items()
        for reason, count in found.items()
        if count
    ]
    return table(("what", "reason", "meaning", "count"), rows) if rows else "Nothing."
