"""The batch annotator over real sockets: nothing is bought twice, nothing is mis-paired, nothing is lost."""

import asyncio
import json
import multiprocessing
import os
import signal
import sys
from contextlib import aclosing, contextmanager
from dataclasses import replace
from inspect import signature

import pytest
from fake_batch import FakeBatch
from fake_openai import Fault
from tiny_llm import chat_request
from tiny_llm import numbered_requests as requests

from angle_data.annotators.base import Reply
from angle_data.annotators.batch import Limits, OpenAIBatch
from angle_data.annotators.batch_service import request_line
from angle_data.annotators.batch_state import open_requests
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import request_body
from angle_data.errors import AnnotatorError, CredentialsError, InputError, StoppedError

KEY = "sk-test-0123456789"
SOON = {"retry-after-ms": "5"}


def batch_spec(url, run, **changes):
    return AnnotatorSpec("tiny", "batch", "tiny", base_urls=(url,), run=run, **changes)


class Client:
    """What a labelling run does with the engine: keeps replies, and asks only for those it lacks."""

    def __init__(self, server, run, wait_s=0.0, *, key_env=None, max_bytes=10**9, **options):
        self.replies, self.failures = {}, {}
        options = {"wait_s": wait_s, **options}
        self.spec = batch_spec(server.url, run, api_key_env=key_env, engine_options=options)
        self.limits = Limits(max_bytes=max_bytes, poll_s=0.001, retry_s=0.01, unsure_s=0.0)

    def run(self, wanted):
        """One run of the command; returns the error that ended it, if one did."""
        self.failures = {}

        async def collect():
            asked = (request for request in wanted if request.key not in self.replies)
            async with aclosing(OpenAIBatch(self.spec, self.limits).stream(asked)) as stream:
                async for outcome in stream:
                    (self.replies if isinstance(outcome, Reply) else self.failures)[outcome.key] = outcome

        try:
            asyncio.run(collect())
        except (AnnotatorError, StoppedError) as ended:
            return ended

    def until_done(self, wanted, runs=60):
        wanted = list(wanted)
        for _ in range(runs):
            if not isinstance(ended := self.run(wanted), StoppedError):
                return ended
        raise AssertionError(f"not done: {ended}")

    def texts(self):
        return {key: reply.text for key, reply in self.replies.items()}


@contextmanager
def connected(run, **options):
    """A server and a client of it, each with those of the options that it knows."""
    known = signature(FakeBatch).parameters
    with FakeBatch(**{name: value for name, value in options.items() if name in known}) as server:
        yield server, Client(server, run, **{k: v for k, v in options.items() if k not in known})


def answers(count, first=0):
    return {f"{n:032x}": f"answer to prompt {n}" for n in range(first, first + count)}


def events(run):
    return [json.loads(line) for line in (run / "batches.jsonl").read_text().splitlines()]


def test_submit_leave_come_back_fetch(tmp_path):
    """And what the user has among the files of the batches stays."""
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch" / "mine.jsonl").write_text("mine")
    with connected(tmp_path, held=True) as (server, client):
        first = client.run(requests(5))
        assert isinstance(first, StoppedError)
        assert "1 batch is being worked on (5 requests)" in str(first)
        assert "same command again" in str(first)
        assert isinstance(client.run(requests(5)), StoppedError)
        server.held = False
        assert client.until_done(requests(5)) is None
        assert len(server.batches) == 1
        name, content = server.files["file-1"]
    assert client.texts() == answers(5)
    assert name.endswith(".jsonl")
    row = json.loads(content.splitlines()[1])
    messages = [{"role": "user", "content": "prompt 1"}]
    body = {"model": "tiny", "messages": messages, "temperature": 0.5, "max_tokens": 64, "seed": 3}
    known = {"custom_id": f"{1:032x}", "method": "POST", "url": "/v1/chat/completions"}
    assert row == known | {"body": body}
    reply = client.replies[f"{0:032x}"]
    assert reply.finish_reason == "stop"
    assert reply.usage == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert [event["event"] for event in events(tmp_path)] == [
        "run",
        "prepared",
        "creating",
        "submitted",
        "finished",
    ]
    assert [path.name for path in (tmp_path / "batch").iterdir()] == ["mine.jsonl"]


def test_a_batch_of_others_does_not_keep_a_run_from_its_end(tmp_path):
    with connected(tmp_path, held=True) as (server, client):
        client.run(requests(2))
        client.run(requests(3, first=10))
        mine, other = server.batches.values()
        server.complete(mine)
        assert client.run(requests(2)) is None
        assert client.texts() == answers(2)
        server.complete(other)
        assert client.until_done(requests(3, first=10)) is None
        assert len(server.batches) == 2
    assert client.texts() == answers(2) | answers(3, first=10)


