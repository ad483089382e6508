import json
import logging
import math
import os
import signal
import subprocess
import sys

import pytest
from fake_github import FakeGitHub, Fault, random_faults
from fake_github_world import (
    FakeEvent,
    FakeIssue,
    FakeRepo,
    World,
    add_comment,
    all_comments,
    make_world,
    stamp,
)

from angle_data.errors import CredentialsError, InputError, StoppedError
from angle_data.gis.crawl import CrawlConfig, crawl_repos
from angle_data.gis.forecast import forecast
from angle_data.gis.store import Comment, Event, Issue, Repo, Store

TOKEN = "ghp_aVerySecretToken"
FIRST, SECOND = "org0/project0", "org1/project1"


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


def crawl(github, out, *names, **options):
    config = config_for(github, out, *names, **options)
    return crawl_repos(config, sleep=lambda seconds: None)


def config_for(github, out, *names, **options):
    out.mkdir(parents=True, exist_ok=True)
    path = out / "list.txt"
    path.write_text("\n".join(names or (FIRST, SECOND)))
    return CrawlConfig(path, out, **{"api_url": github.url, **options})


def dump(out):
    with Store.open(out / "crawl.sqlite", read_only=True) as store:
        return list(store.dump())


def rows(out, table, repo_id=None):
    with Store.open(out / "crawl.sqlite", read_only=True) as store:
        return list(getattr(store, table)(repo_id))


def expected_issue(item, repo_id):
    return Issue(
        id=item.id,
        node_id=f"I_{item.id}",
        repo_id=repo_id,
        number=item.number,
        title=item.title,
        body=item.body or "",
        author=item.author,
        author_association=item.association,
        state=item.state,
        state_reason=item.state_reason,
        labels=tuple(sorted(item.labels)),
        is_pull=item.is_pull,
        created_at=item.created_at,
        closed_at=item.closed_at,
        closed_by=item.closed_by,
        updated_at=item.updated_at,
        locked=item.locked,
    )


def expected_comments(repo):
    found = []
    for one in all_comments(repo):
        kind = "pull" if repo.issues[one.number].is_pull else "issues"
        url = f"https://github.com/{repo.full_name}/{kind}/{one.number}#issuecomment-{one.id}"
        found.append(
            Comment(
                one.id,
                repo.id,
                one.number,
                one.author,
                one.association,
                one.body,
                one.created_at,
                one.updated_at,
                url,
                one.minimized,
            )
        )
    return sorted(found, key=lambda c: (c.number, c.created_at, c.id))


KINDS = {"MarkedAsDuplicateEvent": "marked", "UnmarkedAsDuplicateEvent": "unmarked", "ClosedEvent": "closed"}


def expected_events(world, repo):
    found = {}
    for issue in repo.issues.values():
        for one in issue.events:
            target = one.canonical or (None, None)
            name = world.repos[target[0]].full_name if one.canonical else None
            owner = one.duplicate or (repo.id, issue.number)
            row = Event(one.id, KINDS[one.type], *owner, name, target[1], one.actor, one.created_at)
            found[one.id] = row
    return sorted(found.values(), key=lambda e: (e.number, e.created_at, e.id))


# What is found


def test_every_issue_comment_and_event_is_stored_as_it_is(tmp_path):
    world = make_world(3, repos=2, issues=130, comments=3)
    next(iter(all_comments(world.repos[1_000]))).minimized = "spam"
    with FakeGitHub(world, token=TOKEN) as github:
        summary = crawl(github, tmp_path)
    assert summary.repos == {FIRST: "ok", SECOND: "ok"}
    for repo in world.repos.values():
        issues = {item.number: item for item in rows(tmp_path, "issues", repo.id)}
        plain = [item for item in repo.issues.values() if not item.is_pull]
        assert plain
        assert [issues[item.number] for item in plain] == [expected_issue(item, repo.id) for item in plain]
        assert rows(tmp_path, "comments", repo.id) == expected_comments(repo)
        assert rows(tmp_path, "events", repo.id) == expected_events(world, repo)
        assert any(event.kind == "marked" for event in rows(tmp_path, "events", repo.id))


