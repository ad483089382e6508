"""Every kind of table gives the same rows, lazily, and every fault is named by file and line."""

import csv
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.errors import InputError
from angle_data.tables import identity_of, number_of, read_table, read_texts, text_of

ROWS = [{"id": "a", "text": 'He said "no", twice.'}, {"id": "b", "text": "Ünï 好\nsecond line"}]
FLAT = [{"id": "a", "text": 'He said "no",\ttwice.'}, {"id": "b", "text": "Ünï 好"}, {"id": "", "text": ""}]


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
        ("t.csv", b"a;x,b\n1,2\n3\n", r"t.csv:3: expected 2 fields .*; found 1; quote texts .* ','"),
        ("t.csv", b"a;b\n1;2;3\n", r"t.csv:2: expected 2 fields .*; found 3; quote texts that hold ';'"),
        ("t.csv", b'a,b\n1,2\n1,"2\n3,4\n', r"t.csv:3: not valid CSV .*; .* every quote closed"),
        ("t.csv", b"a,b\n1,\xff\xfe\n", r"t.csv:2: not UTF-8 text"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 9999, mtime=0)[:-12], r"t.csv.gz: damaged gzip file"),
        ("t.jsonl", b'{"a": 1}\n[2]\n', r"t.jsonl:2: expected a JSON object, got list"),
        ("t.parquet", b"PAR2", r"t.parquet: not a readable parquet file \(.+\); write it again"),
        ("t.xlsx", b"", r"t.xlsx: unknown kind of file; give \.jsonl, .* .parquet or a data set folder"),
        (
            "t.tsv",
            b"a,x\tb\n1\n",
            r"t.tsv:2: expected 2 fields .*; found 1; .* no tabs and no line ends:",
        ),
        ("t.tsv", b'"a"\t"b"\n"x"\t"y "z" y"\n', r"t.tsv:2: the fields of the header are in quotes, but"),
        ("t.tsv", b'"a"\t"b"\n"x"\t"one\ntwo"\n', r"t.tsv:2: the fields of the header are in quotes, but"),
        ("t.csv", b"id,text,text\na,b,c\n", "column 'text' stands there twice"),
        ("t.csv", b"The disk is full.,4.5\n", "no column 'b'; .*; the first line must name the columns"),
        ("t.json", b'[{"a": 1},\n {"a": 2]', r"t.json:2: not valid JSON \(.*\); write the file again"),
        ("t.json", b'[{"a": 1}, 2]', r"t.json: row 2: expected a JSON object, got int"),
        ("t.json", b'{"a": {"0": 1},\n"b": 2}', r"t.json:1: not valid JSON .*; a .json file holds a list of"),
        ("t.json", b"[" * 99_999, r"t.json: not valid JSON \(nested too deep"),
        ("t.jsonl", b'{"a": 1}\n{"a": ', r"t.jsonl:2: not valid JSON \(.*\); the file ends within this line"),
        ("t.csv", b"\xff\xfea\x00,\x00b\x00\n", r"t.csv: damaged UTF-16 text; write it again, in UTF-8"),
        (
            "t.arrow",
            b"ARROW1",
            r"t.arrow: not a readable arrow file or saved data set \(.+\); write",
        ),
    ],
)
def test_damaged_and_unknown_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_table(tmp_path / name, require=["b"] if b"4.5" in content else []))
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


def rows_of(path):
    return [row for _, row in read_table(path)]


OPENED = ['"Disk', "full", 'He said "no".', '"Quoted, whole."', '"', '""', "it's", 'an "inner" one', '"']


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz", "T.TSV"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_in_a_tsv_are_text_and_every_line_is_a_row(tmp_path, name, end):
    lines = ["id\ttext", *(f"{number}\t{text}" for number, text in enumerate(OPENED))]
    content = (end.join(lines) + end).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    found = list(read_table(tmp_path / name))
    assert [row["text"] for _, row in found] == OPENED
    assert [place for place, _ in found] == [f"{tmp_path / name}:{n}" for n in range(2, len(OPENED) + 2)]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize(
    "rows", [FLAT, FLAT[1:], [{"id": "a", "text": "a\tb"}], [{"id": "a", "text": 'a "b"'}]]
)
def test_quotes_around_fields_of_a_tsv_are_taken_off_where_the_whole_file_has_them(tmp_path, quoting, rows):
    with (tmp_path / "t.tsv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t", quoting=quoting)
        writer.writeheader()
        writer.writerows(rows)
    assert rows_of(tmp_path / "t.tsv") == rows


