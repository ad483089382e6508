"""Texts that a service answers badly each time: they are set aside, counted, and end no run."""

import logging
import tempfile

import pytest
from fake_openai import FakeOpenAI, Fault
from full_disk import files_of_at_most
from labelling_runs import config_of, read_rows, run_json, write_texts

from angle_data.annotators.choice import load_annotator
from angle_data.errors import AnnotatorError, InputError, StoppedError
from angle_data.labelling.asking.budget import Ledger
from angle_data.labelling.asking.collect import Collector
from angle_data.labelling.asking.journal import _elsewhere, open_journal
from angle_data.labelling.label import LabelJob, label

COUNT = 60


def write(tmp_path, count=COUNT):
    write_texts(tmp_path, count, "Node {:04d} has left the cluster.")


def config(tmp_path, server, **changes):
    return config_of(tmp_path, server, polarity="synonym", **{"concurrency": 8, **changes})


def spoilt(fault, texts):
    """The fault for the prompts about these texts, by number."""
    marks = [f"Node {i:04d} " for i in texts]
    return lambda prompt: fault if any(mark in prompt for mark in marks) else None


def reasons(tmp_path):
    rows = read_rows(tmp_path / "run/rejected.jsonl")
    return [(row["source"][5:9], row["reason"], row["raw"]) for row in rows]


@pytest.mark.parametrize(
    ("fault", "texts", "kind"),
    [
        (Fault(kind="shape"), range(0, COUNT, 10), "no_reply"),  # 10 % without choices, all over the file
        (Fault(kind="shape"), range(25), "no_reply"),  # more in a row than the requests in flight
        (Fault(kind="cut"), range(0, COUNT, 20), "no_reply"),  # 5 % of the replies cut
        (Fault(kind="broken_json"), [0], "no_reply"),
        (Fault(400, message="filtered", code="content_filter"), range(30), "blocked"),
        (Fault(400, message="That is too much.", code="context_length_exceeded"), range(30), "too_long"),
    ],
    ids=["empty choices", "empty choices in a row", "cut", "broken json", "filter", "long"],
)
def test_texts_that_get_no_reply_are_set_aside_and_the_run_ends_well(tmp_path, caplog, fault, texts, kind):
    write(tmp_path)
    with FakeOpenAI(spoils=spoilt(fault, texts)) as server:
        counts = label(config(tmp_path, server)).counts
        assert [counts[name] for name in ("requests", "replied", "refused", "unanswered")] == [
            COUNT, COUNT - len(texts), len(texts), 0,
        ]  # fmt: skip
        assert counts["rejected"] == {"refused_by_server": len(texts)}
        assert all(said in caplog.text for said in (f"{len(texts)} request", "--retry-rejected asks again"))
        assert f"set aside as refused or failing again and again, most with {kind}: " in caplog.text
        assert [source for source, _, _ in reasons(tmp_path)] == [f"{i:04d}" for i in texts]
        assert {raw.partition(":")[0] for *_, raw in reasons(tmp_path)} == {kind}
        spent = run_json(tmp_path)["tokens"]["prompt_tokens"]
        assert spent == 10 * (COUNT - len(texts)) + (28 * len(texts) if fault.kind == "shape" else 0)
        assert label(config(tmp_path, server)).counts["asked"] == 0
        assert run_json(tmp_path)["tokens"]["prompt_tokens"] == spent
    with FakeOpenAI() as server:
        counts = label(config(tmp_path, server, retry_rejected=True)).counts
    assert (counts["asked"], counts["replied"], counts["rejected"]) == (len(texts), COUNT, {})


def test_what_is_left_of_a_run_may_be_nothing_but_blocked_texts(tmp_path):
    write(tmp_path, 12)
    with FakeOpenAI(spoils=spoilt(Fault(kind="shape"), range(12, 20))) as server:
        label(config(tmp_path, server))
        write(tmp_path, 20)
        assert label(config(tmp_path, server)).counts["refused"] == 8


@pytest.mark.parametrize("fault", [Fault(500, {"retry-after-ms": "1"}), Fault(kind="shape")])
def test_a_service_out_of_order_loses_no_text_however_often(tmp_path, fault):
    write(tmp_path, 30)
    with FakeOpenAI(spoils=spoilt(fault, range(12, 30))) as server:
        for _ in range(3):
            with pytest.raises(StoppedError, match="18 requests failed"):
                label(config(tmp_path, server))
    assert {reason for _, reason, _ in reasons(tmp_path)} == {"request_failed"}
    with FakeOpenAI() as server:
        assert label(config(tmp_path, server)).counts["replied"] == 30


def test_a_service_that_never_gives_a_reply_ends_the_run(tmp_path):
    write(tmp_path, 150)
    with FakeOpenAI(always=Fault(kind="shape")) as server:
        with pytest.raises(AnnotatorError, match=r"100 requests in a row failed, .* holds no choices"):
            label(config(tmp_path, server, concurrency=64))
        assert len(server.seen) < 4 * 150