def test_rest_and_graphql_give_the_same_rows_but_for_what_only_one_of_them_knows(tmp_path):
    with FakeGitHub(make_world(3, repos=1, issues=120)) as github:
        crawl(github, tmp_path / "rest", FIRST, strategy="comments")
        crawl(github, tmp_path / "graph", FIRST, strategy="events")
    rest = {item.number: item.to_compare() for item in map(_Comparable, rows(tmp_path / "rest", "issues"))}
    graph = {item.number: item.to_compare() for item in map(_Comparable, rows(tmp_path / "graph", "issues"))}
    assert len(rest) == 120
    assert graph == {number: rest[number] for number in graph}
    assert any(item[6] and item[6].endswith("[bot]") for item in graph.values())


class _Comparable:
    """A row without the closing actor and the count of comments."""

    def __init__(self, row):
        self.number, self._row = row.number, row

    def to_compare(self):
        import dataclasses

        return dataclasses.astuple(dataclasses.replace(self._row, closed_by=None, comments=None))


def test_the_events_strategy_also_tells_which_issues_mention_which(tmp_path):
    world = make_world(3, repos=1, issues=20)
    repo = world.repos[1_000]
    repo.issues[3].is_pull = False
    repo.issues[3].events.append(
        FakeEvent("E_x", "CrossReferencedEvent", "ann", "2020-02-01T00:00:00Z", source=(repo.id, 9))
    )
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, FIRST, strategy="events")
    crossed = [event for event in rows(tmp_path, "events") if event.kind == "cross_referenced"]
    assert crossed == [Event("E_x", "cross_referenced", 1_000, 3, FIRST, 9, "ann", "2020-02-01T00:00:00Z")]


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
        routes = ("repository", "graphql", "comments", "issues", "issue")
        counts = {route: github.count(route) for route in routes}
        assert counts == {
            "repository": 1,
            "graphql": math.ceil(plain / 100) + 1,  # one query for the pull requests that comments point to
            "comments": pytest.approx(
                math.ceil(comments / 100), abs=1
            ),  # an item or two of each page come again
            "issues": 0,
            "issue": 0,
        }
        github.seen.clear()
        crawl(github, tmp_path / "comments", FIRST, strategy="comments")
        assert github.count("issues") == pytest.approx(math.ceil(450 / 100), abs=1)
        assert github.count("issue") == github.count("graphql") == 0
        assert {seen.query["per_page"] for seen in github.seen if seen.query} == {"100"}


def test_a_second_run_asks_only_for_what_changed(tmp_path):
    world = make_world(3, repos=1, issues=250, comments=2)
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, FIRST)
        before = dump(tmp_path)
        github.seen.clear()

        again = crawl(github, tmp_path, FIRST)
        assert [seen.route for seen in github.seen] == ["repository", "graphql", "comments"]
        assert again.unchanged == 2
        assert dump(tmp_path) == before

        link = world.links[0]
        issue = world.repos[1_000].issues[link.duplicate]
        text = f"Duplicate of #{link.canonical}"
        added = add_comment(issue, 5, "ann", "MEMBER", text, "2024-01-01T00:00:00Z")
        issue.title = "changed"
        world.touch()
        github.seen.clear()
        crawl(github, tmp_path, FIRST)
        assert [seen.route for seen in github.seen] == ["repository", "graphql", "comments"]
    assert added.id in {comment.id for comment in rows(tmp_path, "comments")}
    assert [item.title for item in rows(tmp_path, "issues") if item.id == issue.id] == ["changed"]


def test_the_forecast_takes_one_request_a_repository_and_writes_nothing(tmp_path):
    world = make_world(3, repos=2, issues=250, comments=4)
    world.repos[1_001].refuse = 451
    out = tmp_path / "out"
    with FakeGitHub(world) as github:
        found = forecast(config_for(github, tmp_path, FIRST, SECOND, strategy="both"))
        assert len(github.seen) == found.spent == 2
        assert [(repo.numbers, repo.comments, repo.graphql, repo.rest) for repo in found.repos] == [
            (250, 1_125, 3, 1 + 12),
            (0, 0, 0, 0),
        ]
        assert (found.points, found.limit) == (6, 5_000)
        assert "451" in found.table()
        assert "13 REST requests" in found.table()
        assert not (tmp_path / "crawl.sqlite").exists()

        crawl(github, out, FIRST)
        spent = forecast(config_for(github, out, FIRST))
        assert (spent.rest, spent.graphql) == (2, 1), "what is stored is not counted again"
        real = len(list(all_comments(world.repos[1_000]))) / 250
        assert spent.comments_per_number == pytest.approx(4.5 if real * 250 < 1_000 else real)


