"""Scored pairs: what they are, and the rows of a source checked and read as pairs on one scale from 0 to 1.

Imports no torch.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.folders import file_of_grades
from angle_data.tables import HUB_PREFIX, TEXT_COLUMNS, base_name, identity_of
from angle_data.text import counted, normalise
from angle_train.data.scores import inference_classes, labels_by, scale_of, scores_of_classes
from angle_train.data.sources import (
    SCORES,
    Item,
    is_dataset,
    names_of,
    number_in,
    read_rows,
    score_column,
    text_columns,
    text_in,
    warn_if_unfinished,
)
from angle_train.data.triplets import pairs_of_triplets

log = logging.getLogger("angle.pairs")

POLARITY = "polarity"
AT_DEGREES = "degrees"
GRADES = "grades"
HUMAN = "human"
RANDOM = "random"
"""Kinds of supervision that something is known of; a column may hold others."""
TEACHER = "teacher"
"""The supervision of pairs that a teacher scored: another embedding model."""
APART = -1
"""The number of the scale of these pairs."""
BY_LLM = (POLARITY, AT_DEGREES, GRADES)

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
        supervision: What each score rests on, such as `polarity` (a synonym or antonym that an LLM was asked
            for), `degrees` (a sentence at a degree of similarity that it was asked for), `grades` (of pairs
            that it read), `human`, `teacher` (cosines of another model); `random` pairs were drawn. Empty
            where the data does not say; none if it nowhere does.
        roles: Whether text1 is a query and text2 a document, and to be read as such.
        labels: Whether labels were made of the scores: these decide the objective then, not who gave the
            scores.
    """

    name: str
    text1: Sequence[str]
    text2: Sequence[str]
    score: NDArray[np.float64]
    weight: NDArray[np.float64] = field(repr=False)
    source_ids: Sequence[str] | None = field(default=None, repr=False)
    scale: str = "0-1"
    supervision: Sequence[str] | None = field(default=None, repr=False)
    roles: bool = False
    labels: bool = False

    def __len__(self) -> int:
        return len(self.text1)

    def sha256(self) -> str:
        """Return a fingerprint of texts, scores and weights in their order, and of several scales."""
        digest = hashlib.sha256()
        for a, b, score, weight in zip(self.text1, self.text2, self.score, self.weight, strict=True):
            digest.update(f"{a}\0{b}\0{score:.17g}\0{weight:.17g}\n".encode())
        scales = self.scales()
        if len(set(scales)) > 1:
            digest.update(bytes(str(scales), "ascii"))
        return digest.hexdigest()

    def scales(self) -> list[int]:
        """Return the number (B,) of the scale that each score is on; scores of two scales are not compared.

        What an LLM was asked for or graded is on one: ranked apart, dev pairs of STS-B lose 0.6 to 0.8
        (benchmarks/log). People's grades have another, from 1. 0 is that of random pairs, the low
        end of every scale but `APART`, that of a teacher's cosines: it scored random pairs itself.
        """
        names = ["LLM" if name in BY_LLM else name for name in self.supervision or [""] * len(self)]
        scales = sorted({*names} - {RANDOM, TEACHER})
        numbers = {name: number for number, name in enumerate(scales, start=1)}
        numbers |= {RANDOM: 0 if len(scales) > 1 else 1, TEACHER: APART}
        return [numbers[name] for name in names]

    @property
    def taught(self) -> bool:
        """Whether a teacher scored all of them."""
        return self.supervision is not None and set(self.supervision) == {TEACHER}

    def sources(self) -> list[str]:
        """Return for each pair what it was made from: its source id, or else its first text, normalised."""
        return list(self.source_ids) if self.source_ids is not None else [normalise(a) for a in self.text1]

    @property
    def source_count(self) -> int:
        """How many sources there are; of pairs without, how many have no text in common, in their order."""
        if self.source_ids:
            return len(set(self.source_ids))
        taken, count = set[str](), 0
        for texts in zip(map(normalise, self.text1), map(normalise, self.text2), strict=True):
            if taken.isdisjoint(texts):
                taken.update(texts)
                count += 1
        return count

    def counted_sources(self) -> str:
        """Return `source_count` in words, to stand behind the number of pairs."""
        if self.source_ids:
            return f"of {counted(self.source_count, 'source')}"
        return f"{self.source_count:,} of them without a common text"

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
            supervision=None if self.supervision is None else [self.supervision[i] for i in positions],
        )


