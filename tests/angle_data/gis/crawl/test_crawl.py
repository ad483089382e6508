import dataclasses
import logging
import math

import pytest
from fake_github import FakeGitHub, Fault
from fake_github_crawl import (
    FIRST,
    SECOND,
    TOKEN,
    config_for,
    crawl,
    dump,
    expected_comments,
    expected_events,
    expected_issue,
    rows,
)
from fake_github_world import (
    FakeEvent,
    add_comment,
    all_comments,
    make_world,
    stamp,
)

from angle_data.errors import InputError
from angle_data.gis.crawl.forecast import forecast

# What is asked for


def test_a_crawl_of_all_days_sends_no_filter(tmp_path):
    with FakeGitHub(make_world(3, repos=1, issues=5)) as github:
        crawl(github, tmp_path, FIRST)
        asked = [seen.body["variables"] for seen in github.seen if "IssuesPage" in str(seen.body)]
    assert len(asked) == 1
    assert "filter" not in asked[0], "what GitHub makes of a null is not documented"


# What is found


def test_every_issue_comment_and_event_is_stored_as_it_is_and_the_token_nowhere(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    world = make_world(3, repos=2, issues=130, comments=3)
    next(iter(all_comments(world.repos[1_000]))).minimized = "spam"
    reopened = next(issue for issue in world.repos[1_000].issues.values() if issue.closed_by)
    reopened.state, reopened.closed_at, reopened.closed_by = "open", None, None
    with FakeGitHub(world, token=TOKEN) as github:
        summary = crawl(github, tmp_path)
        crawl(github, tmp_path / "rest", strategy="comments")
    assert summary.repos == {FIRST: "ok", SECOND: "ok"}
    for repo in world.repos.values():
        issues = {item.number: item for item in rows(tmp_path, "issues", repo.id)}
        whole = [expected_issue(item, repo.id) for item in repo.issues.values()]
        plain = [item for item in whole if not item.is_pull]
        assert any(item.author and item.author.endswith("[bot]") for item in plain)
        assert [issues[item.number] for item in plain] == plain
        assert rows(tmp_path, "comments", repo.id) == expected_comments(repo)
        # REST's listing does not tell who closed an issue, and has the pull requests, too.
        known = [dataclasses.replace(item, closed_by=None) for item in whole]
        assert rows(tmp_path / "rest", "issues", repo.id) == known
        assert rows(tmp_path / "rest", "comments", repo.id) == expected_comments(repo, pulls=True)
        assert rows(tmp_path, "events", repo.id) == expected_events(world, repo)
        assert any(event.kind == "marked" for event in rows(tmp_path, "events", repo.id))
    assert TOKEN not in caplog.text + repr(summary)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert TOKEN.encode() not in path.read_bytes()


def test_an_original_with_many_marks_gives_all_of_them(tmp_path):
    """More events than a page shows are asked for; a mark belongs to the duplicate's own repository."""
    world = make_world(3, repos=2, issues=30, duplicates=0)
    hub = world.repos[1_000].issues[1]
    for n in range(35):
        kind = "UnmarkedAsDuplicateEvent" if n == 34 else "MarkedAsDuplicateEvent"
        duplicate = (1_001, 2) if n == 33 else (1_000, n % 28 + 2)
        at = stamp(10_000_000 + n)
        hub.events.append(FakeEvent(f"E_{n}", kind, "ann", at, duplicate=duplicate, canonical=(1_000, 1)))
        hub.updated_at = at
    hub.events.append(FakeEvent("E_lost", "MarkedAsDuplicateEvent", "ann", at, duplicate=(1_000, 1)))
    hub.events.append(FakeEvent("E_hidden", "MarkedAsDuplicateEvent", "ann", at, canonical=(1_000, 1)))
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, FIRST, strategy="events")
    events = rows(tmp_path, "events")
    assert {event.id for event in events} == {f"E_{n}" for n in range(35)}
    assert [event.number for event in events if event.repo_id == 1_001] == [2]
    assert {(event.target_repo, event.target_number) for event in events} == {(FIRST, 1)}


# What it costs


def test_requests_stay_within_the_pages_there_are(tmp_path):
    """The N+1 budget: nothing is asked per issue or per comment."""
    world = make_world(3, repos=1, issues=450, comments=3)
    repo = world.repos[1_000]
    plain = sum(not issue.is_pull for issue in repo.issues.values())
    comments = len(list(all_comments(repo)))
    with FakeGitHub(world) as github:
        crawl(github, tmp_path / "both", FIRST)
        # The comments come with their issues; one query is for the pull requests that they point to.
        assert github.count("graphql") == math.ceil(plain / 100) + 1
        assert (github.count("repository"), len(github.seen)) == (1, github.count("graphql") + 1)
        github.seen.clear()
        crawl(github, tmp_path / "comments", FIRST, strategy="comments")
        # An item or two of each page come again.
        assert github.count("issues") == pytest.approx(math.ceil(450 / 100), abs=1)
        assert github.count("comments") == pytest.approx(math.ceil(comments / 100), abs=1)
        assert github.count("issue") == github.count("graphql") == 0
        assert {seen.query["per_page"] for seen in github.seen if seen.query} == {"100"}


