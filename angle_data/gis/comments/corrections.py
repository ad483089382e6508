"""Second thoughts: a marker that is withdrawn, by name or altogether, and a target that is corrected.

"Unmarking as a duplicate of #5" denies #5; "Edit: I mean #27" puts #27 in the place of what was said before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from angle_data.gis.comments.doubt import is_conditional
from angle_data.gis.comments.references import REF, Reference
from angle_data.gis.comments.sentences import Sentence
from angle_data.gis.comments.vocabulary import expand

# Finds: "undoing the duplicate mark"
_WITHDRAWS = expand(
    r"\bun-?(?:mark|dup|duplicat)\w*\b|\b(?:undo|undid|undone|revert|retract|withdr[ae]w|revok|rescind|"
    r"scratch|disregard)\w* (?:(?:the|my|our|this|that|its) )?(?:(?:\w+ )?(?:{D}|mark(?:ing)?|label|verdict|"
    r"claim)\b|what (?:i|we) (?:said|wrote)\b)|\bt(?:ak(?:e|ing|en)|ook) (?:that |this |it |my \w+ )?back\b|"
    r"\b(?:remov|delet)\w*\b[^.;]{0,15}\b{D}[- ](?:label|tag|mark|link|status)|\b(?:too|over)[- ]?(?:quick|"
    r"hast|eager|fast|early)\w* (?:to|in|with) (?:clos|mark|call)|\b(?:clos|mark)\w* (?:this|it|the (?:issue|"
    r"ticket))(?: \w+)? (?:too (?:quick|hast|fast|early|soon)\w*|hastily|prematurely)\b|\bmist(?:ook (?:this|"
    r"it) for|aken for) (?:an? )?{D}|\b(?:was|were) wrong about\b|\bused to be (?:\w+ )?(?:an? |the "
    r")?(?:mark|clos|track|consider|treat|same|{D})|\bdetach\w* (?:this|it) from\b"
)
# Finds: "Reopening, this was "
_REOPENS = expand(
    r"(?:^|[,;(–—] ?)(?:(?:so|and|hence|i(?:'m| am|'ve| have|'ll)?|i) )*re-?open(?:ed|ing)\b(?! (?:{REF}|"
    r"to\b|the |that |if ))"
)
# Finds: "was closed as a "
_WAS_MARKED = expand(
    r"\b(?:was|were|been|had|originally|previously|first|i) (?:\w+ ){0,2}(?:clos|mark|flag|label)ed\b|"
    r"^\W*(?:originally|previously|first) (?:clos|mark|flag|label)ed\b"
)
# Finds: "#5 is fixed and this still happens"
_OUTLIVES = expand(
    r"{REF}\S* (?:is|was|has been|got|are|were)(?: (?!not\b|never\b)\w+)? (?:fixed|resolved|closed|merged|"
    r"released|shipped|done|solved)\b[^;{REF}]{0,60}?\b(?:and|but|yet|while|though)\b (?:i|we|this|the \w+|"
    r"mine|it)\b[^.;]{0,30}\b(?:still|again|persists?|remains?|continues)\b"
)
# Finds: "Edit: I mean #27"
_CORRECTS = expand(
    r"(?:^|[\s(,;.–—*-])(?:edit(?:ed)?|upd(?:ate)?|correction|oops|sorry|er+m?|i mean(?:t)?|meant|or rather|"
    r"rather|make (?:that|it)|(?:no|oh),? wait|wait,? no|wrong (?:number|link|issue|one)|typo|the (?:right|"
    r"correct) (?:number|one|issue|link))\b(?:[ :,.!*()–—-]+(?:i|it|is|should|was|be|of|the|to|say|mean|"
    r"meant|actually|sorry|right|correct|wrong|number|one|issue|ticket|link|no|have|been|read|that|typo|oops|"
    r"rather|{D}(?= of)))*[ :,.!*()–—-]+(?P<r>{REF})(?=[.,;:!)*\s]*$|[,;)]|\.)"
)
# Finds: "not a duplicate after all"
_TAKE_BACK = expand(
    r"(?:\bnot|n't|\bno longer|\bnever|\bno)(?: (?:a|an|actually|really|in fact|the|exact|true|be|been|"
    r"exactly))* {D}(?! of {REF})|\b(?:is|it's|are|as|was|indeed|really|actually|'s|seems?) (?:an? "
    r")?(?:completely |totally |really |actually |indeed |clearly |slightly |quite )?(?:different|separate|"
    r"distinct|unrelated) (?:issue|problem|bug|thing|case|request|topic|root cause|cause)\b|^(?:\w+[,:]? "
    r")?(?:an? )?(?:different|separate|distinct) (?:issue|problem|bug)|\bunmark\w*\b|\bun-?dup\w*\b|"
    r"\bremov\w+ (?:the )?{D} (?:label|tag|mark)|\bwrong (?:issue|number|link|ticket|thread|one)\b|\bscratch "
    r"that\b|\b(?:ignore|disregard) (?:that|my (?:last|previous)|the above|this comment)\b|^(?:edit|update|"
    r"correction) ?\d? ?[:,–—-]+ ?(?:(?:oh|ah|ok|oops|sorry|hm+|actually)[,.!]* )*(?:nope|never ?mind|nvm|"
    r"wrong|scratch|not\b(?! (?:only|sure))|no(?! (?:problem|worr|longer|need|idea|other|more|one|news))\b)|"
    r"^(?:oh |ah |ok |oops,? )?(?:never ?mind|nvm)(?: then| me| that)?[.,! ]*$|\bclosed (?:this )?(?:by "
    r"mistake|by accident|in error|accidentally|mistakenly)\b|\b(?:i was|that was|was) (?:wrong|mistaken|my "
    r"mistake)\b|kein duplikat|pas un doublon|no es un duplicado|não é (?:uma )?duplicat|non è un duplicato|"
    r"не дубликат|不是重复|重複ではあり|중복이 아"
)
# Finds: "sorry"
_REGRETS = expand(
    r"\b(?:edit|sorry|after all|re-?open\w*|never ?mind|nvm|scratch|oops|actually|correction|wrong|"
    r"mistake\w*|my bad|update|apolog\w+|un-?mark\w*|un-?dup\w*|turns? out|looking (?:again|closer|at it "
    r"again)|on second thought|misread|i see now|removing|remove|ignore|disregard|hold on|wait)\b"
)


def takes_back(sentence: Sentence) -> bool:
    """Whether a sentence takes back what was said before, without naming a target."""
    match = _TAKE_BACK.search(sentence.text)
    return not (match is None or sentence.ending == "?" or is_conditional(sentence.text[: match.end()]))


def regrets(sentence: Sentence) -> bool:
    """Whether it is the writer who takes back their own words ("sorry", "edit", "reopening")."""
    return _REGRETS.search(sentence.text) is not None


def withdraws(text: str) -> bool:
    """Whether a sentence that names a target withdraws the mark ("Undoing the duplicate mark for #5")."""
    return bool(
        _WITHDRAWS.search(text) or (_REOPENS.search(text) and _WAS_MARKED.search(text))
    ) and not text.rstrip().endswith("?")


def outlived(sentence: Sentence) -> Reference | None:
    """The issue that is said to be fixed although this one still happens."""
    match = _OUTLIVES.search(sentence.text)
    return sentence.refs_between(match.start(), match.start() + 1)[0] if match else None


def corrections(sentences: Sequence[Sentence]) -> Iterator[tuple[int, Reference]]:
    """Yield (index of the sentence, reference) where a writer puts another target in the place of one."""
    for index, sentence in enumerate(sentences):
        for match in _CORRECTS.finditer(sentence.text) if REF in sentence.text else ():
            yield index, sentence.refs_between(*match.span("r"))[0]
