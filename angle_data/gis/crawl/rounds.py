"""Rounds: one pass over the list of repositories, which may take several runs of the program.

While a round is under way, what it has finished is not asked again, so that every run gets further however
early it is stopped. When a round is complete the next run begins a new one, which asks only for what changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from angle_data.gis.crawl.store import Store

_OPTIONS, _STEP, _STATUS = "options", "step:", "status:"


class Round:
    """The round in the store; a new one if the last is complete or was made for other options (`key`).

    Every entry is a row of its own, so that noting one costs the same however many there are.
    """

    def __init__(self, store: Store, key: Sequence[str | None]) -> None:
        self._store, options = store, json.dumps(list(key))
        kept = store.round()
        if kept.get(_OPTIONS) != options:
            kept = {}
            store.begin_round()
            store.note_in_round(_OPTIONS, options)
        self._steps = {entry for entry in kept if entry.startswith(_STEP)}
        self.statuses = {
            entry.removeprefix(_STATUS): value for entry, value in kept.items() if entry.startswith(_STATUS)
        }

    def has(self, repo_id: int, step: str) -> bool:
        """Whether this round finished a step of a repository."""
        return f"{_STEP}{repo_id}:{step}" in self._steps

    def finish(self, repo_id: int, step: str) -> None:
        """Note that a step is finished."""
        self._steps.add(f"{_STEP}{repo_id}:{step}")
        self._store.note_in_round(f"{_STEP}{repo_id}:{step}", "")

    def settle(self, name: str, status: str) -> None:
        """Note what became of a listed name."""
        self.statuses[name] = status
        self._store.note_in_round(f"{_STATUS}{name}", status)

    def complete(self) -> None:
        """End the round: the next run starts over."""
        self._store.begin_round()
