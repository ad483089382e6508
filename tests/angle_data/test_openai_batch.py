"""The batch annotator over real sockets: nothing is bought twice, nothing is mis-paired, nothing is lost."""

import asyncio
import functools
import json
import multiprocessing
import os
import signal
from contextlib import aclosing

import pytest
from fake_batch import FakeBatch
from fake_openai import Fault

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import ChatRequest, Failure, Reply, Sampling
from angle_data.annotators.batch_files import request_line
from angle_data.annotators.batch_queue import Limits
from angle_data.annotators.batch_service import BatchService
from angle_data.annotators.batch_state import BatchState
from angle_data.annotators.chat import request_body
from angle_data.annotators.openai_batch import OpenAIBatch
from angle_data.errors import AnnotatorError, CredentialsError, InputError, StoppedError

KEY = "sk-test-0123456789"
SOON = {"retry-after-ms": "5"}


def requests(count, first=0):
    for number in range(first, first + count):
        yield ChatRequest(
            key=f"{number:032x}",
            source_id=f"s{number}",
            source=f"text {number}",
            task="synonym",
            messages=({"role": "user", "content": f"prompt {number}"},),
            model="tiny",
            sampling=Sampling(temperature=0.5, max_tokens=64, seed=3),
        )


def batch_spec(url, run, **changes):
    return AnnotatorSpec("tiny", "batch", "tiny", base_urls=(url,), run=run, timeout_s=30.0, **changes)


def quick(**changes):
    return Limits(**{"poll_s": 0.001, "validation_s": 5.0, "min_rows": 1} | changes)


class Client:
    """What a labelling run does with the engine: keeps replies, and asks only for those it lacks."""

    def __init__(self, server, run, wait_s=0.0, **limits):
        self.replies, self.failures = {}, {}
        self._spec = batch_spec(server.url, run, engine_options={"wait_s": wait_s} if wait_s else {})
        self._limits = quick(**limits)

    def run(self, wanted, at_most=None):
        """One run of the command; returns the error that ended it, if one did."""
        self.failures = {}

        async def collect():
            asked = (request for request in wanted if request.key not in self.replies)
            count = 0
            async with aclosing(OpenAIBatch(self._spec, self._limits).stream(asked)) as stream:
                async for outcome in stream:
                    (self.replies if isinstance(outcome, Reply) else self.failures)[outcome.key] = outcome
                    count += 1
                    if count == at_most:
                        return

        try:
            asyncio.run(collect())
        except (AnnotatorError, StoppedError) as ended:
            return ended

    def until_done(self, wanted, runs=12):
        wanted = list(wanted)
        for _ in range(runs):
            if not isinstance(ended := self.run(wanted), StoppedError):
                return ended
        raise AssertionError(f"not done: {ended}")

    def texts(self):
        return {key: reply.text for key, reply in self.replies.items()}


def answers(count, first=0):
    return {f"{n:032x}": f"answer to prompt {n}" for n in range(first, first + count)}


def events(run):
    return [json.loads(line) for line in (run / "batches.jsonl").read_text().splitlines()]


def test_submit_leave_come_back_fetch(tmp_path):
    with FakeBatch(held=True) as server:
        client = Client(server, tmp_path)
        first = client.run(requests(5))
        assert isinstance(first, StoppedError)
        assert "1 batch is being worked on (5 requests)" in str(first)
        assert "same command again" in str(first)
        assert isinstance(client.run(requests(5)), StoppedError)
        server.held = False
        assert client.until_done(requests(5)) is None
        assert len(server.batches) == 1
    assert client.texts() == answers(5)
    reply = client.replies[f"{0:032x}"]
    assert (reply.finish_reason, reply.seconds) == ("stop", 90.0)
    assert reply.usage == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert [event["event"] for event in events(tmp_path)] == ["run", "prepared", "submitted", "finished"]
    assert list((tmp_path / "batch").iterdir()) == []


