"""Disjoint sets (union-find)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsDunderLT

# With an order, so that a set's leader does not depend on the order of the links.
Member = TypeVar("Member", bound="SupportsDunderLT[Any]")


class DisjointSets(Generic[Member]):
    """Which things belong together through any chain of links; a set is named by its smallest node."""

    def __init__(self, nodes: Iterable[Member] = ()) -> None:
        self._parent: dict[Member, Member] = {node: node for node in nodes}

    def leader(self, node: Member) -> Member:
        """Return the smallest node of the set of `node`; a new node is a set of its own."""
        parent = self._parent
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    def join(self, one: Member, other: Member) -> None:
        """Merge the sets of two nodes."""
        first, second = self.leader(one), self.leader(other)
        if second < first:
            first, second = second, first
        self._parent[second] = first
