"""Recognises sentences that take an earlier marker back without naming its target.

"Sorry, not a dup after all" retracts, "this is a different issue" denies; what follows from it is decided in
`markers` for one comment and in `threads` for a whole thread.
"""

from __future__ import annotations

import re
from typing import Literal

from angle_data.gis.comments import context as scope
from angle_data.gis.comments.sentences import Sentence
from angle_data.gis.comments.vocabulary import expand

_TAKE_BACK = expand(
    r"(?:\bnot|n't|\bno longer|\bnever|\bno)(?: (?:a|an|actually|really|in fact|the|exact|true|be|"
    r"been|exactly))* {D}(?! of {REF})|"
    r"\b(?:is|it's|are|as|was|indeed|really|actually|'s|seems?) (?:an? )?(?:completely |totally |"
    r"really |actually |indeed |clearly |slightly |quite )?(?:different|separate|distinct|"
    r"unrelated) (?:issue|problem|bug|thing|case|request|topic|root cause|cause)\b|"
    r"^(?:\w+[,:]? )?(?:an? )?(?:different|separate|distinct) (?:issue|problem|bug)|\bunmark\w*\b|"
    r"\bun-?dup\w*\b|\bremov\w+ (?:the )?{D} (?:label|tag|mark)|"
    r"\bwrong (?:issue|number|link|ticket|thread|one)\b|\bscratch that\b|\b(?:ignore|disregard) "
    r"(?:that|my (?:last|previous)|the above|this comment)\b|"
    r"^(?:edit|update|correction) ?\d? ?[:,–—-]+ ?(?:(?:oh|ah|ok|oops|sorry|hm+|actually)[,.!]* )*(?:nope|"
    r"never ?mind|nvm|wrong|scratch|no(?! (?:problem|worr|longer|need|idea|other|more|one|news))\b)|"
    r"^(?:oh |ah |ok |oops,? )?(?:never ?mind|nvm)(?: then| me| that)?[.,! ]*$|\bclosed (?:this "
    r")?(?:by mistake|by accident|in error|accidentally|mistakenly)\b|\b(?:i was|that was|was) "
    r"(?:wrong|mistaken|my mistake)\b|"
    r"kein duplikat|pas un doublon|no es un duplicado|não é (?:uma )?duplicat|non è un duplicato|"
    r"не дубликат|不是重复|重複ではあり|중복이 아"
)
_REGRETS = re.compile(
    r"\b(?:edit|sorry|after all|re-?open\w*|never ?mind|nvm|scratch|oops|actually|correction|"
    r"wrong|mistake\w*|my bad|update|apolog\w+|un-?mark\w*|un-?dup\w*|"
    r"turns? out|looking (?:again|closer|at it again)|on second thought|misread|i see now|"
    r"removing|remove|ignore|disregard|hold on|wait)\b",
    re.IGNORECASE,
)


def takes_back(sentence: Sentence) -> Literal["no", "denies", "retracts"]:
    """Whether a sentence takes back what was said before: `denies` it, or `retracts` it with regret."""
    match = _TAKE_BACK.search(sentence.text)
    if match is None or sentence.ending == "?" or scope.is_conditional(sentence.text[: match.end()]):
        return "no"
    return "retracts" if _REGRETS.search(sentence.text) else "denies"