def load_pairs(
    spec: str,
    split: str | None = None,
    scale: str | None = None,
    rows: str | None = None,
    *,
    threshold: float | None = None,
    one_score: bool = False,
    split_needed: bool = False,
) -> PairSet:
    """Load and check the labelled pairs of a file, a dataset directory, an `llm-score` run or a hub dataset.

    The names of texts and scores are those of `sources`; `weight`, `source_id` and `supervision` (or else
    `polarity`, as older data sets have it) are used where present.
    Labels entailment, neutral and contradiction are scores 1, 0.5 and 0; rows without a class are left out.
    Rows of anchors, positives and negatives in place of a score become pairs, see `pairs_of_triplets`.

    Args:
        spec: What to read, see `sources.read_rows`.
        split: Split of a directory or hub dataset; default train.
        scale: The scale of the scores as `LOW-HIGH`; detected, from all splits of the source, when not
            stated. A dataset directory whose scores lie in 0..1, as `angle-data` writes them, keeps them: the
            scale is that of files beside it.
        rows: In a file with a `split` column, which rows to use; default all. `dev` and `validation` mean
            the same. A file without that column is used whole.
        threshold: Score, on the scale of the source, that makes labels of the scores: 1 above it, 0 below.
            Pairs at it are left out. Default: the scores stay.
        one_score: Whether all scores may be equal, as in a file of positives.
        split_needed: Whether a file without that column is refused instead, if `rows` are given.

    Raises:
        InputError: Something is missing, malformed, blank or outside its range, or all scores are equal.
    """
    every = pairs_of_triplets(list(read_rows(spec, split or "train")))
    if not every:
        raise InputError(f"{spec} holds no pairs; give a file with at least two")
    texts, column = _columns(spec, every[0][1])
    items = every if is_dataset(spec) else _select(spec, every, rows, split_needed=split_needed)
    classes = inference_classes(every, texts, column, scale)
    if classes:
        items, raw, found = scores_of_classes(spec, items, column, classes)
    else:
        raw = np.array([number_in(row, (column,), place) for place, row in items])
        found = scale_of(spec, column, every, items, raw, scale)
    if threshold is not None:
        items, raw, found = labels_by(threshold, spec, items, raw, found)
    if not one_score and raw.min() == raw.max():
        said = "the only score is" if len(raw) == 1 else f"all {len(raw)} scores are"
        raise InputError(f"{spec}: {said} {raw[0]:g}; a ranking needs different scores")
    source_ids = [identity_of(row, "source_id", place) for place, row in items]
    pairs = PairSet(
        name=name_of(spec, split if is_dataset(spec) else rows if "split" in items[0][1] else None),
        text1=[text_in(row, texts[0], place, blank=False) for place, row in items],
        text2=[text_in(row, texts[1], place, blank=False) for place, row in items],
        score=(raw - found.low) / (found.high - found.low),
        weight=np.array([_weight(row, place) for place, row in items]),
        source_ids=None if None in source_ids else [str(identity) for identity in source_ids],
        scale=found.note,
        supervision=_supervision(items),
        labels=threshold is not None,
    )
    if graded := file_of_grades(Path(spec)):
        log.info("%s is a run of llm-score: its %s is read", spec, graded.name)
        warn_if_unfinished(spec)
    log.info("%s: %d pairs, score scale %s", pairs.name, len(pairs), found.note)
    distinct = len({*zip(pairs.text1, pairs.text2, strict=True)})
    if again := len(pairs) - distinct:
        scored = len({*zip(pairs.text1, pairs.text2, pairs.score.tolist(), strict=True)})
        other = f", {scored - distinct:,} with another score" if scored > distinct else ""
        log.info("%s: %s repeated%s; each copy counts", pairs.name, counted(again, "pair"), other)
    if found.assumed:
        log.warning(
            "warning: %s: score scale %s; pass --scale 0-5 or --scale 1-5 to be sure", pairs.name, found.note
        )
    return pairs


