"""Labelled pairs as the trainer and the evaluators want them: checked, on one scale from 0 to 1.

Reads through `rows`; imports no torch.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.disjoint import DisjointSets
from angle_data.errors import InputError
from angle_data.text import normalise, whole_characters
from angle_train.data.scales import Scale, detect_scale, parse_scale
from angle_train.data.sources import HUB_PREFIX, is_dataset, read_rows
from angle_train.data.triplets import Item, pairs_of_triplets

log = logging.getLogger("angle.pairs")

_TEXT_COLUMNS = (("text1", "text2"), ("sentence1", "sentence2"))
_SCORE_COLUMNS = ("score", "label")
_SPLIT_NAMES = {"dev": ("dev", "validation"), "validation": ("validation", "dev")}


@dataclass(frozen=True, slots=True)
class PairSet:
    """B scored text pairs.

    Attributes:
        name: Short name for logs and reports.
        text1: First texts.
        text2: Second texts.
        score: Gold similarity (B,), 0..1; the pairs of evaluation tasks keep their own scale.
        weight: Trust in each pair (B,), in (0, 1] as loaded.
        source_ids: Source each pair was made from, if the data says.
        scale: The scale the scores were on, and how that is known.
    """

    name: str
    text1: Sequence[str]
    text2: Sequence[str]
    score: NDArray[np.float64]
    weight: NDArray[np.float64] = field(repr=False)
    source_ids: Sequence[str] | None = field(default=None, repr=False)
    scale: str = "0-1"

    def __len__(self) -> int:
        return len(self.text1)

    def sha256(self) -> str:
        """Return a fingerprint of texts, scores and weights in their order."""
        digest = hashlib.sha256()
        for a, b, score, weight in zip(self.text1, self.text2, self.score, self.weight, strict=True):
            digest.update(f"{a}\0{b}\0{score:.17g}\0{weight:.17g}\n".encode())
        return digest.hexdigest()

    def sources(self) -> list[str]:
        """Return for each pair what it was made from: its source id, or else its first text, normalised."""
        return list(self.source_ids) if self.source_ids is not None else [normalise(a) for a in self.text1]

    def take(self, positions: Sequence[int], name: str) -> PairSet:
        """Return the pairs at `positions`, in that order, under another name."""
        return replace(
            self,
            name=name,
            text1=[self.text1[i] for i in positions],
            text2=[self.text2[i] for i in positions],
            score=self.score[list(positions)],
            weight=self.weight[list(positions)],
            source_ids=None if self.source_ids is None else [self.source_ids[i] for i in positions],
        )


def load_pairs(
    spec: str,
    split: str | None = None,
    scale: str | None = None,
    rows: str | None = None,
    *,
    one_score: bool = False,
) -> PairSet:
    """Load and check the labelled pairs of a file, a dataset directory or a hub dataset.

    Texts stand in `text1`/`text2` or `sentence1`/`sentence2`, the gold score in `score` or else `label`;
    `weight` and `source_id` are used where present. Rows of anchors, positives and negatives in place of a
    score become pairs, see `triplets.pairs_of_triplets`.

    Args:
        spec: What to read, see `rows.read_rows`.
        split: Split of a directory or hub dataset; default train.
        scale: The scale of the scores as `LOW-HIGH`; detected when not stated. A dataset directory whose
            scores lie in 0..1, as `angle-data` writes them, keeps them: the scale is that of files beside it.
        rows: In a file with a `split` column, which rows to use; default all. `dev` and `validation` mean
            the same. A file without that column is used whole.
        one_score: Whether all scores may be equal, as in a file of positives.

    Raises:
        InputError: Something is missing, malformed, blank or outside its range, or all scores are equal.
    """
    items = pairs_of_triplets(list(read_rows(spec, split or "train")))
    if not items:
        raise InputError(f"{spec}: no pairs in it; give a file with at least two")
    first_text, second_text, score_column = _columns(spec, items[0][1])
    if not is_dataset(spec):
        items = _select(spec, items, rows)
    scores, note = _unit_scores(spec, items, score_column, scale)
    if not one_score and scores.min() == scores.max():
        raw = _number(items[0][1], score_column, items[0][0])
        raise InputError(f"{spec}: all {len(scores)} scores are {raw:g}; nothing can be ranked")
    has_source = all(row.get("source_id") is not None for _, row in items)
    pairs = PairSet(
        name=_name(spec, split if is_dataset(spec) else rows if "split" in items[0][1] else None),
        text1=[_text(row, first_text, place) for place, row in items],
        text2=[_text(row, second_text, place) for place, row in items],
        score=scores,
        weight=np.array([_weight(row, place) for place, row in items]),
        source_ids=[str(row["source_id"]) for _, row in items] if has_source else None,
        scale=note,
    )
    log.info("%s: %d pairs, score scale %s", pairs.name, len(pairs), note)
    return pairs


def check_stated_scale(stated: str | None, sets: Sequence[PairSet]) -> None:
    """Check that the scale stated for several sources was applied to at least one of them.

    Raises:
        InputError: It was not: all are dataset directories with scores in 0..1.
    """
    if stated and not any(pairs.scale == parse_scale(stated).note for pairs in sets):
        raise InputError(
            f"--scale {stated} fits none of the pairs: all are dataset directories with scores in 0-1; "
            "leave it out"
        )


def distinct_names(sets: Sequence[PairSet], specs: Sequence[str]) -> list[PairSet]:
    """Return sets under names that differ: those of one name get the folders that tell them apart.

    What lies in one folder, such as a file that was given twice, is numbered.

    Args:
        sets: What was loaded.
        specs: What each was loaded from, see `load_pairs`.
    """
    places: dict[str, list[tuple[str, ...]]] = {}
    for pairs, spec in zip(sets, specs, strict=True):
        places.setdefault(pairs.name, []).append(_folders(spec))
    names = []
    for pairs, spec in zip(sets, specs, strict=True):
        distinct = set(places[pairs.name])
        depth = next(d for d in itertools.count() if len({_last(f, d) for f in distinct}) == len(distinct))
        names.append("/".join([*_last(_folders(spec), depth), pairs.name]))
    return [
        replace(pairs, name=f"{name} #{names[: i + 1].count(name)}" if names.count(name) > 1 else name)
        for i, (pairs, name) in enumerate(zip(sets, names, strict=True))
    ]


def join(sets: Sequence[PairSet]) -> PairSet:
    """Return all pairs of several sets as one; source ids are kept if every set has them."""
    if len(sets) == 1:
        return sets[0]
    known = [
        [f"{number}/{source}" for source in s.source_ids]
        for number, s in enumerate(sets)
        if s.source_ids is not None
    ]
    return PairSet(
        name=" + ".join(s.name for s in sets),
        text1=[text for s in sets for text in s.text1],
        text2=[text for s in sets for text in s.text2],
        score=np.concatenate([s.score for s in sets]),
        weight=np.concatenate([s.weight for s in sets]),
        source_ids=[source for ids in known for source in ids] if len(known) == len(sets) else None,
        scale="; ".join(f"{s.name}: {s.scale}" for s in sets),
    )


def hold_out(pairs: PairSet, fraction: float, seed: int) -> tuple[PairSet, PairSet]:
    """Divide pairs into `(train, dev)` so that no source has pairs in both.

    Without source ids, pairs that share a text, directly or through others, stay together. If that ties
    nearly everything together, single pairs are drawn instead, with a warning.

    Args:
        pairs: What to divide.
        fraction: Share of the pairs that dev should get, at most.
        seed: Chooses which sources.
    """
    groups: dict[str, list[int]] = {}
    for position, key in enumerate(pairs.source_ids or connected(pairs)):
        groups.setdefault(key, []).append(position)
    wanted = fraction * len(pairs)
    dev = _fill(list(groups.values()), wanted, list(groups), seed)
    if len(dev) < wanted / 2:
        log.warning("%s: nearly all pairs share texts, so single pairs are held out", pairs.name)
        positions = [[position] for position in range(len(pairs))]
        dev = _fill(positions, wanted, [str(position) for position in range(len(pairs))], seed)
    chosen = set(dev)
    train = [position for position in range(len(pairs)) if position not in chosen]
    return pairs.take(train, pairs.name), pairs.take(sorted(dev), f"{pairs.name}/held-out")


def _fill(groups: list[list[int]], wanted: float, keys: list[str], seed: int) -> list[int]:
    """Return the positions of whole groups, taken in hashed order as long as they fit."""
    order = sorted(range(len(groups)), key=lambda i: hashlib.sha256(f"{seed}/{keys[i]}".encode()).digest())
    taken: list[int] = []
    for i in order:
        if len(taken) + len(groups[i]) <= wanted:
            taken += groups[i]
    return taken


def connected(pairs: PairSet) -> list[str]:
    """Return for each pair the first of the texts, normalised, that it shares a chain of pairs with."""
    sets: DisjointSets[str] = DisjointSets()
    keys = [(normalise(a), normalise(b)) for a, b in zip(pairs.text1, pairs.text2, strict=True)]
    for a, b in keys:
        sets.join(a, b)
    return [sets.leader(a) for a, _ in keys]


def _columns(spec: str, row: dict[str, Any]) -> tuple[str, str, str]:
    found = ", ".join(map(str, row)) or "none"
    texts = next((names for names in _TEXT_COLUMNS if set(names) <= row.keys()), None)
    if texts is None and "hash1" in row:
        raise InputError(
            f"{spec} holds the ids of issues without their texts; "
            f"`angle-data gis rehydrate --data {spec} --out DIR` fetches them"
        )
    if texts is None:
        raise InputError(
            f"{spec}: no text columns text1, text2 or sentence1, sentence2 (with a score or label), nor "
            f"anchor, positive and perhaps negative; found: {found}"
        )
    score = next((name for name in _SCORE_COLUMNS if name in row), None)
    if score is None:
        raise InputError(f"{spec}: no score or label column; found: {found}")
    return *texts, score


def _select(spec: str, items: list[Item], rows: str | None) -> list[Item]:
    """Return the items of the wanted part of a file that has a `split` column, or all of them."""
    counts = Counter(str(row["split"]) for _, row in items if "split" in row)
    if not counts:
        if rows not in (None, "train"):
            log.info("%s: no split column, all rows are used as %s", spec, rows)
        return items
    found = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    if rows is None:
        log.info("%s: all rows are used although it has a split column (%s)", spec, found)
        return items
    wanted = _SPLIT_NAMES.get(rows, (rows,))
    kept = [(place, row) for place, row in items if str(row.get("split")) in wanted]
    if not kept:
        raise InputError(f"{spec}: no rows with split {' or '.join(wanted)}; found: {found}")
    log.info("%s: rows with split %s are used (%s)", spec, rows, found)
    return kept


def _unit_scores(
    spec: str, items: list[Item], column: str, stated: str | None
) -> tuple[NDArray[np.float64], str]:
    """Return the scores mapped to 0..1 and a note on their scale."""
    places = [place for place, _ in items]
    raw = np.array([_number(row, column, place) for place, row in items])
    scale = _scale(spec, raw, places, stated)
    for position in np.flatnonzero((raw < scale.low) | (raw > scale.high)):
        raise InputError(
            f"{places[position]}: score {raw[position]:g} is outside the scale {scale.low:g}-{scale.high:g}"
        )
    return scale.to_unit(raw), scale.note


def _scale(spec: str, raw: NDArray[np.float64], places: list[str], stated: str | None) -> Scale:
    if not stated:
        return detect_scale(raw, places)
    scale = parse_scale(stated)
    if (scale.low, scale.high) != (0, 1) and Path(spec).is_dir() and raw.min() >= 0 and raw.max() <= 1:
        # What `angle-data` writes is in 0..1 whatever the scale of the files beside it.
        return Scale(0.0, 1.0, f"0-1, detected; the stated {stated} is for the other sources")
    return scale


def _text(row: dict[str, Any], column: str, place: str) -> str:
    text = row.get(column)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{place}: {column} must be a text that is not blank, got {text!r}; remove the row")
    return whole_characters(text)


def _number(row: dict[str, Any], column: str, place: str) -> float:
    value: Any = row.get(column)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{place}: {column} must be a number, got {value!r}")
    return number


def _weight(row: dict[str, Any], place: str) -> float:
    if row.get("weight") is None:
        return 1.0
    weight = _number(row, "weight", place)
    if not 0 < weight <= 1:
        raise InputError(f"{place}: weight must be above 0 and at most 1, got {weight:g}")
    return weight


def _name(spec: str, part: str | None) -> str:
    path = Path(spec.removeprefix(HUB_PREFIX))
    # angle-data writes DIR/dataset: there the parent's name says more.
    base = path.resolve().parent.name if path.name == "dataset" else path.name
    for suffix in (".gz", ".jsonl", ".csv", ".parquet"):
        base = base.removesuffix(suffix)
    return f"{base}/{part}" if part else base


def _folders(spec: str) -> tuple[str, ...]:
    """Return the folders that what `_name` calls by its own name lies in."""
    path = Path(spec.removeprefix(HUB_PREFIX))
    parts = path.relative_to(path.anchor).parts
    return parts[:-2] if path.name == "dataset" else parts[:-1]


def _last(parts: tuple[str, ...], count: int) -> tuple[str, ...]:
    return parts[max(0, len(parts) - count) :]
