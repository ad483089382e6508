"""The queries against the types that the fake serves; test_protocol holds both against GitHub's schema."""

import re

import pytest
from fake_github_graphql import SCHEMA, run_query
from fake_github_world import FakeEvent, make_world
from graphql import parse, validate

from angle_data.gis.crawl import queries, rows

QUERIES = {
    "issues": queries.ISSUES_QUERY,
    "timeline": queries.TIMELINE_QUERY,
    "one number": queries.numbers_query(1),
    "many numbers": queries.numbers_query(queries.NUMBERS_A_QUERY),
}
RATE = {"limit": 5_000, "remaining": 5_000, "used": 0, "resetAt": "2024-01-01T00:00:00Z"}
ASK = {"owner": "org0", "name": "project0", "first": 100, "texts": True, "references": False}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_queries_are_valid_and_bound_every_list(query):
    assert validate(SCHEMA, parse(query)) == []
    lists = re.findall(r"\b(?:issues|labels|timelineItems)\(([^)]*)", query)
    assert all("first:" in arguments or "last:" in arguments for arguments in lists)


@pytest.mark.parametrize("references", [False, True])
def test_a_full_page_costs_the_points_that_the_forecast_counts_with(references):
    world = make_world(0, repos=1, issues=160)
    _, points = run_query(world, queries.ISSUES_QUERY, {**ASK, "references": references}, RATE)
    assert points == queries.POINTS_PER_PAGE + references


def test_duplicates_keep_their_reason():
    """Without `enableDuplicate` GitHub answers with another reason."""
    world = make_world(0, repos=1, issues=5)
    issue = world.repos[1_000].issues[1]
    issue.is_pull, issue.state, issue.state_reason = False, "closed", "duplicate"
    answer, _ = run_query(world, queries.ISSUES_QUERY, ASK, RATE)
    nodes = {node["number"]: node for node in answer["data"]["repository"]["issues"]["nodes"]}
    assert rows.issue_from_node(nodes[1], 1_000).state_reason == "duplicate"


def test_nobody_closed_an_issue_that_is_open_again():
    world = make_world(0, repos=1, issues=5)
    issue = world.repos[1_000].issues[1]
    issue.is_pull, issue.state = False, "closed"
    issue.events = [FakeEvent("E_1", "ClosedEvent", "ann", "2024-01-01T00:00:00Z")]
    for state, closed_by in (("closed", "ann"), ("open", None)):
        issue.state = state
        answer, _ = run_query(world, queries.ISSUES_QUERY, ASK, RATE)
        nodes = {node["number"]: node for node in answer["data"]["repository"]["issues"]["nodes"]}
        assert rows.issue_from_node(nodes[1], 1_000).closed_by == closed_by


def test_the_mark_belongs_to_the_duplicate_at_whichever_end_it_is_read():
    world = make_world(0, repos=1, issues=9, duplicates=0)
    repo = world.repos[1_000]
    for number in (2, 5):
        repo.issues[number].is_pull = False
    mark = FakeEvent("E_1", "MarkedAsDuplicateEvent", "ann", "2024-01-01T00:00:00Z", (1_000, 5), (1_000, 2))
    repo.issues[2].events, repo.issues[5].events = [mark], [mark]
    answer, _ = run_query(world, queries.ISSUES_QUERY, ASK, RATE)
    nodes = {node["number"]: node for node in answer["data"]["repository"]["issues"]["nodes"]}
    ends = [list(rows.events_from_timeline(nodes[n]["timelineItems"], 1_000, n)) for n in (2, 5)]
    assert ends[0] == ends[1]
    assert (ends[0][0].number, ends[0][0].target_repo, ends[0][0].target_number) == (5, "org0/project0", 2)


@pytest.mark.parametrize("hidden", ["duplicate", "canonical"])
def test_a_mark_with_a_hidden_end_links_nothing(hidden):
    mark = {
        "__typename": "MarkedAsDuplicateEvent",
        "id": "E",
        "actor": None,
        "createdAt": "2024-01-01T00:00:00Z",
        "duplicate": {"number": 1, "repository": {"databaseId": 1, "nameWithOwner": "a/b"}},
        "canonical": {"number": 2, "repository": {"databaseId": 1, "nameWithOwner": "a/b"}},
    }
    assert len(list(rows.events_from_timeline({"nodes": [mark]}, 1, 1))) == 1
    assert list(rows.events_from_timeline({"nodes": [{**mark, hidden: None}, None]}, 1, 1)) == []


def test_a_bot_has_the_same_login_in_both_apis():
    assert rows.login_of({"__typename": "Bot", "login": "dependabot"}) == "dependabot[bot]"
    assert rows.login_of({"login": "dependabot[bot]", "type": "Bot"}) == "dependabot[bot]"
    assert rows.login_of({"__typename": "User", "login": "ann"}) == "ann"
    assert rows.login_of(None) is None
