"""The columns of the data set, the files beside its rows, and its rows read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl, write_jsonl
from angle_data.publish.rows import data_file
from angle_data.splits import SPLITS
from angle_data.tables import read_table

Row = dict[str, Any]

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


def read_forms(directory: Path) -> dict[str, dict[str, int]]:
    """Return what `write_forms` wrote; nothing where there is no such file."""
    found: dict[str, dict[str, int]] = {}
    for _, row in read_jsonl(directory / FORMS) if (directory / FORMS).exists() else ():
        found.setdefault(row["repo"], {})[row["line"]] = row["issues"]
    return found


def read_dataset(directory: Path) -> Iterator[tuple[str, Row]]:
    """Yield (split, row) of a data set of issue pairs; an `InputError` if the folder holds none."""
    splits = [split for split in sorted(SPLITS) if (directory / data_file(split)).exists()]
    if not splits:
        raise InputError(f"{directory} holds no data set (data/*.parquet); build one first or check the path")
    for split in splits:
        for _, row in read_table(directory / data_file(split), require=list(_COMMON)):
            yield split, row
