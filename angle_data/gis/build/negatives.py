"""Negative pairs: each takes the duplicate of a positive pair and gives it another partner.

Three fifths of the partners are hard: near by words, or by what the two issues are about (labels, files and
errors named, reporter, week), of ranks 3 to 50; the first two may be duplicates that nobody marked. Of
those the one is taken whose words overlap about as much as those of the positive pair, so that counting words
does not tell the label. At most a third are drawn at random among issues of the age and labels of the
original, and up to a tenth are pairs of which somebody said that they are no duplicates. Partners that occur
in positive pairs come first, or a model could learn the issue instead of the pair.
`Candidates` decides who may be a partner in which split, `draw_negatives` chooses.
"""

from __future__ import annotations

import logging
import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import cached_property, lru_cache
from itertools import cycle, islice, zip_longest
from typing import Any

from angle_data.disjoint import DisjointSets
from angle_data.gis.build.clean import Texts, is_dummy
from angle_data.gis.build.evidence import Node, Scan, Statement
from angle_data.gis.build.links import Pair, unordered
from angle_data.gis.build.positives import Clusters
from angle_data.gis.build.splits import Places
from angle_data.gis.crawl.rows import Issue
from angle_data.similar.near import NearSets, tokens
from angle_data.similar.ranking import Index, numbered
from angle_data.text import jaccard, stable_hash, words

log = logging.getLogger("angle")

# Shares of what is wanted; the random ones are what the others lack.
_DENIED = 0.1
_HARD = 0.6
_MOST_RANDOM = 1 / 3

DENIALS = {
    "outlived": "the other issue is fixed and this one still happens, which may be the same all the same",
    "two_splits": "the two issues lie in different splits",
    "unusable": "one of the issues is gone, says nothing, or is a duplicate of something unknown",
    "tied": "the two belong to one cluster, or a statement ties them as well",
    "enough": "a tenth of the negative pairs are such already",
}
"""Why a pair said to be no duplicates makes no negative pair -> what that means."""

_FIRST_RANK = 3
_LAST_RANK = 50
_WINDOW = 60
_TOO_ALIKE = 0.6
_REUSED = 4
_COMPARED = 20
_NAMED = 20  # files, and errors, of an issue
_RECENT = 4_096
# Where a statement with this reason leads, its issue's original may be any issue.
_LOST = frozenset(
    {"unknown_repository", "other_repository", "missing", "outside", "gone", "moved_away", "pull"}
)

# What an issue is about, beside its words.
_FILE = re.compile(r"(?<![\w.])[\w-]{2,40}\.(?:[a-z]{1,4}|[A-Z]{1,4}|json|yaml|toml)(?![\w(])")
_ERROR = re.compile(r"\b(?:[A-Z]\w{0,40}(?:Error|Exception|Fault|Panic)|E[A-Z]{4,12}|SIG[A-Z]{3,5})\b")

# Of the search by words.
_WORDS_A_TEXT = 200
_WORDS_A_QUERY = 48
_TEXTS_A_WORD = 200


