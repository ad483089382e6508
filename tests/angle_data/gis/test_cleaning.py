"""What of an issue becomes text."""

import pytest

from angle_data.gis.build.clean import CUT, LONGEST_TEXT, clean_text
from angle_data.gis.build.forms import FormLines
from angle_data.gis.build.scrub import scrub


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("One\r\ntwo\rthree", "One\ntwo\nthree"),
        ("Seen.<!-- fill in\nthis -->\nHere.", "Seen.\nHere."),
        ("Seen. <!-- never closed", "Seen."),
        ("- [x] I have searched, not a duplicate\nCrash.", "Crash."),
        ("- [ ] I have searched the issues\nCrash.", "Crash."),
        ("- [ ] write the parser", "- [ ] write the parser"),
        ("I have searched existing issues and found no duplicates.\nCrash.", "Crash."),
        ("### Version\n\n### Steps\nRun it.", "### Steps\nRun it."),
        ("### Version\n_No response_\n### Steps\nRun it.", "### Steps\nRun it."),
        ("## Report\n### Steps\nRun it.", "## Report\n### Steps\nRun it."),
        ("**Logs**\n\n**Steps**\nRun it.", "**Steps**\nRun it."),
        ("Run it.\n### Screenshots", "Run it."),
        ("See ![a](https://x.example/a.png) here", "See  here"),
        ("See [a.log](https://github.com/o/r/files/12/a.log)", "See a.log"),
        ("https://play.example/x?y#code/" + "Q" * 200, "https://play.example/x"),
        ("data:image/png;base64,AAAA=", "[data]"),
        ("A" * 200, "[data]"),
        ("It crashes just like #12.", "It crashes just like [issue]."),
        ("It hangs now, like GH-12 and o/r#3.", "It hangs now, like [issue] and [issue]."),
        ("A trace is in https://github.com/o/r/issues/5#issuecomment-7", "A trace is in [issue]"),
        ("> Possible duplicate of #12\nCrash.", "Crash."),
        ("Look at step #2 and [this](../issues/5).", "Look at step #2 and [issue]."),
        (
            "Like o/r/issues/5 and [it](https://github.com/o/r/issues/5) but worse.",
            "Like [issue] and [issue] but worse.",
        ),
        ("colour #fff, page.html#12, C#", "colour #fff, page.html#12, C#"),
        ("_Originally posted by @x in #3_\nCrash.", "Crash."),
        ("Ask @octocat or a.b@c.example", "Ask @user or [email]"),
        ("<details>\n<summary>Log</summary>\n\nIt broke.\n</details>\nSeen.", "Log\n\nIt broke.\n\nSeen."),
        ("rate(x[15m:]) [5m, 10m) [30m:1m]", "rate(x[15m:]) [5m, 10m) [30m:1m]"),
        ("```\n\x1b[31mred\x1b[0m and [1;32mgreen[0m\n```", "```\nred and green\n```"),
        ("items[0m] and a[12]", "items[0m] and a[12]"),
    ],
)
def test_what_becomes_of_a_body(body, text):
    assert clean_text("Title", body) == f"Title\n\n{text}"


def test_a_text_that_is_too_long_ends_with_a_line_and_says_so():
    text = clean_text("T", "\n".join(f"line {n} of the log" for n in range(5_000)))
    assert LONGEST_TEXT - 100 < len(text) <= LONGEST_TEXT + len(CUT)
    assert text.endswith(f" of the log{CUT}")
    assert clean_text("T", "x" * 100) == "T\n\n" + "x" * 100


FORM = """### What happened
{n} broke in its own way.

**Version**
Windows
- [{x}] I can  send a fix.
```
### What happened
```
"""


