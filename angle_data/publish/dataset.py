"""Writes a data set folder: `data/{split}-00000-of-00001.parquet` and a `README.md` card.

`datasets.load_dataset(folder)` opens it with nothing of ours installed. Does not push to a hub, and never
states a licence: only the owner of the texts can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from angle_data.publish.card import Card, data_file, render_card
from angle_data.publish.folder import replace_dataset
from angle_data.records import LabelledPair

_BATCH = 1_000


def write_dataset(directory: Path, splits: Mapping[str, Sequence[LabelledPair]], card: Card) -> None:
    """Write `splits` and their card with statistics; see `write_rows`."""
    rows = {name: [pair.to_dict() for pair in pairs] for name, pairs in splits.items()}
    columns = list(next(iter(rows.values()))[0])
    write_rows(directory, rows, columns, lambda _: render_card(splits, card))


def write_rows(
    directory: Path,
    splits: Mapping[str, Iterable[dict[str, Any]]],
    columns: Iterable[str],
    card: Callable[[Path], str],
) -> None:
    """Write `splits` to `directory` in place of an earlier data set, as `folder.replace_dataset` does.

    `card` is called for the content of `README.md` when all rows are written, with the folder that becomes
    `directory`, to which it may add files.
    """
    import pyarrow as pa
    from pyarrow import parquet

    whole, number, texts = pa.int64(), pa.float64(), pa.list_(pa.string())
    kinds = dict.fromkeys(("label", "number1", "number2"), whole) | dict.fromkeys(("score", "weight"), number)
    kinds |= {"models": texts, "flags": texts}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    with replace_dataset(directory) as folder:
        for name, rows in splits.items():
            with parquet.ParquetWriter(folder / data_file(name), schema) as writer:
                stream = iter(rows)
                while batch := list(islice(stream, _BATCH)):
                    writer.write_table(pa.Table.from_pylist(batch, schema=schema))
        (folder / "README.md").write_text(card(folder), encoding="utf-8", newline="\n")
