"""What surrounds a phrase: who it speaks of, and whether it is denied, doubted, asked or conditional.

Judges the words to the left and right of a match within one sentence, walking from word to word, so that a
negation counts only where nothing but light words stands between it and the phrase.
"""

from __future__ import annotations

import re

from angle_data.gis.comments.references import SELF
from angle_data.gis.comments.vocabulary import (
    ASKED_NEGATIONS,
    GAP,
    LIGHT,
    NEGATIONS,
    NO_GAP,
    NOUNS,
    POINTING,
    THIS_WORDS,
    expand,
)

_BOUNDARY = (",", ";", ":", "(", ")", "-", "–", "—", "!", "=>", "->", "→", "/", ".", "?", "…", "|", ">")
_WORD_EDGE = "\"'().,:;!?*[]“”«»^"

# Finds: "#5 is already marked as a "
_THIRD = expand(
    r"{REF}(?:'s)?[)\]\"']*(?P<tail>(?:[ ,:;(–—>=-]|\b(?:is|was|are|were|be|been|being|has|have|had|gets?|"
    r"got|which|that|who|itself|also|already|now|just|really|actually|basically|clearly|probably|likely|"
    r"maybe|possibly|might|may|could|should|would|can|will|must|to|as|a|an|the|exact|both|all|looks?|like|"
    r"seems?|appears?|sounds?|considered|closed|closing|close|marked|marking|flagged|tagged|labell?ed|"
    r"resolved|reported|filed|it's|its|obviously|definitely|turns|turned|out|then|too|in turn|another|one|"
    r"possible|potential|und|et|y|ist|est|es|é|è|ein|un|uma|from|by|@[\w-]+|last|yesterday|today|earlier|"
    r"week)\b){0,24})$"
)
# Finds: " was closed as"
_VERB = expand(
    r"\b(?:is|was|are|were|be|been|being|has|have|got|gets?|which|that|who|itself|as|looks?|"
    r"seems?|appears?|might|may|could|should|to|ist|est|es|é|è|closed|marked)\b|\("
)
# Finds: ", so closing"
_OPENS_NEW = expand(
    r"[)\]\"']?(?: ?[,;–—-]+ ?| )(?:so |and |thus |hence |i'm |i am |therefore )*(?:closing|marking|"
    r"resolving|flagging|closed)\b|[)\]\"']? ?,? ?(?:so|and|thus|hence|therefore)\b"
)
# Finds: " which"
_RELATIVE = expand(r"\W*(?:which|that|who|itself)\b")
# Finds: "closing #5"
_CLOSES_REF = expand(
    r"\b(?:clos|mark|flag|tag|resolv|dup|label)\w*(?: (?:issue|bug|ticket|both|also|the other|old|"
    r"newer|older|issues|out))* {REF}"
)
# Finds: "as for #5"
_TOPIC_REF = expand(
    r"(?:\b(?:as for|regarding|concerning|re:?|about)|^(?:and |so |but )?(?:is|are|was|were|isn't|"
    r"could|might|should)) (?:issue )?{REF}$"
)
# Finds: "#5 and #6"
_ONLY_REFS = expand(r"(?:[\s{REF},;&+*:#(-]|\b(?:and|both|issues?|fyi|btw|also|the)\b)*")
# Finds: ", the "
_APPOSITION = expand(r" ?[,(] ?(?:an?|the)(?: \w+)? ?")
# Finds: "like #5"
_COMPARED_REF = expand(r"\b(?:like|as|per|similar to|see|cf) {REF}$")
# Finds: "as in #5 from today"
_LIKE_REF = expand(
    r"\b(?:like|as|see|per|similar to|in|with|to|from|by|of|siehe|voir|véase|ver|vedi|см) "
    r"{REF}[^{REF}]*$"
)

