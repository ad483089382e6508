"""Which candidates are usable at all, and which of these are one pair: done once, for all later steps.

There is a gate for each candidate alone, then a topic check across annotators. Neither asks a model, and
neither looks at polarity: an antonym offered as a synonym shares just as many words with its source
(benchmarks/log lists what was tried for that without a model, and failed). Refusals, chatter and cut-off
replies were rejected when the reply was parsed.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from statistics import median
from typing import NamedTuple

from angle_data.ensembling.read import Offer
from angle_data.records import QUERY, Candidate, Polarity, Rejection
from angle_data.text import normalise, words

REASONS: dict[str, str] = {
    "blank": "the candidate or its source holds no letter and no digit",
    "placeholder": "a stand-in such as '[sentence 1]' or 'Antonym 2' instead of a sentence",
    "identical": "the source itself, after normalisation",
    "wrong_script": "written mostly in another script than its source",
    "length_ratio": "less than a third or more than three times as long as its source",
    "off_topic": "shares far fewer words with source and other annotators than is usual for its annotator",
    "conflict": "the same pair was offered as synonym and as antonym, and this side did not win",
    "contradicted": "grades or annotators speak against its polarity, not clearly enough to flip it",
    "duplicate": "the same pair is kept once; this annotator counts as its supporter",
    "capped": "more candidates of this source and polarity than --max-per-source",
    "ungraded": "a pair of --pairs that no grader which is used has graded",
    "repeated": "a pair of --pairs that was given before, or that is kept as a candidate",
    "across_splits": "a pair of --pairs whose texts are in two splits",
}
"""Why any step of the ensemble drops a candidate, by reason code."""

_KIND = r"(?:synonym|synonymous|antonym|paraphrase|opposite|same-meaning|opposite-meaning|output|input|new)"
# "[sentence 1]", "Antonym 2:", "<your sentence here>", "**Synonymous sentence:**"
_PLACEHOLDER = re.compile(
    rf"[\W_]*(?:(?:the|your|an?|first|second|third|insert|{_KIND})[\W_]*)*"
    rf"(?:sentence|text|option|answer|{_KIND})s?(?:[\W_]*\d{{1,2}})?(?:[\W_]+(?:here|goes|[a-e]))*[\W_]*"
)
_SLACK = 20
_NEGATING = words("no not never none nobody nothing nor neither without cannot do does did")
_CONTRACTED = re.compile(r"\b(ca|wo|sha)?n't\b|n't\b")  # "can't", "won't", "isn't"
_TOKEN = re.compile(r"\w+")

# The cut lies in the gap between the off-topic and the good replies of the demo corpus.
_CUT = 0.36
_FUNCTION_WORDS = words(
    """
    a about after again all also always an and another any anybody anyone anything are as at be because
    been before being both but by can could did do does doing done down during each either else ever
    every everybody everyone everything few for from further get gets got had has have having he her
    here his how i if in into is it its itself just least less let made make makes many may me might
    mine more most much must my neither never no nobody none nor not nothing now of off often on once
    one only or other others our out over own per rather s same she should so some somebody someone
    something still such t than that the their them then there these they this those though through to
    too under until up upon us very was we were what when where whether which while who whom whose why
    will with within without would yes yet you your
    """
)


class Merged(NamedTuple):
    """One pair and every offer of it, by the side that was asked for; its annotators, sorted."""

    key: tuple[str, str]
    models: tuple[str, ...]
    synonyms: tuple[Offer, ...]
    antonyms: tuple[Offer, ...]

    @property
    def offers(self) -> tuple[Offer, ...]:
        """All of its offers."""
        return *self.synonyms, *self.antonyms


class Screened(NamedTuple):
    """The distinct pairs of what is usable, and the rejections of all other candidates."""

    pairs: list[Merged]
    dropped: list[Rejection]


def screen(offers: Iterable[Offer], *, topic: bool = True) -> Screened:
    """Merge the offers that pass the gate and, unless `topic` is False, are on topic; reject the others."""
    passed, dropped = [], []
    for offer in offers:
        candidate = offer.candidate
        reason = gate(offer.source.text, candidate.text, degree=candidate.degree, kind=candidate.kind)
        if reason:
            dropped.append(reject(offer.candidate, reason))
        else:
            passed.append(offer)
    lost = set(map(id, off_topic(passed) if topic else ()))
    dropped += [reject(offer.candidate, "off_topic") for offer in passed if id(offer) in lost]
    return Screened(merge(offer for offer in passed if id(offer) not in lost), dropped)


def merge(offers: Iterable[Offer]) -> list[Merged]:
    """Return the distinct pairs among `offers`, in the order of their first offer.

    Two offers are one pair when their unordered pairs of normalised texts are equal, so that a pair occurs
    once in the whole data set even if one source is another's candidate. Nothing softer counts as equal:
    texts that differ by a token may be opposites ("with quota errors" / "without quota errors").
    """
    groups: dict[tuple[str, str], tuple[list[Offer], list[Offer]]] = {}
    for offer in offers:
        groups.setdefault(offer.key, ([], []))[offer.side == "antonym"].append(offer)
    return [
        Merged(key, models_of([*synonyms, *antonyms]), tuple(synonyms), tuple(antonyms))
        for key, (synonyms, antonyms) in groups.items()
    ]


def models_of(offers: Iterable[Offer]) -> tuple[str, ...]:
    """Return the annotators of offers, sorted."""
    return tuple(sorted({offer.candidate.model for offer in offers}))


def reject(candidate: Candidate, reason: str) -> Rejection:
    """Return the record of a candidate dropped for `reason`, a key of `REASONS`."""
    return Rejection(**candidate.to_dict(), reason=reason, raw=candidate.text)


def gate(source: str, text: str, *, degree: int | None = None, kind: str | None = None) -> str | None:
    """Return the code (see `REASONS`) of the first reason to drop `text`, or None.

    A difference of up to 20 characters always passes, as the ratio says little about very short texts
    ("Deploy failed." and "The rollout went through on every host."). What was asked for at `degree` 1 or 2
    says something else than its source, and a query asks for it: both have any length.
    """
    clean, clean_source = normalise(text), normalise(source)
    if not any(map(str.isalnum, clean)) or not any(map(str.isalnum, clean_source)):
        return "blank"
    if clean == clean_source:
        return "identical"
    if _PLACEHOLDER.fullmatch(clean):
        return "placeholder"
    script, source_script = _script(clean), _script(clean_source)
    if script and source_script and script != source_script:
        return "wrong_script"
    if kind == QUERY or (degree is not None and degree <= 2):
        return None
    short, long = sorted((len(clean), len(clean_source)))
    return "length_ratio" if long - short > _SLACK and long > 3 * short else None


def is_near_copy(source: str, antonym: str) -> bool:
    """Return whether an antonym differs from its source by a negation alone or by two words, in any order.

    Such a pair teaches little but "negation means different"; it is worth a flag, not a rejection.
    """
    before, after = (
        Counter(_TOKEN.findall(_CONTRACTED.sub(" not", normalise(text)))) for text in (source, antonym)
    )
    if (before - after).total() <= 2 and (after - before).total() <= 2:
        return True
    said, denied = (
        Counter(fold(token) for token in tokens.elements() if token not in _NEGATING)
        for tokens in (before, after)
    )
    return said == denied


@lru_cache(1 << 16)
def fold(word: str) -> str:
    """Return a case-folded word without its English inflection: "stops", "stopping", "stopped" give "stop".

    The result need not be a word ("cache" and "caches" give "cach").
    """
    for suffix in ("ing", "ed", "es", "s"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] in ("e", word[-2]):
        word = word[:-1]
    return word


def content_words(text: str) -> frozenset[str]:
    """Return the distinct words of `text` that are no English function words, without inflection."""
    return frozenset(fold(word) for word in words(text) if word not in _FUNCTION_WORDS)


def off_topic(passed: Iterable[Offer]) -> list[Offer]:
    """Return the offers of replies that have lost their subject, in order.

    A reply is all candidates of one annotator for one source and polarity, or at all degrees. It is judged
    only if another annotator offered something for that source, and by its best candidate: the share of its
    content words that occur in the source or in what other annotators offered for it. How much is normal
    differs, so a reply is off topic below 0.36 times the median of its annotator and polarity. Sentences of
    degree 1 are to share hardly a word: they neither count nor tell what the subject is, and go with the rest
    of their reply.
    """
    by_source: dict[str, list[Offer]] = {}
    for offer in passed:
        by_source.setdefault(offer.source.key, []).append(offer)
    shares: dict[tuple[str, Polarity | None], list[float]] = {}
    judged: list[tuple[float, list[Offer]]] = []
    for group in by_source.values():
        replies: dict[tuple[str, Polarity | None], list[tuple[Offer, frozenset[str]]]] = {}
        for offer in group:
            bag = frozenset[str]() if offer.candidate.degree == 1 else content_words(offer.candidate.text)
            replies.setdefault((offer.candidate.model, offer.candidate.polarity), []).append((offer, bag))
        known = content_words(group[0].source.text)
        for kind, reply in replies.items():
            others = [bag for other, rows in replies.items() if other[0] != kind[0] for _, bag in rows]
            reference = known.union(*others)
            found = [
                len(bag & reference) / len(bag) if bag else 1.0
                for offer, bag in reply
                if offer.candidate.degree != 1
            ]
            if others and found:
                shares.setdefault(kind, []).extend(found)
                judged.append((max(found), [offer for offer, _ in reply]))
    usual = {kind: median(values) for kind, values in shares.items()}
    return [
        offer
        for best, reply in judged
        for offer in reply
        if best < _CUT * usual[offer.candidate.model, offer.candidate.polarity]
    ]


def _script(text: str) -> str:
    """Return the script of most letters by the first word of their Unicode names (LATIN, CJK), "" if none."""
    if text.isascii():  # nearly every text of most corpora; Unicode names are slow to look up
        return "LATIN" if any(char.isalpha() for char in text) else ""
    counts = Counter(unicodedata.name(char, "UNKNOWN").split()[0] for char in text if char.isalpha())
    return max(sorted(counts), key=lambda name: counts[name]) if counts else ""
