"""What the reply to one question says: the links that it confirms, what it leaves open, what is refused."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from angle_data.gis.ask.questions import Question
from angle_data.gis.comments.references import find_references
from angle_data.gis.comments.vocabulary import Direction
from angle_data.labelling.replies.chatter import is_refusal
from angle_data.labelling.replies.structured import values_in

CONFIRMS: dict[str, Direction] = {
    "duplicate_of": "this_is_dup_of",
    "original_of": "other_is_dup_of_this",
}
"""Relations that confirm a link -> its direction."""
RELATIONS = (*CONFIRMS, "unsure", "none")

REASONS: dict[str, str] = {
    "blocked": "a filter of the service stopped the reply",
    "contradiction": "the reply gives one issue two relations",
    "itself": "the reply names the issue itself",
    "no_answer": "the reply holds no JSON object with a list of links",
    "not_named": "the reply names an issue that neither the comment nor its thread names",
    "prompt_cut": "the server read only part of the prompt",
    "refusal": "the annotator declined",
    "refused_by_server": "no reply: whoever was asked refuses this request for good, and answers others",
    "request_failed": "no reply: the request failed and is asked again in the next run",
    "truncated": "the reply was cut off",
    "unknown_relation": "the relation is none of those asked for",
}
"""Reason code -> meaning, for everything in rejected.jsonl."""


@dataclass
class Judgement:
    """What a reply says: `confirmed` (repository, number, direction), `unsure` and `denied` (targets).

    `refused` are reasons (see `REASONS`) with what they are about. A judgement with nothing but refusals is
    of no use; an empty one denies all.
    """

    confirmed: list[tuple[str, int, Direction]] = field(default_factory=list)
    unsure: list[tuple[str, int]] = field(default_factory=list)
    denied: list[tuple[str, int]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_useful(self) -> bool:
        """Whether anything of the reply counts."""
        return bool(self.confirmed or self.unsure or self.denied) or not self.refused


def read_reply(text: str, finish: str, question: Question) -> Judgement:
    """Return what a reply says of the issues that the question names; never raises.

    `finish` is that of `annotators.answers`. Issues may be named as in the question, by number alone or by
    address. Of several answers in one reply the last counts.
    """
    if finish in ("cut", "failed"):
        return Judgement(refused=[("truncated", "")])
    if finish == "blocked":
        return Judgement(refused=[("blocked", "")])
    links = _links_in(text)
    if links is None:
        first = text.strip().partition("\n")[0]
        return Judgement(refused=[("refusal" if first and is_refusal(first, "") else "no_answer", "")])
    found = Judgement()
    relations: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for link in links:
        item = link if isinstance(link, dict) else {"issue": link}
        said, relation = str(item.get("issue", "")), item.get("relation")
        target = _target(said, question)
        if isinstance(target, str):
            found.refused.append((target, said))
        elif relation not in RELATIONS:
            found.refused.append(("unknown_relation", f"{said}: {relation}"))
        else:
            relations[target].add(str(relation))
    names = {(repo.casefold(), number): repo for repo, number, _ in question.named}
    for target, given in relations.items():
        repo, number = names[target], target[1]
        (relation, *more) = given
        if more:
            found.refused.append(("contradiction", f"{repo}#{number}: {', '.join(sorted(given))}"))
        elif relation in CONFIRMS:
            found.confirmed.append((repo, number, CONFIRMS[relation]))
        else:
            (found.unsure if relation == "unsure" else found.denied).append(target)
    return found


def _links_in(text: str) -> list[Any] | None:
    """Return the list of links of the last answer in a reply, None if there is no answer."""
    links: list[Any] | None = None
    with suppress(RecursionError):  # of values that hold hundreds within each other
        for _, _, value in values_in(text):
            if isinstance(value, dict) and isinstance(value.get("links"), list):
                links = value["links"]
    return links


def _target(said: str, question: Question) -> tuple[str, int] | str:
    """Return the issue that a reply names, or the reason why it is refused."""
    text = f"#{said}" if said.isdecimal() and said.isascii() else said
    targets = {one.target for one in find_references(text, question.repo, question.hosts) if one.number}
    if len(targets) != 1:
        return "not_named"
    (target,) = targets
    if target == (question.repo.casefold(), question.number):
        return "itself"
    named = {(repo.casefold(), number) for repo, number, _ in question.named}
    return target if target in named else "not_named"
