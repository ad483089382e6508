"""From the store to judged links: every reason has its case."""

import pytest
from fake_gis_store import make_comment, make_event, make_issue, write_store

from angle_data.gis.links import REASONS, judge
from angle_data.gis.rows import Repo
from angle_data.gis.scan import scan_store
from angle_data.gis.store import Store
from angle_data.gis.texts import Texts

ISSUES = [make_issue(n) for n in range(1, 10)]
DAY = 12  # after all of these were opened


def links_of(folder, *, cross_repo=False, **rows):
    """[(status, reason, duplicate number, canonical number)] of a small store."""
    rows.setdefault("issues", ISSUES)
    with Store.open(write_store(folder, **rows), read_only=True) as store:
        scan = scan_store(store)
        links = judge(scan, scan.statements, Texts(store), cross_repo=cross_repo)
    return [
        (link.status, link.reason, link.duplicate and link.duplicate[1], link.canonical and link.canonical[1])
        for link in links
    ]


def said(body="Duplicate of #3", number=7, at=DAY, id=100, **fields):
    return make_comment(id, number, body, at, **fields)


def test_a_member_is_believed(tmp_path):
    assert links_of(tmp_path, comments=[said()]) == [("accepted", "", 7, 3)]


def test_the_reverse_direction(tmp_path):
    found = links_of(tmp_path, comments=[said("#7 is a duplicate of this", number=3)])
    assert found == [("accepted", "", 7, 3)]


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
        ("dummy", {"comments": [said()], "issues": replaced(3, title="test")}),
        ("reopened", {"comments": [said()], "issues": replaced(7, state_reason="reopened")}),
    ],
)  # fmt: skip
def test_why_a_link_is_not_accepted(tmp_path, reason, rows):
    assert reason in REASONS
    found = links_of(tmp_path, **rows)
    assert [link[1] for link in found] == [reason]
    assert (found[0][0] == "tentative") == REASONS[reason].startswith("tentative")


def test_another_repository_only_when_allowed(tmp_path):
    repos = [Repo(1, "org/one", "org/one"), Repo(2, "org/two", "org/two", ("old/name",))]
    rows = {
        "repos": repos,
        "issues": [*ISSUES, make_issue(3, repo_id=2)],
        "comments": [said("Duplicate of old/name#3")],
    }
    assert links_of(tmp_path, **rows)[0][:2] == ("rejected", "other_repository")
    assert links_of(tmp_path, **rows, cross_repo=True)[0][:2] == ("accepted", "")


def test_a_transferred_issue_is_followed(tmp_path):
    found = links_of(tmp_path, comments=[said()], issues=replaced(3, gone="transferred:Org/One#5"))
    assert found == [("accepted", "", 7, 5)]


def test_transfers_in_a_circle_end(tmp_path):
    issues = [
        make_issue(1, gone="transferred:org/one#2"),
        make_issue(2, gone="transferred:org/one#1"),
        ISSUES[6],
    ]
    assert links_of(tmp_path, comments=[said("Duplicate of #1")], issues=issues)[0][1] == "moved_away"


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


def test_an_objection_does_not_outweigh_a_mark(tmp_path):
    mark = make_event("a", "marked", 7, 3, DAY)
    found = links_of(tmp_path, comments=[said(), OBJECTION], events=[mark])
    assert [link[0] for link in found] == ["accepted", "accepted"]


def test_a_present_name_outranks_a_former_one(tmp_path):
    repos = [Repo(1, "org/one", "org/one"), Repo(2, "org/two", "org/two", ("org/one",))]
    assert links_of(tmp_path, repos=repos, comments=[said()]) == [("accepted", "", 7, 3)]


def test_opened_again_unless_closed_again(tmp_path):
    events = [make_event("a", "closed", 7, None, DAY), make_event("b", "reopened", 7, None, DAY + 1)]
    assert links_of(tmp_path / "1", comments=[said()], events=events)[0][1] == "reopened"
    # The marker came after the reopening.
    assert links_of(tmp_path / "2", comments=[said(at=DAY + 2)], events=events)[0][1] == ""
    closed = replaced(7, state="closed")
    assert links_of(tmp_path / "3", comments=[said()], events=events, issues=closed)[0][1] == ""


def test_links_in_a_circle_are_both_kept(tmp_path):
    comments = [said(), said("Duplicate of #7", number=3, id=101)]
    assert sorted(links_of(tmp_path, comments=comments)) == [("accepted", "", 3, 7), ("accepted", "", 7, 3)]


def test_logins_are_not_in_the_audit(tmp_path):
    with Store.open(write_store(tmp_path, issues=ISSUES, comments=[said(author="secretlogin")])) as store:
        scan = scan_store(store)
        (link,) = judge(scan, scan.statements, Texts(store))
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
    comments = [said("see #4")]
    events = [
        make_event("a", "cross_referenced", 7, 5, DAY),
        make_event("b", "cross_referenced", 7, 6, DAY, repo="x/y"),
    ]
    with Store.open(write_store(tmp_path, issues=issues, comments=comments, events=events)) as store:
        assert scan_store(store).mentions == {1: {(2, 7), (4, 7), (5, 7)}}
