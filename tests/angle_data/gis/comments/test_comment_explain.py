"""`angle-data gis explain`: errors and exit codes; the golden outputs have its rows."""

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
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*arguments):
    app = typer.Typer()
    app.command()(explain)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_one_line_a_comment_in_order(tmp_path):
    path = write(tmp_path, ROW, {**ROW, "number": 10, "author": None, "body": None}, {**ROW, "extra": [1]})
    result = run("--comments", path)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["number"], len(row["links"])) for row in rows] == [(9, 1), (10, 0), (9, 1)]


def test_why_shows_what_each_link_was_read_from_and_what_is_taken_back(tmp_path):
    back = {**ROW, "body": "Sorry, not a dup after all, and not a duplicate of #6 either."}
    first, second = explain_comments(write(tmp_path, ROW, back), why=True)
    assert ([link["text"] for link in first["links"]], first["retracts"]) == (["Duplicate of #5"], False)
    assert (second["retracts"], [denial["number"] for denial in second["denials"]]) == (True, [6])


@pytest.mark.parametrize(
    ("api_url", "found"),
    [
        ("https://api.github.com", [6]), ("https://Code.example.com:8443/api/v3", [5]),
        ("https://api.octo.ghe.com", [7]),
    ],
)  # fmt: skip
def test_addresses_of_the_given_server_are_references_and_others_are_not(tmp_path, api_url, found):
    sites = {5: "https://code.example.com:8443", 6: "https://github.com", 7: "https://octo.ghe.com"}
    rows = [{**ROW, "body": f"Duplicate of {site}/lumen/editor/issues/{n}"} for n, site in sites.items()]
    result = run("--comments", write(tmp_path, *rows), "--api-url", api_url)
    links = [link for line in result.stdout.splitlines() for link in json.loads(line)["links"]]
    assert [link["number"] for link in links] == found
    refused = run("--comments", write(tmp_path, *rows), "--api-url", "code.example.com")
    assert "--api-url code.example.com is no address" in str(refused.exception)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ({"repo": "a/b", "number": 1}, "author missing, body missing"),
        ({**ROW, "repo": "editor"}, 'repo "editor"'),
        ({**ROW, "repo": "a/b\n"}, r'repo "a/b\n"'),
        ({**ROW, "number": "9"}, 'number "9"'),
        ({**ROW, "number": True}, "number true"),
        ({**ROW, "author": {}}, "author {}"),
        ({**ROW, "body": 3}, "body 3"),
        ({**ROW, "body": ["long"] * 99}, "body ...long"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, found):
    message = r"comments.jsonl:2: a comment has repo \(owner/name\), number \(1 or more\), author and body"
    with pytest.raises(InputError, match=message) as raised:
        list(explain_comments(write(tmp_path, ROW, line)))
    said = str(raised.value).partition("found: ")[2]
    assert (said.startswith(found.replace("...", '["')), len(said) < 99) == (True, True)


def test_an_empty_file_is_an_error_and_not_silence(tmp_path):
    result = run("--comments", write(tmp_path))
    assert "no comments; each line needs repo, number, author and body" in str(result.exception)
