import codecs
import gzip
import json
import logging
import tracemalloc

import pytest
from fake_github_payloads import comment, issue
from fake_github_world import FakeComment, FakeIssue, FakeRepo

from angle_data.errors import InputError
from angle_data.gis.crawl import archive, dump_events, dump_files
from angle_data.gis.crawl.archive import load_archives, read_archives
from angle_data.gis.crawl.ledger import dump_record, hours_of, read_ledger
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
    kinds = {"not_json": 1, "too_deep": 1, "not_an_event": 3, "other_type": 1, "other_repository": 1}
    assert counts == {"lines": 8, "used": 1, **kinds}
    assert dump_record(store) == {
        "files": 1, "lines": {"used": 1, **kinds},
        "damaged": {}, "hours": {},
    }  # fmt: skip
    said = (
        "left out 3 lines, JSON, but no event, or an event before 2015, whose shape is another; the first: "
    )
    assert f"{said}hour.json.gz:2: " in caplog.text
    assert "left out 1 line, no JSON; the first: hour.json.gz:1: Expecting" in caplog.text
    assert store.count("issues") == 1


def changed(path, value, kind="IssuesEvent", action="opened", said_in=None):
    """A good event, but for the value at a path of keys; `...` takes the key away."""
    found = event(kind, action, item(2), id="7", said=said_in)
    *way, last = path
    inner = found
    for key in way:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return found