class Candidates:
    """The issues that negative pairs are drawn from, and in which split each may be used.

    An issue without a place takes that of the first pair it is used in, unless a near-identical text already
    has another one. `places` has the issues of positive pairs and grows; `near` indexes the texts
    of all issues that have a place. `uses` counts in how many negative pairs an issue is the partner. With
    periods, an issue fits only the split in whose period it was opened. `found` are the pairs drawn by split,
    `dropped` counts what was wanted in vain.
    """

    def __init__(
        self,
        scan: Scan,
        clusters: Clusters,
        links: Iterable[Statement],
        texts: Texts,
        near: NearSets[Node],
        places: Places,
    ) -> None:
        self.scan = scan
        self.texts = texts
        self.places = places.splits
        self.originals = clusters.originals
        self.positive = clusters.issues
        self.uses: Counter[Node] = Counter()
        self.found: defaultdict[str, list[Pair]] = defaultdict(list)
        self.dropped: Counter[str] = Counter()
        self._clusters = clusters
        self._near = near
        self._timely = places.timely
        self._words = lru_cache(_RECENT)(lambda node: words(texts.get(node)))
        # What is one problem for all that is known: clusters, and whoever has a text like one of theirs.
        self._alike: DisjointSets[Node] = DisjointSets()
        self._members: defaultdict[Node, set[Node]] = defaultdict(set)
        for edge in clusters.edges:
            self._alike.join(edge.duplicate, edge.canonical)
            self._members[clusters.every.leader(edge.canonical)] |= {edge.duplicate, edge.canonical}
        for node in self.places:
            self._alike.join(node, near.groups.leader(node))
        self._tied, self._said = set[tuple[Node, Node]](), set[tuple[Node, Node]]()
        # Said to be a duplicate of something unknown: its original may be any issue.
        self._unresolved = {node for node, head in scan.heads.items() if head.marked}
        for link in links:
            if link.ends:
                pair = unordered(*link.ends)
                self._said.add(pair)
                if link.status != "rejected":
                    self._tied.add(pair)
            if link.reason in _LOST and link.direction == "this_is_dup_of":
                self._unresolved.add(link.here)
        self._unresolved -= {edge.duplicate for edge in clusters.edges}

    def usable(self, node: Node) -> bool:
        """Whether an issue can stand in a negative pair at all."""
        return self._known(node) and not is_dummy(self.texts.get(node))

    def _known(self, node: Node) -> bool:
        head = self.scan.heads.get(node)
        return not (head is None or head.is_pull or head.gone or node in self._unresolved)

    def tied(self, one: Node, other: Node) -> bool:
        """Whether two issues are in one cluster, over copies of texts too, or tied by a link that stands."""
        return self._alike.leader(one) == self._alike.leader(other) or unordered(one, other) in self._tied

    def fits(self, one: Node, other: Node, split: str) -> bool:
        """Whether two issues may make a negative pair in `split`, where `other` then has its place."""
        said = unordered(one, other) in self._said
        if said or self.tied(one, other) or self.scan.mentioned(one, other):
            return False
        if self.uses[other] >= _REUSED or not self.usable(other):
            return False
        # With one, some of its cluster, the originals first.
        members = self._members.get(self._clusters.every.leader(one), set()) - {one}
        kin = [one, *sorted(members, key=lambda node: (node not in self.originals, node))[:_COMPARED]]
        if any(jaccard(self._words(node), self._words(other)) >= _TOO_ALIKE for node in kin):
            return False
        if other not in self.places and any(self.tied(one, copy) for copy in self._near.neighbours(other)):
            return False
        return self.place(other, split)

    def place(self, node: Node, split: str) -> bool:
        """Give `node` its place in `split`; False if it, or a near-identical text, is in another one."""
        if not self._timely(self.scan.heads[node].created_at, split):
            return False
        if node not in self.places:
            if any(self.places[other] != split for other in self._near.neighbours(node)):
                return False
            self.places[node] = split
            for other in self._near.add(node):
                self._alike.join(node, other)
        return self.places[node] == split

    def take(self, split: str, one: Node, other: Node, kind: str, evidence: str, url: str = "") -> None:
        """Note the two as a negative pair, in which `other` is the partner."""
        self.uses.update((other,))
        self._said.add(unordered(one, other))
        pair = Pair(one, other, 0, kind, evidence, url, self._clusters.strong.leader(one))
        self.found[split].append(pair)

    @cached_property
    def by_age(self) -> defaultdict[tuple[int, str], list[tuple[str, Node]]]:
        """Issues in the order of age, by repository and split; those of no positive pair under split ""."""
        found: defaultdict[tuple[int, str], list[tuple[str, Node]]] = defaultdict(list)
        for created_at, node in sorted((head.created_at, node) for node, head in self.scan.heads.items()):
            if node in self.positive:
                found[node[0], self.places[node]].append((created_at, node))
            elif self._known(node):
                found[node[0], ""].append((created_at, node))
        return found


def _around(ordered: list[tuple[str, Node]], created_at: str, most: int) -> list[Node]:
    """Return up to `most` issues nearest to a time in the order of age, from both sides in turn."""
    middle = bisect_left(ordered, (created_at, (0, 0)))
    younger, older = ordered[middle : middle + most], ordered[max(middle - most, 0) : middle][::-1]
    both = (item for two in zip_longest(younger, older) for item in two if item is not None)
    return [node for _, node in both][:most]


