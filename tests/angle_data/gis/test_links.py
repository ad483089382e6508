"""From the store to judged links: every reason has its case."""

from dataclasses import replace

import pytest
from fake_gis_store import make_comment, make_event, make_issue, write_store

from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import pack, scan_store
from angle_data.gis.build.links import REASONS, judge
from angle_data.gis.crawl.rows import Repo
from angle_data.gis.crawl.store import Store

ISSUES = [make_issue(n) for n in range(1, 10)]
DAY = 12  # after all of these were opened


def links_of(folder, *, cross_repo=False, **rows):
    """[(status, reason, duplicate number, canonical number)] of a small store."""
    rows.setdefault("issues", ISSUES)
    with Store.open(write_store(folder, **rows), read_only=True) as store:
        scan = scan_store(store)
        links = judge(scan, Texts(store), cross_repo=cross_repo)
    return [(link.status, link.reason, *(end[1] for end in link.ends or ())) for link in links]


def said(body="Duplicate of #3", number=7, at=DAY, id=100, **fields):
    return make_comment(id, number, body, at, **fields)


@pytest.mark.parametrize("comment", [said(), said("#7 is a duplicate of this", number=3)])
def test_a_member_is_believed_in_either_direction(tmp_path, comment):
    assert links_of(tmp_path, comments=[comment]) == [("accepted", "", 7, 3)]


OBJECTION = said("Not a duplicate of #3.", id=101, at=DAY + 1, role="NONE", author="joe")


def replaced(number, **fields):
    return [issue for issue in ISSUES if issue.number != number] + [make_issue(number, **fields)]


@pytest.mark.parametrize(
    ("reason", "rows"),
    [
        ("guess", {"comments": [said("Is this a duplicate of #3?")]}),
        ("unbacked", {"comments": [said(role="NONE", author="joe")]}),
        ("disputed", {"comments": [said(), OBJECTION]}),
        ("retracted", {"comments": [said(), said("Sorry, not a dup after all.", id=101, at=DAY + 1)]}),
        ("unknown_repository", {"comments": [said("Duplicate of other/repo#3")]}),
        ("missing", {"comments": [said("Duplicate of #99")]}),
        ("gone", {"comments": [said()], "issues": replaced(3, gone="deleted")}),
        ("moved_away", {"comments": [said()], "issues": replaced(3, gone="transferred:no/where#5")}),
        ("itself", {"comments": [said()], "issues": replaced(3, gone="transferred:org/one#7")}),
        ("pull", {"comments": [said()], "issues": replaced(3, is_pull=True)}),
        ("later", {"comments": [said("Duplicate of #9", at=8)]}),
        ("empty", {"comments": [said()], "issues": replaced(3, title=" ")}),
        ("empty", {"comments": [said()], "issues": replaced(7, title=" ")}),
        ("dummy", {"comments": [said()], "issues": replaced(3, title="test")}),
        ("reopened", {"comments": [said()], "issues": replaced(7, state_reason="reopened")}),
    ],
)  # fmt: skip
def test_why_a_link_is_not_accepted(tmp_path, reason, rows):
    assert reason in REASONS
    found = links_of(tmp_path, **rows)
    assert [link[1] for link in found] == [reason]
    assert (found[0][0] == "tentative") == REASONS[reason].startswith("tentative")


@pytest.mark.parametrize(
    ("site", "named", "followed"),
    [
        ("https://github.com", "https://github.com", True),
        ("https://github.com", "https://www.github.com", True),
        ("https://github.com", "https://github.example.com", False),
        ("https://github.example.com:8443", "https://github.example.com:8443", True),
        ("https://github.example.com:8443", "https://github.com", False),
    ],
)
def test_only_addresses_on_the_stores_own_site_name_its_issues(tmp_path, site, named, followed):
    page = f"{site}/org/one/issues/7#issuecomment-1"
    comment = replace(said(f"Duplicate of {named}/org/one/issues/3"), url=page)
    found = links_of(tmp_path, comments=[comment])
    assert found == ([("accepted", "", 7, 3)] if followed else [])


