"""Turns the reply to a grading request into one grade per pair, or the reason why a pair has none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from angle_data.labelling.replies.chatter import is_refusal
from angle_data.labelling.replies.layout import only_answer, without_fences
from angle_data.labelling.replies.structured import values_in
from angle_data.records import TOP_GRADE

GRADE_REASONS: dict[str, str] = {
    "blocked": "a filter of the service stopped the reply",
    "ambiguous": "several numbers, a range, or grades of pairs that were not in the call: which is whose?",
    "missing_id": "the reply grades other pairs of the call, but not this one",
    "no_number": "a reply without a grade",
    "out_of_range": "a grade below 0 or above 5",
    "refusal": "the grader declined",
    "not_recorded": "the file of recorded grades has none for this pair",
    "refused_by_server": "no reply: whoever was asked refuses this request for good, and answers others",
    "request_failed": "no reply: the request failed and is asked again in the next run",
    "truncated": "the reply was cut off before this grade",
}
"""Reason code -> meaning, for everything that `llm-score` writes to rejected.jsonl."""

_NUMBER = r"[-−]?\d++(?:[.,]\d++)?"
_OF_FIVE = r"(?:\s{0,4}(?:/|out\s{1,4}of|von|sur|de)\s{0,4}5(?:[.,]0)?\b)?"
_VALUE = re.compile(rf"\s*+({_NUMBER}){_OF_FIVE}\s*+(?:points?\s*+)?(?:\.\s*+)?", re.IGNORECASE)
_SCALE = re.compile(r"\b0\s{0,4}(?:-|–|to|through|bis)\s{0,4}5\b", re.IGNORECASE)
_RANGE = re.compile(rf"(?<!\d){_NUMBER}\s{{0,8}}(?:-|–|to|or)\s{{0,8}}\d", re.IGNORECASE)
_LABELLED = re.compile(
    rf"(?:score|grade|rating|similarity)\W{{0,6}}(?:(?:is|of|would\s+be)\W{{1,4}})?({_NUMBER}){_OF_FIVE}",
    re.IGNORECASE,
)
_ANY = re.compile(rf"(?<![\w.,])({_NUMBER}){_OF_FIVE}(?![\w%])(?![.,]\d)", re.IGNORECASE)
_ITEM = re.compile(
    r"[ \t*#([-]{0,8}(?:pair|id)?[ \t#[]{0,4}(\d{1,3})[ \t]{0,4}[].:)=*-]{1,6}\s+(.*)", re.IGNORECASE
)
_NAME = re.compile(r"(?:pair|id)?[ _-]?(\d{1,3})", re.IGNORECASE)
_OBJECT = re.compile(r"^\{|\{\s{0,20}[\"']")
_LIST_KEYS = ("grades", "scores", "ratings", "results", "pairs")
_GRADE_KEYS = ("score", "grade", "rating", "similarity", "value")
_ID_KEYS = ("id", "pair", "index", "number")


def parse_grades(raw: str, *, count: int, finish: str) -> list[float | str]:
    """Return the grade 0..5 of each of the pairs 1..`count`, or a reason code; never raises.

    Understood are JSON (the asked-for object, a mapping from number to grade, a list of numbers that is the
    whole reply), a list of lines such as `2: 3.5` and, for a single pair, one number in a sentence.
    """
    if finish == "blocked":
        return ["blocked"] * count
    text = without_fences(only_answer(raw, "")[0]).strip()
    cut = finish in ("cut", "failed")
    found: dict[int, set[float | None]] = {}
    for number, value in _grades(text, count, cut):
        found.setdefault(number, set()).add(value)
    # Whoever counts from 0, or grades other pairs, may mean another pair by any number.
    if any(not 1 <= number <= count and values - {None} for number, values in found.items()):
        return ["ambiguous"] * count
    none = "truncated" if cut else "missing_id" if found else "no_number"
    if none == "no_number" and text and is_refusal(text.splitlines()[0], ""):
        none = "refusal"
    return [_only(found[number]) if number in found else none for number in range(1, count + 1)]


def _only(values: set[float | None]) -> float | str:
    if len(values) > 1 or (grade := next(iter(values))) is None:
        return "ambiguous"
    return grade if 0 <= grade <= TOP_GRADE else "out_of_range"


def _grades(text: str, count: int, cut: bool) -> Iterator[tuple[int, float | None]]:
    """Yield (pair number, grade) of everything that looks like a grade; None for one of unclear value."""
    done = 0
    for start, end, value in values_in(text):
        objects = isinstance(value, dict) or (value and all(isinstance(item, dict) for item in value))
        # Any other list counts only when it is all of the text: beside words, "[1]" may be a mark.
        counts = start >= done and (objects or (start, end) == (0, len(text)))
        done = max(done, end)
        if counts:
            # Hundreds within each other can be decoded, but not walked through.
            with suppress(RecursionError):
                yield from _of_json(value, count)
    if _OBJECT.search(text):  # in one that is broken, the number of a pair would look like its grade
        return
    if count > 1:
        lines = text.splitlines()[: -1 if cut else None]  # the last number may be half a number
        yield from ((int(item[1]), _in_words(item[2])) for line in lines if (item := _ITEM.fullmatch(line)))
        return
    item = _ITEM.fullmatch(text)
    if item is not None and item[1] == "1" and _VALUE.fullmatch(item[2]):
        text = item[2]
    if _ANY.search(_SCALE.sub("", text)) or _LABELLED.search(text):
        yield 1, _in_words(text)


def _of_json(value: list[Any] | dict[str, Any], count: int) -> Iterator[tuple[int, float | None]]:
    """Read {"grades": …}, {"id": 2, "score": 3.5}, {"2": 3.5} or a list; of one pair no id is needed."""
    if isinstance(value, list):
        for place, item in enumerate(value, start=1):
            if isinstance(item, dict):
                yield from _of_json(item, count)
            elif len(value) == count or count == 1:
                yield 1 if count == 1 else place, _plain(item)
        return
    inner = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list | dict)), None)
    if inner is not None:
        yield from _of_json(inner, count)
        return
    grades = [value[key] for key in _GRADE_KEYS if key in value]
    if grades:
        number = _plain(next((value[key] for key in _ID_KEYS if key in value), None)) if count > 1 else 1.0
        if number is not None and number.is_integer():
            yield int(number), _plain(grades[0])
        return
    for name, item in value.items():
        if digits := _NAME.fullmatch(str(name)):
            yield int(digits[1]), _plain(item.get("score") if isinstance(item, dict) else item)


def _plain(value: Any) -> float | None:
    """Return a number, or a text that is nothing but one ("4.5", "4/5"); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        # Also NaN, and whole numbers too large for a float, are out of range.
        return float(value) if abs(value) < 1e9 else -1.0
    match = _VALUE.fullmatch(value) if isinstance(value, str) else None
    return _number(match[1]) if match else None


def _in_words(text: str) -> float | None:
    """Return the one grade that a sentence states; None when there are several numbers or a range."""
    text = _SCALE.sub("", text)
    labelled = {_number(found) for found in _LABELLED.findall(text)}
    if _RANGE.search(text):
        return None
    numbers = labelled or {_number(found) for found in _ANY.findall(text)}
    return numbers.pop() if len(numbers) == 1 else None


def _number(text: str) -> float:
    return float(text.replace(",", ".").replace("−", "-"))
