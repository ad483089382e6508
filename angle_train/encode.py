"""Embeds the texts of a file into a file, in the order of its rows and in bounded memory.

`.npy` is one array (N, D) of float32: row i is the embedding of the i-th text. `.parquet` has a row a text
with the columns `id` (as in the texts, else made from the text), `text` and `embedding` (D float32), so it
stands for the model in `eval --model` and `fit --teacher`. A file appears when it is whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.jsonl import beside
from angle_data.tables import identity_of, text_of
from angle_data.tables import read_texts as read_rows
from angle_data.text import content_id
from angle_train.data.sources import names_of
from angle_train.evaluation.known import KnownVectors
from angle_train.evaluation.similarity import check_finite
from angle_train.model.length import choose_length, choose_length_in_roles
from angle_train.model.load import check_device, check_model_path, load_backbone, quiet_libraries
from angle_train.model.roles import AS_DOCUMENT, role_options, router_of, tokenizer_of
from angle_train.options import EncodeConfig

log = logging.getLogger("angle.encode")

_HINT = " (choose with --text-field and --id-field)"
_SAMPLE = 1000  # texts that say how many are longer than the model reads
_BLOCK = 4096  # texts held at once; sorted by length inside, so batches pad little


IdAndText = tuple[str, str]
"""The id of a text, and the text."""

_Write = Callable[[Sequence[IdAndText], NDArray[np.float32]], None]
"""Takes some texts with their ids, and their embeddings (n, D)."""


def encode_file(config: EncodeConfig) -> dict[str, Any]:
    """Embed the texts of a file; repeated and blank ones have rows too, so that rows keep their positions.

    A text that is repeated is embedded once, as far as memory allows (see `KnownVectors`). The texts are read
    twice: once to count and to check them, before the model is loaded. Returns the file
    (`out`), how many `texts` there are and how many of them are `blank`, and the `width` of the embeddings.

    Raises:
        InputError: The texts, the model or the output cannot be used; a row is named by its place. Or
            embeddings are not numbers: then no file is written.
    """
    if config.out.suffix not in _WRITERS:
        raise InputError(f"{config.out}: unknown kind of file; give {' or '.join(_WRITERS)}")
    check_device(config.device)
    check_model_path(config.model)
    if config.out.resolve() == config.texts.resolve():
        raise InputError(f"--out {config.out} is the file of the texts; give another file")
    count, blank = _check_texts(config)
    if config.out.exists():
        log.info("%s exists and will be replaced", config.out)
    model = load_backbone(config.model, config.max_seq_length, config.device)
    if config.as_ is None and router_of(model) is not None:
        log.info("%s has routes for queries and documents; --as says which these texts are", config.model)
    _note_cut_texts(config, model)
    width = model.get_embedding_dimension()
    if width is None:
        raise InputError(f"{config.model} does not report its embedding dimension; give another model")
    rows = _rows(config)
    known = KnownVectors()
    with (
        beside(config.out) as temporary,
        _WRITERS[config.out.suffix](temporary, count, width) as write,
        Progress("encoding", count) as progress,
        quiet_libraries(),
    ):
        while block := list(islice(rows, _BLOCK)):
            texts = [text for _, text in block]
            if new := known.missing(texts):
                encoded = model.encode(
                    new,
                    **role_options(model, config.as_ or ""),
                    batch_size=config.batch_size,
                    normalize_embeddings=config.normalize,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
                known.add(new, np.asarray(encoded, dtype=np.float32))
            embeddings = known.rows_of(texts)
            check_finite(embeddings, config.model)
            write(block, embeddings)
            progress.advance(len(block))
    return {"out": config.out, "texts": count, "blank": blank, "width": width}


def _check_texts(config: EncodeConfig) -> tuple[int, int]:
    """Read and check all rows; return how many there are and how many are blank."""
    count = blank = 0
    for _, text in _rows(config):
        count += 1
        blank += not text.strip()
    if not count:
        raise InputError(f"{config.texts} holds no texts; give a file with at least one")
    if blank:
        log.warning("warning: %d of %d texts are blank; their embeddings are meaningless", blank, count)
    return count, blank


def _rows(config: EncodeConfig) -> Iterator[IdAndText]:
    return read_ids_and_texts(config.texts, config.text_field, config.id_field)


def read_ids_and_texts(
    path: Path, text_field: str = "text", id_field: str | None = None
) -> Iterator[IdAndText]:
    """Yield id and text of every row of a file in order, lazily.

    Args:
        path: A table, see `tables.TABLE_KINDS`, or .txt[.gz] with a text a line.
        text_field: The field of the texts.
        id_field: The field of the ids, which every row must have; default `id`, which none need have.

    Raises:
        InputError: The file is missing, damaged or of an unknown kind, or a row has no text; names the row.
    """
    name = id_field or "id"
    wanted = (text_field,) if id_field is None else (text_field, id_field)
    for place, row in read_rows(path, text_field, name, wanted, _HINT):
        for field in wanted:
            if field not in row:
                raise InputError(f"{place}: no field {field!r}; fields found: {names_of(row)}{_HINT}")
        text = text_of(row, text_field, place) or ""  # a row keeps its position, also an empty one
        yield identity_of(row, name, place) or content_id(text), text


def _note_cut_texts(config: EncodeConfig, model: SentenceTransformer) -> None:
    """Log how many of the first texts are longer than the model reads."""
    if model.transformers_model is None or tokenizer_of(model, config.as_ or "") is None:
        return
    sample = [text for _, text in islice(_rows(config), _SAMPLE)]
    if config.as_ is None:
        found = choose_length(model, sample, percentile=100)
    else:
        queries, documents = ([], sample) if config.as_ == AS_DOCUMENT else (sample, [])
        found = choose_length_in_roles(model, queries, documents, percentile=100)
    if found.truncated:
        log.info(
            "%.1f %% of the first %d distinct texts have more than %d tokens and are truncated",
            100 * found.truncated,
            len(set(sample)),
            found.max_seq_length,
        )


@contextmanager
def _npy(path: Path, count: int, width: int) -> Iterator[_Write]:
    open_memmap: Any = np.lib.format.open_memmap  # typed in some versions of numpy only
    array = open_memmap(path, mode="w+", dtype=np.float32, shape=(count, width))
    start = 0

    def write(block: Sequence[IdAndText], embeddings: NDArray[np.float32]) -> None:
        nonlocal start
        array[start : start + len(block)] = embeddings
        start += len(block)

    yield write
    array.flush()


@contextmanager
def _parquet(path: Path, count: int, width: int) -> Iterator[_Write]:
    import pyarrow as pa
    from pyarrow import parquet

    kind = pa.list_(pa.float32(), width)
    schema = pa.schema([("id", pa.string()), ("text", pa.string()), ("embedding", kind)])
    with parquet.ParquetWriter(path, schema) as writer:

        def write(block: Sequence[IdAndText], embeddings: NDArray[np.float32]) -> None:
            ids, texts = (pa.array(column, pa.string()) for column in zip(*block, strict=True))
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), type=kind)
            writer.write_table(pa.table([ids, texts, vectors], schema=schema))

        yield write


_WRITERS: dict[str, Callable[[Path, int, int], AbstractContextManager[_Write]]] = {
    ".npy": _npy,
    ".parquet": _parquet,
}
