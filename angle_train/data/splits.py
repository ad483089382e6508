"""The pairs of a run: which train, which choose the weights, which only report, and what is left out.

Without dev pairs, some training pairs are held out, or human-graded pairs are cut into parts that take turns.
Whether pairs share texts is judged up to normalisation, pairs in either order. Imports no torch.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from angle_data.disjoint import DisjointSets
from angle_data.errors import InputError
from angle_data.text import counted, normalise, pair_key
from angle_train.data.columns import names_of, text_columns, text_in
from angle_train.data.kinds import settle
from angle_train.data.pairs import (
    GRADES,
    HUMAN,
    KEPT,
    RANDOM,
    PairSet,
    distinct_names,
    join,
    load_pairs,
    name_of,
)
from angle_train.data.sources import dataset_splits, read_rows
from angle_train.recipe import ObjectiveConfig, Recipe

log = logging.getLogger("angle.fit")

_HELD_OUT = 0.1
_MOST_LEFT_OUT = 0.25  # of all pairs, for joining a held-out text with another
_ROOTS = 4  # texts around which held-out ones are gathered
_LEAST = 8  # pairs in a part
_SHARED_TEXTS = "%.0f %% of the texts of %s occur in %s pairs too"


@dataclass(frozen=True, slots=True)
class Leak:
    """What one set of pairs shares with what was learned from.

    Attributes:
        role: Role of the measured set, `dev` or `test`.
        name: Its name.
        origin: What it was compared with, `training` or `dev`.
        count: Its pairs.
        pairs: How many of them are in the other set too.
        texts: Share (0..1) of its distinct texts that occur in the other set, whatever their partner.
    """

    role: str
    name: str
    origin: str
    count: int
    pairs: int
    texts: float

    def sentence(self) -> str:
        """Return what is wrong with the shared pairs, for a warning."""
        return f"{self.pairs} of {self.count} {self.role} pairs of {self.name} are {self.origin} pairs too"


@dataclass(frozen=True, slots=True)
class RunData:
    """All pairs of a run.

    Attributes:
        train: What the model is trained on.
        dev: Sets that choose the weights; none if parts of the human-graded pairs do, in turn.
        test: Sets that nothing is chosen on.
        human: The human-graded pairs among `train`, with their weight; none if none were given.
        others: The pairs of `train` that are not human-graded; none if there are none.
        kept: Pairs that are to keep the backbone's similarity, among `others` once it has scored them, see
            `with_kept`; none if none were given.
        dropped: How many training pairs were left out, by reason.
        recipe: The recipe with all that it left open chosen for these pairs.
    """

    train: PairSet
    dev: list[PairSet]
    test: list[PairSet]
    human: PairSet | None = None
    others: PairSet | None = None
    kept: PairSet | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    recipe: Recipe = field(default_factory=Recipe)

    @property
    def evaluated(self) -> list[tuple[str, PairSet]]:
        """The measured sets with their roles, dev sets first."""
        return [*(("dev", pairs) for pairs in self.dev), *(("test", pairs) for pairs in self.test)]


def load_run_data(
    data: Sequence[str],
    human: Sequence[str],
    dev: Sequence[str],
    test: Sequence[str],
    *,
    recipe: Recipe,
    scale: str | None = None,
    drop_leaks: bool = False,
) -> RunData:
    """Load all pairs and decide what each is used for; the arguments are those of `options.FitOptions`.

    Without dev sources, parts of the human-graded pairs take turns; without these, the validation splits of
    the data, or else a tenth of it. What the recipe leaves open is chosen by the kind of the labels.

    Raises:
        InputError: A source cannot be used, or nothing is left to train on.
    """

    def load(specs: Sequence[str], split: str, rows: str, *, one_score: bool = False) -> list[PairSet]:
        return [load_pairs(spec, split, scale, rows, one_score=one_score) for spec in specs]

    sets = load(data, "train", "train", one_score=True)
    graded = load(human, "train", "train")
    if not dev and not human:
        dev = [spec for spec in data if "validation" in dataset_splits(spec)]
    dev_sets = distinct_names(load(dev, "validation", "dev"))
    test_sets = distinct_names(load(test, "test", "test"))
    others = join(sets) if sets else None
    human_pairs = join(graded) if graded else None
    if human_pairs is not None:  # people's scale is not that of other scores
        human_pairs = replace(human_pairs, supervision=[HUMAN] * len(human_pairs))
    recipe = settle(recipe, join([pairs for pairs in (others, human_pairs) if pairs is not None]))
    if human_pairs is not None:
        human_pairs = replace(human_pairs, weight=human_pairs.weight * recipe.training.human_weight)
    if others is not None:
        _check_scores(others if human_pairs is None else join([others, human_pairs]), recipe.objective)
    if others is not None and not dev_sets and human_pairs is None:
        others, held_out = _held_out(others, recipe.training.seed)
        dev_sets = [held_out]
    measured = [*dev_sets, *test_sets] if drop_leaks else None
    others, human_pairs, dropped = _leave_out(others, human_pairs, measured)
    train = together(others, human_pairs, recipe.objective)
    if human_pairs is not None and not dev_sets:
        check_enough(human_pairs)
    if len(set(train.scales())) > 1:
        log.info("human grades are ranked among themselves and against random pairs, not with other scores")
    return RunData(train, dev_sets, test_sets, human_pairs, others, None, dropped, recipe)


def load_to_keep(specs: Sequence[str], scored: Sequence[PairSet]) -> PairSet:
    """Load pairs to keep; their scores are 0 until the backbone gives them some (`run.score_pairs_to_keep`).

    What is learned of one domain changes all embeddings. Pairs of general text, which nobody has to label,
    are ranked among themselves, beside the labelled ones, and are no positives of anything: rehearsal with
    the model's own answers, as in Learning without Forgetting (https://arxiv.org/abs/1606.09282). Any scores
    in the files are left alone: `angle-data mine` writes pairs without. A pair counts once.

    Args:
        specs: What to read, see `sources.read_rows`.
        scored: Pairs that train or measure; of those that occur here too, their own scores count.

    Raises:
        InputError: A row has no two texts, or fewer than two pairs are left.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    total = 0
    for spec in specs:
        for place, row in read_rows(spec, "train"):
            names = text_columns(row)
            if names is None:
                raise InputError(
                    f"{place}: --keep needs pairs of texts, such as text1 and text2; found: {names_of(row)}; "
                    f"`angle-data mine --texts {spec} --out pairs.jsonl` makes pairs of single texts"
                )
            one, other = (text_in(row, name, place, blank=False) for name in names)
            found.setdefault(pair_key(one, other), (one, other))
            total += 1
    first, second = ([pair[end] for pair in found.values()] for end in (0, 1))
    pairs = PairSet(
        name=" + ".join(map(name_of, specs)),
        text1=first,
        text2=second,
        score=np.zeros(len(first)),
        weight=np.ones(len(first)),
        source_ids=[normalise(text) for text in first],
        scale="0-1, the backbone's cosines",
        supervision=[KEPT] * len(first),
    )
    pairs = without_pairs_of(pairs, scored)
    others = "; the others train or measure, or come twice" if len(pairs) < total else ""
    kept = f"{len(pairs):,} of {counted(total, 'pair')}"
    if len(pairs) < 2:
        raise InputError(f"--keep {' '.join(specs)}: it has {kept} to keep{others}; give at least two")
    log.info("%s: %s keep the similarity that the backbone gives them%s", pairs.name, kept, others)
    return pairs