def test_a_text_that_fails_in_two_sessions_is_set_aside(tmp_path):
    write(tmp_path, 5)
    broken = Fault(500, {"retry-after-ms": "1"}, message="out of memory")
    with FakeOpenAI(spoils=spoilt(broken, [2])) as server:
        with pytest.raises(StoppedError, match=r"^1 request failed, with http_500: out of memory"):
            label(config(tmp_path, server))
        counts = label(config(tmp_path, server)).counts
        assert (counts["refused"], counts["failed"]) == (1, {})
        assert reasons(tmp_path) == [("0002", "refused_by_server", "http_500: out of memory")]


@pytest.mark.parametrize(("floor", "warned"), [(50.0, True), (20.0, False)])
def test_a_low_yield_is_a_warning_with_its_reasons(tmp_path, caplog, floor, warned):
    write(tmp_path, 8)

    def reply(body):
        good = any(f"Node {i:04d}" in body["messages"][-1]["content"] for i in (1, 5))
        return "1. It is gone.\n2. It went away." if good else "I'm sorry, but I can't help with that."

    with FakeOpenAI(reply) as server:
        counts = label(config(tmp_path, server, min_yield=floor)).counts
    assert counts["kept"] == 4
    what = "only 25 % of what was asked for is of use (4 of 16; most: refusal 6)"
    said = f"{what}; see {tmp_path / 'run' / 'rejected.jsonl'}, then"
    assert (said in caplog.text) == warned


def test_replies_that_reasoning_ate_want_more_tokens(tmp_path):
    write(tmp_path, 3)
    said = pytest.raises(AnnotatorError, match=r"raise --max-tokens \(now 512\), for its reasoning counts")
    with FakeOpenAI(lambda body: "", finish_reason="length", reasoning=True) as server, said:
        label(config(tmp_path, server, checkpoint="gpt-5-mini"))


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_full_disk_loses_no_reply_that_is_paid_for(tmp_path, monkeypatch, by_hand):
    write(tmp_path, 200)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    journal = tmp_path / "run/journal.jsonl"
    with FakeOpenAI() as server:
        with pytest.raises(InputError) as caught, files_of_at_most(20_000):
            label(config(tmp_path, server))
        asked, said = len(server.seen), str(caught.value)
        assert asked < 200
        assert said.startswith(f"{journal}: File too large; ")
        (rescued,) = tmp_path.glob("angle-journal-*.jsonl")
        assert f"went to {rescued}: make room, and the same command takes them back" in said
        with pytest.raises(InputError, match=rf"no room yet for .* in {rescued}"), files_of_at_most(20_000):
            label(config(tmp_path, server))
        assert len(server.seen) == asked
        if by_hand:
            journal.write_bytes(journal.read_bytes() + rescued.read_bytes())
        counts = label(config(tmp_path, server)).counts
        assert (counts["replied"], len(server.seen)) == (200, 200)
        assert not rescued.exists()
        assert len(journal.read_text().splitlines()) == 200


def test_what_another_user_put_there_is_not_taken(tmp_path, monkeypatch):
    write(tmp_path, 2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "run").mkdir()
    planted = tmp_path / "planted"
    planted.write_text("no row")
    _elsewhere(str(tmp_path / "run/journal.jsonl")).symlink_to(planted)
    with FakeOpenAI() as server, pytest.raises(OSError, match="symbolic links"):
        label(config(tmp_path, server))


@pytest.mark.parametrize(("silent_s", "said"), [(0.05, 1), (30.0, 0)])
def test_a_silent_start_says_what_it_waits_for(tmp_path, caplog, silent_s, said):
    write(tmp_path, 2)
    with FakeOpenAI(latency_s=0.4) as server, open_journal(tmp_path / "run", "tiny") as journal:
        job = LabelJob(config(tmp_path, server))
        collector = Collector(job, journal, Ledger(journal, None, None, None), silent_s)
        with caplog.at_level(logging.INFO):
            collector.ask(load_annotator(job.spec))
    assert caplog.text.count(f"waiting for {server.url}; it may be loading tiny") == said


def test_prompts_that_a_server_reads_in_part_are_said_at_once_and_set_aside(tmp_path, caplog):
    """As Ollama beyond its context: 200, `stop`, and 2,048 of some 10,000 tokens."""
    long = "Node {} has left the cluster. " + "The machine does not answer any more. " * 1000
    write_texts(tmp_path, 3, long)
    said, read = '{"sentences": ["The machine is gone from the group."]}', (2048, 20)
    nothing = pytest.raises(AnnotatorError, match="no reply is of use")
    with FakeOpenAI(lambda body: said, usage=lambda body: read) as server, nothing:
        label(config(tmp_path, server))
    assert "tiny counts 2,048 tokens in a prompt of about" in caplog.text
    assert "3 replies to prompts that the server read only in part, without a word" in caplog.text
    assert {reason for _, reason, _ in reasons(tmp_path)} == {"prompt_cut"}
