"""The gate: is a candidate usable at all? Pure functions of one source text and one candidate text.

Asks no model and no other annotator. Whether the candidate means what was asked is not its business, and
what the reply parser already rejects (refusals, chatter, truncation) is not looked for again.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from angle_data.text import normalise

_KIND = r"(?:synonym|synonymous|antonym|paraphrase|opposite|same-meaning|opposite-meaning|output|input|new)"
_PLACEHOLDER = re.compile(
    rf"[\W_]*(?:(?:the|your|an?|first|second|third|insert|{_KIND})[\W_]*)*"
    rf"(?:sentence|text|option|answer|{_KIND})s?(?:[\W_]*\d{{1,2}})?(?:[\W_]+(?:here|goes|[a-e]))*[\W_]*"
)
_SLACK = 20
_NEGATIONS = frozenset(
    {"no", "not", "never", "none", "nobody", "nothing", "nor", "neither", "without", "cannot"}
)
_DO_FORMS = frozenset({"do", "does", "did"})
_CONTRACTED = re.compile(r"\b(ca|wo|sha)?n't\b|n't\b")
_TOKEN = re.compile(r"\w+")


def gate(source: str, text: str) -> str | None:
    """Return the code (see `sources.REASONS`) of the first reason to drop `text`, or None.

    Lengths are in characters after normalisation. A difference of up to 20 characters always passes, as the
    ratio says little about very short texts ("Deploy failed." and "The rollout went through on every host.").
    """
    clean, clean_source = normalise(text), normalise(source)
    if not _has_word(clean) or not _has_word(clean_source):
        return "blank"
    if clean == clean_source:
        return "identical"
    if _PLACEHOLDER.fullmatch(clean):
        return "placeholder"
    script, source_script = _script(clean), _script(clean_source)
    if script and source_script and script != source_script:
        return "wrong_script"
    if not _fits(len(clean), len(clean_source)):
        return "length_ratio"
    return None


def is_near_copy(source: str, antonym: str) -> bool:
    """Return whether an antonym differs from its source by a negation alone or by at most two words.

    Such a pair teaches little but "negation means different"; it is worth a flag, not a rejection. Word
    order is ignored, so the same words in another order count as a near copy.
    """
    before, after = _tokens(source), _tokens(antonym)
    if (before - after).total() <= 2 and (after - before).total() <= 2:
        return True
    return _without_negation(before) == _without_negation(after)


def fold(word: str) -> str:
    """Return a case-folded word without its English inflection: "stops", "stopping", "stopped" give "stop".

    Cuts -ing, -ed, -es or -s, then a final e and the second of two equal last letters, as long as three
    letters stay. The result need not be a word ("cache" and "caches" give "cach").
    """
    for suffix in ("ing", "ed", "es", "s"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] in ("e", word[-2]):
        word = word[:-1]
    return word


def _has_word(text: str) -> bool:
    return any(char.isalnum() for char in text)


def _fits(length: int, source_length: int) -> bool:
    if abs(length - source_length) <= _SLACK:
        return True
    return source_length <= 3 * length and length <= 3 * source_length


def _script(text: str) -> str:
    """Return the script of most letters by the first word of their Unicode names (LATIN, CJK), "" if none."""
    if text.isascii():  # nearly every text of most corpora; Unicode names are slow to look up
        return "LATIN" if any(char.isalpha() for char in text) else ""
    counts: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            counts[unicodedata.name(char, "UNKNOWN").split()[0]] += 1
    return max(sorted(counts), key=lambda name: counts[name]) if counts else ""


def _tokens(text: str) -> Counter[str]:
    return Counter(_TOKEN.findall(_CONTRACTED.sub(" not", normalise(text))))


def _without_negation(tokens: Counter[str]) -> Counter[str]:
    folded: Counter[str] = Counter()
    for token, count in tokens.items():
        if token not in _NEGATIONS and token not in _DO_FORMS:
            folded[fold(token)] += count
    return folded
