"""The words of the grammar: building blocks of patterns, and cue words around a phrase."""

from __future__ import annotations

import re
from typing import Literal

from angle_data.gis.comments.references import REF, SELF

Direction = Literal["this_is_dup_of", "other_is_dup_of_this"]

WEAK_KINDS = frozenset({"covered", "tracked", "reported", "continued", "same", "similar"})
"""Kinds that tie two issues without calling either a duplicate; too weak alone to merge clusters."""


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


# Finds: "doublon"
_FOREIGN = (
    r"dubbel|duplica|dubb?lett?e?|duplikat\w{0,3}|doublons?|duplicatas?|duplicad[oa]s?|duplicat[oi]|"
    r"doppion[ei]|doppelt|duplicaat|duplikát\w{0,2}|duplicit\w{1,4}|zduplikowan\w{1,4}|дубликат\w{0,3}|"
    r"дубл[ья]|дублем|дублікат\w{0,3}|дублиру\w{1,5}|дублює|повтор|powtórzeni\w|kopyası|trùng(?: lặp)?|en "
    r"double"
)
# Finds: "duplicated"
_D = (
    rf"(?:d(?:{_misspelt('uplicat')})(?:e|es|ed|ion|ions|ing|et|e'd)?|dup'?(?:e|ed|es|s|d|ing)?|dupp(?:e|ed|"
    rf"ing)|{_FOREIGN})"
)
# Finds: "dupe"
DUPLICATE = rf"(?<![\w.@-])(?<! /)(?<!^/){_D}(?![\w/]|\.\w|-(?!of\b)\w)"
"""A word for duplicate: noun, participle or verb, misspelt by one letter or in another language."""

# Finds: "feature request"
_ISSUE = (
    r"(?:issues?|bugs?|tickets?|reports?|(?:feature |pull |enhancement |change )?requests?|features?|"
    r"proposals?|problems?|threads?|discussions?|prs?|ones?|(?:work )?items?|tasks?|cards?|entry|thing|post|"
    r"crash|case|question|rfc|fr|suggestion|idea|zgłoszenia|задачи|тикета|проблемы|бага)"
)
# Finds: "this issue"
_THIS = (
    rf"(?:(?:this|that|these|the current|my|mine|our)(?: (?:exact |very |same )?(?:{_ISSUE}|here))?|it|here|"
    rf"{SELF})"
)
# The issue itself as what another one duplicates; "that" would be the other one.
# Finds: "celui-ci"
_HERE = (
    rf"(?:(?:this|the current|my|mine|our|dies\w*|ce(?:t|tte)?|d?est[ae]|quest[ao]|этой|этого|этому|эту|tego|"
    rf"tej|deze|dit|bu(?:nun)?)(?: (?:exact |very |same )?(?:{_ISSUE}|here))?|here|hiervon|celui-ci|ceci|"
    rf"{SELF})"
)
# A word that a target may be described with: no verb, and no name of something else.
# Finds: "crash"
_PLAIN_WORD = (
    rf"(?!(?:is|was|are|were|when|if|that|which|since|after|even|fix\w*|nothing|tests?|patch|prs?(?! ?{REF})|"
    rf"commit|approach|code|change\w*|branch|way|not|but|because|so|row|parser|value|steps?|review|helper|"
    rf"schedule|merged|docs|guide\w*|instructions?|comment|plan|config\w*|setup|results?|output|logs?|"
    rf"example|method|function|class|file|table|notes?|readme|template|pattern|answer|workaround|solution|"
    rf"explanation|scripts?|screenshots?|repro\w*|release|milestone|page|wiki|label|title|"
    rf"link|with|like)\b)[\w'/+@.\ue002-]+(?<!\.)"
)
# Finds: "the existing issue "
_FILLER = (
    rf"(?:(?>{_ISSUE} (?:about|for|on|regarding|titled|requesting|asking|concerning|called|that|with|around|"
    rf"where) [^.;!?{REF}]{{1,60}}(?<=[ (,:–—-])(?={REF})|(?:which|that|as it|because it|since it) "
    rf"[^.;!?{REF}]{{1,80}}[:(] ?(?={REF})|(?:{_PLAIN_WORD}|(?:is|was|were|has been)(?= (?:\w+ed|already)\b)|"
    rf"\"[^\"]{{1,120}}\"|'[^']{{3,120}}')[ ,:(#\"'–—-]{{1,3}}+)){{0,9}}+[\"'(<:]?"
)
# Finds: " and "
_SEPARATOR = (
    r"\)?(?: ?(?:,|;|\+|&|/|\||and|und|et|y|e|i|и|و|n?or|及|和|と|as well as|plus|then|also|\((?=and|also|as "
    r"well|&|\+))){1,3}(?: (?:also|even|of|to|issues?|bug|in|prs?|pull request))*[ (]?"
)
# A reference that opens a statement of its own is no further target ("dup of #1, #2 is related").
# Finds: " and #6"
_STATEMENT = (
    r"(?! (?:is|was|has|had|will|does|did|seems|looks|might|may|should|can|fix(?:es|ed)|adds|covers|tracks|"
    r"explains|just|only|would|could|describes|also)\b)"
)
# Finds: "#5, #6 and #7"
_LIST = rf"(?P<r>{REF}(?:(?:{_SEPARATOR}| ){REF}{_STATEMENT}){{0,30}})"
_MACROS = {
    "D": DUPLICATE,
    "R": _LIST,
    "ISSUE": _ISSUE,
    "THIS": _THIS,
    "HERE": _HERE,
    "FILL": _FILLER,
    "SEP": _SEPARATOR,
    "REF": REF,
    "SELF": SELF,
    # Finds: " of "
    "PREP": r"[ -]?(?:w/|\b(?:of|to|with|for|from|if|against|into|ot|fo|off|by|von|zu|zum|zur|mit|vom|"
    r"de la|de|du|del|da|do|di|della|dello|con|com|avec|met|van|av|af|a|ao|al|z|с|от|к|từ|của|với|dari)\b)"
    r"[ :]{0,2}",
    # Finds: " -> "
    "PUNCT": r" ?(?:[:>=→⇒⇨,(;]|[-–—]{1,3}|\.{2,3}|…){1,3} ?",
    # Finds: " over there in"
    "AS": r"(?: (?:here|over|there|out|in|as|at|by|with|under|via|on|through|inside|within|upstream|"
    r"separately|elsewhere)){1,3}:?",
    # Finds: " basically the same as"
    "ADV": r"(?: (?:\w+ly|already|also|now|just|in fact|indeed|pretty much|more or less|maybe|perhaps|still|"
    r"all|both|being|been|again|(?:the )?same(?: issue)? as|the same|same)){0,4}",
    # Finds: "looks like"
    "BE": r"(?:is|was|are|were|be|been|being|'s|has been|have been|had been|gets|got|looks like|seems like|"
    r"seems to be|appears to be|might be|may be|could be|to be)",
    # Finds: " for this in "
    "TO": rf"(?: (?:for|about|on) {_THIS}(?![\w']))?[ :,.(–—-]{{1,3}}{_FILLER}",
    # Finds: " that is being"
    "WAS": r"(?: (?:that|which|is|was|has been|being|i|you|we|have|already))*",
    # Finds: " not the same"
    "NO_SUCH": rf"(?:n't| not| no)(?: (?:an? |the )?(?:{DUPLICATE}|same|related|one|so|true|correct|right|"
    r"accurate|the case|it|at all)\b|[.,;!)]*$)",
}


