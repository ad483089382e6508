"""Rounds: one pass over the list of repositories, which may take several runs of the program.

While a round is under way, what it has finished is not asked again, so that every run gets further however
early it is stopped. When a round is complete the next run begins a new one, which asks only for what changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from angle_data.gis.crawl.store import Store

_KEY = "round"


class Round:
    """The round in the store; a new one if the last is complete or was made for other options (`key`)."""

    def __init__(self, store: Store, key: Sequence[str | None]) -> None:
        self._store, self._key = store, list(key)
        kept = json.loads(store.meta(_KEY) or "{}")
        same = kept.get("key") == self._key
        self._steps: list[str] = kept["steps"] if same else []
        self.statuses: dict[str, str] = kept["statuses"] if same else {}

    def has(self, repo_id: int, step: str) -> bool:
        """Whether this round finished a step of a repository."""
        return f"{repo_id}:{step}" in self._steps

    def finish(self, repo_id: int, step: str) -> None:
        """Note that a step is finished."""
        if not self.has(repo_id, step):
            self._steps.append(f"{repo_id}:{step}")
            self._save()

    def settle(self, name: str, status: str) -> None:
        """Note what became of a listed name."""
        self.statuses[name] = status
        self._save()

    def complete(self) -> None:
        """End the round: the next run starts over."""
        self._store.set_meta(_KEY, "{}")

    def _save(self) -> None:
        kept = {"key": self._key, "steps": self._steps, "statuses": self.statuses}
        self._store.set_meta(_KEY, json.dumps(kept))
