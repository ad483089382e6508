"""Reading texts: every file kind gives the same texts, and every bad row is named by file and line."""

import csv
import gzip
import json

import pytest

from angle_data.errors import InputError
from angle_data.labelling.texts import TextFile
from angle_data.records import Text
from angle_data.text import content_id

ROWS = [
    {"id": "a", "text": "Disk is full."},
    {"id": "b", "text": 'He said "no", twice.'},
    {"id": 7, "text": "Ünï 好"},
]
TEXTS = [Text("a", "Disk is full."), Text("b", 'He said "no", twice.'), Text("7", "Ünï 好")]


def write(path, rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    if path.name.endswith(".jsonl.gz"):
        path.write_bytes(gzip.compress(lines.encode()))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        rows = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text(lines)
    return path


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.csv", "t.parquet"])
def test_every_kind_gives_the_same_texts(tmp_path, name):
    assert list(TextFile(write(tmp_path / name, ROWS))) == TEXTS


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
def test_an_empty_cell_is_a_blank_text(tmp_path, name):
    rows = [{"id": "a", "text": "Disk is full."}, {"id": "b", "text": None}]
    texts = TextFile(write(tmp_path / name, rows))
    assert list(texts) == [Text("a", "Disk is full.")]
    assert texts.blank == 1


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet"])
def test_a_missing_column_names_the_option(tmp_path, name):
    path = write(tmp_path / name, [{"id": "a", "body": "Disk is full."}])
    with pytest.raises(InputError, match=r"'text'; .* found: .*body.* \(choose with --text-field\)$"):
        list(TextFile(path))


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz", "T.TXT"])
def test_lines_of_a_text_file_get_ids_from_their_content(tmp_path, name):
    content = b"Disk is full.\n\n  Node left.  \r\nDisk is full.\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    texts = TextFile(path)
    assert list(texts) == [Text(content_id(t), t) for t in ("Disk is full.", "Node left.")]
    assert (texts.count, texts.blank, texts.repeated) == (2, 1, 1)


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet"])
def test_other_field_names_and_missing_ids(tmp_path, name):
    rows = [{"key": "k1", "body": "One."}, {"key": None, "body": "Two."}]
    texts = list(TextFile(write(tmp_path / name, rows), text_field="body", id_field="key"))
    assert texts == [Text("k1", "One."), Text(content_id("Two."), "Two.")]


def test_blank_and_repeated_rows_are_counted_and_the_limit_counts_texts(tmp_path):
    rows = [
        {"id": i, "text": t} for i, t in [(1, "One."), (2, "  "), (1, "One."), (3, "Three."), (4, "Four.")]
    ]
    path = write(tmp_path / "t.jsonl", rows)
    first = TextFile(path, limit=2)
    assert [text.id for text in first] == ["1", "3"]
    assert (first.count, first.blank, first.repeated) == (2, 1, 1)
    everything = TextFile(path)
    assert [text.id for text in everything] == ["1", "3", "4"]
    assert (everything.count, everything.blank, everything.repeated) == (3, 1, 1)


def test_a_limit_does_not_read_on(tmp_path):
    path = write(tmp_path / "t.jsonl", [{"text": f"Node {i} left."} for i in range(600)])
    with path.open("a") as stream:
        stream.write("not json\n")
    assert TextFile(path, limit=10).count == 10
    with pytest.raises(InputError, match=r"t.jsonl:601: not valid JSON"):
        TextFile(path)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("t.txt", "Disk is full.\nNode left.\n".encode("utf-16-le"), "t.txt:1"),
        ("t.txt", b"Disk is full.\nNode \0 left.\n", "t.txt:2"),
        ("t.jsonl", b'{"text": "Disk is full."}\n{"text": "Node \\u0000 left."}\n', "t.jsonl:2"),
        ("t.csv", b"text\nDisk is full.\nNode \0 left.\n", "t.csv:3"),
    ],
)
def test_nul_characters_are_refused(tmp_path, name, content, place):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{place}: the text holds NUL .* UTF-16 does; convert the file"):
        TextFile(path)


def test_halves_of_surrogate_pairs_become_replacement_characters(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": "a\\udc00", "text": "Disk \\ud83d is full \\ud83d\\ude00."}\n')
    assert list(TextFile(path)) == [Text("a\ufffd", "Disk \ufffd is full \U0001f600.")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", "", r"t.jsonl holds no texts"),
        ("t.jsonl", '{"text": " "}\n', r"t.jsonl holds no texts"),
        ("t.jsonl", '{"text": "One."}\n{"text": \n', r"t.jsonl:2: not valid JSON"),
        ("t.jsonl", '{"text": "One."}\n["Two."]\n', r"t.jsonl:2: expected a JSON object, got list"),
        (
            "t.jsonl",
            '{"text": "One."}\n\n{"text": 5}\n',
            r"t.jsonl:3: field 'text' must be a string, got",
        ),
        ("t.jsonl", '{"text": "One.", "id": [1]}\n', r"t.jsonl:1: field 'id' must be .* integer, got list"),
        (
            "t.jsonl",
            '{"text": "1.", "id": 1}\n{"text": "2.", "id": "1"}\n',
            r"t.jsonl:2: id '1' stands",
        ),
        ("t.txt", b"One.\n\xff\n", r"t.txt:\d: not UTF-8 text"),
        (
            "t.xlsx",
            "",
            r"t.xlsx: unknown kind of file; give .jsonl.*, .csv.* .txt",
        ),
        ("t.json", "[]", r"t.json: unknown kind of file"),
    ],
)
def test_a_bad_file_or_row_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        TextFile(path)
