"""Fills a page of this folder: one file that opens without a network and builds itself from its data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import replace_file


def write_page(path: Path, name: str, data: dict[str, Any]) -> None:
    """Write the page `name` to `path`, atomically; it shows what stands in `data` as text, never as HTML."""
    page, style = (Path(__file__).with_name(n).read_text("utf-8") for n in (f"{name}.html", "style.css"))
    # A script ends at the first "</"; in JSON that can stand in strings only.
    shown = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    with replace_file(path) as stream:
        stream.write(page.replace("{{style}}", style).replace("{{data}}", shown))


def check_ending(option: str, path: Path, ending: str) -> None:
    """Raise an `InputError` unless a file has the ending that it must have, so that no other is replaced."""
    if path.suffix.lower() != ending:
        raise InputError(f"{option} {path}: give a name that ends in {ending}")
