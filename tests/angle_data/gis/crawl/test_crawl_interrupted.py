import json
import os
import signal
import subprocess
import sys

import pytest
from fake_github import FakeGitHub, Fault
from fake_github_crawl import FIRST, config_for, crawl, dump, expected_comments, reference, rows
from fake_github_world import add_comment, all_comments, make_world, stamp

from angle_data.errors import CredentialsError, StoppedError


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
                crawl(github, tmp_path, strategy=strategy, max_requests=2)
                break
            except StoppedError:
                stops += 1
            assert stops < 50
        assert len(github.seen) <= needed + stops, "a new run asks for one repository again, and no more"
    assert stops >= 3
    assert dump(tmp_path) == dump(tmp_path / "reference")


def test_a_stopped_round_is_not_continued_with_other_options(tmp_path):
    world = make_world(5, repos=2, issues=60, comments=2)
    with FakeGitHub(world) as github:
        with pytest.raises(StoppedError):
            crawl(github, tmp_path, strategy="events", max_requests=3)
        crawl(github, tmp_path, strategy="both")
    for repo in world.repos.values():
        assert rows(tmp_path, "comments", repo.id) == expected_comments(repo)


CRAWLER = """
import sys
from pathlib import Path
from angle_data.gis.collect import crawl_repos
from angle_data.gis.crawl.selection import GisConfig
crawl_repos(GisConfig(Path(sys.argv[2]), Path(sys.argv[1]), api_url=sys.argv[3]))
"""


def test_three_kills_give_the_same_store_and_cost_a_page_each(tmp_path):
    world = make_world(7, repos=1, issues=450, comments=6)
    whole = reference(tmp_path, world, FIRST)
    running = []

    def kill(seen):
        if len(github.seen) in (2, 4, 7):
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
    comments = {comment.id for n in wanted for comment in repo.issues[n].comments}
    assert {comment.id for comment in rows(tmp_path, "comments")} == comments


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


@pytest.mark.parametrize("strategy", ["comments", "both"])
@pytest.mark.parametrize("stop_after", [None, 4])
def test_a_thread_of_hundreds_of_comments_of_one_second_is_read_whole(tmp_path, strategy, stop_after):
    """An import writes them; REST gets beyond a page of one second only by following the next page."""
    world = make_world(9, repos=1, issues=20)
    for one in world.repos[1_000].issues.values():
        one.is_pull = False
    issue = world.repos[1_000].issues[4]
    for n in range(350):
        add_comment(issue, 900_000 + n, "importer", "NONE", f"old comment {n}", "2020-03-01T00:00:00Z")
    add_comment(issue, 999_999, "ann", "NONE", "later", "2020-03-01T00:00:05Z")
    with FakeGitHub(world) as github:
        if stop_after:
            with pytest.raises(StoppedError):
                crawl(github, tmp_path, FIRST, strategy=strategy, max_requests=stop_after)
        crawl(github, tmp_path, FIRST, strategy=strategy)
        assert {c.id for c in rows(tmp_path, "comments")} == {c.id for c in all_comments(world.repos[1_000])}
        add_comment(issue, 1_000_000, "ann", "NONE", "last", "2020-03-01T00:00:05Z")
        world.touch()
        crawl(github, tmp_path, FIRST, strategy=strategy)
    assert 1_000_000 in {c.id for c in rows(tmp_path, "comments")}


def test_listings_longer_than_page_numbers_reach_are_read_to_the_end(tmp_path):
    world = make_world(10, repos=1, issues=600, comments=2)
    with FakeGitHub(world, deep=200) as github:
        crawl(github, tmp_path, FIRST, strategy="comments")
    assert len(rows(tmp_path, "issues")) == 600
    assert len(rows(tmp_path, "comments")) == len(list(all_comments(world.repos[1_000])))


