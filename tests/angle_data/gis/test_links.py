"""From the store to judged links: every reason has its case."""

import pytest
from fake_gis_store import make_comment, make_event, make_issue, write_store

from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import pack, scan_store
from angle_data.gis.build.links import REASONS, judge_links
from angle_data.gis.crawl.rows import Repo
from angle_data.gis.crawl.store import Store

DAY = 12  # after all issues were opened
MIDNIGHT = make_comment(1, 7, "", DAY).created_at


def said(body="Duplicate of #3", author="maria", role="MEMBER", at=None, **fields):
    """A comment on issue 7, by default of a member and a day after the one before it."""
    return body, at, {"author": author, "role": role, **fields}


def stranger(body="Duplicate of #3", author="joe", **fields):
    return said(body, author, "NONE", **fields)


def links_of(folder, *comments, events=(), issues=(), repos=(), cross_repo=False, **seventh):
    """["reason or evidence, duplicate, original"] of issues of rita's; `seventh` is of the one discussed."""
    opened = [make_issue(n, **{"author": "rita", **(seventh if n == 7 else {})}) for n in range(1, 10)]
    changed = {(issue.repo_id, issue.number) for issue in issues}
    rows = {
        "issues": [*(one for one in opened if (1, one.number) not in changed), *issues],
        "comments": [
            make_comment(100 + n, 7, body, DAY + n if at is None else at, **fields)
            for n, (body, at, fields) in enumerate(comments)
        ],
        "events": events,
    }
    path = write_store(folder, repos=repos or [Repo(1, "org/one", "org/one")], **rows)
    with Store.open(path, read_only=True) as store:
        links = judge_links(scan_store(store), Texts(store), cross_repo=cross_repo)
    for link in links:
        assert link.reason in ("", *REASONS)
        assert (link.status == "tentative") == (link.reason in ("guess", "unbacked", "disputed"))
    return [" ".join(map(str, (link.reason or link.evidence, *(e[1] for e in link.ends)))) for link in links]


def event(kind, at, target=None, **fields):
    return make_event(f"{kind}{at}", kind, 7, target, at, **fields)


def mark(repo):
    return event("marked", DAY, 3, repo=repo)


def moved_to(where, number=3):
    return make_issue(number, gone=f"transferred:{where}")


def closed(at, author="joe"):
    """A stranger's comment of midnight, and the closing of the issue at that time or another."""
    return {"of": [stranger()], "state": "closed", "closed_by": author, "closed_at": at}


WORD, BACKED, EVENT = (f"comment:duplicate:{rank} 7 3" for rank in ("write_role", "corroborated", "event"))
GUESS = "Is this a duplicate of #3?"
DENIAL = "This is not a duplicate of #3."
MARK, UNMARK = event("marked", DAY, 3), event("unmarked", DAY + 2, 3)
MARK_5, LATE_MARK = event("marked", DAY, 5), event("marked", DAY + 4, 3)
LOG = stranger("I have a log.")
LABEL = {"labels": ("duplicate",), "state": "closed", "state_reason": "duplicate"}
COMPLETED = {"state": "closed", "state_reason": "completed"}
BOT = {"author": "sweeper[bot]"}
FORMER = [Repo(1, "org/one", "org/one", ("old/name",))]
TWO = [Repo(1, "org/one", "org/one"), Repo(2, "org/two", "org/two", ("old/name", "org/one"))]
THERE = [make_issue(3, repo_id=2)]
ELSEWHERE = {"of": [said("Duplicate of old/name#3")], "repos": TWO, "issues": THERE}
REOPENED = [event("closed", DAY), event("reopened", DAY + 1)]
SOLVED = [event("reopened", DAY + 1), event("closed", DAY + 2)]

