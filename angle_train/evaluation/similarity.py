"""From texts to embeddings, and from embeddings to cosines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.text import jaccard, words
from angle_train.data.pairs import PairSet
from angle_train.data.vectors import is_vectors, load_vectors
from angle_train.evaluation.known import KnownVectors
from angle_train.evaluation.statistics import spearman
from angle_train.model.admission import check_cosine
from angle_train.model.load import load_backbone, quiet_libraries
from angle_train.model.roles import (
    AS_DOCUMENT,
    AS_QUERY,
    NO_ROLES,
    Role,
    RolePrompts,
    role_options,
    router_of,
    set_role_prompts,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Array = NDArray[np.float64]
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Gives embeddings (N, D) of N texts in their order."""

COSINE_DECIMALS = 10
"""Cosines that agree to so many places are ties. Equal texts have a cosine of 1, but 1 ± 4e-16 is what comes
out, and where they differ in case alone and stood in other batches, 1 - 5e-13: their order would be chance.
It is far finer than the embeddings, whose single precision moves other cosines by 2e-7."""
_BLOCK = 4096  # rows of embeddings worked on together
_BLOCK_CELLS = 10_000_000  # similarities held at once: 80 MB


class DamagedModelError(InputError):
    """A model gives embeddings that are not numbers."""


def check_finite(embeddings: NDArray[np.float32], name: str) -> None:
    """Raise a DamagedModelError unless embeddings (N, D) of the model of that name are numbers."""
    broken = int((~np.isfinite(embeddings).all(axis=1)).sum())
    if broken:
        raise DamagedModelError(
            f"{name}: {broken} of {len(embeddings)} embeddings are not numbers; its weights are damaged or "
            "its training diverged: take another model, a lower learning rate or fp32"
        )


class Embedder:
    """Embeds texts with one model, each text once in a role, as far as memory allows (see `KnownVectors`).

    Embeddings are what `SentenceTransformer.encode` gives, with the model's own prompt, or that of the role.

    Args:
        model: The model.
        name: What errors call it. Without a name embeddings that are not numbers are no error: training that
            diverges must be able to go back to an earlier checkpoint.
        known: What these very weights made of texts before; default nothing.
    """

    def __init__(self, model: SentenceTransformer, name: str, known: KnownVectors | None = None) -> None:
        self._model, self._name = model, name
        self._known = KnownVectors() if known is None else known

    @property
    def similarity(self) -> str:
        """What the model compares embeddings by: `dot`, or else `cosine`, by which all others are ranked."""
        return "dot" if self._model.similarity_fn_name == "dot" else "cosine"

    def check_cosine(self) -> None:
        """Raise an InputError if cosines are not what the model compares embeddings by."""
        check_cosine(self._model, self._name)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings (N, D) of texts that are searched for; none is kept in memory."""
        return self._embed(texts, AS_QUERY)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings (N, D) of texts that are searched in; none is kept in memory."""
        return self._embed(texts, AS_DOCUMENT)

    @property
    def has_routes(self) -> bool:
        """Whether queries and documents go through encoders of their own: then every pair has roles."""
        return router_of(self._model) is not None

    def _embed(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        with quiet_libraries():
            rows = self._model.encode(
                list(texts),
                **role_options(self._model, role),
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        if self._name:
            check_finite(rows, self._name)
        return np.asarray(rows, dtype=np.float32)

    def __call__(self, texts: Sequence[str], role: Role = "") -> NDArray[np.float32]:
        """Return the embeddings (N, D) of N texts in their order.

        Raises:
            DamagedModelError: Some embeddings are not finite.
        """
        new = sorted(self._known.missing(texts, role))
        if new:
            self._known.add(new, self._embed(new, role), role)
        found = self._known.rows_of(texts, role)
        if self._name:  # also what training knew already: it does not check
            check_finite(found, self._name)
        return found


def encoder_of(model: str, device: str | None = None, prompts: RolePrompts = NO_ROLES) -> Encode:
    """Return what gives texts their embeddings: a model, or a file of vectors, see `data.vectors`.

    A model is given the `prompts` of queries and documents.
    """
    if is_vectors(model):
        return load_vectors(model)
    loaded = load_backbone(model, device=device)
    set_role_prompts(loaded, prompts)
    return Embedder(loaded, model)


def pair_similarity(pairs: PairSet, encode: Encode) -> Array:
    """Return the cosine (B,) of the two texts of every pair.

    A file of vectors has one of each text, whatever its role.
    """
    if isinstance(encode, Embedder) and (pairs.roles or encode.has_routes):
        return cosine_rows(encode(pairs.text1, AS_QUERY), encode(pairs.text2, AS_DOCUMENT))
    return cosine_rows(*np.split(encode([*pairs.text1, *pairs.text2]), 2))


def measure(
    model: SentenceTransformer, sets: Iterable[PairSet], name: str = "", known: KnownVectors | None = None
) -> list[Array]:
    """Return the cosine (B,) of the two texts of every pair, for every set.

    `name` and `known` are those of `Embedder`.
    """
    embed = Embedder(model, name, known)
    return [pair_similarity(pairs, embed) for pairs in sets]


def mean_spearman(sets: Sequence[PairSet], columns: Sequence[Array]) -> float:
    """Return the mean Spearman correlation over the sets; their columns of similarities come first."""
    return sum(spearman(pairs.score, column) for pairs, column in zip(sets, columns, strict=False)) / len(
        sets
    )


def cosine_rows(first: NDArray[Any], second: NDArray[Any]) -> Array:
    """Return the cosine (B,) of the rows of two (B, D) matrices; 0 for zero rows.

    In double precision, to `COSINE_DECIMALS`. Works through blocks of rows: no second copy of the matrices
    is held.
    """
    similarity = np.empty(len(first))
    for start in range(0, len(first), _BLOCK):
        rows = slice(start, start + _BLOCK)
        similarity[rows] = (unit_rows(first[rows]) * unit_rows(second[rows])).sum(axis=1)
    return similarity.round(COSINE_DECIMALS)


def cosine_blocks(queries: Array, documents: Array) -> Iterator[tuple[slice, Array]]:
    """Yield the cosines (q, N) of blocks of queries with all documents, and which queries they are.

    Both are unit rows, (Q, D) and (N, D). Cosines of equal documents are equal, whatever their block.
    """
    size = max(1, _BLOCK_CELLS // len(documents))
    for start in range(0, len(queries), size):
        rows = slice(start, start + size)
        yield rows, (queries[rows] @ documents.T).round(COSINE_DECIMALS)


def unit_rows(embeddings: NDArray[Any]) -> Array:
    """Return the rows (N, D) scaled to length 1 in double precision; zero rows stay zero."""
    rows = embeddings.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths == 0, 1, lengths)
    return rows


def word_overlap(pairs: PairSet) -> Array:
    """Return the Jaccard overlap (B,) of the two texts' words: the baseline that understands nothing."""
    return np.array(
        [jaccard(words(a), words(b)) for a, b in zip(pairs.text1, pairs.text2, strict=True)], dtype=np.float64
    )
