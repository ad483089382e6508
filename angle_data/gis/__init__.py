"""GitHub in, pairs of duplicate issues out: crawl, markers, links, clusters, cleaning, pairing, splits."""

from __future__ import annotations

__all__: list[str] = []
