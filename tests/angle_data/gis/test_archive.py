import gzip
import json
import logging

import pytest
from fake_github_payloads import comment, issue
from fake_github_world import FakeComment, FakeIssue, FakeRepo

from angle_data.errors import InputError
from angle_data.gis.archive import ArchiveCounts, load_archives
from angle_data.gis.crawl import CrawlConfig, crawl_repos
from angle_data.gis.rows import Event
from angle_data.gis.store import Store
from angle_data.gis.streams import Window

REPO = FakeRepo(77, "org/tool")


def item(number=1, *, title="It crashes", updated_at="2024-01-01T10:00:00Z", **changes):
    at = "2024-01-01T10:00:00Z"
    return FakeIssue(500 + number, number, title, "body", "ann", "NONE", at, updated_at, **changes)


def event(
    kind, action, about, *, id="1", said=None, created_at="2024-01-01T10:00:00Z", actor="bob", name="org/tool"
):
    payload = {"action": action, "issue": issue(about, REPO, "https://api.github.com")}
    if said:
        payload["comment"] = comment(said, REPO, "https://api.github.com", on_pull=about.is_pull)
    return {
        "id": id,
        "type": kind,
        "actor": {"id": 1, "login": actor},
        "repo": {"id": REPO.id, "name": name},
        "payload": payload,
        "public": True,
        "created_at": created_at,
    }


def said(id, number, body="Duplicate of #1"):
    return FakeComment(id, number, "bob", "MEMBER", body, "2024-01-02T10:00:00Z", "2024-01-02T10:00:00Z")


def write(path, *events):
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in events)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "crawl.sqlite") as opened:
        yield opened


@pytest.mark.parametrize("name", ["hour.json.gz", "hour.json"])
def test_issues_comments_and_closings_are_read(tmp_path, store, name):
    closed = item(2, state="closed", closed_at="2024-01-03T00:00:00Z", updated_at="2024-01-03T00:00:00Z")
    path = write(
        tmp_path / name,
        event("IssuesEvent", "opened", item(1)),
        event("IssueCommentEvent", "created", item(2), said=said(9, 2)),
        event("IssuesEvent", "closed", closed, id="44", created_at="2024-01-03T00:00:00Z"),
    )

    counts = load_archives(store, [path])

    assert counts == ArchiveCounts(lines=3, used=3)
    assert [(i.number, i.state, i.closed_by) for i in store.issues(77)] == [
        (1, "open", None),
        (2, "closed", "bob"),
    ]
    assert [(c.id, c.number, c.body) for c in store.comments(77)] == [(9, 2, "Duplicate of #1")]
    closing = Event("archive:44", "closed", 77, 2, None, None, "bob", "2024-01-03T00:00:00Z")
    assert list(store.events(77)) == [closing]
    assert [repo.name for repo in store.repos()] == ["org/tool"]


def test_the_youngest_version_of_an_issue_wins_in_any_order(tmp_path, store):
    old, new = item(1, title="old"), item(1, title="new", updated_at="2024-02-01T00:00:00Z")
    load_archives(store, [write(tmp_path / "b.json", event("IssuesEvent", "opened", new))])
    load_archives(store, [write(tmp_path / "a.json", event("IssuesEvent", "opened", old))])
    assert [i.title for i in store.issues()] == ["new"]


def test_every_line_is_counted_and_bad_ones_are_not_fatal(tmp_path, store, caplog):
    good = event("IssuesEvent", "opened", item(1))
    old_shape = {**good, "payload": {"action": "opened", "issue": 123}}
    path = write(
        tmp_path / "hour.json.gz",
        "{not json",
        "[1, 2]",
        good,
        "",
        {**good, "type": "PushEvent"},
        old_shape,
        {**good, "repo": {"id": 5, "name": "other/repo"}},
        {"type": "IssuesEvent"},
    )
    counts = load_archives(store, [path], ["Org/Tool"])
    assert counts == ArchiveCounts(lines=7, used=1, bad=2, incomplete=2, other=2)
    assert "2 lines are no JSON, 2 events lack fields" in caplog.text
    assert store.count("issues") == 1


def test_a_listed_repository_is_followed_through_a_rename(tmp_path, store):
    path = write(
        tmp_path / "hour.json",
        event("IssuesEvent", "opened", item(1)),
        event("IssuesEvent", "opened", item(2), name="new/name"),
    )
    counts = load_archives(store, [path], ["org/tool"])
    assert counts.used == 2
    assert [(repo.name, repo.aliases) for repo in store.repos()] == [("new/name", ("org/tool",))]


def test_a_file_that_ends_early_is_kept_as_far_as_it_goes_and_read_again_when_whole(tmp_path, store, caplog):
    events = [event("IssuesEvent", "opened", item(n)) for n in range(1, 400)]
    whole = write(tmp_path / "hour.json.gz", *events)
    data = whole.read_bytes()
    whole.write_bytes(data[: len(data) * 3 // 4])

    counts = load_archives(store, [whole])
    assert counts.damaged == 1
    assert "ends early" in caplog.text
    assert 0 < store.count("issues") < 399

    whole.write_bytes(data)
    assert load_archives(store, [whole]).used == 399
    assert store.count("issues") == 399


def test_a_file_is_read_once(tmp_path, store):
    path = write(tmp_path / "hour.json", event("IssuesEvent", "opened", item(1)))
    load_archives(store, [path])
    assert load_archives(store, [path]) == ArchiveCounts(known=1)


def test_more_events_than_a_page_are_all_written_page_by_page(tmp_path, store, monkeypatch):
    pages = []
    write_page = store.upsert_page
    monkeypatch.setattr(
        store, "upsert_page", lambda **rows: (pages.append(len(rows["issues"])), write_page(**rows))
    )
    path = write(tmp_path / "hour.json", *(event("IssuesEvent", "opened", item(n)) for n in range(1, 2_502)))
    load_archives(store, [path])
    assert store.count("issues") == 2_501
    assert pages == [1_000, 1_000, 501]


def test_dates_bound_the_events(tmp_path, store):
    days = ["2024-01-01", "2024-01-02", "2024-01-03"]
    path = write(
        tmp_path / "day.json",
        *(
            event("IssuesEvent", "opened", item(n), created_at=f"{day}T12:00:00Z")
            for n, day in enumerate(days, start=1)
        ),
    )
    load_archives(store, [path], (), Window("2024-01-02T00:00:00Z", "2024-01-02T23:59:59Z"))
    assert [i.number for i in store.issues()] == [2]


def test_archives_need_no_api_no_token_and_no_list(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="angle")
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    path = write(tmp_path / "hour.json.gz", event("IssuesEvent", "opened", item(1)))
    config = CrawlConfig(None, tmp_path / "out", archives=(path,), api_url="http://127.0.0.1:9")
    summary = crawl_repos(config)
    assert (summary.requests, summary.rows["issues"], summary.archive) == (
        0,
        1,
        ArchiveCounts(lines=1, used=1),
    )
    assert caplog.text == ""


def test_a_missing_dump_is_named(tmp_path, store):
    with pytest.raises(InputError, match=r"--archive .*nothing.json.gz does not exist"):
        load_archives(store, [tmp_path / "nothing.json.gz"])
