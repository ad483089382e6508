"""Every kind of table gives the same rows, lazily, and every fault is named by file and line."""

import csv
import gzip
import json

import pytest

from angle_data.errors import InputError
from angle_data.tables import read_table

ROWS = [{"id": "a", "text": 'He said "no", twice.'}, {"id": "b", "text": "Ünï 好\nsecond line"}]


def write(path, rows=ROWS):
    if path.name.endswith(".parquet"):
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "wt", encoding="utf-8", newline="") as stream:
        if ".jsonl" not in path.name or ".csv" in path.name:
            mark = "\t" if "TSV" in path.name else ","
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]), delimiter=mark)
            writer.writeheader()
            writer.writerows(rows)
        else:
            stream.write("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("t.jsonl", ["t.jsonl:1", "t.jsonl:2"]),
        ("t.jsonl.gz", ["t.jsonl.gz:1", "t.jsonl.gz:2"]),
        ("t.csv", ["t.csv:2", "t.csv:4"]),  # the last line of a row that spans two
        ("t.csv.gz", ["t.csv.gz:2", "t.csv.gz:4"]),
        ("t.parquet", ["t.parquet: row 1", "t.parquet: row 2"]),
        ("T.TSV.GZ", ["T.TSV.GZ:2", "T.TSV.GZ:4"]),
        ("t.jsonl.csv", ["t.jsonl.csv:2", "t.jsonl.csv:4"]),
    ],
)
def test_every_kind_gives_the_same_rows_and_their_places(tmp_path, name, places):
    found = list(read_table(write(tmp_path / name)))
    assert [row for _, row in found] == ROWS
    assert [place for place, _ in found] == [f"{tmp_path}/{place}" for place in places]


def test_parquet_rows_are_numbered_through_all_batches_and_only_wanted_columns_are_read(tmp_path):
    path = write(tmp_path / "t.parquet", [{"a": i, "b": "x" * 9} for i in range(10_000)])
    found = list(read_table(path, columns=["a", "absent"]))
    assert found[-1] == (f"{path}: row 10000", {"a": 9999})
    assert [row["a"] for _, row in found] == list(range(10_000))


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv"])
def test_reading_is_lazy(tmp_path, name):
    path = write(tmp_path / name, ROWS * 5000)
    with path.open("ab") as stream:
        stream.write(b"\n\xff")
    rows = read_table(path)
    assert [next(rows)[1], next(rows)[1]] == ROWS
    with pytest.raises(InputError, match="not UTF-8 text; convert the file to UTF-8"):
        list(rows)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_missing_required_column_is_named_with_those_there_are(tmp_path, name):
    path = write(tmp_path / name)
    assert len(list(read_table(path, require=["text"]))) == 2
    with pytest.raises(InputError, match=r"no column 'body'; columns found: id, text"):
        list(read_table(path, require=["text", "body"]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"a;x,b\n1,2\n3\n", r"t.csv:3: expected 2 fields as in the header; quote texts .* ','"),
        ("t.csv", b"a;b\n1;2;3\n", r"t.csv:2: expected 2 fields as in the header; quote texts that hold ';'"),
        ("t.csv", b'a,b\n1,"2\n', r"t.csv:\d: not valid CSV"),
        ("t.csv", b"a,b\n1,\xff\xfe\n", r"t.csv:2: not UTF-8 text"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 9999, mtime=0)[:-12], r"t.csv.gz: damaged gzip file"),
        ("t.jsonl", b'{"a": 1}\n[2]\n', r"t.jsonl:2: expected a JSON object, got list"),
        ("t.parquet", b"PAR2", r"t.parquet: not a readable parquet file \(.+\); write it again"),
        ("t.xlsx", b"", r"t.xlsx: unknown kind of file; give \.jsonl\[.gz\], .* or .parquet"),
        ("t.tsv", b"a,x\tb\n1\n", r"t.tsv:2: expected 2 fields as in the header; quote texts that hold '.t'"),
        ("t.csv", b"id,text,text\na,b,c\n", "column 'text' stands there twice"),
    ],
)
def test_damaged_and_unknown_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_table(tmp_path / name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_fields_may_stand_between_semicolons_as_where_a_comma_is_the_decimal_point(tmp_path, start):
    (tmp_path / "t.csv").write_bytes(start + b'a;b\r\n"one; two, three";3,5\r\n')
    [(place, row)] = read_table(tmp_path / "t.csv", require=["b"])
    assert (place.endswith("t.csv:2"), row) == (True, {"a": "one; two, three", "b": "3,5"})
    with pytest.raises(InputError, match="no column 'c'; columns found: a, b"):
        list(read_table(tmp_path / "t.csv", require=["c"]))


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(InputError, match=rf"{name} does not exist; check the path"):
        list(read_table(tmp_path / name))


def test_a_quoted_field_may_be_long_and_keeps_its_line_ends(tmp_path):
    text = "one\r\ntwo\rthree" + "x" * 200_000
    (tmp_path / "t.csv").write_bytes(f'id,text\r\na,"{text}"\r\n'.encode())
    assert [row for _, row in read_table(tmp_path / "t.csv")] == [{"id": "a", "text": text}]
    (tmp_path / "t.csv").write_text("")  # an empty file has no rows and lacks nothing
    assert list(read_table(tmp_path / "t.csv", require=["text"])) == []