def with_kept(data: RunData, kept: PairSet, similarity: NDArray[np.float64]) -> RunData:
    """Return the data with the pairs to keep among what trains, scored by the backbone's `similarity`."""
    kept, objective = replace(kept, score=similarity.clip(0.0, 1.0)), data.recipe.objective
    others = together(data.others, kept, objective)
    return replace(data, kept=kept, others=others, train=together(others, data.human, objective))


def _leave_out(
    others: PairSet | None, human: PairSet | None, measured: Sequence[PairSet] | None
) -> tuple[PairSet | None, PairSet | None, dict[str, int]]:
    """Return the training pairs that stay, and how many were left out, by reason."""
    dropped: dict[str, int] = {}

    def keep(reason: str, before: PairSet, after: PairSet) -> PairSet:
        count = len(before) - len(after)
        dropped[reason] = dropped.get(reason, 0) + count
        if count:
            log.info("%s: %d of %d pairs left out: %s", before.name, count, len(before), reason)
        return after

    if human is not None and others is not None:
        others = keep("graded by humans", others, without_pairs_of(others, [human]))
    if measured is not None:
        others = others and keep("leaks", others, without_pairs_of(others, measured))
        human = human and keep("leaks", human, without_pairs_of(human, measured))
    return others, human, dropped


