"""Which phrases a sentence can hold, seen by single words: a quick look that never misses one.

Every phrase needs words, and a sentence holds those of few: about 8 of 67. Its words are read off the
pattern itself, so a new phrase needs nothing here. Where nothing can be read off, the phrase is always tried.
"""

from __future__ import annotations

from functools import cache
from re import _constants as sre  # type: ignore[attr-defined]  # the parts of a pattern, as `re` names them
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from angle_data.gis.comments.phrases import PHRASES, Phrase
from angle_data.gis.comments.references import REF

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_LONG = 4


def possible_phrases(sentence: str) -> list[Phrase]:
    """Return the phrases that may be found in a sentence, in their order; none that is found is missing."""
    always, phrases_by_word = _table()
    text = folded(sentence)
    possible = always
    for word, phrases in phrases_by_word:
        if word in text:
            possible |= phrases
    return [phrase for index, phrase in enumerate(PHRASES) if possible >> index & 1]


@cache
def _table() -> tuple[int, tuple[tuple[str, int], ...]]:
    """The phrases that need no word, and of each word those that need it; the bits of a number say which."""
    always, phrases_by_word = 0, dict[str, int]()
    for index, phrase in enumerate(PHRASES):
        words = needed_words(phrase.pattern.pattern, phrase.pattern.flags)
        if not words:
            always |= 1 << index
        for word in words:
            phrases_by_word[word] = phrases_by_word.get(word, 0) | 1 << index
    return always, tuple(phrases_by_word.items())


def folded(text: str) -> str:
    """Return a text in which all letters that `re.IGNORECASE` takes for one are the same letter."""
    return text.replace("İ", "i").replace("ı", "i").casefold()


def needed_words(pattern: str, flags: int = 0) -> frozenset[str]:
    """Return words, folded, at least one of which is in every text that the pattern is found in.

    None at all: the pattern can be found in texts without any certain word.
    """
    words = _of_sequence(_parser.parse(pattern, flags))
    # A word that holds a shorter one says nothing more: "duplicate" beside "dup".
    return frozenset(word for word in words if not any(other in word for other in words - {word}))


def _of_sequence(parts: Any) -> frozenset[str]:
    """The words that tell most of parts of a pattern that follow each other."""
    found, letters = [], ""
    for kind, value in parts:
        if kind is sre.LITERAL:
            letters += folded(chr(value))
        elif kind is sre.ASSERT:
            found.append(_of_sequence(value[1]))
        elif kind not in (sre.AT, sre.ASSERT_NOT):
            found += [frozenset({letters}), _of_part(kind, value)]
            letters = ""
    found.append(frozenset({letters}))
    telling = [words for words in found if words and all(word.strip(f" {REF}") for word in words)]
    # Long words are in few sentences; of equally long ones, few are.
    return min(telling, key=lambda words: (-min(_LONG, *map(len, words)), len(words)), default=frozenset())


def _of_part(kind: Any, value: Any) -> frozenset[str]:
    if kind is sre.SUBPATTERN:
        return _of_sequence(value[3])
    if kind is sre.ATOMIC_GROUP:
        return _of_sequence(value)
    if kind in _REPEATS and value[0]:
        return _of_sequence(value[2])
    if kind is sre.BRANCH:
        branches = [_of_sequence(branch) for branch in value[1]]
        return frozenset().union(*branches) if all(branches) else frozenset()
    if kind is sre.IN and all(kind is sre.LITERAL for kind, _ in value):
        return frozenset(folded(chr(letter)) for _, letter in value)
    return frozenset()