def test_the_forecast_of_a_large_list_is_bound_by_the_hourly_budget(tmp_path):
    """1,000,000 numbers: 10,000 queries of 2 points and 45,000 pages of comments, 5,000 an hour."""
    world = World({1: FakeRepo(1, FIRST)})
    world.repos[1].issues[1] = FakeIssue(1, 1_000_000, "t", "b", None, "NONE", stamp(0), stamp(0))
    with FakeGitHub(world) as github:
        found = forecast(config_for(github, tmp_path, FIRST))
    assert (found.graphql, found.rest, found.points) == (10_001, 45_002, 20_002)
    # 45,002 pages at 0.6 s and 10,001 queries at 2 s take 13.1 hours; the budget alone would take 9.
    assert found.hours == pytest.approx((45_002 * 0.6 + 10_001 * 2.0) / 3_600)


# Interrupted, changed and failing worlds


def reference(tmp_path, world, *names, **options):
    with FakeGitHub(world) as github:
        crawl(github, tmp_path / "reference", *names, **options)
    return dump(tmp_path / "reference")


@pytest.mark.parametrize("strategy", ["both", "comments", "events"])
def test_stopping_after_every_few_requests_gives_the_same_store(tmp_path, strategy):
    world = make_world(5, repos=2, issues=150, comments=2)
    with FakeGitHub(world) as github:
        crawl(github, tmp_path / "reference", strategy=strategy)
        needed = len(github.seen)
    with FakeGitHub(world) as github:
        stops = 0
        while True:
            try:
                crawl(github, tmp_path, strategy=strategy, max_requests=3)
                break
            except StoppedError:
                stops += 1
            assert stops < 50
        assert len(github.seen) <= needed + stops, "a new run asks for one repository again, and no more"
    assert stops >= (1 if strategy == "events" else 3)
    assert dump(tmp_path) == dump(tmp_path / "reference")


@pytest.mark.parametrize("seed", range(2))
def test_a_schedule_of_faults_loses_nothing(tmp_path, seed):
    world = make_world(6, repos=2, issues=150, comments=3)
    whole = reference(tmp_path, world)
    with FakeGitHub(world, schedule=random_faults(seed, 0.4)) as github:
        summary = crawl(github, tmp_path)
        assert summary.requests > 20, "the schedule did strike"
    assert dump(tmp_path) == whole


CRAWLER = """
import sys
from pathlib import Path
from angle_data.gis.crawl import CrawlConfig, crawl_repos
crawl_repos(CrawlConfig(Path(sys.argv[1]), Path(sys.argv[2]), api_url=sys.argv[3]))
"""


def test_three_kills_give_the_same_store_and_cost_a_page_each(tmp_path):
    world = make_world(7, repos=1, issues=180, comments=6)
    whole = reference(tmp_path, world, FIRST)
    running = []

    def kill(seen):
        if len(github.seen) in (3, 7, 12):
            os.kill(running[-1].pid, signal.SIGKILL)

    with FakeGitHub(world, before=kill) as github:
        config = config_for(github, tmp_path, FIRST)
        command = [sys.executable, "-c", CRAWLER, str(config.repos), str(config.out), github.url]
        for _ in range(4):
            running.append(subprocess.Popen(command, stderr=subprocess.PIPE))
            _, errors = running[-1].communicate(timeout=60)
        assert [process.returncode for process in running] == [-9, -9, -9, 0], errors
        repeated = len(github.seen)
    with FakeGitHub(world) as github:
        crawl(github, tmp_path / "count", FIRST)
        # A killed run asks again for the page in flight and for the repository.
        assert repeated <= len(github.seen) + 3 * 2
    assert dump(tmp_path) == whole