def together(others: PairSet | None, human: PairSet | None, objective: ObjectiveConfig) -> PairSet:
    """Return all training pairs as one set; a source keeps its pairs together even if only some name theirs.

    Raises:
        InputError: There are none, or they all have one score that `objective` learns nothing from.
    """
    sets = [pairs for pairs in (others, human) if pairs is not None and len(pairs)]
    if not sets:
        raise InputError("no training pairs are left; give other --data, or leave out --drop-leaks")
    if len(sets) > 1 and any(pairs.source_ids is not None for pairs in sets):
        sets = [replace(pairs, source_ids=pairs.sources()) for pairs in sets]
    pairs = join(sets)
    _check_scores(pairs, objective)
    return pairs


def _check_scores(pairs: PairSet, objective: ObjectiveConfig) -> None:
    """Check that there is something to rank, or that there are positives to tell from the rest of a batch."""
    if np.ptp(pairs.score) > 0:
        return
    positives = pairs.score[0] >= objective.positive_score
    if positives and objective.in_batch_weight > 0:
        return
    advice = "give pairs with other scores too"
    if positives:
        advice += ", or set in_batch_weight above 0, which learns from positives alone"
    raise InputError(
        f"{pairs.name}: all {len(pairs)} training pairs have score {pairs.score[0]:g} on the scale 0-1; "
        f"nothing can be learned; {advice}"
    )


def _held_out(pairs: PairSet, seed: int) -> tuple[PairSet, PairSet]:
    train, held_out = hold_out(pairs, _HELD_OUT, seed)
    log.info("no dev pairs given: %d of the training pairs are held out, by source", len(held_out))
    if np.ptp(pairs.score) == 0:
        raise InputError("pairs of one score cannot choose the weights; give --dev pairs")
    for part in (train, held_out):
        if not len(part) or np.ptp(part.score) == 0:
            raise InputError("too few training pairs to hold some out for selection; give --dev pairs")
    return train, held_out


def find_leaks(origin: str, seen: PairSet, role: str, measured: PairSet) -> Leak:
    """Return what `measured` shares with `seen`; that a text is shared is no fault, that a pair is shared is.

    A model that has learned one pair of a text may well be asked about another, so texts are only counted.
    """
    keys = set(_pair_keys(seen))
    texts, own = ({normalise(text) for text in (*one.text1, *one.text2)} for one in (seen, measured))
    return Leak(
        role=role,
        name=measured.name,
        origin=origin,
        count=len(measured),
        pairs=sum(key in keys for key in _pair_keys(measured)),
        texts=len(own & texts) / len(own) if own else 0.0,
    )


def without_pairs_of(pairs: PairSet, others: Sequence[PairSet]) -> PairSet:
    """Return `pairs` without those that one of `others` holds too."""
    seen = {key for other in others for key in _pair_keys(other)}
    keep = [i for i, key in enumerate(_pair_keys(pairs)) if key not in seen]
    return pairs if len(keep) == len(pairs) else pairs.take(keep, pairs.name)


def _pair_keys(pairs: PairSet) -> list[tuple[str, str]]:
    return [pair_key(a, b) for a, b in zip(pairs.text1, pairs.text2, strict=True)]


