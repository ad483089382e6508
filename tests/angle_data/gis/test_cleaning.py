"""What of an issue becomes text."""

import pytest

from angle_data.gis.cleaning import CHANGES, clean_text, is_dummy
from angle_data.gis.scrub import scrub


@pytest.mark.parametrize(
    ("body", "text", "change"),
    [
        ("One\r\ntwo\rthree", "One\ntwo\nthree", None),
        ("Seen.<!-- fill in\nthis -->\nHere.", "Seen.\nHere.", "comments"),
        ("Seen. <!-- never closed", "Seen.", "comments"),
        ("- [x] I have searched, not a duplicate\nCrash.", "Crash.", "boxes"),
        ("- [ ] I have searched the issues\nCrash.", "Crash.", "boxes"),
        ("- [ ] write the parser", "- [ ] write the parser", None),
        ("I have searched existing issues and found no duplicates.\nCrash.", "Crash.", "boxes"),
        ("### Version\n\n### Steps\nRun it.", "### Steps\nRun it.", "templates"),
        ("### Version\n_No response_\n### Steps\nRun it.", "### Steps\nRun it.", "templates"),
        ("## Report\n### Steps\nRun it.", "## Report\n### Steps\nRun it.", None),
        ("**Logs**\n\n**Steps**\nRun it.", "**Steps**\nRun it.", "templates"),
        ("Run it.\n### Screenshots", "Run it.", "templates"),
        ("See ![a](https://x.example/a.png) here", "See  here", "attachments"),
        ("See [a.log](https://github.com/o/r/files/12/a.log)", "See a.log", "attachments"),
        ("https://play.example/x?y#code/" + "Q" * 200, "https://play.example/x", "attachments"),
        ("data:image/png;base64,AAAA=", "[data]", "attachments"),
        ("A" * 200, "[data]", "attachments"),
        ("Like #12.", "Like [issue].", "references"),
        ("Like GH-12 and o/r#3.", "Like [issue] and [issue].", "references"),
        ("https://github.com/o/r/issues/5#issuecomment-7", "[issue]", "references"),
        ("Possible duplicate of #12", "[issue]", "references"),
        ("Is a dup of https://github.com/o/r/issues/5", "[issue]", "references"),
        ("colour #fff, page.html#12, C#", "colour #fff, page.html#12, C#", None),
        ("_Originally posted by @x in #3_\nCrash.", "Crash.", "footers"),
        ("Ask @octocat or a.b@c.example", "Ask @user or [email]", "logins"),
    ],
)
def test_what_becomes_of_a_body(body, text, change):
    cleaned = clean_text("Title", body)
    assert cleaned.text == f"Title\n\n{text}"
    assert cleaned.changes <= CHANGES.keys()
    assert (change in cleaned.changes) if change else not cleaned.changes


def test_code_stays_but_for_secrets_and_links():
    code = "```sh\n# no heading\n<!-- kept -->\n@Override #12 - [x] box\n```"
    assert clean_text("T", f"Run\n{code}").text == f"T\n\nRun\n{code}"
    assert clean_text("T", "```\nnone\n```").text == "T\n\n```\nnone\n```"
    assert clean_text("T", "```\nhttps://github.com/o/r/issues/5\n```").text == "T\n\n```\n[issue]\n```"
    assert clean_text("T", "```\npassword=hunter2hunter2").text == "T\n\n```\npassword=[secret]"


@pytest.mark.parametrize("title", ["[Duplicate] Crash in #3", "Duplicate: Crash in #3", "(dup) Crash in #3"])
def test_a_title_does_not_tell_the_label(title):
    assert clean_text(title, "").text == "Crash in [issue]"


def test_a_title_about_duplicates_stays():
    assert clean_text("Duplicate entries in the list", "").text == "Duplicate entries in the list"


def test_nothing_is_left_of_an_empty_template():
    assert clean_text("", "### Steps\n\n<!-- how? -->\n### Logs\n").text == ""


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 20,
        "AKIA" + "A1B2" * 4,
        "xoxb-123456789012-abc",
        "sk-" + "a1" * 20,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_of_known_shape(secret):
    assert scrub(f"see {secret} there") == ("see [secret] there", frozenset({"secrets"}))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('"api_key": "abcdefgh123"', '"api_key": "[secret]"'),
        ("DB_PASSWORD=longenough1", "DB_PASSWORD=[secret]"),
        ("Authorization: Bearer abcdefgh123", "Authorization: Bearer [secret]"),
        ("postgres://me:pass@host/db", "postgres://[secret]@host/db"),
        ("git@github.com:o/r.git", "git@github.com:o/r.git"),
        ("npm i @scope/package and `@Input()`", "npm i @scope/package and `@Input()`"),
        ("by https://github.com/octocat.", "by https://github.com/[user]."),
        ("https://github.com/octocat/hello", "https://github.com/octocat/hello"),
        ("the password is wrong", "the password is wrong"),
    ],
)
def test_what_is_scrubbed_around_names(text, clean):
    assert scrub(text)[0] == clean


def test_cleaning_twice_changes_nothing_more():
    body = "Dup of #5, @joe, a@b.example\n### X\n\n- [x] I searched\n![i](https://x.example/i.png)\ntoken=abcdefghij"
    once = clean_text("Crash of #4", body).text
    assert clean_text("", once).text == once


@pytest.mark.parametrize(
    ("text", "dummy"), [("test", True), ("Test\n\nthis is", True), ("Crash on start", False)]
)
def test_dummies(text, dummy):
    assert is_dummy(text) is dummy
