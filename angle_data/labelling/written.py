"""Pairs of two sentences that annotators wrote for the same text, from the candidates of run folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

from angle_data.errors import InputError
from angle_data.labelling.texts import candidates_of
from angle_data.records import read_candidates
from angle_data.text import normalise, pair_key, stable_hash

WRITTEN = "written"
_RARER = 3  # a pair with a sentence of degree 1, which is about something else, comes so much later

Row = tuple[int, str, str, str]
"""A pair with its place in the file: a hash, the two texts in a direction by it, and the kind."""


def row_of(seed: int, one: str, other: str, kind: str) -> Row:
    """Return a row with its place in the file, in an order and a direction by hash."""
    rank = stable_hash("\n".join([str(seed), *sorted((one, other))]))
    first, second = sorted((one, other), reverse=bool(rank & 1))
    return rank, first, second, kind


def draw_written(runs: Sequence[Path], n: int, seed: int) -> list[Row]:
    """Draw `n` pairs, or all where there are fewer: one of each text in turn, no pair twice.

    Texts and their pairs come in an order by hash. Two sentences of degree 1, which are about something else
    each, are no pair, and one of them is in fewer pairs than another sentence. Only the texts whose turn
    comes are looked at.

    Raises:
        InputError: A folder holds no candidates, a line is malformed (`file:line`), or there is no pair.
    """
    written = _read_written(runs)
    order = sorted(written, key=lambda text: (stable_hash(f"{seed}\n{text}"), text))
    queues = {text: _ranked(written[text].values(), seed) for text in order}
    drawn: dict[tuple[str, str], Row] = {}
    while queues and len(drawn) < n:
        for text, queue in list(queues.items()):
            row = next(queue, None)
            if row is None:
                del queues[text]
            else:
                drawn.setdefault(pair_key(row[1], row[2]), row)  # another text may have that pair
            if len(drawn) == n:
                break
    if not drawn:
        raise InputError(
            "no text has two sentences in these run folders (two of degree 1 do not count); name more of them"
        )
    return list(drawn.values())


def _ranked(sentences: Iterable[tuple[str, bool]], seed: int) -> Iterator[Row]:
    """Yield the pairs of one text's sentences as rows, in their order by hash; made when asked for."""
    found = []
    for (one, far), (other, farther) in combinations(sorted(sentences), 2):
        if not (far and farther):
            row = row_of(seed, one, other, WRITTEN)
            found.append((row[0] * (_RARER if far or farther else 1), row))
    yield from (row for _, row in sorted(found))


def _read_written(runs: Iterable[Path]) -> dict[str, dict[str, tuple[str, bool]]]:
    """Return by text the sentences written for it: each as it stands, and whether it is of degree 1."""
    written: dict[str, dict[str, tuple[str, bool]]] = {}
    for file in [*map(candidates_of, runs)]:
        for candidate in read_candidates(file.parent):
            key, new = normalise(candidate.text), (candidate.text, candidate.degree == 1)
            if key:
                own = written.setdefault(normalise(candidate.source), {})
                old = own.get(key, new)
                own[key] = min(old[0], new[0]), old[1] and new[1]
    return written
