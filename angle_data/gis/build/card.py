"""The card of a data set of issue pairs: how to load it, what it holds, how it came about, what it lacks.

A pure function of the report of a build; the text is in `card.md.txt`, and the tables are made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from angle_data.gis.build.clean import LONGEST
from angle_data.gis.build.dataset import COLUMNS, IDS_COLUMNS
from angle_data.gis.build.links import REASONS
from angle_data.gis.build.negatives import DENIALS
from angle_data.gis.build.positives import DROPPED
from angle_data.gis.build.report import LIMIT
from angle_data.publish.card import size_class

_IDS_NOTE = """\
The texts are not included. `angle-data gis rehydrate` fetches them again from GitHub and leaves out what was
deleted since.

"""
_NEGATIVES = {
    "no_hard_partner": "no issue near by words or subject was found",
    "no_partner": "no other issue was found",
    "repeated": "said before",
    **DENIALS,
}
_EVIDENCE = {"events": "GitHub's own marks alone", "comments": "comments alone"}
_COUNTS = ("positives", "negatives", "pairs", "random", "hard", "explicit_non_duplicate", "issues")


def render_gis_card(report: Mapping[str, Any], *, ids_only: bool, figures: Iterable[str] = ()) -> str:
    """Return the card as Markdown with YAML front matter.

    `report` is what `report.json` holds, `figures` are names of files in the folder `figures/` beside the
    card.
    """
    splits, links = report["splits"], report["links"]
    options, tokens = report["options"], report["tokens"]
    template = Path(__file__).with_name("card.md.txt").read_text(encoding="utf-8")
    return template.format(
        front=_front(sum(found["pairs"] for found in splits.values())),
        repository_count=len(report["repositories"]),
        ids_note=_IDS_NOTE if ids_only else "",
        columns=_columns(IDS_COLUMNS if ids_only else COLUMNS),
        sizes=_labels("split", splits, _COUNTS),
        tokenizer=tokens["tokenizer"],
        limit=LIMIT,
        lengths=_lengths(tokens),
        overlaps=_table(
            ("pairs", "1-gram", "2-gram", "3-gram"),
            ((name, *found.values()) for name, found in report["overlap"].items()),
        ),
        texts_cut=report["texts_cut"],
        longest=LONGEST,
        lexical=_table(("negatives", "area"), report["lexical"].items()),
        repositories=_labels("repository", report["repositories"]),
        repositories_left_out=_repositories_left_out(report["left_out"]),
        figures="".join(f"\n![{name[:-4].replace('-', ' ')}](figures/{name})\n" for name in figures),
        evidence=_table(
            ("evidence", "count"), ((f"`{name}`", f"{n:,}") for name, n in links["by_evidence"].items())
        ),
        statements=links["statements"],
        accepted=links["accepted"],
        left_out=_left_out(report),
        checks=_listed(report["checks"]),
        max_pairs=options["max_pairs_per_cluster"],
        both_percent=report["negatives"]["both_sides_in_positives_percent"],
        split_by=options["split_by"],
        periods=_periods(report["periods"]),
        selected=_selected(options),
    )


def render_rehydrated_card(
    splits: Mapping[str, Mapping[str, int]], dropped: Mapping[str, int], edited: int
) -> str:
    """Return the card of texts that were fetched again; `splits` counts positives and negatives."""
    return f"""\
{_front(sum(sum(found.values()) for found in splits.values()))}
# Duplicate issues on GitHub

Pairs of issues whose texts were fetched again from GitHub and cleaned. Label 1: duplicates. Label 0: none,
as far as is known.

## Columns

{_columns(COLUMNS)}

## Sizes

{_labels("split", splits)}

Left out since the pairs were collected: {_listed(dropped)}. Of the pairs kept, {edited:,} have a text that
was edited since, or that is cleaned in another way now.
"""


def _front(pairs: int) -> str:
    """The front matter: the kind of task, and the class of size; see `publish.card` for what is left out."""
    return f"""\
---
# No licence is stated: the texts belong to those who wrote them. Add one for the compilation if you may.
task_categories:
- sentence-similarity
tags:
- sentence-pairs
- duplicate-detection
size_categories:
- {size_class(pairs)}
---"""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _columns(columns: Mapping[str, str]) -> str:
    return _table(("column", "meaning"), ((f"`{name}`", meaning) for name, meaning in columns.items()))


def _labels(head: str, found: Mapping[str, Mapping[str, int]], names: Sequence[str] = _COUNTS[:2]) -> str:
    """A table of counts by name; a count that is not there is 0."""
    rows = ((name, *(f"{counts.get(column, 0):,}" for column in names)) for name, counts in found.items())
    return _table((head, *names), rows)


def _lengths(tokens: Mapping[str, Any]) -> str:
    found = {name: row for name, row in tokens.items() if name != "tokenizer"}
    head: Mapping[str, Any] = next(iter(found.values()), {})
    return _table(
        ("split", *(column.replace("_", " ") for column in head)),
        ((name, *row.values()) for name, row in found.items()),
    )


def _repositories_left_out(found: Mapping[str, str]) -> str:
    """A table with its introduction and the blank lines around it; nothing where nothing was left out."""
    if not found:
        return ""
    table = _table(("repository", "reason"), found.items())
    return f"\nRepositories left out, because they could not be read:\n\n{table}\n"


def _left_out(report: Mapping[str, Any]) -> str:
    """A table of what was left out: statements, positive pairs, and negative pairs wanted or said."""
    links, known = report["links"], {**REASONS, **DROPPED, **_NEGATIVES}
    meanings = {reason: text.removeprefix("tentative: ") for reason, text in known.items()}
    parts = {"tentative": links["tentative"], "rejected": links["rejected"]}
    parts |= {"pair": report["pairs"]["dropped"], "negative pair": report["negatives"]["dropped"]}
    rows = [
        (
            what,
            f"`{reason}`",
            meanings[reason.removeprefix("denial_")],
            f"{count:,}",
        )
        for what, found in parts.items()
        for reason, count in found.items()
        if count
    ]
    return _table(("what", "reason", "meaning", "count"), rows) if rows else "Nothing."


def _periods(found: Mapping[str, str | None]) -> str:
    until = ", ".join(f"{name} until {last}" for name, last in found.items() if last)
    return f"\n  Every issue of a split was opened in its period: {until}, then the rest." if until else ""


def _selected(options: Mapping[str, Any]) -> str:
    """What of the crawl counts, where that is not all of it; a line of the list."""
    days = " and ".join(f"{word} {options[word]}" for word in ("since", "until") if options[word])
    parts = [f"issues opened {days}"] if days else []
    if options["strategy"] in _EVIDENCE:
        parts.append(f"evidence: {_EVIDENCE[options['strategy']]}")
    return f"- Chosen of what was crawled: {'; '.join(parts)}.\n" if parts else ""


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()) or "none"
