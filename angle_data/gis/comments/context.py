"""What surrounds a phrase: whether it is denied, doubted or asked; whether the writer closes the issue.

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
# What takes a phrase (§) back: an objection after it, or the remark that the mark was a mistake.
# Finds: "it is a §, but that one is different"
TAKEN_BACK = expand(
    r"§(?:,? not (?:this|here|mine)\b|[^.;{REF}]{0,30}?\b(?:but|however|although|though|yet|while|"
    r"whereas|except|which|that)\b[^.;]{0,60}?(?:\b(?:different|separate|unrelated|distinct|nothing to "
    r"do|another (?:issue|problem|bug)|wrong|nonsense|incorrect|mistaken?|an? error|disagree|(?:do not|"
    r"don't) (?:think|believe|agree))\b|\b(?:it|this|that|they|which|mine)(?:'s| is| are| was| does| "
    r"do)?(?: \w+)?{NO_SUCH}|\b(?:that|it|that one)(?:'s| is) (?:about|for|only)\b|{REF} (?:is|was) "
    r"(?:about|for|only|on)\b| no[.!]*$)|[^.;,]{0,12}\b(?:is|was) (?:wrong|incorrect|not (?:correct|"
    r"right|true|accurate)|a mistake|false|nonsense)\b|,? (?:it|this|they)(?:'s| is| are)?(?: "
    r"\w+)?{NO_SUCH}|.{0,8}?(?:ではあり?ません|ではな|じゃな|[이은는] ?아[닙니닌]|아님|않|\bdeğil))|"
    r"\b(?:mark|"
    r"clos|flag|tag|label|resolv|treat|identif|consider|detect)\w*\b[^,;:]{0,30}§[)\"']? (?:(?:by|in) "
    r"(?:a |an |the )?)?(?:mistake|accident|error|mistakenly|accidentally|erroneously|incorrectly|"
    r"wrongly)\b|\b(?:first|initially|originally)\b[^.;]{0,40}\b(?:thought|assumed|believed|looked|took|"
    r"seemed)\b[^.;]{0,30}§[^.;]{0,12},? (?:but|however)\b|§[^.;]{0,12}, (?:those|these|they|the "
    r"two)\b[^.;]{0,20}\b(?:different|separate|unrelated|distinct)"
)
# A sentence that denies what the one before it said.
# Finds: "It isn't."
DENIED_NEXT = expand(
    r"\W*+(?:(?:but|and|well|which|however)[, ]++){0,4}(?:(?:it|this|that|mine)(?:'s| is| was| does| do)?(?: "
    r"\w+)?(?:n't| not)(?: (?:one|so|true|correct|right|the case|a duplicate|the same|a dup))?\W*$|(?:that|"
    r"this|it)(?:'s| is| was) (?:\w+ )?(?:wrong|incorrect|false|nonsense|a mistake|my mistake|an error|"
    r"premature|hasty|not true)(?=[.,;!]|$)|i (?:disagree|doubt|don't (?:agree|think so))\b|not (?:true|"
    r"really)\b|no(?:[,.!]|$| it| that| this)(?! (?:problem|worries|wait))|(?!(?:should|when)\b|"
    r".*\b(?:(?<!even )if|unless|otherwise|in case|free to|welcome to|happy to|hesitate|let (?:me|us) know|"
    r"no need|(?:you|we|it|this) (?:can|may)|(?:do not|don't) re-?open)\b)(?:[^.;]{0,30}\b)?re-?open(?:ed|"
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
    r"[)\"'\s]*+[,\s(–—-]*+(?:"
    r"i think|i guess|i believe|i'd say|i would say|i suppose|i assume|probably|maybe|"
    r"perhaps|possibly|presumably|it seems|seemingly|apparently|afaict|afaik|iirc|imo|imho|likely|"
    r"most likely|or so|or "
    r"something|but (?:i'm )?not sure|not sure|perhaps not|unless\b|or am i|if (?:the|it|this|that|i)\b|in "
    r"spirit|to some (?:extent|degree)|je crois|je pense|creo|acho|glaube ich|denke ich|vermutlich|похоже|"
    r"кажется)\b|[)\"'\s]*\(\?\)|.{0,12}(?:ようです|みたい|と思|でしょう|듯|olabilir)|[)\"'\s]*\d{1,3} ?%|"
    r"[)\"'\s]*,? "
    r"but (?:for|on)(?! (?:now|the other hand)\b) \w"
)
# Finds: "if"
_IF = expand(
    r"\b(?:if(?! you (?:look|check|search|read|scroll|compare|see|take|follow))|unless|whether|in case|"
    r"when(?:ever)?|assuming|^to mark|how to|for example|for instance|such as|e\.g\.?|i\.e\.|example|falls|"
    r"wenn|ob|si|se|если|ли)\b|如果|もし"
)
# Finds: ", did you search?"
_INTERROGATIVE = expand(
    r"(?<![,;:–—(-])[,;:–—(-]+ ?"
    r"(?:and |but |so |or )?(?:did|do|does|can|could|would|will|have|has|are|is|was|were|what|"
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


def is_conditional(left: str) -> bool:
    """Whether the clause before a phrase sets a condition, or gives an example ("if this is a …")."""
    return _IF.search(clause_of(left)) is not None


def is_doubted(sentence: str, start: int, end: int, *, closing: bool | None) -> bool:
    """Whether the writer doubts the phrase at `sentence[start:end]`: in its clause, before or after it.

    A weak doubt ("I think") does not count where the writer closes the issue; a strong one ("maybe") does,
    and so does hearsay, unless a program speaks (`closing` None).
    """
    left, right = sentence[:start], sentence[end:]
    clause = clause_of(left)
    near = clause + sentence[start:end]
    opening = left[: len(left) - len(clause)].strip(" ,:;-–—(")
    joined = opening.lower().startswith("as ") or opening.endswith(
        ("but", "so", "because", "since", "although", "though", "however")
    )
    short = opening if len(opening.split()) <= 4 and not joined else ""
    told = closing is not None and (_HEARSAY.search(clause) or _BY_PROGRAM.match(right))
    if told or any(_STRONG.search(said) for said in (near, short)) or _MISTAKEN.search(sentence):
        return True
    if _IF.search(clause) or _IF.search(short):
        return True
    return not closing and bool(_WEAK.search(near) or _TAIL_DOUBT.match(right) or _WEAK.search(short))


def is_question(sentence: str, end: int) -> bool:
    """Whether a sentence asks for the phrase that ends at `end`, and not for something after it."""
    right = sentence[end:]
    by_mark = asks(sentence) and _INTERROGATIVE.search(right) is None
    return by_mark or _ASKS_CJK.search(right) is not None


def closes(sentence: str) -> bool:
    """Whether the writer closes the issue in this sentence, not merely talks of closing."""
    return not asks(sentence) and _CLOSES.search(sentence) is not None


def asks(sentence: str) -> bool:
    """Whether a sentence ends in a question mark."""
    return sentence.rstrip(" \"')").endswith(("?", "？"))
