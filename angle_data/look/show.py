"""Counts of a run or data set and a sample of its items: on the terminal, as JSON and on a page."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError
from angle_data.jsonl import write_text
from angle_data.look.read import ShownItem, count, find, items_of, spread
from angle_data.text import stable_hash

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST = 300  # characters of a text on the terminal
_WIDTHS = (80, 120)  # where the output is no terminal, and at most
_COLOURS = {"kept": "green", "flipped": "yellow", "rejected": "red"}
# Controls, which could steer a terminal, and marks that turn the direction of all that follows.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


def look(
    path: Path, *, n: int, reason: str | None = None, annotator: str | None = None, seed: int = 0
) -> dict[str, Any]:
    """Return the counts of what stands at `path`, and `items`: at most `n`, spread over kinds and groups.

    The sample is of one `reason` (a kind, group or mark) and one `annotator`, if given. `count` is of all
    items, `matching` of those that it is drawn from. Each stratum begins with the same texts, so that what
    was kept and rejected of a text comes together. The items are those of `read.ShownItem` as dictionaries.
    """
    if n < 1:
        raise InputError(f"--n must be at least 1, got {n}")
    what, files = find(path)
    counts = count(files)
    _check("--reason", reason, {*counts.kinds, *(part for _, part in counts.parts)})
    _check("--annotator", annotator, counts.annotators)
    seen: Counter[int] = Counter()
    matching = 0

    def wanted() -> Iterator[ShownItem]:
        nonlocal matching
        for item in items_of(files):
            if reason in (None, item.kind, item.group, *item.marks) and annotator in (None, *item.annotators):
                matching += 1
                yield item

    def stratum(item: ShownItem) -> tuple[Any, ...]:
        return item.kind, item.marks, item.group, counts.band(item)

    def rank(item: ShownItem) -> tuple[int, int]:
        same = stable_hash(f"{stratum(item)} {item.text1}")
        seen[same] += 1
        return seen[same], stable_hash(f"{seed} look {item.text1}")

    drawn = list(islice(spread(wanted(), stratum, rank, n), n))
    if not drawn:
        raise InputError(f"{path}: nothing of {annotator} is {reason}; leave out --reason or --annotator")
    place = {item.text1: number for number, item in reversed(list(enumerate(drawn)))}
    drawn.sort(key=lambda item: (place[item.text1], item.kind, item.group, item.text2))
    parts = counts.parts.most_common()
    return {
        "title": f"{path}: {what}",
        "count": counts.kinds.total(),
        "matching": matching,
        "kinds": {
            kind: {"count": number, "of": {part: n for (its, part), n in parts if its == kind}}
            for kind, number in sorted(counts.kinds.items())
        },
        "annotators": dict(counts.annotators.most_common()),
        "items": [asdict(item) for item in drawn],
    }


def _check(option: str, value: str | None, known: Collection[str]) -> None:
    if value is not None and value not in known:
        raise InputError(f"{option} {value} does not occur; known: {', '.join(sorted(known)) or 'none'}")


def as_text(found: dict[str, Any]) -> str:
    """Return what `look` returns for people, in two columns; coloured for a terminal, else plain."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    console.width = min(console.width, _WIDTHS[1]) if console.is_terminal else _WIDTHS[0]
    wrapper = textwrap.TextWrapper(console.width, subsequent_indent=" " * 20, break_on_hyphens=False)
    rows = [(kind, row["count"], row["of"]) for kind, row in found["kinds"].items()]
    rows += [("by", len(by), by)] if (by := found["annotators"]) else []
    before = None
    with console.capture() as shown:
        console.print(_line(found["title"]), soft_wrap=True)  # a path is copied whole
        for name, number, parts in rows:
            told = ", ".join(f"{part}: {count:,}" for part, count in parts.items())
            console.print(wrapper.fill(_CONTROLS.sub(" ", f"{name:<9}{number:>9,}  {told}")))
        for item in found["items"]:
            _print_item(console, item, same=item["text1"] == before)
            before = item["text1"]
        console.print(
            f"\n{len(found['items']):,} of {found['matching']:,}; --n shows more, --html makes a page"
        )
    return "\n".join(map(str.rstrip, shown.get().splitlines()))


def _print_item(console: Console, item: dict[str, Any], *, same: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    numbers = {name: f"{v:.3g}" for name, v in item["facts"].items() if isinstance(v, float)}
    facts = [f"{name} {value}" for name, value in (item["facts"] | numbers).items()]
    tags = [item["group"], *item["marks"], *facts, ", ".join(item["annotators"])]
    head = Text(f"\n{item['kind']}", style=_COLOURS[item["kind"]])
    head.append("".join(f" · {_line(tag)}" for tag in tags if tag not in ("", item["kind"])), style="dim")
    reply = f"\nreply: {_line(item['raw'])}" if item["raw"] else ""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for _ in range(2):
        table.add_column(ratio=1, overflow="fold")
    right = Text(_line(item["text2"]) or "(nothing)").append(reply, style="dim")
    table.add_row(Text("(the same text)" if same else _line(item["text1"])), right)
    console.print(head, table, sep="\n")


def _line(text: str) -> str:
    """Return a text in one line, without controls, cut where it is long."""
    plain = _CONTROLS.sub(" ", text.strip())
    more = len(plain) - _LONGEST
    return plain if more <= 0 else f"{plain[:_LONGEST]}… ({more:,} more characters)"


def write_page(path: Path, name: str, data: dict[str, Any]) -> None:
    """Write `page_text` to `path`."""
    write_text(path, page_text(name, data))


def page_text(name: str, data: dict[str, Any], *, served: bool = False) -> str:
    """Return `page.html` with the part `name` and `data`, shown as text: it needs no network.

    One that is `served` may talk to the server that it comes from, and to no other.
    """
    files = (Path(__file__).with_name(n) for n in ("page.html", "style.css", f"{name}.html"))
    page, style, part = (file.read_text("utf-8").rstrip("\n") for file in files)
    # A script ends at the first "</"; in JSON that can stand in strings only.
    shown = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    connect = "; connect-src 'self'" if served else ""
    places = {"name": name, "connect": connect, "style": style, "part": part, "data": shown}
    for place, content in places.items():
        page = page.replace(f"{{{{{place}}}}}", content)
    return f"{page}\n"


def check_ending(option: str, path: Path, ending: str) -> None:
    """Raise an `InputError` unless a file has the ending that it must have, so that no other is replaced."""
    if path.suffix.lower() != ending:
        raise InputError(f"{option} {path}: give a name that ends in {ending}")