def test_lines_of_a_repositorys_forms_go():
    """Marks and case do not matter; answers of a word, and what stands in code, stay."""
    forms = FormLines()
    for n in range(12):
        forms.add(FORM.format(n=f"Part{n}", x="x" if n % 2 else " "))
    for n in range(200):
        forms.add(f"We all get this error, {n}.\nIt is the same here" + "?" * (n < 10))
    found = forms.found()
    assert found == {"it is the same here": 200, "i can send a fix": 12, "version": 12, "what happened": 12}
    text = clean_text("Title", FORM.format(n="It", x=" "), found)
    assert text == "Title\n\nIt broke in its own way.\n\nWindows\n```\n### What happened\n```"


def test_code_stays_but_for_secrets_and_links():
    code = "```sh\n# no heading\n<!-- kept -->\n@Override #12 - [x] box\n```"
    assert clean_text("T", f"Run\n{code}") == f"T\n\nRun\n{code}"
    assert clean_text("T", "```\nnone\n```") == "T\n\n```\nnone\n```"
    assert clean_text("T", "```\nhttps://github.com/o/r/issues/5\n```") == "T\n\n```\n[issue]\n```"
    assert clean_text("T", "```\npassword=hunter2hunter2") == "T\n\n```\npassword=[secret]"


STATEMENTS = [
    "Duplicate of #5.", "Closing, duplicate of [#5](https://github.com/o/r/issues/5)",
    "Duplicate of [that one](https://github.com/o/r/issues/5).", "**EDIT:** this was already reported in #5",
    "Possible duplicate of #12?", "This is not a duplicate of #7.", "Dup of issue 512",
    "Duplicate issue: #5, #6", "Duplikat von #5", "与 #5 重复", "superseded by #5", "Dupe of o/r/issues/5",
    "This issue is a duplicate, please close", "Closing as duplicate.", "Same as 4123",
    "This is the same bug as 4123.", "Sorry for the duplicate, GitHub showed an error.",
    "Sorry for double posting, the page hung.", "Edit: duplicate, closing.", "Please close, duplicate.",
    "Is this a duplicate? Yes", "Already reported as 4123.",
    "This issue was submitted twice because of an error of GitHub.", "Labels: bug, duplicate",
    "**Resolution:** Duplicate", "duplicate-of: #5",
    '**Issue Links:**\n- #17 Title (_**"duplicates"**_)\n- #18 Other (_**"is duplicated by"**_)',
    "## Duplicates\n* https://github.com/o/r/issues/5", '- #17 Title (_**"is duplicated by"**_)',
    '* Title without a number (_**"duplicates"**_)',
    "Duplicate of #5. Really, duplicate of #5. See, a dup of #5.", "war doppelt #5", "Zusammengeführt mit #5",
    "Marked as duplicate by the bot", "Number 55, please merge", "see 47", "#5 (87 %)", "与 #5 很像",
]  # fmt: skip


@pytest.mark.parametrize("said", STATEMENTS)
def test_a_statement_about_duplicates_goes_and_the_text_around_it_stays(said):
    cleaned = clean_text("Title", f"It crashes at start.\n\n{said}\n\n### Steps\nRun it twice. Wait.")
    assert cleaned == "Title\n\nIt crashes at start.\n\n### Steps\nRun it twice. Wait."


ELSEWHERE = [
    "The list shows duplicate rows. Is the row a duplicate of the first?", "It is duplicated when I click.",
    "The form is submitted twice when I click.", "The error already reported by the compiler is shown again.",
    "- Copy\n- Duplicate", "## Duplicates\n* alpha\n* beta",
    "### Why are rows duplicated?\nThe query joins twice.", "Rows are marked as duplicate in the table.",
    "Status: the duplicate finder is very slow", "Link to the docs, existing users first.",
    "It looks similar to [issue] in some ways.",
]  # fmt: skip


@pytest.mark.parametrize("body", ELSEWHERE)
def test_what_is_about_duplicates_of_something_else_stays(body):
    assert clean_text("Title", body) == f"Title\n\n{body}"


