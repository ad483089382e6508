"""What a search is measured on: documents, queries, and which documents each query should find.

The layout is that of BEIR (https://github.com/beir-cellar/beir): `corpus.jsonl` with `_id`, `title` (which
may be missing) and `text`; `queries.jsonl` with `_id` and `text`; and `qrels/SPLIT.tsv` with the columns
`query-id`, `corpus-id` and `score`, the grade of a document for a query. A grade above 0 means relevant.
As in BEIR, title and text of a document become one text, with a blank between them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.tables import HUB_PREFIX, identity_of, load_hub_dataset, number_of, text_of
from angle_data.text import counted, stable_hash
from angle_train.data.pairs import PairSet
from angle_train.data.sources import Item, names_of, read_rows

log = logging.getLogger("angle.search")

_SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet", ".csv", ".tsv", ".json")
_IDS = ("_id", "id")
_COLUMNS = (("query-id", "query_id", "qid"), ("corpus-id", "corpus_id", "docid"), ("score",))
_BEIR = "beir/"  # this owner keeps qrels in data sets of their own
DEV_SPLITS = ("dev", "validation", "valid")
DEV_QUERIES, DEV_DOCUMENTS = 1_000, 10_000
"""So many queries and documents a search has at most that chooses weights: it is made after every evaluation
of a training. Relevant documents are always among them."""


@dataclass(frozen=True, slots=True)
class SearchSet:
    """N documents and Q queries, each of which has a relevant document.

    Attributes:
        name: What reports call it.
        ids: Ids of the documents (N), in descending order: of equally similar ones the first stands first, as
            trec_eval and pytrec_eval have it.
        texts: Their texts (N).
        query_ids: Ids of the queries (Q).
        queries: Their texts (Q).
        grades: For each query the grades above 0 of documents, by their places.
        missing: For each query the grades above 0 of documents that are not in the corpus. No model can find
            them, but they count, as in BEIR.
        own: For each query the place of the document with its id, -1 if there is none. It is never a result
            of this query: in BEIR's sets it is the query itself.
        notes: What was left out, in sentences.
    """

    name: str
    ids: Sequence[str]
    texts: Sequence[str]
    query_ids: Sequence[str]
    queries: Sequence[str]
    grades: Sequence[Mapping[int, float]]
    missing: Sequence[Sequence[float]]
    own: NDArray[np.int64]
    notes: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.queries)

    def pairs(self) -> PairSet:
        """Return each query with each of its relevant documents, to be looked for in training pairs."""
        found = [
            (query, at) for query, grades in zip(self.queries, self.grades, strict=True) for at in grades
        ]
        first, second = [query for query, _ in found], [self.texts[at] for _, at in found]
        return PairSet(self.name, first, second, np.ones(len(found)), np.ones(len(found)))

    def sha256(self) -> str:
        """Return a digest of everything that figures depend on."""
        digest = hashlib.sha256()
        wanted = (sorted((self.ids[at], grade) for at, grade in found.items()) for found in self.grades)
        asked = zip(self.query_ids, self.queries, wanted, map(sorted, self.missing), strict=True)
        for part in chain(zip(self.ids, self.texts, strict=True), asked):
            digest.update(f"{part!r}\n".encode())
        return digest.hexdigest()


def load_search(spec: str, split: str | Sequence[str] | None = None) -> SearchSet:
    """Return the search set of a folder in BEIR's layout, or of the hub (`hub:BeIR/scifact`).

    `split` names the qrels; default `test`, or the only one there is. Of several names the first one that is
    there counts, or the only qrels.

    Raises:
        InputError: A file is missing, empty or of another layout; names it.
    """
    if spec.startswith(HUB_PREFIX):
        return _from_hub(spec.removeprefix(HUB_PREFIX), split or "test")
    return load_search_files(*search_files(spec, split), Path(spec).resolve().name)


def search_files(spec: str, split: str | Sequence[str] | None = None) -> tuple[str, str, str]:
    """Return corpus, queries and qrels of a folder in BEIR's layout; an `InputError` where one is missing."""
    folder = Path(spec)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        qrels = split if isinstance(split, str) else next(iter(split or ()), "test")
        raise InputError(
            f"{spec} {what}; give a folder with corpus.jsonl, queries.jsonl and qrels/{qrels}.tsv, or hub:ID"
        )
    corpus, queries = (_file(folder, name) for name in ("corpus", "queries"))
    return corpus, queries, _qrels(folder / "qrels", split)


def load_searches(specs: Sequence[str], split: str | Sequence[str] | None = None) -> list[SearchSet]:
    """Return several search sets, by names that differ: sets that share one are called by their sources."""
    found = [load_search(spec, split) for spec in specs]
    names = [searched.name for searched in found]
    return [
        replace(searched, name=spec) if names.count(searched.name) > 1 else searched
        for spec, searched in zip(specs, found, strict=True)
    ]


