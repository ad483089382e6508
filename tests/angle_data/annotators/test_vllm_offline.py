"""The offline engine around a fake vLLM: chunks, failures, options, signals, and what is left running."""

import asyncio
import os
import signal
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest
from programs import journalled
from tiny_llm import ask, chat_request, collect, wait_until

from angle_data.annotators.base import Reply
from angle_data.annotators.choice import load_annotator
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AnnotatorError


@contextmanager
def annotator(run=None, checkpoint="tiny", revision=None, **options):
    spec = AnnotatorSpec("m", "offline", checkpoint, revision=revision, run=run, engine_options=options)
    engine = load_annotator(spec)
    yield engine
    engine.close()


def requests(*contents):
    return [chat_request(content, number, seed=None) for number, content in enumerate(contents)]


def runs(pid):
    """Whether a process is there and more than a zombie that nobody has waited for."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def ended(calls):
    """Whether all that vLLM started has ended."""
    return not any(runs(pid) for name in ("core", "worker") for pid in calls(name))


def test_chunks_are_whole_calls_of_one_engine(calls):
    pulled = []

    def source():
        for each in requests("e", "d", "c", "b", "a"):
            pulled.append(each.key)
            yield each

    async def first_pulled(engine):
        async with aclosing(engine.stream(source())) as stream:
            return [(len(pulled), outcome.text) async for outcome in stream]

    with annotator(chunk=2) as engine:
        seen = asyncio.run(first_pulled(engine))
    # Pulled a chunk at a time; answered in the order asked, whatever order vLLM got.
    assert seen == [(2, "e #None"), (2, "d #None"), (4, "c #None"), (4, "b #None"), (5, "a #None")]
    assert calls("chat") == [["d", "e"], ["b", "c"], ["a"]]
    assert len(calls("start")) == 1
    wait_until(lambda: ended(calls))  # with its annotator, idle


def test_what_vllm_is_told_and_what_it_prints_goes_to_the_log_of_the_run(calls, tmp_path, capfd):
    schema = {"type": "object"}
    asked = chat_request("two words", temperature=0.7, max_tokens=9, seed=3, schema=schema)
    with annotator(tmp_path, revision="r1", dtype="half", max_model_len=50) as engine:
        (reply,) = ask(engine, [asked])
    config = {"backend": "xgrammar", "disable_any_whitespace": True}
    known = {"model": "tiny", "revision": "r1", "dtype": "half", "max_model_len": 50}
    assert calls("start") == [known | {"enable_prefix_caching": True, "structured_outputs_config": config}]
    structured = {"json": schema, "disable_any_whitespace": True}
    expected = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 9, "seed": 3}
    assert calls("params") == [[{**expected, "structured_outputs": structured}]]
    assert reply.text == "two words #3"
    assert reply.finish_reason == "stop"
    assert reply.usage == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    assert reply.seconds > 0
    assert (tmp_path / "vllm.log").read_text().startswith("a banner on stdout")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("old", [False, True], ids=["errors of its own", "ValueErrors only"])
def test_a_faulty_question_costs_no_other(calls, monkeypatch, old):
    if old:
        monkeypatch.setenv("FAKE_VLLM_OLD", "1")
    contents = ["a", "forbidden 1", "c", "[abort]", "w " * 50, "forbidden 2", "g"]
    with annotator(max_model_len=50) as engine:
        outcomes = ask(engine, requests(*contents))
    found = [outcome.text if isinstance(outcome, Reply) else outcome.kind for outcome in outcomes]
    assert found == ["a #None", "refused", "c #None", "failed", "too_long", "refused", "g #None"]
    assert outcomes[1].message == "that is forbidden"
    assert outcomes[4].message == "the prompt has 50 tokens, the model holds 50 with the reply"


def test_the_same_refusal_of_everything_ends_the_run(calls):
    got, said = [], "vLLM refuses every request: that is forbidden"
    with annotator(chunk=2) as engine, pytest.raises(AnnotatorError, match=said):
        ask(engine, requests(*["forbidden"] * 6, "never asked"), got)
    assert [outcome.kind for outcome in got] == ["refused"] * 6


def test_refusals_after_a_reply_say_nothing_of_the_others(calls):
    with annotator(chunk=2) as engine:
        outcomes = ask(engine, requests("a", "b", *["forbidden"] * 6, "c"))
    assert [type(outcome) is Reply for outcome in outcomes] == [True, True, *[False] * 6, True]


def test_vllm_refuses_an_option_that_it_does_not_know(calls):
    refused = pytest.raises(AnnotatorError, match="--engine-option gpu_memory: vLLM has no such option")
    with annotator(gpu_memory="0.5") as engine, refused:
        ask(engine, requests("a"))


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [
        ("missing", r"vLLM cannot load missing \(We couldn't connect .* find them\.\); name a folder .*"),
        ("big", "vLLM cannot load the model: ValueError: no room"),
        ("base", "base has no chat template, so it may not be a chat model; .* chat_template=FILE"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_one_line(calls, tmp_path, checkpoint, message):
    more = rf"\(more in {tmp_path / 'vllm.log'}\)"
    with (
        annotator(tmp_path, checkpoint) as engine,
        pytest.raises(AnnotatorError, match=f"^{message} {more}$"),
    ):
        ask(engine, requests("a"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[die]", "the vLLM process was killed, perhaps for want of memory"),
        ("[break]", "vLLM failed: 'a defect'"),
    ],
)
def test_an_engine_that_fails_is_one_line_and_costs_its_chunk_only(calls, content, message):
    got = []
    with annotator(chunk=1) as engine:
        with pytest.raises(AnnotatorError, match=f"^{message}$"):
            ask(engine, requests("a", content), got)
        assert [outcome.text for outcome in got] == ["a #None"]
        wait_until(lambda: ended(calls))


def test_a_cancelled_stream_ends_all_that_vllm_started(calls, tmp_path):
    async def run(engine):
        task = asyncio.create_task(collect(engine, requests(f"wait for {tmp_path / 'never'}")))
        await asyncio.to_thread(wait_until, lambda: calls("chat"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with annotator() as engine:
        asyncio.run(run(engine))
        wait_until(lambda: ended(calls))


def test_ctrl_c_drains_the_chunk_and_a_second_run_asks_the_rest(calls, tmp_path, start_run):
    gate = tmp_path / "gate"
    contents = ["one", "two", f"please wait for {gate}", "four", "five"]
    with start_run(tmp_path, contents, "offline", 2) as program:
        wait_until(lambda: len(calls("chat")) == 2, program=program)
        os.killpg(program.pid, signal.SIGINT)
        assert any("stopping" in line for line in program.stderr)
        gate.touch()
        program.communicate()
    assert program.returncode == 130
    assert journalled(tmp_path / "run") == contents[:4]
    with start_run(tmp_path, contents, "offline", 2) as again:
        _, errors = again.communicate()
    assert again.returncode == 0, errors
    assert journalled(tmp_path / "run") == contents
    assert [len(prompts) for prompts in calls("chat")] == [2, 2, 1]


def test_a_killed_program_leaves_no_engine_behind(calls, tmp_path, start_run):
    with start_run(tmp_path, [f"please wait for {tmp_path / 'never'}"], "offline", 2) as program:
        wait_until(lambda: calls("chat"), program=program)
        program.kill()
    wait_until(lambda: ended(calls))
