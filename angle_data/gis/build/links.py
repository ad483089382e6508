"""Judges every statement: accepted (see `facts.Rank`), tentative or rejected, with the reason.

A link leads from a duplicate to the issue it duplicates, both ends resolved: renamed repositories by id,
transferred issues to where they went.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from angle_data.gis.build.clean import Texts, is_dummy
from angle_data.gis.build.evidence import Node, Scan, Statement, Status
from angle_data.gis.build.facts import Rank

REASONS: dict[str, str] = {
    "guess": "a guess or a question",
    "unbacked": "stated outright by someone without write access, and nothing backs it",
    "disputed": "somebody objected",
    "annotator_denied": "the annotator that was asked (--ask) finds nothing of the kind in the comment",
    "retracted": "the writer or somebody with write access took it back",
    "unmarked": "the mark was removed later",
    "reopened": "the duplicate was opened again afterwards and stands open",
    "completed": "the duplicate was opened again afterwards and solved for itself",
    "unknown_repository": "the other issue is in a repository that was not crawled or is left out",
    "other_repository": "the other issue is in another repository",
    "missing": "the other issue is not in the store",
    "outside": "the other issue was not opened in the given days",
    "gone": "one of the issues was deleted",
    "moved_away": "one of the issues was transferred to where the crawl did not follow",
    "itself": "both ends are the same issue",
    "pull": "one of the ends is a pull request",
    "later": "the other issue was opened after the statement",
    "empty": "nothing is left of one of the texts after cleaning",
    "dummy": "one of the texts is a test or a placeholder",
}
"""Why a link is not accepted -> what that means."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two issues and what is known of them; `label` is 1 for duplicates.

    `kind` is `duplicate`, `random`, `hard` or `explicit_non_duplicate`. `cluster` is the leader of the
    cluster of the positive pair, for a negative pair that of its first issue if it has one.
    """

    one: Node
    other: Node
    label: int
    kind: str
    evidence: str
    evidence_url: str
    cluster: Node


def judge_links(scan: Scan, texts: Texts, *, cross_repo: bool = False) -> list[Statement]:
    """Return every statement, judged, in their order; `cross_repo` allows ends in two repositories."""
    judged: list[Statement] = []
    for said in scan.statements:
        here, lost = follow_moves(scan, scan.repos[said.here[0]].name, said.here[1])
        other, lost_too = follow_moves(scan, said.target_repo, said.target_number)
        if here is None or other is None:
            reason = said.withdrawn or lost or lost_too
            judged.append(replace(said, status="rejected", reason=reason))
            continue
        ends = (here, other) if said.direction == "this_is_dup_of" else (other, here)
        reason = said.withdrawn or _fault(scan, said, (here, other), texts, cross_repo=cross_repo)
        status: Status = "rejected" if reason else "tentative"
        if not reason and said.rank is Rank.TENTATIVE:
            reason = "guess"
        elif not reason and said.disputed and said.rank is not Rank.EVENT:
            reason = "disputed"
        elif not reason and said.rank is Rank.STATED:
            reason = "unbacked"
        judged.append(replace(said, status=status if reason else "accepted", reason=reason, ends=ends))
    return judged


def denied_pairs(scan: Scan) -> tuple[list[Pair], Counter[str]]:
    """Return the pairs said to be no duplicates, each once, and how many denials make none, by reason."""
    found: dict[tuple[Node, Node], Pair] = {}
    dropped: Counter[str] = Counter()
    for denied in sorted(scan.denied, key=lambda said: (said.created_at, said.url, said.target_number)):
        here, (other, reason) = denied.here, follow_moves(scan, denied.target_repo, denied.target_number)
        if denied.kind == "outlived":
            dropped["outlived"] += 1
        elif other is None or other == here:
            dropped[reason or "itself"] += 1
        elif unordered(here, other) in found:
            dropped["repeated"] += 1
        elif other[0] != here[0]:
            dropped["other_repository"] += 1
        elif scan.heads[here].gone:
            dropped["gone"] += 1
        elif scan.heads[other].is_pull or scan.heads[here].is_pull:
            dropped["pull"] += 1
        else:
            pair = Pair(here, other, 0, "explicit_non_duplicate", "denied", denied.url, here)
            found[unordered(here, other)] = pair
    return list(found.values()), dropped


def unordered(one: Node, other: Node) -> tuple[Node, Node]:
    """Return the two issues in their order, whichever came first."""
    return (one, other) if one <= other else (other, one)


def follow_moves(scan: Scan, repo: str, number: int) -> tuple[Node | None, str]:
    """Return the issue or pull request that a name and number lead to, or why there is none (a reason)."""
    repo_id = scan.names.get(repo.lower())
    if repo_id is None:
        return None, "unknown_repository"
    node = (repo_id, number)
    seen = set[Node]()
    while (head := scan.heads.get(node)) is not None:
        if head.gone is None:
            return node, ""
        kind, _, target = head.gone.partition(":")
        name, _, moved = target.partition("#")
        seen.add(node)
        node = (scan.names.get(name.lower(), -1), int(moved) if moved.isdigit() else 0)
        if kind != "transferred":
            return None, "gone"
        if node in scan.outside:
            return None, "outside"
        if node in seen or node not in scan.heads:
            return None, "moved_away"
    return None, "outside" if node in scan.outside else "missing"


def _fault(scan: Scan, said: Statement, ends: tuple[Node, Node], texts: Texts, *, cross_repo: bool) -> str:
    """The first reason against a link between the commented issue and the other, or ""."""
    here, other = ends
    if here == other:
        return "itself"
    if here[0] != other[0] and not cross_repo:
        return "other_repository"
    if scan.heads[here].is_pull or scan.heads[other].is_pull:
        return "pull"
    # An issue's own text may have been edited at any time.
    if said.source != "body" and scan.heads[other].created_at > said.created_at:
        return "later"
    cleaned = [texts.get(node) for node in ends]
    if not all(cleaned):
        return "empty"
    return "dummy" if any(map(is_dummy, cleaned)) else ""
