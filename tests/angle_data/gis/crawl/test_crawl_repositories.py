import logging
import sqlite3
from collections import Counter

import pytest
from fake_github import FakeGitHub
from fake_github_crawl import FIRST, SECOND, crawl, dump, rows, say
from fake_github_world import make_world

from angle_data.errors import InputError
from angle_data.gis.build.evidence import scan_store
from angle_data.gis.crawl.store import Store


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
    say(here, (20, "Duplicate of #5"), (21, "dup of #6"), (22, f"Duplicate of {FIRST}#7"))
    say(here, (23, "Duplicate of #8"), (24, "see #9"), (25, "Duplicate of #4000"))
    say(here, (26, "Duplicate of other/repo#10"), (27, "Duplicate of #9"), (28, "Duplicate of #11"))
    here.issues[27].is_pull = True
    for number in (5, 6, 7, 9, 10, 11):
        del here.issues[number]
    here.issues[8].is_pull = True
    here.deleted, here.moved = {6}, {5: (there.id, 3), 11: (here.id, 12)}
    there.issues[3].is_pull = False
    with FakeGitHub(world) as github:
        crawl(github, tmp_path)
        first = {item.number: item for item in rows(tmp_path, "issues", here.id)}
        assert first[5].gone == f"transferred:{SECOND}#3"
        assert first[11].gone == f"transferred:{FIRST}#12"
        assert first[6].gone == "deleted"
        assert first[7].gone == "deleted"
        assert (first[8].gone, first[8].is_pull, first[8].title) == (None, True, here.issues[8].title)
        assert not {9, 10, 4000} & first.keys(), "no issue calls these an original of this repository"
        assert github.count("issue") == 2, "the deleted ones; where the moved one is tells GraphQL"
        github.seen.clear()
        crawl(github, tmp_path)
        assert github.count("issue") == 0, "each is asked for once"
    assert "redirection" not in capfd.readouterr().err, "PyGithub keeps its lines to itself"


@pytest.mark.parametrize(("strategy", "token"), [("both", True), ("comments", True), ("comments", False)])
def test_former_names_lead_to_the_repository_and_are_asked_for_once(tmp_path, monkeypatch, strategy, token):
    if not token:
        monkeypatch.delenv("GITHUB_TOKEN")
    world = make_world(17, repos=2, issues=30, duplicates=0, comments=0)
    here, there = world.repos[1_000], world.repos[1_001]
    here.former, there.former = ("old/name", "older/name"), ("their/old",)
    say(here, (20, "Duplicate of old/name#5"), (21, "dup of https://github.com/Old/Name/issues/6"))
    say(here, (22, "Duplicate of their/old#7"), (23, "Duplicate of no/such#8"))
    here.issues[24].is_pull, here.issues[24].body = False, "EDIT: this is a duplicate of older/name#9"
    here.deleted, there.moved = {5}, {7: (here.id, 10)}
    for repo, number in ((here, 5), (there, 7)):
        del repo.issues[number]
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, strategy=strategy)
        names = github.count("repository") - 2
        github.seen.clear()
        crawl(github, tmp_path, strategy=strategy)
        assert {seen.route for seen in github.seen if "no/such" in str(seen)} == set()
    # Over GraphQL all names are in one query; over REST two redirections are followed, and a third.
    assert names == (0 if token else 4 + 3)
    with Store.open(tmp_path / "crawl.sqlite", read_only=True) as store:
        assert [repo.aliases for repo in store.repos()] == [("old/name", "older/name"), ("their/old",)]
    gone = {(item.repo_id, item.number): item.gone for item in rows(tmp_path, "issues") if item.gone}
    assert gone == {(here.id, 5): "deleted", (there.id, 7): f"transferred:{FIRST}#10"}


SITE = "https://code.example.com:8443"


