"""What the grammar is not sure about: comments of which somebody who reads should say what they state.

A quick look by words, for those that `reading` has read already; `gis --ask` sends them to an annotator.
"""

from __future__ import annotations

from typing import Literal

from angle_data.gis.comments.markdown import own_words
from angle_data.gis.comments.reading import Reading, is_program
from angle_data.gis.comments.references import find_references
from angle_data.gis.comments.vocabulary import expand

Doubt = Literal["guess", "no_link", "related"]
"""Why a comment is doubtful: it guesses; it speaks of a duplicate, and no link follows; it names an issue and
says something that may mean the same ("Superseded by", "tracked in"), and no link follows."""

# Finds: "closing as duplicate"
_DUPLICATE = expand(
    r"{D}|重複|重复|중복|\bas a (?:copy|repeat)\b|\b(?:post|submitt|fil|report|open)\w* twice\b"
)
# Finds: "superseded by"
_RELATED = expand(
    r"\b(?:the |very |exact |exactly )?same\b|\bidentical\b|\btwins?\b|\bsupersed|\bobsolet|\bfavou?r of\b|"
    r"\b(?:merg|fold|consolidat|combin|roll)\w* (?:this |it |them |these )?(?:in)?(?:to|with)\b|"
    r"\btrack(?:ed|ing|s)?\b|\bcover(?:ed|s)\b|\breplac(?:ed|es)\b|\binstead\b|\bclos(?:e|ed|ing)\b|"
    r"\balready (?:reported|known|filed|open|discussed|exists?|there|have)\b|\bcontinu\w+|"
    r"\b(?:dasselbe|derselbe|dieselbe|gleiche\w?|geschlossen|schließe|même|ferm\w+|mism[oa]|cerr\w+|"
    r"stess[oa]|chiu\w+|mesm[oa]|fech\w+|samym?|zamyk\w+|hetzelfde|dezelfde|sluit|gesloten|samma|aynı)\b|"
    r"(?:то|тот|та|такая|тако[йе]) же\b|\bзакры\w+|"
    r"同じ|同样|同樣|相同|一样|一樣|統合|合并|合併|关闭|關閉|같은|동일"
)


def doubt_of(
    body: str, said: Reading, repo: str, number: int, *, author: str | None, hosts: frozenset[str]
) -> Doubt | None:
    """Return why the comment `body` of issue `number` in `repo` is doubtful; None if it is not.

    `said` is what `read_comment` made of it. What it states outright, denies, or says of third issues is
    clear. A comment that speaks of a duplicate is doubtful also where it names none: its thread may. What a
    program guesses (`author` ends in `[bot]`) is not: it does so everywhere, and reading makes it no surer.
    """
    if is_program(author):
        return None
    if any(link.certainty == "explicit" for link in said.links) or said.denials or said.others:
        return None
    if said.links:
        return "guess"
    if said.retracts or said.denies:
        return None
    text = own_words(body)
    if _DUPLICATE.search(text):
        return "no_link"
    own = (repo.casefold(), number)
    if not any(ref.number and ref.target != own for ref in find_references(text, repo, hosts)):
        return None
    return "related" if _RELATED.search(text) else None
