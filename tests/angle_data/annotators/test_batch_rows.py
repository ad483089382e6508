"""Rows of a batch's result file that are odd, torn, deep or lost: each costs its own request and no other."""

import json

import pytest
from batch_client import KEY, answers, connected
from tiny_llm import numbered_requests as requests


def rows_of(server):
    """The result rows of the only batch, which ends now."""
    (batch,) = server.batches.values()
    server.complete(batch)
    return batch, [json.loads(line) for line in server.files[batch.output_file][1].splitlines()]


def store(server, batch, rows):
    server.files[batch.output_file] = ("o", "".join(json.dumps(row) + "\n" for row in rows).encode())


def test_odd_rows_cost_their_own_request_and_no_other(tmp_path, caplog):
    """Of one request no row, of one no completion, of one a second answer, and a row of nobody's."""
    with connected(tmp_path, strangers=1) as (server, client):
        client.run(requests(4))
        batch, rows = rows_of(server)
        rows = sorted(rows, key=lambda row: row["custom_id"])
        rows[1]["response"]["body"] = {"choices": []}
        store(server, batch, [*rows[1:], rows[2]])
        batch.error_file = batch.output_file
        assert client.run(requests(4)) is None
    kinds = {int(key, 16): failure.kind for key, failure in client.failures.items()}
    assert kinds == {0: "missing", 1: "no_reply"}
    assert client.texts() == answers(2, first=2)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["batch batch_1: 7 result rows ignored that answer none of its requests"]


def test_a_key_in_the_rows_of_a_batch_stays_out_of_the_replies(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    options = {"reply": lambda body: f"your key is {KEY}", "key_env": "MY_KEY"}
    with connected(tmp_path, wait_s=30, **options) as (_, client):
        client.run(requests(1))
    assert list(client.texts().values()) == ["your key is [key]"]


@pytest.mark.parametrize("place", [1, 3], ids=["in the middle", "at the end"])
@pytest.mark.parametrize("unit", [b"\n", b""], ids=["with the end of its line", "without"])
def test_a_torn_row_costs_its_own_request_and_blocks_nothing(tmp_path, caplog, place, unit):
    with connected(tmp_path) as (server, client):
        client.run(requests(4))
        batch, rows = rows_of(server)
        rows = sorted(rows, key=lambda row: row["custom_id"])
        lines = [json.dumps(row).encode() + b"\n" for row in rows]
        lines[place] = lines[place][:-30] + (unit if place == 3 else b"\n")
        server.files[batch.output_file] = ("o", b"".join(lines))
        assert client.run(requests(4)) is None
        assert {int(key, 16): failure.kind for key, failure in client.failures.items()} == {place: "missing"}
        assert len(client.replies) == 3
        torn_at_the_end = place == 3 and not unit
        # Once more: it may have been cut on its way.
        assert server.calls.count("content") == 1 + torn_at_the_end
        assert ("ends in the middle of a row" in caplog.text) == torn_at_the_end
        assert client.until_done(requests(4)) is None
        assert server.asked[4:] == [f"{place:032x}"]
    assert client.texts() == answers(4)


def test_a_lost_result_file_is_missing_rows(tmp_path):
    with connected(tmp_path) as (server, client):
        client.run(requests(2))
        batch, _ = rows_of(server)
        del server.files[batch.output_file]
        assert client.run(requests(2)) is None
        assert {failure.kind for failure in client.failures.values()} == {"missing"}
        assert client.until_done(requests(2)) is None
        assert len(server.batches) == 2
    assert client.texts() == answers(2)


@pytest.mark.parametrize(
    "bad",
    [
        *("[1]", "null", "\0", "{", "[" * 3000, "\udcff\udcfe", '{"custom_id": "\udcff"}'),
        *(f'{{"response": {"[" * depth}{"]" * depth}}}' for depth in (300, 600, 900)),
    ],
    ids=lambda bad: f"{bad[:15]} {len(bad)}",
)
def test_one_bad_line_of_a_result_file_costs_its_own_request_only(tmp_path, bad):
    with connected(tmp_path) as (server, client):
        client.run(requests(3))
        batch, rows = rows_of(server)
        lines = [bad, *(json.dumps(row) for row in rows[1:])]
        content = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")  # bytes that are no UTF-8
        server.files[batch.output_file] = ("o", content)
        assert client.run(requests(3)) is None
    assert len(client.texts()) == 2
    assert [failure.kind for failure in client.failures.values()] == ["missing"]


@pytest.mark.parametrize("depth", [100, 300, 500, 700, 900, 3000])
def test_a_deep_answer_of_a_batch_costs_its_own_request_only(tmp_path, depth):
    with connected(tmp_path) as (server, client):
        client.run(requests(3))
        batch, rows = rows_of(server)
        deep = "[" * depth + "]" * depth
        rows[0]["response"]["body"] = "DEEP"
        lines = [json.dumps(row).replace('"DEEP"', deep) for row in rows]
        server.files[batch.output_file] = ("o", ("\n".join(lines) + "\n").encode())
        assert client.run(requests(3)) is None
    assert (len(client.texts()), len(client.failures)) == (2, 1)