@pytest.mark.parametrize("strategy", ["events", "comments", "both"])
def test_the_pages_of_an_enterprise_server(tmp_path, strategy):
    world = make_world(17, repos=1, issues=30, duplicates=0, comments=0)
    here = world.repos[1_000]
    say(here, (20, f"Duplicate of {SITE}/{FIRST}/issues/5"), (21, "doublon de #6"))
    say(here, (22, "dup of https://github.com/org0/project0/issues/7"))
    for number in (5, 6, 7):
        del here.issues[number]
    here.deleted = {5, 6, 7}
    with FakeGitHub(world, prefix="/api/v3", web=SITE) as github:
        crawl(github, tmp_path, FIRST, strategy=strategy)
    with Store.open(tmp_path / "crawl.sqlite", read_only=True) as store:
        scan = scan_store(store)
    assert scan.url((1_000, 20)) == f"{SITE}/{FIRST}/issues/20"
    if strategy != "events":
        gone = {item.number for item in rows(tmp_path, "issues") if item.gone}
        assert gone == {5, 6}, "an address on another server names nothing here"
        assert {(said.here[1], said.target_number) for said in scan.statements} == {(20, 5), (21, 6)}


def test_one_folder_takes_one_server(tmp_path):
    with FakeGitHub(make_world(1, repos=1, issues=20)) as github:
        crawl(github, tmp_path, FIRST)
    before = dump(tmp_path)
    elsewhere = pytest.raises(InputError, match=r"issues from https://github.com, .* give another --out")
    with FakeGitHub(make_world(9, repos=1, issues=20), web=SITE) as other, elsewhere:
        crawl(other, tmp_path, FIRST)
    assert dump(tmp_path) == before


def test_a_single_issue_that_github_hides_does_not_end_the_round(tmp_path):
    world = make_world(17, repos=1, issues=30, duplicates=0, comments=0)
    here = world.repos[1_000]
    say(here, *((number, f"Duplicate of #{number - 15}") for number in (20, 21, 22)))
    for number in (5, 6, 7):
        del here.issues[number]
    here.deleted, here.hidden = {7}, {5: 451, 6: 403}
    with FakeGitHub(world) as github:
        crawl(github, tmp_path, FIRST)
        gone = {item.number: item.gone for item in rows(tmp_path, "issues") if item.gone}
        assert gone == {5: "deleted", 7: "deleted"}
        github.seen.clear()
        crawl(github, tmp_path, FIRST)
        assert github.count("issue") == 0


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
            "no/such": "error:404 Not Found", names[0]: "ok", names[1]: "error:404 Not Found",
            names[2]: "error:410 Gone", names[3]: "error:451 Repository access blocked",
            names[4]: "error:410 issues are disabled", names[5]: "error:no issues",
        }  # fmt: skip
        assert "list.txt:8: 'x y z' is not a repository; skipped" in caplog.text
        assert "no/such is skipped: 404 Not Found" in caplog.text
        with Store.open(tmp_path / "crawl.sqlite", read_only=True) as store:
            statuses = {repo.name: repo.status for repo in store.repos()} | store.failures()
        assert statuses == summary.repos
        assert rows(tmp_path, "issues", 1_000)

        world.repos[1_003].refuse = None
        assert crawl(github, tmp_path, names[3]).repos == {names[3]: "ok"}
        with pytest.raises(InputError, match=r"none of 1 repositories can be read; no/such: error:404"):
            crawl(github, tmp_path, "no/such")


def work_of_a_crawl(monkeypatch, github, out, names):
    """What SQLite does for two crawls: statements, their characters with all values, steps of its machine."""
    work, plain = Counter(), sqlite3.connect

    def connect(*arguments, **options):
        connection = plain(*arguments, **options)
        connection.set_trace_callback(lambda sql: work.update(statements=1, characters=len(sql)))
        connection.set_progress_handler(lambda: work.update(steps=1), 10)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        crawl(github, out, *names)
        crawl(github, out, *names)
    return work


def test_the_bookkeeping_grows_with_the_number_of_repositories_and_not_with_its_square(tmp_path, monkeypatch):
    with FakeGitHub(make_world(26, repos=150, issues=1, comments=0)) as github:
        names = [repo.full_name for repo in github.world.repos.values()]
        few = work_of_a_crawl(monkeypatch, github, tmp_path / "few", names[:15])
        many = work_of_a_crawl(monkeypatch, github, tmp_path / "many", names)
    growth = {what: many[what] / few[what] for what in few}
    assert max(growth.values()) < 15, growth
