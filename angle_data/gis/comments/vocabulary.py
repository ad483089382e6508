"""The words and building blocks of phrasings, and how a pattern with `{NAME}` in it is compiled.

Knows words; `phrases` puts them together.
"""

from __future__ import annotations

import re

from angle_data.gis.comments.references import OTHER, REF, SELF


def _misspelt(stem: str) -> str:
    """Return a pattern of `stem` and of every word with one letter lost, added, changed or swapped."""
    forms = [stem]
    for i in range(len(stem)):
        forms.append(stem[:i] + stem[i + 1 :])
        forms.append(stem[:i] + "[a-z]" + stem[i + 1 :])
        forms.append(stem[:i] + "[a-z]" + stem[i:])
        if i + 1 < len(stem):
            forms.append(stem[:i] + stem[i + 1] + stem[i] + stem[i + 2 :])
    return "|".join(dict.fromkeys(forms))


_FOREIGN = (
    r"duplikat\w{0,3}|dublette|doublons?|duplicatas?|duplicad[oa]s?|duplicat[oi]|doppion[ei]|"
    r"doppelt|duplicaat|dubblett|"
    r"dublet|duplikát\w{0,2}|duplicit\w{1,4}|zduplikowan\w{1,4}|дубликат\w{0,3}|дубл[ья]|дублем|"
    r"дублікат\w{0,3}|"
    r"дублиру\w{1,5}|дублює|повтор|kopyası|trùng(?: lặp)?|en double"
)
_D = (
    rf"(?:d(?:{_misspelt('uplicat')})(?:e|es|ed|ion|ions|ing|et|e'd)?|dup'?(?:e|ed|es|s|d|ing)?|"
    rf"dupp(?:e|ed|ing)|{_FOREIGN})"
)
DUPLICATE = rf"(?<![\w.@-])(?<! /)(?<!^/){_D}(?![\w/]|\.\w|-\w)"
"""A word for duplicate: noun, participle or verb, misspelt by one letter or in another language."""

