"""The facts around a link and the rank made of them."""

from dataclasses import replace

import pytest

from angle_data.gis.build.facts import (
    Facts,
    Rank,
    gather_facts,
    rank,
)
from angle_data.gis.comments.reading import read_comment
from angle_data.gis.crawl.rows import Comment, Event, Issue

REPO = "lumen/editor"


def link(body="Duplicate of #5"):
    return read_comment(body, REPO, 9).links[0]


def comment(author="maria", association="NONE", at="2024-05-01T12:00:00Z"):
    return Comment(1, 1, 9, author, association, "", at, at, "")


def issue(**changes):
    return Issue(1, "", 1, 9, **{"author": "jon", "state": "closed", **changes})


def closed(at, actor):
    return Event(f"closed{at}", "closed", 1, 9, None, None, actor, at)


def facts(*events, of=None, **changes):
    return gather_facts(of or link(), comment(), issue(**changes), events)


@pytest.mark.parametrize(
    ("at", "actor", "expected"),
    [
        ("2024-05-01T12:10:00Z", "maria", True),
        ("2024-05-01T11:50:00Z", "maria", True),
        ("2024-05-01T12:10:01Z", "maria", False),
        ("2024-05-01T12:01:00Z", "jon", False),
        ("2024-05-01T12:01:00Z", None, False),
    ],
)
def test_closed_by_the_writer_within_ten_minutes(at, actor, expected):
    assert facts(closed(at, actor)).closed_by_writer is expected
    assert facts(closed_at=at, closed_by=actor).closed_by_writer is expected


def test_admission_and_state_reason():
    assert facts(author="maria").admitted
    assert facts(state_reason="duplicate").state_reason


def test_a_reverse_link_is_not_backed_by_this_issues_facts():
    reverse = link("#5 is a duplicate of this")
    assert facts(of=reverse, state_reason="duplicate", author="maria") == Facts(association="NONE")


LABELS = (
    "duplicate",
    "Duplicate",
    "*duplicate",
    "r: duplicate",
    "Resolution-Duplicate",
    "triage/duplicate",
    "dup",
)
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
        (sure, Facts(admitted=True), Rank.ADMITTED),
        (sure, Facts(association="CONTRIBUTOR"), Rank.STATED),
        (sure, facts(), Rank.STATED),
        (unsure, Facts(confirmed=True), Rank.CONFIRMED),
        (unsure, Facts(association="OWNER", labelled=True), Rank.CONFIRMED),
        (unsure, Facts(bot=True, closed_by_writer=True), Rank.CONFIRMED),
        (unsure, Facts(association="OWNER", labelled=True, elsewhere=True), Rank.TENTATIVE),
        (unsure, Facts(association="NONE", labelled=True, closed_by_writer=True), Rank.TENTATIVE),
        (replace(unsure, kind="similar"), Facts(association="OWNER", closed_by_writer=True), Rank.TENTATIVE),
    ]
    assert [rank(one, known) for one, known, _ in cases] == [expected for _, _, expected in cases]