def test_a_second_run_asks_only_for_what_changed(tmp_path):
    world = make_world(3, repos=1, issues=250, comments=2)
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, FIRST)
        before = dump(tmp_path)
        github.seen.clear()

        crawl(github, tmp_path, FIRST)
        assert [seen.route for seen in github.seen] == ["repository", "graphql"]
        assert github.unchanged == 1
        assert dump(tmp_path) == before

        link = world.links[0]
        issue = world.repos[1_000].issues[link.duplicate]
        text = f"Duplicate of #{link.canonical}"
        added = add_comment(issue, 5, "ann", "MEMBER", text, "2024-01-01T00:00:00Z")
        issue.title = "changed"
        world.touch()
        github.seen.clear()
        crawl(github, tmp_path, FIRST)
        assert [seen.route for seen in github.seen] == ["repository", "graphql"]
    assert added.id in {comment.id for comment in rows(tmp_path, "comments")}
    assert [item.title for item in rows(tmp_path, "issues") if item.id == issue.id] == ["changed"]


@pytest.mark.parametrize("issues", [130, 700])
@pytest.mark.parametrize("strategy", ["both", "events", "comments"])
def test_the_estimate_is_within_a_fifth_of_what_the_crawl_then_spends(tmp_path, strategy, issues):
    with FakeGitHub(make_world(3, repos=4, issues=issues, comments=4)) as github:
        names = [repo.full_name for repo in github.world.repos.values()]
        found = forecast(config_for(github, tmp_path, *names, strategy=strategy))
        assert len(github.seen) == found["spent"] == (8 if strategy == "comments" else 1)
        assert not (tmp_path / "crawl.sqlite").exists()
        github.seen.clear()
        summary = crawl(github, tmp_path, *names, strategy=strategy)
        assert summary.requests == len(github.seen)
        assert summary.graphql == github.count("graphql")
        assert summary.graphql < summary.requests / 10 or strategy != "comments"
        assert found["requests"] == pytest.approx(summary.requests, rel=0.2)


# Tokens, servers and dates


def test_without_a_token_comments_are_read_with_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("GITHUB_TOKEN")
    with FakeGitHub(make_world(19, repos=1, issues=20), limit=60) as github:
        crawl(github, tmp_path, FIRST)
        assert github.count("graphql") == 0
        assert "no token in GITHUB_TOKEN: GitHub allows 60 requests an hour" in caplog.text
        with pytest.raises(InputError, match="--strategy events needs a token; set GITHUB_TOKEN"):
            crawl(github, tmp_path, FIRST, strategy="events")
    assert len(rows(tmp_path, "issues")) == 20


def test_an_old_enterprise_server_is_named_with_the_way_out(tmp_path):
    def old(seen):
        return Fault("old") if seen.route == "graphql" else None

    world = make_world(20, repos=1, issues=20)
    gone = world.repos[1_000].issues.pop(3)
    world.repos[1_000].deleted.add(3)
    add_comment(world.repos[1_000].issues[9], 1, "maria", "MEMBER", f"Duplicate of #{gone.number}", stamp(9))
    with FakeGitHub(world, schedule=old, prefix="/api/v3") as github:
        with pytest.raises(InputError, match=r"GraphQL is too old .* use --strategy comments"):
            crawl(github, tmp_path, FIRST)
        crawl(github, tmp_path, FIRST, strategy="comments")
    found = rows(tmp_path, "issues")
    assert len(found) == 20
    assert [issue.number for issue in found if issue.gone] == [3]


@pytest.mark.parametrize("strategy", ["both", "comments"])
def test_a_first_day_bounds_the_last_update_and_can_be_moved_back_later(tmp_path, strategy):
    world = make_world(22, repos=1, issues=200, duplicates=0, comments=2)  # one an hour: 1 to 9 January 2020
    repo = world.repos[1_000]
    for comment in all_comments(repo):
        comment.body = "no number of another issue, which would be looked up"

    def inside(since):
        """REST counts the days of comments; over GraphQL an issue comes with all of its own."""
        if strategy == "comments":
            return {c.id for c in all_comments(repo) if since <= c.updated_at[:10]}
        plain = [one for one in repo.issues.values() if not one.is_pull and since <= one.updated_at[:10]]
        return {c.id for one in plain for c in one.comments}

    with FakeGitHub(world) as github:
        for since in ("2020-01-05", "2020-01-07", "2020-01-02"):
            crawl(github, tmp_path, FIRST, strategy=strategy, since=since)
            reached = min(since, "2020-01-05")
            assert {c.id for c in rows(tmp_path, "comments")} == inside(reached)
            issues = {i.number for i in rows(tmp_path, "issues") if not i.is_pull and not i.gone}
            assert issues == {
                n for n, i in repo.issues.items() if not i.is_pull and reached <= i.updated_at[:10]
            }  # fmt: skip
        crawl(github, tmp_path, FIRST, strategy=strategy)
    assert {c.id for c in rows(tmp_path, "comments")} == inside("")