def test_a_batch_of_others_does_not_keep_a_run_from_its_end(tmp_path):
    with FakeBatch(held=True) as server:
        client = Client(server, tmp_path)
        client.run(requests(2))
        client.run(requests(3, first=10))
        mine, other = server.batches.values()
        server._validate(mine)
        server._end(mine, "completed")
        assert client.run(requests(2)) is None
        assert client.texts() == answers(2)
        server._validate(other)
        server._end(other, "completed")
        assert client.until_done(requests(3, first=10)) is None
        assert len(server.batches) == 2
    assert client.texts() == answers(2) | answers(3, first=10)


def test_rows_of_an_input_file_are_the_requests(tmp_path):
    with FakeBatch() as server:
        Client(server, tmp_path).run(requests(2))
        name, content = server.files["file-1"]
    assert name.endswith(".jsonl")
    assert json.loads(content.splitlines()[1]) == {
        "custom_id": f"{1:032x}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": "tiny",
            "messages": [{"role": "user", "content": "prompt 1"}],
            "temperature": 0.5,
            "max_tokens": 64,
            "seed": 3,
        },
    }


def test_a_waiting_run_needs_no_second_one(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path, wait_s=30)
        assert client.run(requests(7)) is None
    assert client.texts() == answers(7)


def test_no_reply_is_mispaired_and_what_failed_is_asked_again(tmp_path):
    with FakeBatch(failing=0.2, vanishing=0.1, strangers=3) as server:
        client = Client(server, tmp_path, wait_s=30, max_rows=40)
        assert client.run(requests(100)) is None
        failed = dict(client.failures)
        assert client.texts().items() <= answers(100).items()
        assert len(client.replies) + len(failed) == 100
        assert {failure.kind for failure in failed.values()} == {"http_500", "missing"}
        server.failing, server._vanishing = 0.0, 0.0
        assert client.run(requests(100)) is None
        assert server.asked[100:] == sorted(failed)
    assert client.texts() == answers(100)


def test_rows_of_strangers_are_ignored_with_one_warning(tmp_path, caplog):
    with FakeBatch(strangers=3) as server:
        client = Client(server, tmp_path, wait_s=30)
        assert client.run(requests(4)) is None
    assert client.texts() == answers(4)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["batch batch_1: 3 result rows ignored that answer none of its requests"]


def test_a_row_that_comes_twice_is_yielded_once(tmp_path):
    """Output and error file may both name a request; a second outcome would be one too many."""
    with FakeBatch() as server:
        client = Client(server, tmp_path)
        client.run(requests(2))
        client.run(requests(2))
        batch = server.batches["batch_1"]
        server._end(batch, "completed")
        server.files[batch.output_file] = ("o", server.files[batch.output_file][1] * 2)
        batch.error_file = batch.output_file
        assert client.run(requests(2)) is None
    assert client.texts() == answers(2)


LINE = len(request_line(f"{0:032x}", request_body(next(requests(1)))))


@pytest.mark.parametrize("limits", [{"max_rows": 3}, {"max_bytes": 3 * LINE}, {"max_bytes": 4 * LINE - 1}])
def test_parts_keep_within_rows_and_bytes(tmp_path, limits):
    with FakeBatch() as server:
        client = Client(server, tmp_path, wait_s=30, **limits)
        assert client.run(requests(7)) is None
        assert [len(batch.rows) for batch in server.batches.values()] == [3, 3, 1]
    assert client.texts() == answers(7)


def test_a_request_that_fits_no_file_fails_alone(tmp_path):
    wanted = list(requests(3))
    long = ({"role": "user", "content": "x" * 1000},)
    wanted[1] = ChatRequest("ab" * 16, "s", "x", "synonym", long, "tiny", wanted[1].sampling)
    with FakeBatch() as server:
        client = Client(server, tmp_path, wait_s=30, max_bytes=2 * LINE)
        assert client.run(wanted) is None
    assert client.failures["ab" * 16].kind == "too_large"
    assert sorted(client.replies) == [f"{0:032x}", f"{2:032x}"]