# What is said and happened -> the links.
CASES = {
    "a member is believed": ({"of": [said()]}, [WORD]),
    "in the other direction": (
        {"of": [said("#3 is a duplicate of this")]}, ["comment:duplicate:write_role 3 7"],
    ),
    "a guess": ({"of": [said(GUESS)]}, ["guess 7 3"]),
    "a stranger": ({"of": [stranger()]}, ["unbacked 7 3"]),
    "its author": ({"of": [stranger(author="rita")]}, ["comment:duplicate:admitted 7 3"]),
    "the other one's author": (
        {"of": [stranger("#3 is a duplicate of this", "rita")], **LABEL}, ["unbacked 3 7"],
    ),
    "an objection": ({"of": [said(), stranger(DENIAL)]}, ["disputed 7 3"]),
    "taken back": ({"of": [said(), said("Sorry, not a dup after all.")]}, ["retracted 7 3"]),
    "a repository not crawled": ({"of": [said("Duplicate of other/repo#3")]}, ["unknown_repository"]),
    "another repository": (ELSEWHERE, ["other_repository 7 3"]),
    "another repository that is allowed": ({**ELSEWHERE, "cross_repo": True}, [WORD]),
    "a present name outranks a former one": ({"of": [said()], "repos": TWO}, [WORD]),
    "an address": ({"of": [said("Duplicate of https://www.github.com/org/one/issues/3")]}, [WORD]),
    "an address elsewhere": ({"of": [said("Duplicate of https://ghe.acme.com/org/one/issues/3")]}, []),
    "missing": ({"of": [said("Duplicate of #99")]}, ["missing"]),
    "deleted": ({"of": [said()], "issues": [make_issue(3, gone="deleted")]}, ["gone"]),
    "moved to where": ({"of": [said()], "issues": [moved_to("no/where#5")]}, ["moved_away"]),
    "moved and followed": (
        {"of": [said()], "issues": [moved_to("Org/One#5")]}, ["comment:duplicate:write_role 7 5"],
    ),
    "moved in a circle": (
        {"of": [said()], "issues": [moved_to("org/one#3", 2), moved_to("org/one#2")]}, ["moved_away"],
    ),
    "itself": ({"of": [said()], "issues": [moved_to("org/one#7")]}, ["itself 7 7"]),
    "a pull request": ({"of": [said()], "issues": [make_issue(3, is_pull=True)]}, ["pull 7 3"]),
    "on a pull request": ({"of": [said()], "is_pull": True}, []),
    "a later issue": ({"of": [said("Duplicate of #9", at=8)]}, ["later 7 9"]),
    "empty there": ({"of": [said()], "issues": [make_issue(3, title=" ")]}, ["empty 7 3"]),
    "empty here": ({"of": [said()], "title": " "}, ["empty 7 3"]),
    "a placeholder": ({"of": [said()], "issues": [make_issue(3, "Test", "this is")]}, ["dummy 7 3"]),
    "hidden as spam": ({"of": [said(minimized="spam")]}, []),
    "hidden as outdated": ({"of": [said(minimized="outdated")]}, [WORD]),
    # Marks
    "marked": ({"events": [MARK]}, ["event 7 3"]),
    "unmarked": ({"events": [MARK, UNMARK]}, ["unmarked 7 3"]),
    "marked again": ({"events": [MARK, UNMARK, LATE_MARK]}, ["event 7 3"]),
    "an unmark cancels what was before": (
        {"of": [said(), said(at=DAY + 3)], "events": [MARK, UNMARK]}, ["unmarked 7 3", "unmarked 7 3", WORD],
    ),
    "a mark beats an objection": ({"of": [said(), stranger(DENIAL)], "events": [MARK]}, ["event 7 3", EVENT]),
    "a mark backs even a guess": ({"of": [stranger(GUESS)], "events": [MARK]}, ["event 7 3", EVENT]),
    "a mark in another spelling": ({"of": [stranger()], "events": [mark("Org/One")]}, ["event 7 3", EVENT]),
    "a mark under a former name": (
        {"of": [stranger()], "events": [mark("old/name")], "repos": FORMER}, ["event 7 3", EVENT],
    ),
    "a mark of another": ({"of": [stranger()], "events": [MARK_5]}, ["event 7 5", "unbacked 7 3"]),
    "a mark of another repository": (
        {"of": [stranger()], "events": [mark("x/y")]}, ["unknown_repository", "unbacked 7 3"],
    ),
    "a mark that a write role denies": ({"of": [LOG, said(DENIAL)], "events": [MARK]}, ["retracted 7 3"]),
    "a mark after a denial": ({"of": [said(DENIAL), LOG], "events": [LATE_MARK]}, ["event 7 3"]),
    "a mark that a stranger denies": ({"of": [LOG, stranger(DENIAL)], "events": [MARK]}, ["event 7 3"]),
    "a mark beside a denial of another": (
        {"of": [LOG, said("Not a duplicate of #4.")], "events": [MARK]}, ["event 7 3"],
    ),
    # Opened again
    "reopened": ({"of": [said()], "state_reason": "reopened"}, ["reopened 7 3"]),
    "opened again": ({"of": [said()], "events": REOPENED}, ["reopened 7 3"]),
    "said after it was opened again": ({"of": [said(at=DAY + 2)], "events": REOPENED}, [WORD]),
    "closed again": ({"of": [said()], "events": REOPENED, "state": "closed"}, [WORD]),
    "solved for itself": ({"of": [said()], "events": [MARK, *SOLVED], **COMPLETED}, ["completed 7 3"] * 2),
    "not solved": (
        {"of": [said()], "events": [MARK, *SOLVED], **COMPLETED, "state_reason": "not_planned"},
        ["event 7 3", EVENT],
    ),
    "solved, says the state, and a duplicate, says the label": (
        {"of": [said()], "events": [MARK, *SOLVED], **LABEL, **COMPLETED}, ["event 7 3", EVENT],
    ),
    "said again after it was opened again": (
        {"of": [said(), said(at=DAY + 3)], "events": SOLVED[:1], **COMPLETED}, ["completed 7 3", WORD],
    ),
    # What backs a stranger, and a guess
    "closed ten minutes later": (closed("2020-01-13T00:10:00Z"), [BACKED]),
    "closed ten minutes before": (closed("2020-01-12T23:50:00Z"), [BACKED]),
    "closed later": (closed("2020-01-13T00:10:01Z"), ["unbacked 7 3"]),
    "closed by another": (closed(MIDNIGHT, "rita"), ["unbacked 7 3"]),
    "a label": ({"of": [stranger("Duplicate of #5")], **LABEL}, ["comment:duplicate:corroborated 7 5"]),
    "a label, and a mark of another": (
        {"of": [stranger("Duplicate of #5")], "events": [MARK], **LABEL}, ["event 7 3", "unbacked 7 5"],
    ),
    "a label, and a mark that is gone": (
        {"of": [stranger("Duplicate of #5")], "events": [MARK, UNMARK], **LABEL},
        ["unmarked 7 3", "comment:duplicate:corroborated 7 5"],
    ),
    "a label, and a member's word for another": (
        {"of": [said(), stranger("Duplicate of #5")], **LABEL}, [WORD, "unbacked 7 5"],
    ),
    "a label, and a member's word taken back": (
        {"of": [said(), stranger("Duplicate of #5"), said("Sorry, not a dup of #3 after all.")], **LABEL},
        ["retracted 7 3", "comment:duplicate:corroborated 7 5"],
    ),
    "a label, and a member's question about another": (
        {"of": [said(GUESS), stranger("Duplicate of #5")], **LABEL},
        ["guess 7 3", "comment:duplicate:corroborated 7 5"],
    ),
    "a label, and a member's word for both": (
        {"of": [said(), stranger("Duplicate of #5"), said("Duplicate of #5")], **LABEL},
        [WORD, "comment:duplicate:corroborated 7 5", "comment:duplicate:write_role 7 5"],
    ),
    "a stranger's guess and a label": ({"of": [stranger(GUESS)], **LABEL}, ["guess 7 3"]),
    "a program's closing": (
        {**closed(MIDNIGHT, **BOT), "of": [stranger("Closing as a duplicate of #3.", **BOT)]}, [BACKED],
    ),
    "a program's closing that did not happen": ({"of": [stranger(**BOT)]}, ["unbacked 7 3"]),
    "a program's closing to which somebody objects": (
        {**closed(MIDNIGHT, **BOT), "of": [stranger(**BOT), stranger(DENIAL)]}, ["disputed 7 3"],
    ),
    "a program's guess on which it acted": (
        {**closed(MIDNIGHT, **BOT), "of": [stranger(GUESS, **BOT)]}, ["comment:duplicate:confirmed 7 3"],
    ),
    "likeness is no guess to act on": (
        {**closed(MIDNIGHT, "maria"), "of": [said("This looks similar to #3.")]}, ["guess 7 3"],
    ),
    # The issue's own text
    "its own text": (
        {"body": "It crashes when I open the settings.\n\nEDIT: this is a duplicate of #9"},
        ["body:duplicate:admitted 7 9"],
    ),
    "its own text, the account deleted": (
        {"body": "Duplicate of #9", "author": None}, ["body:duplicate:admitted 7 9"],
    ),
    "its own text taken back": (
        {"of": [stranger("Sorry, not a duplicate after all.", "rita")], "body": "Duplicate of #3"},
        ["retracted 7 3"],
    ),
    "a program's text": ({"body": "Duplicate of #3", "author": "import[bot]"}, []),
    **{
        f"its own text: {text}": ({"body": text}, [])
        for text in (GUESS, DENIAL, "Similar to #3.", "Tracked upstream, see also #3.", "> Duplicate of #3")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_what_was_said_and_happened(tmp_path, name):
    rows, expected = CASES[name]
    assert links_of(tmp_path, *rows.get("of", ()), **{k: v for k, v in rows.items() if k != "of"}) == expected


def test_every_reason_has_its_case():
    seen = {line.split()[0] for _, expected in CASES.values() for line in expected}
    elsewhere = {"outside": "test_gis_build.py", "annotator_denied": "test_ask.py"}
    assert REASONS.keys() - seen == elsewhere.keys()


LABELS = ("duplicate", "*Duplicate", "r: duplicate", "Resolution-Duplicate", "triage/duplicate", "dup")
OTHERS = ("deduplication", "not-duplicate", "possible duplicate", "bug", "duplicator")


@pytest.mark.parametrize("name", [*LABELS, *OTHERS])
def test_labels_for_duplicates(tmp_path, name):
    expected = BACKED if name in LABELS else "unbacked 7 3"
    assert links_of(tmp_path, stranger(), labels=("bug", name)) == [expected]


def test_logins_are_not_in_the_audit(tmp_path):
    issues = [make_issue(n) for n in (3, 7)]
    comments = [make_comment(100, 7, "Duplicate of #3", DAY, author="secretlogin")]
    with Store.open(write_store(tmp_path, issues=issues, comments=comments)) as store:
        scan = scan_store(store)
        (link,) = judge_links(scan, Texts(store))
    row = link.to_dict(scan)
    assert "secretlogin" not in str(row)
    assert row["facts"]["association"] == "MEMBER"
    assert row["url"] == "https://github.com/org/one/issues/7#issuecomment-100"
    here = "https://github.com/org/one/issues/7"
    assert (row["here"], row["duplicate"], row["canonical"]) == (here, here, here.replace("7", "3"))


def test_mentions_of_bodies_comments_and_events(tmp_path):
    issues = [make_issue(n) for n in range(1, 10) if n != 7]
    issues.append(make_issue(7, body="like https://github.com/org/one/issues/2"))
    comments = [make_comment(100, 7, "see #4 and #4", DAY), make_comment(101, 8, "see #1", DAY)]
    events = [event("cross_referenced", DAY, 5), event("cross_referenced", DAY + 1, 6, repo="x/y")]
    with Store.open(write_store(tmp_path, issues=issues, comments=comments, events=events)) as store:
        scan = scan_store(store)
    assert scan.mentions[1] == {pack(1, 8), pack(2, 7), pack(7, 4), pack(5, 7)}
    assert [scan.mentioned((1, 7), (1, n)) for n in (2, 4, 5, 6)] == [True, True, True, False]
    assert scan.mentioned((1, 4), (1, 7))
    assert not scan.mentioned((1, 7), (2, 4))


# Evidence that no single comment gives


YES = ("Yes, it is.", "Exactly. Thanks!", "Correct, same thing.", "yes it is the same crash")
NO = (
    "Right now I can't test this.", "Exactly which version do you use?", "Absolutely unrelated, I think.",
    "Definitely related.", "Yes, I saw that issue before opening this one.",
    "It does crash on 2.3 as well here.",
)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *((("rita", "NONE", answer), "comment:duplicate:confirmed") for answer in YES),
        (("maria", "MEMBER", "Oh, indeed. Closing."), "comment:duplicate:confirmed"),
        *((("rita", "NONE", answer), "guess") for answer in NO),
        (("ann", "NONE", "Yes."), "guess"),
        (("joe", "NONE", "Yes."), "guess"),
        (("sweeper[bot]", "MEMBER", "Yes."), "guess"),
        (("maria", "MEMBER", "No."), "guess"),
        (("maria", "MEMBER", "Yes, I saw that one, but it is about another window."), "guess"),
        (("maria", "MEMBER", "Yes, but this is a different issue."), "retracted"),
        (("maria", "MEMBER", "> Yes\n\nPlease attach a log."), "guess"),
    ],
)
def test_a_guess_counts_when_the_first_answer_of_somebody_entitled_is_yes(tmp_path, answer, expected):
    author, role, body = answer
    assert links_of(tmp_path, stranger("Dup of #3?"), said(body, author, role)) == [f"{expected} 7 3"]


