"""Recognises the lines of a reply that are not sentences: headings, closing remarks, refusals, prompt echoes.

Domain text is full of colons, imperatives and apologies, so every rule needs words about the *task*
(sentence, synonym, generate, assist …), and most are off when the line shares content with the source.
"""

from __future__ import annotations

import re

from angle_data.records import Polarity
from angle_data.text import words

_OPENINGS = words("sure certainly absolutely okay ok yes alright great gladly understood")
_OPENING_PAIRS = (
    ["of", "course"], ["here", "you"], ["got", "it"], ["let", "me"], ["no", "problem"], ["as", "requested"],
)  # fmt: skip
_OFFERING = words("help assist happy glad")
_TASK = words(
    """
    sentence sentences synonym synonyms synonymous antonym antonyms antonymous opposite opposites
    meaning meanings paraphrase paraphrases paraphrased paraphrasing rephrase rephrased rephrasing rephrasings
    reworded rewordings rewrites rewritten versions variations alternatives ways output outputs input answer
    answers result results response attempt examples generated generate generating
    """
)
_GLUE_WORDS = """a an the of for to in with and or as by on at be am is are was can could do does that this
    these those it its they you your i i'm i'd i'll i've me my here here's below above following follows given
    provided requested go glad happy help came come up have has one two three four five six some possible more
    other different another each both course thing no problem same similar mean means say saying express
    expressing convey conveying version variation alternative way option options text original system highly
    smart single what asked wanted will find got let think see about assist"""
_VOCABULARY = _OPENINGS | _TASK | frozenset(_GLUE_WORDS.split())
_TALK = _VOCABULARY | {"know", "need", "hope", "please", "note"}
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_QUOTED = re.compile(r'"[^"]{8,}"|“[^“”]{8,}”')
_POINTS = re.compile(r"\b(?:here(?:'s)?|below|following|these)\b")
_CHINESE_HEADING = re.compile(r"(?:好的|当然|没问题|以下|下面|输出|答案|同义|反义|句子).{0,60}[：:！!。]?")

_CLOSING = re.compile(
    r"""(?:i\ )?(?:sincerely\ )?hope\ (?:this|that|it|these|you)\b
    | (?:please\ )?(?:let\ me\ know|feel\ free)\b.*\b(?:you|this|these|else|me)\b
    | (?:is\ there|do\ you\ (?:need|want)|would\ you\ like)\b.*\b(?:anything\ else|more|other|me\ to|help)\b
    | if\ you(?:'d|\ would|\ need|\ have|\ want)\b.*\b(?:let\ me\ know|feel\ free|i\ can|please\ ask)\b
    | thank(?:s|\ you)\ for\ (?:using|asking|your|the\ input)\b
    | have\ a\ (?:great|nice|good|wonderful)\ day\b
    | 希望(?:这|以上|对).* | 如果(?:您|你).*(?:告诉我|需要).*""",
    re.VERBOSE,
)
_RESULT = r"\b(?:sentences?|synonyms?|antonyms?|opposites?|paraphrases?)\b"
_REMARK = re.compile(
    rf"""(?:(?:please\ )?note\b|explanation\s*:).*{_RESULT}
    | (?:these|those|both|all|the|each)\b.{{0,30}}{_RESULT}
        .*\b(?:mean|means|meaning|express|expresses|convey|conveys|say|says|are|is|have|has|keep)\b""",
    re.VERBOSE,
)

