"""Embeddings of the rows of a file, as `angle-train encode` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError

if TYPE_CHECKING:
    import numpy as np


def unit_vectors(
    path: Path, rows: Sequence[int], in_file: int, option: str = "--embeddings", of: str = "--texts"
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the embeddings (rows, D) of some rows of a file of texts, which has `in_file`, at length 1.

    Raises:
        InputError: The file, given with `option`, is no array of finite numbers with a row for each of the
            file of texts, which was given with the option `of`.
    """
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{option} {path} does not exist; make it with `angle-train encode`") from None
    except (ValueError, EOFError, IsADirectoryError, PermissionError):
        raise InputError(f"{option} {path} is not a readable .npy file") from None
    if getattr(array, "ndim", 0) != 2 or array.dtype.kind != "f" or len(array) != in_file:
        shape = getattr(array, "shape", "several arrays")
        raise InputError(
            f"{option} {path} must hold one row for each of the {in_file:,} rows of {of}, "
            f"not {shape}; encode that file"
        )
    vectors: np.ndarray[Any, np.dtype[np.float32]] = np.asarray(array[rows], dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise InputError(f"{option} {path} holds rows of zeros or NaN; encode the texts again")
    vectors /= lengths
    return vectors