def _columns(spec: str, row: dict[str, Any]) -> tuple[tuple[str, str], str]:
    texts = text_columns(row)
    score = score_column(row)
    found = names_of(row)
    if texts is None and "hash1" in row:
        raise InputError(
            f"{spec} holds the ids of issues without their texts; "
            f"`angle-data gis rehydrate --data {spec} --out DIR` fetches them"
        )
    if texts is None and {"source", "polarity", "key"} <= row.keys():
        raise InputError(f"{spec} holds sentences of llm-label; `angle-data ensemble RUN` makes pairs")
    if texts is None:
        known = " or ".join(", ".join(names) for names in TEXT_COLUMNS)
        head = "; the first line must name the columns" if ".csv" in spec or ".tsv" in spec else ""
        raise InputError(
            f"{spec}: no text columns {known} (with a score or label), nor anchor, positive and optionally "
            f"negative; found: {found}{head}"
        )
    if score is None:
        raise InputError(
            f"{spec}: no column {', '.join(SCORES[:-1])} or {SCORES[-1]}; found: {found}; add one "
            "(angle-data grade helps to), or let fit take pairs without scores as --teacher-pairs or --keep"
        )
    return texts, score


def _select(spec: str, items: list[Item], rows: str | None, *, split_needed: bool) -> list[Item]:
    """Return the items of the wanted part of a file that has a `split` column, or all of them."""
    counts = Counter(str(row["split"]) for _, row in items if "split" in row)
    if rows is not None and split_needed and not counts:
        raise InputError(f"{spec} has no split column; evaluate it on its own, without --split {rows}")
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


def _weight(row: dict[str, Any], place: str) -> float:
    if row.get("weight") is None:
        return 1.0
    weight = number_in(row, ("weight",), place)
    if not 0 < weight <= 1:
        raise InputError(f"{place}: weight must be above 0 and at most 1, got {weight:g}")
    return weight


def _supervision(items: list[Item]) -> list[str] | None:
    """Return what the scores rest on; rows of synonyms and antonyms say so in `polarity` too."""
    polarities = [str(row.get("polarity") or "") for _, row in items]
    asked = [POLARITY if value not in ("", RANDOM) else value for value in polarities]
    found = [str(row.get("supervision") or other) for (_, row), other in zip(items, asked, strict=True)]
    return found if any(found) else None


def name_of(spec: str, part: str | None = None) -> str:
    """Return a short name for a source, and a part of it."""
    path = Path(spec.removeprefix(HUB_PREFIX))
    # angle-data writes DIR/dataset: there the parent's name says more.
    base = path.resolve().parent.name if path.name == "dataset" else base_name(path)
    return f"{base}/{part}" if part else base


def distinct_names(sets: Sequence[PairSet]) -> list[PairSet]:
    """Return sets under names that differ: those of one name get a number."""
    names = [pairs.name for pairs in sets]
    return [
        replace(pairs, name=f"{name} #{names[: i + 1].count(name)}") if names.count(name) > 1 else pairs
        for i, (pairs, name) in enumerate(zip(sets, names, strict=True))
    ]


def join(sets: Sequence[PairSet]) -> PairSet:
    """Return all pairs of several sets as one; source ids are kept if every set has them."""
    if len(sets) == 1:
        return sets[0]
    sourced = all(s.source_ids is not None for s in sets)
    ids = [f"{number}/{source}" for number, s in enumerate(sets) for source in s.source_ids or ()]
    return PairSet(
        name=" + ".join(s.name for s in sets),
        text1=[text for s in sets for text in s.text1],
        text2=[text for s in sets for text in s.text2],
        score=np.concatenate([s.score for s in sets]),
        weight=np.concatenate([s.weight for s in sets]),
        source_ids=ids if sourced else None,
        scale="; ".join(f"{s.name}: {s.scale}" for s in sets),
        supervision=(
            [value for s in sets for value in s.supervision or [""] * len(s)]
            if any(s.supervision is not None for s in sets)
            else None
        ),
        roles=all(s.roles for s in sets),
        labels=all(s.labels for s in sets),
    )
