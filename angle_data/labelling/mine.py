"""`angle-data mine`: pairs to be graded, among the user's own texts or among what was written for them.

Neighbours come from shared words, weighed by how rare they are, or from embeddings. Rows are `text1`, `text2`
and `kind`, which says how a pair was drawn and is no label: `near` (one is among the nearest of the other),
`between` (they share something, and are no neighbours), `random`, or `written` (for one text).

Texts are taken in an order by hash, so neither their order in the file nor what they say decides what is
drawn. No text is compared with all others: a word leads to at most `_WINDOW` texts.

With --negatives, rows are hard negatives of queries instead, see `negatives`.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from angle_data.calling.options import check_named_once, check_values, option, paths_option
from angle_data.errors import InputError
from angle_data.jsonl import dumps, write_text
from angle_data.labelling.negatives import find_negatives
from angle_data.labelling.texts import TextFile
from angle_data.labelling.vectors import unit_vectors
from angle_data.records import read_candidates
from angle_data.similar.near import tokens
from angle_data.tables import TABLE_KINDS
from angle_data.text import counted, normalise, pair_key, stable_hash

KINDS = ("near", "between", "random")
_SHARES = {"near": 0.6, "between": 0.3}  # the rest is random
_BANDS = 10  # of similarity; a kind is drawn from all of them alike
_NEAREST = 3  # so many neighbours of a text are near at least
_LISTED = 100  # so many are looked at for what lies between
_RAREST = 16  # words of a text that lead to its neighbours
_WINDOW = 200  # texts that a word leads to
_STEM = 4
_FEWEST_ASKED = 20_000
_USUAL = 2_000  # pairs, where no number is asked for
_WRITTEN = "written"
_RARER = 3  # a pair with a sentence of degree 1, which is about something else, comes so much later

_Row = tuple[int, str, str, str]  # a hash for the place in the file, the texts in a direction by it, the kind


_Pair = tuple[int, int]  # places of texts in hash order, the smaller first
_Near = list[tuple[int, float]]  # the neighbours of a text, nearest first: their places and similarities


@dataclass(frozen=True, slots=True)
class MineConfig:
    """What to draw from which texts; `embeddings` has shape (rows of `texts`, D). Checks itself."""

    out: Path = option(  # noqa: RUF009
        "Output file (.jsonl): pairs for `llm-score --pairs`, or negatives for `angle-train fit --data`."
    )
    texts: Path | None = option(f"Texts: {TABLE_KINDS}, or .txt[.gz] (one per line).", None)  # noqa: RUF009
    runs: tuple[Path, ...] = paths_option(
        "llm-label run folders, instead of --texts: pair sentences written for the same text.",
        (),
        metavar="RUN",
        argument=True,
    )
    n: int | None = option("Number of pairs to draw.", None, shown="2000, or all if fewer", ge=1)
    seed: int = option("Random seed for the draw.", 0)
    text_field: str = option("Field or column with the text.", "text")
    limit: int | None = option("Use at most this many texts, from the start.", None, ge=1)
    embeddings: Path | None = option(  # noqa: RUF009
        "Find neighbours with these embeddings of the same file, made by `angle-train encode --texts TEXTS "
        "--out FILE.npy`.",
        None,
        metavar="FILE.npy",
        shown="shared words",
    )
    negatives: Path | None = option(  # noqa: RUF009
        "Instead of pairs, find hard negatives among --texts for these pairs of a query and a passage that "
        "answers it (query, positive, or two texts).",
        None,
        metavar="PAIRS",
    )
    per_query: int = option("With --negatives: negatives for each pair.", 5, ge=1)
    query_embeddings: Path | None = option(  # noqa: RUF009
        "With --negatives and --embeddings: embeddings of the queries, made by `angle-train encode --texts "
        "PAIRS --text-field query --out FILE.npy`.",
        None,
        metavar="FILE.npy",
    )

    def __post_init__(self) -> None:
        check_values(self)
        if (self.texts is None) == (not self.runs):
            raise InputError("give --texts FILE, or run folders of llm-label: each makes its own pairs")
        check_named_once(self.runs)
        if self.runs and (self.limit, self.embeddings, self.text_field) != (None, None, "text"):
            raise InputError("--limit, --embeddings and --text-field are for --texts")
        if self.limit is not None and self.embeddings is not None:
            raise InputError("--embeddings are of the whole file: leave out --limit")
        self._check_negatives()
        if self.out.suffix != ".jsonl":
            raise InputError(f"--out {self.out} must end in .jsonl, as llm-score reads it")

    def _check_negatives(self) -> None:
        if self.negatives is None:
            if self.query_embeddings is not None:
                raise InputError("--query-embeddings is for --negatives; leave it out")
        elif self.texts is None or self.n is not None:
            raise InputError("--negatives needs --texts, and takes --per-query rather than --n")
        elif (self.embeddings is None) != (self.query_embeddings is None):
            raise InputError("--negatives by embeddings needs both --embeddings and --query-embeddings")


def mine(config: MineConfig) -> Mapping[str, int]:
    """Draw pairs or find negatives, as the options say, and write them to `config.out`; return the counts.

    The same texts, options and seed give the same bytes.

    Raises:
        InputError: The texts, pairs, runs or embeddings cannot be used, or `out` holds anything but this.
    """
    if config.texts and config.negatives:
        passages = TextFile(config.texts, text_field=config.text_field, limit=config.limit)
        found = find_negatives(
            config.negatives, passages, config.per_query, config.embeddings, config.query_embeddings
        )
        _write(config.out, found.rows)
        return found.counts
    return mine_pairs(config)


def _write(out: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows, unless something else is there."""
    mined = "".join(f"{dumps(row)}\n" for row in rows)
    if out.exists() and not (out.is_file() and out.read_bytes() == mined.encode()):
        raise InputError(
            f"--out {out} is there and holds something else: it was edited, or made of other texts, "
            "runs or options; move it away, or give another file"
        )
    write_text(out, mined)