def test_yes_is_the_first_answer_and_to_one_guess_alone(tmp_path):
    guess, yes = stranger("Dup of #3?"), said("Yes.")
    assert links_of(tmp_path / "1", guess, stranger("I have a log.", "ann"), yes) == ["guess 7 3"]
    assert links_of(tmp_path / "own", said("Dup of #3?"), yes) == ["guess 7 3"]
    two = stranger("Could this be a duplicate of #3 or of #4?")
    assert links_of(tmp_path / "2", two, yes) == ["guess 7 3", "guess 7 4"]


@pytest.mark.parametrize(
    "body", ["#3", "See #3.", "Thanks @rita! #3", "https://github.com/org/one/issues/3", "-> #3"]
)
@pytest.mark.parametrize("closed", [{"labels": ("duplicate",)}, {"state_reason": "duplicate"}])
def test_a_bare_number_beside_a_label_is_the_original(tmp_path, body, closed):
    assert links_of(tmp_path, said(body), state="closed", **closed) == ["comment:label:corroborated 7 3"]


@pytest.mark.parametrize(
    ("comments", "issue"),
    [
        ([said("#3")], {"state": "closed"}),
        ([said("#3")], {"labels": ("duplicate",)}),
        ([stranger("#3")], LABEL),
        ([said("#3"), said("#4")], LABEL),
        ([said("The fix of this one broke #3.")], LABEL),
        ([said("```\n#3\n```")], LABEL),
    ],
)
def test_a_number_alone_is_none(tmp_path, comments, issue):
    assert links_of(tmp_path, *comments, **issue) == []
