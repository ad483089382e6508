"""Whether a phrase is doubted, asked, conditional or hearsay, and whether the writer closes the issue."""

from __future__ import annotations

import re

from angle_data.gis.comments.negation import clause_of
from angle_data.gis.comments.vocabulary import expand

# Finds: "maybe"
_STRONG = expand(
    r"\b(?:nearly|almost|part(?:ly|ially)|in part|unless|a chance|any chance|suspicions?|tempted|a likely|"
    r"tentatively|provisionally|would (?:be (?:nice|good)|like)|(?:am|'m) \+1|vot(?:e|ing) (?:for|to)|"
    r"inclined|lean(?:s|ing)?(?= to)|in spirit|to some (?:extent|degree)|half(?! an?\b)|(?:propos|suggest|"
    r"recommend)\w* (?:to|that|we|clos\w*|mark\w*|merg\w*)|consider (?:clos|mark)ing|might|may(?! \d)|maybe|"
    r"perhaps|possib(?:le|ly|ility)|potential(?:ly)?|could|not (?:100% |entirely |totally |completely |"
    r"really |quite |too |very |so )?(?:sure|certain)(?! (?:how|why|where))|unsure|wonder(?:ing)?|"
    r"suspect(?:ed)?|probable|presumed|candidates?|unclear|don't know|dunno|suggests?|related|good chance|"
    r"chances|otherwise|vielleicht|möglicherweise|könnte|evtl|eventuell|womöglich|peut[- ]être|possible|"
    r"either an?(?= )|quizás?|tal vez|posible(?:mente)?|podría|talvez|possível|possivelmente|pode ser|"
    r"poderia|forse|possibile|potrebbe|возможно|может|вероятно|być może|możliwe|misschien|kanske|måske|"
    r"можливо)\b|\+1 (?:for|to)\b"
)
# Finds: "I think"
_WEAK = expand(
    r"(?<!this )(?<!that )(?<!the )(?<!any )(?<!some )(?<!all )\b(?:kind|sort) of\b|\b(?:arguably|(?:at|on) "
    r"first (?:sight|glance)|vaguely|loosely|remotely|bet|my money|smells?|whiff|in a way|chyba|może|think|"
    r"thinks|thought|believe|believes|seems?|seemingly|appears?|(?<!you )looks?(?! at| into| through)|"
    r"sounds?|feels?|apparently|afaict|afaik|iiuc|iirc|my understanding|would make|(?:pretty|fairly|quite|"
    r"reasonably) (?:sure|confident|certain)|assum(?:e|ing)|imho|imo|presumably|probabl[ey]|likely|"
    r"likelihood|guess|more or less|suppose|would say|i'd (?:say|close|mark|merge|fold|call|treat)|i would|"
    r"says|said|as far as|should be an?(?= )|in my (?:opinion|view|eyes)|judging|strikes me|reminds me|reads "
    r"like|feeling|hunch|impression|claim(?:s|ed)?|suggesting|(?:was|were|been) told|you (?:mention|state|"
    r"wrote|suggest)\w*|vermutlich|wahrscheinlich|scheint|wohl|glaube|denke|sieht|schätze|probablement|"
    r"semble|pense|crois|parece|creo|probablemente|acho|provavelmente|sembra|credo|probabilmente|penso|"
    r"похоже|кажется|наверное|видимо|думаю|chyba|waarschijnlijk|lijkt|мабуть)\b|似乎|看起来|貌似|应该是|"
    r"ようです|みたい|と思|でしょう|듯"
)
# Finds: "the bot says that this is a "
_HEARSAY = expand(
    r"\baccording to\b|(?:@[\w-]+|\b(?:people|someone|somebody|users?|reporters?|author|he|she|they|"
    r"folks))\b[^.;,]{0,30}\b(?:says?|said|writes?|wrote|thinks?|thought|claim\w*|suggest\w*|mention\w*|"
    r"believes?)\b[^.;,]{0,40}$|(?<![@\w-])(?:bots?|robot|ai|llm|(?:checker|detector|detection|classifier|"
    r"automation|script|action|workflow)\b[^.;]{0,20} (?:sa(?:ys?|id)|mark|flag|clos|label|tag|th(?:ink|"
    r"ought)|suggest|claim|call)\w*)\b(?! (?:is|was) right)[^.;]{0,60}$|\bauto(?:matically)?[- ]?(?:mark|"
    r"label|flag|detect|tag|clos|suggest)\w*\b[^.;]{0,30}$"
)
# Finds: " only by the bot"
_BY_PROGRAM = expand(
    r"[)\"']? (?:only |just )?by (?:the |a |our |that )?(?:\w+ )?(?:bot|action|script|automation|ai)\b"
)
# Finds: "I might be wrong"
_MISTAKEN = expand(
    r"(?:might|could|may) be (?:wrong|mistaken)|if i'm not (?:mistaken|wrong)|correct me|not (?:100% |"
    r"entirely |totally |completely |really |quite )?(?:sure|certain)(?! (?:how|why|where))|if i "
    r"(?:understand|read|recall|remember)|^(?:but |so |and )?(?:unless|if(?! you (?:look|check|search|read|"
    r"scroll|compare|see|take|follow)))\b[^;]{0,60},|unless i(?:'m| am)|^(?:once|as soon as) (?:you|we)\b|"
    r"can(?:'t| not|not) (?:confirm|verify)|haven't (?:verified|checked|confirmed)|\b(?:some(?:one|body)|can "
    r"you|could you|please)\b[^.;]{0,30}\b(?:verify|confirm|double.check)\b|可能|也许|或许|好像|疑似|大概|"
    r"也許|かもしれ|おそらく|たぶん|多分|아마|것 같|수도 있"
)
# Finds: ", I think"
_TAIL_DOUBT = expand(
    r"[)\"'\s]*[,\s(–—-]*(?:i think|i guess|i believe|i'd say|i would say|i suppose|i assume|probably|maybe|"
    r"perhaps|possibly|presumably|it seems|apparently|afaict|afaik|iirc|imo|imho|likely|most likely|or so|or "
    r"something|but (?:i'm )?not sure|not sure|perhaps not|unless\b|or am i|if (?:the|it|this|that|i)\b|in "
    r"spirit|to some (?:extent|degree)|je crois|je pense|creo|acho|glaube ich|denke ich|vermutlich|похоже|"
    r"кажется)\b|[)\"'\s]*\(\?\)|.{0,12}(?:ようです|みたい|と思|でしょう|듯)|[)\"'\s]*\d{1,3} ?%|[)\"'\s]*,? "
    r"but (?:for|on)(?! (?:now|the other hand)\b) \w"
)
# Finds: " and I agree"
_AGREES = expand(r"[^.;]{0,20}\b(?:(?:i|we) (?:fully |totally )?agree|which is (?:right|correct|true))\b")
# Finds: "if"
_IF = expand(
    r"\b(?:if(?! you (?:look|check|search|read|scroll|compare|see|take|follow))|unless|whether|in case|"
    r"when(?:ever)?|assuming|^to mark|how to|for example|for instance|such as|e\.g\.?|i\.e\.|example|falls|"
    r"wenn|ob|si|se|если|ли)\b|如果|もし"
)
# Finds: ", did you search?"
_INTERROGATIVE = expand(
    r"[,;:–—(-]+ ?(?:and |but |so |or )?(?:did|do|does|can|could|would|will|have|has|are|is|was|were|what|"
    r"why|how|when|which|who|where|please|any|mind|shall|should|may)(?:n't)?\b(?! (?:it|that|this|not|"
    r"right)\?)(?!.*\b(?:confirm|verify|check|correct|right|agree|think)\b)"
)
# Finds: "吗"
_ASKS_CJK = re.compile(r"吗|嗎|か[。？?]?$|인가요|나요|까요")
# Finds: "Closing as"
_CLOSES = expand(
    r"\bclosing\b|^closed\b(?! (?:by|in|with|via) )|(?<!best )(?<!be )\bclosed (?:as|it|this|mine)\b|"
    r"\bi(?:'ve| have) closed\b|\bi (?:just )?close[d]?\b|\b(?:i'll|i will|i'm going to|i am going to|we're "
    r"going to|we are going to|i'm gonna|we'll|we will|going to|gonna|let's|let me|gotta|so|will|and|i'd "
    r"rather)(?: (?:just|then|therefore|now|also|go ahead and|have to))* close\b(?! if)|(?:^|[,;:] )(?:so |"
    r"please |pls )?close(?: (?:it|this|mine)\b(?! if)|[.!]*$)|\bthis(?: \w+)? (?:will be|gets|is being|has "
    r"been) closed\b(?! (?:if|unless|in \d|automatic))|\bmarking\b|\bmarked as\b|\bwill be closed as\b|"
    r"/close\b|schließe|geschlossen|je ferme|fermé|fermeture|cierro|cerrando|cerrado|fechando|fechado|fecho|"
    r"chiudo|chiusa|закрываю|закрыт|关闭|關閉|閉じ|クローズ|닫|zamykam|sluit"
)
# What would be, advice, a form, or a part: § is the phrase.
# Finds: "it would be a § if it were on v2"
_UNSAID = expand(
    r"(?:\bwould|'d)\b(?: \w+){0,4} ?§[^.;]{0,40}\bif\b[^.,;]{0,40}\b(?:were|was|had|did|could|still|only|"
    r"weren't|wasn't|hadn't|didn't)\b|\b(?:if|whether)\b[^.;]*§[)\"']? before (?:you )?(?:post|open|submit|"
    r"creat|fil|report|rais|ask|comment)|(?:^|[,;:(–—-] ?)if (?:this|it|that|yours?)\b[^,;:]{0,40}§[)\"']?,?"
    r"(?: then)?(?: (?:please|pls|plz|kindly|just|do))+ (?:go ahead and )?clos|\b(?:template|form|checklist|"
    r"faq|guidelines?|readme)\b[^.;:]{0,30}\b(?:ask|say|read|want|tell|state|contain)\w*\b[^.;:]{0,20}:.*§|"
    r"§[,;]? (?:but |and |while )?the [\w ]{1,30} (?:is|are|was) (?:new|another|different|separate)\b"
)


