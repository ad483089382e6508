"""The parts of a page: tables, figures, folded sections. Every text that comes in is escaped here.

Functions return HTML. Tables scroll inside their own box, so that a page never does sideways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from angle_data.jsonl import replace_file
from angle_train.report.figures import Panel
from angle_train.report.style import STYLE

_CLIP = 150  # characters of a text that stand in a table
_MOST = 4000  # characters of a text that can be unfolded


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is HTML already and is not escaped again."""

    text: str


Cell = str | Html
Row = tuple[str, Sequence[Cell]]
"""Class names of the row, and its cells."""


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Row], numbers: Sequence[int] = (), *, texts: int = 0
) -> str:
    """Return a table; the first cell of a row is its heading.

    Args:
        caption: What the table shows.
        columns: Names.
        rows: See `Row`.
        numbers: Positions of the columns that are aligned to the right.
        texts: How many of the first columns hold long texts; such rows have no heading.
    """
    head = "".join(
        f'<th scope="col"{_class("number" if i in numbers else "")}>{escape(name)}</th>'
        for i, name in enumerate(columns)
    )
    body = "".join(
        f"<tr{_class(kind)}>"
        + "".join(_cell(cell, i, numbers, texts, columns[i]) for i, cell in enumerate(cells))
        + "</tr>"
        for kind, cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption><span>{escape(caption)}</span></caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(panels: Sequence[Panel], caption: str, legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return panels side by side where there is room, with a legend of `(class, name)` and a caption."""
    shown = "".join(
        f'<div class="panel">{f"<p>{escape(title)}</p>" if title else ""}{svg}</div>' for title, svg in panels
    )
    keys = "".join(f'<li class="{style}">{escape(name)}</li>' for style, name in legend)
    listed = f'<ul class="legend">{keys}</ul>' if keys else ""
    below = f"{listed}<figcaption>{escape(caption)}</figcaption>"
    return f'<figure><div class="panels">{shown}</div>{below}</figure>'


def clipped(text: str) -> Html:
    """Return a text for a table cell; what is longer than 150 characters can be unfolded.

    Of a text beyond 4,000 characters the rest is counted, not shown.
    """
    if len(text) <= _CLIP:
        return Html(f'<span dir="auto">{escape(text)}</span>')
    rest = f" … ({len(text) - _MOST:,} more characters)" if len(text) > _MOST else ""
    start = escape(text[:_CLIP].rstrip())
    return Html(
        f'<details><summary dir="auto">{start}…</summary>'
        f'<span dir="auto">{escape(text[:_MOST])}</span>{rest}</details>'
    )


def section(title: str, *parts: str) -> str:
    """Return a section with its heading."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def folded(summary: str, *parts: str, opened: bool = False) -> str:
    """Return parts that the reader can fold away."""
    return (
        f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{''.join(parts)}</details>"
    )


def write_page(path: Path, title: str, body: Sequence[str]) -> None:
    """Write a page, atomically."""
    with replace_file(path) as stream:
        stream.write(
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>\n{STYLE}\n</style></head>\n<body>\n<main>\n"
        )
        stream.write("\n".join(body))
        stream.write("\n</main>\n</body></html>\n")


def _cell(cell: Cell, column: int, numbers: Sequence[int], texts: int, name: str) -> str:
    content = cell.text if isinstance(cell, Html) else escape(cell)
    if column < texts:
        return f'<td class="text">{content}</td>'
    if column == 0:
        return f'<th scope="row">{content}</th>'
    kind = "number" if column in numbers else "verdict-cell" if name == "verdict" else ""
    return f"<td{_class(kind)}>{content}</td>"


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""