def test_only_the_sentence_is_cut():
    similar = "It looks similar to #7 in some ways."
    assert clean_text("T", similar) == "T\n\nIt looks similar to [issue] in some ways."
    body = "It crashes.\nFirst one. Duplicate of #5, I think. Last one.\nIt hangs. Same as #6!\nSee #7."
    assert clean_text("T", body) == "T\n\nIt crashes.\nFirst one. Last one.\nIt hangs."
    kept = clean_text("T", f"{'word ' * 200}duplicate of #5 {'word ' * 200}")
    assert "uplicate" not in kept
    assert 500 < len(kept) < 1_900


CRASH = (
    "[Duplicate] Crash in #3", "Duplicate: Crash in #3", "(dup) Crash in #3", "[DUPE] Crash in #3",
    "DUPLICATE - Crash in #3", "[Duplicate of #12] Crash in #3", "Crash in #3 (duplicate of #12)",
    "Crash in #3 [duplicate]", "Crash in #3 - duplicate", "Dup of #12: Crash in #3", "Crash in #3 (dup)",
    "Crash in #3, same as #9",
)  # fmt: skip
NOTHING_ELSE = ("Duplicate", "[duplicate]", "Duplicate of #5", "dup of https://github.com/o/r/issues/5")
ABOUT = ("Duplicate entries in the list", "Insert fails (duplicate key)", "Find-duplicates is slow")


@pytest.mark.parametrize(
    ("title", "text"),
    [
        *((title, "Crash in [issue]") for title in CRASH),
        *((title, "") for title in NOTHING_ELSE),
        *((title, title) for title in ABOUT),
        ("DUPLICATE crash in #3", "crash in [issue]"),
    ],
)
def test_a_title_does_not_tell_the_label(title, text):
    assert clean_text(title, "### Steps\n\n<!-- how? -->\n### Logs\n") == text  # an empty template
    assert clean_text(title, "It broke.") == f"{text}\n\nIt broke.".strip()


SHAPES = [
    "ghp_" + "a1" * 18, "github_pat_" + "a1" * 20, "AKIA" + "A1B2" * 4, "xoxb-123456789012-abc",
    "sk-" + "a1" * 20, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "ghs_" + "a1" * 18,
    "glpat-" + "a1" * 12, "ASIA" + "A1B2" * 4, "AIza" + "a1" * 17, "ya29." + "a1" * 14, "GOCSPX-" + "a1" * 12,
    "xapp-1-A0B1C2-123-abcdef", "hooks.slack.com/services/T00000000/B00000000/" + "x" * 24,
    "discord.com/api/webhooks/123456789/" + "a1" * 20, "SG." + "a1" * 11 + "." + "b2" * 20,
    "dckr_pat_" + "a1" * 12, "dop_v1_" + "a1" * 32, "123456789:AA" + "b2" * 16 + "c", "npm_" + "a1" * 18,
    "pypi-" + "a1" * 30, "hf_" + "a1" * 17, "rk_live_" + "a1" * 12,
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        *(("see ", secret, " there") for secret in SHAPES),
        ('"api_key": "', "abcdefgh123", '"'),
        ("DB_PASSWORD=", "longenough1", ""),
        ("Authorization: Bearer ", "abcdefgh123", ""),
        ("postgres://", "me:pass", "@host/db"),
        ("//npm.example.org/:_authToken=", "abcdef12-3456-7890", ""),
        ("_auth=", "abcdefghij", ""),
        ("AccountKey=", "abcdefghijklmnopqrstuvwxyz0123456789==", ";x"),
        ("token: ", "0123456789abcdef0123", ""),
        ('"token": "', "0123456789abcdef0123", '"'),
        ("DB_PASS=", "hunter2hunter2", ""),
        ("pwd=", "hunter2hunter2", ""),
        ("password: ", "hunter2", "\nuser: joe"),
        ("db.password = '", "secure", "'"),
        ("mytool --password ", "hunter2hunter2", " --verbose"),
        ("--auth-token=", "abcdef1234", ""),
        ("curl -u user:", "hunter2hunter2", " https://x.example"),
        ("secretKey: '", "abcdefghijkl", "'"),
        ("clientSecret=", "abcdefghijkl", ""),
        ("SECRET_KEY_BASE=", "abcdefghijkl", ""),
        ("private_key_id: ", "abcdef0123456789", ""),
        ("aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""),
        ("X-Api-Key: ", "abcdef0123456789", ""),
        ("Authorization: ", "abcdef0123456789abcdef", ""),
        ("authorization: Basic ", "dXNlcjpwYXNzd29yZA==", ""),
        ("Cookie: ", "session=abcdef0123456789; a=b", "\nAccept: x"),
        ("https://x.example/f?sv=1&sig=", "abcdef0123456789%3D", "&se=2"),
    ],
)
def test_secrets_of_known_shape_and_values_behind_a_telling_name(before, secret, after):
    for code in (False, True):
        text = scrub(before + secret + after, code=code)
        assert text == f"{before}[secret]{after}"
        assert scrub(text, code=code) == text