def load_dev_searches(specs: Sequence[str]) -> list[SearchSet]:
    """Return the searches that choose weights, by the qrels `dev` (or `validation`, or the only ones).

    Of larger ones a part is drawn by hash, see `part_of`.
    """
    return [part_of(found, DEV_QUERIES, DEV_DOCUMENTS) for found in load_searches(specs, DEV_SPLITS)]


def part_of(found: SearchSet, most_queries: int, most_documents: int) -> SearchSet:
    """Return a search with fewer queries and documents, drawn by hash, and a note that says so.

    All documents that are relevant for one of its queries are among them, and the rest is drawn whatever a
    model makes of it: so it is easier than the whole search, and for all models alike.
    """
    asked = sorted(_drawn(found.query_ids, most_queries))
    relevant = {place for row in asked for place in found.grades[row]}
    others = [place for place in range(len(found.ids)) if place not in relevant]
    more = _drawn([found.ids[place] for place in others], max(0, most_documents - len(relevant)))
    places = sorted([*relevant, *(others[at] for at in more)])
    if len(asked) == len(found) and len(places) == len(found.ids):
        return found
    note = (
        f"{len(asked):,} of {counted(len(found), 'query', 'queries')} and {len(places):,} of "
        f"{counted(len(found.ids), 'document')}, drawn by hash with all that are relevant, choose the weights"
    )
    log.info("%s: %s", found.name, note)
    now = {place: number for number, place in enumerate(places)}
    return SearchSet(
        found.name,
        [found.ids[place] for place in places],
        [found.texts[place] for place in places],
        [found.query_ids[row] for row in asked],
        [found.queries[row] for row in asked],
        [{now[place]: grade for place, grade in found.grades[row].items()} for row in asked],
        [found.missing[row] for row in asked],
        np.array([now.get(int(found.own[row]), -1) for row in asked]),
        [*found.notes, note],
    )


def _drawn(ids: Sequence[str], most: int) -> list[int]:
    """Return the places of so many ids at most, those of the lowest hash."""
    if len(ids) <= most:
        return list(range(len(ids)))
    return sorted(range(len(ids)), key=lambda place: (stable_hash(ids[place]), ids[place]))[:most]


def load_search_files(corpus: str, queries: str, qrels: str, name: str = "") -> SearchSet:
    """Return the search set of three files, see `load_search`; `name` defaults to that of the queries."""
    rows = (read_rows(path, "train") for path in (corpus, queries, qrels))
    return _make(name or Path(queries).name.split(".")[0], (corpus, queries, qrels), *rows)


def _file(folder: Path, name: str) -> str:
    paths = [folder / f"{name}{suffix}" for suffix in _SUFFIXES]
    if found := next((path for path in paths if path.is_file()), None):
        return str(found)
    raise InputError(f"{folder} has no {name}.jsonl (nor {', '.join(_SUFFIXES[1:])}); see BEIR's layout")


def _qrels(folder: Path, split: str | Sequence[str] | None) -> str:
    """Return the file of a split's grades."""
    found = {path.name.split(".")[0]: path for path in sorted(folder.glob("*")) if path.is_file()}
    wanted = [split] if isinstance(split, str) else [*(split or ("test",))]
    if not found:
        raise InputError(f"{folder} has no qrels; put {wanted[0]}.tsv there")
    stated = isinstance(split, str) or len(found) > 1
    name = next((name for name in wanted if name in found), wanted[0] if stated else next(iter(found)))
    if name not in found and not isinstance(split, str | None):
        raise InputError(
            f"{folder} has no {name}.tsv; found: {', '.join(found)}; call the qrels that are to choose the "
            f"weights {name}.tsv, or give a folder whose only qrels they are"
        )
    if name not in found:
        raise InputError(f"{folder} has no {name}.tsv; found: {', '.join(found)}; choose with --split")
    return str(found[name])


def _from_hub(name: str, split: str | Sequence[str]) -> SearchSet:
    """Return a search set of the hub, where qrels are a part of the data set, or one of their own."""
    beir = name.lower().startswith(_BEIR)
    if not isinstance(split, str):  # BEIR's own data sets call it by another name than mteb's
        split = "validation" if beir else split[0]
    graded, part = (f"{name}-qrels", None) if beir else (name, "default")
    log.info("loading %s (qrels %s) from the hub", name, split)
    wanted = ((name, "corpus", "corpus"), (name, "queries", "queries"), (graded, split, part))
    places = tuple(f"hub:{of} ({config or which})" for of, which, config in wanted)
    parts = (
        ((f"{place}: row {number}", dict(row)) for number, row in enumerate(rows, start=1))
        for place, rows in zip(
            places, (load_hub_dataset(of, which, config=config) for of, which, config in wanted), strict=True
        )
    )
    return _make(name.rsplit("/", 1)[-1], places, *parts)


