"""The kind of labels that training pairs have. Imports no torch."""

from __future__ import annotations

from collections import Counter

import numpy as np

from angle_data.text import jaccard, words
from angle_train.data.pairs import AT_DEGREES, GRADES, POLARITY, RANDOM, PairSet

_POLARITIES = 3  # synonym, antonym and random; more scores than these are grades
_MOST = 0.9  # of what an LLM supervised, in one way: the rest makes no difference
# Of `nearness_of_negatives`.
_NEAR_MISSES = 0.5  # from where on negatives are near misses
_FEWEST = 30  # pairs of each score that it needs
_LOOKED_AT = 1000  # pairs of each score that it reads
_READ = 2000  # characters of a text that it reads
_CLEARLY = 4  # standard errors by which positives must share more words than chance

_KIND_OF = {POLARITY: "polarity", AT_DEGREES: "degrees", GRADES: "graded"}


def kind_of(pairs: PairSet) -> tuple[str, str]:
    """Return the kind of labels of training pairs, a key of `PRESETS`, and what says so.

    Whatever most pairs are decides: few graded pairs beside many that an LLM wrote make no difference.
    """
    total = len(pairs)
    counts = Counter(pairs.supervision or ())
    by_llm = [name for name, _ in counts.most_common() if name in _KIND_OF]
    supervised = sum(counts[name] for name in by_llm)
    if by_llm and not pairs.labels and 2 * (supervised + counts[RANDOM]) > total:
        said = ", ".join(f"{count:,} {name or 'that do not say'}" for name, count in counts.most_common())
        if counts[by_llm[0]] < _MOST * supervised:
            return "mixed", said
        own = [name in (by_llm[0], RANDOM) for name in pairs.supervision or ()]
        scores = len(np.unique(pairs.score[own]))
        if by_llm[0] == POLARITY and scores > _POLARITIES:
            return "degrees", f"{said}, with {scores} scores"
        return _KIND_OF[by_llm[0]], said
    scores = len(np.unique(pairs.score))
    if scores == 1:
        return "positives", f"all {total} pairs have one score"
    if scores == 2:
        share = nearness_of_negatives(pairs)
        why = f"; beyond chance, the lower share {share:.0%} as many words as the higher" if share > 0 else ""
        return "near_misses" if share >= _NEAR_MISSES else "binary", f"{total} pairs have two scores{why}"
    return "graded", f"{total} pairs have {scores} scores"


def nearness_of_negatives(pairs: PairSet) -> float:
    """Return how many words pairs of the lowest score share, as a share of what those of the highest do.

    Both are mean overlaps (Jaccard) less that of texts put together by chance, over at most 1,000 pairs of
    each score. 0 where words say nothing, or there are fewer than 30 pairs of a score; about 0 where
    negatives are strangers; 1 where words do not tell the two apart: the negatives are near misses. The
    in-batch term, whose negatives are strangers, does harm there
    (benchmarks/log/objectives.md).
    """
    places = [np.flatnonzero(pairs.score == end) for end in (pairs.score.min(), pairs.score.max())]
    if min(map(len, places)) < _FEWEST:
        return 0.0
    low, high = (own[np.linspace(0, len(own) - 1, min(len(own), _LOOKED_AT)).astype(int)] for own in places)
    picked = np.concatenate([low, high])
    first, second = ([words(texts[i][:_READ]) for i in picked] for texts in (pairs.text1, pairs.text2))
    strangers = np.random.default_rng(0).permutation(len(picked))
    shared = np.array([jaccard(a, b) for a, b in zip(first, second, strict=True)])
    chance = np.array([jaccard(a, second[i]) for a, i in zip(first, strangers, strict=True)])
    near, far = shared[: len(low)], shared[len(low) :]
    excess = far.mean() - chance.mean()
    if excess <= _CLEARLY * np.sqrt(far.var() / len(far) + chance.var() / len(chance)):
        return 0.0
    return float((near.mean() - chance.mean()) / excess)