def draw_negatives(
    positives: Mapping[str, list[Pair]], c: Candidates, denied: Iterable[Pair], *, ratio: float, seed: int
) -> tuple[dict[str, list[Pair]], Counter[str]]:
    """Return the negative pairs of every split, and how many were wanted in vain, by reason.

    `ratio` is how many are wanted for each positive pair. The smallest splits choose first. Reasons:
    `no_hard_partner` (a random one may be drawn instead), `no_partner`, `denial_` with a key of `DENIALS`.
    """
    anchors: dict[str, list[Pair]] = {}
    order = sorted(positives, key=lambda name: (len(positives[name]), name))
    wanted = {name: round(ratio * len(positives[name])) for name in order}
    hard = {name: round(_HARD * wanted[name]) for name in order}
    for name in order:  # every pair as often as any other
        pairs = sorted(positives[name], key=lambda p: stable_hash(f"{seed} anchor {p.one} {p.other}"))
        anchors[name] = list(islice(cycle(pairs), wanted[name]))
    denied = sorted(denied, key=lambda pair: stable_hash(f"{seed} spoken {pair.one} {pair.other}"))
    _take_denied(c, denied, {name: int(_DENIED * wanted[name]) for name in order})
    _take_hard(c, [(name, pair) for name in order for pair in anchors[name][: hard[name]]], seed)
    for name in order:
        missing = min(wanted[name] - len(c.found[name]), round(_MOST_RANDOM * wanted[name]))
        for anchor in (anchors[name][hard[name] :] + anchors[name][: hard[name]])[:missing]:
            _take_first(c, name, anchor, "random", _like_the_original(c, name, anchor, seed))
        c.dropped["no_partner"] += wanted[name] - len(c.found[name])
    return {name: c.found[name] for name in positives}, +c.dropped


def _take_denied(c: Candidates, denied: Iterable[Pair], most: Mapping[str, int]) -> None:
    """Take pairs for every split, those first whose issues occur in positive pairs; count the others."""
    left = dict.fromkeys(denied)  # to take one out of many at once

    def fault(pair: Pair) -> str:
        if not (c.usable(pair.one) and c.usable(pair.other)):
            return "unusable"
        return "tied" if c.tied(pair.one, pair.other) else ""

    for split, limit in most.items():
        fit = [pair for pair in left if not fault(pair)]
        for p in sorted(fit, key=lambda pair: -len({pair.one, pair.other} & c.positive)):
            if len(c.found[split]) < limit and c.place(p.one, split) and c.place(p.other, split):
                c.take(split, p.one, p.other, p.kind, p.evidence, p.evidence_url)
                del left[p]
    for p in left:
        apart = len({c.places.get(node) for node in (p.one, p.other)} - {None}) > 1
        c.dropped[f"denial_{fault(p) or ('two_splits' if apart else 'enough')}"] += 1


def _take_hard(c: Candidates, anchors: Iterable[tuple[str, Pair]], seed: int) -> None:
    """Give every anchor, with its split, a partner near by words or subject; a repository at a time."""
    by_repo = defaultdict[int, list[tuple[str, Pair]]](list)
    for split, anchor in anchors:
        by_repo[anchor.one[0]].append((split, anchor))
    for repo_id, own in sorted(by_repo.items()):
        about: dict[int, str] = {}
        words, subjects = _Search(_texts(c, repo_id, about)), _Search(about.items())
        for split, anchor in own:
            number = anchor.one[1]
            near = _ranked(c, anchor, "words", words.nearest(number, 2 * _LAST_RANK))
            near += _ranked(c, anchor, "subject", subjects.nearest(number, 2 * _LAST_RANK))
            _take_first(c, split, anchor, "hard", sorted(near, key=_preference(c, anchor, words, seed)))
        log.debug("%s: hard negatives drawn", c.scan.repos[repo_id].name)


def _texts(c: Candidates, repo_id: int, about: dict[int, str]) -> Iterator[tuple[int, str]]:
    """Yield the texts of a repository by number, and note in `about` what each is about."""
    for issue, text in c.texts.of_repository(repo_id):
        if (repo_id, issue.number) in c.scan.heads:
            about[issue.number] = _subjects(issue, text)
            yield issue.number, text


def _take_first(
    c: Candidates, split: str, anchor: Pair, kind: str, partners: Iterable[tuple[Node, str]]
) -> None:
    """Take the first of the partners, each with its evidence, that fits; count it if no hard one does."""
    for node, evidence in partners:
        if c.fits(anchor.one, node, split):
            c.take(split, anchor.one, node, kind, evidence)
            return
    c.dropped["no_hard_partner"] += kind == "hard"


