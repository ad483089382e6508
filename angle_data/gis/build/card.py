"""The card of a data set of issue pairs: how to load it, what it holds, how it came about, what it lacks.

A pure function of the report of a build.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from angle_data.gis.build.clean import CHANGES
from angle_data.gis.build.dataset import COLUMNS, IDS_COLUMNS
from angle_data.gis.build.links import REASONS
from angle_data.gis.build.positives import DROPPED
from angle_data.gis.build.report import LIMIT

_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")


def render_gis_card(report: Mapping[str, Any], *, ids_only: bool, figures: Iterable[str] = ()) -> str:
    """Return the card as Markdown with YAML front matter.

    `report` is what `report.json` holds, `figures` are names of files in the folder `figures/` beside the
    card.
    """
    splits = report["splits"]
    columns = IDS_COLUMNS if ids_only else COLUMNS
    return f"""\
{_front({name: found["pairs"] for name, found in splits.items()})}
# Duplicate issues on GitHub

Pairs of issues of {len(report["repositories"])} repositories. Label 1: the two are duplicates. GitHub's own
mark says so, or the comment of an owner, member or collaborator, or of the author of the duplicate, or of
anybody else if the duplicate was also labelled or closed as one, or closed by the writer at that time; or both
are duplicates of the same original. Label 0: they are not, as far as is known.

```python
from datasets import load_dataset
pairs = load_dataset("path/to/this/folder")
```

{_IDS_NOTE if ids_only else ""}## Columns

{_table(("column", "meaning"), ((f"`{name}`", meaning) for name, meaning in columns.items()))}

## Sizes

{_sizes(splits)}

## Length

Tokenizer: {report["tokens"]["tokenizer"]}. Shares in percent; long texts have more than {LIMIT} tokens.

{_lengths(report["tokens"])}

## Overlap

Mean Jaccard index of the two texts' word n-grams, in percent.

{_table(("pairs", "1-gram", "2-gram", "3-gram"), _overlaps(report["overlap"]))}

## Repositories

{_table(("repository", "positives", "negatives"), _repositories(report["repositories"]))}
{_repositories_left_out(report["left_out"])}{_figures(figures)}
## Evidence

Accepted statements by what they rest on: `event` is GitHub's mark, `comment:KIND:RANK` a comment, by its words
and by what backs it: `event`, GitHub's mark says the same; `write_role`, an owner, member or collaborator wrote
it; `corroborated`, the duplicate was labelled or closed as one, or closed by the writer within ten minutes;
`admitted`, the author of the duplicate wrote it. Several may state the same link.

{_counts("evidence", report["links"]["by_evidence"])}

## What was left out

{report["links"]["statements"]:,} statements were found, {report["links"]["accepted"]:,} \
accepted{_left_out(report)}

{_pairs_left_out(report["pairs"]["dropped"])}

{_negatives_left_out(report["negatives"]["dropped"])}

## Checks

In two splits at once: {_listed(report["checks"])}.

## How it was made

- Text: title, blank line, body. Cleaning changed \
{report["cleaning"]["share_changed"]} % of the texts{_cleaning(report["cleaning"])}
- Clusters are the transitive closure of the accepted links. A cluster gives at most
  {report["options"]["max_pairs_per_cluster"]} positive pairs, links before pairs of duplicates of one issue.
- Negatives come from the same repository: `random` ones resemble the original in age and labels, `hard` ones
  are near by words (BM25), of `explicit_non_duplicate` ones somebody said so. None lies in one cluster, is
  linked by a reference, or has a side that is a duplicate of something unknown. Both sides occur in positive
  pairs in {report["negatives"]["both_sides_in_positives_percent"]} % of them; the second is the original of a
  duplicate in {report["negatives"]["second_is_an_original_percent"]} %.
- Splits by {report["options"]["split_by"]}: no issue, cluster or near-identical text is in two.\
{_periods(report["periods"])}
{_selected(report["options"])}
## Limits

- A label is as good as the words it rests on; the error rate is to be measured by reading a sample.
- Hard negatives may be duplicates that nobody marked.
- Secrets, e-mail addresses and logins are removed where their shape is known. People's names are not.
- Issues change and are deleted, and a crawl does not notice a deletion. Honour deletions: before you publish,
  let `angle-data gis rehydrate` fetch the texts again from the numbers (`--ids-only`); it leaves out what is
  gone.
"""


def render_rehydrated_card(
    splits: Mapping[str, Mapping[int, int]],
    dropped: Mapping[str, int],
    edited: int,
    *,
    origin: str = "",
    repositories: Mapping[str, str] | None = None,
) -> str:
    """Return the card of a data set whose texts were fetched again.

    `splits` counts its pairs by label, `origin` names the data set of ids, `repositories` are those that
    could not be read, with the reason.
    """
    rows = ((name, f"{found.get(1, 0):,}", f"{found.get(0, 0):,}") for name, found in splits.items())
    return f"""\
{_front({name: sum(found.values()) for name, found in splits.items()})}
# Duplicate issues on GitHub

Pairs of issues whose texts were fetched again from GitHub and cleaned. Label 1: duplicates. Label 0: none,
as far as is known.

## Columns

{_table(("column", "meaning"), ((f"`{name}`", meaning) for name, meaning in COLUMNS.items()))}

## Sizes

{_table(("split", "positives", "negatives"), rows)}