@pytest.mark.parametrize("strategy", ["both", "comments"])
def test_items_that_change_while_they_are_read_push_no_other_item_out(tmp_path, strategy):
    """Paging by number would lose one item a page here: what is updated moves to the end of the listing."""
    world = make_world(8, repos=1, issues=250, comments=2)
    repo = world.repos[1_000]

    def touch_early_items(seen):
        if seen.route in ("comments", "issues", "graphql"):
            n = len(github.seen)
            for number in range(n * 3 + 1, n * 3 + 4):
                later = stamp(90_000_000 + n)
                repo.issues[number].updated_at = later
                for comment in repo.issues[number].comments:
                    comment.updated_at = later
            world.touch()

    with FakeGitHub(world, before=touch_early_items) as github:
        crawl(github, tmp_path, FIRST, strategy=strategy)
    wanted = {n for n, issue in repo.issues.items() if strategy == "comments" or not issue.is_pull}
    assert wanted <= {item.number for item in rows(tmp_path, "issues")}
    assert {c.id for c in rows(tmp_path, "comments")} == {c.id for c in all_comments(repo)}


@pytest.mark.parametrize("exclusive", [False, True])
def test_nothing_of_a_pages_last_second_is_lost_whatever_since_means(tmp_path, exclusive):
    """GitHub's pages say "after the given time", its answers begin with that time: both must do."""
    world = make_world(9, repos=1, issues=10)
    for n in range(400):  # seven in each second, so that every page ends within one
        issue = world.repos[1_000].issues[n % 10 + 1]
        add_comment(issue, 900_000 + n, "ann", "NONE", f"comment {n}", stamp(10_000_000 + n // 7))
    with FakeGitHub(world, exclusive=exclusive) as github:
        crawl(github, tmp_path, FIRST, strategy="comments")
    assert {c.id for c in rows(tmp_path, "comments")} == {c.id for c in all_comments(world.repos[1_000])}


@pytest.mark.parametrize("stop_after", [None, 4])
def test_a_whole_page_of_equal_times_is_passed(tmp_path, stop_after):
    """An import writes hundreds of comments in one second; only following the next page gets beyond it."""
    world = make_world(9, repos=1, issues=20)
    issue = world.repos[1_000].issues[4]
    for n in range(350):
        add_comment(issue, 900_000 + n, "importer", "NONE", f"old comment {n}", "2020-03-01T00:00:00Z")
    add_comment(issue, 999_999, "ann", "NONE", "later", "2020-03-01T00:00:05Z")
    with FakeGitHub(world) as github:
        if stop_after:
            with pytest.raises(StoppedError):
                crawl(github, tmp_path, FIRST, max_requests=stop_after)
        crawl(github, tmp_path, FIRST)
        assert {c.id for c in rows(tmp_path, "comments")} == {c.id for c in all_comments(world.repos[1_000])}
        add_comment(issue, 1_000_000, "ann", "NONE", "last", "2020-03-01T00:00:05Z")
        world.touch()
        crawl(github, tmp_path, FIRST)
    assert 1_000_000 in {c.id for c in rows(tmp_path, "comments")}


def test_listings_longer_than_page_numbers_reach_are_read_to_the_end(tmp_path):
    world = make_world(10, repos=1, issues=600, comments=2)
    with FakeGitHub(world, deep=200) as github:
        crawl(github, tmp_path, FIRST, strategy="comments")
    assert len(rows(tmp_path, "issues")) == 600
    assert len(rows(tmp_path, "comments")) == len(list(all_comments(world.repos[1_000])))


def test_pages_that_are_too_heavy_are_halved(tmp_path):
    world = make_world(11, repos=1, issues=150)
    whole = reference(tmp_path, world, FIRST)
    with FakeGitHub(world, heaviest=30) as github:
        crawl(github, tmp_path, FIRST)
        sizes = [seen.body["variables"].get("first") for seen in github.seen if seen.route == "graphql"]
    assert sizes[:3] == [100, 50, 25]
    assert dump(tmp_path) == whole


def test_the_page_size_grows_back_after_a_passing_trouble(tmp_path):
    world = make_world(11, repos=1, issues=700, comments=0)
    with FakeGitHub(world, faults=[None, Fault("timeout"), Fault("html", 502)]) as github:
        crawl(github, tmp_path, FIRST)
        asked = [seen.body["variables"] for seen in github.seen if seen.route == "graphql"]
    sizes = [variables["first"] for variables in asked if "first" in variables]
    assert sizes[:3] == [100, 50, 25]
    assert sizes[3:10] == [25, 25, 50, 50, 50, 100, 100]


def test_timelines_that_are_emptied_without_an_error_are_noticed(tmp_path, caplog):
    """GitHub may cut lists inside a large page and say nothing; then its counts and lists differ."""
    world = make_world(12, repos=1, issues=60)
    whole = reference(tmp_path, world, FIRST)

    def large_pages_are_cut(seen):
        large = seen.route == "graphql" and seen.body["variables"].get("first", 0) > 20
        return Fault("cut") if large else None

    with FakeGitHub(world, schedule=large_pages_are_cut) as github:
        crawl(github, tmp_path / "some", FIRST)
    assert dump(tmp_path / "some") == whole
    with FakeGitHub(world, schedule=lambda seen: Fault("cut")) as github:
        crawl(github, tmp_path / "all", FIRST, strategy="events")
    assert "does not show all of its events" in caplog.text
    assert len(rows(tmp_path / "all", "issues")) == sum(
        not i.is_pull for i in world.repos[1_000].issues.values()
    )


def test_a_page_cursor_that_is_not_accepted_any_more_is_replaced_by_a_time(tmp_path):
    world = make_world(13, repos=1, issues=350)
    whole = reference(tmp_path, world, FIRST)
    with FakeGitHub(world) as github:
        with pytest.raises(StoppedError):
            crawl(github, tmp_path, FIRST, max_requests=3)
        with Store.open(tmp_path / "crawl.sqlite") as store:
            cursor = store.cursor(1_000, "events")
            place = json.loads(cursor.cursor)
            assert place["after"]
            broken = json.dumps({**place, "after": "expired!"})
            store.upsert_page(cursor=type(cursor)(1_000, "events", broken, done=False))
        crawl(github, tmp_path, FIRST)
    assert dump(tmp_path) == whole


def test_a_token_that_expires_midway_stops_at_once_and_the_next_one_goes_on(tmp_path, monkeypatch):
    world = make_world(14, repos=1, issues=250)
    whole = reference(tmp_path, world, FIRST)
    with FakeGitHub(world, faults=[None, None, Fault("status", 401, "Bad credentials")]) as github:
        with pytest.raises(CredentialsError, match="GITHUB_TOKEN"):
            crawl(github, tmp_path, FIRST)
        assert len(github.seen) == 3
        monkeypatch.setenv("GITHUB_TOKEN", "ghp_another")
        crawl(github, tmp_path, FIRST)
    assert dump(tmp_path) == whole


# Repositories that moved, changed or cannot be read


def test_a_renamed_repository_is_followed_and_known_by_all_its_names(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="angle")
    world = make_world(15, repos=1, issues=20)
    repo = world.repos[1_000]
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, FIRST)
        repo.full_name, repo.former = "new/home", (FIRST,)
        summary = crawl(github, tmp_path, FIRST)
        assert summary.repos == {FIRST: "ok"}
        assert rows_of_repos(tmp_path) == [("new/home", FIRST, (FIRST,))]
        crawl(github, tmp_path / "fresh", FIRST, "new/home")
        assert "org0/project0 is called new/home now" in caplog.text
        assert rows_of_repos(tmp_path / "fresh") == [("new/home", FIRST, (FIRST,))]
        fresh = [item.number for item in rows(tmp_path / "fresh", "issues") if not item.is_pull]
    assert fresh == sorted(n for n, issue in repo.issues.items() if not issue.is_pull)


def rows_of_repos(out):
    with Store.open(out / "crawl.sqlite", read_only=True) as store:
        return [(repo.name, repo.asked, repo.aliases) for repo in store.repos()]


def test_a_name_that_passed_to_another_repository_stays_with_the_one_it_was_listed_for(tmp_path):
    world = make_world(16, repos=2, issues=10)
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, FIRST)
        world.repos[1_000].full_name = "moved/away"
        world.repos[1_001].full_name = FIRST
        summary = crawl(github, tmp_path, FIRST)
    assert summary.repos == {FIRST: "ok"}
    assert rows_of_repos(tmp_path) == [("moved/away", FIRST, (FIRST,))]