def test_new_requests_join_without_the_old_ones(tmp_path):
    with FakeBatch(held=True) as server:
        client = Client(server, tmp_path)
        client.run(requests(3))
        client.run(requests(5))
        server.held = False
        assert client.until_done(requests(5)) is None
        assert server.asked == [f"{n:032x}" for n in range(5)]
    assert client.texts() == answers(5)


def test_replies_to_requests_no_longer_asked_are_kept_for_later(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path)
        client.run(requests(6))
        assert client.until_done(requests(2)) is None
        assert sorted(client.replies) == [f"{n:032x}" for n in range(2)]
        calls = len(server.calls)
        assert client.run(requests(4)) is None
        assert client.run(requests(6)) is None
        assert server.calls[calls:] == []
    assert client.texts() == answers(6)
    assert client.replies[f"{5:032x}"].seconds == 90.0
    assert list((tmp_path / "batch").iterdir()) == []


def test_a_run_that_ends_while_fetching_fetches_the_rest_next_time(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path, wait_s=30)
        client.run(requests(10), at_most=4)
        assert len(client.replies) == 4
        assert client.run(requests(10)) is None
        assert len(server.batches) == 1
    assert client.texts() == answers(10)


@pytest.mark.parametrize(
    ("ending", "kinds"), [("expired", {"batch_expired"}), ("cancelled", {"batch_cancelled"})]
)
def test_what_a_batch_did_before_its_early_end_counts(tmp_path, ending, kinds):
    with FakeBatch(ending=ending) as server:
        client = Client(server, tmp_path, wait_s=30)
        assert client.run(requests(10)) is None
        assert client.texts() == answers(5)
        assert {failure.kind for failure in client.failures.values()} == kinds
        server.ending = "completed"
        assert client.run(requests(10)) is None
    assert client.texts() == answers(10)


def test_a_refused_batch_says_why_and_its_requests_can_be_asked_again(tmp_path):
    with FakeBatch(refusals=["model_not_found"]) as server:
        client = Client(server, tmp_path)
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
    with FakeBatch() as server:
        client = Client(server, tmp_path, max_rows=2)
        client.run(requests(4))
        first, second = server.batches.values()
        server._validate(first)
        server._end(first, "completed")
        server.refusals = ["model_not_found"]
        server._validate(second)
        assert "not today" in str(client.run(requests(6)))
        assert len(server.batches) == 2
    assert client.texts() == answers(2)


@pytest.mark.parametrize("wait_s", [0, 60])
def test_parts_are_halved_until_the_account_has_room(tmp_path, wait_s):
    """Each prompt counts ten tokens here, so four at a time fit."""
    with FakeBatch(max_enqueued=40) as server:
        client = Client(server, tmp_path, wait_s=wait_s, max_rows=16)
        assert client.until_done(requests(16)) is None
        sizes = [len(b.rows) for b in server.batches.values() if b.status == "completed"]
        assert sizes == [4, 4, 4, 4]
        assert sorted(server.asked) == [f"{n:032x}" for n in range(16)]
    assert client.texts() == answers(16)


def test_a_part_without_room_waits_for_its_sisters_and_is_not_halved(tmp_path):
    with FakeBatch(max_enqueued=60, looks=6) as server:
        client = Client(server, tmp_path, wait_s=60, max_rows=4)
        assert client.run(requests(16)) is None
        assert {len(b.rows) for b in server.batches.values() if b.status == "completed"} == {4}
        assert sorted(server.asked) == [f"{n:032x}" for n in range(16)]
    assert client.texts() == answers(16)


