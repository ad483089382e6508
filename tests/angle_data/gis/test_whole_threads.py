"""Evidence that no single comment gives, from the store to judged links."""

import pytest
from fake_gis_store import make_comment, make_event, make_issue, write_store

from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import scan_store
from angle_data.gis.build.links import judge
from angle_data.gis.crawl.store import Store

DAY = 12  # after all issues were opened


def links_of(folder, *comments, events=(), **seventh):
    """[(reason or evidence, duplicate, original)] of what is said on issue 7 of a store of nine."""
    issues = [make_issue(n, author="rita", **(seventh if n == 7 else {})) for n in range(1, 10)]
    said = [
        make_comment(100 + n, 7, body, DAY + n, author=author, role=role)
        for n, (author, role, body) in enumerate(comments)
    ]
    with Store.open(
        write_store(folder, issues=issues, comments=said, events=events), read_only=True
    ) as store:
        links = judge(scan_store(store), Texts(store))
    return [(link.reason or link.evidence, *(end[1] for end in link.ends)) for link in links]


# The issue's own text


@pytest.mark.parametrize("author", ["rita", None])
def test_an_issues_own_text_states_its_original_however_young_that_is(tmp_path, author):
    text = "It crashes when I open the settings.\n\nEDIT: this is a duplicate of #9"
    issues = [make_issue(n, body=text if n == 7 else "", author=author) for n in range(1, 10)]
    with Store.open(write_store(tmp_path, issues=issues), read_only=True) as store:
        (link,) = judge(scan_store(store), Texts(store))
    assert (link.evidence, link.ends) == ("body:duplicate:admitted", ((1, 7), (1, 9)))
    assert link.to_dict(scan_store(Store.open(tmp_path / "crawl.sqlite", read_only=True)))["url"].endswith(
        "/7"
    )


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
    assert links_of(tmp_path, body=body) == []


def test_the_text_of_a_program_states_nothing(tmp_path):
    issues = [make_issue(7, body="Duplicate of #3", author="import[bot]"), make_issue(3)]
    with Store.open(write_store(tmp_path, issues=issues), read_only=True) as store:
        assert judge(scan_store(store), Texts(store)) == []


def test_a_later_comment_takes_the_text_back(tmp_path):
    body = "Duplicate of #3"
    assert links_of(tmp_path / "1", body=body) == [("body:duplicate:admitted", 7, 3)]
    said = ("rita", "NONE", "Sorry, not a duplicate after all.")
    assert links_of(tmp_path / "2", said, body=body) == [("retracted", 7, 3)]


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
    assert links_of(tmp_path, GUESS, answer) == [(expected, 7, 3)]


def test_yes_is_the_first_answer_and_to_one_guess_alone(tmp_path):
    yes, log = ("maria", "MEMBER", "Yes."), ("ann", "NONE", "I have a log.")
    assert links_of(tmp_path / "1", GUESS, log, yes) == [("guess", 7, 3)]
    two = ("joe", "NONE", "Could this be a duplicate of #3 or of #4?")
    assert {reason for reason, *_ in links_of(tmp_path / "2", two, yes)} == {"guess"}


# A label


@pytest.mark.parametrize(
    "body", ["#3", "See #3.", "Thanks @rita! #3", "https://github.com/org/one/issues/3", "-> #3"]
)
@pytest.mark.parametrize("closed", [{"labels": ("duplicate",)}, {"state_reason": "duplicate"}])
def test_a_bare_number_beside_a_label_is_the_original(tmp_path, body, closed):
    said = ("maria", "MEMBER", body)
    assert links_of(tmp_path, said, state="closed", **closed) == [("comment:label:corroborated", 7, 3)]


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
    assert links_of(tmp_path, *comments, **issue) == []


# What falls later

MARK = make_event("a", "marked", 7, 3, DAY)
SAID = ("maria", "MEMBER", "Duplicate of #3")


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
    found = links_of(tmp_path, SAID, events=events, state="closed", **issue)
    assert {reason for reason, *_ in found} == expected


def test_said_again_after_it_was_reopened(tmp_path):
    log = ("ann", "NONE", "I have a log.")
    found = links_of(
        tmp_path, SAID, log, log, SAID, events=history("reopened"), state="closed", state_reason="completed"
    )
    assert [reason for reason, *_ in found] == ["completed", "comment:duplicate:write_role"]


def test_a_mark_falls_when_a_write_role_denies_it_by_number(tmp_path):
    denied = ("maria", "MEMBER", "This is not a duplicate of #3, the stack is another.")
    log = ("ann", "NONE", "I have a log.")
    assert links_of(tmp_path / "1", log, denied, events=[MARK]) == [("retracted", 7, 3)]
    assert links_of(tmp_path / "2", log, ("joe", "NONE", denied[2]), events=[MARK]) == [("event", 7, 3)]
    assert links_of(tmp_path / "3", log, ("maria", "MEMBER", "Not a duplicate of #4."), events=[MARK]) == [
        ("event", 7, 3)
    ]