# Finds: "but"
_BREAK = expand(r"[,;:!(–—]| -+ |\b(?:but|so|because|since|although|however|though)\b")
# Finds: "maybe"
_STRONG = expand(
    r"\b(?:might|may(?! \d)|maybe|perhaps|possib(?:le|ly|ility)|potential(?:ly)?|could|not (?:100% |"
    r"entirely |totally |completely |really |quite |too |very |so )?(?:sure|certain)(?! (?:how|why|where))|"
    r"unsure|wonder(?:ing)?|suspect(?:ed)?|probable|presumed|guess|candidates?|unclear|don't know|dunno|"
    r"suggests?|related|good chance|chances|vielleicht|möglicherweise|könnte|evtl|eventuell|womöglich|"
    r"peut[- ]être|possible|quizás?|tal vez|posible(?:mente)?|podría|talvez|possível|possivelmente|pode ser|"
    r"poderia|forse|possibile|potrebbe|возможно|может|вероятно|być może|możliwe|misschien|kanske|måske|"
    r"можливо)\b"
)
# Finds: "I think"
_WEAK = expand(
    r"\b(?:think|thinks|thought|believe|believes|seems?|seemingly|appears?|looks?(?! at| into| through)|"
    r"sounds?|feels?|apparently|afaict|afaik|iiuc|iirc|pretty sure|fairly sure|quite sure|assum(?:e|ing)|"
    r"imho|imo|presumably|probabl[ey]|likely|suppose|would say|i'd say|i would|says|said|in my opinion|"
    r"strikes me|reminds me|reads like|feeling|hunch|impression|claim(?:s|ed)?|suggesting|(?:was|were|"
    r"been) told|you (?:mention|state|wrote|suggest)\w*|vermutlich|wahrscheinlich|scheint|wohl|glaube|denke|"
    r"sieht|schätze|probablement|semble|pense|crois|parece|creo|probablemente|acho|provavelmente|sembra|"
    r"credo|probabilmente|penso|похоже|кажется|наверное|видимо|думаю|chyba|waarschijnlijk|lijkt|мабуть)\b|"
    r"似乎|看起来|貌似|应该是|ようです|みたい|と思|でしょう|듯"
)
# Finds: "可能"
_DOUBT_CJK = re.compile(
    r"可能|也许|或许|好像|疑似|大概|也許|かもしれ|おそらく|たぶん|多分|아마|것 같|수도 있"
)
# Finds: "I might be wrong"
_MISTAKEN = expand(
    r"(?:might|could|may) be (?:wrong|mistaken)|if i'm not (?:mistaken|wrong)|correct me|not (?:100% |"
    r"entirely |totally |completely |really |quite )?(?:sure|certain)(?! (?:how|why|where))|"
    r"if i (?:understand|read|recall|remember)|unless i(?:'m| am)|can(?:'t| not|not) (?:confirm|verify)|"
    r"haven't (?:verified|checked|confirmed)"
)
# Finds: ", I think"
_TAIL_DOUBT = expand(
    r"[)\"'\s]*[,\s(–—-]*(?:i think|i guess|i believe|i'd say|i would say|i suppose|i assume|probably|maybe|"
    r"perhaps|possibly|presumably|it seems|apparently|afaict|afaik|iirc|imo|imho|likely|most likely|or so|"
    r"or something|but (?:i'm )?not sure|not sure|perhaps not|je crois|je pense|creo|acho|glaube ich|"
    r"denke ich|vermutlich|похоже|кажется)\b|[)\"'\s]*\(\?\)|[)\"'\s]*\d{1,3} ?%|[)\"'\s]*,? but (?:for|"
    r"on)(?! (?:now|the other hand)\b) \w"
)
# Finds: "if"
_IF = expand(
    r"\b(?:if(?! you (?:look|check|search|read|scroll|compare|see|take|follow))|unless|whether|in "
    r"case|when(?:ever)?|assuming|^to mark|how to|for example|for "
    r"instance|such as|e\.g\.?|i\.e\.|example|falls|wenn|ob|si|se|если|ли)\b|如果|もし"
)
# Finds: "it would be a "
_WOULD = expand(r"(?:\bwould|'d)\b(?: \w+){0,4} ?$")
# Finds: " if it were on v2"
_WERE = expand(
    r"[^.;]{0,40}\bif\b[^.,;]{0,40}\b(?:were|was|had|did|could|still|only|weren't|wasn't|hadn't|didn't)\b"
)
# Finds: "if this is a "
_IF_THIS = expand(r"(?:^|[,;:(–—-] ?)if (?:this|it|that|yours?)\b[^,;:]{0,40}$")
# Finds: ", please close"
_THEN_CLOSE = expand(r"[)\"']?,?(?: then)?(?: (?:please|pls|plz|kindly|just|do))+ (?:go ahead and )?clos")
# Finds: " before posting"
_BEFORE_POSTING = expand(r"[)\"']? before (?:you )?(?:post|open|submit|creat|fil|report|rais|ask|comment)")
# Finds: "the template asks: is this a "
_TEMPLATE_ASKS = expand(
    r"\b(?:template|form|checklist|faq|guidelines?|readme)\b[^.;:]{0,30}\b(?:ask|say|read|want|tell|state|contain)"
    r"\w*\b[^.;:]{0,20}:"
)
# Finds: " by mistake"
_BY_MISTAKE = expand(
    r"[)\"']? (?:(?:by|in) (?:a |an |the )?)?(?:mistake|accident|error|mistakenly|accidentally|erroneously|"
    r"incorrectly|wrongly)\b"
)
# Finds: "it was marked as a "
_MARKS = expand(r"\b(?:mark|clos|flag|tag|label|resolv|treat|identif|consider|detect)\w*\b[^,;:]{0,30}$")
# Finds: "不是"
_NOT_CJK = re.compile(
    r"不是|并非|並非|不算|不属于|不屬於|不重复|没有重复|不同|无关|ではあり?ません|ではな[いく]|"
    r"じゃな[いく]|ありません|異な|아닙니다|아니|아닌|다릅니다|다른"
)
# Finds: "ではありません"
_NOT_CJK_AFTER = re.compile(r".{0,8}?(?:ではあり?ません|ではな|じゃな|[이은는] ?아[닙니닌]|아님|않)")
# Finds: ", but that one is different"
_SEPARATE = expand(
    r"[^.;{REF}]{0,30}?\b(?:but|however|although|though|yet|while|whereas|"
    r"except)\b[^.;]{0,60}?(?:\b(?:different|separate|unrelated|distinct|not the same|not a dup\w*|"
    r"not related|nothing to do|another (?:issue|problem|bug))\b|(?:it|this|that|they)(?:'s| is|"
    r" are)?(?:n't| not)\b|(?:that|it|that one)(?:'s| is) (?:about|for|only)\b|isn't (?:the same|a dup|"
    r"related)|{REF} (?:is|was) (?:about|for|only|on|fixed|closed)|\bmine (?:is|isn't)\b)|,? (?:which|"
    r"that) (?:is|was|seems|has|looks)[^.;,]{0,30}\b(?:different|unrelated|separate|another|nothing|"
    r"incorrect|wrong|mistaken?|an? error|not (?:true|correct|the case))\b|[^.;,]{0,12}\b(?:is|"
    r"was) (?:wrong|incorrect|not (?:correct|right|true|accurate)|a mistake|false|nonsense)\b|,? (?:it|this|"
    r"they)(?:'s| is| are)?(?: \w+)?(?:n't|n't| not| no)\b"
)
# Finds: ", did you search?"
_INTERROGATIVE = expand(
    r"[,;:–—(-]+ ?(?:and |but |so |or )?(?:did|do|does|can|could|would|will|have|has|are|is|was|"
    r"were|what|why|how|when|which|who|where|please|any|mind|"
    r"shall|should|may)(?:n't)?\b(?! (?:it|that|this|not|right)\?)"
)
# Finds: "isn't this a "
_ASKS = expand(
    r"(?:(?:hi|hey|hello|so|and|but|hmm+|wait|@[\w-]+)[, ]{1,2})*(?:is|are|isn't|aren't|could|can|"
    r"does|do|should|shouldn't|would|was|wasn't)\b"
)
# Finds: "吗"
_ASKS_CJK = re.compile(r"吗|嗎|か[。？?]?$|인가요|나요|까요")
# Finds: "please confirm"
_ASKS_BACK = expand(r"\b(?:confirm|verify|check|correct|right|agree)\b")
# Finds: "Closing as"
_CLOSES = expand(
    r"\bclosing\b|^closed\b(?! (?:by|in|with|via) )|\bclosed (?:as|it|this|mine)\b|\bi(?:'ve| have) closed\b|"
    r"\bi (?:just )?close[d]?\b|\b(?:i'll|i will|i'm going to|i am going to|we're going to|we are going to|"
    r"i'm gonna|we'll|we will|going to|gonna|let's|let me|gotta|so|will|and|i'd rather)(?: (?:just|then|"
    r"therefore|now|also|go ahead and|have to))* close\b(?! if)|\bmarking\b|\bmarked as\b|/close\b|schließe|"
    r"geschlossen|je ferme|fermé|fermeture|cierro|cerrando|cerrado|fechando|fechado|fecho|chiudo|chiusa|"
    r"закрываю|закрыт|关闭|關閉|閉じ|クローズ|닫|zamykam|sluit"
)
# Finds: "please don't close"
_NOT_CLOSES = expand(
    r"\bautomatic|\b(?:should|could|can|may|might|please|shall|if|not|don't|before|instead of|"
    r"avoid)\b[^,;.]{0,25}\bclos|\byou\b[^,;.]{0,20}\bclos|\bwill be (?:\w+ )?closed"
)
# Finds: ""
_ANYTHING = re.compile("")
# What stands before and after a phrase that is neither said nor denied: what would be, or advice.
_UNSAID = ((_WOULD, _WERE), (_TEMPLATE_ASKS, _ANYTHING), (_IF, _BEFORE_POSTING), (_IF_THIS, _THEN_CLOSE))
# What takes a phrase back: a later objection, or the remark that the mark was a mistake.
_TAKEN_BACK = ((_ANYTHING, _SEPARATE), (_ANYTHING, _NOT_CJK_AFTER), (_MARKS, _BY_MISTAKE))
_NEGATING_PAIRS = frozenset({("rather", "than"), ("instead", "of"), ("thought", "to"), ("far", "from")})
_NO_NEGATION = frozenset({("no", "doubt"), ("a", "doubt"), ("any", "doubt"), ("without", "doubt")})