def test_no_reply_is_mispaired_and_what_failed_is_asked_again(tmp_path):
    options = {"failing": 0.2, "vanishing": 0.1, "strangers": 3, "batch_size": 40}
    with connected(tmp_path, wait_s=30, **options) as (server, client):
        assert client.run(requests(100)) is None
        failed = dict(client.failures)
        assert client.texts().items() <= answers(100).items()
        assert len(client.replies) + len(failed) == 100
        assert {failure.kind for failure in failed.values()} == {"http_500", "missing"}
        server.failing, server.vanishing = 0.0, 0.0
        assert client.run(requests(100)) is None
        assert server.asked[100:] == sorted(failed)
    assert client.texts() == answers(100)


LINE = len(request_line(f"{0:032x}", request_body(next(requests(1)))))


@pytest.mark.parametrize("limits", [{"batch_size": 3}, {"max_bytes": 3 * LINE}, {"max_bytes": 4 * LINE - 1}])
def test_parts_keep_within_rows_and_bytes(tmp_path, limits):
    with connected(tmp_path, wait_s=30, **limits) as (server, client):
        assert client.run(requests(7)) is None
        assert [len(batch.rows) for batch in server.batches.values()] == [3, 3, 1]
    assert client.texts() == answers(7)


def test_a_request_that_fits_no_file_fails_alone(tmp_path):
    wanted = list(requests(3))
    wanted[1] = chat_request("x" * 1000, 99)
    with connected(tmp_path, wait_s=30, max_bytes=2 * LINE) as (_, client):
        assert client.run(wanted) is None
    assert client.failures[f"{99:032x}"].kind == "too_large"
    assert sorted(client.replies) == [f"{0:032x}", f"{2:032x}"]


def test_new_requests_join_without_the_old_ones(tmp_path):
    with connected(tmp_path, held=True) as (server, client):
        client.run(requests(3))
        client.run(requests(5))
        server.held = False
        assert client.until_done(requests(5)) is None
        assert server.asked == [f"{n:032x}" for n in range(5)]
    assert client.texts() == answers(5)


def test_replies_to_requests_no_longer_asked_are_kept_for_later(tmp_path):
    with connected(tmp_path) as (server, client):
        client.run(requests(6))
        assert client.until_done(requests(2)) is None
        assert sorted(client.replies) == [f"{n:032x}" for n in range(2)]
        calls = len(server.calls)
        assert client.run(requests(4)) is None
        assert client.run(requests(6)) is None
        assert server.calls[calls:] == []
    assert client.texts() == answers(6)
    assert list((tmp_path / "batch").iterdir()) == []


@pytest.mark.parametrize("ending", ["expired", "cancelled"])
def test_what_a_batch_did_before_its_early_end_counts(tmp_path, ending):
    with connected(tmp_path, ending=ending, wait_s=30) as (server, client):
        assert client.run(requests(10)) is None
        assert client.texts() == answers(5)
        assert {failure.kind for failure in client.failures.values()} == {f"batch_{ending}"}
        server.ending = "completed"
        assert client.run(requests(10)) is None
    assert client.texts() == answers(10)


def test_a_refused_batch_says_why_and_its_requests_can_be_asked_again(tmp_path):
    with connected(tmp_path, refusals=["model_not_found"]) as (server, client):
        client.run(requests(3))
        client.run(requests(3))
        ended = client.run(requests(3))
        assert not isinstance(ended, StoppedError)
        assert "batch_1" in str(ended)
        assert "line 1: not today" in str(ended)
        assert len(server.batches) == 1
        assert client.until_done(requests(3)) is None
        assert len(server.batches) == 2
    assert client.texts() == answers(3)


def test_a_refused_batch_does_not_hide_the_replies_of_others(tmp_path):
    with connected(tmp_path, batch_size=2) as (server, client):
        client.run(requests(4))
        first, second = server.batches.values()
        server.complete(first)
        server.refusals = ["model_not_found"]
        server.validate(second)
        assert "not today" in str(client.run(requests(6)))
        assert len(server.batches) == 2
    assert client.texts() == answers(2)


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("upload", Fault(503, SOON)),
        ("upload", Fault(kind="reset")),
        *(("create", Fault(status, SOON)) for status in (429, 500)),
        *(("create", Fault(kind=kind)) for kind in ("lost", "html")),
        *((operation, Fault(500, SOON)) for operation in ("look", "content")),
        *(("content", Fault(kind=kind)) for kind in ("cut", "short")),
        *((operation, Fault(404, message="not found")) for operation in ("file", "content")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.kind} {value.status}",
)
def test_passing_faults_are_tried_again_and_never_buy_twice(tmp_path, operation, fault):
    faults = {"list": [Fault(kind="html")], operation: [fault]}
    with connected(tmp_path, faults=faults, wait_s=30) as (server, client):
        ended = client.run(requests(6))
        if operation == "create" and (fault.status == 500 or fault.kind == "html"):
            # It may have been created, and the service does not show it: another one is another run's.
            assert isinstance(ended, StoppedError)
            assert (len(server.batches), server.calls.count("create")) == (0, 1)
            ended = client.run(requests(6))
        assert (ended, len(server.batches)) == (None, 1)
        assert server.calls.count(operation) >= 1
    assert client.texts() == answers(6)


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