def run_leaks(data: RunData) -> list[Leak]:
    """Return what every measured set shares with what was learned from, and warn of shared pairs."""
    found = []
    if not data.dev and data.human is not None and data.others is not None:
        # Each part is measured by a run on all of the other pairs; those that it shares were left out.
        found.append(find_leaks("training", data.others, "dev", data.human))
        log.info(_SHARED_TEXTS, 100 * found[-1].texts, data.human.name, "the other training")
    for role, pairs in data.evaluated:
        learned = [("training", data.train), *(("dev", dev) for dev in data.dev if role == "test")]
        for origin, seen in learned:
            leak = find_leaks(origin, seen, role, pairs)
            found.append(leak)
            if leak.pairs:
                mend = "; --drop-leaks leaves them out of training" if origin == "training" else ""
                log.warning("warning: %s: results on them are flattered%s", leak.sentence(), mend)
            elif leak.texts:
                log.info(_SHARED_TEXTS, 100 * leak.texts, pairs.name, origin)
    return found


# By hand, not by scikit-learn: StratifiedGroupKFold takes 10 s for 20,000 pairs (this: 0.7 s) and its parts
# are less alike in size and scores; the shares of GroupShuffleSplit are of groups, not of pairs.


def hold_out(pairs: PairSet, fraction: float, seed: int) -> tuple[PairSet, PairSet]:
    """Divide pairs into `(train, dev)` so that no source has pairs in both, and dev a `fraction` at most.

    Without source ids, pairs that share a text, directly or through others, stay together. If that ties
    nearly everything together, texts are held out that have most of their pairs among themselves. If that
    does not help either, single pairs are, with a warning. Pairs that join texts of two sources are left out
    where one of these is held out and the other is not.
    """
    wanted = fraction * len(pairs)
    first, second = _ends(pairs)
    held = {first[position] for position in _fill(_positions(first), wanted, seed)}
    texts_held = _held(first, second, held)
    if texts_held.count(2) < wanted / 2:
        if first == second and pairs.source_ids is None:
            first, second = ([normalise(text) for text in side] for side in (pairs.text1, pairs.text2))
        texts_held = _held(first, second, _gather(first, second, wanted, seed))
    if texts_held.count(2) < wanted / 2:
        log.warning("%s: nearly all pairs share texts, so single pairs are held out", pairs.name)
        dev = set(_fill(_positions([str(position) for position in range(len(pairs))]), wanted, seed))
        texts_held = [2 * (position in dev) for position in range(len(pairs))]
    if 1 in texts_held:
        log.info("%s: %d pairs of a held-out text and another are left out", pairs.name, texts_held.count(1))
    train, out = ([i for i, count in enumerate(texts_held) if count == wish] for wish in (0, 2))
    return pairs.take(train, pairs.name), pairs.take(out, f"{pairs.name}/held-out")


def _held(first: Sequence[str], second: Sequence[str], held: Collection[str]) -> list[int]:
    """Return for each pair how many of its two ends are held out."""
    return [(a in held) + (b in held) for a, b in zip(first, second, strict=True)]


def _gather(first: Sequence[str], second: Sequence[str], wanted: float, seed: int) -> set[str]:
    """Return ends to hold out, so that about `wanted` pairs lie among them and few join one with another.

    Gathered around `_ROOTS` ends in hashed order: always that comes next of whose pairs most lie within.
    Of one that would bring the pairs left out above `_MOST_LEFT_OUT` nothing is taken.
    """
    partners: dict[str, Counter[str]] = {}
    for a, b in zip(first, second, strict=True):
        partners.setdefault(a, Counter())[b] += 1
        if a != b:
            partners.setdefault(b, Counter())[a] += 1
    roots = iter(sorted(partners, key=lambda key: _hashed(key, seed)))
    held: set[str] = set()
    seen: set[str] = set()
    within: Counter[str] = Counter()  # of an end's pairs, those with held ones
    near: list[tuple[float, bytes, str]] = []
    inside = left_out = planted = 0
    while inside < wanted and len(seen) < len(partners):
        if not near or planted * wanted <= _ROOTS * inside:
            key, planted = next(root for root in roots if root not in seen), planted + 1
        elif (key := heappop(near)[-1]) in seen:
            continue
        seen.add(key)
        own, total = partners[key][key], partners[key].total()
        crossing = total - own - 2 * within[key]
        if left_out + crossing > _MOST_LEFT_OUT * len(first):
            continue
        held.add(key)
        inside, left_out = inside + own + within[key], left_out + crossing
        for other in partners[key].keys() - seen:
            within[other] += partners[key][other]
            share = (within[other] + partners[other][other]) / partners[other].total()
            heappush(near, (-share, _hashed(other, seed), other))
    return held