def test_a_name_that_changes_hands_during_the_crawl_brings_no_foreign_issues(tmp_path):
    world = make_world(16, repos=2, issues=10)

    def swap(seen):
        if seen.route == "graphql":
            world.repos[1_000].full_name, world.repos[1_001].full_name = "moved/away", FIRST

    with FakeGitHub(world, before=swap) as github:
        with pytest.raises(InputError, match="belongs to another repository now"):
            crawl(github, tmp_path, FIRST)
        assert rows(tmp_path, "issues") == []
        assert crawl(github, tmp_path, FIRST).repos == {FIRST: "ok"}
    assert {item.repo_id for item in rows(tmp_path, "issues")} == {1_000}


def test_originals_that_moved_or_vanished_leave_a_tombstone(tmp_path, capfd):
    world = make_world(17, repos=2, issues=30, duplicates=0, comments=0)
    here, there = world.repos[1_000], world.repos[1_001]
    for number, text in ((20, "Duplicate of #5"), (21, "dup of #6"), (22, f"Duplicate of {FIRST}#7"),
                         (23, "Duplicate of #8"), (24, "see #9"), (25, "Duplicate of #4000"),
                         (26, "Duplicate of other/repo#10")):  # fmt: skip
        here.issues[number].is_pull = False
        add_comment(here.issues[number], 10_000 + number, "ann", "MEMBER", text, stamp(9_000_000))
    for number in (5, 6, 7, 9, 10):
        del here.issues[number]
    here.issues[8].is_pull = True
    here.deleted, here.moved = {6}, {5: (there.id, 3)}
    there.issues[3].is_pull = False
    with FakeGitHub(world) as github:
        crawl(github, tmp_path)
        first = {item.number: item for item in rows(tmp_path, "issues", here.id)}
        assert first[5].gone == f"transferred:{SECOND}#3"
        assert first[6].gone == "deleted"
        assert first[7].gone == "deleted"
        assert (first[8].gone, first[8].is_pull, first[8].title) == (None, True, here.issues[8].title)
        assert not {9, 10, 4000} & first.keys(), "nobody called these an original of this repository"
        assert github.count("issue") == 4, "one each, and one redirection"
        github.seen.clear()
        crawl(github, tmp_path)
        assert github.count("issue") == 0, "each is asked for once"
    assert "redirection" not in capfd.readouterr().err, "PyGithub keeps its lines to itself"


