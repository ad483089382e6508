"""Writes a data set folder: `data/{split}-00000-of-00001.parquet` and a `README.md` card with statistics.

`datasets.load_dataset(folder)` opens it with nothing of ours installed. Does not push to a hub, and never
states a licence: only the owner of the texts can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from angle_data.publish.card import Card, data_file, render_card
from angle_data.publish.folder import replace_dataset
from angle_data.records import LabelledPair


def write_dataset(directory: Path, splits: Mapping[str, Sequence[LabelledPair]], card: Card) -> None:
    """Write `splits` and their card to `directory`, in place of a data set written there before.

    See `folder.replace_dataset` for how. `splits` must hold no empty split.

    Raises:
        InputError: `directory` is a file, holds files that such a data set does not, or cannot be written.
    """
    with replace_dataset(directory) as folder:
        for name, pairs in splits.items():
            _write_parquet(folder / data_file(name), pairs)
        (folder / "README.md").write_text(render_card(splits, card), encoding="utf-8", newline="\n")


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
