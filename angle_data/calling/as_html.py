"""Rows as a small table for notebooks: HTML without scripts, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

SHOWN_ROWS = 10
_LONGEST = 200  # characters of a cell


def table_html(said: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return sentences above a table of rows, whose columns are all the fields that occur, in their order."""
    shown = list(rows)
    columns = list(dict.fromkeys(name for row in shown for name in row))
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>" for row in shown)
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in said)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if shown else ""
    return f"<div>{sentences}{table}</div>"


def _cell(value: object) -> str:
    """Return a cell: lists as words, long texts cut, nothing for None."""
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    text = "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()}…"
    return f'<td dir="auto" style="text-align:left">{escape(cut)}</td>'