def test_one_bad_repository_does_not_stop_the_others(tmp_path, caplog):
    world = make_world(18, repos=6, issues=10)
    names = [repo.full_name for repo in world.repos.values()]
    for offset, status in ((1, 404), (2, 410), (3, 451)):
        world.repos[1_000 + offset].refuse = status
    world.repos[1_004].has_issues = False
    world.repos[1_005].issues.clear()
    with FakeGitHub(world) as github:
        summary = crawl(github, tmp_path, "no/such", *names, "x y z")
        assert summary.repos == {
            "no/such": "error:404 Not Found",
            names[0]: "ok",
            names[1]: "error:404 Not Found",
            names[2]: "error:410 Gone",
            names[3]: "error:451 Repository access blocked",
            names[4]: "error:410 issues are disabled",
            names[5]: "error:no issues",
        }
        assert summary.bad_lines == (f"{tmp_path / 'list.txt'}:8: x y z",)
        assert "list.txt:8: 'x y z' is no repository; skipped" in caplog.text
        assert "no/such is skipped: 404 Not Found" in caplog.text
        with Store.open(tmp_path / "crawl.sqlite", read_only=True) as store:
            statuses = {repo.name: repo.status for repo in store.repos()} | store.failures()
        assert statuses == summary.repos
        assert rows(tmp_path, "issues", 1_000)

        world.repos[1_003].refuse = None
        assert crawl(github, tmp_path, names[3]).repos == {names[3]: "ok"}
        with pytest.raises(InputError, match=r"none of 1 repositories can be read; no/such: error:404"):
            crawl(github, tmp_path, "no/such")


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