def test_an_account_that_others_fill_stops_the_run_and_shrinks_nothing_for_good(tmp_path):
    with FakeBatch(max_enqueued=1) as server:
        client = Client(server, tmp_path, wait_s=60, max_rows=8, min_rows=3)
        ended = client.run(requests(8))
        assert isinstance(ended, StoppedError)
        assert "no room for 3 requests" in str(ended)
        server.max_enqueued = None
        assert client.run(requests(8)) is None
        assert [len(b.rows) for b in server.batches.values() if b.status == "completed"] == [8]
        server.max_enqueued = 1
        refused = len(server.batches)
        assert "no room for 8 requests" in str(client.run(requests(8, first=8)))
        assert len(server.batches) == refused + 1


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("upload", Fault(503, SOON)),
        ("upload", Fault(kind="reset")),
        ("create", Fault(429, SOON)),
        ("create", Fault(500, SOON)),
        ("create", Fault(kind="lost")),
        ("create", Fault(kind="html")),
        ("look", Fault(500, SOON)),
        ("content", Fault(500, SOON)),
        ("content", Fault(kind="cut")),
        ("content", Fault(kind="short")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.kind} {value.status}",
)
def test_passing_faults_are_tried_again_and_never_buy_twice(tmp_path, operation, fault):
    with FakeBatch(faults={operation: [fault]}) as server:
        client = Client(server, tmp_path, wait_s=30)
        assert client.run(requests(6)) is None
        assert len(server.batches) == 1
        assert server.calls.count(operation) >= 1
    assert client.texts() == answers(6)


def test_patience_is_no_failed_attempt(tmp_path):
    """Creation is limited per hour: more refusals than other faults are allowed must be waited out."""
    with FakeBatch(faults={"create": [Fault(429, {"retry-after-ms": "1"})] * 10}) as server:
        assert isinstance(Client(server, tmp_path).run(requests(1)), StoppedError)
        assert len(server.batches) == 1


def test_a_service_too_busy_for_batches_stops_the_run_and_keeps_what_it_took(tmp_path):
    with FakeBatch(faults={"create": [None] + [Fault(429, {"retry-after-ms": "1"})] * 20}) as server:
        client = Client(server, tmp_path, max_rows=2)
        ended = client.run(requests(4))
        assert isinstance(ended, StoppedError)
        assert "too busy" in str(ended)
        assert client.until_done(requests(4)) is None
        assert len(server.batches) == 2
    assert client.texts() == answers(4)


def test_lost_result_files_are_missing_rows(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path)
        client.run(requests(2))
        batch = server.batches["batch_1"]
        server._validate(batch)
        server._end(batch, "completed")
        del server.files[batch.output_file]
        assert client.run(requests(2)) is None
        assert {failure.kind for failure in client.failures.values()} == {"missing"}
        assert client.until_done(requests(2)) is None
    assert client.texts() == answers(2)


def test_a_damaged_result_file_closes_nothing(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path)
        client.run(requests(2))
        batch = server.batches["batch_1"]
        server._validate(batch)
        server._end(batch, "completed")
        whole = server.files[batch.output_file]
        server.files[batch.output_file] = ("o", whole[1][:-20])
        assert "damaged" in str(client.run(requests(2)))
        server.files[batch.output_file] = whole
        assert client.run(requests(2)) is None
        assert len(server.batches) == 1
    assert client.texts() == answers(2)


