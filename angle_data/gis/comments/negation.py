"""Whether a phrase is denied: by a negation whose scope it is in, or by what follows it.

A negation reaches over the rest of its clause, however long ("I do not agree that … is a …"), and no further.
"""

from __future__ import annotations

import re

from angle_data.gis.comments.vocabulary import expand

# Finds: " but "
_CLAUSE = expand(
    r"[;:(!–—|>→]| -+ |,(?! (?:dass|que|che|что|щоб|że)\b)|\b(?:but|so|and|because|since|as (?:it|this|that|"
    r"there|we)|although|however|though|therefore|hence|instead(?! of))\b|\bof which\b"
)
# Finds: "I do not agree that this is a "
_NEGATES = expand(
    r"\b(?:not|never|neither|nor|cannot|\w+n't|(?:is|do|does|was|are|should|did|would|ca|wo)nt|hardly|nobody|"
    r"nothing|without being|far from|rather than|instead of|anything but|thought to|stop(?:s|ped|ping)?|"
    r"quit(?:s|ting)?|ceas\w+|(?:a )?mistake to|before (?:some|any)\w+|(?:fail\w*|hard|difficult|impossible) "
    r"to (?:see|imagine|believe|understand)|refus\w+|(?:argu\w*|vot\w*|am|'m) against|disagree\w*|object\w* "
    r"to|doubt\w*|wrong(?:ly)?|incorrectly|mistakenly|mistaken for|mistook|erroneously|falsely|"
    r"accidentally(?! ?$| (?:creat|open|fil|post|submit|report)\w*)|non|nicht|keine?[nrsm]?|pas|não|nao|"
    r"nunca|не|ні|nie|geen|niet|inte|ikke|nem|değil|no(?= (?:longer|way|reason|evidence|indication|sign|"
    r"proof|point|case|such|one|an?|exact\w*|real|true|un|una|es|creo|parece|se|está|son|debería|el|la|lo|è|"
    r"o|que)\b| ?$))\b|不是|并非|並非|不算|不属于|不屬於|不重复|没有重复|不同|无关|ではあり?ません|"
    r"ではな[いく]|じゃな[いく]|ありません|異な|아닙니다|아니|아닌|다릅니다|다른"
)
# Finds: " sure"
_EXCUSED = expand(
    r" (?:(?:100%|entirely|totally|completely|really|quite|too|very|so|yet|exactly) )?(?:sure|certain|clear|"
    r"only|notice\w*|reali[sz]e\w*|know|aware|remember|spot|find|catch|expect|mind|worry|mistaken|"
    r"surprise\w*)\b| (?:see|saw|seen|search|check)\b(?! (?:how|why|as|any|it as|this as|that this|that it|a "
    r"reason)\b)"
)
# Finds: "why "
_ASKED_BEFORE = re.compile(r"\b(?:why|or|if|whether|no|a|any|without) $", re.IGNORECASE)
# Finds: "isn't"
_ASKS = re.compile(
    r"(?:is|are|was|were|should|could|ca|does?|wo|would|did|has|have)n'?t\b|pas|nicht|não|nao|non|no|не",
    re.IGNORECASE,
)
# Finds: " not the same"
_NO_SUCH = (
    r"(?:n't| not| no)(?: (?:an? |the )?(?:{D}|same|related|one|so|true|correct|right|accurate|the case|it|"
    r"at all)\b|[.,;!)]*$)"
)
# What takes a phrase (§) back: an objection after it, or the remark that the mark was a mistake.
# Finds: "it is a §, but that one is different"
_TAKEN_BACK = expand(
    (
        r"§(?:,? not (?:this|here|mine)\b|[^.;{REF}]{0,30}?\b(?:but|however|although|though|yet|while|"
        r"whereas|except|which|that)\b[^.;]{0,60}?(?:\b(?:different|separate|unrelated|distinct|nothing to "
        r"do|another (?:issue|problem|bug)|wrong|nonsense|incorrect|mistaken?|an? error|disagree|(?:do not|"
        r"don't) (?:think|believe|agree))\b|\b(?:it|this|that|they|which|mine)(?:'s| is| are| was| does| "
        r"do)?(?: \w+)?{NO_SUCH}|\b(?:that|it|that one)(?:'s| is) (?:about|for|only)\b|{REF} (?:is|was) "
        r"(?:about|for|only|on)\b| no[.!]*$)|[^.;,]{0,12}\b(?:is|was) (?:wrong|incorrect|not (?:correct|"
        r"right|true|accurate)|a mistake|false|nonsense)\b|,? (?:it|this|they)(?:'s| is| are)?(?: "
        r"\w+)?{NO_SUCH}|.{0,8}?(?:ではあり?ません|ではな|じゃな|[이은는] ?아[닙니닌]|아님|않))|\b(?:mark|"
        r"clos|flag|tag|label|resolv|treat|identif|consider|detect)\w*\b[^,;:]{0,30}§[)\"']? (?:(?:by|in) "
        r"(?:a |an |the )?)?(?:mistake|accident|error|mistakenly|accidentally|erroneously|incorrectly|"
        r"wrongly)\b|\b(?:first|initially|originally)\b[^.;]{0,40}\b(?:thought|assumed|believed|looked|took|"
        r"seemed)\b[^.;]{0,30}§[^.;]{0,12},? (?:but|however)\b|§[^.;]{0,12}, (?:those|these|they|the "
        r"two)\b[^.;]{0,20}\b(?:different|separate|unrelated|distinct)"
    ).replace("{NO_SUCH}", _NO_SUCH)
)
# Finds: "It isn't."
_DENIED_NEXT = expand(
    r"\W*(?:(?:but|and|well|which|however)[, ]+)*(?:(?:it|this|that|mine)(?:'s| is| was| does| do)?(?: "
    r"\w+)?(?:n't| not)(?: (?:one|so|true|correct|right|the case|a duplicate|the same|a dup))?\W*$|(?:that|"
    r"this|it)(?:'s| is| was) (?:\w+ )?(?:wrong|incorrect|false|nonsense|a mistake|my mistake|an error|"
    r"premature|hasty|not true)(?=[.,;!]|$)|i (?:disagree|doubt|don't (?:agree|think so))\b|not (?:true|"
    r"really)\b|no(?:[,.!]|$| it| that| this)(?! (?:problem|worries|wait))|(?:[^.;]{0,30}\b)?re-?open(?:ed|"
    r"ing)?(?: this| it| the (?:issue|ticket))?(?: now| again)?[.,!]*$|nope|nah|never ?mind|nein|нет|non,)"
)


def clause_of(left: str) -> str:
    """Return the clause that the end of `left` stands in."""
    return _CLAUSE.split(left)[-1]


def is_negated(left: str, *, asked: bool) -> bool:
    """Whether the text before a phrase denies it ("I don't think this is a …").

    `asked`: the sentence is a question; "isn't this a duplicate of #5?" asks and does not deny.
    """
    clause = clause_of(left)[-110:]
    for match in _NEGATES.finditer(clause):
        if _EXCUSED.match(clause, match.end()) or _ASKED_BEFORE.search(clause, 0, match.start()):
            continue
        opens = len(clause[: match.start()].split()) <= 2
        if not (asked and (opens or _ASKS.fullmatch(match[0]))):
            return True
    return False


def is_taken_back(left: str, right: str) -> bool:
    """Whether the words around a phrase refute it ("…, but that one is about fonts", "… by mistake")."""
    return _TAKEN_BACK.search(f"{left}§{right}") is not None


def denies_the_last(sentence: str) -> bool:
    """Whether a sentence denies what the one before it said ("It isn't.")."""
    return _DENIED_NEXT.match(sentence) is not None
