"""What was asked for, and grades, to label and score; random pairs, to show what unrelated looks like.

An opposite is on topic, so `ordinal` places it above unrelated texts, which `binary` does not; a degree is as
many fifths. `graded` is that too, until graders have seen some pairs: then it is the level of each on their
scale (`scale`) to half a point, less weight the less sure it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from angle_data.disjoint import DisjointSets
from angle_data.ensembling.evidence import Evidence
from angle_data.ensembling.given import GivenPair
from angle_data.ensembling.read import SAME_DEGREE, Source
from angle_data.ensembling.scale import Scale, asked_score
from angle_data.ensembling.strategies import Choice
from angle_data.records import QUERY, LabelledPair
from angle_data.text import content_id, jaccard, normalise, stable_hash, words

_MAX_OVERLAP = 0.5
_TRIES = 50  # partners looked at in order, and as many more anywhere; a search of all would be quadratic


def label_pairs(
    kept: Sequence[Choice],
    given: Sequence[GivenPair],
    evidence: Evidence,
    labels: str,
    antonym_score: float,
) -> list[LabelledPair]:
    """Return the labelled pairs of what is kept, then those of given pairs."""
    scale = Scale(kept, given, evidence, antonym_score=antonym_score)
    graded = scale if labels == "graded" and evidence.graded else None
    ids = {choice.source.key: choice.source.id for choice in kept}
    rows = [label_choice(c, labels=labels, antonym_score=antonym_score, scale=graded) for c in kept]
    for pair in given:
        source_id = ids.get(normalise(pair.text1)) or content_id(pair.text1)
        rows.append(label_given(pair, source_id, labels=labels, scale=scale))
    return rows


def label_choice(
    choice: Choice, *, labels: str, antonym_score: float, scale: Scale | None = None
) -> LabelledPair:
    """Return the labelled pair of a kept candidate, its score as asked for, or the level on a `scale`."""
    candidate, same = choice.candidate, choice.side == "synonym"
    score = float(same) if labels == "binary" else asked_score(candidate, antonym_score)
    weight = choice.weight
    if scale is not None:
        level = scale.of_choice(choice)
        score, weight = level.score, round(weight * level.certainty, 4)
    return LabelledPair(
        text1=choice.source.text,
        text2=candidate.text,
        label=int(same),
        score=score,
        weight=weight,
        polarity=candidate.polarity or "",
        source_id=choice.source.id,
        models=list(choice.models),
        flags=[*choice.flags, *filter(None, [candidate.kind])],
        supervision="polarity" if candidate.degree is None else "degrees",
    )


def query_first(pair: LabelledPair) -> LabelledPair:
    """Return a pair with its query before the passage that answers it, as searches learn."""
    return replace(pair, text1=pair.text2, text2=pair.text1) if QUERY in pair.flags else pair


def label_given(pair: GivenPair, source_id: str, *, labels: str, scale: Scale) -> LabelledPair:
    """Return the labelled pair of a given one; its label is 1 from a level of 4 on."""
    level = scale.of_given(pair)
    same = level.value >= SAME_DEGREE
    return LabelledPair(
        text1=pair.text1,
        text2=pair.text2,
        label=int(same),
        score=float(same) if labels == "binary" else level.score,
        weight=round(level.certainty, 4),
        polarity="",
        source_id=source_id,
        flags=[pair.kind] if pair.kind else [],
        supervision="grades",
    )


def synonym_sets(kept: Iterable[Choice]) -> DisjointSets[str]:
    """Return the sets of normalised texts that those of the same meaning among `kept` connect."""
    groups: DisjointSets[str] = DisjointSets()
    for choice in kept:
        if choice.side == "synonym":
            groups.join(choice.source.key, choice.text_key)
    return groups


def random_pairs(
    sources: Sequence[Source],
    *,
    per_source: int,
    seed: int,
    taken: Collection[tuple[str, str]],
    alike: DisjointSets[str] | None = None,
) -> list[LabelledPair]:
    """Return up to `per_source` pairs of each source with another of `sources`; label and score 0.

    A partner is drawn by sha256 of the seed and the source. It is passed over, for the next in alphabetical
    order, when word Jaccard is above 0.5, when both keys are in one set of `alike`, or when the pair is in
    `taken` or was drawn before; after 50 that were, another 50 are drawn one by one. Where nearly all texts
    are alike (lines of one log) there may be fewer pairs, or none.
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
                    row = (source.text, ordered[other].text, 0, 0.0, 1.0, "random", source.id)
                    pairs.append(LabelledPair(*row, supervision="random"))
                    break
            else:
                break  # hardly a partner is left for this source: further draws would search in vain
    return pairs


def _partners(count: int, name: str) -> Iterator[int]:
    """Yield the numbers below `count` to try: from one drawn by `name` onwards, then one by one."""
    # The walk alone would stay among alphabetical neighbours, which are often alike.
    start = stable_hash(name) % count
    for step in range(min(count, _TRIES)):
        yield (start + step) % count
    if count > _TRIES:
        for leap in range(_TRIES):
            yield stable_hash(f"{name}\n{leap}") % count