def _core(word: str) -> str:
    return word.strip(_WORD_EDGE).lower()


def is_negated(left: str, *, asked: bool) -> bool:
    """Whether the text before a phrase denies it ("I don't think this is a …").

    `asked`: the sentence is a question; "isn't this a duplicate of #5?" asks and does not deny.
    """
    if _NOT_CJK.search(left):
        return not asked
    tokens = left.split()
    for position in range(len(tokens) - 1, max(-1, len(tokens) - 15), -1):
        word = _core(tokens[position])
        before = _core(tokens[position - 1]) if position else ""
        after = _core(tokens[position + 1]) if position + 1 < len(tokens) else ""
        if word in NEGATIONS or word.endswith("n't"):
            asks = asked and (word in ASKED_NEGATIONS or position <= 2)
            return not asks and (before, word) not in _NO_NEGATION and before not in ("why", "or", "if")
        if word == "no":
            return after == "longer" or all(_core(token) in NO_GAP for token in tokens[position + 1 :])
        if (before, word) in _NEGATING_PAIRS:
            return True
        parenthesis = tokens[position].endswith(",") or tokens[position].startswith(",")
        if (word not in GAP and not word.startswith("@")) or (
            tokens[position][-1:] in _BOUNDARY and not parenthesis
        ):
            return False
        if (
            parenthesis
            and word not in ("is", "it's", "not", "isn't")
            and after not in ("dass", "que", "che", "что")
        ):
            return False
    return False


