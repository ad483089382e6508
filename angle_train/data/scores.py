"""What the scores of a source mean: the scale that they are on, or the classes of inference that they are.

Imports no torch.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.folders import file_of_grades
from angle_data.records import SCALE
from angle_data.tables import INFERENCE_COLUMNS, number_of
from angle_data.text import counted
from angle_train.data.sources import Item, dataset_splits, is_dataset, read_rows

log = logging.getLogger("angle.pairs")

_FEWEST_OF_A_LABEL = 10  # pairs; with fewer a threshold was most likely set on another scale, or too far out
_STATED_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)")

_INFERENCE_SCORES = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}
_NAMED_SCORES = _INFERENCE_SCORES | {"not_entailment": 0.0}  # the latter in corpora of two classes
_INFERENCE_NUMBERS = dict(zip("012", _INFERENCE_SCORES, strict=True))  # as SNLI and MNLI have them
_CLASS_COLUMNS = ("label", "gold_label")
_NO_CLASS = ("-1", "-")  # annotators did not agree


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """A scale of scores; `note` says how it is known, `assumed` whether the scores leave it open.

    Which one is taken makes no difference to rank correlations; the thresholds of the objective depend on it.
    """

    low: float
    high: float
    note: str
    assumed: bool = False


def parse_scale(text: str) -> ScoreRange:
    """Read a stated scale such as `0-5`, `1-5` or `-1-1`; without LOW below HIGH it is an InputError."""
    match = _STATED_SCALE.fullmatch(text.strip())
    if match is None or float(match[1]) >= float(match[2]):
        raise InputError(f"scale {text!r} must be LOW-HIGH with LOW below HIGH, such as 0-5 or 1-5")
    return ScoreRange(float(match[1]), float(match[2]), f"{match[0]}, as stated")


def detect_scale(scores: NDArray[np.float64], places: Sequence[str]) -> ScoreRange:
    """Return the scale that finite scores (B,) are on: 0-1, or 0-5, or 1-5 where none is below 1.

    Scores from 1 on that do not reach both ends of 1-5 could be on either scale. Real files on 0-5 nearly
    always hold a score below 1, so 1-5 is assumed, and the note says so.

    Raises:
        InputError: They fit none of these; names the first that does not, by its place, and how to state it.
    """
    low, high = float(scores.min()), float(scores.max())
    if low >= 0 and high <= 1:
        return ScoreRange(0.0, 1.0, "0-1, detected")
    for misfit in np.flatnonzero((scores < 0) | (scores > 5)):
        raise InputError(
            f"{places[misfit]}: score {scores[misfit]:g} fits no known scale (0-1, 0-5, 1-5); "
            "give it with --scale LOW-HIGH"
        )
    if high <= 2 and not (scores % 1).any():
        # 0, 1, 2 may be grades, but are just as often the classes of an inference corpus, which rank nothing.
        raise InputError(
            f"{places[int(scores.argmax())]}: scores {low:g} to {high:g} may be classes or grades; "
            f"if they are grades, pass --scale 0-{high:g}"
        )
    span = f"(lowest score {low:g}, highest {high:g})"
    if low < 1:
        return ScoreRange(0.0, 5.0, f"0-5, detected {span}")
    if (low, high) == (1, 5):
        return ScoreRange(1.0, 5.0, f"1-5, detected {span}")
    return ScoreRange(1.0, 5.0, f"1-5, assumed {span}", assumed=True)


def scale_of(
    spec: str,
    column: str,
    every: Sequence[Item],
    items: Sequence[Item],
    raw: NDArray[np.float64],
    stated: str | None,
) -> ScoreRange:
    """Return the scale of a source, having checked that the scores (B,) of all items are on it.

    What the file says of itself (column `scale`) counts more than what is `stated` for all files. Unless
    either is there, the other splits of the source, `every` row of a file, help to tell: one of them may hold
    the ends of the scale that another lacks. What has no score there, or -1 for a hidden one, does not.
    """
    places = [place for place, _ in items]
    if (own := _own_scale(spec, every)) is not None:
        _check_within(own, raw, places, f"its column {SCALE}")
        return own
    if not stated:
        if is_dataset(spec) and raw.max() > 1:
            every = [item for split in dataset_splits(spec) for item in read_rows(spec, split)]
        others = [(number_of(row.get(column)), place) for place, row in every]
        others = [(number, place) for number, place in others if number >= 0]
        return detect_scale(
            np.append(raw, [n for n, _ in others]), [*places, *(place for _, place in others)]
        )
    scale = parse_scale(stated)
    is_built = Path(spec).is_dir() and not file_of_grades(Path(spec))
    if (scale.low, scale.high) != (0, 1) and is_built and raw.min() >= 0 and raw.max() <= 1:
        # What `ensemble` and `gis` write is in 0..1 whatever the scale of the files beside it.
        return ScoreRange(0.0, 1.0, f"0-1, detected; the stated {stated} is for the other sources")
    _check_within(scale, raw, places, "--scale")
    return scale


def check_stated(spec: str, items: Sequence[Item], raw: NDArray[np.float64]) -> bool:
    """Return whether all rows state one scale of their scores (B,).

    Raises:
        InputError: A score does not lie on the scale that its row states, or rows state different ones.
    """
    stated = [number for number, (_, row) in enumerate(items) if _states(row)]
    some = [items[number] for number in stated]
    if some and (own := _own_scale(spec, some)) is not None:
        _check_within(own, raw[stated], [place for place, _ in some], f"its column {SCALE}")
    return len(some) == len(items)


def check_threshold(threshold: object) -> None:
    """Raise an InputError unless a threshold, if there is one, is a finite number."""
    if threshold is None:
        return
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold):
        raise InputError(f"--threshold must be a number on the scale of the scores, got {threshold!r}")


def labels_by(
    threshold: float, spec: str, items: Sequence[Item], raw: NDArray[np.float64], scale: ScoreRange
) -> tuple[list[Item], NDArray[np.float64], ScoreRange]:
    """Return the items whose score (B,) is not at a threshold, their labels, and a note on these.

    The label is 1 above the threshold and 0 below it. Scores that are labels already, as they all lie at the
    ends of their scale, stay as they are.

    Raises:
        InputError: The threshold does not lie between the ends of the scale, or no score lies on one of its
            sides.
    """
    if np.isin(raw, (scale.low, scale.high)).all():
        return list(items), raw, replace(scale, note=f"{scale.note}; labels already")
    if not scale.low < threshold < scale.high:
        raise InputError(
            f"{spec}: --threshold {threshold:g} must lie above {scale.low:g} and below {scale.high:g}, the "
            f"ends of its scale: {scale.note}"
        )
    kept = np.flatnonzero(~np.isclose(raw, threshold))  # scores may have been through float32
    labels = (raw[kept] > threshold).astype(np.float64)
    for side, label in (("above", 1), ("below", 0)):
        if label not in labels:
            raise InputError(
                f"{spec}: no score lies {side} --threshold {threshold:g}; they go from {raw.min():g} to "
                f"{raw.max():g}"
            )
    yes, left = int(labels.sum()), len(items) - len(kept)
    note = f"{scale.note}; {yes:,} above {threshold:g} are label 1, {len(kept) - yes:,} below it 0"
    if left:
        note += f", {left:,} at it left out"
    if min(yes, len(kept) - yes) < _FEWEST_OF_A_LABEL:
        log.warning(
            "warning: %s: --threshold %g gives label 1 to %s and 0 to %d; fewer than %d of one label "
            "say little",
            *(spec, threshold, counted(yes, "pair"), len(kept) - yes, _FEWEST_OF_A_LABEL),
        )
    return [items[i] for i in kept], labels, ScoreRange(0.0, 1.0, note)


def _states(row: dict[str, Any]) -> bool:
    """Return whether a row states the scale of its score."""
    return _STATED_SCALE.fullmatch(str(row.get(SCALE) or "").strip()) is not None


def _own_scale(spec: str, every: Sequence[Item]) -> ScoreRange | None:
    """Return the scale that all rows of a file name; None where one names none, or means another thing."""
    if not all(_states(row) for _, row in every):
        return None
    said = sorted({str(row[SCALE]).strip() for _, row in every})
    try:
        scales = [parse_scale(text) for text in said]
    except InputError as error:
        raise InputError(f"{spec}: column {SCALE}: {error}") from error
    if len({(scale.low, scale.high) for scale in scales}) > 1:
        raise InputError(
            f"{spec}: the column {SCALE} says {' and '.join(said)}; bring all scores on one scale, or make a "
            "file of each"
        )
    return replace(scales[0], note=f"{said[0]}, as the file says")


def _check_within(scale: ScoreRange, raw: NDArray[np.float64], places: Sequence[str], said_by: str) -> None:
    """Raise an `InputError` about the first score (B,) outside a scale, and who said that it is that one."""
    for misfit in np.flatnonzero((raw < scale.low) | (raw > scale.high)):
        raise InputError(
            f"{places[misfit]}: score {raw[misfit]:g} is outside the scale {scale.low:g}-{scale.high:g}; "
            f"fix the row or {said_by}"
        )


def inference_classes(
    every: Sequence[Item], texts: tuple[str, str], column: str, stated: str | None
) -> dict[str, float] | None:
    """Return the score of each label where labels are classes of inference; None where they are scores.

    Their names say so, or the names of the texts; numbers with a stated scale are scores.
    """
    if column not in _CLASS_COLUMNS:
        return None
    written = {_written(row, column) for _, row in every}
    if written & _NAMED_SCORES.keys():
        return _NAMED_SCORES
    if stated or texts not in INFERENCE_COLUMNS or not written <= {*_INFERENCE_NUMBERS, *_NO_CLASS}:
        return None
    if "2" not in written:
        raise InputError(
            f"{every[0][0]}: labels 0 and 1 of {texts[0]} and {texts[1]} may be scores, or classes with 0 "
            "for entailment; pass --scale 0-1 if 1 is the closer pair, else write the names of the classes"
        )
    return {number: _INFERENCE_SCORES[name] for number, name in _INFERENCE_NUMBERS.items()}


def _written(row: dict[str, Any], column: str) -> str:
    number = number_of(row.get(column))
    return str(row.get(column)).strip().lower() if np.isnan(number) else f"{number:g}"


def scores_of_classes(
    spec: str, items: Sequence[Item], column: str, classes: dict[str, float]
) -> tuple[list[Item], NDArray[np.float64], ScoreRange]:
    """Return the items that have a class, their scores, and a note on how they were read."""
    kept = [(place, row) for place, row in items if _written(row, column) not in _NO_CLASS]
    if not kept:
        raise InputError(f"{spec}: no row has a class label; label them {', '.join(classes)}")
    for place, row in kept:
        if _written(row, column) not in classes:
            raise InputError(f"{place}: {column} must be {', '.join(classes)}, got {row.get(column)!r}")
    numbers = " (written 0, 1, 2, as in SNLI)" if "0" in classes else ""
    note = f"0-1: labels read as entailment 1, neutral 0.5, contradiction 0{numbers}"
    if len(kept) < len(items):
        note += f"; {counted(len(items) - len(kept), 'row')} without a class left out"
    return kept, np.array([classes[_written(row, column)] for _, row in kept]), ScoreRange(0.0, 1.0, note)