def is_unsaid(left: str, right: str) -> bool:
    """Whether a phrase would hold in another case ("would be … if it were") or advises ("if so, close")."""
    return _UNSAID.search(f"{left}§{right}") is not None


def is_conditional(left: str) -> bool:
    """Whether the clause before a phrase sets a condition, or gives an example ("if this is a …")."""
    return _IF.search(clause_of(left)) is not None


def is_doubted(sentence: str, start: int, end: int, *, closing: bool | None) -> bool:
    """Whether the writer doubts the phrase at `sentence[start:end]`: in its clause, before or after it.

    A weak doubt ("I think") does not count where the writer closes the issue; a strong one ("maybe") does,
    and so does hearsay, unless a program speaks (`closing` None).
    """
    left, right = sentence[:start], sentence[end:]
    if _AGREES.match(right):
        return False
    clause = clause_of(left)
    near = clause + sentence[start:end]
    opening = left[: len(left) - len(clause)].strip(" ,:;-–—(")
    joined = opening.lower().startswith("as ") or opening.endswith(
        ("but", "so", "because", "since", "although", "though", "however")
    )
    short = opening if len(opening.split()) <= 4 and not joined else ""
    if (
        _STRONG.search(near)
        or (closing is not None and (_HEARSAY.search(clause) or _BY_PROGRAM.match(right)))
        or _IF.search(clause)
        or _STRONG.search(short)
        or _IF.search(short)
    ):
        return True
    if _MISTAKEN.search(sentence):
        return True
    return not closing and bool(_WEAK.search(near) or _TAIL_DOUBT.match(right) or _WEAK.search(short))


def is_question(sentence: str, end: int) -> bool:
    """Whether a sentence asks for the phrase that ends at `end`, and not for something after it."""
    right = sentence[end:]
    if _ASKS_CJK.search(right):
        return True
    if not sentence.rstrip(" \"')").endswith(("?", "？")):
        return False
    return _INTERROGATIVE.search(right) is None


def closes(sentence: str) -> bool:
    """Whether the writer closes the issue in this sentence, not merely talks of closing."""
    if sentence.rstrip(" \"')").endswith(("?", "？")):
        return False
    return _CLOSES.search(sentence) is not None
