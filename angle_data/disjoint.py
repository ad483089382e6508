"""Disjoint sets (union-find)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsDunderLT

# With an order, so that a set's leader does not depend on the order of the links.
Node = TypeVar("Node", bound="SupportsDunderLT[Any]")


class DisjointSets(Generic[Node]):
    """Which things belong together through any chain of links; a set is named by its smallest node."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._parent: dict[Node, Node] = {node: node for node in nodes}

    def leader(self, node: Node) -> Node:
        """Return the smallest node of the set of `node`; a new node is a set of its own."""
        parent = self._parent
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    def join(self, one: Node, other: Node) -> None:
        """Merge the sets of two nodes."""
        first, second = self.leader(one), self.leader(other)
        if second < first:
            first, second = second, first
        self._parent[second] = first
