"""Who a phrase speaks of: the commented issue, or another one that its sentence names.

Decided before any link is made, and for every language by the order of the words: a reference before the
phrase, in the same clause, is what the phrase speaks of ("#5 wurde als Duplikat von #6 geschlossen", "cerrar
#5 como duplicado de #6"), unless the writer names this issue in between ("#5 is known, so I close this as a
duplicate of #6") or the reference only says where ("as in #5, a duplicate of #6").
"""

from __future__ import annotations

import re

from angle_data.gis.comments.references import SELF
from angle_data.gis.comments.vocabulary import LIGHT, NOUNS, THIS_WORDS, expand

# The last reference of the clause is its topic, or something else of its writer's is.
# Finds: "as for #5 it is a "
_TOPIC = expand(
    r"^(?:that|your|his|her|their|my) (?:\w+ )?(?:pr|pull request|patch|commit|branch)\b[^{REF}]*$|^(?:issue "
    r"|bug |ticket |the )*{REF}\)? ?(?::|→|->|=>|–|—)(?![^{REF}]*\b(?:{THIS}|mine)\b)|(?:\b(?:as for|"
    r"regarding|concerning|re:?|about|looking at)|^(?:and |so |but )?(?:is|are|was|were|isn't|could|might|"
    r"should)) (?:issue )?{REF}[^{REF}.;!?]{0,80}$"
)
# Another issue is closed or marked, and a pronoun goes on to speak of it, perhaps in the next sentence.
# Finds: "can you close #5? It is a "
_ACTED_ON = expand(
    r"(?:\b(?:clos|mark|flag|tag|resolv|dup|label|schlie|ferm|cerr|fech|chiu|закр|zamk|"
    r"sluit)\w*(?: (?:{ISSUE}|"
    r"both|also|the other|old|newer|older|out))* {REF}|{REF} (?:schließen|sluiten|zamknąć))[^{REF};]{0,80}"
    r"(?:[,;.?!–—-]| since| because) (?:it|that one|that|das|c'est|es|é|è|это|to)(?:'s)?\b[^{REF}.;!?]{0,80}$"
)
# Finds: "#5 is already marked as a "
_NAMED = expand(r"{REF}(?:'s)?[)\]\"']*(?P<tail>[^{REF}.;!?]{0,80})$")
# Finds: ", so I mark this as a "
_OWN = expand(
    r"\b(?:this|these|th(?:at|is)'s|that (?:is|one)|mine|ours|here|yours?|i(?:'[a-z]+)?|we(?:'[a-z]+)?|let's|"
    r"closing|marking|resolving|flagging|so|thus|hence|therefore|but not|schließe|ich|dieses|hier|je|cierro|"
    r"cerrando|chiudo|fechando|fecho|vou|закрываю|zamykam|sluit|{SELF})\b|{SELF}|(?:[,;:–—-]|\b(?:und|et|y|e|"
    r"и|i|en)) ?(?:das|dies|c'est|est[aeo]|quest[aeo]|это|to|dit)\b|[本此这這]|この|これ"
)
# Finds: ", it is a "
_IT = expand(r"(?:,|-|–|—|:|and) it(?:'s)?\b")
# Finds: ", which is"
_BREAK = re.compile(r"[,;:–—+&/]|->|=>| - |\b(?:and|but|or|und|et|y|e|и|i|en)\b", re.IGNORECASE)
# Finds: " was closed as"
_VERB = expand(
    r"→|\b(?:is|was|are|were|be|been|being|has|have|got|gets?|which|that|who|itself|as|looks?|seems?|"
    r"appears?|might|may|could|should|to|closed|marked|ist|war|wurde|als|est|était|comme|es|era|fue|como|é|"
    r"foi|è|come|был\w?|как|to|jest|jako|som)\b|\(|^ ?[,(] ?(?:an?|the)(?: \w+)? ?$|^ an? $|[はがを는은]"
)
# Finds: "#5 and #6"
_ONLY_REFS = expand(r"(?:[\s{REF},;&+*:#(与和跟同及と과와-]|\b(?:and|both|issues?|fyi|btw|also|the)\b)*")
# A reference that only says where something stands.
# Finds: "as in #5, "
_WHERE = expand(
    r"\b(?:like|as|see|per|similar to|in|with|to|from|by|of|siehe|voir|véase|ver|vedi|см|in|von|mit|dans|de|"
    r"en|em|di|в|с|w|z) {REF}(?: ?,(?! (?:which|that|who|itself)\b)[^{REF}]*| \w+)?$"
)


def speaks_of_another(left: str, *, bound: bool, before: str = "", opened: bool = False) -> bool:
    """Whether a phrase with `left` before it speaks of an issue other than the commented one ("#5 is a …").

    `bound`: the phrase names its target after it, so a reference before it must be something else. `before`
    is the sentence before that of the phrase; `opened`: its list item opens with another issue.
    """
    if (opened and not _OWN.search(left)) or _TOPIC.search(left) or _ACTED_ON.search(f"{before} {left}"):
        return True
    match = _NAMED.search(left)
    if match is None:
        return False
    tail = match["tail"]
    opens = _ONLY_REFS.fullmatch(left[: match.start() + 1]) is not None
    if _OWN.search(tail) or (not opens and _IT.search(tail)) or _WHERE.search(left):
        return False
    if opens and tail.strip() in ("", ":", "-", "–", "—", "->", "=>", "="):
        return True
    return _VERB.search(tail) is not None or (bound and tail.strip() != "" and not _BREAK.search(tail))


# Finds: "ahh"
_EXCLAIMS = re.compile(r"a+h*|o+h+|h*m+|e+h+|w?h?oo+ps")


def _core(word: str) -> str:
    return word.strip("\"'().,:;!?*[]“”«»^").lower()


def about_this(left: str) -> bool:
    """Whether the subject before a phrase is this issue or is left out ("already …", "this request is …")."""
    noun = False
    tokens = left.split()
    for before, token in reversed(list(zip(["", *tokens], tokens, strict=False))[-16:]):
        word = _core(token)
        if word in THIS_WORDS or SELF in word:
            if before.lower() not in ("for", "about", "on"):
                return True
        elif token[-1] in ",;:()-–—!→/.?…|>" or token[0] in "(–—-" or word.startswith("@"):
            return not noun or word in NOUNS
        elif noun and word in ("the", "your", "my", "our", "same"):
            return True
        elif word in NOUNS:
            noun = True
        elif word and not word.endswith("ly") and word not in LIGHT and not _EXCLAIMS.fullmatch(word):
            return False
    return not noun or _core(tokens[0]) in NOUNS
