"""`probe`: what two questions show of a service, before and without paying for more."""

import json
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Fault, completion
from labelling_runs import config_of, write_texts
from smollm2 import needs_smollm2, smollm2_server
from typer.testing import CliRunner

from angle_data.annotators.spec import EngineConfig
from angle_data.cli import app
from angle_data.errors import AnnotatorError, CredentialsError, InputError, StoppedError
from angle_data.labelling.config import ProbeConfig
from angle_data.labelling.label import label
from angle_data.labelling.probe import probe

SENTENCE = '{"sentence": "The memory of a node is full."}'


def answering(thought=None, cut_to=None, told=True, message=None, extra=None):
    """A service that answers both questions."""

    def reply(body):
        asked = body["messages"][-1]["content"]
        tokens = len(asked.split()) + 8
        tokens = min(tokens, cut_to or tokens)
        text = SENTENCE if "JSON" in asked else "marigold" if not cut_to else "road"
        answer = completion(body, f"<think>{thought}</think>{text}" if thought else text, (tokens, 9))
        answer["choices"][0]["message"] |= message or {}
        answer["usage"] = {**answer["usage"], **(extra or {})} if told else None
        return answer

    return reply


def ask(server, **changes):
    engine = EngineConfig("m", base_urls=(server.url,), **{"price": (1.0, 2.0), **changes})
    return probe(ProbeConfig(engine))


def test_an_ordinary_service_costs_two_requests_and_is_said_line_by_line(caplog):
    caplog.set_level("INFO")
    with FakeOpenAI(answering()) as server:
        lines = ask(server).lines
        assert len(server.seen) == 2
    assert caplog.messages[0] == "two questions to m: about 5,158 tokens, about 0.0053 USD"
    assert lines["address"].startswith(f"{server.url} answers as m (")
    assert lines["account"] == "no key is used"
    assert lines["JSON"] == "json_schema, with lengths; the reply keeps to it"
    assert lines["thinking"] == "none seen"
    assert lines["tokens"].startswith("counted (the last question: 5,0")
    assert lines["long prompts"].startswith("read as a whole (5,0")
    assert lines["price"] == "1 and 2 USD per million tokens"
    assert lines["limits"] == "none told; they are learnt from refusals"


def telling(**usage):
    return {"reply": answering(extra=usage)}


WITHIN = telling(completion_tokens_details={"reasoning_tokens": 4})
TOO_LONG = [None, Fault(400, message="the context length is 4096 tokens")]
FOUND = [
    ({"formats": ("json_object", "text")}, "JSON", "json_object, without a schema; the reply keeps to it"),
    ({"formats": ("text",)}, "JSON", "none: the prompt alone asks for it; the reply keeps to it"),
    ({"reply": answering("Let me see.")}, "thinking", "in marks of the content (26 characters)"),
    ({"reply": answering(message={"reasoning": "Hm."})}, "thinking", "in the field reasoning (3 characters"),
    (WITHIN, "thinking", "hidden: 4 tokens that are not shown"),
    (WITHIN, "tokens", "thoughts are within completion_tokens"),
    (telling(total_tokens=9999), "tokens", "thoughts are beside completion_tokens, and are added"),
    ({"reply": answering(told=False)}, "tokens", "not counted: they are estimated by length"),
    ({"reply": answering(cut_to=2048)}, "long prompts", "CUT without a word: 2,048 of about 5,025 tokens"),
    ({"reply": answering(cut_to=4096)}, "long prompts", "CUT without a word: 4,096 of about 5,025 tokens"),
    ({"reply": answering(cut_to=1, told=False)}, "long prompts", "perhaps cut: no tokens are counted"),
    ({"faults": TOO_LONG}, "long prompts", "is refused, and said so (the context length is 4096 tokens)"),
]


@pytest.mark.parametrize(("service", "line", "said"), FOUND)
def test_what_differs_is_found(service, line, said):
    with FakeOpenAI(**{"reply": answering(), **service}) as server:
        assert said in ask(server).lines[line]


def test_what_ends_a_run_ends_the_probe():
    with FakeOpenAI(answering(), key="sk-right") as server:
        with pytest.raises(CredentialsError, match=r"refuses access \(HTTP 401\)"):
            ask(server)
        assert len(server.seen) == 1
    empty = Fault(402, message="none left")
    with FakeOpenAI(always=empty) as server, pytest.raises(StoppedError, match="the account is empty"):
        ask(server)
    with (
        FakeOpenAI(always=Fault(400, message="no")) as server,
        pytest.raises(AnnotatorError, match="http_400: no"),
    ):
        ask(server)
    with pytest.raises(InputError, match="need no probe"):
        probe(ProbeConfig(EngineConfig("m", engine="recorded", replies=Path(__file__))))


def test_a_run_begins_with_what_was_found(tmp_path):
    write_texts(tmp_path, 2)
    with FakeOpenAI(answering(), formats=("json_object", "text")) as server:
        arguments = ["probe", "--model", "tiny", "--base-url", server.url, "--out", str(tmp_path / "run")]
        done = CliRunner().invoke(app, [*arguments, "--json"])
        assert done.exit_code == 0, done.exception
        assert json.loads(done.stdout)["form"] == "json_object"
        refused = server.counts["400"]
        label(config_of(tmp_path, server))
        assert server.counts["400"] == refused
    with FakeOpenAI(formats=("json_object", "text")) as other:  # at another address nothing is known
        label(config_of(tmp_path, other, out=tmp_path / "other"))
        assert other.counts["400"] > 0


@needs_smollm2
def test_a_real_model_is_probed():
    with smollm2_server() as url:
        lines = probe(ProbeConfig(EngineConfig("m", base_urls=(url,), temperature=0.0))).lines
    assert "is refused, and said so" in lines["long prompts"]  # its context has 1,024 tokens
    assert lines["tokens"].startswith("counted (the last question: ")
    assert lines["JSON"].startswith("json_schema, with lengths; the reply ")
