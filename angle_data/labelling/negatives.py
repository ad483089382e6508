"""`angle-data mine --negatives`: passages that look as if they answered a query, and do not.

They come from a search, by words (BM25) or by embeddings. The best that a search finds besides the passages
that are known to answer a query often answer it too, and nobody has said so. So a candidate is left out if it
scores above 95 % of what the known passage does (NV-Retriever, Moreira et al. 2024, arXiv 2407.15831,
"TopK-PercPos"); of the others the best are the negatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError
from angle_data.labelling.texts import TextFile
from angle_data.labelling.vectors import unit_vectors
from angle_data.tables import TEXT_COLUMNS, number_of, read_table, text_of
from angle_data.text import normalise

if TYPE_CHECKING:
    import numpy as np

    Scores = np.ndarray[Any, np.dtype[np.floating[Any]]]

TOO_NEAR = 0.95
"""A candidate with a score above this share of the positive's is left out: it may answer the query."""
_COLUMNS = (("query", "positive"), ("anchor", "positive"), *TEXT_COLUMNS)
_LABELS = ("label", "score")
_CELLS = 1 << 24  # cosines at a time: 64 MiB


@dataclass(frozen=True, slots=True)
class Answered:
    """A query and a passage that answers it: their texts, and the row of the file."""

    query: str
    positive: str
    row: int


@dataclass(frozen=True, slots=True)
class MinedNegatives:
    """What was found.

    Attributes:
        rows: `query`, `positive`, `negatives` (a list), `purpose`: as `fit` takes them.
        counts: How many `pairs` have `negatives`, and how many; candidates that were `too near`; pairs that
            were left out, as the search does not find the positive (`not found`) or nothing else (`alone`).
    """

    rows: list[dict[str, Any]]
    counts: Mapping[str, int]


def find_negatives(
    pairs: Path,
    passages: TextFile,
    per_query: int,
    embeddings: Path | None = None,
    query_embeddings: Path | None = None,
) -> MinedNegatives:
    """Find up to `per_query` negatives among the passages for every pair of a query and its positive.

    Args:
        pairs: Rows with a query and a passage, see `read_answered`.
        passages: Where negatives are looked for.
        per_query: How many for each pair.
        embeddings: Of the rows of the passages; default words.
        query_embeddings: Of the rows of the pairs' queries.

    Raises:
        InputError: The pairs or embeddings cannot be used, or no pair has a negative.
    """
    import numpy as np

    answered, in_file = read_answered(pairs)
    texts: dict[str, str] = {}
    rows = []
    for row, item in passages.placed():
        if (key := normalise(item.text)) not in texts:
            texts[key] = item.text
            rows.append(row)
    for pair in answered if embeddings is None else ():  # found by words wherever they come from
        texts.setdefault(normalise(pair.positive), pair.positive)
    place = {key: number for number, key in enumerate(texts)}
    known: dict[str, set[int]] = {}
    for pair in answered:
        found = known.setdefault(normalise(pair.query), set())
        found.update(place[key] for key in map(normalise, (pair.positive, pair.query)) if key in place)
    if embeddings is None or query_embeddings is None:
        scored = _by_words(list(texts.values()), answered)
    else:
        vectors = unit_vectors(embeddings, rows, passages.rows)
        asked = unit_vectors(
            query_embeddings, [pair.row for pair in answered], in_file, "--query-embeddings", "--negatives"
        )
        scored = _by_embeddings(vectors, asked)
    counts = {"pairs": 0, "negatives": 0, "too near": 0, "not found": 0, "alone": 0}
    mined = []
    names = list(texts.values())
    for pair, scores in zip(answered, scored, strict=True):
        at = place.get(normalise(pair.positive))
        if at is None or scores[at] <= 0:
            counts["not found"] += 1
            continue
        limit = TOO_NEAR * scores[at]
        others = scores.copy()
        others[list(known[normalise(pair.query)])] = -np.inf
        counts["too near"] += int((others > limit).sum())
        others[others > limit] = -np.inf
        best = [int(i) for i in _best(others, per_query) if others[i] > 0]
        if not best:
            counts["alone"] += 1
            continue
        counts["pairs"] += 1
        counts["negatives"] += len(best)
        negatives = [names[i] for i in best]
        row_of = {"query": pair.query, "positive": pair.positive, "negatives": negatives}
        mined.append(row_of | {"purpose": "search"})
    if not mined:
        raise InputError(
            f"no pair of {pairs} has a negative: {counts['not found']:,} positives are not found, "
            f"{counts['alone']:,} stand alone; give the passages that are searched as --texts"
        )
    return MinedNegatives(mined, counts)


def read_answered(path: Path) -> tuple[list[Answered], int]:
    """Return the pairs of a query and a passage that answers it, each once, and how many rows there are.

    Columns are `query` and `positive`, `anchor` and `positive`, or those of two texts. Rows whose `label`, or
    else `score`, is 0 are no such pairs, nor are two texts that are the same.
    """
    found: dict[tuple[str, str], Answered] = {}
    count = 0
    for row, (where, cells) in enumerate(read_table(path, split="train")):
        count += 1
        names = next((both for both in _COLUMNS if both[0] in cells and both[1] in cells), None)
        if names is None:
            there = ", ".join(map(str, cells)) or "none"
            raise InputError(f"{where}: no columns query, positive (or text1, text2); found: {there}")
        label = next((cells[name] for name in _LABELS if name in cells), 1)
        query, positive = ((text_of(cells, name, where) or "").strip() for name in names)
        key = normalise(query), normalise(positive)
        if number_of(label) == 0 or not (query and positive) or key[0] == key[1]:
            continue
        found.setdefault(key, Answered(query, positive, row))
    if not found:
        raise InputError(f"{path} holds no pairs of a query and a passage that answers it; check the file")
    return list(found.values()), count


def _by_words(texts: Sequence[str], answered: Sequence[Answered]) -> Iterator[Scores]:
    from angle_data.similar.bm25 import BM25

    index = BM25(texts)
    for pair in answered:
        yield index.scores(pair.query)


def _by_embeddings(vectors: Scores, asked: Scores) -> Iterator[Scores]:
    step = max(1, _CELLS // len(vectors))
    for start in range(0, len(asked), step):
        yield from asked[start : start + step] @ vectors.T


def _best(scores: Scores, most: int) -> list[int]:
    """Return the places of the highest scores, the highest first, then in order."""
    import numpy as np

    most = min(most, len(scores))
    least = np.partition(scores, -most)[-most]
    found = np.flatnonzero(scores >= least)
    ranked: list[int] = found[np.lexsort((found, -scores[found]))][:most].tolist()
    return ranked
