"""Who a phrase speaks of: this issue, or another one that is the subject or object of the clause.

Walks from the phrase to the left: a reference with nothing but light words between is the subject.
"""

from __future__ import annotations

from angle_data.gis.comments.references import SELF
from angle_data.gis.comments.vocabulary import LIGHT, NOUNS, THIS_WORDS, expand

_BOUNDARY = (",", ";", ":", "(", ")", "-", "–", "—", "!", "=>", "->", "→", "/", ".", "?", "…", "|", ">")
_WORD_EDGE = "\"'().,:;!?*[]“”«»^"

# The last reference of the clause is its topic, is closed itself, or has an apposition.
# Finds: "closing #5 because it "
_ANOTHER = expand(
    r"^(?:that|your|his|her|their|my) (?:\w+ )?(?:pr|pull request|patch|commit|branch)\b[^{REF}]*$|^(?:issue "
    r"|bug |ticket |the )*{REF}\)? ?(?::|→|->|=>|–|—)(?![^{REF}]*\b(?:{THIS}|mine)\b)|(?:\b(?:as for|"
    r"regarding|concerning|re:?|about)|^(?:and |so |but )?(?:is|are|was|were|isn't|could|might|should)) "
    r"(?:issue )?{REF}[^{REF}.;!?]{0,80}$|\b(?:clos|mark|flag|tag|resolv|dup|label)\w*(?: (?:{ISSUE}|both|"
    r"also|the other|old|newer|older|out))* {REF}[^{REF}.;!?]{0,80}(?: as\b|(?:,|;| -| –| —| since| because) "
    r"(?:it|that one|that)(?:'s)?\b)[^{REF}.;!?]{0,80}$"
)
# Finds: "#5 is already marked as a "
_THIRD = expand(r"{REF}(?:'s)?[)\]\"']*(?P<tail>[^{REF}.;!?]{0,80})$")
# Finds: ", so I mark this as a "
_OWN_SUBJECT = expand(
    r"\b(?:this|these|th(?:at|is)'s|that (?:is|one)|mine|ours|here|yours?|i(?:'[a-z]+)?|we(?:'[a-z]+)?|let's|"
    r"closing|marking|resolving|flagging|so|thus|hence|therefore|but not|{SELF})\b|{SELF}"
)
# Finds: ", it is a "
_IT = expand(r"(?:,|-|–|—|:|and) it(?:'s)?\b")
# Finds: " was closed as"
_VERB = expand(
    r"→|\b(?:is|was|are|were|be|been|being|has|have|got|gets?|which|that|who|itself|as|looks?|seems?|"
    r"appears?|might|may|could|should|to|ist|est|es|é|è|closed|marked)\b|\(|^ ?[,(] ?(?:an?|the)(?: \w+)? ?$|"
    r"^ an? $"
)
# Finds: "#5 and #6"
_ONLY_REFS = expand(r"(?:[\s{REF},;&+*:#(-]|\b(?:and|both|issues?|fyi|btw|also|the)\b)*")
# Finds: "as in #5, "
_LIKE_REF = expand(
    r"\b(?:like|as|see|per|similar to|in|with|to|from|by|of|siehe|voir|véase|ver|vedi|см) {REF} ?,(?! "
    r"(?:which|that|who|itself)\b)[^{REF}]*$"
)


def _core(word: str) -> str:
    return word.strip(_WORD_EDGE).lower()


def about_another(left: str) -> bool:
    """Whether another reference is the subject or object ("#5 is a …", "closing #5 as …")."""
    if _ANOTHER.search(left):
        return True
    match = _THIRD.search(left)
    if match is None:
        return False
    tail = match["tail"]
    opens = _ONLY_REFS.fullmatch(left[: match.start() + 1]) is not None
    if _OWN_SUBJECT.search(tail) or (not opens and _IT.search(tail)) or _LIKE_REF.search(left):
        return False
    if opens and tail.strip() in ("", ":", "-", "–", "—", "->", "=>", "="):
        return True
    return _VERB.search(tail) is not None


def about_this(left: str) -> bool:
    """Whether the subject before a phrase is this issue or is left out ("already …", "this request is …")."""
    noun = False
    tokens = left.split()
    for place in range(len(tokens) - 1, max(-1, len(tokens) - 17), -1):
        token = tokens[place]
        word = _core(token)
        if word in THIS_WORDS or SELF in word:
            if place and tokens[place - 1].lower() in ("for", "about", "on"):
                continue
            return True
        if token[-1] in _BOUNDARY or token[0] in "(–—-" or word.startswith("@"):
            return not noun or word in NOUNS
        if noun and word in ("the", "your", "my", "our", "same"):
            return True
        if word in NOUNS:
            noun = True
        elif word and not word.endswith("ly") and word not in LIGHT:
            return False
    return not noun or _core(tokens[0]) in NOUNS