def test_pages_that_are_too_heavy_are_halved_and_grow_back_after_a_passing_trouble(tmp_path):
    world = make_world(11, repos=1, issues=700, comments=0)
    whole = reference(tmp_path, world, FIRST)
    with FakeGitHub(world, faults=[None, Fault("timeout"), Fault("html", 502)]) as github:
        crawl(github, tmp_path, FIRST)
        asked = [seen.body["variables"] for seen in github.seen if seen.route == "graphql"]
    sizes = [variables["first"] for variables in asked if "first" in variables]
    assert sizes[:10] == [100, 50, 25, 25, 25, 50, 50, 50, 100, 100]
    assert dump(tmp_path) == whole


def test_timelines_that_are_emptied_without_an_error_are_noticed(tmp_path, caplog):
    """GitHub may cut lists inside a large page and say nothing; then its counts and lists differ."""
    world = make_world(12, repos=1, issues=30)
    whole = reference(tmp_path, world, FIRST)

    def large_pages_are_cut(seen):
        large = seen.route == "graphql" and seen.body["variables"].get("first", 0) > 20
        return Fault("cut") if large else None

    with FakeGitHub(world, schedule=large_pages_are_cut) as github:
        crawl(github, tmp_path / "some", FIRST)
    assert dump(tmp_path / "some") == whole
    with FakeGitHub(world, schedule=lambda seen: Fault("cut")) as github:
        summary = crawl(github, tmp_path / "all", FIRST)
    plain = [issue for issue in world.repos[1_000].issues.values() if not issue.is_pull]
    assert len([item for item in rows(tmp_path / "all", "issues") if not item.is_pull]) == len(plain)
    assert "does not show all of its events" in caplog.text
    assert len(summary.set_aside) == sum(bool(issue.events or issue.comments) for issue in plain)
    with FakeGitHub(world) as github:
        assert crawl(github, tmp_path / "all", FIRST).set_aside == {}
    assert dump(tmp_path / "all") == whole


def test_comments_that_github_counts_and_hides_cost_one_more_request(tmp_path):
    world = make_world(12, repos=1, issues=30, duplicates=0, comments=0)
    issues = world.repos[1_000].issues
    for number in (3, 4):
        issues[number].is_pull = False
        for n in range(4):
            add_comment(issues[number], 10 * number + n, "ann", "NONE", "hi", stamp(9_000_000))
    whole = reference(tmp_path, world, FIRST)
    issues[3].comments[1].shown = False
    with FakeGitHub(world) as github:
        assert crawl(github, tmp_path, FIRST).set_aside == {}
        assert github.count("graphql") == 2
    assert dump(tmp_path) == [line for line in whole if '["comments", 31,' not in line] != whole


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


def test_one_heavy_issue_is_set_aside_and_asked_for_again(tmp_path, caplog):
    """However small the page, GraphQL times out; all else is read, and the text comes over REST."""
    world = make_world(11, repos=2, issues=150)
    whole = reference(tmp_path, world)
    heavy = next(i for i in world.repos[1_000].issues.values() if i.number > 70 and not i.is_pull)
    heavy.heavy = True
    with FakeGitHub(world) as github:
        summary = crawl(github, tmp_path)
        assert list(summary.set_aside) == [f"{FIRST}#{heavy.number}"]
        assert "timeout" in summary.set_aside[f"{FIRST}#{heavy.number}"]
        assert f"{FIRST}#{heavy.number} could not be fetched" in caplog.text
        texts = {item.number: item.title for item in rows(tmp_path, "issues", 1_000)}
        assert texts[heavy.number] == heavy.title
        lost = set(whole) - set(dump(tmp_path))
        assert {json.loads(line)[0] for line in lost} <= {"issues", "events", "comments"}
        assert all(f", {heavy.number}, " in line for line in lost)

        heavy.heavy = False
        assert crawl(github, tmp_path).set_aside == {}
    found, expected = ([line for line in lines if '["events"' in line] for lines in (dump(tmp_path), whole))
    assert found == expected != []
