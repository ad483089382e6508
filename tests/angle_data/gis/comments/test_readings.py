"""Readings are kept: each comment is read once by one version of the grammar."""

import sqlite3
from functools import partial
from pathlib import Path

import pytest

from angle_data.errors import InputError
from angle_data.gis.comments import readings
from angle_data.gis.comments.reading import read_comment
from angle_data.gis.comments.readings import FILE_NAME, Readings
from angle_data.jsonl import read_jsonl

FIXTURES = Path(__file__).parents[3] / "fixtures" / "gis"


@pytest.fixture
def calls(monkeypatch):
    """The bodies that the grammar read."""
    seen = []

    def read(body, *rest, **more):
        seen.append(body)
        return read_comment(body, *rest, **more)

    monkeypatch.setattr(readings, "read_comment", read)
    return seen


def read(folder, body="Duplicate of #5", repo="o/r", number=9, author=None, **more):
    with Readings(folder) as opened:
        return opened.read(body, repo, number, author=author, **more)


def test_what_is_kept_is_what_the_grammar_says(tmp_path, calls):
    rows = [row for _, row in read_jsonl(FIXTURES / "comments-heldout.jsonl")]
    for _ in range(2):
        with Readings(tmp_path) as opened:
            for row in rows:
                given = row["body"], row["repo"], row["number"]
                assert opened.read(*given, author=row["author"]) == read_comment(*given, author=row["author"])
        seen, _ = len(calls), calls.clear()
    assert seen == 0, "nothing is read twice"


@pytest.mark.parametrize(
    "other",
    [
        {"body": "Duplicate of #6"}, {"repo": "o/s"}, {"number": 5}, {"author": "a[bot]"},
        {"hosts": frozenset({"github.example.com"})},
    ],
)  # fmt: skip
def test_whatever_a_reading_depends_on_makes_another(tmp_path, calls, other):
    read(tmp_path)
    read(tmp_path, **other)
    assert len(calls) == 2


def test_another_grammar_reads_anew(tmp_path, calls, monkeypatch):
    read(tmp_path)
    monkeypatch.setattr(readings, "grammar_version", lambda: "another")
    read(tmp_path)
    read(tmp_path)
    assert len(calls) == 2


def test_what_says_nothing_is_not_kept(tmp_path, calls):
    read(tmp_path, "Thanks for the report!")
    assert calls == []
    with sqlite3.connect(tmp_path / FILE_NAME) as database:
        assert database.execute("SELECT count(*) FROM readings").fetchone() == (0,)


def test_an_interrupted_run_keeps_what_it_read(tmp_path, calls):
    def interrupted():
        with Readings(tmp_path) as opened:
            opened.read("Duplicate of #5", "o/r", 9, author=None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    read(tmp_path)
    assert len(calls) == 1


def test_a_damaged_file_is_named_with_the_way_out(tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b"no database " * 1_000)
    with pytest.raises(InputError, match=rf"{FILE_NAME} cannot be read or written .* delete it"):
        read(tmp_path)


def test_the_errors_of_another_database_are_not_taken_for_its_own(tmp_path):
    def failing():
        with Readings(tmp_path):
            raise sqlite3.DatabaseError("of the crawl store")

    with pytest.raises(sqlite3.DatabaseError, match="of the crawl store"):
        failing()


def test_readings_are_committed_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr(readings, "_ROWS_A_COMMIT", 3)
    with Readings(tmp_path) as opened, sqlite3.connect(tmp_path / FILE_NAME) as other:
        for number in range(1, 5):
            opened.read(f"Duplicate of #{number}", "o/r", 9, author=None)
        assert other.execute("SELECT count(*) FROM readings").fetchone()[0] >= 2


def test_a_locked_file_is_not_to_be_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(readings.sqlite3, "connect", partial(sqlite3.connect, timeout=0))
    with Readings(tmp_path) as opened:
        other = sqlite3.connect(tmp_path / FILE_NAME)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match=r"locked by another program .*; wait until that has ended"):
            opened.read("Duplicate of #5", "o/r", 9, author=None)
        other.close()
