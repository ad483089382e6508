"""Whole labelling runs against a real socket: resume, kill, interrupt, failures, and what the files say."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Fault
from labelling_runs import config_of as config
from labelling_runs import read_rows as rows
from labelling_runs import run_json, write_texts
from programs import angle_data, started
from tiny_llm import wait_until

from angle_data.annotators.spec import EngineConfig
from angle_data.errors import AnnotatorError, CredentialsError, InputError, StoppedError
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.label import label
from angle_data.labelling.pilot import plan_label
from angle_data.labelling.score import plan_score, score

PROMPTS = Path(__file__).parents[3] / "prompts"


def about(body):
    """A reply that quotes the node of its prompt, so that mixed-up rows show."""
    node = body["messages"][-1]["content"].split("Node ")[1].split()[0]
    return f"1. Host {node} is gone.\n2. Host {node} went away."


def test_a_run_writes_candidates_in_the_order_of_the_texts(tmp_path, monkeypatch):
    """And once more, without key and server, from the journal."""
    write_texts(tmp_path, 30)
    monkeypatch.setenv("MY_KEY", "sk-0")
    with FakeOpenAI(about, key="sk-0") as server:
        finished = config(tmp_path, server, api_key_env="MY_KEY")
        summary = label(finished)
    candidates = rows(tmp_path / "run" / "candidates.jsonl")
    expected = [
        (f"t{i}", polarity, f"Host {i} {end}")
        for i in range(30)
        for polarity in ("synonym", "antonym")
        for end in ("is gone.", "went away.")
    ]
    assert [(row["source_id"], row["polarity"], row["text"]) for row in candidates] == expected
    assert {row["model"] for row in candidates} == {"tiny"}
    none = ("blank_texts", "repeated_rows", "from_journal", "unanswered", "refused", "without_sentence")
    some = {"requests": 60, "asked": 60, "replied": 60, "kept": 120, "failed": {}, "rejected": {}}
    settings = run_json(tmp_path)
    assert settings["counts"] == dict.fromkeys(none, 0) | some
    assert settings["tokens"] == {"completion_tokens": 300, "prompt_tokens": 600, "total_tokens": 900}
    spent = {"tokens": settings["tokens"] | {"estimated_tokens": 0}, "usd": None}
    assert summary.counts == settings["counts"] | spent
    journal = rows(tmp_path / "run" / "journal.jsonl")
    assert {row["key"] for row in journal} == {row["key"] for row in candidates}
    assert (journal[0]["finish_reason"], journal[0]["usage"]["total_tokens"]) == ("stop", 15)
    files = [tmp_path / "run" / name for name in ("candidates.jsonl", "rejected.jsonl", "journal.jsonl")]
    before = [path.read_bytes() for path in files]
    files[0].unlink()
    monkeypatch.delenv("MY_KEY")
    again = label(finished).counts  # the server is gone
    assert (again["asked"], again["from_journal"], again["kept"]) == (0, 60, 120)
    assert [path.read_bytes() for path in files] == before


def test_dropped_parts_are_listed_with_reason_and_raw_reply(tmp_path):
    write_texts(tmp_path, 1)
    raw = "Sure!\n1. Node 0 has left the cluster.\n2. Host 0 is"
    said = r"^no reply is of use \(1 reply, most: chatter 1, echo_source 1, truncated 1\); see .*/run/"
    said += r"rejected\.jsonl, then choose another model or prompt, or ask anew with --retry-rejected$"
    refused = pytest.raises(AnnotatorError, match=said)
    with FakeOpenAI(lambda body: raw, finish_reason="length") as server, refused:
        label(config(tmp_path, server, polarity="synonym"))
    rejected = rows(tmp_path / "run" / "rejected.jsonl")
    assert [(row["reason"], row["text"]) for row in rejected] == [
        ("chatter", "Sure!"),
        ("echo_source", "Node 0 has left the cluster."),
        ("truncated", "Host 0 is"),
    ]
    assert {row["raw"] for row in rejected} == {raw}
    assert run_json(tmp_path)["counts"]["rejected"] == {"chatter": 1, "echo_source": 1, "truncated": 1}


def test_failed_requests_are_listed_and_asked_again(tmp_path):
    write_texts(tmp_path, 3)
    broken = Fault(500, {"retry-after-ms": "5"}, message="out of memory")
    with FakeOpenAI(about, faults=[None, *[broken] * 6]) as server:
        asked = config(tmp_path, server, polarity="synonym", concurrency=1)
        said = "1 request failed, with http_500: out of memory; run the same command again to ask it again"
        with pytest.raises(StoppedError, match=f"^{said}$"):
            label(asked)
        first = run_json(tmp_path)
        assert (first["counts"]["failed"], first["finished"]) == ({"http_500": 1}, False)
        assert first["stopped_by"].startswith(said)
        assert [first["counts"][name] for name in ("requests", "replied", "unanswered")] == [3, 2, 0]
        ((row),) = rows(tmp_path / "run" / "rejected.jsonl")
        found = row["source_id"], row["reason"], row["raw"]
        assert found == ("t1", "request_failed", "http_500: out of memory")
        assert len(rows(tmp_path / "run" / "candidates.jsonl")) == 4
        counts = label(asked).counts
        assert (counts["asked"], counts["replied"], counts["failed"]) == (1, 3, {})
        assert len(server.seen) == 2 + 6 + 1
    account = run_json(tmp_path)
    assert (account["finished"], account["failures"]) == (True, {"http_500": 1})
    assert account["stopped_by"] is None


def command(tmp_path, server):
    paths = ["--texts", tmp_path / "texts.jsonl", "--out", tmp_path / "run"]
    return angle_data("llm-label", "--model", "tiny", "--base-url", server.url, *paths, "--concurrency", 4)


FOR_ALL, FOR_EACH = (Fault(status, {"Retry-After": "500"}) for status in (429, 503))  # long waits


SIGNALS = [(signal.SIGINT, None), (signal.SIGTERM, None), (signal.SIGHUP, FOR_ALL), (signal.SIGINT, FOR_EACH)]


@pytest.mark.parametrize(("number", "then"), SIGNALS)
def test_an_interrupt_waits_for_replies_in_flight_alone_and_derives_the_candidates(tmp_path, number, then):
    write_texts(tmp_path, 200)
    faults = [None] * 20 if then else []
    with FakeOpenAI(about, latency_s=0.05, faults=faults, always=then) as server:
        with started(command(tmp_path, server)) as run:
            wait_until(lambda: len(server.seen) >= 21, program=run)
            run.send_signal(number)
            _, errors = run.communicate()
        replies, asked = server.counts["200"], len(server.seen)
    assert run.returncode == 130
    # How many were in flight depends on when the signal came.
    assert re.search(r"stopping: waiting for \d+ repl(y|ies) in flight .*; everything so far is kept", errors)
    assert run_json(tmp_path)["finished"] is False
    assert "Traceback" not in errors
    assert asked <= replies + (10 if then else 0)
    counts = run_json(tmp_path)["counts"]
    assert len(rows(tmp_path / "run/journal.jsonl")) == replies == counts["replied"] < 400
    assert (counts["failed"], counts["unanswered"]) == ({}, 400 - replies)
    assert len(rows(tmp_path / "run/candidates.jsonl")) == 2 * replies


def test_a_second_interrupt_does_not_wait(tmp_path):
    write_texts(tmp_path, 20)
    with (
        FakeOpenAI(about, faults=[None] * 6, always=Fault(kind="hang")) as server,
        started(command(tmp_path, server)) as run,
    ):
        wait_until(lambda: len(server.seen) >= 10, program=run)
        run.send_signal(signal.SIGINT)
        assert any("stopping" in line for line in run.stderr)
        run.send_signal(signal.SIGINT)
        run.communicate()
    assert run.returncode == 130
    assert len(rows(tmp_path / "run/journal.jsonl")) == 6
    assert len(rows(tmp_path / "run/candidates.jsonl")) == 12


def test_a_directory_of_something_else_is_refused_and_left_alone(tmp_path):
    write_texts(tmp_path, 1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "candidates.jsonl").write_text("mine\n")
    with FakeOpenAI(about) as server:
        with pytest.raises(InputError, match=r"other is not empty and holds no labelling run; give another"):
            label(config(tmp_path, server, out=tmp_path / "other"))
        assert not server.seen
        label(config(tmp_path, server))
        with pytest.raises(InputError, match="holds a run of 'tiny'; give another --out for 'other'"):
            label(config(tmp_path, server, model="other"))
        engine = EngineConfig("judge", base_urls=(server.url,))
        for grade in (score, plan_score):
            with pytest.raises(InputError, match="holds a run of llm-label; give another --out for llm-sc"):
                grade(ScoreConfig(engine, tmp_path / "run", (tmp_path / "run",)))
    assert (tmp_path / "other" / "candidates.jsonl").read_text() == "mine\n"
    (tmp_path / "run" / "run.json").write_text("[]")
    with pytest.raises(InputError, match="of a labelling run; delete it to go on with the replies in"):
        plan_label(config(tmp_path, server))
    (tmp_path / "run" / "run.json").unlink()
    found = plan_label(config(tmp_path, server))
    assert found.from_journal == found.requests


def test_a_run_that_has_lost_its_journal_keeps_what_it_gave(tmp_path):
    write_texts(tmp_path, 2)
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server))
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
        (tmp_path / "run/journal.jsonl").unlink()
        for run, model in ((label, "tiny"), (plan_label, "tiny"), (label, "other")):
            with pytest.raises(InputError, match=r"has lost the replies in its journal\.jsonl; put"):
                run(config(tmp_path, server, model=model, limit=1))
    del before["journal.jsonl"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_token_limit_is_used_up_and_not_passed(tmp_path):
    """Every reply takes 15 tokens, so 150 are ten replies, although up to about 120 are expected at first."""
    write_texts(tmp_path, 20)
    limited = {"max_tokens_total": 150, "polarity": "synonym", "concurrency": 4, "max_tokens": 8}
    with FakeOpenAI(about) as server:
        message = r"^stopped at --max-tokens-total 150: spent 150 tokens; 10 of 20 requests are left; raise"
        with pytest.raises(StoppedError, match=message) as stopped:
            label(config(tmp_path, server, **limited))
        assert (stopped.value.exit_code, len(server.seen)) == (75, 10)
        with pytest.raises(StoppedError, match=message):
            label(config(tmp_path, server, **limited))
        assert len(server.seen) == 10
        label(config(tmp_path, server, **(limited | {"max_tokens_total": 300})))
        assert len(server.seen) == 20
    settings = run_json(tmp_path)
    assert (settings["finished"], settings["tokens"]["total_tokens"], settings["replies"]) == (True, 300, 20)


def test_a_money_limit_counts_the_whole_journal(tmp_path):
    """10 prompt and 5 reply tokens at 100 and 200 USD a million are 0.002 USD a request."""
    write_texts(tmp_path, 40)
    priced = {"price": (100.0, 200.0), "polarity": "synonym", "max_tokens": 8}
    with FakeOpenAI(about) as server:
        for limit, asked in ((0.02, 10), (0.05, 25)):
            with pytest.raises(StoppedError, match=rf"stopped at --max-usd {limit}: spent {limit:.4f} USD, "):
                label(config(tmp_path, server, max_usd=limit, **priced))
            assert len(server.seen) == asked
        assert run_json(tmp_path)["usd"] == pytest.approx(0.05)
        with pytest.raises(InputError, match=r"--max-usd needs a price, and that of 'tiny' at http:.* is"):
            label(config(tmp_path, server, max_usd=1.0))


def test_shards_share_the_texts_whatever_their_order(tmp_path, caplog):
    caplog.set_level("INFO")
    write_texts(tmp_path, 40)
    found = {}
    with FakeOpenAI(about) as server:
        for i in (1, 2, 3):
            out = tmp_path / f"run{i}"
            label(config(tmp_path, server, out=out, shard=(i, 3), polarity="synonym"))
            found[i] = {row["source_id"] for row in rows(out / "candidates.jsonl")}
        assert len(server.seen) == 40
        lines = (tmp_path / "texts.jsonl").read_text().splitlines()
        (tmp_path / "texts.jsonl").write_text("\n".join(reversed(lines)) + "\n")
        label(config(tmp_path, server, out=tmp_path / "run2", shard=(2, 3), polarity="synonym"))
        assert len(server.seen) == 40
    assert "(tiny): about 14 requests, 0 replies" in caplog.text
    assert all(found.values())
    assert sorted(part for shard in found.values() for part in shard) == sorted(f"t{i}" for i in range(40))


def test_a_change_of_settings_is_named_and_asks_anew(tmp_path, monkeypatch, caplog):
    write_texts(tmp_path, 1)
    shutil.copytree(PROMPTS / "paper", tmp_path / "prompts")
    monkeypatch.chdir(tmp_path)
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server, prompts="paper", limit=1))
        label(config(tmp_path, server, prompts="paper"))  # what a limit left out would come to what there is
        first = (tmp_path / "run/candidates.jsonl").read_bytes()
        # The pace, the limits, and another way to write the same path change nothing that is asked.
        pace = {"concurrency": 1, "max_tokens_total": 9000}
        label(config(tmp_path, server, prompts="paper", texts=Path("texts.jsonl"), **pace))
        assert "other settings" not in caplog.text
        label(config(tmp_path, server, size=3, temperature=0.1))
        (said,) = (text for text in caplog.messages if "other settings" in text)
        changed = "size, prompts (was --prompts paper), sampling"
        assert said.startswith(f"warning: {tmp_path / 'run'} was run with other settings ({changed}): its")
        assert "another --out keeps both. The earlier replies stay in the journal" in said
        assert len(server.seen) == 2 + 2
        label(config(tmp_path, server, prompts="prompts"))
        path = tmp_path / "prompts" / "synonym.txt"
        path.write_text(path.read_text().replace("highly smart", "smart"))
        write_texts(tmp_path, 1, name="others.jsonl")
        label(config(tmp_path, server, prompts="prompts", texts=Path("others.jsonl")))
        assert len(server.seen) == 2 + 2 + 1  # the texts and the prompt of the antonym are the same
        label(config(tmp_path, server, prompts="paper"))
        assert len(server.seen) == 2 + 2 + 1
        assert (tmp_path / "run/candidates.jsonl").read_bytes() == first
    assert "(texts, prompts)" in caplog.text  # the same folder of prompts, with another content


def test_rejected_requests_are_asked_once_more_when_wanted(tmp_path):
    write_texts(tmp_path, 3)
    refusal = "As an AI model, I cannot."
    answers = {0: [refusal, refusal, "1. Better.\n2. Best."], 1: ["1. Good.\n2. Fine."], 2: [""]}
    asked = {node: [] for node in answers}

    def reply(body):
        node = int(body["messages"][-1]["content"].split("Node ")[1].split()[0])
        asked[node].append(body["seed"])
        return answers[node][min(len(asked[node]), len(answers[node])) - 1]

    def run(**changes):
        counts = label(config(tmp_path, server, polarity="synonym", seed=7, **changes)).counts
        return {name: counts[name] for name in ("asked", "replied", "without_sentence", "kept")}

    with FakeOpenAI(reply) as server:
        assert run() == {"asked": 3, "replied": 3, "without_sentence": 2, "kept": 2}
        assert run()["asked"] == 0
        assert run(retry_rejected=True) == {"asked": 2, "replied": 3, "without_sentence": 2, "kept": 2}
        assert run(retry_rejected=True) == {"asked": 2, "replied": 3, "without_sentence": 1, "kept": 4}
        assert run() == {"asked": 0, "replied": 3, "without_sentence": 1, "kept": 4}
    assert {node: len(seeds) for node, seeds in asked.items()} == {0: 3, 1: 1, 2: 3}
    journal = {row["key"]: row["reply"] for row in rows(tmp_path / "run/journal.jsonl")}
    candidates = rows(tmp_path / "run/candidates.jsonl")
    assert [(row["source_id"], row["text"]) for row in candidates[:2]] == [("t0", "Better."), ("t0", "Best.")]
    assert journal[candidates[0]["key"]] == answers[0][2]  # the last row of the key
    reasons = [(row["source_id"], row["reason"]) for row in rows(tmp_path / "run/rejected.jsonl")]
    assert reasons == [("t2", "empty")]


def test_requests_asked_anew_that_fail_are_failures(tmp_path):
    write_texts(tmp_path, 3)
    refuse = "As an AI model, I cannot."
    again = {"polarity": "synonym", "retry_rejected": True, "concurrency": 1}
    odd = Fault(500, {"retry-after-ms": "5"}, message="odd")
    with FakeOpenAI(lambda body: about(body) if "Node 2 " in str(body["messages"]) else refuse) as server:
        label(config(tmp_path, server, polarity="synonym"))
    with FakeOpenAI(about, always=odd) as server:
        message = r"^2 requests failed, most with http_500: odd; run the same"
        with pytest.raises(StoppedError, match=message):
            label(config(tmp_path, server, **again))
    counts = run_json(tmp_path)["counts"]
    assert run_json(tmp_path)["finished"] is False
    assert (counts["requests"], counts["replied"], counts["failed"]) == (3, 1, {"http_500": 2})
    reasons = [(row["source_id"], row["reason"]) for row in rows(tmp_path / "run/rejected.jsonl")]
    assert reasons == [(f"t{i}", why) for i in (0, 1) for why in ("refusal", "request_failed")]
    with FakeOpenAI(about) as server:
        assert label(config(tmp_path, server, **again)).counts["kept"] == 6
        assert len(server.seen) == 2
    assert run_json(tmp_path)["finished"] is True


@pytest.mark.parametrize(("texts", "warned"), [(4, False), (6, True)])
def test_one_sentence_for_many_texts_and_words_of_the_prompt_are_noticed(tmp_path, caplog, texts, warned):
    write_texts(tmp_path, texts)
    said = ["All is well here.", "Keep the terms of its field and sound like someone who works in it."]
    with FakeOpenAI(lambda body: json.dumps({"sentences": said})) as server:
        counts = label(config(tmp_path, server, prompts="structured", polarity="synonym")).counts
    assert (counts["kept"], counts["rejected"]) == (texts, {"echo_prompt": texts})
    assert (f"'all is well here' answers {texts} texts" in caplog.text) == warned


def test_a_folder_without_a_reply_is_free_for_another_annotator(tmp_path):
    write_texts(tmp_path, 1)
    said = pytest.raises(AnnotatorError, match=r"^every request failed \(2\), most with http_400: no$")
    with FakeOpenAI(about, always=Fault(400, message="no")) as server, said:
        label(config(tmp_path, server))
    assert (tmp_path / "run/journal.jsonl").read_text() == ""
    with FakeOpenAI(about) as server:
        assert label(config(tmp_path, server, model="other")).model == "other"
    assert run_json(tmp_path)["failures"] == {}


def test_an_annotator_that_cannot_be_built_leaves_a_run_as_it_was(tmp_path, monkeypatch, caplog):
    write_texts(tmp_path, 1)
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server))
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
        caplog.clear()
        monkeypatch.delenv("NO_SUCH_KEY", raising=False)
        with pytest.raises(CredentialsError):
            label(config(tmp_path, server, api_key_env="NO_SUCH_KEY", size=3))
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    assert not caplog.records


@pytest.mark.parametrize("run", [label, plan_label])
def test_a_finished_run_refuses_engine_options_that_cannot_be_used(tmp_path, run):
    write_texts(tmp_path, 1)
    with FakeOpenAI(about) as server:
        label(config(tmp_path, server))
        with pytest.raises(InputError, match="--engine batch has no option 'n_ctx'; it has: "):
            run(config(tmp_path, server, engine="batch", engine_options={"n_ctx": 512}))


def test_a_run_is_unfinished_from_its_first_request_on(tmp_path):
    """So a kill at any later moment leaves no old run.json that calls the run finished."""
    found = []

    def look(body):
        found.append(run_json(tmp_path))
        return about(body)

    for count in (1, 2, 2):
        write_texts(tmp_path, count)
        with FakeOpenAI(look) as server:
            label(config(tmp_path, server, polarity="synonym"))
        assert run_json(tmp_path)["finished"] is True
    assert [before["finished"] for before in found] == [False, False]
    assert [before.get("counts", {}).get("requests") for before in found] == [None, 1]
    assert (found[0]["model"], found[0]["command"], found[0]["size"]) == ("tiny", "llm-label", 2)


def test_a_refusal_is_final_unless_an_error_ends_the_session(tmp_path):
    refuse = Fault(400, message="no")
    asked = {"polarity": "synonym", "concurrency": 1}
    write_texts(tmp_path, 5)
    faults = [None, refuse]
    with FakeOpenAI(about, faults=faults, always=Fault(401)) as server, pytest.raises(AnnotatorError):
        label(config(tmp_path, server, **asked))
    assert len(rows(tmp_path / "run/journal.jsonl")) == 1
    with FakeOpenAI(about, faults=[refuse]) as server:
        for count in (4, 0):
            assert label(config(tmp_path, server, **asked)).counts["asked"] == count
    account = run_json(tmp_path)
    assert (account["finished"], account["replies"], account["counts"]["refused"]) == (True, 4, 1)