def is_taken_back(left: str, right: str) -> bool:
    """Whether the words around a phrase refute it ("…, but that one is about fonts", "… by mistake")."""
    return any(before.search(left) and after.match(right) for before, after in _TAKEN_BACK)


def is_unsaid(left: str, right: str) -> bool:
    """Whether a phrase would hold in another case ("would be … if it were") or advises ("if so, close")."""
    return any(before.search(left) and after.match(right) for before, after in _UNSAID)


def about_another(left: str, verb: bool = False) -> bool:
    """Whether another reference is the subject or object ("#5 is a …", "closing #5 as …").

    `verb`: the phrase itself is the verb, as in "#5 duplicates …".
    """
    match = _THIRD.search(left)
    if match is None:
        return False
    tail = match["tail"]
    ahead = left[: match.start() + 1]
    if _TOPIC_REF.search(ahead):
        return True
    opens = _ONLY_REFS.fullmatch(ahead) is not None
    if _CLOSES_REF.search(ahead[-60:]) and " as" in tail:
        return True
    if _OPENS_NEW.match(tail):
        return False
    relative = _RELATIVE.match(tail)
    if tail.lstrip().startswith(",") and not relative and _LIKE_REF.search(ahead):
        return False
    if _APPOSITION.fullmatch(tail):
        return _COMPARED_REF.search(ahead) is None
    if not tail.strip():
        return verb or opens
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


