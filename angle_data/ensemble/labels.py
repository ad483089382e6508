"""Polarity to label and score, and the random pairs that show what unrelated looks like.

`label` is the integer class of the AnglE papers, `score` the order that ranking losses learn. An opposite is
on topic, so `ordinal` places it above unrelated texts, which `binary` does not. `graded` is nine tenths the
pair's grade and one tenth `ordinal`; a pair without a grade is labelled as under `ordinal`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from statistics import median

from angle_data.disjoint import DisjointSets
from angle_data.ensemble.read import NO_GRADES, TOP_GRADE, Grades, Source, peer_grades
from angle_data.ensemble.strategies import Choice
from angle_data.records import LabelledPair
from angle_data.text import jaccard, stable_hash, words

LABELS = ("binary", "graded", "ordinal")
ANTONYM_SCORE = 0.5
"""The score of antonyms under ordinal and graded labels, where none is given."""
_MAX_OVERLAP = 0.5
_TRIES = 50  # partners looked at in order, and as many more anywhere; a search of all would be quadratic
_SMOOTHING = 0.1  # the share of the ordinal value in a graded score


def grade_of(choice: Choice, grades: Grades) -> float | None:
    """Return the median of a kept pair's grades 0..5 by others than its supporters, None without any.

    `grades` are those of graders that are used (`graders.judge`).
    """
    found = peer_grades(grades, choice.key, choice.models).values()
    return float(median(found)) if found else None


def label_choice(
    choice: Choice, *, labels: str, antonym_score: float, grades: Grades = NO_GRADES
) -> LabelledPair:
    """Return the labelled pair of a kept candidate; `labels` is a key of `LABELS`.

    `antonym_score` in [0, 1] is the score of antonyms under all labels but `binary`; their label is always 0.
    `grades` are used under `graded` alone.
    """
    synonym = choice.candidate.polarity == "synonym"
    score = 1.0 if synonym else 0.0 if labels == "binary" else antonym_score
    if labels == "graded" and (grade := grade_of(choice, grades)) is not None:
        score = round((1 - _SMOOTHING) * grade / TOP_GRADE + _SMOOTHING * score, 4)
    return LabelledPair(
        text1=choice.source.text,
        text2=choice.candidate.text,
        label=int(synonym),
        score=score,
        weight=choice.weight,
        polarity=choice.candidate.polarity or "",
        source_id=choice.source.id,
        models=list(choice.models),
        flags=list(choice.flags),
    )


def random_pairs(
    sources: Sequence[Source],
    *,
    per_source: int,
    seed: int,
    taken: Collection[tuple[str, str]],
    alike: DisjointSets[str] | None = None,
) -> list[LabelledPair]:
    """Return up to `per_source` pairs of each source with another of `sources`; label and score 0.

    A partner is drawn by sha256 of the seed and the source. It is passed over, for the next source in
    alphabetical order, when word Jaccard is above 0.5, when both keys are in one set of `alike` (see
    `strategies.synonym_sets`), when the unordered pair is in `taken` (see `text.pair_key`) or when it was
    drawn before; after 50 that were, another 50 are drawn one by one. The order of `sources` does not matter.
    A source for which no partner is found gets fewer pairs: where nearly all texts are alike (lines of one
    log) there may be none at all.
    """
    ordered = sorted(sources, key=lambda source: source.key)
    bags = [words(source.text) for source in ordered]
    alike = alike or DisjointSets()
    groups = [alike.leader(source.key) for source in ordered]
    used = set(taken)
    pairs = []
    for index, source in enumerate(ordered):
        for draw in range(per_source):
            for other in _partners(len(ordered), f"{seed}\nrandom\n{draw}\n{source.key}"):
                if groups[other] == groups[index] or jaccard(bags[index], bags[other]) > _MAX_OVERLAP:
                    continue
                key = (min(source.key, ordered[other].key), max(source.key, ordered[other].key))
                if key not in used:
                    used.add(key)
                    text = ordered[other].text
                    pairs.append(LabelledPair(source.text, text, 0, 0.0, 1.0, "random", source.id))
                    break
            else:
                break  # hardly a partner is left for this source: further draws would search in vain
    return pairs


def _partners(count: int, name: str) -> Iterator[int]:
    """Yield the numbers below `count` to try: from one drawn by `name` onwards, then drawn each for itself.

    The walk alone would stay among alphabetical neighbours, which are often alike.
    """
    start = stable_hash(name) % count
    for step in range(min(count, _TRIES)):
        yield (start + step) % count
    if count > _TRIES:
        for leap in range(_TRIES):
            yield stable_hash(f"{name}\n{leap}") % count
