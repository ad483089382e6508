"""Finds the lines of a repository's issue forms: what stands in many issues, such as "I can send a fix"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

SHARE = 0.05  # a line in more than this share of a repository's issues is one of its forms'
_LEAST = 10  # issues with the line, so that a small repository's bug is no form
_DISTINCT = 100_000  # lines in memory
_LONGEST = 300
_WORDS = 3  # of a line that is no heading: "Windows" is an answer
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MARK = re.compile(r"[\s>*+\-#_|]*(?:\[[ xX✓✔]?\])?[\s*_]*")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*\n]{1,120}\*\*:?\s*$|__[^_\n]{1,120}__:?\s*$)")


class FormLines:
    """Counts in how many issues of a repository each line stands; memory is bounded."""

    def __init__(self) -> None:
        self._issues, self._often = 0, Counter[str]()

    def add(self, body: str) -> None:
        """Take an issue into account."""
        self._issues += 1
        self._often.update({key for line in body.splitlines() if (key := line_key(line))})
        if len(self._often) > _DISTINCT:  # a line of a form is soon met again
            self._often = Counter({key: count for key, count in self._often.items() if count > 1})

    def found(self) -> dict[str, int]:
        """Return the lines of forms (see `line_key`), and in how many issues each stands, the most first."""
        least = max(_LEAST, SHARE * self._issues)
        found = [(key, count) for key, count in self._often.items() if count > least]
        return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def without_forms(text: str, forms: Collection[str]) -> str:
    """Return prose without the lines whose `line_key` is in `forms`."""
    if not forms:
        return text
    return "".join(line for line in _LINE.findall(text) if line_key(line) not in forms)


def line_key(line: str) -> str:
    """Return what two lines share that differ in case, list marks and checks; empty if it says little."""
    if len(line) > _LONGEST:
        return ""
    heading = _HEADING.match(line) is not None
    words = " ".join(line[_MARK.match(line).end() :].casefold().split()).rstrip(" *_:.!?")  # type: ignore[union-attr]
    return words if len(_WORD.findall(words)) >= (1 if heading else _WORDS) else ""