ISSUE, COMMENT = ("payload", "issue"), ("payload", "comment")
REMARK = {"kind": "IssueCommentEvent", "action": "created"}
DAMAGE = {
    "an issue of null dates": (changed((*ISSUE, "created_at"), None), "bad_value"),
    "updated never": (changed((*ISSUE, "updated_at"), None), "bad_value"),
    "a date that is none": (changed((*ISSUE, "updated_at"), "yesterday"), "bad_value"),
    "a list as title": (changed((*ISSUE, "title"), ["a", "b"]), "bad_value"),
    "an object as body": (changed((*ISSUE, "body"), {"text": "x"}), "bad_value"),
    "an id of 65 bits": (changed((*ISSUE, "id"), 2**64), "bad_value"),
    "an id below zero": (changed((*ISSUE, "id"), -1), "bad_value"),
    "an id that is true": (changed((*ISSUE, "id"), True), "bad_value"),
    "a number of 65 bits": (changed((*ISSUE, "number"), 2**64), "bad_value"),
    "a state of its own": (changed((*ISSUE, "state"), "merged"), "bad_value"),
    "labels that are none": (changed((*ISSUE, "labels"), [None, 5]), "bad_value"),
    "no labels": (changed((*ISSUE, "labels"), ...), "missing_field"),
    "no action": (changed(("payload", "action"), ...), "missing_field"),
    "a user that is a list": (changed((*ISSUE, "user"), ["ann"]), "bad_value"),
    "a node id that is a number": (changed((*ISSUE, "node_id"), 5), "bad_value"),
    "no page": (changed((*ISSUE, "html_url"), "nowhere"), "bad_value"),
    "an issue of null": (changed(ISSUE, None), "bad_value"),
    "a payload of text": (changed(("payload",), "x"), "not_an_event"),
    "a repository of 65 bits": (changed(("repo", "id"), 2**64), "bad_value"),
    "a repository without owner": (changed(("repo", "name"), "tool"), "bad_value"),
    "an event of no time": (changed(("created_at",), None), "bad_value"),
    "a comment of null": (changed(COMMENT, None, **REMARK, said_in=said(9, 2)), "bad_value"),
    "a comment of null dates": (
        changed((*COMMENT, "created_at"), None, **REMARK, said_in=said(9, 2)), "bad_value"),
    "a comment of 65 bits": (changed((*COMMENT, "id"), 2**64, **REMARK, said_in=said(9, 2)), "bad_value"),
    "a comment on nothing": (
        changed((*COMMENT, "issue_url"), "x", **REMARK, said_in=said(9, 2)), "bad_value"),
    "a type that is a list": (changed(("type",), ["IssuesEvent"]), "other_type"),
    "a number of 5,000 digits": ('{"type": "IssuesEvent", "n": ' + "9" * 5_000 + "}", "too_deep"),
    "deep in the payload": (
        '{"type": "IssuesEvent", "payload": ' + "[" * 9_999 + "]" * 9_999 + "}", "too_deep"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("names", [(), ("org/tool",)])
def test_a_damaged_event_is_left_out_and_counted_and_the_others_are_kept(tmp_path, store, names, name):
    """The first line of the file, so that nothing of it may decide what the store takes after it."""
    line, kind = DAMAGE[name]
    good = event("IssuesEvent", "opened", item(1))
    without = changed((*ISSUE, "node_id"), ...)
    path = write(tmp_path / "hour.json.gz", line, good, without)
    assert load_archives(store, [path], names) == {"lines": 3, "used": 2, kind: 1}
    assert [issue.number for issue in store.issues()] == [1, 2]
    assert store.count("comments") == store.count("events") == 0
    assert load_archives(store, [path], names) == {"known": 1}


@pytest.mark.parametrize("order", ["earlier first", "later first"])
def test_a_renamed_repository_keeps_its_earlier_dumps(tmp_path, store, order):
    """Its id is learnt from a later file; the earlier ones have it under another name."""
    earlier = [event("IssuesEvent", "opened", item(n), name="old/name") for n in (1, 2)]
    push = {**event("IssuesEvent", "opened", item(9)), "type": "PushEvent"}  # tells the id as well
    files = [
        write(tmp_path / "2024-01-01-0.json.gz", earlier[0]),
        write(tmp_path / "2024-01-01-1.json.gz", earlier[1]),
        write(tmp_path / "2024-01-01-2.json.gz", push),
    ]
    if order == "later first":
        files.reverse()
    counts = load_archives(store, files, ["org/tool"])
    assert counts == {"lines": 3, "used": 2, "other_type": 1}
    assert [issue.number for issue in store.issues(77)] == [1, 2]


def test_files_are_read_again_when_a_later_one_tells_the_id_of_a_listed_repository(tmp_path, store):
    first = write(tmp_path / "1.json", event("IssuesEvent", "opened", item(1), name="old/name"))
    assert load_archives(store, [first], ["org/tool"]) == {"lines": 1, "other_repository": 1}
    assert load_archives(store, [first], ["org/tool"]) == {"known": 1}
    second = write(tmp_path / "2.json", event("IssuesEvent", "opened", item(2)))
    assert load_archives(store, [first, second], ["org/tool"]) == {"lines": 2, "used": 2}
    assert load_archives(store, [first, second], ["org/tool"]) == {"known": 2}
    assert [issue.number for issue in store.issues(77)] == [1, 2]
    assert dump_record(store)["lines"] == {"used": 2}, "of each file the last reading counts"


def test_a_store_that_does_not_tell_for_which_ids_a_file_was_read_reads_it_again(tmp_path, store):
    path = write(tmp_path / "1.json", event("IssuesEvent", "opened", item(1)))
    store.set_meta(f"archive:{dump_files.digest_of(path)}", "read")  # as version 0.1.0 wrote it
    assert load_archives(store, [path]) == {"lines": 1, "used": 1}


def test_a_listed_repository_is_followed_through_a_rename(tmp_path, store):
    later = event("IssuesEvent", "opened", item(2), name=NEW)
    path = write(tmp_path / "hour.json", event("IssuesEvent", "opened", item(1)), later)
    assert load_archives(store, [path], ["org/tool"])["used"] == 2
    assert [(repo.name, repo.aliases) for repo in store.repos()] == [(NEW, ("org/tool",))]


def called(name, day, number=1, repo_id=77):
    """An event of a day on which the repository had this name."""
    found = event(
        "IssuesEvent", "opened", item(number), id=f"{day}", name=name, created_at=f"{day}T00:00:00Z"
    )
    found["repo"]["id"] = repo_id
    found["payload"]["issue"]["id"] = repo_id * 1_000 + number
    return found


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("last", ["org/third", "org/first"])
def test_the_name_is_that_of_the_latest_event_in_whatever_order(tmp_path, store, order, runs, last):
    """GH Archive's hour 10 sorts before its hour 2; and a repository may get a former name back."""
    days = zip(("org/first", "org/tool", last), ("2024-01-01", "2024-02-01", "2024-03-01"), strict=True)
    events = [called(name, day, number) for number, (name, day) in enumerate(days, start=1)]
    files = [write(tmp_path / f"{place}.json", events[index]) for place, index in enumerate(order)]
    tells_id = write(tmp_path / "id.json", {**events[1], "type": "PushEvent"})
    for paths in [files] if runs == 1 else [[file] for file in files]:
        load_archives(store, [*paths, tells_id], ["org/tool"])
    (repo,) = store.repos()
    assert (repo.name, repo.names) == (last, {"org/first", "org/tool", last})
    assert store.count("issues") == 3


@pytest.mark.parametrize(("older", "newer"), [(77, 88), (88, 77)])
@pytest.mark.parametrize("listed", [["org/tool"], None])
def test_a_name_that_two_repositories_had_is_that_of_the_later_and_the_other_is_told_of(
    tmp_path, store, older, newer, listed
):
    events = [
        called("org/tool", "2024-01-01", repo_id=older),
        called("org/tool", "2024-03-01", repo_id=newer),
    ]
    load_archives(store, [write(tmp_path / "1.json", *events)], listed or ())
    ledger = read_ledger(store, listed)
    found = [(one.id, one.outcome, one.used) for one in ledger.repositories]
    assert found == [(newer, "archive", True), (older, "moved", False)]
    said = f"org/tool is the name of another repository now (id {newer}; this one has id {older})"
    assert ledger.left_out() == {"org/tool": said}
    assert ledger.problem() is None


def test_a_repository_that_took_over_an_old_name_of_a_listed_one_is_not_read(tmp_path, store):
    files = [called("org/old", "2024-01-01", 1), called("org/tool", "2024-02-01", 2)]
    stranger = called("org/old", "2024-03-01", repo_id=88)
    counts = load_archives(store, [write(tmp_path / "1.json", *files, stranger)], ["org/tool"])
    assert counts == {"lines": 3, "used": 2, "other_repository": 1}
    assert [one.id for one in read_ledger(store, ["org/tool"]).repositories] == [77]


def test_a_file_that_ends_early_is_kept_as_far_as_it_goes_and_read_again_when_whole(tmp_path, store, caplog):
    events = [event("IssuesEvent", "opened", item(n)) for n in range(1, 2_502)]
    whole = write(tmp_path / "hour.json.gz", *events)
    data = whole.read_bytes()
    whole.write_bytes(data[: len(data) * 3 // 4])
    assert load_archives(store, [whole])["damaged"] == 1
    assert "is damaged" in caplog.text
    assert 0 < store.count("issues") < 2_501
    assert list(dump_record(store)["damaged"]) == ["hour.json.gz"]
    whole.write_bytes(data)
    assert load_archives(store, [whole])["used"] == store.count("issues") == 2_501
    assert dump_record(store) == {"files": 1, "lines": {"used": 2_501}, "damaged": {}, "hours": {}}


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
    mixed = write(tmp_path / "c.json", elsewhere, event("IssuesEvent", "opened", item(3)))
    assert load_archives(store, [mixed]) == {"lines": 2, "used": 1, "other_site": 1}


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


def test_a_folder_stands_for_the_dumps_in_it_and_what_is_neither_is_named(tmp_path, store):
    """Folders within it too; what a download left behind, or a Mac, is no dump."""
    (tmp_path / "2024" / "01").mkdir(parents=True)
    for number, name in enumerate(("1.json.gz", "2024/2.JSON", "2024/01/3.jsonl.gz", "2024/01/4.ndjson"), 1):
        path = tmp_path / name
        write(path, event("IssuesEvent", "opened", item(number)))
    for name in ("5.json.gz.part", "2024/._1.json.gz", "notes.txt"):
        write(tmp_path / name, event("IssuesEvent", "opened", item(9)))
    (tmp_path / "folder.json").mkdir()
    assert load_archives(store, [tmp_path]) == {"lines": 4, "used": 4}
    assert [issue.number for issue in store.issues()] == [1, 2, 3, 4]
    (tmp_path / "empty").mkdir()
    for name in ("nothing.json.gz", "empty"):
        with pytest.raises(InputError, match=f"--archive {tmp_path / name} is neither a file nor a folder"):
            load_archives(store, [tmp_path / name])


def in_utf8(text):
    return codecs.BOM_UTF8 + text.encode()


@pytest.mark.parametrize(
    "encode",
    [
        in_utf8,
        lambda text: text.encode("utf-16"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    ],
    ids=["utf-8", "utf-16-le", "utf-16-be"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_byte_order_marks_are_no_part_of_the_text(tmp_path, store, encode, packed):
    lines = [json.dumps(event("IssuesEvent", "opened", item(n, title="\u2028 é \U0001f600")),
                        ensure_ascii=False, separators=(",", ":")) + "\n" for n in (1, 2)]  # fmt: skip
    data = encode("".join(lines))
    path = tmp_path / "hour.json"  # the name does not tell what is in it
    path.write_bytes(gzip.compress(data) if packed else data)
    assert load_archives(store, [path], ["org/tool"]) == {"lines": 2, "used": 2}
    assert {issue.title for issue in store.issues()} == {"\u2028 é \U0001f600"}


def test_two_files_put_together_have_a_mark_in_the_middle(tmp_path, store):
    data = [in_utf8(json.dumps(event("IssuesEvent", "opened", item(n))) + "\n") for n in (1, 2)]
    (tmp_path / "hour.json.gz").write_bytes(b"".join(map(gzip.compress, data)))
    assert load_archives(store, [tmp_path / "hour.json.gz"])["used"] == 2


def test_hours_that_are_missing_are_named(tmp_path, store, caplog):
    for name in ("2024-01-01-22", "2024-01-02-0", "2024-01-02-4"):
        write(tmp_path / f"{name}.json.gz", event("IssuesEvent", "opened", item(1), id=name))
    load_archives(store, [tmp_path])
    gaps = ["2024-01-01-23", "2024-01-02-1 to 2024-01-02-3"]
    hours = {"first": "2024-01-01-22", "last": "2024-01-02-4", "present": 3, "missing": 4, "gaps": gaps}
    assert dump_record(store)["hours"] == hours
    assert f"no dump of these hours: {gaps[0]}, {gaps[1]}" in caplog.text
    caplog.clear()
    for name in ("2024-01-01-23", "2024-01-02-1", "2024-01-02-2", "2024-01-02-3"):
        write(tmp_path / f"{name}.json.gz")  # the same bytes under four names
    load_archives(store, [tmp_path])
    assert dump_record(store)["hours"] == {**hours, "present": 7, "missing": 0, "gaps": []}
    assert "no dump" not in caplog.text


@pytest.mark.parametrize("name", ["2024-13-01-1.json", "2024-01-01-24.json", "hour.json", "2024-01-01.json"])
def test_a_name_that_tells_no_hour_makes_no_gap(name):
    assert hours_of([name]) == {}


def peak_of(call):
    """What a call returns, and the most megabytes that it held."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_of_many_megabytes_is_skipped_in_little_memory(tmp_path, store, packed):
    good = [json.dumps(event("IssuesEvent", "opened", item(n))) + "\n" for n in (1, 2)]
    path = tmp_path / "hour.json"
    with gzip.open(path, "wb", 1) if packed else path.open("wb") as stream:
        stream.write(good[0].encode() + b'{"type": "IssuesEvent", "x": "')
        for _ in range(60):
            stream.write(b"0" * (1 << 20))
        stream.write(b'"}\n' + good[1].encode())
    counts, peak = peak_of(lambda: load_archives(store, [path]))
    assert counts == {"lines": 3, "used": 2, "too_long": 1}
    assert peak < 30


@pytest.mark.parametrize("line", [b"0" * (1 << 20), b'{"type": "PushEvent"}\n' * (1 << 15)])
def test_a_file_that_expands_out_of_all_proportion_is_given_up(tmp_path, store, monkeypatch, caplog, line):
    monkeypatch.setattr(dump_files, "_ALWAYS_READ", 4 << 20)
    good = json.dumps(event("IssuesEvent", "opened", item(1))) + "\n"
    path = tmp_path / "hour.json.gz"
    with gzip.open(path, "wb", 6) as stream:
        stream.write(good.encode())
        for _ in range(20):
            stream.write(line)
    counts, peak = peak_of(lambda: load_archives(store, [path]))
    assert (counts["used"], counts["damaged"]) == (1, 1)
    assert "is damaged (expands to more than 200 times its size)" in caplog.text
    assert peak < 30
    assert dump_record(store)["damaged"] == {"hour.json.gz": "expands to more than 200 times its size"}


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
    loads = dump_events.loads
    monkeypatch.setattr(dump_events, "loads", lambda text: decoded.append(text) or loads(text))

    def load(name):
        with Store.open(tmp_path / name) as store:
            counts = load_archives(store, [tmp_path], names, since)
            again = load_archives(store, [tmp_path], names, since)
            return counts, again, list(store.database.iterdump())

    quick, few = load("quick.sqlite"), len(decoded)
    monkeypatch.setattr(archive, "is_other", lambda line: False)
    assert quick == load("slow.sqlite")
    assert few < len(decoded) - few, "it decoded them all"
    assert quick[0]["known"] == quick[0]["damaged"] == 1
    assert quick[0]["used"] > 1
