"""What chooses weights: pairs by Spearman, searches by nDCG@10, each set as one column of figures by item.

A column has the cosine of each pair of a set (B,), or nDCG@10 of each query of a search (Q,). A set's figure
follows from its column, on all items or on a resample of them; of several sets the mean of their figures
counts, each set alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_data.text import counted
from angle_train.data.pairs import PairSet
from angle_train.data.search_set import SearchSet
from angle_train.evaluation.known import KnownVectors
from angle_train.evaluation.search import NDCG, rank_documents
from angle_train.evaluation.similarity import Embedder, pair_similarity
from angle_train.evaluation.statistics import Ranked, Statistic, mean_of, spearman_of

DevSet: TypeAlias = PairSet | SearchSet
Column: TypeAlias = NDArray[np.float64]

_SHOWN = {"ndcg@10": "nDCG@10"}  # how readers know it


def measure_sets(
    model: SentenceTransformer, sets: Iterable[DevSet], name: str = "", known: KnownVectors | None = None
) -> list[Column]:
    """Return the column of every set; `name` and `known` are those of `Embedder`."""
    embed = Embedder(model, name, known)
    return [column_of(one, embed) for one in sets]


def column_of(one: DevSet, embed: Embedder) -> Column:
    """Return the cosine of each pair, or nDCG@10 of each query; no text is embedded twice."""
    if isinstance(one, SearchSet):
        return rank_documents(one, embed, keep=True).figures[NDCG]
    return pair_similarity(one, embed)


def figure_of(one: DevSet, column: Column, ranked: Ranked | None = None) -> Statistic:
    """Return the figure of a set: Spearman of pairs, where several columns share `ranked`; mean nDCG@10."""
    if isinstance(one, SearchSet):
        return mean_of(column)
    return spearman_of(one.score, column, ranked)


def mean_figure(sets: Sequence[DevSet], columns: Sequence[Column]) -> float:
    """Return the mean of the figures of the sets; their columns come first."""
    return sum(figure_of(one, column).value() for one, column in zip(sets, columns, strict=False)) / len(sets)


def figures_by_kind(sets: Sequence[DevSet], columns: Sequence[Column]) -> dict[str, float]:
    """Return `dev_spearman`, the mean over the sets of pairs, and `dev_ndcg@10`, over the searches."""
    both = list(zip(sets, columns, strict=True))
    kinds = {
        "dev_spearman": [pair for pair in both if isinstance(pair[0], PairSet)],
        f"dev_{NDCG}": [pair for pair in both if isinstance(pair[0], SearchSet)],
    }
    return {name: mean_figure(*zip(*found, strict=True)) for name, found in kinds.items() if found}


def name_of_figure(sets: Sequence[DevSet]) -> str:
    """Return what the mean over the sets is called, such as `Spearman`."""
    kinds = dict.fromkeys(_SHOWN[NDCG] if isinstance(one, SearchSet) else "Spearman" for one in sets)
    return next(iter(kinds)) if len(kinds) == 1 else f"mean of {' and '.join(kinds)}"


def name_of_items(sets: Sequence[DevSet]) -> str:
    """Return what the sets are of: `pairs`, `queries`, or both."""
    return " and ".join(dict.fromkeys("queries" if isinstance(one, SearchSet) else "pairs" for one in sets))


def groups_of_queries(searched: SearchSet) -> list[str]:
    """Return for each query a key of those that look for the same documents: these say one thing many times.

    A query whose relevant documents are not in the corpus stands alone.
    """
    return [
        " ".join(map(str, sorted(grades))) if grades else f"alone {query}"
        for query, grades in zip(searched.query_ids, searched.grades, strict=True)
    ]


def counted_items(one: DevSet) -> str:
    """Return how many pairs or queries a set has."""
    return counted(len(one), "query", "queries") if isinstance(one, SearchSet) else counted(len(one), "pair")
