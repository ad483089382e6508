"""Counts of a run or data set and a sample of its items: on the terminal, as JSON and as a page."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError
from angle_data.look.page import write_page
from angle_data.look.read import Counts, Item, Source, by_source, count, find, spread
from angle_data.text import counted

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST = 300  # characters of a text on the terminal
_WIDEST = 120
_COLOURS = {"kept": "green", "flipped": "yellow", "rejected": "red"}
# Controls, which could steer a terminal, and marks that turn the direction of all that follows.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


@dataclass(frozen=True, slots=True)
class Look:
    """A sample of a source, `items`, those of one first text next to each other, and the counts of all."""

    source: Source
    counts: Counts
    items: tuple[Item, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON; texts and replies in full."""
        counts = self.counts
        kinds: dict[str, Any] = {kind: {"count": number} for kind, number in sorted(counts.kinds.items())}
        for name, table in (("groups", counts.groups), ("marks", counts.marks)):
            for (kind, value), number in table.most_common():
                if value:
                    kinds[kind].setdefault(name, {})[value] = number
        return {
            "path": str(self.source.path),
            "what": self.source.what,
            "kinds": kinds,
            "annotators": dict(counts.annotators.most_common()),
            "reasons": dict(self.source.reasons),
            "items": [asdict(item) for item in self.items],
        }


def look(
    path: Path, *, n: int, reason: str | None = None, annotator: str | None = None, seed: int = 0
) -> Look:
    """Return the counts of what stands at `path`, and a sample of `n` spread over kinds, reasons and groups.

    Args:
        path: A run, ensemble, data set or file of pairs.
        n: How many items at most.
        reason: A reason code, flag or kind; others are left out of the sample.
        annotator: Whose items; those of others are left out of the sample.
        seed: Another one draws other items.

    Raises:
        InputError: There is nothing to look at, `n` is below 1, or no item has the reason or annotator.
    """
    if n < 1:
        raise InputError(f"--n must be at least 1, got {n}")
    source = find(path)
    counts = count(source)
    marks = {*counts.kinds, *(mark for _, mark in counts.marks)}
    _check("--reason", reason, marks)
    _check("--annotator", annotator, counts.annotators)
    wanted = (
        item
        for item in source.items()
        if reason in (None, *item.marks) and annotator in (None, *item.annotators)
    )
    sample = spread(
        wanted,
        stratum=lambda item: (item.kind, item.reason or item.flags, item.group, counts.band(item)),
        rank=by_source(seed),
        most=n,
    )
    drawn = list(islice(sample, n))
    if not drawn:
        raise InputError(f"{path}: nothing of {annotator} has the reason {reason}; leave one of them out")
    first = {item.text1: number for number, item in reversed(list(enumerate(drawn)))}
    drawn.sort(key=lambda item: (first[item.text1], item.group, item.kind, item.text2))
    return Look(source, counts, tuple(drawn))


def _check(option: str, value: str | None, known: Mapping[str, int] | set[str]) -> None:
    if value is None or value in known:
        return
    near = difflib.get_close_matches(value, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InputError(f"{option} {value}: not there{hint} It has {', '.join(sorted(known)) or 'none'}")


def write_show_page(path: Path, found: Look) -> None:
    """Write the page of a sample, atomically.

    Raises:
        InputError: The name does not end in .html.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--html {path}: give a name that ends in .html")
    write_page(path, "show", f"{found.source.path} ({found.source.what})", found.to_dict())


def print_look(found: Look) -> None:
    """Print counts and sample on stdout, in two columns; coloured on a terminal, else 80 characters wide."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False, soft_wrap=False)
    console.width = min(console.width, _WIDEST) if console.is_terminal else 80
    told = found.to_dict()
    console.print(f"{told['path']}: {told['what']}")
    for kind, row in told["kinds"].items():
        parts = "; ".join(_counts(row[name]) for name in ("groups", "marks") if name in row)
        console.print(_line(f"{kind:<9}{row['count']:>9,}  ", parts))
    if told["annotators"]:
        console.print(_line("annotators         ", _counts(told["annotators"])))
    before = None
    for item in found.items:
        _print_item(console, item, again=item.text1 == before)
        before = item.text1
    total = found.counts.kinds.total()
    console.print(f"\n{counted(len(found.items), 'item')} of {total:,}; --n shows more, --html makes a page")


def _print_item(console: Console, item: Item, *, again: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    facts = [f"{name} {_fact(value)}" for name, value in item.facts.items()]
    head = [item.group, item.reason, *item.flags, *facts, ", ".join(item.annotators)]
    console.print()
    tags = Text(item.kind, style=_COLOURS[item.kind])
    tags.append("".join(f" · {_short(part)}" for part in head if part and part != item.kind), style="dim")
    console.print(tags)
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in range(2):
        table.add_column(ratio=1, overflow="fold")
    right = Text(_short(item.text2))
    if item.raw:
        right.append(f"{'' if item.text2.strip() else '(nothing)'}\nreply: {_short(item.raw)}", style="dim")
    table.add_row(Text('"' if again else _short(item.text1)), right)
    console.print(table)


def _line(label: str, text: str) -> Any:
    from rich.padding import Padding
    from rich.table import Table

    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(label, text)
    return Padding(table, 0)


def _counts(table: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in table.items())


def _fact(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _short(text: str) -> str:
    """Return a text for the terminal: in one line, without controls, cut where it is long."""
    plain = _CONTROLS.sub(" ", text.strip())
    more = len(plain) - _LONGEST
    return plain if more <= 0 else f"{plain[:_LONGEST]}… ({more:,} more characters)"
