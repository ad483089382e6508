"""The columns of the data set, and the file beside its rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from angle_data.jsonl import write_jsonl

PairRow = dict[str, Any]

_COMMON: dict[str, str] = {
    "label": "1 duplicates, 0 not",
    "repo": "repository of the first issue",
    "number1": "number of the first issue",
    "number2": "number of the second issue",
    "url1": "page of the first issue",
    "url2": "page of the second issue",
    "created1": "when the first issue was opened (UTC)",
    "created2": "when the second issue was opened (UTC)",
    "kind": "`duplicate`, `random`, `hard` or `explicit_non_duplicate`",
    "evidence": "what the label rests on",
    "evidence_url": "where to read it, empty where nobody said it",
    "cluster": "id of the group of duplicates, for negative pairs that of the first issue",
}
COLUMNS: dict[str, str] = {
    "text1": "title and body of the first issue, cleaned",
    "text2": "title and body of the second issue, cleaned",
    **_COMMON,
}
"""Column -> meaning, in the order of the file."""
IDS_COLUMNS: dict[str, str] = {
    **_COMMON,
    "hash1": "first 16 hexadecimal digits of the sha256 of the first text",
    "hash2": "first 16 hexadecimal digits of the sha256 of the second text",
}
"""The columns of a data set without texts."""

FORMS = "form-lines.jsonl"
"""The lines that cleaning removed because they are of issue forms, which `gis rehydrate` removes too."""


def write_forms(folder: Path, forms: Mapping[str, Mapping[str, int]]) -> None:
    """Write the lines that `forms.FormLines` found, by repository."""
    found = ({"repo": repo, "line": line, "issues": n} for repo in forms for line, n in forms[repo].items())
    write_jsonl(folder / FORMS, found)