Left out since the pairs were collected: {_listed(dropped)}. Of the pairs kept, {edited:,} have a text that
was edited since, or that is cleaned in another way now.
{_repositories_left_out(repositories or {})}
<!-- {origin} -->
"""


def _front(pairs: Mapping[str, int]) -> str:
    """The front matter: the kind of task, and the class of size; see `publish.card` for what is left out."""
    total = sum(pairs.values())
    size = next((name for power, name in enumerate(_SIZES, start=3) if total < 10**power), "n>100M")
    return f"""\
---
# No licence is stated: the texts belong to those who wrote them. Add one for the compilation if you may.
task_categories:
- sentence-similarity
tags:
- sentence-pairs
- duplicate-detection
size_categories:
- {size}
---"""


_IDS_NOTE = """\
The texts are not included. `angle-data gis rehydrate` fetches them again from GitHub and leaves out what was
deleted since.

"""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _counts(name: str, counts: Mapping[str, int]) -> str:
    return _table((name, "count"), ((f"`{key}`", f"{count:,}") for key, count in counts.items()))


def _sizes(splits: Mapping[str, Mapping[str, int]]) -> str:
    kinds = ("random", "hard", "explicit_non_duplicate")
    head = ("split", "positives", "negatives", "pairs", *kinds, "issues")
    rows = []
    for name, found in splits.items():
        shown = (found.get(column, 0) for column in head[1:])
        rows.append((name, *(f"{count:,}" for count in shown)))
    return _table(head, rows)


def _lengths(tokens: Mapping[str, Any]) -> str:
    found = {name: row for name, row in tokens.items() if name != "tokenizer"}
    head: Mapping[str, Any] = next(iter(found.values()), {})
    return _table(
        ("split", *(column.replace("_", " ") for column in head)),
        ((name, *row.values()) for name, row in found.items()),
    )


def _repositories(found: Mapping[str, Mapping[str, int]]) -> Iterable[tuple[str, str, str]]:
    for name, counts in found.items():
        yield name, f"{counts.get('positives', 0):,}", f"{counts.get('negatives', 0):,}"


def _overlaps(found: Mapping[str, Mapping[str, float]]) -> Iterable[tuple[object, ...]]:
    for name, overlaps in found.items():
        yield name, *overlaps.values()


def _repositories_left_out(found: Mapping[str, str]) -> str:
    """A table with its introduction and the blank lines around it; nothing where nothing was left out."""
    if not found:
        return ""
    table = _table(("repository", "reason"), found.items())
    return f"\nRepositories left out, because they could not be read:\n\n{table}\n"


def _figures(names: Iterable[str]) -> str:
    return "".join(f"\n![{name.removesuffix('.png').replace('-', ' ')}](figures/{name})\n" for name in names)


def _left_out(report: Mapping[str, Any]) -> str:
    """The end of the sentence that counts the statements, and the table of the rejected ones."""
    links = report["links"]
    rows = [
        (status, f"`{reason}`", REASONS[reason].removeprefix("tentative: "), f"{count:,}")
        for status in ("tentative", "rejected")
        for reason, count in links[status].items()
    ]
    return f", and not:\n\n{_table(('status', 'reason', 'meaning', 'count'), rows)}" if rows else "."


def _pairs_left_out(found: Mapping[str, int]) -> str:
    rows = [(f"`{name}`", DROPPED[name], f"{count:,}") for name, count in found.items() if count]
    if not rows:
        return "No positive pair that the accepted links allow was left out."
    table = _table(("reason", "meaning", "count"), rows)
    return f"Positive pairs that the accepted links allow and that were left out:\n\n{table}"


def _negatives_left_out(found: Mapping[str, int]) -> str:
    """What was wanted in vain, and what was said in vain; see `negatives`."""
    vain = {_VAIN[name]: count for name, count in found.items() if name in _VAIN and count}
    said = {name: count for name, count in found.items() if name not in _VAIN and count}
    lines = [f"{text}: {count:,}." for text, count in vain.items()]
    if said:
        listed = ", ".join(
            f"{count:,} ({_DENIAL.get(name) or REASONS[name.removeprefix('denial_')]})"
            for name, count in said.items()
        )
        lines.append(f"Statements that two issues are no duplicates, and that make no pair: {listed}.")
    return "\n".join(lines) or "No negative pair was wanted in vain."


_VAIN = {
    "no_hard_partner": "Negative pairs for which no issue near by words was found, so that it is random",
    "no_partner": "Negative pairs for which no other issue was found",
}
_DENIAL = {"denial_repeated": "said before"}


def _cleaning(found: Mapping[str, Any]) -> str:
    """The end of the sentence on cleaning, and the list of what was changed."""
    lines = [f"\n  - {CHANGES[name]}: {share} %" for name, share in found["by_change_percent"].items()]
    return f":{''.join(lines)}" if lines else "."


def _periods(found: Mapping[str, str | None]) -> str:
    until = ", ".join(f"{name} until {last}" for name, last in found.items() if last)
    return f"\n  Every issue of a split was opened in its period: {until}, then the rest." if until else ""


def _selected(options: Mapping[str, Any]) -> str:
    """What of the crawl counts, where that is not all of it; a line of the list."""
    said = {"events": "GitHub's own marks alone", "comments": "comments alone"}.get(options["strategy"])
    days = [f"{word} {options[word]}" for word in ("since", "until") if options[word]]
    parts = [f"issues opened {' and '.join(days)}"] if days else []
    parts += [f"evidence: {said}"] if said else []
    return f"- Chosen of what was crawled: {'; '.join(parts)}.\n" if parts else ""


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()) or "none"
