"""Writes a data set folder: `data/{split}-00000-of-00001.parquet` and a `README.md` card with statistics.

`datasets.load_dataset(folder)` opens it with nothing of ours installed. Does not push to a hub, and never
states a licence: only the owner of the texts can.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from angle_data.errors import InputError
from angle_data.publish.card import Card, data_file, render_card
from angle_data.records import LabelledPair

__all__ = ["write_dataset"]


def write_dataset(directory: Path, splits: Mapping[str, Sequence[LabelledPair]], card: Card) -> None:
    """Write `splits` and their card to `directory`, in place of a data set written there before.

    The folder is completed beside its place and then moved there; what a killed process left beside it is
    cleared first. One process at a time may write there. `splits` must hold no empty split.

    Raises:
        InputError: `directory` is a file, holds files that such a data set does not, or cannot be written.
    """
    _check_replaceable(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(directory)
        temporary = Path(tempfile.mkdtemp(prefix=_prefix(directory), dir=directory.parent))
    except OSError as error:
        raise InputError(
            f"cannot write to {directory.parent}: {error.strerror}; choose another folder"
        ) from None
    try:
        new, old = temporary / "new", temporary / "old"
        (new / "data").mkdir(parents=True)
        for name, pairs in splits.items():
            _write_parquet(new / data_file(name), pairs)
        (new / "README.md").write_text(render_card(splits, card), encoding="utf-8", newline="\n")
        if directory.exists():
            os.replace(directory, old)
        os.replace(new, directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _prefix(directory: Path) -> str:
    return f".{directory.name}.writing-"


def _clear_leftovers(directory: Path) -> None:
    """Remove temporary folders of killed processes; put back a data set that one of them had moved aside."""
    for leftover in sorted(directory.parent.glob(glob.escape(_prefix(directory)) + "*")):
        if (leftover / "old").is_dir() and not directory.exists():
            os.replace(leftover / "old", directory)
        shutil.rmtree(leftover, ignore_errors=True)


def _check_replaceable(directory: Path) -> None:
    """Refuse to replace a folder that holds anything but an earlier data set."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; give another folder")
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if name not in ("README.md", "data") and not (name.startswith("data/") and name.endswith(".parquet")):
            raise InputError(f"{directory} holds {name}, which is not of a data set; choose another folder")


def _write_parquet(path: Path, pairs: Sequence[LabelledPair]) -> None:
    import datasets

    text, number = datasets.Value("string"), datasets.Value("float64")
    features = datasets.Features(
        text1=text,
        text2=text,
        # Not a ClassLabel: trainers take both, but a plain integer stays one when the file is read elsewhere.
        label=datasets.Value("int64"),
        score=number,
        weight=number,
        polarity=text,
        source_id=text,
        models=datasets.List(text),
        flags=datasets.List(text),
    )
    columns = {f.name: [getattr(pair, f.name) for pair in pairs] for f in fields(LabelledPair)}
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        datasets.Dataset.from_dict(columns, features=features).to_parquet(path)
    finally:
        if shown:
            datasets.enable_progress_bars()
