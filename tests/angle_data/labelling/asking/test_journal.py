"""The journal: survives torn lines, belongs to one process and one model, and finds rows again."""

import json

import pytest

from angle_data.errors import InputError
from angle_data.labelling.asking.journal import Tokens, open_journal, read_journal

KEYS = [f"{i:032x}" for i in range(4)]


def row(number, model="m"):
    return {"key": KEYS[number], "model": model, "reply": f"reply {number} – ü"}


def finished(run, model="m"):
    """The keys that a reader of the journal finds, without locking it."""
    with read_journal(run, model) as journal:
        return {key for key in KEYS if key in journal}


def fill(run, *numbers):
    with open_journal(run, "m") as journal:
        for number in numbers:
            journal.append(row(number))


def test_a_torn_last_line_is_cut_off_and_everything_before_it_kept(tmp_path):
    fill(tmp_path, 0, 1, 2)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    start_of_last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(start_of_last + 1, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert finished(tmp_path) == set(KEYS[:2])
        with open_journal(tmp_path, "m") as journal:
            journal.append(row(3))
            assert [journal.row(key) for key in KEYS] == [row(0), row(1), None, row(3)]
        assert path.read_bytes().count(b"\n") == 3


def test_a_row_that_only_lost_its_newline_is_kept(tmp_path):
    fill(tmp_path, 0, 1)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    fill(tmp_path, 2)
    with open_journal(tmp_path, "m") as journal:
        assert [journal.row(key) for key in KEYS[:3]] == [row(0), row(1), row(2)]


BAD = [b"my own notes", b"[]", b'{"key": "zz", "model": "m", "reply": 1}', b'{"key": "00"}']


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("more", [0, 1], ids=["last line", "between others"])
def test_a_whole_line_that_is_damaged_is_named_and_kept(tmp_path, bad, more):
    fill(tmp_path, 0, 1)
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], bad, *lines[1 : 1 + more]]) + b"\n")
    before = path.read_bytes()
    message = r"journal.jsonl:2: .*; repair or remove the line"
    with pytest.raises(InputError, match=message), open_journal(tmp_path, "m"):
        pass
    assert path.read_bytes() == before


USAGES = [
    ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, (10, 5)),
    ({"prompt_tokens": 10}, (10, 0)), (None, (0, 0)), ({"prompt_tokens": "ten"}, (0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("usage", "tokens"), USAGES)
def test_tokens_are_counted_when_written_and_when_read(tmp_path, usage, tokens):
    with open_journal(tmp_path, "m") as journal:
        journal.append(row(0) | {"usage": usage, "seconds": 0.25})
        assert journal.spent == Tokens(*tokens)
    with read_journal(tmp_path, "m") as journal:
        assert (journal.spent, journal.spent.total) == (Tokens(*tokens), sum(tokens))


def test_a_row_of_another_model_is_found_among_many(tmp_path):
    fill(tmp_path, 0, 1, 2)
    with (tmp_path / "journal.jsonl").open("a") as stream:
        stream.write(json.dumps(row(3, model="other")) + "\n")
    for opened in (read_journal, open_journal):
        with pytest.raises(InputError, match="holds a run of 'other'"), opened(tmp_path, "m"):
            pass


def test_a_row_damaged_while_the_run_goes_on_is_named_when_it_is_needed(tmp_path):
    path = tmp_path / "journal.jsonl"
    with open_journal(tmp_path, "m") as journal:
        journal.append(row(0))
        journal.append(row(1))
        path.write_bytes(path.read_bytes().replace(b'"reply": "', b'"reply": oops', 1)[:-1] + b"\n")
        with pytest.raises(InputError, match=r"journal.jsonl at byte 0: not a valid journal row; repair or"):
            journal.row(KEYS[0])


def test_a_journal_has_one_writer(tmp_path):
    used = pytest.raises(InputError, match="in use by another process")
    with open_journal(tmp_path, "m"), used, open_journal(tmp_path, "m"):
        pass
