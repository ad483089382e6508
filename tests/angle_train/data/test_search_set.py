"""Documents, queries and grades: BEIR's layout, from folders and the hub, and what is said of what is odd."""

import gzip
import json

import pytest

from angle_data.errors import InputError
from angle_train.data.search_set import load_dev_searches, load_search, load_search_files, part_of

CORPUS = [
    {"_id": "d1", "title": "Replica lag", "text": "the replica lags behind"},
    {"_id": "d2", "title": "", "text": "the disk is full"},
    {"_id": "d10", "text": "the node is gone"},
]
QUERIES = [{"_id": "q1", "text": "lag"}, {"_id": "q2", "text": "full disk"}, {"_id": "q3", "text": "moon"}]
QRELS = [
    ("q1", "d1", 2),
    ("q1", "d2", 0),
    ("q2", "d2", 1),
    ("q2", "gone", 1),
    ("q9", "d1", 1),
    ("q3", "d1", 0),
]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def tsv(rows, header="query-id\tcorpus-id\tscore"):
    return "\n".join([header, *("\t".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "notes"
    (root / "qrels").mkdir(parents=True)
    with gzip.open(root / "corpus.jsonl.gz", "wt") as stream:
        stream.write(lines(CORPUS))
    (root / "queries.jsonl").write_text(lines(QUERIES))
    (root / "qrels/test.tsv").write_text(tsv(QRELS))
    (root / "qrels/dev.tsv").write_text(tsv([("q3", "d10", 1)]))
    return root


def test_a_folder_in_beirs_layout_is_read(folder):
    found = load_search(str(folder))
    assert found.name == "notes"
    assert found.ids == ["d2", "d10", "d1"]  # descending, as strings
    assert found.texts == ["the disk is full", "the node is gone", "Replica lag the replica lags behind"]
    assert (found.query_ids, found.queries) == (["q1", "q2"], ["lag", "full disk"])
    assert (found.grades, found.missing) == ([{2: 2.0}, {0: 1.0}], [[], [1.0]])
    assert found.own.tolist() == [-1, -1]
    assert load_search(str(folder), "dev").queries == ["moon"]


def test_what_is_left_out_is_counted_and_said(folder, caplog):
    notes = load_search(str(folder)).notes
    assert notes == [
        "1 query of the qrels left out: not among the queries",
        "1 query left out: no relevant document (pytrec_eval gives it 0)",
        "1 of 3 relevant documents is not in the corpus; it counts as not found, as in BEIR",
    ]
    assert [record.getMessage() for record in caplog.records] == [f"notes: {note}" for note in notes]
    assert load_search(str(folder), "dev").notes == ["2 queries left out: not in the qrels"]


def test_a_query_with_the_id_of_a_document_is_said(folder):
    (folder / "queries.jsonl").write_text(lines([{"_id": "d2", "text": "the disk is full"}]))
    (folder / "qrels/test.tsv").write_text(tsv([("d2", "d1", 1)]))
    found = load_search(str(folder))
    assert found.own.tolist() == [0]
    assert found.notes == [
        "1 query has the id of a document, which is left out of the results of that query, as in BEIR"
    ]
    (folder / "queries.jsonl").write_text(lines([{"_id": "d2", "text": "lag"}]))
    assert (
        load_search(str(folder))
        .notes[0]
        .endswith("; queries and documents seem to be numbered apart: give them ids of their own")
    )


def test_the_only_split_is_taken(folder):
    (folder / "qrels/test.tsv").unlink()
    assert load_search(str(folder)).queries == ["moon"]


def test_what_chooses_is_the_dev_split_or_the_only_one(folder):
    qrels = folder / "qrels"
    assert load_dev_searches([str(folder)])[0].queries == ["moon"]
    (qrels / "dev.tsv").rename(qrels / "validation.tsv")
    assert load_dev_searches([str(folder)])[0].queries == ["moon"]
    (qrels / "validation.tsv").rename(qrels / "train.tsv")
    with pytest.raises(
        InputError, match=r"no dev.tsv; found: test, train; call the qrels that are to choose"
    ):
        load_dev_searches([str(folder)])
    (qrels / "train.tsv").unlink()
    assert load_dev_searches([str(folder)])[0].queries == ["lag", "full disk"]


def test_of_a_large_search_a_part_is_drawn_that_holds_all_that_is_relevant(tmp_path, caplog):
    root = tmp_path / "many"
    (root / "qrels").mkdir(parents=True)
    count = 200
    (root / "corpus.jsonl").write_text(lines([{"_id": f"d{i}", "text": f"text {i}"} for i in range(count)]))
    # The last query has the id of a document, and one that no corpus has.
    queries = [*({"_id": f"q{i}", "text": f"query {i}"} for i in range(19)), {"_id": "d1", "text": "own"}]
    (root / "queries.jsonl").write_text(lines(queries))
    rows = [(f"q{i}", f"d{10 * i + j}", 1 + j) for i in range(19) for j in range(2)]
    (root / "qrels/dev.tsv").write_text(tsv([*rows, ("d1", "d5", 3), ("d1", "gone", 1)]))
    whole = load_search(str(root), "dev")
    assert part_of(whole, 20, count) is whole
    with caplog.at_level("INFO", logger="angle"):
        part = part_of(whole, 8, 50)
    assert (len(part), len(part.ids), len(part.texts)) == (8, 50, 50)
    assert part.ids == sorted(part.ids, reverse=True)
    wanted = {query: row for row, query in enumerate(whole.query_ids)}
    for row, query in enumerate(part.query_ids):
        before = wanted[query]
        assert part.queries[row] == whole.queries[before]
        assert part.missing[row] == whole.missing[before]
        graded = {whole.ids[place]: grade for place, grade in whole.grades[before].items()}
        assert {part.ids[place]: grade for place, grade in part.grades[row].items()} == graded
    assert all(part.texts[place] == f"text {name[1:]}" for place, name in enumerate(part.ids))
    assert part.notes[-1] in caplog.text
    assert part.notes[-1].startswith("8 of 20 queries and 50 of 200 documents, drawn by hash")
    assert part_of(whole, 8, 50).sha256() == part.sha256()
    every = part_of(whole, 20, 50)
    own = every.query_ids.index("d1")
    assert every.own[own] == (every.ids.index("d1") if "d1" in every.ids else -1)
    assert len(part_of(whole, 8, 4).ids) == len({at for found in part.grades for at in found})


def test_digests_depend_on_texts_and_grades(folder):
    before = load_search(str(folder)).sha256()
    (folder / "qrels/test.tsv").write_text(tsv([("q1", "d1", 1), *QRELS[1:]]))
    after = load_search(str(folder)).sha256()
    (folder / "queries.jsonl").write_text(lines([QUERIES[0] | {"text": "lags"}, *QUERIES[1:]]))
    assert len({before, after, load_search(str(folder)).sha256()}) == 3


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("queries.jsonl", "", "queries.jsonl holds no queries; check the file"),
        (
            "queries.jsonl",
            lines([{"question": "x"}]),
            ":1: queries need the fields _id and text; found: quest",
        ),
        ("queries.jsonl", lines([{"_id": "q1", "text": " "}]), ":1: the query 'q1' is blank; fill it in"),
        ("queries.jsonl", lines([{"_id": None, "text": "x"}]), ":1: no _id; every one of the queries needs"),
        ("queries.jsonl", lines([QUERIES[0]] * 2), ":2: the _id 'q1' stands there twice; queries need ids"),
        ("corpus.jsonl", lines([{"_id": "x", "text": "y"}]), "none of its relevant documents is in"),
        ("corpus.jsonl", lines([{"_id": "x", "text": 7}]), ":1: field 'text' must be a string, got int"),
        ("qrels/test.tsv", "", "test.tsv holds no rows; check the file"),
        ("qrels/test.tsv", tsv([]), "test.tsv holds no rows; check the file"),
        (
            "qrels/test.tsv",
            tsv([("q1", "0", "d1")], "q1\t0\td1"),
            "qrels need the columns query-id, corpus-id,",
        ),
        ("qrels/test.tsv", tsv([("q1", "d1", "x")]), ":2: a query, a document and a number are needed; mend"),
        ("qrels/test.tsv", tsv([("q7", "d1", 1)]), "none of its queries is there with a relevant document"),
        ("qrels/test.tsv", tsv([*QRELS, ("q1", "d1", 1)]), "'q1' and 'd1' stand there twice, with different"),
    ],
)
def test_files_that_are_empty_or_of_another_layout_are_one_line(folder, file, content, message):
    (folder / file).write_text(content)
    with pytest.raises(InputError) as caught:
        load_search(str(folder))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_are_named(folder, tmp_path):
    with pytest.raises(InputError, match=r"nowhere does not exist; give a folder with corpus\.jsonl, que"):
        load_search(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"queries\.jsonl is a file; give a folder with corpus\.jsonl"):
        load_search(str(folder / "queries.jsonl"))
    with pytest.raises(InputError, match=r"has no train\.tsv; found: dev, test; choose with --split"):
        load_search(str(folder), "train")
    (folder / "corpus.jsonl.gz").unlink()
    with pytest.raises(InputError, match=r"notes has no corpus\.jsonl \(nor \.jsonl\.gz, "):
        load_search(str(folder))


def test_three_files_of_other_kinds_do_too(folder):
    (folder / "grades.csv").write_text("query_id,corpus_id,score\nq1,d1,1\n")
    paths = (folder / "corpus.jsonl.gz", folder / "queries.jsonl", folder / "grades.csv")
    found = load_search_files(*map(str, paths))
    assert (found.name, found.grades) == ("queries", [{2: 1.0}])


@pytest.mark.parametrize(
    ("name", "graded"), [("BeIR/notes", "BeIR/notes-qrels"), ("mteb/notes", "mteb/notes")]
)
def test_the_hubs_two_layouts_are_read(monkeypatch, name, graded):
    import datasets

    parts = {
        (name, "corpus", "corpus"): CORPUS,
        (name, "queries", "queries"): QUERIES,
        (graded, None if graded != name else "default", "test"): [
            dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in QRELS
        ],
    }

    def load_dataset(of, config=None, *, split, revision):
        return datasets.Dataset.from_list(parts[of, config, split])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    found = load_search(f"hub:{name}")
    assert (found.name, found.queries) == ("notes", ["lag", "full disk"])
    own = "validation" if name.startswith("BeIR") else "dev"
    parts[graded, None if graded != name else "default", own] = [
        {"query-id": "q3", "corpus-id": "d10", "score": 1}
    ]
    assert load_dev_searches([f"hub:{name}"])[0].queries == ["moon"]
