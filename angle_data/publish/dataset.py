"""Writes rows as a data set folder: `data/{split}-00000-of-00001.parquet` and a `README.md` card.

`datasets.load_dataset(folder)` opens it with nothing of ours installed. Does not push to a hub, and never
states a licence: only the owner of the texts can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from angle_data.publish.folder import replace_dataset

_BATCH = 1_000


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

    whole = pa.int64()
    number = pa.float64()
    texts = pa.list_(pa.string())
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


def data_file(split: str) -> str:
    """Return the path of a split's file, relative to the data set's folder."""
    return f"data/{split}-00000-of-00001.parquet"


def front_matter(pairs: int, tag: str, note: str) -> str:
    """Return the YAML that the hub reads, with a `note` on the licence; `tag` says what the pairs are for."""
    classes = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")
    size = next((name for power, name in enumerate(classes, start=3) if pairs < 10**power), "n>100M")
    return f"""\
---
# {note}
task_categories:
- sentence-similarity
tags:
- sentence-pairs
- {tag}
size_categories:
- {size}
---"""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