def test_excel_puts_quotes_around_texts_with_commas(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('id\ttext\n1\t"Full, again."\n2\tEmpty.\n')
    assert [row["text"] for row in rows_of(path)] == ["Full, again.", "Empty."]
    path.write_text('id\ttext\n1\t"Full, again."\n2\tEmpty, not full.\n')  # nobody encloses one of two
    assert [row["text"] for row in rows_of(path)] == ['"Full, again."', "Empty, not full."]
    path.write_text('id\ttext\n1\t"Full."\n2\tEmpty.\n')  # nothing that asks for quotes: they are the text's
    assert [row["text"] for row in rows_of(path)] == ['"Full."', "Empty."]


LINE = st.text("a\" ',;好\u2028\x0b", min_size=1)  # neither tabs nor what ends a line


@given(st.lists(st.tuples(LINE, LINE), max_size=6))
def test_a_tsv_without_quoting_has_as_many_rows_as_lines(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tsv") / "t.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in [("a", "b"), *rows]), encoding="utf-8", newline="")
    assert len(list(read_table(path))) == len(rows)


@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=6))
def test_a_tsv_with_quotes_around_all_is_read_as_it_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tsv") / "t.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t", quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    assert [tuple(row.values()) for row in rows_of(path)] == rows


def test_blank_lines_are_rows_of_one_column_alone(tmp_path):
    (tmp_path / "t.tsv").write_text("text\none\n\ntwo\n")
    assert [row["text"] for row in rows_of(tmp_path / "t.tsv")] == ["one", "", "two"]
    (tmp_path / "t.tsv").write_text("id\ttext\n1\tone\n\n2\ttwo\n\n")
    assert [row["text"] for row in rows_of(tmp_path / "t.tsv")] == ["one", "two"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", 'a,b\r\n"x,\r\ny",Ünï 好\r\n'),
        ("t.tsv", "a\tb\rx,\r\ry\tÜnï 好"),
        ("t.json", '[{"a": "x", "b": "Ünï 好"}]'),
        ("t.jsonl", '{"a": "x",  "b": "Ünï 好"}\n'),
        ("t.csv", 'sep=;\n a ;b\n"x; y";Ünï 好\n'),
    ],
)
def test_files_may_be_in_utf_16_and_have_a_byte_order_mark(tmp_path, encoding, name, content):
    content = content.replace("x,\r\ry", "x, y")
    (tmp_path / name).write_bytes(("\ufeff" * encoding.endswith("e") + content).encode(encoding))
    [row] = rows_of(tmp_path / name)
    assert (row["a"].replace("\r\n", " ")[0], row["b"]) == ("x", "Ünï 好")


def test_a_json_file_holds_a_list_or_an_object_a_line(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('\n [{"a": 1},\n{"a": null}]')
    assert list(read_table(path)) == [(f"{path}: row 1", {"a": 1}), (f"{path}: row 2", {"a": None})]
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert list(read_table(path)) == [(f"{path}:1", {"a": 1}), (f"{path}:3", {"a": 2})]
    for nothing in ("", "\n", "[]"):
        path.write_text(nothing)
        assert rows_of(path) == []


def test_plain_texts_may_be_in_utf_16(tmp_path):
    (tmp_path / "t.txt").write_text('"One\ntwo\n', encoding="utf-16")
    rows = read_texts(tmp_path / "t.txt", "text", "id", ["text"], "")
    assert [row["text"] for _, row in rows] == ['"One', "two"]


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (True, 1),
        ("True", 1),
        ("yes", 1),
        ("FALSE", 0),
        ("No ", 0),
        ("3,5", 3.5),
        ("-0,25", -0.25),
        (" 4.0 ", 4),
    ],
)
def test_cells_are_numbers_as_people_and_programs_write_them(cell, number):
    assert number_of(cell) == number


@pytest.mark.parametrize("cell", ["", None, "1,2,3", "1.234,5", "maybe", "nan", "inf", [1], float("nan")])
def test_other_cells_are_no_numbers(cell):
    assert str(number_of(cell)) == "nan"


def test_ids_are_strings_and_whole_numbers_also_as_pandas_writes_them():
    def identity(value):
        return identity_of({"id": value}, "id", "f:1")

    assert [identity(value) for value in (12, 12.0, " 12 ", "12.0")] == ["12", "12", "12", "12.0"]
    assert [identity(value) for value in (None, float("nan"), "", " ")] == [None] * 4
    for value in (True, 1.5, [1]):
        with pytest.raises(InputError, match=r"^f:1: field 'id' must be a string or integer, got"):
            identity(value)


def test_texts_are_strings_without_nul_and_may_be_missing():
    assert [text_of({"t": value}, "t", "f:1") for value in ("a\ud83d", None, float("nan"))] == [
        "a\ufffd",
        None,
        None,
    ]
    assert text_of({}, "t", "f:1") is None
    with pytest.raises(
        InputError, match=r"^f:1: field 't' holds NUL characters.*; convert the file.* or remove"
    ):
        text_of({"t": "a\0b"}, "t", "f:1")
    with pytest.raises(InputError, match=r"^f:1: field 't' must be a string, got int"):
        text_of({"t": 3}, "t", "f:1")
