"""Rows of the result files of batches, and bodies of errors, as services write them. A newcomer adds a line.

A line of batch_rows.jsonl: the `row`, and the `text` that it gives, or the `kind` of its failure and words
that this `says`.
A line of error_bodies.jsonl: `status`, `type` and `body` of an answer over HTTP, the kind of the
failure, words that it says, and whether the same request is worth asking `again`.
"""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web
from fake_server import FakeServer

from angle_data.annotators.answers import answer_of, wrong_with_text
from angle_data.annotators.base import Failure
from angle_data.annotators.batch_service import BatchService
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import Transport
from angle_data.http import CallError, is_retryable

HERE = Path(__file__).parent


def lines(name):
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


ROWS, BODIES = lines("batch_rows.jsonl"), lines("error_bodies.jsonl")


class Fixed(FakeServer):
    """Answers every call with one body."""

    def __init__(self, shape):
        self._shape = shape

    def add_routes(self, app):
        app.router.add_post("/v1/chat/completions", self._answer)

    async def _answer(self, request):
        shape = self._shape
        return web.Response(status=shape["status"], text=shape["body"], content_type=shape["type"])


@pytest.mark.parametrize("shape", ROWS, ids=lambda shape: shape["name"])
def test_a_row_of_a_result_file_is_read(shape):
    service = BatchService(AnnotatorSpec("m", "batch", "m", base_urls=("http://localhost:1/v1",)), 0.0)
    outcome = service.outcome("k", shape["row"])
    if "kind" in shape:
        assert isinstance(outcome, Failure)
        assert outcome.kind == shape["kind"]
        assert shape["says"] in outcome.message
    else:
        row = {"reply": outcome.text, "finish_reason": outcome.finish_reason, "raw": outcome.raw}
        answer = answer_of(json.loads(json.dumps(row)))
        assert (answer.text, answer.finish) == (shape["text"], "done")


@pytest.mark.parametrize("shape", BODIES, ids=lambda shape: shape["name"])
def test_a_body_of_an_error_is_read(shape):
    async def ask(origin):
        spec = AnnotatorSpec("m", "server", "m", base_urls=(f"{origin}/v1",))
        async with Transport(spec, 10.0) as transport:
            return await transport.post(f"{origin}/v1/chat/completions", {})

    with Fixed(shape) as server, pytest.raises(CallError) as caught:
        asyncio.run(ask(server.origin))
    error = caught.value
    kind = wrong_with_text(error)
    assert (kind or error.kind) == shape["kind"]
    assert shape["says"] in str(error)
    assert (is_retryable(error) and not kind) == shape["again"]
