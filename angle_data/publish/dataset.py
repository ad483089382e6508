"""Writes a data set folder: `data/{split}-00000-of-00001.parquet` and a `README.md` card with statistics.

`datasets.load_dataset(folder)` opens it with nothing of ours installed. Does not push to a hub, and never
states a licence: only the owner of the texts can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    import pyarrow as pa
    from pyarrow import parquet

    text, texts, number = pa.string(), pa.list_(pa.string()), pa.float64()
    kinds = {"label": pa.int64(), "score": number, "weight": number, "models": texts, "flags": texts}
    rows = [pair.to_dict() for pair in pairs]
    schema = pa.schema([(name, kinds.get(name, text)) for name in rows[0]])
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)