def _make(
    name: str,
    places: Sequence[str],
    corpus: Iterable[Item],
    queries: Iterable[Item],
    qrels: Iterable[Item],
) -> SearchSet:
    """Return the search set of rows; `places` are what to call the three sources in errors."""
    asked = _texts(queries, places[1], "queries", titled=False)
    wanted, left_out = _grades(qrels, places[2], asked)
    texts = _texts(corpus, places[0], "documents", titled=True)
    ids = sorted(texts, reverse=True)
    place = {identity: number for number, identity in enumerate(ids)}
    known = [{place[at]: grade for at, grade in found.items() if at in place} for found in wanted.values()]
    missing = [[grade for at, grade in found.items() if at not in place] for found in wanted.values()]
    own = np.array([place.get(query, -1) for query in wanted])
    notes = [*left_out, *_notes(missing, known)]
    if count := int((own >= 0).sum()):
        notes.append(
            f"{counted(count, 'query has', 'queries have')} the id of a document, which is left out of the "
            "results of that query, as in BEIR"
        )
        unlike = [q for q, at in zip(wanted, own, strict=True) if at >= 0 and asked[q] not in texts[ids[at]]]
        if unlike or any(at in found for at, found in zip(own.tolist(), known, strict=True)):
            notes[-1] += "; queries and documents seem to be numbered apart: give them ids of their own"
    for note in notes:
        log.warning("%s: %s", name, note)
    if not any(known):
        raise InputError(f"{places[2]}: none of its relevant documents is in {places[0]}; check the ids")
    return SearchSet(
        name,
        ids,
        [texts[identity] for identity in ids],
        list(wanted),
        [asked[query] for query in wanted],
        known,
        missing,
        own,
        notes,
    )


def _notes(missing: Sequence[Sequence[float]], known: Sequence[Mapping[int, float]]) -> list[str]:
    absent, there = sum(map(len, missing)), sum(map(len, known))
    if not absent:
        return []
    return [
        f"{absent:,} of {absent + there:,} relevant documents "
        f"{'is' if absent == 1 else 'are'} not in the corpus; {'it counts' if absent == 1 else 'they count'} "
        "as not found, as in BEIR"
    ]


def _texts(rows: Iterable[Item], source: str, what: str, *, titled: bool) -> dict[str, str]:
    """Return texts by their ids."""
    found: dict[str, str] = {}
    for place, row in rows:
        name = next((name for name in _IDS if name in row), None)
        if name is None or "text" not in row:
            raise InputError(f"{place}: {what} need the fields _id and text; found: {names_of(row)}")
        identity = identity_of(row, name, place)
        if identity is None:
            raise InputError(f"{place}: no _id; every one of the {what} needs its own")
        if identity in found:
            raise InputError(
                f"{place}: the _id {identity!r} stands there twice; {what} need ids of their own"
            )
        parts = [text_of(row, part, place) or "" for part in (("title", "text") if titled else ("text",))]
        found[identity] = " ".join(parts).strip()
        if not (found[identity] or titled):
            raise InputError(f"{place}: the query {identity!r} is blank; fill it in, or remove it")
    if not found:
        raise InputError(f"{source} holds no {what}; check the file")
    return found


def _grades(
    rows: Iterable[Item], source: str, asked: Mapping[str, str]
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Return the grades above 0 of documents by query, in the order of the queries; and what was left out."""
    judged: dict[str, dict[str, float]] = {}
    for place, row in rows:
        names = [next((name for name in known if name in row), None) for known in _COLUMNS]
        if None in names:
            wanted = ", ".join(known[0] for known in _COLUMNS)
            raise InputError(
                f"{place}: qrels need the columns {wanted}, named in the first line; found: {names_of(row)}"
            )
        query, document = (identity_of(row, str(name), place) for name in names[:2])
        grade = number_of(row[str(names[2])])
        if query is None or document is None or not np.isfinite(grade):
            raise InputError(f"{place}: a query, a document and a number are needed; mend or remove the row")
        if judged.setdefault(query, {}).setdefault(document, grade) != grade:
            raise InputError(f"{place}: {query!r} and {document!r} stand there twice, with different scores")
    if not judged:
        raise InputError(f"{source} holds no rows; check the file")
    relevant = {
        query: {at: grade for at, grade in judged.get(query, {}).items() if grade > 0} for query in asked
    }
    wanted_queries = {query: found for query, found in relevant.items() if found}
    if not wanted_queries:
        raise InputError(f"{source}: none of its queries is there with a relevant document; check the ids")
    notes = []
    if unknown := len(judged.keys() - asked.keys()):
        notes.append(f"{counted(unknown, 'query', 'queries')} of the qrels left out: not among the queries")
    if unjudged := sum(query not in judged for query in asked):
        notes.append(f"{counted(unjudged, 'query', 'queries')} left out: not in the qrels")
    if empty := sum(query in judged for query in asked) - len(wanted_queries):
        notes.append(
            f"{counted(empty, 'query', 'queries')} left out: no relevant document "
            f"(pytrec_eval gives {'it' if empty == 1 else 'them'} 0)"
        )
    return wanted_queries, notes
