import contextlib
import sqlite3

import pytest
from fake_gis_store import make_comment, make_issue

from angle_data.errors import InputError
from angle_data.gis.crawl.rows import Cursor, tombstone
from angle_data.gis.crawl.store import Store


def test_comments_come_by_thread_and_time_whatever_their_ids_and_order_of_arrival(store):
    late, elsewhere = make_comment(1, 7, "late", 9), make_comment(3, 2, "elsewhere", 1, repo_id=2)
    early = [make_comment(id, thread, "early", 1) for id, thread in ((9, 7), (8, 3), (4, 7))]
    store.save([late, elsewhere, *early])
    assert [c.id for c in store.comments()] == [8, 4, 9, 1, 3]
    assert [c.id for c in store.comments(1)] == [8, 4, 9, 1]


def test_who_closed_an_issue_is_not_forgotten_by_a_source_that_does_not_say(store):
    store.save([make_issue(1, state="closed", closed_by="bob")])
    store.save([make_issue(1, state="closed", title="new")])
    assert [(i.title, i.closed_by) for i in store.issues()] == [("new", "bob")]
    store.save([make_issue(1, state="open")])
    assert [i.closed_by for i in store.issues()] == [None]


def test_a_tombstone_gives_way_to_the_issue_and_its_number_stays_unique(store):
    store.save([tombstone(1, 5, "deleted")])
    assert [(i.number, i.gone) for i in store.issues()] == [(5, "deleted")]
    store.save([make_issue(5)])
    assert [(i.number, i.gone, i.title) for i in store.issues()] == [(5, None, "Problem with gadget number5")]
    big = 2_000_000_000
    store.save([tombstone(r, n, "deleted") for r in (big, big + 1) for n in (1, 999_999)])
    assert store.count("issues") == 5, "large repository ids do not collide"


def test_a_page_and_its_cursor_are_written_together_or_not_at_all(store):
    store.save([make_issue(1), Cursor(1, "issues", "one", done=False)])

    def broken():
        yield make_issue(2)
        yield Cursor(1, "issues", "two", done=True)
        raise RuntimeError("killed in the middle of the page")

    with pytest.raises(RuntimeError):
        store.save(broken())
    assert [i.number for i in store.issues()] == [1]
    assert store.cursor(1, "issues") == Cursor(1, "issues", "one", done=False)


def test_half_a_surrogate_pair_is_replaced_instead_of_refused(store):
    store.save([make_issue(1, body="a\ud83db", labels=("x\udc00",))])
    assert [(i.body, i.labels) for i in store.issues()] == [("a\ufffdb", ("x\ufffd",))]


def test_what_is_missing_a_foreign_file_and_another_version_are_named(tmp_path):
    with pytest.raises(InputError, match="does not exist; run the crawl first"):
        Store.open(tmp_path / "crawl.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []
    foreign = tmp_path / "text.sqlite"
    foreign.write_text("this is no database, but long enough to look at" * 20)
    with pytest.raises(InputError, match=r"text.sqlite cannot be used as a crawl store"):
        Store.open(foreign)
    with Store.open(tmp_path / "crawl.sqlite") as store:
        store.set_meta("schema_version", "99")
    with pytest.raises(InputError, match=r"cannot be used as a crawl store .*version 99"):
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


def test_a_full_disk_asks_for_room_and_keeps_what_is_there(tmp_path):
    path = tmp_path / "crawl.sqlite"
    said = r"crawl\.sqlite cannot be read or written \(.*full\); make room and run the same command again$"
    with Store.open(path) as opened:
        opened.save([make_issue(1)])
    full = Store.open(path)
    # Stands in for the disk: SQLite reports both in the same way.
    full.database.execute("PRAGMA max_page_count = 1")
    with pytest.raises(InputError, match=said), full:
        full.save([make_issue(n) for n in range(1, 1_000)])
    with Store.open(path) as opened:
        assert [issue.number for issue in opened.issues()] == [1]


def test_a_damaged_store_is_one_line_wherever_it_is_noticed(tmp_path):
    path = tmp_path / "crawl.sqlite"
    with Store.open(path) as opened:
        opened.save([make_issue(n) for n in range(1, 1_000)])
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
        with pytest.raises(InputError, match=r"no such table: meta\); give another --out"):
            Store.open(path, read_only=read_only)
    assert path.read_bytes() == before