@pytest.mark.parametrize("wait_s", [0, 60])
def test_too_large_a_batch_names_the_option_with_which_the_command_goes_on(tmp_path, wait_s):
    """Each prompt counts ten tokens here, so four at a time fit."""
    with connected(tmp_path, max_enqueued=40, wait_s=wait_s, batch_size=16) as (server, client):
        while "limit on enqueued tokens" not in (ended := str(client.run(requests(16)))):
            assert len(server.batches) < 4
        assert "--engine-option batch_size=N" in ended
        client = Client(server, tmp_path, wait_s, batch_size=4)
        assert client.until_done(requests(16)) is None
        assert sorted(server.asked) == [f"{n:032x}" for n in range(16)]
        assert "list" not in server.calls  # what was not submitted is known, and not searched for
    assert client.texts() == answers(16)
    assert list((tmp_path / "batch").iterdir()) == []


def test_requests_without_room_wait_for_the_others_of_the_run(tmp_path):
    with connected(tmp_path, max_enqueued=60, held=True, batch_size=4) as (server, client):
        stops = [str(client.run(requests(8))) for _ in range(6)]
        assert "1 batch is being worked on (4 requests), without room yet for 4 requests" in stops[-1]
        assert len(server.batches) == 2
        server.held = False
        assert client.until_done(requests(8)) is None
        assert sorted(server.asked) == [f"{n:032x}" for n in range(8)]
    assert client.texts() == answers(8)


def test_requests_without_room_that_are_no_longer_asked_are_not_bought(tmp_path):
    with connected(tmp_path, max_enqueued=20) as (server, client):
        client.run(requests(3))
        client.run(requests(3))
        assert client.until_done(requests(2, first=10)) is None
        assert sorted(server.asked) == [f"{n:032x}" for n in range(10, 12)]
    assert client.texts() == answers(2, first=10)


REFUSED = Fault(429, {"retry-after-ms": "1"})


def test_a_service_too_busy_for_batches_stops_the_run_and_keeps_what_it_took(tmp_path):
    """Creation is limited per hour: more refusals than other faults are waited out, but not for ever."""
    faults = {"create": [*[REFUSED] * 10, None, *[REFUSED] * 20]}
    with connected(tmp_path, faults=faults, batch_size=2) as (server, client):
        ended = client.run(requests(4))
        assert isinstance(ended, StoppedError)
        assert "too busy" in str(ended)
        assert len(server.batches) == 1
        assert client.until_done(requests(4)) is None
        assert len(server.batches) == 2
    assert client.texts() == answers(4)


NO_QUOTA = "insufficient_quota"


@pytest.mark.parametrize(
    ("operation", "fault", "kind", "words"),
    [
        ("upload", Fault(401, message=f"bad {KEY}"), CredentialsError, "bad [key]; check the key in"),
        ("create", Fault(400, message=f"nothing for {KEY}"), AnnotatorError, "nothing for [key]"),
        ("upload", Fault(404, message="none"), AnnotatorError, "Batch API (use --engine server): none"),
        ("create", Fault(429, {}, "no money", NO_QUOTA), AnnotatorError, "/v1: no money"),
        ("create", Fault(429, {}, "no money", error_type=NO_QUOTA), AnnotatorError, "/v1: no money"),
    ],
    ids=["key", "refused", "no batches", "quota by code", "quota by type"],
)
def test_what_ends_the_run_is_one_line_without_the_key(tmp_path, monkeypatch, operation, fault, kind, words):
    monkeypatch.setenv("SOME_KEY", KEY)
    with FakeBatch(faults={operation: [fault]}) as server:
        ended = Client(server, tmp_path, key_env="SOME_KEY").run(requests(1))
    assert type(ended) is kind
    assert words in str(ended)
    assert "\n" not in str(ended)
    assert ended.__suppress_context__
    texts = [str(ended), *(path.read_text() for path in tmp_path.rglob("*") if path.is_file())]
    assert not any(KEY in text for text in texts)


def test_a_batch_of_another_account_is_not_bought_again(tmp_path):
    with connected(tmp_path) as (server, client):
        client.run(requests(1))
        server.batches.clear()
        assert "has no batch batch_1" in str(client.run(requests(1)))
        assert server.batches == {}


