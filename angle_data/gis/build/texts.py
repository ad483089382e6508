"""Cleaned texts of issues, read from the store when asked for; only the last few thousand are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from angle_data.gis.build.clean import Cleaned, clean_text
from angle_data.gis.crawl.store import Store

Node = tuple[int, int]
"""An issue: (repository id, number)."""

_KEPT = 4_096
_NOTHING = Cleaned("")


class Texts:
    """Looks cleaned texts up; an issue that is not stored has an empty one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recent: OrderedDict[Node, Cleaned] = OrderedDict()

    def get(self, node: Node) -> Cleaned:
        """Return the cleaned text of an issue."""
        if node in self._recent:
            self._recent.move_to_end(node)
            return self._recent[node]
        found = _NOTHING
        for issue in self._store.issues(node[0], [node[1]]):
            found = clean_text(issue.title, issue.body)
        self._recent[node] = found
        if len(self._recent) > _KEPT:
            self._recent.popitem(last=False)
        return found

    def of_repository(self, repo_id: int) -> Iterator[tuple[int, str]]:
        """Yield (number, cleaned text) of the issues of a repository that are there to read, by number."""
        for issue in self._store.issues(repo_id):
            if not issue.is_pull and not issue.gone:
                yield issue.number, clean_text(issue.title, issue.body).text
