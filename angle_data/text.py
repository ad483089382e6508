"""Text normalisation and overlap measures that both halves of the toolkit agree on."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "`": "'"})
_EDGE = " \t\"'.,;:!?…。！？"
_WORD = re.compile(r"\w+")
# Escape sequences and control characters, with which a text could write to the terminal as it likes.
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,10}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|.)?"
    r"|[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)

_RETURNS = str.maketrans("\r\x0b\x0c", "   ")  # they write over a line, or leave it


def normalise(text: str) -> str:
    """Return the form under which two texts count as identical.

    NFKC, case-folded, runs of white space to one space, typographic quotes to plain ones, and quotes,
    spaces and sentence punctuation removed at both ends.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTES)
    return " ".join(folded.split()).strip(_EDGE)


def printable(text: str) -> str:
    """Return `text` without what would steer a terminal; tabs and line feeds are kept."""
    return _CONTROL.sub("", text).translate(_RETURNS)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun, as in `1 request` and `2,000 requests`; the usual `plural` has an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def pair_key(one: str, other: str) -> tuple[str, str]:
    """Return the unordered pair of the two normalised texts: what makes two pairs the same pair."""
    a, b = normalise(one), normalise(other)
    return (a, b) if a <= b else (b, a)


def longest_answer(source: str) -> int:
    """Return the length in characters that a sentence about `source` may have; no good one is so long.

    A power of two, twice the length of the source and more: servers compile each schema that they meet.
    """
    return 1 << (2 * len(source) + 100).bit_length()


def words(text: str) -> frozenset[str]:
    """Return the distinct case-folded words (alphanumeric runs) of `text`."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return |a∩b| / |a∪b| in [0, 1]; 0 when both are empty."""
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def content_id(text: str) -> str:
    """Return a stable 16-digit hexadecimal id of the exact text, for rows that come without one."""
    return f"{stable_hash(text):016x}"


def stable_hash(text: str) -> int:
    """Return the first 64 bits of the text's sha256 as an integer: the same in every process and release."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def whole_characters(text: str) -> str:
    """Return `text` with surrogate pairs joined, and halves of pairs, which JSON can hold, as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