def _ranked(c: Candidates, anchor: Pair, how: str, numbers: Iterable[int]) -> list[tuple[Node, str]]:
    """The issues of `numbers` in the ranks that count, with the evidence."""
    # Its own cluster would take up ranks; it is left out before they are counted.
    nodes = [(anchor.one[0], number) for number in numbers]
    nodes = [node for node in nodes if not c.tied(anchor.one, node)]
    near = [(node, f"{how}:{rank}") for rank, node in enumerate(nodes[:_LAST_RANK], start=1)]
    return near[_FIRST_RANK - 1 :]


def _preference(c: Candidates, anchor: Pair, index: _Search, seed: int) -> Callable[[tuple[Node, str]], Any]:
    """Of positive pairs first, then those whose words overlap most nearly as in the positive pair."""
    one = c.texts.get(anchor.one)
    target = index.overlap(one, c.texts.get(anchor.other))

    def preference(item: tuple[Node, str]) -> tuple[bool, float, int, int]:
        apart = abs(index.overlap(one, c.texts.get(item[0])) - target)
        return item[0] not in c.positive, apart, c.uses[item[0]], _shuffle(seed, anchor, item[0])

    return preference


def _like_the_original(c: Candidates, split: str, anchor: Pair, seed: int) -> Iterator[tuple[Node, str]]:
    """Yield partners that resemble an anchor's original in age and labels, those of positive pairs first."""
    original = c.scan.heads[anchor.other]
    repo_id = anchor.one[0]

    def preference(node: Node) -> tuple[int, bool, int, bool, int]:
        head = c.scan.heads[node]
        months = abs(_month(head.created_at) - _month(original.created_at))
        unlike = set(original.labels).isdisjoint(head.labels)
        return months, node not in c.originals, c.uses[node], unlike, _shuffle(seed, anchor, node)

    positive = _around(c.by_age[repo_id, split], original.created_at, _WINDOW)
    others = _around(c.by_age[repo_id, ""], original.created_at, 4 * _WINDOW)
    free = [node for node in others if c.places.get(node, split) == split]
    for nodes in (positive, free[:_WINDOW]):
        yield from ((node, "random") for node in sorted(nodes, key=preference))


def _shuffle(seed: int, anchor: Pair, node: Node) -> int:
    return stable_hash(f"{seed} {anchor.one} {anchor.other} {node}")


def _month(created_at: str) -> int:
    """Months since year 0."""
    return int(created_at[:4]) * 12 + int(created_at[5:7])


class _Search:
    """The issues of a repository by their texts; made of (number, text), the numbers ascending.

    Only the first 200 words of a text count. About two kilobytes a text.
    """

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        self._numbers = array("q")
        self._tokens = lru_cache(_RECENT)(_tokens)
        self._index = Index(self._read(texts))

    def _read(self, texts: Iterable[tuple[int, str]]) -> Iterator[Any]:
        for number, text in texts:
            self._numbers.append(number)
            yield _tokens(text)

    def nearest(self, number: int, most: int) -> list[int]:
        """Return the numbers of up to `most` issues nearest to one of them, the nearest first."""
        place = bisect_left(self._numbers, number)
        found, _ = self._index.nearest(place, most, words=_WORDS_A_QUERY, window=_TEXTS_A_WORD)
        return [self._numbers[other] for other in found]

    def overlap(self, one: str, other: str) -> float:
        """Return the Jaccard index of the two texts' words, weighted by how rare they are."""
        return self._index.overlap(self._tokens(one), self._tokens(other))


def _subjects(issue: Issue, text: str) -> str:
    """What an issue is about beside its words, a word each: labels, files, errors, reporter and week."""
    week = "week{}x{}".format(*date.fromisoformat(issue.created_at[:10]).isocalendar()[:2])
    found = [f"label {name}" for name in issue.labels] + [f"by {issue.author}"] * bool(issue.author)
    for kind, pattern in (("file", _FILE), ("error", _ERROR)):
        found += [f"{kind} {name}" for name in pattern.findall(text)[:_NAMED]]
    return " ".join([week, *(re.sub(r"\W+", "_", name) for name in found)])


def _tokens(text: str) -> Any:
    return numbered(tokens(text[: 40 * _WORDS_A_TEXT])[:_WORDS_A_TEXT])
