"""The asking: what limits count, what is with a batch service, what memory holds of requests in flight."""

import gc
import tracemalloc
from itertools import islice

import pytest
from fake_batch import FakeBatch
from fake_openai import FakeOpenAI
from labelling_runs import config_of, read_rows, write_texts

from angle_data.annotators.base import ChatRequest, Reply, Sampling
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import InputError, StoppedError
from angle_data.labelling.asking.budget import Ledger
from angle_data.labelling.asking.collect import Collector
from angle_data.labelling.asking.journal import open_journal, read_journal
from angle_data.labelling.asking.session import Job
from angle_data.labelling.label import label, plan_label

USAGE = {"prompt_tokens": 10, "completion_tokens": 5}


class Pool:
    """Pulls `width` requests, answers them all, pulls the next ones."""

    def __init__(self, width, reply):
        self.width, self.reply, self.sent = width, reply, 0
        self.when_pulled = lambda: None

    async def stream(self, requests):
        requests = iter(requests)
        while batch := list(islice(requests, self.width)):
            self.sent += len(batch)
            keys = [request.key for request in batch]
            del batch
            self.when_pulled()
            for key in keys:
                yield self.reply(key)


class Questions(Job):
    """Questions that are 48 characters to answer."""

    command = "test"

    def __init__(self, run, count, engine, content):
        self.run, self.spec = run, AnnotatorSpec("m", engine, "m")
        self.count, self.content = count, content

    def requests(self, journal):
        sampling = Sampling(0.0, 512)
        for number in range(self.count):
            messages = ({"role": "user", "content": f"{self.content} {number}"},)
            yield ChatRequest(f"{number:032x}", f"s{number}", f"t{number}", "score", messages, "m", sampling)

    def settings(self):
        return {}

    def derive(self, journal):
        return {}

    def reply_chars(self, request):
        return 48


def collect(run, annotator, count, limit=None, engine="server", content="grade this"):
    """Ask with a limit on tokens; returns the collector and the tokens that the journal counts."""
    with open_journal(run, "m") as journal:
        job = Questions(run, count, engine, content)
        collector = Collector(job, journal, Ledger(journal, None, None, limit))
        collector.ask(annotator)
        return collector, journal.spent.total


def test_replies_without_usage_are_charged_what_they_are_likely_to_take(tmp_path, caplog):
    """About 11 + 13 tokens each: the limit holds, in this session and, by what the rows say, in the next."""
    pool = Pool(64, lambda key: Reply(key, "x" * 48))
    collector, tokens = collect(tmp_path, pool, 1000, 1000)
    assert collector.limit_reached
    assert 400 < tokens <= 1000
    assert pool.sent == collector.asked == pytest.approx(tokens / 24, abs=1)
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [
        "m does not say how many tokens its replies take; they are estimated, for limits and costs"
    ]
    rows = read_rows(tmp_path / "journal.jsonl")
    assert rows[0]["usage"] == {"prompt_tokens": 11, "completion_tokens": 13, "estimated": 1}
    with read_journal(tmp_path, "m") as journal:
        assert journal.spent.total == tokens


def test_counts_of_the_service_are_kept_as_they_are_and_recorded_replies_are_not_charged(tmp_path, caplog):
    collect(tmp_path / "server", Pool(2, lambda key: Reply(key, "text", usage=USAGE)), 2)
    collect(tmp_path / "recorded", Pool(2, lambda key: Reply(key, "text")), 2, engine="recorded")
    for folder, usage in (("server", USAGE), ("recorded", {})):
        rows = read_rows(tmp_path / folder / "journal.jsonl")
        assert [row["usage"] for row in rows] == [usage] * 2
    assert caplog.text == ""


def test_replies_longer_than_guessed_do_not_pass_the_limit(tmp_path):
    """64 requests could be in flight; guessed are 20 tokens a reply, 512 come, as many as are allowed."""
    usage = {"prompt_tokens": 10, "completion_tokens": 512}
    collector, tokens = collect(tmp_path, Pool(64, lambda key: Reply(key, "x", usage=usage)), 200, 5000)
    assert collector.limit_reached
    assert 4400 < tokens <= 5000


