"""`angle-data gis explain`: rows, errors and exit codes."""

import json

import pytest
import typer
from typer.testing import CliRunner

from angle_data.errors import InputError
from angle_data.gis.command import explain
from angle_data.gis.comments.explain import explain_comments

ROW = {"repo": "lumen/editor", "number": 9, "author": "maria", "body": "Duplicate of #5"}


def write(tmp_path, *rows):
    path = tmp_path / "comments.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def run(*arguments):
    app = typer.Typer()
    app.command()(explain)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_one_line_a_comment_in_order(tmp_path):
    path = write(tmp_path, ROW, {**ROW, "number": 10, "author": None, "body": None}, {**ROW, "extra": [1]})
    result = run("--comments", path)
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    link = {
        "repo": "lumen/editor",
        "number": 5,
        "direction": "this_is_dup_of",
        "certainty": "explicit",
        "kind": "duplicate",
        "span": [0, 15],
    }
    first = {"repo": "lumen/editor", "number": 9, "links": [link]}
    assert rows == [first, {"repo": "lumen/editor", "number": 10, "links": []}, first]


def test_why_adds_the_text_and_what_is_denied(tmp_path):
    path = write(tmp_path, {**ROW, "body": "Thanks. Dup of #5, not a duplicate of #6"})
    (row,) = explain_comments(path, why=True)
    assert row["links"][0]["text"] == "Dup of #5"
    assert [denial["number"] for denial in row["denials"]] == [6]


def test_threads_leave_out_what_was_taken_back_and_say_why(tmp_path):
    back = {**ROW, "body": "Sorry, not a dup after all, and not a duplicate of #6 either."}
    path = write(tmp_path, ROW, back, {**ROW, "number": 10})
    assert [len(row["links"]) for row in explain_comments(path)] == [1, 0, 1]
    first, second, third = explain_comments(path, threads=True, why=True)
    assert (first["links"], first["retracts"], len(third["links"])) == ([], False, 1)
    assert [(link["number"], link["text"], link["by"]) for link in first["cancelled"]] == [
        (5, "Duplicate of #5", 2)
    ]
    assert (second["retracts"], [denial["number"] for denial in second["denials"]]) == (True, [6])


@pytest.mark.parametrize(
    "line",
    [
        {"repo": "a/b", "number": 1}, {**ROW, "repo": "editor"}, {**ROW, "repo": "a/b\n"},
        {**ROW, "number": "9"}, {**ROW, "number": True}, {**ROW, "author": {}}, {**ROW, "body": 3},
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path, line):
    message = r"comments.jsonl:2: a comment has repo \(owner/name\), number \(1 or more\), author and body"
    with pytest.raises(InputError, match=message):
        list(explain_comments(write(tmp_path, ROW, line)))


def test_an_empty_file_is_an_error_and_not_silence(tmp_path):
    result = run("--comments", write(tmp_path))
    assert result.exit_code == 1
    assert isinstance(result.exception, InputError)
    assert "no comments; a line holds repo, number, author and body" in str(result.exception)
