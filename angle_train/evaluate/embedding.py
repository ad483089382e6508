"""Embeddings of one model, each text computed once: kept in memory, or on disk where a folder is given.

Knows no task. Embeddings are what `SentenceTransformer.encode` gives, with the model's own prompt.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.evaluate.tasks.registry import Item
from angle_train.model.load import backbone_identity, quiet_libraries
from angle_train.model.prompt import has_template

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_PIECE = 4096  # texts computed between two writes to disk
_ASKED = 500  # keys in one query; SQLite's oldest limit is 999
Vector = NDArray[np.float32]


class EmbeddingFile:
    """Embeddings of one model on disk, by text; several processes may use it at once.

    Args:
        path: An SQLite file; made when it is missing.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        try:
            self._database = sqlite3.connect(path, timeout=60)
            with self._database:
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
                )
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path}: no usable cache of embeddings ({error}); delete it") from None

    def read(self, items: Sequence[Item]) -> dict[Item, Vector]:
        """Return the embeddings (D,) of those items that are there."""
        keys = {_key(item): item for item in items}
        found: dict[Item, Vector] = {}
        every = list(keys)
        for start in range(0, len(every), _ASKED):
            asked = every[start : start + _ASKED]
            marks = ", ".join("?" * len(asked))
            query = f"SELECT key, vector FROM embeddings WHERE key IN ({marks})"
            for key, vector in self._database.execute(query, asked):
                found[keys[key]] = np.frombuffer(vector, dtype="<f4")
        return found

    def write(self, embeddings: Mapping[Item, Vector]) -> None:
        """Add embeddings, all of them or, when interrupted, none.

        Raises:
            InputError: The disk is full or the file may not be written.
        """
        rows = [(_key(item), vector.astype("<f4").tobytes()) for item, vector in embeddings.items()]
        try:
            with self._database:
                self._database.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", rows)
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{self._path}: cannot be written ({error}); free space, or leave out --cache"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def embedding_file(folder: Path, id_or_path: str, model: SentenceTransformer) -> EmbeddingFile:
    """Return the file in `folder` for what this model makes of texts.

    Its name changes with the weights and settings of a directory, the commit of a hub model, the way long
    texts are read, the number type, the width and the prompts.
    """
    transformer = getattr(model[0], "auto_model", None)
    settings = {
        "model": backbone_identity(id_or_path),
        "commit": getattr(getattr(transformer, "config", None), "_commit_hash", None),
        "max_seq_length": model.max_seq_length,
        "dtype": str(model.dtype),
        "width": model.truncate_dim,
        "prompts": model.prompts,
        "prompt": model.default_prompt_name,
        "template": getattr(model.tokenizer, "chat_template", None),
        "long_text": repr(getattr(model, "long_text", None)),
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    return EmbeddingFile(folder / f"{Path(id_or_path).resolve().name}-{digest}.sqlite")


class Embedder:
    """Gives embeddings of texts under one model and computes each text only once.

    Args:
        model: The model.
        name: What errors call it.
        file: Where embeddings are kept, beyond this process and in place of memory; default in memory.
        batch_size: Texts in one forward pass.
    """

    def __init__(
        self, model: SentenceTransformer, name: str, file: EmbeddingFile | None = None, batch_size: int = 32
    ) -> None:
        self._model, self._name, self._file, self._batch_size = model, name, file, batch_size
        self._known: dict[Item, Vector] = {}
        self.computed = 0
        """How many texts the model has really been run on."""

    def __call__(self, items: Sequence[Item]) -> NDArray[np.float32]:
        """Return the embeddings (N, D) of N items in their order.

        Raises:
            InputError: An embedding is not finite, or the model has no place for two sentences as one input.
        """
        self._check_pairs(items)
        new = sorted(set(items) - self._known.keys(), key=str)
        if self._file is not None and new:
            self._known |= self._file.read(new)
            new = [item for item in new if item not in self._known]
        # Longest first, so that pieces hold texts of like length and a memory limit shows at once.
        new.sort(key=_length, reverse=True)
        for start in range(0, len(new), _PIECE):
            self._compute(new[start : start + _PIECE])
        # Row by row: stacking them would hold them twice more.
        found = np.empty((len(items), len(self._known[items[0]])), dtype=np.float32)
        for number, item in enumerate(items):
            found[number] = self._known[item]
        if self._file is not None:
            self._known.clear()
        return found

    def _check_pairs(self, items: Sequence[Item]) -> None:
        if not all(isinstance(item, str) for item in items) and has_template(self._model):
            raise InputError(
                f"{self._name} puts a template around every text, which has no place for two sentences as "
                "one input; measure such tasks with a model that has none"
            )

    def _compute(self, items: list[Item]) -> None:
        with quiet_libraries():
            rows: NDArray[np.float32] = self._model.encode(
                items, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
            )
        broken = int((~np.isfinite(rows).all(axis=1)).sum())
        if broken:
            raise InputError(
                f"{self._name}: {broken} of {len(rows)} embeddings are not numbers; its weights are damaged "
                "or its training diverged: take another model, a lower learning rate or fp32"
            )
        self.computed += len(items)
        found = dict(zip(items, rows.astype(np.float32, copy=False), strict=True))
        if self._file is not None:
            self._file.write(found)
        self._known |= found


def _length(item: Item) -> int:
    return len(item) if isinstance(item, str) else len(item[0]) + len(item[1])


def _key(item: Item) -> bytes:
    # A text and a pair that read alike when joined are different inputs.
    content = json.dumps(item, ensure_ascii=True)
    return hashlib.sha256(content.encode()).digest()
