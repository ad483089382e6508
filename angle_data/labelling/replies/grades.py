"""Turns the reply to a grading request into the grade of its pair, or the reason why there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from angle_data.labelling.replies.chatter import is_refusal
from angle_data.labelling.replies.layout import only_answer, without_fences, without_thinking

TOP_GRADE = 5.0

GRADE_REASONS: dict[str, str] = {
    "ambiguous": "several different numbers, or a range",
    "no_number": "a reply without a grade",
    "out_of_range": "a grade below 0 or above 5",
    "refusal": "the grader declined",
    "refused_by_server": "no reply: whoever was asked refuses this request for good, and answers others",
    "request_failed": "no reply: the request failed and is asked again in the next run",
    "truncated": "the reply was cut off before its grade",
}
"""Reason code -> meaning, for everything that `llm-score` writes to rejected.jsonl."""

_NUMBER = r"[-−]?\d+(?:[.,]\d+)?"
_OF_FIVE = r"(?:\s*(?:/|out\s+of|von|sur|de)\s*5(?:[.,]0)?\b)?"
_VALUE = re.compile(rf"\s*({_NUMBER}){_OF_FIVE}\s*(?:points?)?\s*\.?\s*", re.IGNORECASE)
_SCALE = re.compile(r"\b0\s*(?:-|–|to|through|bis)\s*5\b", re.IGNORECASE)
_RANGE = re.compile(rf"{_NUMBER}\s*(?:-|–|to|or)\s*\d", re.IGNORECASE)
_LABELLED = re.compile(
    rf"(?:score|grade|rating|similarity)\W{{0,6}}(?:(?:is|of|would\s+be)\W{{1,4}})?({_NUMBER}){_OF_FIVE}",
    re.IGNORECASE,
)
_ANY = re.compile(rf"(?<![\w.,])({_NUMBER}){_OF_FIVE}(?![\w%])(?![.,]\d)", re.IGNORECASE)
_ITEM = re.compile(r"[ \t*#([-]*(?:pair)?[ \t#[]*1[ \t]*[].:)=*-]+\s+", re.IGNORECASE)
_LIST_KEYS = ("grades", "scores", "ratings", "results", "pairs")
_GRADE_KEYS = ("score", "grade", "rating", "similarity", "value")


def parse_grade(raw: str, *, finish_reason: str | None) -> float | str:
    """Return the grade 0..5 that the reply `raw` holds, or a reason code; never raises.

    Understood are JSON (the asked-for object, `{"1": 3.5}`, `[3.5]` as the whole reply) and one number, alone
    or in a sentence. `finish_reason` is the service's word for why the reply ended. What can be read in two
    ways is ambiguous.
    """
    text = without_fences(only_answer(without_thinking(raw), "")[0]).strip()
    found = set(_grades(text))
    if not found:
        if finish_reason == "length":
            return "truncated"
        return "refusal" if text and is_refusal(text.splitlines()[0], "") else "no_number"
    if len(found) > 1 or (grade := found.pop()) is None:
        return "ambiguous"
    return grade if 0 <= grade <= TOP_GRADE else "out_of_range"


def _grades(text: str) -> Iterator[float | None]:
    """Yield everything that looks like a grade; None for one of unclear value."""
    decoded = list(_json_values(text))
    for value in decoded:
        # Hundreds of lists within each other can be decoded, but not be walked through.
        with suppress(RecursionError):
            yield from _of_json(value)
    if decoded or not text or text.startswith("{"):  # broken JSON: its number may be that of the pair
        return
    item = _ITEM.match(text)
    if item is not None and _VALUE.fullmatch(text, item.end()):
        text = text[item.end() :]
    if _ANY.search(_SCALE.sub("", text)) or _LABELLED.search(text):
        yield _in_words(text)


def _json_values(text: str) -> Iterator[Any]:
    """Yield the objects and lists of objects in `text`, the outermost ones, one after the other.

    Any other list counts only when it is all of `text`: beside words, "[1]" may be a mark.
    """
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while match := re.compile(r"[{\[]").search(text, position):
        try:
            value, position = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.end()
            continue
        if isinstance(value, dict) or _is_objects(value) or (match.start(), position) == (0, len(text)):
            yield value


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _of_json(value: Any) -> Iterator[float | None]:
    """Read {"grades": …}, {"id": 1, "score": 3.5}, {"1": 3.5} or [3.5]."""
    if isinstance(value, list):
        for item in value:
            yield from _of_json(item) if isinstance(item, dict) else iter([_plain(item)])
    elif isinstance(value, dict):
        inner = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list | dict)), None)
        if inner is not None:
            yield from _of_json(inner)
            return
        keys = [key for key in (*_GRADE_KEYS, "1") if key in value]
        yield from (_plain(value[key]) for key in keys[:1])


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
