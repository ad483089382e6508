"""Forecasts: what is left to ask, and its tokens: the service's counts so far, else an estimate."""

from dataclasses import replace

from fake_openai import FakeOpenAI
from labelling_runs import write_texts

from angle_data.annotators.spec import EngineConfig
from angle_data.jsonl import write_jsonl
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import label
from angle_data.labelling.pilot import plan_label


def config(tmp_path, count, *, size=2, **engine):
    write_texts(tmp_path, range(10, 10 + count), "Node {} has left.")
    texts, out = tmp_path / "texts.jsonl", tmp_path / "run"
    return LabelConfig(EngineConfig("m", **engine), texts, out, size=size, polarity="synonym")


def test_what_the_service_counted_before_is_the_best_forecast(tmp_path):
    """The fake reports 10 prompt and 5 reply tokens whatever the text."""
    with FakeOpenAI() as server:
        urls = {"base_urls": (server.url,), "price": (1e6, 1e6)}
        before = plan_label(config(tmp_path, 3, **urls))
        label(config(tmp_path, 3, **urls))
        plan = plan_label(config(tmp_path, 7, **urls))
        assert len(server.seen) == 3
    assert (before.counted_by, before.spent_tokens) == ("an estimate by characters", 0)
    assert plan.counted_by == "the service's own counts in the journal"
    assert (plan.requests, plan.from_journal, plan.to_ask) == (7, 3, 4)
    assert (plan.prompt_tokens, plan.completion_tokens, plan.usd) == (40, 20, 60.0)
    assert (plan.spent_tokens, plan.spent_usd) == (45, 45.0)


def test_equal_texts_are_forecast_once(tmp_path):
    asked = config(tmp_path, 2, base_urls=("http://h/v1",))
    write_texts(tmp_path, 5, "Node 3 has left.")
    plan = plan_label(asked)
    assert (plan.requests, plan.from_journal, plan.shared, plan.to_ask) == (5, 0, 4, 1)
    with FakeOpenAI() as server:
        urls = replace(asked.engine, base_urls=(server.url,))
        label(replace(asked, engine=urls))
    plan = plan_label(asked)
    assert (plan.requests, plan.from_journal, plan.shared, plan.to_ask) == (5, 5, 0, 0)


def test_requests_to_be_asked_anew_are_forecast(tmp_path):
    def reply(body):
        return "As an AI model, I cannot." if "Node 10" in str(body["messages"]) else "1. A b."

    with FakeOpenAI(reply) as server:
        asked = config(tmp_path, 2, base_urls=(server.url,))
        label(asked)
        rows = ({"id": i, "text": f"Node {n} has left."} for i, n in enumerate((10, 11, 12, 10)))
        write_jsonl(tmp_path / "texts.jsonl", rows)
        anew = plan_label(replace(asked, retry_rejected=True))
        plan = plan_label(asked)
        sent = len(server.seen)
        label(replace(asked, retry_rejected=True))
        assert len(server.seen) - sent == anew.to_ask
    assert (anew.requests, anew.from_journal, anew.shared, anew.to_ask) == (4, 1, 1, 2)
    assert (plan.requests, plan.from_journal, plan.shared, plan.to_ask) == (4, 3, 0, 1)
