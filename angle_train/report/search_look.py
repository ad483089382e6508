"""A closer look at a search: the queries that gained and lost most, what was found for them and what missed.

Without a model to compare with, the queries that a model does worst on stand alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.text import counted
from angle_train.data.search_set import SearchSet
from angle_train.evaluation.compare import SearchView
from angle_train.evaluation.search import DEPTH, NDCG, Ranking

_MOST_QUERIES = 5
_MOST_DOCUMENTS = 3
_SHOWN = 10  # what stands behind the tenth place nobody sees


def look_at_search(view: SearchView, baseline: str) -> dict[str, Any]:
    """Return what the page shows of one search, with what changed from the baseline if it is there."""
    models = [model for model in view.rankings if model != baseline]
    old = view.rankings.get(baseline)
    return {
        "name": view.searched.name,
        "documents": len(view.searched.ids),
        "count": len(view.searched),
        "changes": [_change(view.searched, old, view.rankings[model], baseline, model) for model in models]
        if old
        else [],
        "worst": [] if old else [_worst(view.searched, view.rankings[model], model) for model in models],
    }


def _change(searched: SearchSet, old: Ranking, new: Ranking, before: str, after: str) -> dict[str, Any]:
    """Return the queries whose nDCG rose and fell most, and how many did either."""
    gain = new.figures[NDCG] - old.figures[NDCG]
    order = np.argsort(-gain, kind="stable")
    up = [int(i) for i in order[:_MOST_QUERIES] if gain[i] > 0]
    down = [int(i) for i in order[::-1][:_MOST_QUERIES] if gain[i] < 0]
    same = counted(int((gain == 0).sum()), "query stayed", "queries stayed")
    return {
        "before": before,
        "after": after,
        "said": f"{int((gain > 0).sum()):,} of {counted(len(gain), 'query', 'queries')} gained, "
        f"{int((gain < 0).sum()):,} lost, {same} as good.",
        "gained": [_card(searched, row, new, old) for row in up],
        "lost": [_card(searched, row, new, old) for row in down],
    }


def _worst(searched: SearchSet, ranking: Ranking, model: str) -> dict[str, Any]:
    order = np.argsort(ranking.figures[NDCG], kind="stable")[:_MOST_QUERIES]
    return {"model": model, "queries": [_card(searched, int(row), ranking) for row in order]}


def _card(searched: SearchSet, row: int, now: Ranking, before: Ranking | None = None) -> dict[str, Any]:
    """Return one query: its relevant documents with their ranks, and what stands before them."""
    grades, gone = searched.grades[row], len(searched.missing[row])
    ranks = _ranks(now.places[row])
    old = _ranks(before.places[row]) if before else {}
    wanted = sorted(grades, key=lambda place: (ranks.get(place, DEPTH + 1), -grades[place], place))
    figures = [ranking.figures[NDCG][row] for ranking in (before, now) if ranking]
    wrong = [place for place in now.places[row][:_SHOWN].tolist() if place >= 0 and place not in grades]
    relevant = [
        (
            searched.texts[place],
            " → ".join(_at(of.get(place)) for of in ((old, ranks) if before else (ranks,))),
        )
        for place in wanted[:_MOST_DOCUMENTS]
    ]
    return {
        "query": searched.queries[row],
        "figure": " → ".join(f"{100 * value:.0f}" for value in figures),
        "relevant": relevant,
        "more": len(wanted) - len(relevant) + gone,
        "wrong": [(searched.texts[place], f"rank {ranks[place]}") for place in wrong[:1]],
    }


def _ranks(places: NDArray[np.int64] | Sequence[int]) -> dict[int, int]:
    return {int(place): rank for rank, place in enumerate(places, start=1) if place >= 0}


def _at(rank: int | None) -> str:
    return f"rank {rank}" if rank else f"not among {DEPTH}"
