"""The facts around a link and the rank made of them; test_links.py has them from the store."""

from dataclasses import replace

import pytest

from angle_data.gis.build.facts import Facts, Rank, gather_facts, rank
from angle_data.gis.comments.reading import read_comment
from angle_data.gis.crawl.rows import Comment, Event, Issue


def link(body="Duplicate of #5"):
    return read_comment(body, "lumen/editor", 9).links[0]


def facts(*events, of=None, **changes):
    """Of a stranger's comment at noon."""
    at = "2024-05-01T12:00:00Z"
    issue = Issue(1, "", 1, 9, **{"author": "jon", "state": "closed", **changes})
    return gather_facts(of or link(), Comment(1, 1, 9, "maria", "NONE", "", at, at, ""), issue, events)


@pytest.mark.parametrize(
    ("time", "actor", "expected"),
    [
        ("12:10:00", "maria", True),
        ("11:50:00", "maria", True),
        ("12:10:01", "maria", False),
        ("12:01:00", "jon", False),
        ("12:01:00", None, False),
    ],
)
def test_closed_by_the_writer_within_ten_minutes(time, actor, expected):
    at = f"2024-05-01T{time}Z"
    assert facts(Event("c", "closed", 1, 9, None, None, actor, at)).closed_by_writer is expected
    assert facts(closed_at=at, closed_by=actor).closed_by_writer is expected


def test_a_reverse_link_is_not_backed_by_this_issues_facts():
    reverse = link("#5 is a duplicate of this")
    assert facts(of=reverse, state_reason="duplicate", author="maria") == Facts(association="NONE")


LABELS = ("duplicate", "*Duplicate", "r: duplicate", "Resolution-Duplicate", "triage/duplicate", "dup")
OTHERS = ("deduplication", "not-duplicate", "possible duplicate", "bug", "duplicator")


@pytest.mark.parametrize("name", [*LABELS, *OTHERS])
def test_labels_for_duplicates(name):
    assert facts(labels=("bug", name)).labelled is (name in LABELS)


def test_ranks_in_the_documented_order():
    sure, unsure = link(), link("Possible duplicate of #5")
    cases = [
        (unsure, Facts(event=True), Rank.EVENT),
        (sure, Facts(association="MEMBER", state_reason=True), Rank.WRITE_ROLE),
        (sure, Facts(association="CONTRIBUTOR", labelled=True), Rank.CORROBORATED),
        (sure, facts(author="maria"), Rank.ADMITTED),
        (sure, Facts(association="CONTRIBUTOR"), Rank.STATED),
        (unsure, Facts(confirmed=True), Rank.CONFIRMED),
        (unsure, Facts(association="OWNER", labelled=True), Rank.CONFIRMED),
        (unsure, Facts(bot=True, closed_by_writer=True), Rank.CONFIRMED),
        (unsure, Facts(association="OWNER", labelled=True, elsewhere=True), Rank.TENTATIVE),
        (unsure, Facts(association="NONE", labelled=True, closed_by_writer=True), Rank.TENTATIVE),
        (replace(unsure, kind="similar"), Facts(association="OWNER", closed_by_writer=True), Rank.TENTATIVE),
    ]
    assert [rank(one, known) for one, known, _ in cases] == [expected for _, _, expected in cases]
