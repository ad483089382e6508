"""Second thoughts: a marker that is withdrawn, by name or altogether, and a target that is corrected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from angle_data.gis.comments.context import asks, is_conditional
from angle_data.gis.comments.references import REF, Reference
from angle_data.gis.comments.sentences import Sentence
from angle_data.gis.comments.vocabulary import expand

# Finds: "undoing the duplicate mark"
_WITHDRAWS = expand(
    r"\bun-?(?:mark|dup|duplicat)\w*\b|\b(?:undo|undid|undone|revert|retract|withdr[ae]w|revok|rescind|"
    r"scratch|disregard)\w* (?:(?:the|my|our|this|that|its) )?(?:(?:\w+ )?(?:{D}|mark(?:ing)?|merge|label|"
    r"verdict|claim|closing)\b|what (?:i|we) (?:said|wrote)\b)|\bt(?:ak(?:e|ing|en)|ook) (?:that |this |it |"
    r"my \w+ )?back\b|\b(?:remov|delet)\w*\b[^.;]{0,15}\b{D}[- ](?:label|tag|mark|link|status)|\b(?:remov|"
    r"delet)\w* the (?:link|reference) to\b|\b(?:too|over)[- ]?(?:quick|hast|eager|fast|early)\w* (?:to|in|"
    r"with) (?:clos|mark|call)|\b(?:clos|mark)\w* (?:this|it|the (?:issue|ticket))(?: \w+)? (?:too (?:quick|"
    r"hast|fast|early|soon)\w*|hastily|prematurely)\b|\bmist(?:ook (?:this|it) for|aken for) (?:an? )?{D}|"
    r"\b(?:was|were) wrong about\b|\bused to be (?:\w+ )?(?:an? |the )?(?:mark|clos|track|consider|treat|"
    r"same|{D})|\bdetach\w* (?:this|it) from\b|\b{D} (?:mark|label|flag|tag|status)\w*\b[^.;]{0,20} (?:was|"
    r"is) (?:an? )?(?:error|mistake|wrong|incorrect)\b|\bmy (?:\w+ )?(?:comment|remark|reply|"
    r"mark)\b[^.;]{0,20} was (?:an? )?(?:wrong|mistake|error)\b|^(?=.*?(?:^|[,;(–—] ?)(?:(?:so|and|hence|"
    r"i(?:'m| am|'ve| have|'ll)?) )*+re-?open(?:ed|ing)\b(?! (?:{REF}|to\b|the |that |if ))).*(?:\b(?:was|"
    r"were|been|had|i) |^\W*)(?:(?:originally|previously|first) )?(?:\w+ )?(?:clos|mark|flag|label)ed\b"
)
# Finds: "#5 is fixed and this still happens"
_OUTLIVES = expand(
    r"(?:{REF}|\bfix (?:for|of) {REF})\S{0,40} (?:is|was|has been|got|are|were)(?: (?!not\b|never\b)\w+)? "
    r"(?:fixed|resolved|closed|merged|released|shipped|done|solved|out)\b[^;{REF}]{0,60}?\b(?:and|but|yet|"
    r"while|though)\b (?:i|we|this|the \w+|mine|it)\b[^.;]{0,30}\b(?:still|again|persists?|remains?|"
    r"continues)\b"
)
# Finds: "Edit: I mean #27"
_CORRECTS = expand(
    r"(?:^|[\s(,;.–—*-])(?:edit(?:ed)?|upd(?:ate)?|correction|oops|sorry|er+m?|i mean(?:t)?|meant|or rather|"
    r"rather|make (?:that|it)|(?:no|oh),? wait|(?:hm+|ah|oh|er),? no|wait,? no|wrong (?:number|link|issue|"
    r"one)|typo|the (?:right|correct) (?:number|one|issue|link))\b(?:[ :,.!*()–—-]+(?:i|it|is|should|was|be|"
    r"of|the|to|say|mean|meant|actually|sorry|right|correct|wrong|number|one|issue|ticket|link|no|have|been|"
    r"read|that|turns|turned|out|typo|oops|rather|{D}(?= of)))*[ :,.!*()–—-]+(?P<r>{REF})(?=[.,;:!)*\s]*$|"
    r"[,;)]|\.)"
)
# Finds: "Oops, I mixed up the numbers, this duplicates #51"
_RESTATES = expand(
    r"^(?:oops|sorry|correction|edit|update|argh|no)\b[^{REF}]{0,60}\b(?:mixed|confus\w+|swapped|typo|wrong|"
    r"mistyp\w+|meant|number\w*)\b[^{REF}]{0,30}\b(?:{D}|same)\b[^{REF}]{0,12}{REF}"
)
# Finds: "not a duplicate after all"
_TAKE_BACK = expand(
    r"(?:\bnot|n't|\bno longer|\bnever|\bno|\bkein|\bpas un|\bno es un|\bnão é|\bnon è un|\bне)(?: (?:an?|"
    r"uma|actually|really|in fact|the|exact|true|be|been|exactly))* {D}(?! of {REF})|(?:^(?:\w+[,:]? )?|"
    r"\b(?:is|it's|are|as|was|indeed|really|actually|'s|seems?) )(?:an? )?(?:\w+ly |quite |indeed "
    r")?(?:different|separate|distinct|unrelated) (?:issue|problem|bug|thing|case|request|topic|root cause|"
    r"cause)\b|\bwrong (?:issue|number|link|ticket|thread|one)\b|\b(?:scratch|ignore|disregard) (?:that|my "
    r"(?:last|previous)|the above|this comment)\b|^(?:edit|update|correction) ?\d? ?[:,–—-]+ ?(?:(?:oh|ah|ok|"
    r"oops|sorry|hm+|actually)[,.!]* )*(?:nope|never ?mind|nvm|wrong|scratch|not\b(?! (?:only|sure))|no(?! "
    r"(?:problem|worr|longer|need|idea|other|more|one|news))\b)|^(?:oh |ah |ok |oops,? )?(?:never ?mind|"
    r"nvm)(?: then| me| that)?[.,! ]*$|\bclosed (?:this )?(?:by mistake|by accident|in error|accidentally|"
    r"mistakenly)\b|\b(?:i was|that was|was) (?:wrong|mistaken|my mistake)\b|不是重复|重複ではあり|중복이 아"
)
# Finds: "sorry"
_REGRETS = expand(
    r"\b(?:edit|sorry|after all|re-?open\w*|never ?mind|nvm|scratch|oops|actually|correction|wrong|"
    r"mistake\w*|my bad|update|apolog\w+|turns? out|looking (?:again|closer|at it again)|on second thought|"
    r"misread|i see now|remov(?:e|ing)|ignore|disregard|hold on|wait)\b"
)
# What the text of a comment holds that can take anything back: for a quick look before it is taken apart.
# Finds: "different issue"
MAY_TAKE_BACK = re.compile(
    r"dup|dou?bl|дубл|重|중복|(?:different|separate|distinct|unrelated|wrong) \w|mistak|was wrong|mind\b|nvm|"
    r"scratch|ignore|disregard|edit|update|correction|unmark|accident|in error|undo|revert|retract|"
    r"withdr[ae]w|\bback\b|re-?open",
    re.IGNORECASE,
)


def takes_back(sentence: Sentence) -> bool:
    """Whether a sentence takes back what was said before, without naming a target."""
    if asks(sentence.text):
        return False
    if withdraws(sentence.text):
        return not sentence.refs
    match = _TAKE_BACK.search(sentence.text)
    return match is not None and not is_conditional(sentence.text[: match.end()])


def regrets(sentence: Sentence) -> bool:
    """Whether it is the writer who takes back their own words ("sorry", "edit", "reopening")."""
    return withdraws(sentence.text) or _REGRETS.search(sentence.text) is not None


def withdraws(text: str) -> bool:
    """Whether a sentence withdraws a mark ("Undoing the duplicate mark for #5")."""
    return _WITHDRAWS.search(text) is not None and not text.endswith("?")


def outlived(sentence: Sentence) -> Reference | None:
    """The issue that is said to be fixed although this one still happens."""
    match = _OUTLIVES.search(sentence.text)
    return sentence.refs_between(*match.span())[0] if match else None


def corrections(sentences: Sequence[Sentence]) -> Iterator[tuple[int, Reference]]:
    """Yield (index of the sentence, reference) where a writer puts another target in the place of one."""
    for index, sentence in enumerate(sentences):
        if _RESTATES.match(sentence.text) and len(sentence.refs) == 1:
            yield index, sentence.refs[0]
            continue
        for match in _CORRECTS.finditer(sentence.text) if REF in sentence.text else ():
            yield index, sentence.refs_between(*match.span("r"))[0]
