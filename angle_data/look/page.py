"""Fills a page of this folder: one file that opens without a network and builds itself from its data.

The data stand in it as JSON and reach the document as text only, so no text of the data is ever run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from angle_data.jsonl import replace_file

_HERE = Path(__file__).parent


def write_page(path: Path, name: str, title: str, data: dict[str, Any]) -> None:
    """Write the page `name` with `data` to `path`, atomically."""
    page = (_HERE / f"{name}.html").read_text(encoding="utf-8")
    style = (_HERE / "style.css").read_text(encoding="utf-8")
    # In a script only "<" could end it; in JSON it stands in strings only.
    shown = json.dumps({"title": title, **data}, ensure_ascii=False).replace("<", "\\u003c")
    with replace_file(path) as stream:
        stream.write(page.replace("{{style}}", style).replace("{{data}}", shown))
