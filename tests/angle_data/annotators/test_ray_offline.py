"""The Ray engine on a local Ray: with the real vLLM, and around a fake one for what goes wrong."""

import asyncio
import os
import signal
from contextlib import aclosing

import pytest
from programs import journalled
from tiny_llm import (
    ENGINE_OPTIONS,
    ask,
    chat_request,
    needs_vllm,
    ray_marks,
    shared_engine,
    shared_llama,
    wait_until,
)

from angle_data.annotators.base import Failure
from angle_data.annotators.choice import load_annotator
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AnnotatorError


def annotator(checkpoint, **options):
    return load_annotator(AnnotatorSpec("m", "ray", str(checkpoint), engine_options=options))


@ray_marks
@needs_vllm
def test_ray_gives_the_replies_of_the_offline_engine(monkeypatch):
    """The same chunks and seeds in a second start of vLLM, in a Ray actor: the same tokens."""
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    requests = [chat_request(f"Node {number} is down.", number, seed=number) for number in range(10)]
    requests.append(chat_request("word " * 600, 10))
    engines = (annotator(shared_llama(), chunk=4, **ENGINE_OPTIONS), shared_engine())
    replies, expected = ({o.key: o for o in ask(engine, requests)} for engine in engines)
    assert len(replies) == 11
    too_long = requests[10].key
    assert isinstance(replies[too_long], Failure)
    assert replies.pop(too_long) == expected.pop(too_long)
    for key, reply in replies.items():
        assert (reply.text, reply.usage) == (expected[key].text, expected[key].usage)


@ray_marks
def test_chunks_are_pulled_as_answers_come(ray_calls, tmp_path):
    """The first answers wait until both engines run, or the faster one could answer everything."""
    gate = tmp_path / "gate"
    pulled, seen = [], []

    def source():
        for number in range(13):
            pulled.append(number)
            yield chat_request(f"t{number} wait for {gate}", number)

    def open_gate():
        wait_until(lambda: len(ray_calls("start")) == 2)
        gate.touch()

    async def run(engine):
        opened = asyncio.create_task(asyncio.to_thread(open_gate))
        async with aclosing(engine.stream(source())) as stream:
            async for outcome in stream:
                seen.append(outcome.key)
                # Two chunks for each of two engines are on their way, and one for each that came back.
                assert len(pulled) <= 2 * (4 + (len(seen) + 1) // 2)
        await opened

    asyncio.run(run(annotator("tiny", chunk=2, concurrency=2)))
    assert sorted(seen) == [chat_request("", number).key for number in range(13)]
    assert sorted(map(len, ray_calls("chat"))) == [1, 2, 2, 2, 2, 2, 2]


@ray_marks
@pytest.mark.parametrize(
    ("checkpoint", "content", "message"),
    [
        ("missing", "a", r"vLLM cannot load missing \(We couldn't connect .*"),
        ("tiny", "forbidden", "vLLM refuses every request: that is forbidden"),
    ],
)
def test_what_an_engine_cannot_do_is_one_line(ray_calls, checkpoint, content, message):
    import ray

    ray.init()  # a Ray of the caller's own stays
    with pytest.raises(AnnotatorError, match=f"^{message}$"):
        ask(annotator(checkpoint), [chat_request(content, number) for number in range(5)])
    assert ray.is_initialized()
    ray.shutdown()


@ray_marks
def test_a_refused_chunk_after_replies_does_not_end_the_run(ray_calls):
    requests = [chat_request(content, number) for number, content in enumerate(("a", "b", "forbidden"))]
    outcomes = ask(annotator("tiny", chunk=2), requests)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Failure", "Reply", "Reply"]


@ray_marks
def test_ctrl_c_waits_for_the_chunks_under_way_and_the_next_run_goes_on(ray_calls, tmp_path, start_run):
    """Of the chunks that an actor holds, Ray takes any one first."""
    gate = tmp_path / "gate"
    contents = ["one", f"please wait for {gate}", "three", "four", "five", "six"]
    with start_run(tmp_path, contents, "ray", 1) as program:
        wait_until(lambda: [contents[1]] in ray_calls("chat"), program=program, record=ray_calls.record)
        os.killpg(program.pid, signal.SIGINT)
        assert any("stopping" in line for line in program.stderr)
        gate.touch()
        program.communicate()
    assert program.returncode == 130
    done = journalled(tmp_path / "run")
    assert 2 <= len(done) <= 4
    assert set(done) == set(contents[: len(done)])
    with start_run(tmp_path, contents, "ray", 1) as again:
        _, errors = again.communicate()
    assert again.returncode == 0, errors
    assert sorted(journalled(tmp_path / "run")) == sorted(contents)
    assert len(ray_calls("chat")) == len(contents)
