"""What in issues and comments nobody wrote for the occasion: templates, forms, footers, promises.

Reading blanks it, for it states nothing; cleaning removes it from the texts of the data set. The two differ
where a mistake costs something else: reading must not lose a statement, cleaning must not lose a task.
"""

from __future__ import annotations

import re

# Finds: "- "
_BULLET = r"[ \t]*(?:[-*+][ \t]+)?"
# Finds: "1. "
_ANY_BULLET = r"[ \t]*(?:(?:[-*+]|\d{1,2}[.)])[ \t]+)?"
# Finds: "I agree"
_PROMISES = r"search|duplicat|existing issue|I agree|I have (?:read|checked|verified)|I've (?:read|checked)"
# Finds: "<!-- filled in by the template -->"
HTML_COMMENT = r"<!--.*?(?:-->|\Z)"

# Finds: "- [x] I searched"
CHECKBOX = re.compile(_ANY_BULLET + r"\[[ xX✓✔]\](?!\()")
"""Any box at the start of a line, for reading."""

# Finds: "- [x] Duplicate of #5"
TICKED_DUPLICATE = re.compile(
    rf"({_ANY_BULLET}\[[xX✓✔]\])(?=[ *_]{{1,4}}(?:this is a )?duplicate of[ :*_]{{1,5}}\S)", re.IGNORECASE
)
"""A ticked box that states a duplicate, with the box itself in group 1, for reading."""

# Finds: "*** This bug has been marked as a duplicate of bug 5 ***"
IMPORTED = re.compile(r"[ \t]*\*\*\* .{1,300}\bmarked as a duplicate of\b.{1,300}\*\*\*\s*$", re.IGNORECASE)
"""The line of Bugzilla; its numbers are those of the other tracker. For reading."""

# Finds: "- [ ] I have searched the existing issues"
TICKED_OR_PROMISE = re.compile(
    rf"^{_BULLET}\[[ \t]?(?:[xX✓✔][ \t]?\](?!\()|\](?=.{{0,200}}?\b(?:{_PROMISES})))[^\n]*$\n?",
    re.MULTILINE | re.IGNORECASE,
)
"""The line of a checked box, or of an open one with a promise, for cleaning; another open one is a task."""

# Finds: "I have searched the issues and found no duplicate"
SEARCHED = re.compile(
    rf"{_BULLET}[*_]*(?:i(?:'ve| have)|have you|i) (?:already |also )?(?:searched|checked|looked|"
    r"verified|confirmed|read)\b.{0,80}\b(?:issues?|tracker|duplicates?)\b.*(?:duplicate|before|already)",
    re.IGNORECASE,
)
"""The start of a line that promises a search for duplicates, for reading."""

# Finds: "I have already searched the issue tracker."
PROMISE = re.compile(
    rf"^{_BULLET}(?:I(?:'ve| have)|Have you) (?:already |also )?"
    r"(?:searched|checked|looked|verified)\b[^\n]{0,120}\b(?:issues?|tracker|duplicates?)\b[^\n]{0,120}$\n?",
    re.MULTILINE | re.IGNORECASE,
)
"""A line that promises a search, for cleaning."""

# Finds: "### Is this a duplicate?"
HEADING_QUESTION = re.compile(r"[ \t]*#{1,6}[ \t].*\?|[ \t]*\*\*.{0,200}\?\*\*[ \t]*$")
"""The start of a line that is a question of a template, for reading."""

# Finds: "_Originally posted by @ann in #5_"
FOOTER = re.compile(
    r"^[ \t]*[_*]*(?:Originally posted by|Originally reported by|Copied from original issue|"
    r"This issue was (?:moved|transferred) from|Migrated from)\b[^\n]*$\n?",
    re.MULTILINE | re.IGNORECASE,
)
"""The line that a machine adds to what it moved, for cleaning."""
