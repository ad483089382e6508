"""Who a phrase speaks of: this issue, or another one that is the subject or object of the clause.

Walks from the phrase to the left: a reference with nothing but light words between is the subject.
"""

from __future__ import annotations

from angle_data.gis.comments.references import SELF
from angle_data.gis.comments.vocabulary import LIGHT, NOUNS, POINTING, THIS_WORDS, expand

_BOUNDARY = (",", ";", ":", "(", ")", "-", "–", "—", "!", "=>", "->", "→", "/", ".", "?", "…", "|", ">")
_WORD_EDGE = "\"'().,:;!?*[]“”«»^"

# Finds: "#5 is already marked as a "
_THIRD = expand(r"{REF}(?:'s)?[)\]\"']*(?P<tail>[^{REF}.;!?]{0,80})$")
# Finds: ", so I mark this as a "
_OWN_SUBJECT = expand(
    r"\b(?:this|these|th(?:at|is)'s|that (?:is|one)|mine|ours|here|yours?|i(?:'[a-z]+)?|we(?:'[a-z]+)?|let's|"
    r"closing|marking|resolving|flagging|so|thus|hence|therefore|but not|{SELF})\b|{SELF}"
)
# Finds: "issue #5: the one we chose "
_HEADED = expand(r"(?:issue |bug |ticket |the )*{REF}\)? ?(?::|→|->|=>|–|—)(?![^{REF}]*\b(?:{THIS}|mine)\b)")
# Finds: " was closed as"
_VERB = expand(
    r"→|\b(?:is|was|are|were|be|been|being|has|have|got|gets?|which|that|who|itself|as|looks?|seems?|"
    r"appears?|might|may|could|should|to|ist|est|es|é|è|closed|marked)\b|\("
)
# Finds: ", it is a "
_IT = expand(r"(?:,|-|–|—|:|and) it(?:'s)?\b")
# Finds: " which"
_RELATIVE = expand(r"\W*(?:which|that|who|itself)\b")
# Finds: "closing #5"
_CLOSES_REF = expand(
    r"\b(?:clos|mark|flag|tag|resolv|dup|label)\w*(?: (?:issue|bug|ticket|both|also|the other|old|newer|"
    r"older|issues|out))* {REF}"
)
# Finds: " because it "
_CLOSED_AS = expand(r" as\b| (?:since|because) (?:it|that one)\b")
# Finds: "as for #5"
_TOPIC_REF = expand(
    r"(?:\b(?:as for|regarding|concerning|re:?|about)|^(?:and |so |but )?(?:is|are|was|were|isn't|could|"
    r"might|should)) (?:issue )?{REF}$"
)
# Finds: "#5 and #6"
_ONLY_REFS = expand(r"(?:[\s{REF},;&+*:#(-]|\b(?:and|both|issues?|fyi|btw|also|the)\b)*")
# Finds: ", the "
_APPOSITION = expand(r" ?[,(] ?(?:an?|the)(?: \w+)? ?")
# Finds: "as in #5 from today"
_LIKE_REF = expand(
    r"\b(?:like|as|see|per|similar to|in|with|to|from|by|of|siehe|voir|véase|ver|vedi|см) {REF}[^{REF}]*$"
)


def _core(word: str) -> str:
    return word.strip(_WORD_EDGE).lower()


def about_another(left: str) -> bool:
    """Whether another reference is the subject or object ("#5 is a …", "closing #5 as …")."""
    if _HEADED.match(left):
        return True
    match = _THIRD.search(left)
    if match is None:
        return False
    tail = match["tail"]
    ahead = left[: match.start() + 1]
    if _TOPIC_REF.search(ahead):
        return True
    opens = _ONLY_REFS.fullmatch(ahead) is not None
    if _CLOSES_REF.search(ahead[-60:]) and _CLOSED_AS.search(tail):
        return True
    if _OWN_SUBJECT.search(tail) or (not opens and _IT.search(tail)):
        return False
    relative = _RELATIVE.match(tail)
    if tail.lstrip().startswith(",") and not relative and _LIKE_REF.search(ahead):
        return False
    if _APPOSITION.fullmatch(tail):
        return True
    if not tail.strip():
        return opens
    if tail.strip() in (",", "and", ";") and not opens:
        return False
    return _VERB.search(tail) is not None or (
        opens and tail.strip(" ") in (":", "-", "–", "—", "->", "=>", "=")
    )


def about_this(left: str) -> bool:
    """Whether the subject before a phrase is this issue or is left out ("already …", "this request is …")."""
    noun = False
    tokens = left.split()
    for token in reversed(tokens[-16:]):
        word = _core(token)
        if word in THIS_WORDS or SELF in word:
            return True
        if token[-1] in _BOUNDARY or token[0] in "(–—-" or word.startswith("@"):
            return not noun or word in NOUNS
        if noun and word in ("the", "your", "my", "our", "same"):
            return True
        if word in NOUNS:
            noun = True
        elif word and word not in LIGHT and word not in POINTING:
            return False
    return not noun or _core(tokens[0]) in NOUNS
