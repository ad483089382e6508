"""The batch annotator over real sockets: nothing is bought twice, nothing is mis-paired, nothing is lost."""

import asyncio
import json
import multiprocessing
import os
import signal
import sys
from dataclasses import replace

import pytest
from batch_client import KEY, SOON, Client, answers, batch_spec, connected, events
from fake_batch import FakeBatch
from fake_openai import Fault
from tiny_llm import chat_request
from tiny_llm import numbered_requests as requests

from angle_data.annotators.base import Reply
from angle_data.annotators.batch import Limits, OpenAIBatch
from angle_data.annotators.batch_service import request_line
from angle_data.annotators.batch_state import open_requests
from angle_data.annotators.transport import request_body
from angle_data.errors import AnnotatorError, CredentialsError, InputError, StoppedError


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


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_is_not_followed(tmp_path, status):
    with FakeBatch() as elsewhere:
        headers = {"Location": f"{elsewhere.url}/files?key=1"}
        faults = {"upload": [Fault(status, headers)] * 9}
        with connected(tmp_path, faults=faults) as (_, client):
            ended = client.run(requests(2))
        assert f"it redirects to {elsewhere.url}/files; give that address" in str(ended)
        assert elsewhere.calls == []
