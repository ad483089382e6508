"""The pairs that the papers' experiments train on, written once, with a note of where they come from.

A file that is there is used again only if its note names the same source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from paper_rows import Family

from angle_data.errors import InputError
from angle_data.jsonl import replace_file, write_jsonl
from angle_train.data.columns import number_in, pair_in
from angle_train.evaluation.task import TaskData, load_task
from angle_train.evaluation.tasks.sources import Source

_ENTAILMENT = {"0": 1, "entailment": 1, "2": 0, "contradiction": 0}  # neutral, and -1, are left out
_MEMBERS = {"nli": ("snli", "mnli")}
Rows = Iterator[tuple[str, dict[str, Any]]]
Pairs = Iterator[dict[str, Any]]


Take = Callable[[str, str], Rows]


def write_data(family: Family, source: Source, out: Path) -> None:
    """Write what a family trains on and chooses with, as `out/DATA/SPLIT.jsonl`, each with a note beside it.

    Raises:
        InputError: A file there was made from something else, or the data cannot be read.
    """
    wanted = [(family.data, "train")]
    if family.dev:
        wanted.append((family.dev, "validation"))
    for name, split in wanted:
        if name == "llm":
            _write(out / "llm" / "texts.jsonl", ("stsb",), split, source, _texts)
        elif name == "nli":
            _write(out / "nli" / "train.jsonl", _MEMBERS["nli"], split, source, _inference_rows)
        else:
            _write(out / name / f"{split}.jsonl", (name,), split, source, _pair_rows)


def _note_of(path: Path) -> Path:
    return path.with_suffix(".source.json")


def _write(
    path: Path,
    names: tuple[str, ...],
    split: str,
    source: Source,
    make: Callable[[Take, Iterable[str], str], Pairs],
) -> None:
    """Write a file and a note of its source; a file that is there must be of the same source."""
    note, origin = _note_of(path), _origin(names, split, source)
    if path.exists():
        before = json.loads(note.read_text(encoding="utf-8"))["from"] if note.exists() else "something else"
        if before != origin:
            raise InputError(f"{path} was made from {before}, not from {origin}; give another --out")
        return

    def take(name: str, split: str) -> Rows:
        data: TaskData = load_task(name).data
        return source.rows(data, split)

    count = write_jsonl(path, make(take, names, split))
    with replace_file(note) as stream:
        stream.write(json.dumps({"from": origin}) + "\n")
    print(f"{path}: {count} rows")


def _origin(names: tuple[str, ...], split: str, source: Source) -> str:
    """Return where the rows come from, in words."""
    if source.root:
        return ", ".join(f"{source.root / name}/{split}" for name in names)
    found = []
    for name in names:
        hub = load_task(name).data.hub
        parts = (f"hub:{hub.id}", hub.config, hub.splits[split], hub.revision) if hub else (name,)
        found.append(" ".join(part for part in parts if part))
    return ", ".join(found)


def _pair_rows(take: Take, names: Iterable[str], split: str) -> Pairs:
    """Yield `text1, text2` with a `score` 0 to 5, or a `label` 1 where they belong together."""
    for name in names:
        task: Any = load_task(name)
        for place, row in take(name, split):
            text1, text2 = pair_in(row, place)
            if name == "stsb":
                yield {"text1": text1, "text2": text2, "score": number_in(row, ("score",), place)}
            else:
                label = number_in(row, ("label", "is_duplicate"), place)
                yield {"text1": text1, "text2": text2, "label": int(label == task.positive)}


def _texts(take: Take, names: Iterable[str], split: str) -> Pairs:
    """Yield each first text once, as `text`."""
    for text in dict.fromkeys(row["text1"] for row in _pair_rows(take, names, split)):
        yield {"text": text}


def _inference_rows(take: Take, names: Iterable[str], split: str) -> Pairs:
    """Yield the entailments (1) and contradictions (0)."""
    for name in names:
        for place, row in take(name, split):
            label = _ENTAILMENT.get(str(row.get("label")))
            text1, text2 = pair_in(row, place)
            if label is not None and text1.strip() and text2.strip():
                yield {"text1": text1, "text2": text2, "label": label}