ORDINARY = [
    "token: str", "token: Optional[str] = None", "password = None",
    "def login(user, password: str, api_key=DEFAULT): ...", "password = getpass.getpass()",
    "connect(password=my_password, token=config.token2)", 'api_key = os.environ["API_KEY_2"]',
    "secret=${{ secrets.DEPLOY_KEY1 }}", "PASSWORD=$DB_PASSWORD1", "password: <your password1>",
    "pwd=/srv/build1/work", "mytool --token <token1> --password option", "docker run -u 1000:1000 image",
    "the password: it is asked twice", "Authorization: required", "cookie: accepted by all browsers",
    "max_tokens: 4096, next token = 12", "compass=northeast1", "signature=unknown_value",
    "/home/runner/work and /home/user/x and C:\\Users\\Public\\x",
    "127.0.0.1 and 192.168.0.40, v4.19.0.170, Chrome/109.0.0.0, at 12:30:45:123",
    "+1, +10 -3, +12345678 lines",
    "see docs.github.com/en and https://github.com/features.", "at (8:00) or look at [this] one",
    "yarn add @scope/package and `@Input()`", "git@github.com:o/r.git", "https://github.com/octocat/hello",
]  # fmt: skip


@pytest.mark.parametrize("code", ORDINARY)
def test_ordinary_code_and_prose_stay(code):
    assert scrub(code) == code


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("by https://github.com/octocat.", "by https://github.com/[user]."),
        ("thanks @alice/@bob", "thanks @user/@user"),
        ("@alice_ and @bob_corp", "@user and @user"),
        ("https://github.com/alice?tab=repositories", "https://github.com/[user]?tab=repositories"),
        ("https://github.com/alice/", "https://github.com/[user]/"),
        ("https://github.example.com:8443/alice.", "https://github.example.com:8443/[user]."),
        ("/home/john.smith/project", "/home/[user]/project"),
        ("/Users/jsmith", "/Users/[user]"),
        ("C:\\Users\\John Smith\\x", "C:\\Users\\[user]\\x"),
        ("c:/users/jsmith/x", "c:/users/[user]/x"),
        ("用户@例子.中国", "[email]"),
        ("john.doe (at) example.com", "[email]"),
        ("Call +49 170 1234567 or (+1) 415-555-2671.", "Call [phone] or [phone]."),
        ("Phone: 030 1234567", "Phone: [phone]"),
        ("down: 93.184.216.34, http://93.184.216.34:80/x", "down: [ip], http://[ip]:80/x"),
        ("ping 2001:db8:85a3:1:2:8a2e:370:7334", "ping [ip]"),
        ("https://medium.com/@alice", "https://medium.com/@user"),
    ],
)
def test_people_are_not_named(text, clean):
    assert scrub(text) == clean == scrub(clean)
    kept = "@Override in https://github.com/john and "
    assert scrub(f"{kept}/home/john/x.py", code=True) == f"{kept}/home/[user]/x.py"


def test_cleaning_twice_changes_nothing_more():
    body = "Dup of #5, @joe, a@b.example\n### X\n\n- [x] I searched\n![i](https://x.example/i.png)\ntoken=abcdefghij"
    once = clean_text("Crash at start, worse than #4", body)
    assert clean_text("", once) == once