def is_conditional(left: str) -> bool:
    """Whether the clause before a phrase sets a condition, or gives an example ("if this is a …")."""
    return _IF.search(_clause(left)) is not None


def is_doubted(sentence: str, start: int, end: int, *, closing: bool) -> bool:
    """Whether the writer doubts the phrase at `sentence[start:end]`: in its clause, before or after it.

    A weak doubt ("I think") does not count where the writer closes the issue; a strong one ("maybe") does.
    """
    left, right = sentence[:start], sentence[end:]
    clause = _clause(left)
    near = clause + sentence[start:end]
    opening = left[: len(left) - len(clause)].strip(" ,:;-–—(")
    joined = opening.endswith(("but", "so", "because", "since", "although", "though", "however"))
    short = opening if len(opening.split()) <= 3 and not joined else ""
    if _STRONG.search(near) or _IF.search(clause) or _STRONG.search(short):
        return True
    if _MISTAKEN.search(sentence) or _DOUBT_CJK.search(sentence):
        return True
    return not closing and bool(_WEAK.search(near) or _TAIL_DOUBT.match(right) or _WEAK.search(short))


def _clause(left: str) -> str:
    last = 0
    for match in _BREAK.finditer(left):
        last = match.end()
    return left[last:]


def is_question(sentence: str, end: int) -> bool:
    """Whether a sentence asks for the phrase that ends at `end`, and not for something after it."""
    right = sentence[end:]
    if _ASKS_CJK.search(right):
        return True
    if not sentence.rstrip(" \"')").endswith(("?", "？")):
        return False
    if _ASKS.match(sentence):
        return True
    follow_up = _INTERROGATIVE.search(right)
    return follow_up is None or _ASKS_BACK.search(right, follow_up.start()) is not None


def closes(sentence: str) -> bool:
    """Whether the writer closes the issue in this sentence, not merely talks of closing."""
    if sentence.rstrip(" \"')").endswith(("?", "？")):
        return False
    return _CLOSES.search(sentence) is not None and _NOT_CLOSES.search(sentence) is None