def test_memory_does_not_hold_the_messages_of_requests_in_flight(tmp_path):
    """A batch pulls all requests before the first reply: 200 prompts of 20,000 characters are 4 MB."""
    held = []

    def measure():
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])

    pool = Pool(200, lambda key: Reply(key, "text", usage=USAGE))
    pool.when_pulled = measure
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        collect(tmp_path, pool, 200, content="x" * 20_000)
    finally:
        tracemalloc.stop()
    assert held[0] - before < 1_000_000


# Batches: what is with the service is neither asked anew nor forgotten by a limit.


def batches(tmp_path, server, **changes):
    asked = {"engine": "batch", "max_tokens": 20, "concurrency": 64} | changes
    return config_of(tmp_path, server, polarity="synonym", **asked)


def held_tokens(tmp_path):
    """What the one batch of a run may take: ten replies of twenty tokens, and their prompts."""
    (prepared,) = [e for e in read_rows(tmp_path / "run/batches.jsonl") if e["event"] == "prepared"]
    assert prepared["completion_tokens"] == 10 * 20
    return prepared["prompt_tokens"] + prepared["completion_tokens"]


def answer(body):
    return "1. It is gone.\n2. It went away."


def test_another_engine_does_not_buy_what_is_in_batches(tmp_path):
    write_texts(tmp_path, range(5))
    message = "run has 5 requests in batches that are not fetched; finish it with --engine batch, or give"
    with FakeBatch(answer, held=True) as server, FakeOpenAI(answer) as direct:
        with pytest.raises(StoppedError):
            label(batches(tmp_path, server))
        other = batches(tmp_path, direct, engine="server")
        with pytest.raises(InputError, match=message):
            label(other)
        with pytest.raises(InputError, match=message):
            plan_label(other)
        assert not direct.seen
        server.held = False
        finish(batches(tmp_path, server))
        assert label(other).counts["asked"] == 0
        write_texts(tmp_path, range(6))
        assert label(other).counts["asked"] == 1


def finish(config):
    for _ in range(6):
        try:
            return label(config)
        except StoppedError as stopped:
            if "being worked on" not in str(stopped):
                raise
    raise AssertionError("the batches are not done")


def test_a_finished_run_says_that_requests_of_other_settings_are_with_the_service(tmp_path, caplog):
    write_texts(tmp_path, range(5))
    line = "5 requests of other settings or texts are still with the batch service; the command that sent"
    with FakeBatch(answer) as server:
        finish(batches(tmp_path, server))
        assert line not in caplog.text
        server.held = True
        with pytest.raises(StoppedError):
            label(batches(tmp_path, server, temperature=0.1))
        assert label(batches(tmp_path, server)).counts["asked"] == 0
    assert caplog.text.count(line) == 1


def test_open_batches_count_for_the_limit_whatever_is_asked_first(tmp_path):
    """Room for about ten requests: twenty new ones before the ten that are submitted find none."""
    write_texts(tmp_path, range(10))
    with FakeBatch(answer, held=True) as server:
        with pytest.raises(StoppedError):
            label(batches(tmp_path, server))
        limit = held_tokens(tmp_path) + 10
        write_texts(tmp_path, [*range(100, 120), *range(10)])
        with pytest.raises(StoppedError, match=r"1 batch is being worked on \(10 requests\)"):
            label(batches(tmp_path, server, max_tokens_total=limit))
        assert len(server.batches) == 1
        # What is paid for is fetched under any limit.
        server.held = False
        with pytest.raises(StoppedError):
            finish(batches(tmp_path, server, max_tokens_total=1))
        rows = read_rows(tmp_path / "run/journal.jsonl")
        assert {row["source_id"] for row in rows} == {f"t{i}" for i in range(10)}
        assert len(server.batches) == 1


def test_what_batches_leave_of_the_limit_is_used_once_they_are_fetched(tmp_path):
    write_texts(tmp_path, range(10))
    with FakeBatch(answer) as server:
        with pytest.raises(StoppedError):
            label(batches(tmp_path, server))
        limit = held_tokens(tmp_path) + 10
        write_texts(tmp_path, [100, *range(10)])
        for _ in range(6):
            with pytest.raises(
                StoppedError, match=r"1 batch is being|1 request was not answered; run the"
            ) as stopped:
                label(batches(tmp_path, server, max_tokens_total=limit))
            if "(1 request)" in str(stopped.value):
                break
        files = [server.files[batch.input_file][1] for batch in server.batches.values()]
        assert [len(content.splitlines()) for content in files] == [10, 1]
        assert len((tmp_path / "run/journal.jsonl").read_text().splitlines()) == 10
