"""Embeds the texts of a file into a file, in the order of its rows and in bounded memory.

`.npy` is one array (N, D) of float32: row i is the embedding of the i-th text. `.parquet` has a row a text
with the columns `id` (as in the texts, else made from the text) and `embedding` (D float32). A file appears
when it is whole. Does not know what the embeddings are for.
"""

from __future__ import annotations

import logging
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.data.texts import ID_FIELD, STANDARD_INPUT, TextRow, read_texts, standard_input
from angle_train.model.load import check_device, check_model_path, load_backbone, quiet_libraries
from angle_train.model.prompt import TEXT_SLOT, has_template

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("angle.encode")

_SAMPLE = 1000  # texts that say how many are longer than the model reads
_BLOCK = 4096  # texts held at once; sorted by length inside, so batches pad little
_Write = Callable[[Sequence["TextRow"], "NDArray[np.float32]"], None]


@dataclass(frozen=True, slots=True)
class EncodeConfig:
    """What to embed, with what, and how.

    Attributes:
        model: Directory or hub id.
        texts: .jsonl[.gz], .csv[.gz], .parquet, or .txt with a text a line; `-` is standard input, as JSON
            Lines if it begins with a JSON object, or else a text a line.
        out: .npy or .parquet file.
        text_field: Where the texts are in a row.
        id_field: Where their ids are; rows without one get one made from the text. Default `id`, which no row
            need have.
        batch_size: Texts per forward pass.
        normalize: Scale every embedding to length 1.
        prompt: Stands before every text in place of the model's own; none keeps that.
        max_seq_length: Tokens per text; default the model's own.
        device: `cpu`, `cuda` …; default the best there is.
    """

    model: str
    texts: Path
    out: Path
    text_field: str = "text"
    id_field: str | None = None
    batch_size: int = 32
    normalize: bool = False
    prompt: str | None = None
    max_seq_length: int | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class EncodeResult:
    """What was written: how many texts, how many of them blank, and how wide their embeddings are."""

    out: Path
    texts: int
    blank: int
    width: int


def encode(config: EncodeConfig) -> EncodeResult:
    """Embed every text of a file; repeated and blank ones too, so that rows stay where they are.

    The texts are read twice: once to count and to check them, before the model is loaded.

    Raises:
        InputError: The texts, the model or the output cannot be used; a row is named by its place.
    """
    if config.out.suffix not in _WRITERS:
        raise InputError(f"{config.out}: unknown kind of file; give {' or '.join(_WRITERS)}")
    if config.batch_size < 1:
        raise InputError(f"--batch-size must be at least 1, got {config.batch_size}")
    check_device(config.device)
    check_model_path(config.model)
    if str(config.texts) == STANDARD_INPUT:
        with standard_input() as path:
            return encode(replace(config, texts=path))
    if config.out.resolve() == config.texts.resolve():
        raise InputError(f"--out {config.out} is the file of texts itself; give another one")
    count, blank = _survey(config)
    if config.out.exists():
        log.info("%s is there already and will be replaced", config.out)
    model = load_backbone(config.model, config.max_seq_length, config.device)
    prompt = _checked_prompt(config, model)
    _note_cut_texts(config, model, prompt)
    width = model.get_embedding_dimension()
    if width is None:
        raise InputError(f"{config.model} does not say how wide its embeddings are")
    rows = _rows(config)
    with (
        _beside(config.out) as temporary,
        _WRITERS[config.out.suffix](temporary, count, width) as write,
        Progress("encoding", count) as progress,
        quiet_libraries(),
    ):
        while block := list(islice(rows, _BLOCK)):
            write(block, _embeddings(model, [row.text for row in block], config, prompt))
            progress.advance(len(block))
    return EncodeResult(config.out, count, blank, width)


def _rows(config: EncodeConfig) -> Iterator[TextRow]:
    return read_texts(config.texts, config.text_field, config.id_field or ID_FIELD)