def test_another_repository_only_when_allowed(tmp_path):
    repos = [Repo(1, "org/one", "org/one"), Repo(2, "org/two", "org/two", ("old/name",))]
    rows = {
        "repos": repos,
        "issues": [*ISSUES, make_issue(3, repo_id=2)],
        "comments": [said("Duplicate of old/name#3")],
    }
    assert links_of(tmp_path, **rows)[0][:2] == ("rejected", "other_repository")
    assert links_of(tmp_path, **rows, cross_repo=True)[0][:2] == ("accepted", "")


def test_a_transferred_issue_is_followed_but_not_in_a_circle(tmp_path):
    found = links_of(tmp_path / "1", comments=[said()], issues=replaced(3, gone="transferred:Org/One#5"))
    assert found == [("accepted", "", 7, 5)]
    moved = [make_issue(one, gone=f"transferred:org/one#{other}") for one, other in ((1, 2), (2, 1))]
    found = links_of(tmp_path / "2", comments=[said("Duplicate of #1")], issues=[*moved, ISSUES[6]])
    assert found[0][1] == "moved_away"


def test_pull_requests_are_not_read(tmp_path):
    assert links_of(tmp_path, comments=[said()], issues=replaced(7, is_pull=True)) == []


def test_a_comment_hidden_as_spam_says_nothing(tmp_path):
    assert links_of(tmp_path, comments=[said(minimized="spam")]) == []
    assert links_of(tmp_path / "b", comments=[said(minimized="outdated")]) != []


def test_a_mark_is_accepted_and_an_unmark_cancels(tmp_path):
    mark = make_event("a", "marked", 7, 3, DAY)
    assert links_of(tmp_path / "1", events=[mark]) == [("accepted", "", 7, 3)]
    unmark = make_event("b", "unmarked", 7, 3, DAY + 2)
    assert links_of(tmp_path / "2", events=[mark, unmark])[0][:2] == ("rejected", "unmarked")
    again = make_event("c", "marked", 7, 3, DAY + 4)
    assert links_of(tmp_path / "3", events=[mark, unmark, again]) == [("accepted", "", 7, 3)]


def test_an_unmark_cancels_earlier_comments_only(tmp_path):
    events = [make_event("a", "marked", 7, 3, DAY), make_event("b", "unmarked", 7, 3, DAY + 2)]
    comments = [said(), said(id=101, at=DAY + 3)]
    assert [link[1] for link in links_of(tmp_path, events=events, comments=comments)] == [
        "unmarked",
        "unmarked",
        "",
    ]


@pytest.mark.parametrize(
    ("repo", "target", "backed"),
    [
        ("org/one", 3, True),
        ("Org/One", 3, True),
        ("old/name", 3, True),
        ("org/one", 5, False),
        ("x/y", 3, False),
    ],
)
def test_a_mark_backs_what_a_stranger_says_of_its_own_target(tmp_path, repo, target, backed):
    repos = [Repo(1, "org/one", "org/one", ("old/name",))]
    mark = make_event("a", "marked", 7, target, DAY, repo=repo)
    *_, said_too = links_of(tmp_path, repos=repos, comments=[said(role="NONE", author="joe")], events=[mark])
    assert said_too == (("accepted", "", 7, 3) if backed else ("tentative", "unbacked", 7, 3))


def test_an_objection_does_not_outweigh_a_mark(tmp_path):
    mark = make_event("a", "marked", 7, 3, DAY)
    found = links_of(tmp_path, comments=[said(), OBJECTION], events=[mark])
    assert [link[0] for link in found] == ["accepted", "accepted"]