def test_a_rejected_key_is_named_and_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    with FakeBatch(key="another") as server:
        spec = batch_spec(server.url, tmp_path, api_key_env="SOME_KEY")

        async def first():
            return await anext(OpenAIBatch(spec, quick()).stream(requests(1)))

        with pytest.raises(CredentialsError, match="SOME_KEY") as caught:
            asyncio.run(first())
    assert KEY not in str(caught.value)
    assert caught.value.__suppress_context__
    assert not any(KEY in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_what_the_service_says_is_shown_without_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    with FakeBatch(faults={"create": [Fault(400, message=f"no batches for {KEY}")]}) as server:
        client = Client(server, tmp_path)
        client._spec = batch_spec(server.url, tmp_path, api_key_env="SOME_KEY")
        assert "no batches for [key]" in str(client.run(requests(1)))


def test_a_server_without_batches_says_so(tmp_path):
    with FakeBatch(faults={"upload": [Fault(404, message="Not Found")]}) as server:
        ended = Client(server, tmp_path).run(requests(1))
    assert str(ended) == f"{server.url} takes no batch files (use --engine server): Not Found"


def test_a_batch_of_another_account_is_not_bought_again(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path)
        client.run(requests(1))
        server.batches.clear()
        ended = client.run(requests(1))
        assert "knows no batch batch_1" in str(ended)
        assert server.batches == {}


def test_an_unreachable_server_is_one_line(tmp_path):
    with FakeBatch() as server:
        pass
    assert "cannot reach" in str(Client(server, tmp_path).run(requests(1)))


def test_requests_of_an_earlier_run_without_room_are_asked_anew(tmp_path):
    """Their rows are gone from the run directory when the refusal comes during a later run's wait."""
    with FakeBatch(max_enqueued=15) as server:
        Client(server, tmp_path).run(requests(2))
        client = Client(server, tmp_path, wait_s=3600)
        ended = client.run(requests(2))
        assert isinstance(ended, StoppedError)
        assert "2 requests wait for room" in str(ended)
        assert client.until_done(requests(2)) is None
    assert client.texts() == answers(2)


def test_requests_that_wait_for_room_are_asked_by_the_next_run(tmp_path):
    with FakeBatch(max_enqueued=60, held=True) as server:
        client = Client(server, tmp_path, max_rows=4)
        stops = [str(client.run(requests(8))) for _ in range(4)]
        assert any("(4 requests); 4 requests wait for room" in stop for stop in stops)
        server.held = False
        assert client.until_done(requests(8)) is None
        assert "list" not in server.calls  # what was not submitted is known, and not searched for
    assert client.texts() == answers(8)


def test_parts_that_wait_are_cut_with_the_refused_one(tmp_path):
    """Of three parts the service takes none: the second and third are refused or wait, and shrink as well."""
    with FakeBatch(max_enqueued=25) as server:
        Client(server, tmp_path, max_rows=8).run(requests(8))
        client = Client(server, tmp_path, wait_s=60, max_rows=8)
        assert client.until_done(requests(24)) is None
        assert {len(b.rows) for b in server.batches.values() if b.status == "completed"} == {2}
        assert sorted(server.asked) == [f"{n:032x}" for n in range(24)]
        assert "list" not in server.calls
    assert client.texts() == answers(24)
    assert list((tmp_path / "batch").iterdir()) == []


@pytest.mark.parametrize(
    "options", [{"wait": 3}, {"wait_s": "soon"}, {"wait_s": -1}, {"wait_s": float("nan")}]
)
def test_engine_options_are_checked(tmp_path, options):
    with pytest.raises(InputError, match="wait"):
        OpenAIBatch(batch_spec("http://localhost:1/v1", tmp_path, engine_options=options))


def test_a_run_directory_is_needed():
    with pytest.raises(InputError, match="--out"):
        OpenAIBatch(batch_spec("http://localhost:1/v1", None))


def test_an_interrupt_leaves_the_batch_to_the_service(tmp_path):
    with FakeBatch(held=True) as server:
        client = Client(server, tmp_path, wait_s=30)
        spec = client._spec

        async def interrupted():
            async def drain():
                async for _ in OpenAIBatch(spec, quick()).stream(requests(3)):
                    pass

            task = asyncio.create_task(drain())
            while "look" not in server.calls:
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(interrupted())
        server.held = False
        assert client.run(requests(3)) is None
        assert len(server.batches) == 1
    assert client.texts() == answers(3)


def test_requests_are_pulled_with_room_for_an_interrupt(tmp_path):
    """A million requests must not be pulled and submitted after Ctrl-C."""
    pulled = 0

    def counted():
        nonlocal pulled
        for request in requests(5000):
            pulled += 1
            yield request

    async def interrupted(url):
        task = asyncio.create_task(anext(OpenAIBatch(batch_spec(url, tmp_path), quick()).stream(counted())))
        while not pulled:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with FakeBatch() as server:
        asyncio.run(interrupted(server.url))
        assert server.batches == {}
    assert pulled < 1000


def test_a_torn_last_line_is_found_again_at_the_service(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path)
        client.run(requests(3))
        path = tmp_path / "batches.jsonl"
        path.write_bytes(path.read_bytes()[:-9])
        assert client.until_done(requests(3)) is None
        assert len(server.batches) == 1
    assert client.texts() == answers(3)


def test_every_batch_of_a_run_is_found_again_among_many(tmp_path):
    with FakeBatch() as server:
        client, other = Client(server, tmp_path / "a", max_rows=1), Client(server, tmp_path / "b", max_rows=1)
        client.run(requests(3))
        other.run(requests(3))
        path = tmp_path / "a" / "batches.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if '"submitted"' not in line))
        assert client.until_done(requests(3)) is None
        assert len(server.batches) == 6
    assert client.texts() == answers(3)


def test_damaged_state_is_refused_by_line(tmp_path):
    BatchState(tmp_path)
    with (tmp_path / "batches.jsonl").open("a") as stream:
        stream.write('{"event": "submitted", "part": "0009-x", "batch": "b"}\n')
    with pytest.raises(InputError, match=r"batches\.jsonl:2"):
        BatchState(tmp_path)


def test_changed_keys_are_refused(tmp_path):
    with FakeBatch(held=True) as server:
        client = Client(server, tmp_path)
        client.run(requests(3))
        keys = next((tmp_path / "batch").glob("*.keys"))
        keys.write_text(keys.read_text()[33:])
        with pytest.raises(InputError, match="missing or changed"):
            client.run(requests(3))


# kill -9 between every two steps of submitting and fetching; the first kill comes before the first step

STEPS = [
    (BatchState, "_record"),
    (BatchState, "prepared"),
    (BatchState, "tidy"),
    (BatchService, "upload"),
    (BatchService, "create"),
    (BatchService, "download"),
]


def run_and_die(url, run, moment, journal):
    """Run the engine, note its replies, and kill this process before its `moment`-th step."""
    passed = 0

    def guarded(original):
        @functools.wraps(original)
        def step(*args, **kwargs):
            nonlocal passed
            passed += 1
            if passed == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return step

    for owner, name in STEPS:
        setattr(owner, name, guarded(getattr(owner, name)))

    async def collect():
        spec = batch_spec(url, run, engine_options={"wait_s": 30})
        async for outcome in OpenAIBatch(spec, quick()).stream(requests(4)):
            with journal.open("a") as stream:
                stream.write(f"{outcome.key} {outcome.text}\n")

    asyncio.run(collect())


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_kill_between_any_two_steps_buys_nothing_twice(tmp_path):
    moment, survived = 0, False
    while not survived:
        moment += 1
        run, journal = tmp_path / str(moment), tmp_path / f"{moment}.txt"
        journal.touch()
        with FakeBatch() as server:
            # The server's thread waits for connections and holds no lock while this process is copied.
            child = multiprocessing.get_context("fork").Process(
                target=run_and_die, args=(server.url, run, moment, journal)
            )
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
    assert moment > 10


def test_failure_is_the_outcome_of_an_answer_that_is_none(tmp_path):
    with FakeBatch() as server:
        client = Client(server, tmp_path)
        client.run(requests(1))
        batch = server.batches["batch_1"]
        server._validate(batch)
        server._end(batch, "completed")
        row = json.loads(server.files[batch.output_file][1])
        row["response"]["body"] = {"choices": []}
        server.files[batch.output_file] = ("o", json.dumps(row).encode())
        assert client.run(requests(1)) is None
    (failure,) = client.failures.values()
    assert isinstance(failure, Failure)
    assert failure.kind == "bad_answer"
