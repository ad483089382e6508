"""Writes a data set folder: `data/{split}-00000-of-00001.parquet` and a `README.md` card with statistics.

`datasets.load_dataset(folder)` opens it with nothing of ours installed. Does not push to a hub, and never
states a licence: only the owner of the texts can.

What the user added stays: files that no build writes, and fields of the card's front matter such as
`license:`. A card whose text was edited is written anew, and the edited one is kept beside it as
`README.md.bak`. To tell an edited card, the last line of every card holds a digest of what was generated.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.publish.card import Card, data_file, render_card
from angle_data.records import LabelledPair
from angle_data.text import content_id

log = logging.getLogger("angle")

# What a build writes, and may therefore remove.
_OURS = re.compile(
    r"README\.md|data/(train|validation|test)-\d{5}-of-\d{5}\.parquet"
    r"|figures/(token-lengths|repositories|overlap)\.png"
)
_FRONT = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_NO_LICENCE = re.compile(r"^# No licence is stated.*\n", re.MULTILINE)
_SEAL = "<!-- written by angle-data; {} shows whether anything above was edited -->\n"
_SEALED = re.compile(re.escape(_SEAL).replace(r"\{\}", r"([0-9a-f]{16})") + r"\Z")


def write_dataset(directory: Path, splits: Mapping[str, Sequence[LabelledPair]], card: Card) -> None:
    """Write `splits` and their card to `directory`, in place of a data set written there before.

    See `replace_dataset` for how. `splits` must hold no empty split.

    Raises:
        InputError: `directory` is a file, or cannot be written.
    """
    with replace_dataset(directory) as folder:
        for name, pairs in splits.items():
            _write_parquet(folder / data_file(name), pairs)
        (folder / "README.md").write_text(render_card(splits, card), encoding="utf-8", newline="\n")


def _write_parquet(path: Path, pairs: Sequence[LabelledPair]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    text, texts, number = pa.string(), pa.list_(pa.string()), pa.float64()
    kinds = {"label": pa.int64(), "score": number, "weight": number, "models": texts, "flags": texts}
    rows = [pair.to_dict() for pair in pairs]
    schema = pa.schema([(name, kinds.get(name, text)) for name in rows[0]])
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)


@contextmanager
def replace_dataset(directory: Path) -> Iterator[Path]:
    """Yield an empty folder (with `data/`) to fill with splits and a `README.md`, for `directory`.

    Until it is filled, the earlier data set stays as it is. Then the files of that are removed and the new
    ones moved in, the card last: splits of two builds never stand side by side. One process at a time may
    write there.

    Raises:
        InputError: `directory` is a file, or cannot be written.
    """
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; give another folder")
    new = directory.parent / f".{directory.name}.writing"
    shutil.rmtree(new, ignore_errors=True)  # what a killed process left
    try:
        (new / "data").mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"cannot write to {directory.parent}: {error.strerror}; choose another folder"
        ) from None
    try:
        yield new
        directory.mkdir(exist_ok=True)
        card = new / "README.md"
        _finish_card(directory, card)
        for path in sorted(directory.rglob("*")):
            if _OURS.fullmatch(path.relative_to(directory).as_posix()) and path.name != card.name:
                path.unlink()
        for path in [*(path for path in sorted(new.rglob("*")) if path != card), card]:
            target = directory / path.relative_to(new)
            if path.is_dir():
                target.mkdir(exist_ok=True)
            else:
                os.replace(path, target)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _finish_card(directory: Path, card: Path) -> None:
    """Add to the new `card` what the user wrote into the front matter of the old one, and the seal."""
    old = directory / "README.md"
    front, body, own = _read_card(card)
    _, old_body, written = _read_card(old) if old.exists() else ("", "", {})
    seal = _SEAL.format(_digest(own, body))
    if added := {name: value for name, value in written.items() if name not in own}:
        from huggingface_hub import CardData

        if "license" in added:
            front = _NO_LICENCE.sub("", front)
        front = f"{front}{CardData(**added).to_yaml()}\n"
    head = f"---\n{front}---\n" if front else ""
    card.write_text(f"{head}{body}{seal}", encoding="utf-8", newline="\n")
    if not old.exists() or card.read_bytes() == old.read_bytes():
        return
    sealed = _SEALED.search(old_body)
    generated = {name: value for name, value in written.items() if name in own}
    if sealed is None or sealed[1] != _digest(generated, old_body[: sealed.start()]):
        shutil.copy2(old, directory / "README.md.bak")
        log.warning("%s was edited: it is written anew, and the edited one is kept as README.md.bak", old)


def _read_card(card: Path) -> tuple[str, str, dict[str, Any]]:
    """The lines of the front matter, the text below it, and the fields, none where they cannot be read."""
    from huggingface_hub import metadata_load

    text = card.read_text(encoding="utf-8", errors="replace")
    front = _FRONT.match(text)
    try:
        fields = metadata_load(card) or {}
    except Exception:  # noqa: BLE001 - whatever its YAML library raises for what a user wrote
        fields = {}
    return (front[1], text[front.end() :], fields) if front else ("", text, fields)


def _digest(fields: Mapping[str, Any], body: str) -> str:
    return content_id(json.dumps(fields, sort_keys=True, default=str) + body)