def test_batches_need_a_run_directory():
    with pytest.raises(InputError, match="--out"):
        OpenAIBatch(batch_spec("http://localhost:1/v1", None))


@pytest.mark.parametrize("torn", [True, False], ids=["a torn last line", "no line at all"])
def test_submissions_that_were_not_written_down_are_found_at_the_service(tmp_path, torn):
    """Among those of another run, on several pages."""
    with connected(tmp_path / "a", batch_size=1) as (server, client):
        client.run(requests(3))
        Client(server, tmp_path / "b", batch_size=1).run(requests(3))
        path = tmp_path / "a" / "batches.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if '"submitted"' not in line]
        path.write_text("".join(lines)[:-9] if torn else "".join(kept))
        assert client.until_done(requests(3)) is None
        assert len(server.batches) == 6
    assert client.texts() == answers(3)


def test_a_damaged_state_is_refused_by_line(tmp_path):
    with connected(tmp_path, held=True) as (_, client):
        client.run(requests(3))
        with (tmp_path / "batches.jsonl").open("a") as stream:
            stream.write('{"event": "submitted", "part": "0009-x", "batch": "b"}\n')
        with pytest.raises(InputError, match=r"batches\.jsonl:5: not an event of a batch run; repair"):
            client.run(requests(3))


def test_counting_what_is_in_batches_reads_only(tmp_path):
    with connected(tmp_path, held=True) as (_, client):
        client.run(requests(3))
        client.run(requests(5))
    path = tmp_path / "batches.jsonl"
    path.write_text(path.read_text() + '{"event": "fini')
    before = {item: item.read_bytes() for item in tmp_path.rglob("*") if item.is_file()}
    assert open_requests(tmp_path) == 5
    assert {item: item.read_bytes() for item in tmp_path.rglob("*") if item.is_file()} == before
    assert open_requests(tmp_path / "elsewhere") == 0


def run_and_die(url, run, moment, journal):
    """Run the engine, note its replies, and die before change number `moment` of a file in the run."""
    passed = 0

    def step(event, given):
        nonlocal passed
        writes = event in ("os.rename", "os.remove") or (event == "open" and set("wa+") & set(given[1] or ""))
        if writes and str(run) in str(given[0]):
            passed += 1
            if passed == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(step)

    async def collect():
        spec = batch_spec(url, run, engine_options={"wait_s": 30})
        async for outcome in OpenAIBatch(spec, Limits(poll_s=0.001)).stream(requests(4)):
            with journal.open("a") as stream:
                stream.write(f"{outcome.key} {outcome.text}\n")

    asyncio.run(collect())


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_kill_before_any_change_of_a_file_buys_nothing_twice(tmp_path):
    moment, survived, fork = 0, False, multiprocessing.get_context("fork")
    while not survived:
        moment += 1
        run, journal = tmp_path / str(moment), tmp_path / f"{moment}.txt"
        journal.touch()
        with FakeBatch() as server:
            # The server's thread waits for connections and holds no lock while this process is copied.
            child = fork.Process(target=run_and_die, args=(server.url, run, moment, journal))
            child.start()
            child.join(60)
            survived = child.exitcode == 0
            assert survived or child.exitcode == -signal.SIGKILL
            client = Client(server, run, wait_s=30)
            done = dict(line.split(" ", 1) for line in journal.read_text().splitlines())
            client.replies = {key: Reply(key, text) for key, text in done.items()}
            assert client.run(requests(4)) is None
            assert len(server.batches) == 1, f"killed before step {moment}: {events(run)}"
        assert client.texts() == answers(4), f"killed before step {moment}"
    assert moment > 12


def test_a_batch_that_may_have_been_created_is_not_paid_for_again_at_once(tmp_path):
    faults = {"create": [Fault(500)]}
    with connected(tmp_path, faults=faults, wait_s=30) as (server, client):
        client.limits = replace(client.limits, unsure_s=300.0)
        for words in ("does not show it yet", "may have taken a batch"):
            ended = client.run(requests(2))
            assert isinstance(ended, StoppedError)
            assert words in str(ended)
        assert server.calls.count("create") == 1
        client.limits = replace(client.limits, unsure_s=0.0)
        assert (client.run(requests(2)), len(server.batches)) == (None, 1)


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


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_is_not_followed(tmp_path, status):
    with FakeBatch() as elsewhere:
        headers = {"Location": f"{elsewhere.url}/files?key=1"}
        faults = {"upload": [Fault(status, headers)] * 9}
        with connected(tmp_path, faults=faults) as (_, client):
            ended = client.run(requests(2))
        assert f"it redirects to {elsewhere.url}/files; give that address" in str(ended)
        assert elsewhere.calls == []
