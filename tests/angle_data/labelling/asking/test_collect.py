"""The asking: what limits count, what is with a batch service, what memory holds of requests in flight."""

import gc
import tracemalloc

import pytest
from fake_batch import FakeBatch
from fake_openai import FakeOpenAI
from labelling_runs import config_of, read_rows, write_texts

from angle_data.annotators.base import Annotator, Failure, Reply
from angle_data.annotators.spec import EngineConfig
from angle_data.errors import InputError, StoppedError
from angle_data.labelling.asking.budget import Ledger
from angle_data.labelling.asking.collect import Collector
from angle_data.labelling.asking.journal import open_journal, read_journal
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import LabelJob, label
from angle_data.labelling.pilot import plan_label


class Pool(Annotator):
    """Pulls all requests at once, and then gives each its outcome."""

    def __init__(self, outcome, when_pulled=lambda: None):
        self.outcome, self.when_pulled = outcome, when_pulled

    async def stream(self, requests):
        keys = [request.key for request in requests]
        self.when_pulled()
        for key in keys:
            yield self.outcome(key)


def collect(tmp_path, annotator, count, most_tokens=None, prompts="paper"):
    """Ask for a synonym of each of so many texts; returns the collector and the tokens that were counted."""
    write_texts(tmp_path, count)
    engine = EngineConfig("m", engine="server", base_urls=("http://h/v1",))
    asked = {"prompts": str(prompts), "polarity": "synonym", "size": 1}
    job = LabelJob(LabelConfig(engine, tmp_path / "texts.jsonl", tmp_path / "run", **asked))
    with open_journal(tmp_path / "run", "m") as journal:
        collector = Collector(job, journal, Ledger(journal, None, None, most_tokens))
        collector.ask(annotator)
        kept = collector.set_aside(())
        return collector, journal.spent.total, kept


def test_replies_without_usage_are_charged_what_they_are_likely_to_take(tmp_path, caplog):
    """The limit holds, in this session and, by what the rows say, in the next."""
    collector, tokens, _ = collect(tmp_path, Pool(lambda key: Reply(key, "x" * 48)), 200, 3000)
    assert collector.limit_reached
    assert 2000 < tokens <= 3000
    (said,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert said == "m does not say how many tokens its replies take; they are estimated, for limits and costs"
    rows = read_rows(tmp_path / "run/journal.jsonl")
    assert len(rows) == collector.asked < 200
    assert (rows[0]["usage"]["completion_tokens"], rows[0]["usage"]["estimated"]) == (13, 1)
    with read_journal(tmp_path / "run", "m") as journal:
        assert journal.spent.total == tokens


def test_replies_longer_than_guessed_do_not_pass_the_limit(tmp_path):
    """Guessed are 20 tokens a reply, 512 come, as many as are allowed."""
    usage = {"prompt_tokens": 10, "completion_tokens": 512}
    collector, tokens, _ = collect(tmp_path, Pool(lambda key: Reply(key, "x", usage=usage)), 200, 5000)
    assert collector.limit_reached
    assert 4400 < tokens <= 5000


def test_memory_does_not_hold_the_messages_of_requests_in_flight(tmp_path):
    """A batch pulls all requests before the first reply: 200 prompts of 20,000 characters are 4 MB."""
    held = []
    front = '+++\nplaceholders = ["text"]\nreply = "text"\n+++\n'
    for name in ("synonym", "antonym"):
        (tmp_path / f"{name}.txt").write_text(f"{front}{'x' * 20_000} {{text}}")

    def measure():
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        collect(tmp_path, Pool(lambda key: Reply(key, "It is so."), measure), 200, prompts=tmp_path)
    finally:
        tracemalloc.stop()
    assert held[0] - before < 1_000_000


@pytest.mark.parametrize(("count", "replies", "final"), [(5, 0, 4), (6, 0, 0), (7, 1, 5)])
def test_five_equal_refusals_and_nothing_else_are_not_final(tmp_path, count, replies, final):
    """A server that was set up anew, say; so many texts of one kind are not likely."""
    collect(tmp_path, Pool(lambda key: Reply(key, "1. It is so.")), 1)
    said = iter([True] * replies)
    refuse = Pool(lambda key: Reply(key, "So.") if next(said, False) else Failure(key, "http_400", "as told"))
    collector, _, kept = collect(tmp_path, refuse, count)
    assert (collector.refused_alike, len(kept)) == (not final, final)


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
        for run in (label, plan_label):
            with pytest.raises(InputError, match=message):
                run(other)
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
            left = "1 batch is being|1 request not answered; run the"
            with pytest.raises(StoppedError, match=left) as stopped:
                label(batches(tmp_path, server, max_tokens_total=limit))
            if "(1 request)" in str(stopped.value):
                break
        files = [server.files[batch.input_file][1] for batch in server.batches.values()]
        assert [len(content.splitlines()) for content in files] == [10, 1]
        assert len((tmp_path / "run/journal.jsonl").read_text().splitlines()) == 10