_CANNOT = (
    r"\bi\b(?:'m|\ am)?\ (?:can(?:\ ?not|'t)|won't|will\ not|unable\ to|not\ (?:able|allowed)\ to|"
    r"must\ decline|(?:do\ not|don't|not)\ (?:feel\ )?comfortable)\b"
)
_HELPING = (
    r"(?:assist|help|generate|provide|fulfil+|comply|create|produce|write|rewrite|rephrase|paraphrase|answer|"
    r"engage|continue|do\ (?:that|this|so)|(?:complete|process)\ (?:this|that|your))\b"
)
_ABOUT_TASK_REFUSAL = re.compile(
    rf"""\bas\ an?\ (?:ai|artificial\ intelligence|large\ language|language)(?:\ language)?
        (?:\ (?:model|assistant|system))?,?\ i\b
    | \bi(?:'m|\ am)\ (?:just\ |only\ )?an?\ ai\b
    | {_CANNOT}.{{0,40}}\b(?:this|that|your)\ request\b
    | {_CANNOT}\ ?(?:to\ )?generate\b.{{0,30}}\bsentences?\b
    | \bi\b.{{0,20}}\b(?:sorry|apologi[sz]e|unable|cannot|can't|not\ able)\b.*
        \b(?:(?:input|given)\ sentence|(?:synonym|antonym|synonymous|opposite)\b.{{0,20}}\bsentences?)\b
    | \bhow\ can\ i\ (?:help|assist)\ you\b | \bi\ (?:don't|do\ not)\ have\ personal\b
    | \bi\ (?:don't|do\ not)\ have\ access\ to\ real-time\ (?:data|information)\b
    | ^(?:could\ you\ |can\ you\ )?please\ provide\ .{{0,30}}\bsentence\b
    | 作为(?:一个|一名)?(?:ai|人工智能|语言模型)
    | \bals\ ki(?:-|\ )?(?:sprach)?modell\b | \bcomo\ (?:un\ )?modelo\ de\ lenguaje\b
    | \ben\ tant\ qu(?:e\ |')(?:modèle\ de\ langage|ia)\b""",
    re.VERBOSE,
)
_PLAIN_REFUSAL = re.compile(
    rf"""^(?:(?:i(?:'m|\ am)\ (?:(?:\w+\ )?sorry|afraid)|sorry|i\ apologi[sz]e|unfortunately|my\ apologies)
        \b.{{0,45}}?)?
        {_CANNOT}\ ?(?:to\ )?{_HELPING}
    | ^es\ tut\ mir\ leid.*\bich\ kann\b.*\bnicht\b | ^ich\ kann\b.*\bnicht\ helfen\b
    | ^lo\ siento.*\bno\ puedo\b | ^je\ suis\ désolée?.*\bje\ ne\ peux\ pas\b | ^desculpe.*\bnão\ posso\b
    | ^(?:抱歉|对不起|很遗憾).{{0,10}}我(?:不能|无法|不可以) | ^申し訳.*(?:できません|出来ません)
    | ^죄송.*(?:없습니다|수\ 없)""",
    re.VERBOSE,
)
_ABOUT_TASK = re.compile(
    r"""\b(?:anto|syno)nym | \bparaphras | \b(?:original|given|input|provided|revised|rewritten|reworded|
        rephrased|generated|resulting|opposite|output)\ (?:sentence|phrase|statement)
    | \b(?:this|these|each)\ sentences?\ (?:is|are|has|have|does|do|mean|convey|express|contradict|say)
    | \bgenerat\w+\b.{0,60}\bsentences?\b | \ssentence:$""",
    re.VERBOSE,
)
_TASK_STEMS = ("sentence", "phras", "statement", "onym")
# Wording that a service's own messages share, so it counts only where it is all of the reply.
_ABOUT = (
    r"(?:we|(?:this|the|your)\ (?:request|prompt|query|content|input|sentence|text)|"
    r"(?:the|this)\ (?:given|provided|requested)\ (?:\w+))"
)
_WEAK_REFUSAL = re.compile(
    rf"""^(?:(?:we(?:'re|\ are)?\ )?(?:sorry|we\ apologi[sz]e|unfortunately)\b.{{0,12}}?)?{_ABOUT}\b.{{0,10}}?
        \b(?:cannot|can't|can\ not|could\ not|couldn't|unable\ to|not\ able\ to)\ (?:be\ )?
        (?:process|fulfil|complet|compl[yi]|answer|assist|help|generat|paraphras|rephras|rewrit|handl|provid)
    | ^{_ABOUT}\b.{{0,20}}\b(?:violat\w*|goes?\ against|breach\w*)\b
        .{{0,30}}\b(?:polic(?:y|ies)|guidelines|terms)\b
    | ^(?:i(?:'m|\ am)\ sorry|sorry|unfortunately)?\W*i\ (?:need|require|lack|don't\ have|do\ not\ have)\b
        .{{0,20}}\b(?:context|information|details)\b
    | ^(?:sorry|unfortunately)?\W*(?:there\ is\ )?(?:no|not\ enough|insufficient)\b
        .{{0,30}}\b(?:context|information|synonym|antonym|opposite|paraphrase)s?\b
    | ^\W*(?:n/a|none|null|no\ (?:answer|output|response)|content\ (?:removed|filtered|blocked))\W*$""",
    re.VERBOSE,
)
_SPEAKER = re.compile(r"\b(?:i|me|my)\b|我")
_PROMPT = re.compile(
    r"""\bsentence-generating\ system\b | \byour\ job\ is\ to\ generate\b
    | ^(?:input|given|original)(?:\ sentence)?(?:\*\*)?\s*:
    | ^(?:please\ )?generate\ .{0,20}\bsentences?\b""",
    re.VERBOSE,
)