def _survey(config: EncodeConfig) -> tuple[int, int]:
    """Read and check all rows; return how many there are and how many are blank, and warn of what is odd."""
    count = blank = named = 0
    # Hashes, eight bytes each: of the ids that are written, and of these with their texts.
    ids, both = array("q"), array("q")
    writes_ids = config.out.suffix == ".parquet"
    for row in _rows(config):
        count += 1
        blank += not row.text.strip()
        named += row.named
        if writes_ids:
            ids.append(hash(row.id))
            both.append(hash((row.id, row.text)))
    if not count:
        raise InputError(f"{config.texts} holds no texts; give a file with at least one")
    if config.id_field is not None and not named:
        raise InputError(
            f"{config.texts}: no row has an id in the field {config.id_field!r}; check --id-field"
        )
    if blank:
        log.warning("warning: %d of %d texts are blank; their embeddings mean nothing", blank, count)
    shared = _distinct(both) - _distinct(ids)
    if shared:
        log.warning(
            "warning: %d texts have the id of another text; --id-field chooses the column of the ids", shared
        )
    return count, blank


def _distinct(numbers: array[int]) -> int:
    import numpy as np

    return len(np.unique(np.asarray(numbers)))


def _checked_prompt(config: EncodeConfig, model: SentenceTransformer) -> str | None:
    if config.prompt is None:
        return None
    if has_template(model):
        raise InputError(f"{config.model} puts its own template around every text; leave out --prompt")
    before, _, after = config.prompt.partition(TEXT_SLOT)
    if after:
        raise InputError(
            f"--prompt {config.prompt!r}: only what stands before the text can be given here; train with it "
            "instead, and the model applies it"
        )
    return before


def _note_cut_texts(config: EncodeConfig, model: SentenceTransformer, prompt: str | None) -> None:
    """Log how many of the first texts are longer than the model reads."""
    from angle_train.model.long_text import LongTextModel, choose_length

    if model.transformers_model is None or isinstance(model, LongTextModel):
        return
    sample = [row.text for row in islice(_rows(config), _SAMPLE)]
    found = choose_length(model, sample, prompt, percentile=100)
    if found.truncated:
        log.info(
            "%.1f %% of the first %d distinct texts have more than %d tokens and are cut there",
            100 * found.truncated,
            len(set(sample)),
            found.max_seq_length,
        )


def _embeddings(
    model: SentenceTransformer, texts: list[str], config: EncodeConfig, prompt: str | None
) -> NDArray[np.float32]:
    """Return the embeddings (B, D) of some texts."""
    import numpy as np

    found = model.encode(
        texts,
        prompt=prompt,
        batch_size=config.batch_size,
        normalize_embeddings=config.normalize,
        show_progress_bar=False,
        convert_to_numpy=True,
    )
    return np.asarray(found, dtype=np.float32)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` that takes its place when the block ends without an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _npy(path: Path, count: int, width: int) -> Iterator[_Write]:
    import numpy as np

    open_memmap: Any = np.lib.format.open_memmap  # typed in some versions of numpy only
    array = open_memmap(path, mode="w+", dtype=np.float32, shape=(count, width))
    start = 0

    def write(rows: Sequence[TextRow], embeddings: NDArray[np.float32]) -> None:
        nonlocal start
        array[start : start + len(rows)] = embeddings
        start += len(rows)

    yield write
    array.flush()


@contextmanager
def _parquet(path: Path, count: int, width: int) -> Iterator[_Write]:
    import pyarrow as pa
    from pyarrow import parquet

    kind = pa.list_(pa.float32(), width)
    schema = pa.schema([("id", pa.string()), ("embedding", kind)])
    with parquet.ParquetWriter(path, schema) as writer:

        def write(rows: Sequence[TextRow], embeddings: NDArray[np.float32]) -> None:
            column = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), type=kind)
            ids = pa.array([row.id for row in rows], pa.string())
            writer.write_table(pa.table([ids, column], schema=schema))

        yield write


_WRITERS: dict[str, Callable[[Path, int, int], AbstractContextManager[_Write]]] = {
    ".npy": _npy,
    ".parquet": _parquet,
}