def test_opened_again_unless_closed_again(tmp_path):
    events = [make_event("a", "closed", 7, None, DAY), make_event("b", "reopened", 7, None, DAY + 1)]
    assert links_of(tmp_path / "1", comments=[said()], events=events)[0][1] == "reopened"
    # The marker came after the reopening.
    assert links_of(tmp_path / "2", comments=[said(at=DAY + 2)], events=events)[0][1] == ""
    closed = replaced(7, state="closed")
    assert links_of(tmp_path / "3", comments=[said()], events=events, issues=closed)[0][1] == ""


@pytest.mark.parametrize("role", ["NONE", "MEMBER"])
def test_a_label_does_not_back_a_stranger_against_a_mark_or_a_member(tmp_path, role):
    labelled = replaced(7, labels=("duplicate",), state="closed", state_reason="duplicate")
    stranger = said("Duplicate of #5", id=101, role="NONE", author="joe")
    alone = links_of(tmp_path / "1", comments=[stranger], issues=labelled)
    assert alone == [("accepted", "", 7, 5)]
    first = said(role=role, author="ann") if role == "MEMBER" else None
    events = [] if first else [make_event("a", "marked", 7, 3, DAY)]
    comments = [first, stranger] if first else [stranger]
    found = links_of(tmp_path / "2", comments=comments, events=events, issues=labelled)
    assert found == [("accepted", "", 7, 3), ("tentative", "unbacked", 7, 5)]
    # Taken back, it speaks against nobody; said of the same issue, it does not either.
    undone = (
        {"comments": [*comments, said("Sorry, not a dup of #3 after all.", id=102, at=DAY + 1, author="ann")]}
        if first
        else {"comments": comments, "events": [*events, make_event("b", "unmarked", 7, 3, DAY + 1)]}
    )
    assert links_of(tmp_path / "3", issues=labelled, **undone)[1][:2] == ("accepted", "")
    asked = [said("Is this a duplicate of #3?", author="ann"), stranger]
    assert links_of(tmp_path / "5", comments=asked, issues=labelled)[1][:2] == ("accepted", "")
    too = [*comments, said("Duplicate of #5", id=103, author="ann")]
    assert [link[0] for link in links_of(tmp_path / "4", comments=too, events=events, issues=labelled)] == [
        "accepted"
    ] * 3


def test_a_programs_own_closing_stands_until_somebody_objects(tmp_path):
    closed = replaced(7, state="closed", closed_by="sweeper[bot]", closed_at=said().created_at)
    comments = [said("Closing as a duplicate of #3.", id=100, role="NONE", author="sweeper[bot]")]
    assert links_of(tmp_path / "open", comments=comments) == [("tentative", "unbacked", 7, 3)]
    assert links_of(tmp_path / "1", comments=comments, issues=closed) == [("accepted", "", 7, 3)]
    found = links_of(tmp_path / "2", comments=[*comments, OBJECTION], issues=closed)
    assert found == [("tentative", "disputed", 7, 3)]


def test_a_present_name_outranks_a_former_one(tmp_path):
    repos = [Repo(1, "org/one", "org/one"), Repo(2, "org/two", "org/two", ("org/one",))]
    assert links_of(tmp_path, repos=repos, comments=[said()]) == [("accepted", "", 7, 3)]


def test_logins_are_not_in_the_audit(tmp_path):
    with Store.open(write_store(tmp_path, issues=ISSUES, comments=[said(author="secretlogin")])) as store:
        scan = scan_store(store)
        (link,) = judge(scan, Texts(store))
    row = link.to_dict(scan)
    assert "secretlogin" not in str(row)
    assert row["facts"]["association"] == "MEMBER"
    assert row["url"] == "https://github.com/org/one/issues/7#issuecomment-100"
    assert (row["duplicate"], row["canonical"]) == (
        "https://github.com/org/one/issues/7",
        "https://github.com/org/one/issues/3",
    )


