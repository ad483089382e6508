"""Guards: pairs that say what must not get worse while a model is tuned.

Labelled ones are given (`--guard`). Two more need no labels and are always there: pairs of general text,
which come with the toolkit, and pairs among the texts that the model is tuned for. `train.guards` measures
both kinds. Imports no torch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.similar.near import tokens
from angle_data.similar.ranking import Index, numbered
from angle_data.text import counted, normalise, stable_hash
from angle_train.data.hold_out import connected
from angle_train.data.leaks import without_pairs_of
from angle_train.data.pairs import PairSet, distinct_names, load_pairs

log = logging.getLogger("angle.fit")

FEWEST = 5
"""Sources that a labelled guard must have: resamples of fewer tell no chance from a loss."""
_GENERAL = Path(__file__).with_name("general.jsonl")
_DEGREES = {"paraphrase": 1.0, "changed": 0.5, "topic": 0.25}  # of similarity to `text`; strangers have 0
_OWN_TEXTS = 100  # so many of the user's texts are looked at, each with three others
_NEAREST, _BETWEEN = 1, 20  # ranks of neighbours
_WORDS, _WINDOW = 16, 200  # of a text that lead to its neighbours, see `Index.nearest`


@dataclass(frozen=True, slots=True)
class Guard:
    """Pairs that say what must not get worse.

    Attributes:
        kind: `labelled` (people's scores decide), `general` (general text; the scores say how each pair was
            written) or `own` (the user's texts; their scores mean nothing).
        pairs: The pairs.
    """

    kind: Literal["labelled", "general", "own"]
    pairs: PairSet


def load_guards(
    specs: Sequence[str], learned: Sequence[PairSet], own: PairSet, scale: str | None = None
) -> list[Guard]:
    """Return the labelled guards, without what the model learns from, and the two that are always there.

    Args:
        specs: What to read for the labelled ones, see `sources.read_rows`; the validation split of a dataset.
        learned: Pairs that train or choose the weights.
        own: Training pairs, whose first texts are the user's.
        scale: Of the scores, see `load_pairs`.

    Raises:
        InputError: A source cannot be used, has only one score, or too few pairs that are not learned from.
    """
    given = [_labelled(spec, learned, scale) for spec in specs]
    guards = [Guard("labelled", pairs) for pairs in distinct_names(given)]
    guards.append(Guard("general", without_pairs_of(general_pairs(), learned)))
    among = own_pairs(own)
    if among is not None and len(among := without_pairs_of(among, learned)):
        guards.append(Guard("own", among))
    return guards


def _labelled(spec: str, learned: Sequence[PairSet], scale: str | None) -> PairSet:
    every = load_pairs(spec, "validation", scale)
    pairs = without_pairs_of(every, learned)
    if len(pairs) < len(every):
        count = f"{len(every) - len(pairs):,} of {counted(len(every), 'pair')}"
        log.warning("warning: --guard %s: %s left out: they train or choose the weights", spec, count)
    if len(set(pairs.source_ids or connected(pairs))) < FEWEST:
        rest = " that neither train nor choose" if len(pairs) < len(every) else ""
        raise InputError(
            f"--guard {spec}: {counted(len(pairs), 'pair')}{rest} cannot show a loss; give labelled pairs of "
            f"other text, of at least {FEWEST} sources, better 200"
        )
    if np.ptp(pairs.score) == 0:
        raise InputError(
            f"--guard {spec}: all its pairs have one score, so nothing can rank them right or wrong; give "
            "pairs of at least two scores"
        )
    return pairs


@cache
def general_pairs() -> PairSet:
    """Return pairs of general text of several genres, written by a language model for this purpose.

    Each text stands with a paraphrase, with a near copy that says something else, with a text on its topic,
    and with the paraphrase of the next text. The scores say which of these it is.
    """
    rows = [row for _, row in read_jsonl(_GENERAL)]
    found = [(row["text"], row[kind], score) for row in rows for kind, score in _DEGREES.items()]
    following = rows[1:] + rows[:1]
    found += [(a["text"], b["paraphrase"], 0.0) for a, b in zip(rows, following, strict=True)]
    return _pairs("general text", found)


def own_pairs(pairs: PairSet) -> PairSet | None:
    """Return pairs among the first texts of `pairs`: of each text the nearest, a near one, a random one.

    Nearness is by shared words. The same texts give the same pairs. None where there are fewer than four
    texts: they say nothing.
    """
    distinct = {normalise(text): text for text in pairs.text1}
    texts = [distinct[key] for key in sorted(distinct, key=lambda key: (stable_hash(key), key))]
    if len(texts) < 4:
        return None
    index = Index(numbered(set(tokens(text))) for text in texts)
    found: dict[tuple[int, int], None] = {}
    for place in range(min(len(texts), _OWN_TEXTS)):
        near, _ = index.nearest(place, _BETWEEN, words=_WORDS, window=_WINDOW)
        others = [near[rank - 1] for rank in (_NEAREST, _BETWEEN) if rank <= len(near)]
        for other in (*map(int, others), (place + len(texts) // 2) % len(texts)):
            found.setdefault((min(place, other), max(place, other)))
    return _pairs("your own texts", [(texts[a], texts[b], 0.0) for a, b in found])


def _pairs(name: str, found: Sequence[tuple[str, str, float]]) -> PairSet:
    first, second, score = zip(*found, strict=True)
    weight, sources = np.ones(len(found)), [normalise(text) for text in first]
    return PairSet(name, list(first), list(second), np.array(score), weight, sources)
