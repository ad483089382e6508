"""From sentences to links: which references a comment ties to its issue, how, and how surely.

A marker and its target may stand in neighbouring sentences ("Closing as a duplicate. See #5.").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from angle_data.gis.comments.context import (
    DENIED_NEXT,
    TAKEN_BACK,
    asks,
    closes,
    is_conditional,
    is_doubted,
    is_negated,
    is_question,
)
from angle_data.gis.comments.corrections import corrections, outlived, withdraws
from angle_data.gis.comments.needed import possible_phrases
from angle_data.gis.comments.phrases import Phrase
from angle_data.gis.comments.references import REF, Reference
from angle_data.gis.comments.sentences import Sentence
from angle_data.gis.comments.subjects import about_this, speaks_of_another
from angle_data.gis.comments.vocabulary import BOUND, UNBOUND, Direction, expand

Certainty = Literal["explicit", "tentative", "denied", "others"]


@dataclass(frozen=True, slots=True)
class MarkerLink:
    """A statement that the commented issue and another are duplicates, or (`denied`) that they are none.

    `repo` and `number` name the other issue, `repo` as written (GitHub compares names without case).
    `certainty` is `tentative` for guesses, questions and conditions, and `others` where the duplicate is
    neither of the two but a third issue: nothing follows for the commented one. `kind` is that of the phrase,
    or `outlived` (fixed, and this issue still happens; always a denial), with `:pull` where the target
    was named
    as a pull request. `span` is where in the comment the phrase and its target stand, end exclusive.
    """

    repo: str
    number: int
    direction: Direction
    certainty: Certainty
    kind: str
    span: tuple[int, int]

    @property
    def family(self) -> str:
        """The kind without its suffix."""
        return self.kind.partition(":")[0]

    @property
    def target(self) -> tuple[str, int]:
        """The other issue under which links compare equal: (`repo` in lower case, number)."""
        return self.repo.casefold(), self.number


MOST_REFERENCES = 25
"""A sentence with more references is a list of changes, not a statement about an issue."""

_MOST_MARKERS = 4
_SETTLED = ("explicit", "others")
# Finds: "the "
_THE = expand(r"\b(?:the|any|no|some) $")
# Finds: "fixed by "
_NOT_TARGET = expand(
    r"\b(?:fix\w*|solv\w*|introduc\w*|caus(?:ed|es|ing)|(?<!same )regress\w*|revert\w*|block\w*|depend\w*|"
    r"workaround|unlike|(?<!no )differ\w*|unrelated|prs?|pull requests?|merg\w*(?![^{REF}]* (?:with|w/|"
    r"into)\b)|bisect\w*|see also|also see|also relevant|related|patch\w*|implement\w*|not(?! the (?:first|"
    r"only))|came with|broke\b|ship\w*|release\w*|go out with|land\w*)\b[^{REF}]{0,45}$|\b(?:since|after|"
    r"before|while|when)\b[^{REF}]{0,12}$|\b(?:like|similar to|linked to)\s*$"
)
# Finds: " fixes this"
_FIX_FOLLOWS = expand(
    r"[)\]]? (?:(?:has|already|now|just|then|finally) )*(?:fix\w*|should fix|will fix|introduced|caused|"
    r"broke|has (?:the|an?) (?:patch|fix|workaround)|changed|removed|made|updated|blocks?|breaks?|solves?|"
    r"resolves?|adds?|added|implements?|landed|released|shipped|(?:was |got )?merged(?! (?:in)?to))\b"
)
# Finds: "92 %"
_PERCENT = expand(r"\b\d{1,3}(?:\.\d+)? ?%|\b[01]\.\d{2,}\b|\bsimilarity\b|\bscore\b")
# Finds: "I am seeing the "
_FIRST_PERSON = expand(
    r"\b(?:i(?:'m| am|'ve| have)?|we(?:'re| are|'ve| have)?|me|us|people|users?)\b[^,;:]{0,30}\b(?:have|"
    r"having|got|get|getting|see|seeing|experienc\w+|fac(?:e|ing)|encounter\w*|hit|hitting|run|ran|running|"
    r"suffer\w*|observ\w+|notic\w+)\b[^,;:]{0,25}$|^(?:also |still )?(?:having|getting|seeing|experiencing|"
    r"facing|encountering|hitting|got|get|have|running into|ran into)\b[^,;:]{0,30}$|^\+1\b[^\w]*$"
)
# Finds: "I wonder why "
_WHY = expand(r"\b(?:why|how)\b(?! about)")
# Where words only look like a phrase of a kind: left § phrase § right.
# Finds: "the parser of §#5§'s branch"
_POSSESSED = re.compile(r"§[^§]*§'s? (?!issue|bug|ticket|discussion)\w")
# Finds: "the bug §tracked in #5§ crashes"
_ATTRIBUTE = expand(r"\b(?:the|any|every|each) (?:\w+ )?{ISSUE} §[^§]*§[^.,)]")
# Finds: "the first part is a §duplicate of #5§"
_OTHER_DUPLICATE = expand(
    r"(?:\bits|{REF}'s|\b(?:every|each|any|no other|other|some)) §|\beverything (?:as )?(?:an? )?§|\b(?:to|"
    r"we|you|i|should|can|could|will|would|must|please) §(?:duplicate|dupe?) {REF}|^(?!.*\b(?:are|be|as|both|"
    r"were|is|this|all|one of (?:the |its |our )?(?:\w+ )?) ?§).+§(?:duplicates|dupes|dups) of|"
    r"^(?![^§]*\bthis\b)[^§]*\b(?:(?<!in )part|half|portion|(?:first|second|third|last)\b(?! §)|latter|"
    r"former|remaining|rest|point|item|question|step|option|case \d|problem \d|bug \d|number \d|your other|"
    r"the other|(?:list|file|window|row|entry|line|value|section|text|test|function|class|method|array|key|"
    r"object)s?)\b[^,;:§]{0,40}§"
)
# Finds: "§similar to #5§ should be fixed"
_NO_STATEMENT = {
    "same": re.compile(r"§ (?:was|did|does|had|were)\b"),
    "reported": re.compile(r"§ that "),
    "similar": re.compile(r"§ (?:is|was|has|fix\w*|adds?|should|will|would|can|does|superseded?s?)\b"),
}
# Finds: ", and so is this"
_SO_IS_THIS = expand(
    r"[^.;{REF}]{0,20}\b(?:(?:so|as) (?:is|does|was|are)|the same (?:with|for|to|goes for|applies to)) {THIS}"
)
# Finds: "I close that one as a duplicate of this"
_THE_LAST_ONE = expand(
    r"^[^{REF}?]*\b(?:clos|mark|resolv|flag)\w* (?:that(?: one)?|the other(?: one)?|the \w+er one|those|them|"
    r"both) (?:as (?:an? |the )?{D}|in favou?r of) ?(?:of )?{THIS}(?![\w'])[^{REF}?]*$"
)
# Finds: "duplicate #5"
_WITHOUT_PREPOSITION = expand(r"{D}(?!(?: {ISSUE})?{PREP})")
# Finds: "duplicate of #5"
_WORD = expand(r"{D}")
# Finds: "closing as a duplicate of that"
_POINTS_BACK = expand(r"{PREP}(?:that(?: one| {ISSUE})?|it|the latter)(?![\w'])")
# Finds: "Закрыт как "
_AS = expand(r"\b(?:as|als|comme|como|come|как|як|jako|som)(?: (?:an?|ein|un|une|uma?|et|en))? $")
# Finds: "fixed; "
_CLAUSE_END = re.compile(r"[;(]|, (?!and\b|or\b|#)")
# Finds: "this exact problem is described in #5"
_SAME_MATTER = expand(
    r"\b(?:same|exact(?:ly)?|identical|subset|special case|instance|covers?|covered|tracked|reported|"
    r"requested|describe[sd]?|older|newer|earlier|original|canonical|instead|in one (?:place|issue)|where "
    r"the|turned out|exists?|asks for|also|already|again|before|wants?|follow(?!-)|missed|n't (?:see|find|"
    r"notice|spot)|should have|(?:right|better) place|part of|part and parcel|please (?:add|leave|comment|"
    r"post|report)|went with|going with)\b"
)


def find_hits(sentences: Sequence[Sentence], *, bot: bool = False) -> list[MarkerLink]:
    """Return every hit of a comment in reading order; `bot` says that a program wrote it."""
    if not any(REF in sentence.text for sentence in sentences):
        return []
    closing = None if bot else any(closes(sentence.text) for sentence in sentences)
    hits: list[list[MarkerLink]] = []
    for index, sentence in enumerate(sentences):
        found: list[MarkerLink] = []
        # What a program scores are possible duplicates, which decide nothing.
        scored = bot and _PERCENT.search(sentence.text)
        if REF in sentence.text and not scored and len(sentence.refs) <= MOST_REFERENCES:
            before = sentences[index - 1].text if index else ""
            following = sentences[index + 1].text if index + 1 < len(sentences) else ""
            found = _judged_again(sentence, _bound(sentence, before, closing), following)
        hits.append(found)
    for index in range(len(sentences)):
        if not any(hit.certainty in _SETTLED and hit.kind == "duplicate" for hit in hits[index]):
            hits[index] += _unbound(sentences, index, hits, closing)
    alone = len({ref.target for sentence in sentences for ref in sentence.refs}) == 1
    if closing and alone and not any(hits):
        # What a closing comment refers to, if the words around it speak of the same matter.
        for sentence, found in zip(sentences, hits, strict=True):
            same = _SAME_MATTER.search(sentence.text) and not asks(sentence.text)
            if same and not is_negated(sentence.text, asked=False):
                found += _targets(sentence, "explicit", "covered")
    _correct(sentences, hits)
    return [hit for found in hits for hit in found]


def _judged_again(sentence: Sentence, found: list[MarkerLink], following: str) -> list[MarkerLink]:
    """Deny what the sentence itself withdraws or the one that follows denies; or turn it round."""
    survivor = outlived(sentence)
    if _THE_LAST_ONE.search(following):
        last = _targets(sentence, "explicit")
        return [replace(hit, direction="other_is_dup_of_this") for hit in last]
    if withdraws(sentence.text):
        found = found or [_link(ref, "denied") for ref in sentence.refs]
    elif survivor:
        return [*found, _link(survivor, "denied", "outlived")]
    elif not DENIED_NEXT.match(following):
        return found
    return [hit if hit.certainty == "others" else replace(hit, certainty="denied") for hit in found]


def _correct(sentences: Sequence[Sentence], hits: list[list[MarkerLink]]) -> None:
    """Put a corrected target in the place of the last one stated before it."""
    for index, ref in corrections(sentences):
        before = (hit for found in hits[: index + 1] for hit in found if hit.span[0] < ref.start)
        stated = [hit for hit in before if hit.target != ref.target]
        if stated and stated[-1].certainty not in ("denied", "others"):
            old = stated[-1]
            for found in hits:
                found[:] = [hit for hit in found if hit.target not in (old.target, ref.target)]
            span = old.span[0], max(old.span[1], ref.end)
            hits[index].append(replace(old, repo=ref.repo, number=ref.number, span=span))


def _bound(sentence: Sentence, before: str, closing: bool | None) -> list[MarkerLink]:
    """Hits of phrases that name their target in the same sentence; `before` is the sentence before it."""
    hits: list[MarkerLink] = []
    for phrase in possible_phrases(sentence.text):
        for match in phrase.pattern.finditer(sentence.text):
            targets = sentence.refs_between(*match.span("r"))
            verdict = _judge(phrase, sentence, match, before, closing)
            if verdict is not None:
                first, last = sentence.places[match.start()], targets[-1].end
                for ref in targets:
                    link, span = _link(ref, verdict, phrase.kind), (min(first, ref.start), last)
                    hits.append(replace(link, direction=phrase.direction, span=span))
    others = {hit.target for hit in hits if hit.certainty == "others" and hit.family == "duplicate"}
    return [
        replace(hit, certainty="others")
        if hit.target in others and hit.direction == "this_is_dup_of"
        else hit
        for hit in hits
    ]


def _link(ref: Reference, certainty: Certainty, kind: str = "duplicate") -> MarkerLink:
    kind = f"{kind}:pull" if ref.pull else kind
    return MarkerLink(ref.repo, ref.number, "this_is_dup_of", certainty, kind, (ref.start, ref.end))


def _judge(
    phrase: Phrase, sentence: Sentence, match: re.Match[str], before: str, closing: bool | None
) -> Certainty | None:
    """Decide on one match; `before` is the sentence before it. None: it does not tie anything."""
    text = sentence.text
    start, end = match.span()
    left, right = text[:start], text[end:]
    asked = is_question(text, end)
    if _is_no_statement(phrase, match, left, right, item=sentence.item) or (asked and _WHY.search(left)):
        return None
    if phrase.direction == "this_is_dup_of":
        # "the duplicate of #5 is #6"
        names = left.rstrip().lower().endswith("the") and right.startswith((f" is {REF}", f" was {REF}"))
        opened = sentence.head is not None
        another = speaks_of_another(left, bound=True, before=before, opened=opened)
        if (names or another) and not _SO_IS_THIS.match(right):
            return "others"
    if any(is_negated(before, asked=asked) for before in (left, text[: match.start("r")])):
        return None if is_conditional(left) or asked else "denied"
    if is_negated(text[match.end("r") : end], asked=asked) or TAKEN_BACK.search(f"{left}§{right}"):
        return "denied"
    named = phrase.subject != "this" or match[0].split()[1:2] in (["this"], ["it"]) or about_this(left)
    if not named and not (closing and closes(right)):
        return None
    if not phrase.certain or asked:
        return "tentative"
    if phrase.kind == "same" and not closing and (_FIRST_PERSON.search(left) or "cause as" in match[0]):
        return "tentative"
    return "tentative" if is_doubted(text, start, end, closing=closing) else "explicit"


def _is_no_statement(phrase: Phrase, match: re.Match[str], left: str, right: str, *, item: bool) -> bool:
    """Whether the words only look like the phrase ("the parser of #5's branch", "to duplicate #5")."""
    around = f"{left}§{match[0]}§{right}"
    if _POSSESSED.search(around) or (phrase.subject == "this" and _ATTRIBUTE.search(around)):
        return True
    if phrase.kind in _NO_STATEMENT:
        return _NO_STATEMENT[phrase.kind].search(around) is not None
    if phrase.kind != "duplicate" or phrase.direction != "this_is_dup_of":
        return False
    # Without a preposition the word may be a verb or an adjective; items of a list tell what was done.
    doubtful = _WITHOUT_PREPOSITION.match(match[0]) or (item and _WORD.match(match[0]))
    unsaid = doubtful and not (about_this(left) or _AS.search(left))
    return bool(unsaid) or _OTHER_DUPLICATE.search(around) is not None


def _unbound(
    sentences: Sequence[Sentence], index: int, hits: Sequence[Sequence[MarkerLink]], closing: bool | None
) -> list[MarkerLink]:
    """Find the target of a marker that stands alone: in its sentence, or in one of the two on either side."""
    sentence = sentences[index]
    if len(sentence.refs) > MOST_REFERENCES:
        return []
    near = (index + 1, index - 1, index + 2, index - 2)
    around = [(place, 0, None) for place in near if 0 <= place < len(sentences)]
    for match in islice(UNBOUND.finditer(sentence.text), _MOST_MARKERS):
        if BOUND.match(sentence.text, match.start()):
            continue  # has its target beside it and was judged with it
        verdict = _judge_unbound(sentence, match, closing)
        if verdict is None:
            continue
        if _POINTS_BACK.match(sentence.text, match.end()):
            return [_link(ref, verdict) for ref in _last_before(sentences, index, match.start())]
        for place, low, high in ((index, match.end(), None), (index, 0, match.start()), *around):
            if verdict == "denied" and (place != index or hits[index]):
                break
            found = _targets(sentences[place], verdict, low=low, high=high)
            if not found:
                continue
            while sentences[place].item and place + 1 < len(sentences) and sentences[place + 1].item:
                place += 1  # of a list, all items that follow
                found += _targets(sentences[place], verdict)
            first, last = sentence.places[match.start()], sentence.places[match.end() - 1] + 1
            return [replace(h, span=(min(first, h.span[0]), max(last, h.span[1]))) for h in found]
    return []


def _last_before(sentences: Sequence[Sentence], index: int, end: int) -> tuple[Reference, ...]:
    """The last reference before a place in a sentence or in one of the two before it, if there is one."""
    refs = sentences[index].refs_between(0, end)
    for sentence in reversed(sentences[max(0, index - 2) : index]):
        refs = refs or sentence.refs
    return refs[-1:]


def _judge_unbound(sentence: Sentence, match: re.Match[str], closing: bool | None) -> Certainty | None:
    text = sentence.text
    left = text[: match.start()]
    asked = is_question(text, match.end())
    several = match[0].lower().endswith(("s", "ing")) and not text.endswith(":")
    if several or speaks_of_another(left, bound=False, opened=sentence.head is not None):
        return None
    if is_negated(left, asked=asked):
        return None if asked or is_conditional(left) else "denied"
    if TAKEN_BACK.search(f"§{text[match.end() :]}") or (asked and _WHY.search(left)):
        return None
    if _THE.search(left) or not about_this(left):
        return None
    return "tentative" if asked or is_doubted(text, *match.span(), closing=closing) else "explicit"


def _targets(
    sentence: Sentence, verdict: Certainty, kind: str = "duplicate", low: int = 0, high: int | None = None
) -> list[MarkerLink]:
    """References between `low` and `high` of a sentence that can be meant by a marker elsewhere."""
    text = sentence.text
    found: list[MarkerLink] = []
    for position in (place for place, sign in enumerate(text[low:high], low) if sign == REF):
        before = _CLAUSE_END.split(text[low if low < position else 0 : position])[-1]
        other = _NOT_TARGET.search(before) or _FIX_FOLLOWS.match(text, position + 1)
        if verdict == "denied" or not other:
            found.append(_link(sentence.refs_between(position, position + 1)[0], verdict, kind))
    return found
