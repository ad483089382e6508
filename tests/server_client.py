"""Asks an annotator of a server and collects what comes."""

import asyncio
from contextlib import aclosing

from angle_data.annotators.base import Reply
from angle_data.annotators.endpoints import Patience
from angle_data.annotators.server import OpenAIServer
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AngleError

KEY = "sk-test-0123456789"
SCHEMA = {"type": "object", "properties": {"sentences": {"type": "array"}}}
QUICK = Patience(retry_s=0.01)


def server_spec(url, **changes):
    settings = {"base_urls": (url,), "concurrency": 4} | changes
    return AnnotatorSpec("tiny", "server", "tiny", **settings)


def ask(spec, wanted, patience=QUICK, seen=lambda count: None):
    """Every outcome, and the error that ended the stream, if one did; `seen` gets the count after each."""
    outcomes, ended = [], None

    async def collect():
        async with aclosing(OpenAIServer(spec, patience).stream(wanted)) as stream:
            async for outcome in stream:
                outcomes.append(outcome)
                seen(len(outcomes))

    try:
        asyncio.run(collect())
    except AngleError as error:
        ended = error
    return outcomes, ended


def all_replied(outcomes, ended, count):
    assert (ended, [type(outcome) for outcome in outcomes]) == (None, [Reply] * count)


def short_patience(total_s):
    return Patience(retry_s=0.001, first_s=0.01, longest_s=0.02, total_s=total_s)