def test_mentions_of_bodies_comments_and_events(tmp_path):
    issues = replaced(7, body="like https://github.com/org/one/issues/2")
    comments = [said("see #4 and #4"), said("see #1", number=8, id=101)]
    events = [
        make_event("a", "cross_referenced", 7, 5, DAY),
        make_event("b", "cross_referenced", 7, 6, DAY, repo="x/y"),
    ]
    with Store.open(write_store(tmp_path, issues=issues, comments=comments, events=events)) as store:
        scan = scan_store(store)
    assert scan.mentions[1] == {pack(1, 8), pack(2, 7), pack(7, 4), pack(5, 7)}
    assert [scan.mentioned((1, 7), (1, n)) for n in (2, 4, 5, 6)] == [True, True, True, False]
    assert scan.mentioned((1, 4), (1, 7))
    assert not scan.mentioned((1, 7), (2, 4))


# Evidence that no single comment gives


def thread_of(folder, *comments, events=(), **seventh):
    """[(reason or evidence, duplicate, original)] of what (author, role, text) say on issue 7."""
    issues = [make_issue(n, **{"author": "rita", **(seventh if n == 7 else {})}) for n in range(1, 10)]
    spoken = [
        make_comment(100 + n, 7, body, DAY + n, author=author, role=role)
        for n, (author, role, body) in enumerate(comments)
    ]
    with Store.open(
        write_store(folder, issues=issues, comments=spoken, events=events), read_only=True
    ) as store:
        links = judge(scan_store(store), Texts(store))
    return [(link.reason or link.evidence, *(end[1] for end in link.ends)) for link in links]


# The issue's own text


@pytest.mark.parametrize("author", ["rita", None])
def test_an_issues_own_text_states_its_original_however_young_that_is(tmp_path, author):
    text = "It crashes when I open the settings.\n\nEDIT: this is a duplicate of #9"
    assert thread_of(tmp_path, body=text, author=author) == [("body:duplicate:admitted", 7, 9)]


@pytest.mark.parametrize(
    "body",
    [
        "Is this a duplicate of #3?",
        "This is not a duplicate of #3.",
        "Similar to #3.",
        "Tracked upstream, see also #3.",
        "> Duplicate of #3",
        "<!-- Duplicate of #3 -->",
    ],
)
def test_what_a_reporter_asks_compares_or_quotes_is_no_statement(tmp_path, body):
    assert thread_of(tmp_path, body=body) == []


def test_the_text_of_a_program_states_nothing(tmp_path):
    assert thread_of(tmp_path, body="Duplicate of #3", author="import[bot]") == []


def test_a_later_comment_takes_the_text_back(tmp_path):
    body = "Duplicate of #3"
    assert thread_of(tmp_path / "1", body=body) == [("body:duplicate:admitted", 7, 3)]
    said = ("rita", "NONE", "Sorry, not a duplicate after all.")
    assert thread_of(tmp_path / "2", said, body=body) == [("retracted", 7, 3)]


# Guesses

GUESS = ("joe", "NONE", "Dup of #3?")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (("rita", "NONE", "Yes, it is."), "comment:duplicate:confirmed"),
        (("maria", "MEMBER", "Oh, indeed. Closing."), "comment:duplicate:confirmed"),
        (("rita", "NONE", "Exactly. Thanks!"), "comment:duplicate:confirmed"),
        (("rita", "NONE", "Correct, same thing."), "comment:duplicate:confirmed"),
        (("rita", "NONE", "yes it is the same crash"), "comment:duplicate:confirmed"),
        (("rita", "NONE", "Right now I can't test this."), "guess"),
        (("rita", "NONE", "Exactly which version do you use?"), "guess"),
        (("rita", "NONE", "Absolutely unrelated, I think."), "guess"),
        (("rita", "NONE", "Definitely related."), "guess"),
        (("rita", "NONE", "Yes, I saw that issue before opening this one."), "guess"),
        (("rita", "NONE", "It does crash on 2.3 as well here."), "guess"),
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
    assert thread_of(tmp_path, GUESS, answer) == [(expected, 7, 3)]


