"""Texts with vectors that something else computed, such as a model behind an API: files in, a lookup out.

Three kinds of file: `.parquet` and `.jsonl[.gz]` have the columns `text` and `embedding`; `.npy` is an array
(N, D), and its N texts stand in a file of the same name beside it, such as `texts.jsonl` beside `texts.npy`.
`angle-train encode` writes the texts into its `.parquet`, and none beside its `.npy`.
Imports no torch.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.tables import read_table, read_texts, text_of
from angle_data.text import counted
from angle_train.data.sources import names_of

_SUFFIXES = (".npy", ".parquet", ".jsonl", ".jsonl.gz")
_BESIDE = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".txt", ".txt.gz")
_TEXT, _VECTOR = "text", "embedding"
_SHOWN = 60  # characters of a text in an error


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors by their texts; gives the rows (N, D) of N texts as a model would embed them.

    White space makes no difference between texts: what calls an API often replaces line ends.

    Attributes:
        name: What errors call the file.
        rows: Row of each text.
        vectors: Those (M, D) of all texts.
        instead: What errors say can be done where texts have no vector, beside adding them.
    """

    name: str
    rows: Mapping[str, int] = field(repr=False)
    vectors: NDArray[np.float32] = field(repr=False)
    instead: str = "measure other pairs"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors (N, D) of N texts in their order; one of zeros is an InputError.

        Raises:
            InputError: Some texts have none.
        """
        keys = [_key(text) for text in texts]
        if missing := [text for text in dict.fromkeys(texts) if _key(text) not in self.rows]:
            of = counted(len(set(texts)), "text")
            raise InputError(
                f"{self.name} has no vector for {len(missing):,} of {of}, such as {_shown(missing[0])}; add "
                f"{'it' if len(missing) == 1 else 'them'} to the file, or {self.instead}"
            )
        found = self.vectors[[self.rows[key] for key in keys]]
        self._check_not_zero(keys, found)
        return found

    def _check_not_zero(self, keys: Sequence[str], found: NDArray[np.float32]) -> None:
        """Raise an InputError about vectors (N, D) that are zeros, which have no cosine.

        They may stand for a blank text, as some models give them.
        """
        empty = (key for key, row in zip(keys, found, strict=True) if key and not row.any())
        if zeros := list(dict.fromkeys(empty)):
            of = counted(len(set(keys)), "text")
            raise InputError(
                f"{self.name}: the vectors of {len(zeros):,} of {of} are nothing but zeros, such as that of "
                f"{_shown(zeros[0])}; embed such texts again"
            )


def is_vectors(spec: str) -> bool:
    """Return whether a name stands for a file of vectors, and not for a model."""
    return spec.lower().endswith(_SUFFIXES) and not Path(spec).is_dir()


def check_vectors(spec: str) -> None:
    """Raise an InputError unless a file of vectors is there, and its texts; reads nothing."""
    path = Path(spec)
    if not path.is_file():
        raise InputError(f"{path} does not exist; check the path")
    if path.suffix.lower() == ".npy":
        _texts_file(path)


def vectors_identity(spec: str) -> str:
    """Return a name for vectors that is the same on every machine: `NAME@DIGEST`, by what the files hold."""
    path = Path(spec)
    digest = hashlib.sha256()
    for file in (path, *([_texts_file(path)] if path.suffix.lower() == ".npy" else [])):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return f"{path.name}@{digest.hexdigest()[:12]}"


def load_vectors(spec: str) -> StoredVectors:
    """Read a file of vectors; of a text that is there twice the first vector counts.

    Raises:
        InputError: The file is missing, damaged or empty, has no vector for a text, or vectors of different
            lengths, or of something else than finite numbers.
    """
    check_vectors(spec)
    path = Path(spec)
    texts, vectors = _of_array(path) if path.suffix.lower() == ".npy" else _of_table(path)
    _check_finite(path, texts, vectors)
    rows = {_key(text): number for number, text in reversed(list(enumerate(texts)))}
    return StoredVectors(path.name, rows, vectors)


def _check_finite(path: Path, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
    infinite = ~np.isfinite(vectors).all(axis=1)
    if count := int(infinite.sum()):
        raise InputError(
            f"{path}: numbers that are not finite in {count:,} of {counted(len(vectors), 'vector')}, such as "
            f"that of {_shown(texts[int(infinite.argmax())])}; embed such texts again"
        )


def _shown(text: str) -> str:
    """Return a text in quotes on one line, cut if it is long, for errors."""
    line = _key(text)
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")


def _key(text: str) -> str:
    return " ".join(text.split())


def _texts_file(path: Path) -> Path:
    """Return the file with the texts of a `.npy`: it has the same name."""
    beside = (path.with_name(path.stem + suffix) for suffix in _BESIDE)
    found = next((file for file in beside if file.is_file()), None)
    if found is None:
        whole = shlex.quote(str(path.with_suffix(".parquet")))
        raise InputError(
            f"{path} is an array without texts; put them beside it, one for each row and in the same order, "
            f"as {path.stem}.jsonl or {path.stem}.txt, or write a .parquet, which has them: "
            f"`angle-train encode --out {whole}`"
        )
    return found


def _of_array(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    file = _texts_file(path)
    texts = [_text(row, place) for place, row in read_texts(file, _TEXT, "id", (_TEXT,), "")]
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise InputError(f"{path} is not a readable .npy file; write it again") from None
    if getattr(array, "ndim", 0) != 2 or array.dtype.kind != "f" or len(array) != len(texts):
        shape = getattr(array, "shape", "several arrays")
        raise InputError(
            f"{path} must hold one row of floating-point numbers for each of the {len(texts):,} texts of "
            f"{file.name}, not {shape}"
        )
    return texts, array.astype(np.float32, copy=False)


def _of_table(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    rows = read_table(path, require=(_TEXT, _VECTOR), columns=(_TEXT, _VECTOR), hint=_wanted())
    texts: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    for place, row in rows:
        texts.append(_text(row, place))
        vectors.append(_vector(row, place))
        if len(vectors[-1]) != len(vectors[0]):
            raise InputError(
                f"{place}: {_VECTOR} has {len(vectors[-1])} numbers, that of the first row {len(vectors[0])}"
            )
    if not texts:
        raise InputError(f"{path} holds no vectors; give a file with at least one")
    return texts, np.stack(vectors)


def _text(row: Mapping[str, Any], place: str) -> str:
    if _TEXT not in row:
        raise InputError(f"{place}: no field {_TEXT!r}; fields found: {names_of(row)}{_wanted()}")
    return text_of(row, _TEXT, place) or ""


def _vector(row: Mapping[str, Any], place: str) -> NDArray[np.float32]:
    if _VECTOR not in row:
        raise InputError(f"{place}: no field {_VECTOR!r}; fields found: {names_of(row)}{_wanted()}")
    try:
        vector = np.array(row[_VECTOR], dtype=np.float32)
    except (ValueError, TypeError):
        vector = np.empty(0, dtype=np.float32)
    if vector.ndim != 1 or not len(vector):
        raise InputError(f"{place}: {_VECTOR} must be a list of numbers")
    return vector


def _wanted() -> str:
    return f" (vectors need the columns {_TEXT} and {_VECTOR})"
