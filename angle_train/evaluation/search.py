"""Exact search in bounded memory, and what its results are worth for each query.

All documents are compared with all queries, a block at a time, and of each query the best `DEPTH` are kept.
Neither the similarities nor the embeddings of all documents are ever held. Each distinct text of a document
is encoded once.

Similarities are compared in single precision, and of equal ones the document whose id comes last stands
first: both as trec_eval and pytrec_eval have it, so that figures are theirs. A document with the id of the
query is no result, as in BEIR. A grade is the gain in nDCG, log2(rank + 1) the discount; any grade above 0 is
relevant for MRR and recall.

Sources: Järvelin and Kekäläinen 2002 (nDCG); trec_eval (https://github.com/usnistgov/trec_eval); BEIR
(Thakur et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from angle_data.similar.bm25 import BM25
from angle_train.data.search_set import SearchSet
from angle_train.evaluation.similarity import COSINE_DECIMALS, Embedder, Encode, unit_rows
from angle_train.evaluation.statistics import Statistic, mean_of
from angle_train.model.roles import PAIR

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEPTH = 100
"""So many documents are kept for each query."""
NDCG = "ndcg@10"
"""The main figure of a search."""
_TOP = 10
_RECALL = (10, DEPTH)
_TEXTS = 4096  # of documents, encoded and compared together
_CELLS = 4_000_000  # similarities at once: 32 MB, and as much for their keys
_PLACE_BITS = 28  # of a key: the place of the document; 268 million documents at most
_LAST = (1 << _PLACE_BITS) - 1
_NONE = np.iinfo(np.int64).min
Array = NDArray[np.float64]
PlacesArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a model found.

    Attributes:
        places: For each query the places of the best documents (Q, up to `DEPTH`), best first; -1 after the
            last, where there are fewer.
        figures: Each figure of each query (Q,), by name; `NDCG` is the first.
    """

    places: PlacesArray
    figures: Mapping[str, Array]

    def statistics(self) -> dict[str, Statistic]:
        """Return the mean of each figure over the queries."""
        return {name: mean_of(values) for name, values in self.figures.items()}


def rank_documents(found: SearchSet, encode: Encode, *, keep: bool = False) -> Ranking:
    """Search with the embeddings of `encode`: as of queries and documents, if that tells them apart.

    With `keep` an `Embedder` keeps what it embeds, as far as its memory allows, and takes what it kept.
    """
    as_query = as_document = encode
    scaled = unit_rows
    if isinstance(encode, Embedder):
        as_query, as_document = encode.queries, encode.documents
        if keep:
            as_query, as_document = (partial(encode, role=role) for role in PAIR)
        scaled = unit_rows if encode.similarity == "cosine" else _double
    queries = scaled(as_query(found.queries))
    best = np.full((len(queries), DEPTH + 1), _NONE)  # one more: the document with the query's id
    for texts, places, column in _blocks(found.texts):
        documents = scaled(as_document(texts))
        step = max(1, _CELLS // len(places))
        for start in range(0, len(queries), step):
            rows = slice(start, start + step)
            similarity = (queries[rows] @ documents.T).round(COSINE_DECIMALS)[:, column]
            best[rows] = _best_of(best[rows], _keys(similarity, places))
    return judged_ranking(found, _places(np.sort(best, axis=1)[:, ::-1]))


def search_all(searches: Sequence[SearchSet], model: SentenceTransformer, name: str = "") -> list[Ranking]:
    """Return what a model finds in each search; `name` is that of `Embedder`."""
    return [rank_documents(searched, Embedder(model, name)) for searched in searches]


def rank_by_words(found: SearchSet) -> Ranking:
    """Search by the words that texts share (BM25): what a search without any model finds."""
    index = BM25(found.texts)
    places = np.full((len(found), DEPTH + 1), -1)
    for row, query in enumerate(found.queries):
        here, _ = index.best(query, DEPTH + 1)
        places[row, : len(here)] = here
    return judged_ranking(found, places)


def judged_ranking(found: SearchSet, places: PlacesArray) -> Ranking:
    """Return the ranking of the best documents (Q, more than `DEPTH`), without the query's own document."""
    order = np.argsort(places == found.own[:, None], axis=1, kind="stable")
    places = np.take_along_axis(places, order, axis=1)[:, :DEPTH]
    per_query = [
        figures_of_query([grades.get(place, 0.0) for place in row], [*grades.values(), *missing])
        for row, grades, missing in zip(places.tolist(), found.grades, found.missing, strict=True)
    ]
    return Ranking(places, {name: np.array([each[name] for each in per_query]) for name in per_query[0]})


def figures_of_query(gains: Sequence[float], relevant: Sequence[float]) -> dict[str, float]:
    """Return the figures of one query, by the grades of its results in order and of all that is relevant."""
    first = next((rank for rank, gain in enumerate(gains[:_TOP], start=1) if gain > 0), 0)
    figures = {
        NDCG: _discounted(gains) / _discounted(sorted(relevant, reverse=True)),
        f"mrr@{_TOP}": 1 / first if first else 0.0,
    }
    hits = np.cumsum(np.array(gains) > 0)
    return figures | {f"recall@{k}": float(hits[:k][-1]) / len(relevant) for k in _RECALL}


def _discounted(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains[:_TOP], start=1)))


def _double(embeddings: NDArray[np.float32]) -> Array:
    return embeddings.astype(np.float64)


def _blocks(texts: Sequence[str]) -> Iterator[tuple[list[str], PlacesArray, PlacesArray]]:
    """Yield distinct texts, the places of documents that have one of them, and which of them each has."""
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(text, len(numbers)) for text in texts])
    distinct = list(numbers)
    order = np.argsort(of, kind="stable")
    in_order = of[order]
    for start in range(0, len(distinct), _TEXTS):
        block = distinct[start : start + _TEXTS]
        first, last = np.searchsorted(in_order, [start, start + len(block)])
        places = order[first:last]
        yield block, places, of[places] - start


def _keys(similarity: Array, places: PlacesArray) -> PlacesArray:
    """Return an integer for each similarity (q, n): larger for a larger one, and of equal ones for the first.

    Documents stand in falling order of their ids, see `SearchSet.ids`. What is no number, of a training that
    diverges, comes last. The bits of a number in single
    precision, read as an integer, have the order of the numbers, but for the sign. Below them stands the
    place, so that no two keys of a query are equal.
    """
    numbers = np.where(np.isnan(similarity), -np.inf, similarity).astype(np.float32)
    bits = (numbers + np.float32(0)).view(np.int32).astype(np.int64)  # -0 is 0
    bits = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (bits << _PLACE_BITS) | (_LAST - places)


def _best_of(one: PlacesArray, other: PlacesArray) -> PlacesArray:
    """Return as many of the largest keys of each row of both as `one` has, in any order."""
    keys = np.concatenate([one, other], axis=1)
    largest: PlacesArray = np.partition(keys, keys.shape[1] - one.shape[1], axis=1)[:, -one.shape[1] :]
    return largest


def _places(keys: PlacesArray) -> PlacesArray:
    """Return the places of the documents of keys, -1 where there is none."""
    return np.where(keys == _NONE, -1, _LAST - (keys & _LAST))