def mine_pairs(config: MineConfig) -> dict[str, int]:
    """Draw `n` pairs of different texts, no pair twice, and write them to `config.out`; return them by kind.

    The same texts, options and seed give the same bytes. No text has more than twice the mean
    number of pairs (or three), unless `n` asks for nearly all pairs there are; with `n` at least the number
    of texts, every text takes part. Of written sentences the texts take turns, a pair each.

    Raises:
        InputError: The texts, runs or embeddings cannot be used, `n` is more than there are pairs, or `out`
            holds anything but these very pairs.
    """
    if config.texts:
        rows = _among_texts(config, config.texts)
    else:
        rows = _draw_written(config.runs, config.n or _USUAL, config.seed)
    if len(rows) < (config.n or 0):
        there = counted(len(rows), "pair")
        raise InputError(f"--n {config.n:,} is more than the {there} that there are; give less")
    rows.sort()
    _write(config.out, ({"text1": one, "text2": other, "kind": kind} for _, one, other, kind in rows))
    return dict.fromkeys(KINDS if config.texts else (_WRITTEN,), 0) | Counter(kind for *_, kind in rows)


def _among_texts(config: MineConfig, path: Path) -> list[_Row]:
    file = TextFile(path, text_field=config.text_field, limit=config.limit)
    best: dict[str, tuple[str, int]] = {}  # of texts that are equal when normalised the smallest stands
    for row, item in file.placed():
        key = normalise(item.text)
        best[key] = min(best.get(key, (item.text, row)), (item.text, row))
    order = sorted(best, key=lambda key: (stable_hash(f"{config.seed}\n{key}"), key))
    texts = [best[key][0] for key in order]
    count = len(texts)
    if count < 2:
        raise InputError(f"{path} holds only one distinct text; a pair needs two")
    neighbours = partial(_by_words, texts)
    if config.embeddings is not None:
        neighbours = partial(_by_embeddings, config.embeddings, [best[key][1] for key in order], file.rows)
    drawn = _draw(neighbours, count, min(config.n or _USUAL, count * (count - 1) // 2))
    return [_row_of(config.seed, texts[a], texts[b], kind) for (a, b), kind in drawn.items()]


def _in_order(near: _Near, place: int, count: int) -> _Near:
    """Sort the neighbours of a text, the nearest first; of equally near ones each text has others first."""
    return sorted(near, key=lambda item: (-item[1], (item[0] - place) % count))


def _by_words(texts: Sequence[str], asked: int, most: int) -> Iterator[_Near]:
    """Yield up to `most` neighbours of each of the first `asked` texts, by the beginnings of shared words."""
    from angle_data.similar.ranking import Index, numbered

    index = Index(numbered({token[:_STEM] for token in tokens(text)}) for text in texts)
    for place in range(asked):
        found, overlaps = index.nearest(place, most, words=_RAREST, window=_WINDOW)
        yield list(zip(found.tolist(), overlaps.tolist(), strict=True))


def _by_embeddings(path: Path, rows: Sequence[int], in_file: int, asked: int, most: int) -> Iterator[_Near]:
    """Yield `most` neighbours of each of the first `asked` texts, by the cosine of embeddings.

    `rows` are those of the texts in the file of texts, which has `in_file`.
    """
    import numpy as np

    vectors = unit_vectors(path, rows, in_file)
    most = min(most, len(vectors) - 1)
    step = max(1, (1 << 24) // len(vectors))  # 64 MiB of cosines at a time
    for start in range(0, asked, step):
        block = np.arange(start, min(start + step, asked))
        cosines = vectors[block] @ vectors.T
        cosines[np.arange(len(block)), block] = -2.0
        listed = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
        for place, others, row in zip(block.tolist(), listed.tolist(), cosines, strict=True):
            yield _in_order([(other, float(row[other])) for other in others], place, len(vectors))


class _Drawn(dict[_Pair, str]):
    """The pairs drawn so far of the `n` wanted, with their kinds.

    `uses` counts the pairs of each text and `cap` bounds them; `new` texts have none yet.
    """

    def __init__(self, texts: int, n: int) -> None:
        super().__init__()
        self.n = n
        self.new = texts
        self.uses = [0] * texts
        self.cap = max(3, math.ceil(4 * n / texts))

    def take(self, one: int, other: int, kind: str) -> None:
        """Draw a pair, unless it is drawn already or one of its texts has enough."""
        pair = (min(one, other), max(one, other))
        if one != other and pair not in self and max(self.uses[one], self.uses[other]) < self.cap:
            self[pair] = kind
            for place in pair:
                self.new -= not self.uses[place]
                self.uses[place] += 1

    def reached(self, count: int) -> bool:
        """Whether so many are drawn, or the rest is needed to bring in every text, where that can be done."""
        needed = (self.new + 1) // 2 if self.n >= len(self.uses) else 0
        return len(self) >= min(count, self.n - needed)


def _draw(neighbours: Callable[[int, int], Iterator[_Near]], count: int, n: int) -> _Drawn:
    """Draw `n` pairs of `count` texts: near ones, then those between, then random ones for the rest.

    Random are first the texts without a pair, then those that stand one, two … places apart in hash order.
    """
    asked = min(count, max(10 * n, _FEWEST_ASKED))
    near = max(_NEAREST, 1 + math.ceil(2 * _SHARES["near"] * n / count))
    far = max(5, 1 + math.ceil(2 * _SHARES["between"] * n / count))
    most = min(count - 1, max(_LISTED, 4 * near))
    # Places of what lies between in a list of neighbours: dense where they are near, up to the last.
    between = {min(most - 1, round(near * (most / near) ** (step / far))) for step in range(1, far + 1)}
    pools: dict[str, dict[_Pair, float]] = {kind: {} for kind in _SHARES}
    for place, listed in enumerate(neighbours(asked, most)):
        for rank, (other, similarity) in enumerate(listed):
            kind = "near" if rank < near else "between" if rank in between else None
            if kind is not None:
                pools[kind][min(place, other), max(place, other)] = similarity
    for pair in pools["near"]:
        pools["between"].pop(pair, None)
    drawn = _Drawn(count, n)
    wanted = 0.0
    for kind, share in _SHARES.items():
        wanted += share * n
        _spread(pools[kind], kind, drawn, round(wanted))
    alone = [place for place in range(count) if not drawn.uses[place]]
    pairs = list(zip(alone[::2], [*alone[1::2], 0], strict=False))
    while len(drawn) < n:
        steps = range(1, count // 2 + 1)
        apart = ((place, (place + step) % count) for step in steps for place in range(count))
        for pair in chain(pairs, apart):
            if len(drawn) == n:
                break
            drawn.take(*pair, "random")
        drawn.cap = count  # so few pairs are left that some texts must take part in more
    return drawn


def _spread(pool: dict[_Pair, float], kind: str, drawn: _Drawn, until: int) -> None:
    """Draw until there are so many: a share of each band of similarity, the rest from the highest bands."""
    low, high = min(pool.values(), default=0.0), max(pool.values(), default=0.0)
    bands: list[list[_Pair]] = [[] for _ in range(_BANDS)]
    for pair in sorted(pool, key=lambda pair: stable_hash(f"{pair}")):
        bands[min(_BANDS - 1, int(_BANDS * (high - pool[pair]) / ((high - low) or 1.0)))].append(pair)
    share = math.ceil((until - len(drawn)) / _BANDS)
    for most in (share, len(pool)):
        for band in bands:
            stop = min(until, len(drawn) + most)
            for news_only in (True, False):  # what brings in a new text comes first
                left = []
                for pair in band:
                    if drawn.reached(stop) or (news_only and drawn.uses[pair[0]] and drawn.uses[pair[1]]):
                        left.append(pair)
                    else:
                        drawn.take(*pair, kind)
                band[:] = left


def _row_of(seed: int, one: str, other: str, kind: str) -> _Row:
    """Return a row with its place in the file, in an order and a direction by hash."""
    rank = stable_hash("\n".join([str(seed), *sorted((one, other))]))
    first, second = sorted((one, other), reverse=bool(rank & 1))
    return rank, first, second, kind


def _draw_written(runs: Sequence[Path], n: int, seed: int) -> list[_Row]:
    """Draw `n` pairs, or all where there are fewer: one of each text in turn, no pair twice.

    Texts and their pairs come in an order by hash. Two sentences of degree 1, which are about something else
    each, are no pair, and one of them is in fewer pairs than another sentence.
    """
    written: dict[str, dict[str, tuple[str, bool]]] = {}  # by text: each sentence, and whether of degree 1
    for candidate in chain.from_iterable(map(read_candidates, runs)):
        key = normalise(candidate.text)
        new = (candidate.text, candidate.degree == 1)
        if key:
            own = written.setdefault(normalise(candidate.source), {})
            old = own.get(key, new)
            own[key] = min(old[0], new[0]), old[1] and new[1]
    order = sorted(written, key=lambda text: (stable_hash(f"{seed}\n{text}"), text))
    queues = deque(_ranked(written[text].values(), seed) for text in order)
    drawn: dict[tuple[str, str], _Row] = {}
    while queues and len(drawn) < n:
        queue = queues.popleft()
        if (row := next(queue, None)) is not None:
            drawn.setdefault(pair_key(row[1], row[2]), row)  # another text may have that pair
            queues.append(queue)
    if not drawn:
        raise InputError(
            "no text has two sentences in these run folders (two of degree 1 do not count); name more of them"
        )
    return list(drawn.values())


def _ranked(sentences: Iterable[tuple[str, bool]], seed: int) -> Iterator[_Row]:
    """Yield the pairs of one text's sentences as rows, in their order by hash; made when asked for."""
    found = []
    for (one, far), (other, farther) in combinations(sorted(sentences), 2):
        if not (far and farther):
            row = _row_of(seed, one, other, _WRITTEN)
            found.append((row[0] * (_RARER if far or farther else 1), row))
    yield from (row for _, row in sorted(found))
