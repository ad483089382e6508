"""Puts a data set folder in its place: readers see the old one or the new one, never a part.

What the user added stays: files that no build writes, and fields of the card's front matter such as
`license:`. A card whose text was edited is written anew, and the edited one is kept beside it as
`README.md.bak`. To tell an edited card, the last line of every card holds a digest of what was generated.
"""

from __future__ import annotations

import glob
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
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


@contextmanager
def replace_dataset(directory: Path) -> Iterator[Path]:
    """Yield an empty folder (with `data/`) to fill, which takes the place of `directory` at the end.

    Of a link, the folder that it leads to is replaced. What a killed process left beside it is cleared first.
    When anything fails or is interrupted, the earlier data set stays or is put back. One process may write.
    """
    link, directory = directory, Path(os.path.realpath(directory)) if directory.is_symlink() else directory
    prefix = f".{directory.name}.writing-"
    try:
        for leftover in sorted(directory.parent.glob(f"{glob.escape(prefix)}*")):
            _clear(leftover, directory)
        if os.path.lexists(link) and not directory.is_dir():
            raise InputError(f"{link} is a file, or a link to nothing; give another folder")
        directory.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=directory.parent))
    except OSError as error:
        place = directory.parent
        raise InputError(f"cannot write to {place}: {error.strerror}; choose another folder") from None
    try:
        new, old = temporary / "new", temporary / "old"
        (new / "data").mkdir(parents=True)
        yield new
        if (new / "README.md").exists():
            _finish_card(directory, new / "README.md")
        _keep_files(directory, new)
        if directory.exists():
            os.replace(directory, old)
        os.replace(new, directory)
    finally:
        _clear(temporary, directory)


def _clear(temporary: Path, directory: Path) -> None:
    """Put back a data set that was moved aside and got no successor; then remove the temporary folder."""
    if (temporary / "old").is_dir() and not directory.exists():
        os.replace(temporary / "old", directory)
    shutil.rmtree(temporary, ignore_errors=True)


def _keep_files(directory: Path, new: Path) -> None:
    """Give `new` the files of `directory` that no build writes; as links, for one folder is removed soon."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        target = new / name
        file = path.is_symlink() or not path.is_dir()
        if file and not _OURS.fullmatch(name.as_posix()) and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, target, follow_symlinks=False)
            except OSError:  # a file system without links
                shutil.copy2(path, target, follow_symlinks=False)


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
        spare = (f"README.md.bak{number}" for number in ("", *range(2, 1_000)))
        kept = next(name for name in spare if not (directory / name).exists())
        shutil.copy2(old, card.with_name(kept))
        log.warning("%s was edited: it is written anew, and the edited one is kept as %s", old, kept)


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