def test_an_old_enterprise_server_is_read_without_events(tmp_path, caplog):
    def old(seen):
        return Fault("old") if seen.route == "graphql" else None

    with FakeGitHub(make_world(20, repos=2, issues=20), schedule=old, prefix="/api/v3") as github:
        crawl(github, tmp_path)
        assert github.count("graphql") == 1
    assert "GraphQL is too old" in caplog.text
    assert len(rows(tmp_path, "issues")) == 40
    assert rows(tmp_path, "comments")


def test_the_token_is_written_nowhere(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with FakeGitHub(make_world(21, repos=1, issues=20)) as github:
        summary = crawl(github, tmp_path, FIRST)
    assert TOKEN not in caplog.text + repr(summary)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize("strategy", ["both", "comments"])
def test_dates_bound_the_last_update_and_can_be_widened_later(tmp_path, strategy):
    world = make_world(22, repos=1, issues=200, duplicates=0, comments=2)  # one an hour: 1 to 9 January 2020
    repo = world.repos[1_000]
    for comment in all_comments(repo):
        comment.body = "no number of another issue, which would be looked up"

    def inside(since, until):
        return {c.id for c in all_comments(repo) if since <= c.updated_at[:10] <= until}

    with FakeGitHub(world) as github:
        for since, until in (
            ("2020-01-03", "2020-01-05"),
            ("2020-01-03", "2020-01-07"),
            ("2020-01-02", "2020-01-07"),
        ):
            crawl(github, tmp_path, FIRST, strategy=strategy, since=since, until=until)
            assert {c.id for c in rows(tmp_path, "comments")} == inside(since, until)
            issues = {i.number for i in rows(tmp_path, "issues") if not i.is_pull and not i.gone}
            assert issues == {
                n for n, i in repo.issues.items() if not i.is_pull and since <= i.updated_at[:10] <= until
            }  # fmt: skip
        crawl(github, tmp_path, FIRST, strategy=strategy)
    assert {c.id for c in rows(tmp_path, "comments")} == {c.id for c in all_comments(repo)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "all"}, "--strategy must be events, comments or both, got 'all'"),
        ({"since": "yesterday"}, "--since 'yesterday' is no date"),
        ({"until": "2024-02-31"}, "--until '2024-02-31' is no date"),
        ({"until": "20240201"}, "no date"),
        ({"since": "2024-02-02", "until": "2024-02-01"}, "lies before"),
        ({"repos": None}, "give --repos"),
    ],
)
def test_options_that_mean_nothing_are_named(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        CrawlConfig(**{"repos": tmp_path / "list.txt", "out": tmp_path, **options})


def test_a_link_of_the_known_world_can_be_read_from_the_store(tmp_path):
    """The marks that GitHub shows are found with their originals, whichever of the two timelines had them."""
    world = make_world(23, repos=2, issues=90)
    with FakeGitHub(world) as github:
        crawl(github, tmp_path)
    names = {repo.full_name: repo.id for repo in world.repos.values()}
    found = {
        (event.repo_id, event.number, names[event.target_repo], event.target_number)
        for event in rows(tmp_path, "events")
        if event.kind == "marked"
    }
    marked = {
        (link.repo_id, link.duplicate, link.repo_id, link.canonical)
        for link in world.links
        if link.how != "comment"
    }
    assert found == marked
    assert len(marked) > 10


def test_a_repository_is_a_row_even_where_only_the_name_is_known_twice(tmp_path):
    with FakeGitHub(make_world(24, repos=1, issues=5)) as github:
        crawl(github, tmp_path, FIRST.upper(), FIRST)
        with Store.open(tmp_path / "crawl.sqlite", read_only=True) as store:
            assert [(repo.id, repo.name) for repo in store.repos()] == [(1_000, FIRST)]
            assert isinstance(next(store.repos()), Repo)
