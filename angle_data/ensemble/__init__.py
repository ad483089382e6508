"""Ensembling: the candidates of several annotators in, one labelled data set out.

A strategy decides which candidates are kept; adding one is one entry in `STRATEGIES` and never an edit of
an existing function. Nothing here calls a model or the network.
"""

from __future__ import annotations

from angle_data.ensemble.sources import Strategy
from angle_data.errors import InputError
from angle_data.resources import load_object

__all__ = ["STRATEGIES", "load_strategy"]

STRATEGIES: dict[str, str] = {
    "concat": "angle_data.ensemble.strategies:concat",
    "principled": "angle_data.ensemble.principled:principled",
    "vote": "angle_data.ensemble.strategies:vote",
}


def load_strategy(name: str) -> Strategy:
    """Import and return the strategy registered under `name`.

    Raises:
        InputError: There is no such strategy; the message lists those there are.
    """
    if name not in STRATEGIES:
        raise InputError(f"unknown strategy {name!r}; choose one of {', '.join(sorted(STRATEGIES))}")
    strategy: Strategy = load_object(STRATEGIES[name])
    return strategy
