"""Guards: pairs that say what must not get worse while a model is tuned.

Labelled ones are given (`--guard`). Two more need no labels and are always there: pairs of general text,
which come with the toolkit, and pairs among the texts that the model is tuned for. `training.guards` measures
both kinds. Imports no torch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.resources import packaged_folder
from angle_data.text import counted, jaccard, normalise, stable_hash, words
from angle_train.data.leaks import without_pairs_of
from angle_train.data.pairs import PairSet, distinct_names, load_pairs

log = logging.getLogger("angle.fit")

FEWEST = 5
"""Sources of a labelled guard, or pairs without a common text, and pairs with another score than the
commonest: fewer tell no loss from chance."""
_DEGREES = {"paraphrase": 1.0, "changed": 0.5, "topic": 0.25}  # of similarity to `text`; strangers have 0
_OWN_TEXTS, _OWN_SHARE = 200, 4  # so many of the user's texts are held out at most, and one of so many
_RANKS = (0, 19)  # of the neighbours that a text stands with


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
    specs: Sequence[str],
    learned: Sequence[PairSet],
    own: Sequence[str],
    scale: str | None = None,
    test: Sequence[PairSet] = (),
) -> list[Guard]:
    """Return the labelled guards, without what the model learns from, and the two that are always there.

    Args:
        specs: What to read for the labelled ones, see `sources.read_rows`; the validation split of a dataset.
        learned: Pairs that train or choose the weights.
        own: Texts of the user, see `own_texts`.
        scale: Of the scores, see `load_pairs`.
        test: Test pairs. They may guard, with a warning: guards decide how much of the backbone is mixed in.

    Raises:
        InputError: A source cannot be used, has too few pairs that are not learned from, or hardly any but
            of one score.
    """
    given = [_labelled(spec, learned, scale) for spec in specs]
    for spec, pairs in zip(specs, given, strict=True):
        if tested := len(pairs) - len(without_pairs_of(pairs, test)):
            log.warning(
                "warning: --guard %s: %s, so figures on these test pairs may be flattered: guards decide how "
                "much of the backbone is mixed in",
                spec,
                f"{tested:,} of {counted(len(pairs), 'pair')} are test pairs",
            )
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
        used = "they train or choose the weights (--data, --human, --teacher-pairs, --dev, --dev-search)"
        log.warning("warning: --guard %s: %s left out: %s", spec, count, used)
    if len(every) and not len(pairs):
        raise InputError(
            f"--guard {spec}: all its pairs train or choose the weights; give pairs of other text"
        )
    # Intervals are widened for what pairs share, so texts may tie all of them together; few texts say little.
    if pairs.source_count < FEWEST:
        rest = " that neither train nor choose" if len(pairs) < len(every) else ""
        of = f"{counted(len(pairs), 'pair')}{rest}, {pairs.counted_sources()}"
        raise InputError(
            f"--guard {spec}: {of}, cannot show a loss; give "
            f"labelled pairs of other text, at least {FEWEST} without a common text or source, better 1,000"
        )
    commonest = int(np.unique(pairs.score, return_counts=True)[1].max())
    others = len(pairs) - commonest
    if others < min(FEWEST, commonest):  # many resamples would have none of them, and rank nothing
        raise InputError(
            f"--guard {spec}: {commonest:,} of {counted(len(pairs), 'pair')} have the same score and "
            f"{others} another, which cannot show a loss; give at least {FEWEST} pairs with another score"
        )
    return pairs


@cache
def general_pairs() -> PairSet:
    """Return pairs of general text of several genres, written by a language model for this purpose.

    Each text stands with a paraphrase, with a near copy that says something else, with a text on its topic,
    and with the paraphrase of the next text. The scores say which of these it is.
    """
    rows = [row for _, row in read_jsonl(packaged_folder("general") / "guard.jsonl")]
    found = [(row["text"], row[kind], score) for row in rows for kind, score in _DEGREES.items()]
    following = rows[1:] + rows[:1]
    found += [(a["text"], b["paraphrase"], 0.0) for a, b in zip(rows, following, strict=True)]
    return _pairs("general text", found)


def own_texts(pairs: PairSet) -> tuple[list[str], list[str]]:
    """Return the user's texts, the distinct first texts of pairs: those for the guard, and the rest."""
    distinct = {normalise(text): text for text in pairs.text1}
    texts = [distinct[key] for key in sorted(distinct, key=lambda key: (stable_hash(key), key))]
    held = min(_OWN_TEXTS, len(texts) // _OWN_SHARE)
    return texts[:held], texts[held:]


def own_pairs(texts: Sequence[str]) -> PairSet | None:
    """Return pairs among texts: of each the nearest, one that is near, and one that stands anywhere.

    Nearness is by shared words. None where there are fewer than four texts: they say nothing.
    """
    count = len(texts)
    if count < 4:
        return None
    own = [words(text) for text in texts]
    others = (
        sorted(set(range(count)) - {place}, key=lambda other: (-jaccard(own[place], own[other]), other))
        for place in range(count)
    )
    return _pairs("your own texts", [(texts[a], texts[b], 0.0) for a, b in near_and_far(others, _RANKS)])


def near_and_far(others: Iterable[Sequence[int]], ranks: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of items, none twice: of each with some of its neighbours, and with one that is anywhere.

    Args:
        others: Of each item, from item 0 on, all the others, at least one, the nearest first.
        ranks: Which neighbours, 0 for the nearest; the last one where there are not so many.
    """
    found: dict[tuple[int, int], None] = {}
    for place, listed in enumerate(others):
        count = len(listed) + 1
        near = (listed[min(rank, count - 2)] for rank in ranks)
        for other in (*near, (place + count // 2) % count):
            found.setdefault((min(place, other), max(place, other)))
    return list(found)


def _pairs(name: str, found: Sequence[tuple[str, str, float]]) -> PairSet:
    first, second, score = zip(*found, strict=True)
    weight, sources = np.ones(len(found)), [normalise(text) for text in first]
    return PairSet(name, list(first), list(second), np.array(score), weight, sources)
