import gzip
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl, write_jsonl


def test_rows_come_back_with_their_line_numbers_from_gzip_and_after_a_byte_order_mark(tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress('\ufeff{"a": 1}\n\n  \n{"a": "é"}\n'.encode()))
    assert list(read_jsonl(path)) == [(1, {"a": 1}), (4, {"a": "é"})]


@pytest.mark.parametrize("line", ['{"a": ', "[" * 100_000, '{"n": ' + "9" * 5000 + "}"], ids=len)
def test_bad_lines_are_named(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{{}}\n{line}\n")
    with pytest.raises(InputError, match=r"rows.jsonl:2: not valid JSON"):
        list(read_jsonl(path))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
@pytest.mark.parametrize("line", [1, 150, 9_000])
def test_the_line_that_is_not_utf8_is_named_wherever_it_stands(tmp_path, name, newline, line):
    rows = [f'{{"a": "é"}}{newline}'.encode()] * 9_000
    rows[line - 1] = f'{{"a": "é"}}{newline}'.encode("latin-1")
    content = b"".join(rows)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(InputError, match=rf"{name}:{line}: not UTF-8 text"):
        list(read_jsonl(tmp_path / name))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_its_mark_is_named(tmp_path, encoding):
    path = tmp_path / "rows.jsonl"
    path.write_bytes('{"a": "b"}\n'.encode(encoding))
    with pytest.raises(
        InputError, match=r"rows.jsonl seems to be UTF-16 without its byte order mark; convert it"
    ):
        list(read_jsonl(path))
    for other in (b"a\0b\n", b"\0", '{"a": "b"}\n'.encode("utf-32-le"), b"\0\1\0\0\0\4name\0\0"):
        path.write_bytes(other)
        with pytest.raises(InputError, match=r"^(?!.*UTF-16)"):
            list(read_jsonl(path))
    path.write_bytes('\ufeff{"a": "b"}\n'.encode(encoding))
    assert [row for _, row in read_jsonl(path)] == [{"a": "b"}]


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match=r"is a directory; give a file"):
        list(read_jsonl(tmp_path))


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    write_jsonl(path, [{"a": 1}])

    def rows():
        yield {"a": 2}
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_jsonl(path, rows())
    assert path.read_text(encoding="utf-8") == '{"a": 1}\n'
    assert [item.name for item in path.parent.iterdir()] == ["rows.jsonl"]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=3), max_size=5))
def test_what_is_written_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("jsonl") / "rows.jsonl"
    try:
        write_jsonl(path, rows)
    except UnicodeEncodeError:  # lone surrogates are no text
        return
    assert [row for _, row in read_jsonl(path)] == rows


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_replaced_file_gets_the_rights_that_new_files_get(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_jsonl(tmp_path / "rows.jsonl", [{}])
        assert (tmp_path / "rows.jsonl").stat().st_mode & 0o777 == mode
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
