import gzip
import json
import logging

import pytest
from fake_github_payloads import comment, issue
from fake_github_world import FakeComment, FakeIssue, FakeRepo

from angle_data.errors import InputError
from angle_data.gis.crawl import archive
from angle_data.gis.crawl.archive import load_archives, read_archives
from angle_data.gis.crawl.rows import Event
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import Store

EARLY = "2024-01-01T10:00:00Z"
REPO, NEW = FakeRepo(77, "org/tool"), "new/name"


def item(number=1, *, title="It crashes", updated_at=EARLY, **changes):
    return FakeIssue(500 + number, number, title, "body", "ann", "NONE", EARLY, updated_at, **changes)


def event(kind, action, about, *, id="1", said=None, created_at=EARLY, actor="bob", name="org/tool"):
    payload = {"action": action, "issue": issue(about, REPO, "https://api.github.com")}
    if said:
        payload["comment"] = comment(said, REPO, "https://api.github.com", on_pull=about.is_pull)
    by = {"actor": {"id": 1, "login": actor}, "repo": {"id": REPO.id, "name": name}}
    return {"id": id, "type": kind, **by, "payload": payload, "public": True, "created_at": created_at}


def said(id, number, body="Duplicate of #1"):
    return FakeComment(id, number, "bob", "MEMBER", body, "2024-01-02T10:00:00Z", "2024-01-02T10:00:00Z")


def write(path, *events):
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in events)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["hour.json.gz", "hour.json"])
def test_issues_comments_and_closings_are_read(tmp_path, store, name):
    closed = item(2, state="closed", closed_at="2024-01-03T00:00:00Z", updated_at="2024-01-03T00:00:00Z")
    old = event("IssuesEvent", "opened", item(1))  # of 2015: without these fields
    del old["payload"]["issue"]["node_id"], old["payload"]["issue"]["locked"]
    path = write(
        tmp_path / name,
        old,
        event("IssueCommentEvent", "created", item(2), said=said(9, 2)),
        event("IssuesEvent", "closed", closed, id="44", created_at="2024-01-03T00:00:00Z"),
    )

    assert load_archives(store, [path]) == {"lines": 3, "used": 3}
    found = [(issue.number, issue.state, issue.closed_by) for issue in store.issues(77)]
    assert found == [(1, "open", None), (2, "closed", "bob")]
    assert [(c.id, c.number, c.body) for c in store.comments(77)] == [(9, 2, "Duplicate of #1")]
    closing = Event("archive:44", "closed", 77, 2, None, None, "bob", "2024-01-03T00:00:00Z")
    assert list(store.events(77)) == [closing]
    assert [repo.name for repo in store.repos()] == ["org/tool"]


def test_every_line_is_counted_and_bad_ones_are_not_fatal(tmp_path, store, caplog):
    good = event("IssuesEvent", "opened", item(1))
    old_shape = {**good, "payload": {"action": "opened", "issue": 123}}
    others = [{**good, "type": "PushEvent"}, {**good, "repo": {"id": 5, "name": "other/repo"}}]
    odd = ["{not json", "[1, 2]", good, "", old_shape, {"type": "IssuesEvent"}, '{"a": ' * 99_999]
    path = write(tmp_path / "hour.json.gz", *odd, *others)
    counts = load_archives(store, [path], ["Org/Tool"])
    assert counts == {"lines": 8, "used": 1, "bad": 5, "other": 2}
    assert "skipped 5 lines that are not events from 2015 or later; the first: JSONDecodeError" in caplog.text
    assert store.count("issues") == 1


def test_a_listed_repository_is_followed_through_a_rename(tmp_path, store):
    later = event("IssuesEvent", "opened", item(2), name=NEW)
    path = write(tmp_path / "hour.json", event("IssuesEvent", "opened", item(1)), later)
    assert load_archives(store, [path], ["org/tool"])["used"] == 2
    assert [(repo.name, repo.aliases) for repo in store.repos()] == [(NEW, ("org/tool",))]


