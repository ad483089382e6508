"""Polarity to label and score, and the random pairs that show what unrelated looks like.

`label` is the integer class of the AnglE papers, `score` the order that ranking losses learn: people place
opposites above unrelated texts (in SICK, contradictions average 3.59 of 5 and neutral pairs 2.98), which
`ordinal` keeps and `binary` does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from angle_data.ensemble.merge import pair_key
from angle_data.ensemble.sources import Choice, Source
from angle_data.records import LabelledPair
from angle_data.text import jaccard, words

__all__ = ["LABELS", "default_random_pairs", "label_choice", "random_pairs"]

LABELS: dict[str, str] = {
    "binary": "synonym 1, antonym 0, random 0, as in the papers",
    "ordinal": "synonym 1, antonym the antonym score, random 0",
}
_MAX_OVERLAP = 0.5


def default_random_pairs(labels: str) -> int:
    """Return how many random pairs a source gets unless asked otherwise: `ordinal` needs its lower end."""
    return 1 if labels == "ordinal" else 0


def label_choice(choice: Choice, *, labels: str, antonym_score: float) -> LabelledPair:
    """Return the labelled pair of a kept candidate; `labels` is a key of `LABELS`.

    `antonym_score` in [0, 1] is the score of antonyms under `ordinal`; their label is 0 under both.
    """
    synonym = choice.candidate.polarity == "synonym"
    return LabelledPair(
        text1=choice.source.text,
        text2=choice.candidate.text,
        label=int(synonym),
        score=1.0 if synonym else antonym_score if labels == "ordinal" else 0.0,
        weight=choice.weight,
        polarity=choice.candidate.polarity,
        source_id=choice.source.id,
        models=list(choice.models),
        flags=list(choice.flags),
    )


def random_pairs(
    sources: Sequence[Source], *, per_source: int, seed: int, taken: Collection[tuple[str, str]]
) -> list[LabelledPair]:
    """Return up to `per_source` pairs of each source with another of `sources`; label and score 0.

    A partner is drawn by sha256 of the seed and the source. It is passed over, for the next source in
    alphabetical order, when word Jaccard is above 0.5, when the unordered pair is in `taken` (see
    `merge.pair_key`) or when it was drawn before. The order of `sources` does not matter. A source for
    which no partner is left gets fewer pairs.
    """
    ordered = sorted(sources, key=lambda source: source.key)
    bags = [words(source.text) for source in ordered]
    used = set(taken)
    pairs = []
    for index, source in enumerate(ordered):
        for draw in range(per_source):
            start = _draw(f"{seed}\nrandom\n{draw}\n{source.key}", len(ordered))
            for step in range(len(ordered)):
                other = (start + step) % len(ordered)
                key = pair_key(source.text, ordered[other].text)
                if other == index or key in used or jaccard(bags[index], bags[other]) > _MAX_OVERLAP:
                    continue
                used.add(key)
                pairs.append(_random_pair(source, ordered[other]))
                break
            else:
                break  # no partner is left for this source, so no further draw will find one
    return pairs


def _random_pair(one: Source, other: Source) -> LabelledPair:
    return LabelledPair(one.text, other.text, 0, 0.0, 1.0, "random", one.id)


def _draw(text: str, below: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % below