def test_yes_is_the_first_answer_and_to_one_guess_alone(tmp_path):
    yes, log = ("maria", "MEMBER", "Yes."), ("ann", "NONE", "I have a log.")
    assert thread_of(tmp_path / "1", GUESS, log, yes) == [("guess", 7, 3)]
    assert thread_of(tmp_path / "own", ("maria", "MEMBER", GUESS[2]), yes) == [("guess", 7, 3)]
    two = ("joe", "NONE", "Could this be a duplicate of #3 or of #4?")
    assert {reason for reason, *_ in thread_of(tmp_path / "2", two, yes)} == {"guess"}


# A label


@pytest.mark.parametrize(
    "body", ["#3", "See #3.", "Thanks @rita! #3", "https://github.com/org/one/issues/3", "-> #3"]
)
@pytest.mark.parametrize("closed", [{"labels": ("duplicate",)}, {"state_reason": "duplicate"}])
def test_a_bare_number_beside_a_label_is_the_original(tmp_path, body, closed):
    said = ("maria", "MEMBER", body)
    assert thread_of(tmp_path, said, state="closed", **closed) == [("comment:label:corroborated", 7, 3)]


@pytest.mark.parametrize(
    ("comments", "issue"),
    [
        ([("maria", "MEMBER", "#3")], {"state": "closed"}),
        ([("maria", "MEMBER", "#3")], {"labels": ("duplicate",)}),
        ([("joe", "NONE", "#3")], {"state": "closed", "labels": ("duplicate",)}),
        (
            [("maria", "MEMBER", "#3"), ("maria", "MEMBER", "#4")],
            {"state": "closed", "labels": ("duplicate",)},
        ),
        (
            [("maria", "MEMBER", "The fix of this one broke #3.")],
            {"state": "closed", "labels": ("duplicate",)},
        ),
        ([("maria", "MEMBER", "```\n#3\n```")], {"state": "closed", "labels": ("duplicate",)}),
    ],
)
def test_a_number_alone_is_none(tmp_path, comments, issue):
    assert thread_of(tmp_path, *comments, **issue) == []


# What falls later

MARK = make_event("a", "marked", 7, 3, DAY)
WORD = ("maria", "MEMBER", "Duplicate of #3")


def history(*kinds):
    return [make_event(f"h{n}", kind, 7, None, DAY + 1 + n) for n, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("issue", "expected"),
    [
        ({"state_reason": "completed"}, {"completed"}),
        ({"state_reason": "not_planned"}, {"event", "comment:duplicate:event"}),
        ({"state_reason": "completed", "labels": ("duplicate",)}, {"event", "comment:duplicate:event"}),
    ],
)
def test_reopened_and_then_solved_for_itself(tmp_path, issue, expected):
    events = [MARK, *history("reopened", "closed")]
    found = thread_of(tmp_path, WORD, events=events, state="closed", **issue)
    assert {reason for reason, *_ in found} == expected


def test_said_again_after_it_was_reopened(tmp_path):
    log = ("ann", "NONE", "I have a log.")
    found = thread_of(
        tmp_path, WORD, log, log, WORD, events=history("reopened"), state="closed", state_reason="completed"
    )
    assert [reason for reason, *_ in found] == ["completed", "comment:duplicate:write_role"]


def test_a_mark_falls_when_a_write_role_denies_it_by_number(tmp_path):
    denied = ("maria", "MEMBER", "This is not a duplicate of #3, the stack is another.")
    log = ("ann", "NONE", "I have a log.")
    assert thread_of(tmp_path / "1", log, denied, events=[MARK]) == [("retracted", 7, 3)]
    assert thread_of(tmp_path / "2", log, ("joe", "NONE", denied[2]), events=[MARK]) == [("event", 7, 3)]
    assert thread_of(tmp_path / "3", log, ("maria", "MEMBER", "Not a duplicate of #4."), events=[MARK]) == [
        ("event", 7, 3)
    ]
