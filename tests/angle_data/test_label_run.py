"""Whole labelling runs against a real socket: resume, kill, interrupt, failures, and what the files say."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Fault

from angle_data.errors import AnnotatorError, InputError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.requests import LabelConfig
from angle_data.labelling.run import label, plan_label

KEY = "sk-secret-0123456789"


def write_texts(path, count, start=0):
    lines = [
        json.dumps({"id": f"t{i}", "text": f"Node {i} has left the cluster."}) for i in range(start, count)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def config(tmp_path, server, **changes):
    settings = {
        "model": "tiny",
        "texts": tmp_path / "texts.jsonl",
        "out": tmp_path / "run",
        "base_url": server.url,
        "concurrency": 4,
    }
    return LabelConfig(**(settings | changes))


def rows(path: Path):
    return [row for _, row in read_jsonl(path)]


def about(body):
    """A reply that quotes the node of its prompt, so that mixed-up rows show."""
    node = body["messages"][-1]["content"].split("Node ")[1].split()[0]
    return f"1. Host {node} is gone.\n2. Host {node} went away."


def test_a_run_writes_candidates_in_the_order_of_the_texts(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 30)
    with FakeOpenAI(about) as server:
        summary = label(config(tmp_path, server))
    candidates = rows(tmp_path / "run" / "candidates.jsonl")
    expected = [
        (f"t{i}", polarity, f"Host {i} {end}")
        for i in range(30)
        for polarity in ("synonym", "antonym")
        for end in ("is gone.", "went away.")
    ]
    assert [(row["source_id"], row["polarity"], row["text"]) for row in candidates] == expected
    assert {row["model"] for row in candidates} == {"tiny"}
    assert summary.counts == {
        "blank_texts": 0,
        "repeated_rows": 0,
        "requests": 60,
        "from_journal": 0,
        "asked": 60,
        "replied": 60,
        "failed": {},
        "unanswered": 0,
        "kept": 120,
        "rejected": {},
    }
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert settings["counts"] == summary.counts
    assert settings["tokens"] == {"completion_tokens": 300, "prompt_tokens": 600, "total_tokens": 900}
    journal = rows(tmp_path / "run" / "journal.jsonl")
    assert {row["key"] for row in journal} == {row["key"] for row in candidates}
    assert journal[0]["finish_reason"] == "stop"
    assert journal[0]["usage"]["total_tokens"] == 15


def test_a_second_run_asks_nothing_and_writes_the_same_bytes(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 5)
    derived = [tmp_path / "run" / name for name in ("candidates.jsonl", "rejected.jsonl", "journal.jsonl")]
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server))
        before = [path.read_bytes() for path in derived]
        summary = label(config(tmp_path, server))
        assert len(server.seen) == 10
    assert (summary.counts["asked"], summary.counts["from_journal"]) == (0, 10)
    assert [path.read_bytes() for path in derived] == before


def test_a_finished_run_can_be_parsed_anew_without_key_or_server(tmp_path, monkeypatch):
    write_texts(tmp_path / "texts.jsonl", 3)
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeOpenAI(about, key=KEY) as server:
        finished = config(tmp_path, server, api_key_env="MY_KEY")
        label(finished)
    (tmp_path / "run" / "candidates.jsonl").unlink()
    monkeypatch.delenv("MY_KEY")
    assert label(finished).counts["kept"] == 12
    assert len(rows(tmp_path / "run" / "candidates.jsonl")) == 12


def test_one_more_text_costs_one_more_request(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 5)
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server, polarity="synonym"))
        write_texts(tmp_path / "texts.jsonl", 6)
        planned = plan_label(config(tmp_path, server, polarity="synonym"))
        label(config(tmp_path, server, polarity="synonym"))
        assert len(server.seen) == 6
        assert "Node 5 " in server.seen[-1].prompt
    assert (planned.requests, planned.from_journal, planned.to_ask) == (6, 5, 1)


def test_other_settings_are_other_requests_in_the_same_journal(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 2)
    with FakeOpenAI(about) as server:
        for changes in ({}, {"size": 3}, {"temperature": 0.1}, {"prompts": "structured"}, {"concurrency": 1}):
            label(config(tmp_path, server, **changes))
        assert len(server.seen) == 4 * 4
    assert len(rows(tmp_path / "run" / "candidates.jsonl")) == 2 * 2 * 2


def test_equal_texts_under_two_ids_are_asked_once_and_answered_twice(tmp_path):
    texts = [{"id": i, "text": "Node 3 has left."} for i in ("a", "b")]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts))
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server, polarity="antonym"))
        assert len(server.seen) == 1
    assert [row["source_id"] for row in rows(tmp_path / "run" / "candidates.jsonl")] == ["a", "a", "b", "b"]


def test_dropped_parts_are_listed_with_reason_and_raw_reply(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 1)
    raw = "Sure!\n1. Node 0 has left the cluster.\n2. Host 0 is"
    with FakeOpenAI(lambda body: raw, finish_reason="length") as server:
        summary = label(config(tmp_path, server, polarity="synonym"))
    rejected = rows(tmp_path / "run" / "rejected.jsonl")
    assert [(row["reason"], row["text"]) for row in rejected] == [
        ("chatter", "Sure!"),
        ("echo_source", "Node 0 has left the cluster."),
        ("truncated", "Host 0 is"),
    ]
    assert {row["raw"] for row in rejected} == {raw}
    assert summary.counts["rejected"] == {"chatter": 1, "echo_source": 1, "truncated": 1}


def test_failed_requests_are_listed_and_asked_again(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 3)
    with FakeOpenAI(about, faults=[None, Fault(400, message="too long")]) as server:
        first = label(config(tmp_path, server, polarity="synonym", concurrency=1))
        rejected = rows(tmp_path / "run" / "rejected.jsonl")
        second = label(config(tmp_path, server, polarity="synonym", concurrency=1))
        assert len(server.seen) == 4
    assert first.counts["failed"] == {"http_400": 1}
    assert (first.counts["requests"], first.counts["replied"], first.counts["unanswered"]) == (3, 2, 0)
    assert [(row["source_id"], row["reason"], row["raw"]) for row in rejected] == [
        ("t1", "request_failed", "http_400: too long")
    ]
    assert (second.counts["asked"], second.counts["replied"], second.counts["failed"]) == (1, 3, {})


def test_an_error_that_ends_the_run_keeps_what_was_answered(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 9)
    with (
        FakeOpenAI(about, faults=[None, None], always=Fault(404, message="gone")) as server,
        pytest.raises(AnnotatorError, match="gone"),
    ):
        label(config(tmp_path, server, polarity="synonym", concurrency=1))
    counts = json.loads((tmp_path / "run" / "run.json").read_text())["counts"]
    assert (counts["requests"], counts["replied"], counts["unanswered"]) == (9, 2, 7)
    assert len(rows(tmp_path / "run" / "candidates.jsonl")) == 4


def test_a_bad_line_near_the_end_is_found_before_anything_is_asked(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 9)
    with (tmp_path / "texts.jsonl").open("a") as stream:
        stream.write("oops\n")
    with FakeOpenAI(about) as server:
        with pytest.raises(InputError, match=r"texts.jsonl:10: not valid JSON"):
            label(config(tmp_path, server))
        assert server.seen == []


def test_the_api_key_is_in_no_file(tmp_path, monkeypatch):
    write_texts(tmp_path / "texts.jsonl", 3)
    monkeypatch.setenv("MY_KEY", KEY)
    faults = [Fault(400, message=f"bad key {KEY}")]
    with FakeOpenAI(about, key=KEY, faults=faults) as server:
        label(config(tmp_path, server, api_key_env="MY_KEY"))
        assert server.seen[0].authorization == f"Bearer {KEY}"
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) == 5
    assert not [path.name for path in files if KEY.encode() in path.read_bytes()]


def test_a_run_directory_of_another_annotator_is_refused(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 1)
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server))
        with pytest.raises(InputError, match="holds a run of 'tiny'; give another --out for 'other'"):
            label(config(tmp_path, server, model="other"))
        (tmp_path / "run" / "journal.jsonl").unlink()
        with pytest.raises(InputError, match="holds a run of 'tiny'"):
            plan_label(config(tmp_path, server, model="other"))
    (tmp_path / "run" / "run.json").write_text("[]")
    with pytest.raises(InputError, match=r"run.json is not the run.json of a labelling run"):
        plan_label(config(tmp_path, server))


def test_a_plan_writes_nothing_and_asks_nobody(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 4)
    with FakeOpenAI(about) as server:
        planned = plan_label(config(tmp_path, server))
        assert server.seen == []
    assert (planned.requests, planned.to_ask) == (8, 8)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 0}, "--size must be at least 1, got 0"),
        ({"limit": 0}, "--limit must be at least 1, got 0"),
        ({"max_tokens": -5}, "--max-tokens must be at least 1, got -5"),
        ({"concurrency": 0}, "--concurrency must be at least 1, got 0"),
        ({"temperature": 2.5}, "--temperature must be between 0 and 2, got 2.5"),
        ({"polarity": "all"}, "--polarity must be one of both, synonym, antonym, got 'all'"),
    ],
)
def test_settings_out_of_range(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        LabelConfig(**({"model": "m", "texts": tmp_path, "out": tmp_path} | changes))


def command(tmp_path, server):
    program = "from angle_data.cli import main; main()"
    options = {
        "--model": "tiny",
        "--base-url": server.url,
        "--texts": tmp_path / "texts.jsonl",
        "--out": tmp_path / "run",
        "--concurrency": 4,
    }
    arguments = [str(part) for option in options.items() for part in option]
    return [sys.executable, "-c", program, "llm-label", *arguments]


def wait_for_replies(server, count):
    deadline = time.monotonic() + 60
    while len(server.seen) < count:
        assert time.monotonic() < deadline, "the run does not get going"
        time.sleep(0.01)


def test_after_kill_9_only_the_missing_replies_are_asked_for(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 100)
    with FakeOpenAI(about, latency_s=0.02) as server:
        with subprocess.Popen(command(tmp_path, server), stderr=subprocess.DEVNULL) as run:
            wait_for_replies(server, 60)
            os.kill(run.pid, signal.SIGKILL)
        kept = len((tmp_path / "run" / "journal.jsonl").read_bytes().splitlines())
        asked = len(server.seen)
        assert kept >= asked - 3 * 4  # at most what was in flight, in the queue, and about to be queued
        summary = label(config(tmp_path, server))
        assert len(server.seen) - asked == 200 - kept == summary.counts["asked"]
    clean = tmp_path / "clean"
    clean.mkdir()
    write_texts(clean / "texts.jsonl", 100)
    with FakeOpenAI(about) as server:
        label(config(clean, server))
    assert (clean / "run/candidates.jsonl").read_bytes() == (tmp_path / "run/candidates.jsonl").read_bytes()


def test_an_interrupt_waits_for_replies_in_flight_and_derives_the_candidates(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 200)
    with FakeOpenAI(about, latency_s=0.05) as server:
        with subprocess.Popen(command(tmp_path, server), stderr=subprocess.PIPE, text=True) as run:
            wait_for_replies(server, 20)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=60)
        asked = len(server.seen)
    assert run.returncode == 130
    assert "stopping: everything so far is kept; waiting for 4 replies in flight" in errors
    assert "Traceback" not in errors
    journal, counts = (
        rows(tmp_path / "run/journal.jsonl"),
        json.loads((tmp_path / "run/run.json").read_text())["counts"],
    )
    assert len(journal) == asked == counts["replied"] < 400
    assert counts["unanswered"] == 400 - asked
    assert len(rows(tmp_path / "run/candidates.jsonl")) == 2 * asked


def test_a_second_interrupt_does_not_wait(tmp_path):
    write_texts(tmp_path / "texts.jsonl", 20)
    with (
        FakeOpenAI(about, faults=[None] * 6, always=Fault(kind="hang")) as server,
        subprocess.Popen(command(tmp_path, server), stderr=subprocess.PIPE, text=True) as run,
    ):
        wait_for_replies(server, 10)
        run.send_signal(signal.SIGINT)
        while "stopping" not in run.stderr.readline():
            pass
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
    assert run.returncode == 130
    assert len(rows(tmp_path / "run/journal.jsonl")) == 6
    assert len(rows(tmp_path / "run/candidates.jsonl")) == 12


def test_a_directory_with_other_files_is_refused_and_left_alone(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "candidates.jsonl").write_text("mine\n")
    with FakeOpenAI() as server:
        write_texts(tmp_path / "texts.jsonl", 1)
        with pytest.raises(InputError, match=r"run is not empty and holds no labelling run; give another"):
            label(config(tmp_path, server))
        assert not server.seen
    assert (out / "candidates.jsonl").read_text() == "mine\n"
