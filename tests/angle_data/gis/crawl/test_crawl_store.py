import contextlib
import sqlite3

import pytest

from angle_data.errors import InputError
from angle_data.gis.crawl.rows import Comment, Cursor, Issue, tombstone
from angle_data.gis.crawl.store import Store


def issue(number, *, id=None, repo_id=1, updated_at="2024-01-01T00:00:00Z", **changes):
    known = {"title": f"title {number}", "body": "body", "author": "ann", "labels": ("bug", "ui")}
    row_id = id or repo_id * 100 + number
    return Issue(row_id, f"I_{number}", repo_id, number, **{**known, "updated_at": updated_at, **changes})


def comment(id, number, *, repo_id=1, created_at="2024-01-01T00:00:00Z", updated_at=None, body="hello"):
    updated_at = updated_at or created_at
    return Comment(
        id, repo_id, number, None, "NONE", body, created_at, updated_at, f"https://x/issues/{number}"
    )


def test_comments_come_by_thread_and_time_whatever_their_ids_and_order_of_arrival(store):
    late, early = "2024-02-01T00:00:00Z", "2024-01-01T00:00:00Z"
    store.upsert_page(
        comments=[
            comment(1, 7, created_at=late),
            comment(9, 7, created_at=early),
            comment(3, 2, repo_id=2),
            comment(8, 3),
            comment(4, 7, created_at=early),
        ]
    )
    assert [c.id for c in store.comments()] == [8, 4, 9, 1, 3]
    assert [c.id for c in store.comments(1, [7])] == [4, 9, 1]


def test_who_closed_an_issue_is_not_forgotten_by_a_source_that_does_not_say(store):
    store.upsert_page(issues=[issue(1, state="closed", closed_by="bob")])
    store.upsert_page(issues=[issue(1, state="closed", title="new")])
    assert [(i.title, i.closed_by) for i in store.issues()] == [("new", "bob")]
    store.upsert_page(issues=[issue(1, state="open")])
    assert [i.closed_by for i in store.issues()] == [None]


def test_a_tombstone_gives_way_to_the_issue_and_its_number_stays_unique(store):
    store.upsert_page(issues=[tombstone(1, 5, "deleted")])
    assert [(i.number, i.gone) for i in store.issues()] == [(5, "deleted")]
    store.upsert_page(issues=[issue(5)])
    assert [(i.number, i.gone, i.title) for i in store.issues()] == [(5, None, "title 5")]
    big = 2_000_000_000
    store.upsert_page(issues=[tombstone(r, n, "deleted") for r in (big, big + 1) for n in (1, 999_999)])
    assert store.count("issues") == 5, "large repository ids do not collide"


def test_a_page_and_its_cursor_are_written_together_or_not_at_all(store):
    store.upsert_page(issues=[issue(1)], cursor=Cursor(1, "issues", "one", done=False))

    def broken():
        yield issue(2)
        raise RuntimeError("killed in the middle of the page")

    with pytest.raises(RuntimeError):
        store.upsert_page(issues=broken(), cursor=Cursor(1, "issues", "two", done=True))
    assert [i.number for i in store.issues()] == [1]
    assert store.cursor(1, "issues") == Cursor(1, "issues", "one", done=False)


def test_half_a_surrogate_pair_is_replaced_instead_of_refused(store):
    store.upsert_page(issues=[issue(1, body="a\ud83db", labels=("x\udc00",))])
    assert [(i.body, i.labels) for i in store.issues()] == [("a\ufffdb", ("x\ufffd",))]


def test_reading_does_not_make_a_store(tmp_path):
    with pytest.raises(InputError, match="does not exist; run the crawl first"):
        Store.open(tmp_path / "crawl.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_and_another_version_are_named(tmp_path):
    foreign = tmp_path / "text.sqlite"
    foreign.write_text("this is no database, but long enough to look at" * 20)
    with pytest.raises(InputError, match=r"text.sqlite cannot be used as a crawl store"):
        Store.open(foreign)
    with Store.open(tmp_path / "crawl.sqlite") as store:
        store.set_meta("schema_version", "99")
    with pytest.raises(InputError, match="version 99 of the store format"):
        Store.open(tmp_path / "crawl.sqlite")


@pytest.mark.parametrize("table", ["issues", "comments", "events"])
def test_rows_are_read_in_order_without_sorting_a_table_in_memory(store, table):
    """A sort would need room for the whole table; an index gives the order row by row."""
    traced = []
    store.database.set_trace_callback(traced.append)
    list(getattr(store, table)())
    list(getattr(store, table)(1))
    store.database.set_trace_callback(None)
    assert len(traced) == 2
    for query in traced:
        plan = " ".join(row[3] for row in store.database.execute(f"EXPLAIN QUERY PLAN {query}"))
        assert "INDEX" in plan
        assert "TEMP B-TREE" not in plan


def test_a_damaged_store_is_one_line_wherever_it_is_noticed(tmp_path):
    path = tmp_path / "crawl.sqlite"
    with Store.open(path) as opened:
        opened.upsert_page(issues=[issue(n) for n in range(1, 1_000)])
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 40_000)
    damaged = pytest.raises(InputError, match=r"crawl\.sqlite cannot be read or written .* crawl again")
    with damaged, Store.open(path, read_only=True) as opened:
        list(opened.issues())


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "crawl.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE issues (id INTEGER PRIMARY KEY, summary TEXT)")
        database.commit()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(InputError, match="is a database of something else; give another --out"):
            Store.open(path, read_only=read_only)
    assert path.read_bytes() == before
