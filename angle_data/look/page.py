"""Fills `page.html` with a part of this folder: one file that opens without a network and shows its data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import write_text


def write_page(path: Path, name: str, data: dict[str, Any]) -> None:
    """Write the page with the part `name` to `path`, atomically; `data` is shown as text, never as HTML."""
    files = (Path(__file__).with_name(n) for n in ("page.html", "style.css", f"{name}.html"))
    page, style, part = (file.read_text("utf-8").rstrip("\n") for file in files)
    # A script ends at the first "</"; in JSON that can stand in strings only.
    shown = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    for place, content in {"name": name, "style": style, "part": part, "data": shown}.items():
        page = page.replace(f"{{{{{place}}}}}", content)
    write_text(path, f"{page}\n")


def check_ending(option: str, path: Path, ending: str) -> None:
    """Raise an `InputError` unless a file has the ending that it must have, so that no other is replaced."""
    if path.suffix.lower() != ending:
        raise InputError(f"{option} {path}: give a name that ends in {ending}")