_ISSUE = (
    r"(?:issues?|bugs?|tickets?|reports?|(?:feature |pull |enhancement |change )?requests?|"
    r"features?|proposals?|problems?|threads?|"
    r"discussions?|prs?|ones?|items?|tasks?|cards?|entry|thing|post|crash|case|question|rfc|fr|"
    r"suggestion|idea)"
)
_THIS = (
    rf"(?:(?:this|that|these|the current|my|mine|our)(?: (?:exact |very |same )?(?:{_ISSUE}|here))?|it|"
    rf"here|{SELF})"
)
_FILLER_WORD = (
    rf"(?:the|our|an?|this|that|my|your|its|existing|older|old|newer|new|open|opened|closed|"
    rf"earlier|previous|prior|first|long|"
    rf"standing|long-standing|longstanding|known|same|original|main|master|canonical|parent|other|"
    rf"another|very|upstream|"
    rf"both|either|all|of|in|at|on|as|over|there|here|already|reported|filed|tracked|described|"
    rf"discussed|mentioned|"
    rf"requested|following|with|from|umbrella|tracking|meta|part|more|recent|latest|better|broader|"
    rf"bigger|larger|wider|comprehensive|detailed|complete|active|up-to-date|specific|github|gh|"
    rf"number|no\.?|nr\.?|general|similar|much|see|"
    rf"please|which is|which has been|and|currently|is|what we have|what's|what is|by @[\w-]+|"
    rf"incidencia|tíquete|chamado|anfrage|meldung|its|sibling|successor|predecessor|counterpart|"
    rf"version|was|were|has been|been|asked|proposed|"
    rf"suggested|raised|"
    rf"der|die|das|dem|den|le|la|les|el|los|o|os|il|lo|in|dans|em|w|в|и|"
    rf"issue:|{_ISSUE}'?s?|{OTHER}|\"[^\"]{{1,120}}\"|'[^']{{3,120}}')"
)
_FILLER = (
    rf"(?:(?>{_ISSUE} (?:about|for|on|regarding|titled|requesting|asking|concerning|called|that|"
    rf"with|around|where) "
    rf"[^.;!?{REF}]{{1,60}}(?<=[ (,:–—-])(?={REF})|{_FILLER_WORD}[ ,:(#\"'–—-]{{1,3}}+)){{0,9}}+[\"'(<:]?"
)
_SEPARATOR = (
    r"\)?(?: ?(?:,|;|\+|&|/|\||and|und|et|y|e|i|и|و|及|和|と|or|as well as|plus|then|also|\((?=and|"
    r"also|as well|&|\+)))"
    r"{1,3}(?: (?:also|even|of|to|issues?|bug|in|prs?|pull request))*[ (]?"
)
# A reference that opens a statement of its own is no further target ("dup of #1, #2 is related").
_STATEMENT = (
    r"(?! (?:is|was|has|had|will|does|did|seems|looks|might|may|should|can|fix(?:es|ed)|adds|covers|"
    r"tracks|explains|just|only|would|could|describes|also)\b)"
)
_LIST = rf"(?P<r>{REF}(?:(?:{_SEPARATOR}| ){REF}{_STATEMENT}){{0,30}})"
_PREP = (
    r" ?\b(?:of|to|with|for|from|if|against|into|ot|fo|off|by|von|zu|zum|zur|mit|vom|de la|de|du|"
    r"del|da|do|di|della|dello|con|avec|"
    r"van|av|af|z|с|от|к|từ|của|với|dari)\b[ :]{0,2}"
)
_PUNCTUATION = r" ?(?:[:>=→⇒⇨,(;]|[-–—]{1,3}|\.{2,3}|…){1,3} ?"
_POINTER = (
    r"(?:(?:please |pls |kindly )?(?:see|cf\.?|refer to|follow|original(?: issue)?(?: is| at| "
    r"here| here is)?|same as|check|track(?:ed|ing)? "
    r"(?:in|by|at|with)|which is|duplicates?|of|it's|this is|vs\.?|go to|siehe|voir|véase|ver|vea|"
    r"vedi|см\.?|vgl\.?|zie|zob\.?)[: ]{1,2}+){0,3}+"
)
_MACROS = {
    "D": DUPLICATE,
    "R": _LIST,
    "ISSUE": _ISSUE,
    "TICKET": r"(?:issues?|bugs?|tickets?|reports?|(?:feature |pull )?requests?|threads?|prs?|question|"
    r"задачи|тикета|проблемы|бага)",
    "THIS": _THIS,
    "FILL": _FILLER,
    "REF": REF,
    "SELF": SELF,
    "PREP": _PREP,
    "PUNCT": _PUNCTUATION,
    "POINTER": _POINTER,
    "AS": r"(?: (?:here|over|there|out|in|as|at|by|with|under|via|on|through|inside|within|upstream|"
    r"separately|elsewhere)){1,3}:?",
    "ADV": r"(?: (?:already|also|currently|now|actually|really|basically|essentially|just|simply|exactly|"
    r"literally|in fact|indeed|"
    r"pretty much|more or less|probably|likely|most likely|maybe|possibly|perhaps|presumably|"
    r"likely|definitely|certainly|clearly|"
    r"obviously|still|all|both|fully|completely|entirely|being|been|mostly|effectively|"
    r"technically|again|apparently|directly|"
    r"the same as|same as|same|the same issue as)){0,4}",
    "BE": r"(?:is|was|are|were|be|been|being|'s|has been|have been|had been|gets|got|looks like|seems "
    r"like|seems to be|appears to be|might be|may be|could be|to be)",
    "LINK": r"(?:[ ,(–—-]|\b(?:is|was|are|were|be|been|being|has|have|had|got|gets|seems?|looks?|like|"
    r"appears?|to|as|a|an|the|exact|"
    r"also|already|now|just|really|basically|actually|both|all|clearly|definitely|probably|likely|"
    r"possible|possibly|might|may|could|"
    r"which|that|who|closed|closing|marked|flagged|tagged|labell?ed|resolved|filed|opened|and|it's|it|"
    r"i|i've|think|believe|itself|"
    r"est|un|ist|ein|es|é|uma|è|это)\b){1,12}",
}


def expand(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which `{NAME}` stands for a building block of this module."""
    for name, value in _MACROS.items():
        pattern = pattern.replace("{" + name + "}", value)
    return re.compile(pattern, re.IGNORECASE)


UNBOUND = expand(
    r"{D}(?! (?:of|to|with) {THIS}(?! ?:))(?=$|[.,;:!?)\]–—\"'…-]| (?:and|so|but|because|since|as|"
    r"for|to|then|already|here|too|now|please|i|we|the|by|"
    r"which|that|in favou?r|issue|bug|report|ticket|request|of|see|cf|thanks|thank|sorry|closing|"
    r"closed|then|duplicate|siehe|voir|"
    r"et|und|y|e|и)\b|[ ]?[–—-]| ?{REF}| [:;=])"
    r"|重複(?:です|しています|のため|している)|重复(?:了|的|问题|issue)?(?=$|[ ,.。!！?？]| "
    r"?issue)|중복(?:입니다| 이슈| 건|된|이라|으로|인)"
)
"""A word for duplicate that may stand without its target beside it."""

BOUND = expand(r"{D}(?: {TICKET})?(?:{PREP}{FILL}|{PUNCT}{POINTER}{FILL}| (?=\ue000))\(?{R}")
"""A word for duplicate with its target."""