def expand(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which `{NAME}` stands for a building block of this module."""
    for name, value in _MACROS.items():
        pattern = pattern.replace("{" + name + "}", value)
    return re.compile(pattern, re.IGNORECASE)


# Finds: "Closing as a duplicate."
UNBOUND = expand(
    r"{D}(?! (?:of|to|with) (?:(?:this|these|mine|here|{SELF})\b(?! ?:)|an? (?:internal|private)\b))(?=$|"
    r"[.,;:!?)\]–—\"'…-]| (?:and|so|but|because|since|as|for|to|then|already|here|too|now|please|i|we|you|"
    r"they|it|the|by|if|in order|until|again|instead|which|that|in favou?r|issue|bug|report|ticket|request|"
    r"of|see|cf|thanks|thank|sorry|closing|closed|then|duplicate|siehe|voir|et|und|y|e|и)\b|[ ]?[–—-]| ?{REF}"
    r"| [:;=])|重複(?:です|でした|しています|のため|している)|重复(?:了|的|问题|issue)?(?=$|[ ,.。!！?？]|"
    r" ?issue)|중복(?:입니다| 이슈| 건|된|이라|으로|인)|\b(?:post|submitt|fil|report|open|creat)\w*(?: "
    r"(?:this|it|the same(?: \w+)?|one))? twice\b|\bas a (?:copy|repeat)\b|\bredundant\b|\bclos\w*\b[^.;{REF}"
    r"]{0,40} in favou?r of (?![^.;]*{REF})|\brepeated (?:issue|report|bug|ticket|question)\b"
)
"""A word for duplicate that may stand without its target beside it."""

# Finds: "duplicate of #5"
BOUND = expand(
    r"{D}(?: {ISSUE})?(?:{PREP}{FILL}|{PUNCT}{FILL}| (?=\ue000|{SELF}))\(?(?:{SELF}(?:{SEP}| ))?{R}"
)
"""A word for duplicate with its target."""

# Cue words: lower case, without punctuation


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


THIS_WORDS = _words("""
    this it that these those it's that's this's its mine here ours yours which issue's i've das dies dieses
    hier ce ceci cela c'est esto este esta isso isto questo questa это эта це esse essa
""")
"""Words that stand for the issue itself."""

NOUNS = _words("""
    issue issues bug bugs ticket request report problem feature thread one discussion proposal enhancement pr
    question task topic idea suggestion post item case behaviour behavior error
""")
"""What an issue is called; with an article it stands for the issue itself."""

LIGHT = _words("""
    decided agreed chose glance sight progress somebody someone else your reported described está están estão
    fica something what just always is was are were be been being has have had having get gets got will would
    should can could may might must to as a an the also already now maybe perhaps likewise itself themselves
    indeed exact very most pretty much i we you they i'm i'll i'd we're we'll we've let's lets let me think
    believe guess feel say assume suppose suspect look looks like seem seems appear appears sound sounds
    considered close closing closed mark marking marked flag flagged tag tagged label labelled labeled
    resolved filed opened identified treated recognized both all either possible potential another yet again
    too then known more or less kind of sort in fact so and but because since therefore hence thus thanks
    thank sorry ok okay yes yep yeah yup sure hi hello hey please still well going go ahead down out up off
    gonna happening us for see found find noticed realized realised discovered figured turns seeing agree
    confirm confirmed confirming afaict afaik iirc iiuc imo imho fyi btw oops ah oh hmm my our same moving
    we'd mentioned reporting describing requested asked describe mention ask asking underlying root whole
    general triage resolving keep keeping work effort best better rather honest tracked tracking continue ist
    sind war wird wurde ein eine bereits schon auch daher ich schließe als est un une déjà je ferme comme es
    una ya se lo
    cierro como cerrando é uma já fechando fecho è stato già chiudo eto закрываю как уже jest zamykam
    jako zgłoszenie nie chyba czy to być może part almost vou fechar похоже на
    не nicht pas não non
""")
"""Words that name no subject of their own; so do all that end in -ly."""
