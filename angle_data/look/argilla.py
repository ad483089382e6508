"""Pairs to grade as records for Argilla, where several people grade, and their grades back.

A record is a flat JSON object, as `dataset.records.log` of Argilla 2 takes it: `id`, the fields `sentence1`
and `sentence2`, and the metadata property `split`. Back comes what Argilla exports as JSON: a list of records
from `dataset.records.to_list(flatten=True)`, or from `dataset.records.to_json(path)`, which does not say
which answers were discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import loads, write_jsonl
from angle_data.look.grade import SHEET_SPLITS, Drawn, Graded, write_graded
from angle_data.text import content_id

QUESTION = "score"
"""The name that the rating question must have in Argilla."""
SUBMITTED = "submitted"
_EXPORT = "dataset.records.to_list(flatten=True) as JSON"


def write_records(out: Path, pairs: Drawn) -> None:
    """Write pairs as records, one a line; a file that exists may be in use already and is not replaced."""
    if out.exists():
        raise InputError(f"{out} exists; move it away, or give another --out")
    write_jsonl(
        out,
        (
            {"id": content_id(f"{one}\n{other}"), "sentence1": one, "sentence2": other, "split": split}
            for one, other, split in pairs
        ),
    )


def finish_records(export: Path) -> dict[str, int]:
    """Write the graded pairs of an export beside it, a file for each split; return their counts.

    A pair that several people graded gets the mean of their grades; one that nobody graded is left out.
    """
    return write_graded(export, graded_records(export))


def graded_records(export: Path) -> Graded:
    """Return the pairs of an export that have a grade (both texts and it), by split.

    Raises:
        InputError: The file is no such export, or a grade is no number from 0 to 5.
    """
    graded: Graded = {split: [] for split in SHEET_SPLITS}
    for place, record in _records(export):
        fields, metadata = record.get("fields", record), record.get("metadata", record)
        try:
            texts, split = (fields["sentence1"], fields["sentence2"]), metadata["split"]
        except (KeyError, TypeError):
            raise InputError(f"{place}: no sentence1, sentence2 and split; export {_EXPORT}") from None
        if split not in graded or not all(isinstance(text, str) for text in texts):
            raise InputError(f"{place}: needs two texts, and dev or test as split; got split {split!r}")
        grades = list(_grades(record, place))
        if grades:
            graded[split].append((*texts, f"{fmean(grades):.4g}"))
    return graded


def _records(export: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the records of an export, each with its place."""
    try:
        records = loads(export.read_bytes())
    except OSError as error:
        raise InputError(f"{export}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{export}: is no JSON; export {_EXPORT}") from None
    if not isinstance(records, list):
        raise InputError(f"{export}: holds no list of records; export {_EXPORT}")
    for number, record in enumerate(records, start=1):
        place = f"{export}: record {number}"
        if not isinstance(record, dict):
            raise InputError(f"{place}: is no object; export {_EXPORT}")
        yield place, record


def _grades(record: Mapping[str, Any], place: str) -> Iterator[float]:
    """Yield the grades of one record that people submitted, in either layout."""
    try:
        answers = _nested(record) if "fields" in record else _flat(record)
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{place}: its answers are not as Argilla writes them; export {_EXPORT}") from None
    for value, state in answers:
        if state != SUBMITTED:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 5:
            raise InputError(f"{place}: {QUESTION} must be a number from 0 to 5, got {value!r}")
        yield float(value)


def _nested(record: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return the answers of `to_json`, which does not say which of them were discarded."""
    answers = (record.get("responses") or {}).get(QUESTION) or []
    return [(answer.get("value"), SUBMITTED) for answer in answers]


def _flat(record: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return the answers of `to_list(flatten=True)`, each with its state."""
    values = record.get(f"{QUESTION}.responses") or []
    states = record.get(f"{QUESTION}.responses.status") or [SUBMITTED] * len(values)
    return list(zip(values, states, strict=True))