_MOST_READ = 600  # characters of a line: talk is short, and what a pattern does with a long line can be dear


def _plain(line: str) -> str:
    return line[:_MOST_READ].casefold().replace("’", "'").strip(" \t*_#>")


def _shares_content(line: str, source: str) -> bool:
    """Whether `line` talks about the source: a common word of four letters that is not task talk."""
    return any(len(word) >= 4 and word not in _TALK for word in words(line) & words(source))


def is_heading(line: str) -> bool:
    """Whether the line only announces the answer ("Sure! Here are 2 …:", "Output:", "**Antonyms**:").

    Every word must belong to the vocabulary of such announcements; a quoted copy of the source is ignored.
    """
    plain = _QUOTED.sub("", _plain(line))
    tokens = _TOKEN.findall(plain)
    if not tokens:
        return False
    if not all(token in _VOCABULARY or token.isdigit() for token in tokens):
        return _CHINESE_HEADING.fullmatch(plain) is not None
    about_task = any(token in _TASK for token in tokens)
    points = _POINTS.search(plain) is not None
    opens = tokens[0] in _OPENINGS or tokens[:2] in _OPENING_PAIRS
    if plain.endswith((":", "：")) or line.lstrip().startswith("#"):
        return about_task or points or opens
    offers = tokens[0] in ("i", "i'd", "i'm", "i'll")
    return opens or (about_task and (points or offers)) or (offers and not _OFFERING.isdisjoint(tokens))


def is_chatter(line: str, source: str) -> bool:
    """Whether the line is talk around the answer: a heading, a closing remark or a note on the sentences."""
    if is_heading(line):
        return not is_heading(source)
    plain = _plain(line).lstrip("([ ")
    return bool(_REMARK.match(plain) or _CLOSING.match(plain)) and not _shares_content(line, source)


def is_about_task(line: str, source: str) -> bool:
    """Whether the line speaks of its own making ("This sentence contradicts …", "The opposite sentence …").

    Only where the source speaks of no sentences, synonyms or the like itself.
    """
    plain = _plain(line)
    if not any(map(plain.__contains__, _TASK_STEMS)) or not _ABOUT_TASK.search(plain):
        return False
    return not any(map(source.casefold().__contains__, _TASK_STEMS))


def polarity_named(text: str) -> Polarity | None:
    """Return which polarity a heading or the name of a field speaks of; None for both and for neither."""
    plain = text.casefold()
    synonym = re.search(r"synonym|same[\W_]?meaning|paraphras|equivalent|similar", plain)
    antonym = re.search(r"antonym|opposite|contradict", plain)
    if bool(synonym) == bool(antonym):
        return None
    return "synonym" if synonym else "antonym"


def may_be_refusal(line: str, source: str) -> bool:
    """Whether the line declines in words that a sentence of the domain might have as well.

    "We are unable to process this request" is a refusal if it is all that a text about other things got.
    """
    return _WEAK_REFUSAL.search(_plain(line)) is not None and not _shares_content(line, source)


def is_refusal(line: str, source: str) -> bool:
    """Whether the line declines or asks back in the first person ("I can't assist …", "As an AI …").

    "We can't restart the node" is a domain sentence: only `I` counts, and only with a verb of helping or
    generating. When the source itself speaks as `I`, wording that is not about AI or the task counts only
    where it shares no content with the source.
    """
    plain = _plain(line)
    if _ABOUT_TASK_REFUSAL.search(plain):
        return True
    speaks = _SPEAKER.search(_plain(source)) is not None and _shares_content(line, source)
    return _PLAIN_REFUSAL.search(plain) is not None and not speaks


def is_prompt_echo(line: str) -> bool:
    """Whether the line repeats the instruction or opens another task ("Input sentence: …")."""
    return _PROMPT.search(_plain(line)) is not None
