"""An annotator that gives nothing of use is stopped before the rest is paid for."""

import re

import pytest
from fake_openai import FakeOpenAI
from labelling_runs import config_of, read_rows, run_json, write_texts

from angle_data.annotators.spec import EngineConfig
from angle_data.errors import AnnotatorError, StoppedError
from angle_data.jsonl import write_jsonl
from angle_data.labelling.asking.useless import UselessInARow
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.label import label
from angle_data.labelling.score import score

SORRY = "I'm sorry, but I can't help with that."


def good(body):
    return "1. The machine is gone from the group.\n2. It is no longer a member of the group."


@pytest.mark.parametrize("concurrency", [1, 64])
@pytest.mark.parametrize("prompts", ["paper", "structured"])
def test_a_model_that_only_refuses_is_stopped_after_fifty_answers(tmp_path, prompts, concurrency):
    """With those that are in flight then: never more than 50 and twice the concurrency are paid."""
    write_texts(tmp_path, 300)
    with FakeOpenAI(lambda body: SORRY) as server:
        asked = config_of(tmp_path, server, prompts=prompts, concurrency=concurrency, price=(1.0, 1.0))
        said = r"stopped after 50 replies in a row of which nothing is of use, 50 with refusal \(.*can't help"
        with pytest.raises(StoppedError, match=said) as stopped:
            label(asked)
        assert re.search(r"spent 0\.\d{4} USD, [\d,]+ tokens in all", str(stopped.value))
        assert stopped.value.exit_code == 75
        paid = len(server.seen)
        assert 50 <= paid <= 50 + 2 * concurrency
        assert len(read_rows(tmp_path / "run/journal.jsonl")) == paid
        assert run_json(tmp_path)["finished"] is False
    with FakeOpenAI(good) as server:  # a mended one goes on, with nothing asked twice
        counts = label(config_of(tmp_path, server, prompts=prompts)).counts
        assert counts["asked"] == len(server.seen) == 600 - paid
        assert counts["kept"] == 2 * (600 - paid)


@pytest.mark.parametrize(("reply", "why"), [("", "empty"), ("Certainly! Here they are:", "chatter")])
def test_whatever_is_useless_counts(tmp_path, reply, why):
    write_texts(tmp_path, 100)
    with FakeOpenAI(lambda body: reply) as server, pytest.raises(StoppedError, match=f"50 with {why} "):
        label(config_of(tmp_path, server, prompts="paper"))


def test_grades_are_judged_likewise(tmp_path):
    write_jsonl(
        tmp_path / "pairs.jsonl", ({"text1": f"{n} is up.", "text2": f"{n} runs."} for n in range(200))
    )
    with FakeOpenAI(lambda body: '{"grades": []}') as server:
        engine = EngineConfig("judge", base_urls=(server.url,), concurrency=8)
        with pytest.raises(StoppedError, match="50 replies in a row of which nothing is of use, 50 with"):
            score(ScoreConfig(engine, tmp_path / "run", pairs=(tmp_path / "pairs.jsonl",)))
        assert 50 <= len(server.seen) <= 50 + 2 * 8


def test_one_good_answer_in_fifty_goes_on_and_0_never_stops(tmp_path):
    write_texts(tmp_path, 120)
    with FakeOpenAI(
        lambda body: good(body) if "Node 3 " in body["messages"][-1]["content"] else SORRY
    ) as server:
        given = {"prompts": "paper", "polarity": "synonym", "concurrency": 1}
        with pytest.raises(StoppedError, match="50 replies in a row"):
            label(config_of(tmp_path, server, **given))
        assert 54 <= len(server.seen) <= 54 + 2
        counts = label(config_of(tmp_path, server, **given, max_useless=0)).counts
        assert (counts["replied"], counts["kept"], len(server.seen)) == (120, 2, 120)


def test_the_end_of_a_run_is_no_reason_to_stop_it(tmp_path):
    """All is asked, so all is said by the usual verdict."""
    write_texts(tmp_path, 50)
    with FakeOpenAI(lambda body: SORRY) as server:
        with pytest.raises(AnnotatorError, match="no reply is of use"):
            label(config_of(tmp_path, server, prompts="paper", polarity="synonym"))
        assert len(server.seen) == 50


def test_few_replies_are_read(tmp_path):
    class Counting:
        read = 0

        def why_useless(self, request, row):
            self.read += 1
            return None if row["reply"] == "good" else "refusal"

    job = Counting()
    streak = UselessInARow(job, 10)
    for _ in range(100):
        assert not streak.add(None, {"reply": "good"})
    assert job.read == 10
    for _ in range(9):
        assert not streak.add(None, {"reply": "bad"})
    assert streak.add(None, {"reply": "bad"})
