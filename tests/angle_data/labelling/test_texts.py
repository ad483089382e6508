"""Reading texts: fields, ids, blanks and repetitions, and every bad row named by file and line."""

import gzip

import pytest

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.labelling.texts import TextFile
from angle_data.records import Text
from angle_data.text import content_id


def write(path, rows):
    write_jsonl(path, rows)
    return path


def test_names_of_fields_missing_ids_and_empty_cells(tmp_path):
    rows = [{"key": 7, "body": "One."}, {"key": None, "body": "Two."}, {"key": "k3", "body": None}]
    path = write(tmp_path / "t.jsonl", rows)
    texts = TextFile(path, text_field="body", id_field="key")
    assert list(texts) == [Text("7", "One."), Text(content_id("Two."), "Two.")]
    assert texts.blank == 1
    with pytest.raises(InputError, match=r"'text'; .* found: body, key \(choose with --text-field\)$"):
        TextFile(path)


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz", "T.TXT"])
def test_lines_of_a_text_file_get_ids_from_their_content(tmp_path, name):
    content = b"Disk is full.\n\n  Node left.  \rDisk is full.\r\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    texts = TextFile(path)
    assert list(texts) == [Text(content_id(t), t) for t in ("Disk is full.", "Node left.")]
    assert (texts.count, texts.blank, texts.repeated) == (2, 1, 1)


def test_blank_and_repeated_rows_are_counted_and_the_limit_counts_texts(tmp_path):
    texts = [(1, "One."), (2, "  "), (1, "One."), (3, "Three."), (4, "Four.")]
    path = write(tmp_path / "t.jsonl", [{"id": number, "text": text} for number, text in texts])
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


def test_halves_of_surrogate_pairs_become_replacement_characters(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": "a\\udc00", "text": "Disk \\ud83d is full \\ud83d\\ude00."}\n')
    assert list(TextFile(path)) == [Text("a\ufffd", "Disk \ufffd is full \U0001f600.")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": " "}\n', r"t.jsonl holds no texts"),
        ('{"text": "One."}\n\n{"text": 5}\n', r"t.jsonl:3: field 'text' must be a string, got"),
        ('{"text": "One.", "id": [1]}\n', r"t.jsonl:1: field 'id' must be .* integer, got list"),
        ('{"text": "1.", "id": 1}\n{"text": "2.", "id": "1"}\n', r"t.jsonl:2: id '1' stands"),
        ('{"text": "One."}\n{"text": "\\u0000"}\n', "t.jsonl:2: field 'text' holds NUL .* UTF-16; convert"),
    ],
)
def test_a_bad_row_is_named(tmp_path, content, message):
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        TextFile(path)