def _ends(pairs: PairSet) -> tuple[list[str], list[str]]:
    """Return for each pair what its first text and what its second text belongs to.

    That is one thing, its source, but for pairs among given texts: graded and random ones whose texts both
    stand in other pairs too.
    """
    if pairs.supervision is None or GRADES not in pairs.supervision:
        keys = list(pairs.source_ids or connected(pairs))
        return keys, keys
    texts = [(normalise(a), normalise(b)) for a, b in zip(pairs.text1, pairs.text2, strict=True)]
    often = Counter(text for pair in texts for text in pair)
    sets: DisjointSets[str] = DisjointSets()
    for position, (a, b) in enumerate(texts):
        if pairs.supervision[position] not in (GRADES, RANDOM) or min(often[a], often[b]) == 1:
            sets.join(a, b)
            if pairs.source_ids is not None:
                sets.join(a, f"\0{pairs.source_ids[position]}")
    return [sets.leader(a) for a, _ in texts], [sets.leader(b) for _, b in texts]


def _positions(keys: Sequence[str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for position, key in enumerate(keys):
        groups.setdefault(key, []).append(position)
    return groups


def _fill(groups: dict[str, list[int]], wanted: float, seed: int) -> list[int]:
    """Return the positions of whole groups, taken in hashed order as long as they fit."""
    taken: list[int] = []
    for key in sorted(groups, key=lambda key: _hashed(key, seed)):
        if len(taken) + len(groups[key]) <= wanted:
            taken += groups[key]
    return taken


def _hashed(key: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}/{key}".encode()).digest()


def connected(pairs: PairSet) -> list[str]:
    """Return for each pair the first of the texts, normalised, that it shares a chain of pairs with."""
    sets: DisjointSets[str] = DisjointSets()
    keys = [(normalise(a), normalise(b)) for a, b in zip(pairs.text1, pairs.text2, strict=True)]
    for a, b in keys:
        sets.join(a, b)
    return [sets.leader(a) for a, _ in keys]


def check_enough(pairs: PairSet) -> None:
    """Raise an InputError if there are too few pairs to `cut` in two parts."""
    if len(pairs) < 2 * _LEAST:
        raise InputError(
            f"{pairs.name}: {len(pairs)} pairs are too few to choose the number of steps on; "
            f"give at least {2 * _LEAST}, or --dev pairs"
        )


def cut(pairs: PairSet, count: int, seed: int) -> list[list[int]]:
    """Return the positions of `count` parts of about equal size and scores; no text is in two of them.

    Pairs that share a text, directly or through others, stay together. If that ties too many together, single
    pairs are dealt instead, with a warning. Few pairs make fewer parts; too few for two are an InputError.
    """
    check_enough(pairs)
    count = min(count, len(pairs) // _LEAST)
    parts = _deal(list(_positions(connected(pairs)).values()), pairs, count, seed)
    if min(map(len, parts)) < max(_LEAST, len(pairs) // (2 * count)):
        log.warning("%s: too many pairs share texts, so single pairs are dealt into parts", pairs.name)
        parts = _deal([[position] for position in range(len(pairs))], pairs, count, seed)
    return [sorted(part) for part in parts]


def _deal(groups: Sequence[list[int]], pairs: PairSet, count: int, seed: int) -> list[list[int]]:
    """Deal groups, the largest first and then by score, each to the part that is smallest so far."""

    def order(group: list[int]) -> tuple[int, float, bytes]:
        score = sum(float(pairs.score[i]) for i in group) / len(group)
        first = f"{seed}/{pairs.text1[group[0]]}\0{pairs.text2[group[0]]}"
        return -len(group), score, hashlib.sha256(first.encode()).digest()

    parts: list[list[int]] = [[] for _ in range(count)]
    for group in sorted(groups, key=order):
        min(parts, key=len).extend(group)
    return parts
