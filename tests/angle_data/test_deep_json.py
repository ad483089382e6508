"""JSON that is nested too deep is a mistake of whoever wrote it, one line, wherever JSON is read."""

import pytest

from angle_data.annotators.batch_state import BatchState
from angle_data.errors import InputError
from angle_data.jsonl import loads, read_jsonl
from angle_data.labelling.asking.journal import open_journal
from angle_data.records import read_run_file

DEEP = "[" * 99_999


@pytest.mark.parametrize("text", [DEEP, '{"a": ' * 99_999, DEEP.encode()], ids=["lists", "objects", "bytes"])
def test_nothing_but_a_value_error_comes_of_it(text):
    with pytest.raises(ValueError, match="nested too deep"):
        loads(text)


def journal(folder):
    with open_journal(folder, "m") as found:
        assert "x" not in found


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("rows.jsonl", lambda folder: list(read_jsonl(folder / "rows.jsonl"))),
        ("run.json", read_run_file),
        ("batches.jsonl", BatchState),
        ("journal.jsonl", journal),
    ],
)
def test_files_are_named(tmp_path, name, read):
    (tmp_path / name).write_text(DEEP + "\n")
    with pytest.raises(InputError, match=name):
        read(tmp_path)