def test_a_file_that_ends_early_is_kept_as_far_as_it_goes_and_read_again_when_whole(tmp_path, store, caplog):
    events = [event("IssuesEvent", "opened", item(n)) for n in range(1, 2_502)]
    whole = write(tmp_path / "hour.json.gz", *events)
    data = whole.read_bytes()
    whole.write_bytes(data[: len(data) * 3 // 4])
    assert load_archives(store, [whole])["damaged"] == 1
    assert "is damaged" in caplog.text
    assert 0 < store.count("issues") < 2_501
    whole.write_bytes(data)
    assert load_archives(store, [whole])["used"] == store.count("issues") == 2_501


def test_a_file_is_read_again_for_another_list_another_time_and_other_bytes(tmp_path, store):
    other = {**event("IssuesEvent", "opened", item(2)), "repo": {"id": 5, "name": "other/repo"}}
    path = write(tmp_path / "hour.json", event("IssuesEvent", "opened", item(1)), other)
    assert load_archives(store, [path], ["org/tool"])["used"] == 1
    assert load_archives(store, [path], ["other/repo"])["used"] == 1
    assert load_archives(store, [path], ["Other/Repo"]) == {"known": 1}
    assert load_archives(store, [path], ["other/repo"], "2024-01-01T00:00:00Z")["used"] == 1
    size = path.stat().st_size
    changed = write(path, event("IssuesEvent", "opened", item(3)), other)
    assert changed.stat().st_size == size
    assert load_archives(store, [changed], ["org/tool"])["used"] == 1
    renamed = path.rename(tmp_path / "again.json")
    assert load_archives(store, [renamed], ["org/tool"]) == {"known": 1}
    assert {(issue.repo_id, issue.number) for issue in store.issues()} == {(77, 1), (77, 3), (5, 2)}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_was_deleted_loses_its_text_in_whatever_order(tmp_path, store, order):
    files = []
    for opened, written, at in (("opened", "created", EARLY), ("deleted", "deleted", "2024-01-05T10:00:00Z")):
        issue_row = event("IssuesEvent", opened, item(1), created_at=at)
        comment_row = event("IssueCommentEvent", written, item(2), said=said(9, 2), created_at=at)
        files.append(write(tmp_path / f"{opened}.json", issue_row, comment_row))
    load_archives(store, [files[n] for n in order])
    assert [(c.id, c.body, c.author) for c in store.comments()] == [(9, "", None)]
    assert [(i.number, i.gone, i.title, i.body) for i in store.issues(77, [1])] == [(1, "deleted", "", "")]


def test_dumps_of_another_site_are_refused(tmp_path, store):
    load_archives(store, [write(tmp_path / "a.json", event("IssuesEvent", "opened", item(1)))])
    elsewhere = event("IssuesEvent", "opened", item(2))
    elsewhere["payload"]["issue"]["html_url"] = "https://code.example.com/org/tool/issues/2"
    with pytest.raises(InputError, match=r"issues from https://github.com, .* give another --out"):
        load_archives(store, [write(tmp_path / "b.json", elsewhere)])
    assert store.count("issues") == 1


def test_a_first_day_bounds_the_events(tmp_path, store):
    times = {n: f"2024-01-0{n}T12:00:00Z" for n in (1, 2, 3)}
    events = [event("IssuesEvent", "opened", item(n), created_at=at) for n, at in times.items()]
    path = write(tmp_path / "day.json", *events)
    load_archives(store, [path], (), "2024-01-02T00:00:00Z")
    assert [i.number for i in store.issues()] == [2, 3]
    assert load_archives(store, [path], ())["used"] == 3, "read for a later day only, so far"


def test_archives_need_no_api_no_token_and_no_list(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="angle")
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    path = write(tmp_path / "hour.json.gz", event("IssuesEvent", "opened", item(1)))
    config = GisConfig(tmp_path / "out", archives=(path,), api_url="http://127.0.0.1:9")
    summary = read_archives(config)
    assert (summary.requests, summary.rows["issues"]) == (0, 1)
    assert summary.archive == {"lines": 1, "used": 1}
    assert caplog.text == ""


def test_a_folder_stands_for_its_files_and_what_is_neither_is_named(tmp_path, store):
    for number in (1, 2):
        write(tmp_path / f"{number}.json.gz", event("IssuesEvent", "opened", item(number)))
    assert load_archives(store, [tmp_path])["used"] == 2
    (tmp_path / "empty").mkdir()
    for name in ("nothing.json.gz", "empty"):
        with pytest.raises(InputError, match=f"--archive {tmp_path / name} is neither a file nor a folder"):
            load_archives(store, [tmp_path / name])


def odd_dumps(folder):
    """Files with what a quick look at a line could take for something else, in the order of reading."""
    day, renamed = "2024-01-05T10:00:00Z", "new/name"
    noise = [
        {"type": "PushEvent", "n": n, "payload": {"action": "IssuesEvent"} if n % 9 == 0 else {}}
        for n in range(30)
    ]
    issues = [item(n, title=f"\u2028 {n} \u00e9") for n in range(1, 6)]
    good = [event("IssuesEvent", "opened", each, id=str(each.number)) for each in issues]
    replies = [said(n, n) for n in (1, 2)]
    kind = ("IssueCommentEvent", "created")
    comments = [event(*kind, item(reply.number), said=reply, created_at=day) for reply in replies]
    elsewhere = {**good[0], "repo": {"id": 5, "name": "other/repo"}}
    write(folder / "1.json.gz", elsewhere, event("IssuesEvent", "opened", item(7), name=renamed), *noise)
    write(folder / "2.json.gz", *noise, *good, "", "  ", elsewhere, *comments)
    eighth = event("IssuesEvent", "opened", item(8), name=renamed)
    write(folder / "3.json", eighth, {"type": None}, "[1]", "5")
    odd = [{**good[0], "type": 5}, {**good[0], "created_at": 3}, {**good[0], "repo": {"id": "77"}}, {"id": 1}]
    write(folder / "4.json", *odd, good[0])
    half = json.dumps(event("IssuesEvent", "opened", item(9, title="cut \ud83d")))
    write(folder / "5.json.gz", half, good[1], "{no json", *noise)
    many = [event("IssuesEvent", "opened", item(n)) for n in range(20, 90)]
    whole = write(folder / "6.json.gz", *good, *many)
    whole.write_bytes(whole.read_bytes()[:-40])
    write(folder / "7[1].json", good[2], *noise)
    write(folder / "71.json", good[3])
    (folder / "8.json.gz").write_bytes((folder / "2.json.gz").read_bytes())
    (folder / "9.json").write_bytes(b"")


@pytest.mark.parametrize("names", [(), ("org/tool",)])
@pytest.mark.parametrize("since", [None, "2024-01-05T00:00:00Z"])
def test_lines_that_are_not_decoded_would_have_been_of_no_use(tmp_path, monkeypatch, names, since):
    odd_dumps(tmp_path)
    decoded = []
    loads = archive.loads
    monkeypatch.setattr(archive, "loads", lambda text: decoded.append(text) or loads(text))

    def load(name):
        with Store.open(tmp_path / name) as store:
            counts = load_archives(store, [tmp_path], names, since)
            again = load_archives(store, [tmp_path], names, since)
            return counts, again, list(store.database.iterdump())

    quick, few = load("quick.sqlite"), len(decoded)
    monkeypatch.setattr(archive, "_is_other", lambda line: False)
    assert quick == load("slow.sqlite")
    assert few < len(decoded) - few, "it decoded them all"
    assert quick[0]["known"] == quick[0]["damaged"] == 1
    assert quick[0]["used"] > 1
