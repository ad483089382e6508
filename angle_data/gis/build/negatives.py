"""Negative pairs: each takes the duplicate of a positive pair and gives it another partner.

Half of the partners are drawn at random among issues of the age and labels of the original, so that neither
tells the label; two fifths are near by words (BM25 ranks 3 to 50; the first two may be duplicates that nobody
marked); up to a tenth are pairs of which somebody said that they are no duplicates. Partners that occur in
positive pairs come first, and originals before all, or a model could learn the issue instead of the pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from angle_data.gis.build.bm25 import Bm25
from angle_data.gis.build.candidates import Candidates
from angle_data.gis.build.clusters import unordered
from angle_data.gis.build.links import resolve
from angle_data.gis.build.positives import Pair
from angle_data.gis.build.scan import Scan
from angle_data.gis.build.texts import Node, Texts
from angle_data.text import stable_hash

SHARES = {"explicit_non_duplicate": 0.1, "hard": 0.4, "random": 0.5}
"""Kind of negative -> share wanted. What the first two cannot give is drawn at random."""

_FIRST_RANK, _LAST_RANK = 3, 50
_WINDOW = 60


@dataclass(frozen=True, slots=True)
class Spoken:
    """Two issues of which somebody said, at `url`, that they are no duplicates."""

    one: Node
    other: Node
    url: str


def spoken_pairs(scan: Scan) -> tuple[list[Spoken], Counter[str]]:
    """Return the pairs said to be no duplicates, each once, and how many lead nowhere by reason."""
    found: dict[tuple[Node, Node], Spoken] = {}
    dropped: Counter[str] = Counter()
    for denied in sorted(scan.denied, key=lambda denied: (denied.created_at, denied.url, denied.number)):
        other, reason = resolve(scan, denied.repo, denied.number)
        if other is None or other == denied.here:
            dropped[reason or "itself"] += 1
        elif unordered(denied.here, other) in found:
            dropped["repeated"] += 1
        elif other[0] != denied.here[0]:
            dropped["other_repository"] += 1
        elif scan.heads[denied.here].gone:
            dropped["gone"] += 1
        elif scan.heads[other].is_pull or scan.heads[denied.here].is_pull:
            dropped["pull"] += 1
        else:
            found[unordered(denied.here, other)] = Spoken(denied.here, other, denied.url)
    return list(found.values()), dropped


def draw_negatives(
    positives: Mapping[str, list[Pair]],
    candidates: Candidates,
    spoken: Iterable[Spoken],
    *,
    ratio: float,
    seed: int,
    tell: Callable[[str], None] = lambda name: None,
) -> tuple[dict[str, list[Pair]], Counter[str]]:
    """Return the negative pairs of every split, and how many were wanted in vain (`no_partner`) or left out.

    `ratio` is how many are wanted for each positive pair. The smallest splits choose first.
    """
    draw = _Draw(candidates, seed, tell)
    order = sorted(positives, key=lambda name: (len(positives[name]), name))
    wanted = {name: round(ratio * len(positives[name])) for name in order}
    spoken = sorted(spoken, key=lambda pair: stable_hash(f"{seed} spoken {pair.one} {pair.other}"))
    for name in order:
        draw.take_spoken(name, spoken, int(SHARES["explicit_non_duplicate"] * wanted[name]))
    hard = {name: round(SHARES["hard"] * wanted[name]) for name in order}
    anchors = {name: _anchors(positives[name], wanted[name], seed) for name in order}
    draw.take_hard({name: anchors[name][: hard[name]] for name in order})
    for name in order:
        missing = wanted[name] - len(draw.found[name])
        rest = (anchors[name][hard[name] :] + anchors[name][: hard[name]])[:missing]
        draw.take_random(name, rest)
    return {name: draw.found[name] for name in positives}, +draw.dropped


def _anchors(positives: list[Pair], count: int, seed: int) -> list[Pair]:
    """`count` positive pairs in random order, each as often as any other."""
    order = sorted(positives, key=lambda pair: stable_hash(f"{seed} anchor {pair.one} {pair.other}"))
    times = -(-count // len(order)) if order else 0
    return (order * times)[:count]


class _Draw:
    """The pairs drawn so far."""

    def __init__(self, candidates: Candidates, seed: int, tell: Callable[[str], None]) -> None:
        self._candidates, self._seed, self._tell = candidates, seed, tell
        self.found: defaultdict[str, list[Pair]] = defaultdict(list)
        self.dropped: Counter[str] = Counter()
        self._drawn: set[tuple[Node, Node]] = set()

    def take_spoken(self, split: str, spoken: Iterable[Spoken], most: int) -> None:
        """Take pairs that lie in `split`, those first whose issues occur in positive pairs."""
        c = self._candidates
        own = [pair for pair in spoken if {c.places.get(pair.one), c.places.get(pair.other)} == {split}]
        own = [pair for pair in own if c.timely(pair.one, split) and c.timely(pair.other, split)]
        fit = [p for p in own if c.usable(p.one) and c.usable(p.other) and not c.tied(p.one, p.other)]
        fit.sort(key=lambda pair: -len({pair.one, pair.other} & c.positive))
        for pair in fit[:most]:
            self._add(split, pair.one, pair.other, "explicit_non_duplicate", "denied", pair.url)

    def take_hard(self, anchors: Mapping[str, list[Pair]]) -> None:
        """Give every anchor a partner of similar words; one index at a time is in memory."""
        by_repo: defaultdict[int, list[tuple[str, Pair]]] = defaultdict(list)
        for split, pairs in anchors.items():
            for pair in pairs:
                by_repo[pair.one[0]].append((split, pair))
        texts = self._candidates.texts
        for repo_id in sorted(by_repo):
            heads = self._candidates.scan.heads
            index = Bm25((n, text) for n, text in texts.of_repository(repo_id) if (repo_id, n) in heads)
            for split, pair in by_repo[repo_id]:
                self._hard(index, texts, split, pair)
            self._tell(self._candidates.scan.repos[repo_id].name)

    def _hard(self, index: Bm25, texts: Texts, split: str, anchor: Pair) -> None:
        c = self._candidates
        # Its own cluster would take up ranks; it is left out before they are counted.
        numbers = index.rank(texts.get(anchor.one).text, 2 * _LAST_RANK)
        ranked = [(anchor.one[0], number) for number in numbers]
        ranked = [node for node in ranked if node != anchor.one and not c.tied(anchor.one, node)]
        ranks = dict(enumerate(ranked[:_LAST_RANK], start=1))
        near = [(rank, node) for rank, node in ranks.items() if rank >= _FIRST_RANK]
        near.sort(
            key=lambda item: (
                item[1] not in c.positive,
                item[1] not in c.originals,
                c.uses[item[1]],
                self._shuffle(anchor, item[1]),
            )
        )
        for rank, node in near:
            if self._free(anchor.one, node) and c.fits(anchor.one, node, split):
                self._add(split, anchor.one, node, "hard", f"bm25:{rank}")
                return
        self.dropped["no_hard_partner"] += 1

    def take_random(self, split: str, anchors: list[Pair]) -> None:
        """Give every anchor a partner that resembles its original in age and labels."""
        for anchor in anchors:
            partner = self._random(split, anchor)
            if partner is None:
                self.dropped["no_partner"] += 1
            else:
                self._add(split, anchor.one, partner, "random", "random")

    def _random(self, split: str, anchor: Pair) -> Node | None:
        c, original = self._candidates, self._candidates.scan.heads[anchor.other]
        labels = set(original.labels)

        def preference(node: Node) -> tuple[int, bool, int, bool, int]:
            head = c.scan.heads[node]
            months = abs(_month(head.created_at) - _month(original.created_at))
            unlike = labels.isdisjoint(head.labels)
            return months, node not in c.originals, c.uses[node], unlike, self._shuffle(anchor, node)

        for source in (c.pool_around, c.others_around):
            nodes = source(split, anchor.one[0], original.created_at, _WINDOW)
            for node in sorted(nodes, key=preference):
                if self._free(anchor.one, node) and c.fits(anchor.one, node, split):
                    return node
        return None

    def _free(self, one: Node, other: Node) -> bool:
        return unordered(one, other) not in self._drawn

    def _add(self, split: str, one: Node, other: Node, kind: str, evidence: str, url: str = "") -> None:
        self._drawn.add(unordered(one, other))
        self._candidates.uses.update((other,))
        leader = self._candidates.leader(one)
        self.found[split].append(Pair(one, other, 0, kind, evidence, url, leader))

    def _shuffle(self, anchor: Pair, node: Node) -> int:
        return stable_hash(f"{self._seed} {anchor.one} {anchor.other} {node}")


def _month(created_at: str) -> int:
    """Months since year 0."""
    return int(created_at[:4]) * 12 + int(created_at[5:7])
