"""What a labelling run does with the engine for batches, and its service."""

import asyncio
import json
from contextlib import aclosing, contextmanager
from inspect import signature

from fake_batch import FakeBatch

from angle_data.annotators.base import Reply
from angle_data.annotators.batch import Limits, OpenAIBatch
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AnnotatorError, StoppedError

KEY = "sk-test-0123456789"
SOON = {"retry-after-ms": "5"}


def batch_spec(url, run, **changes):
    return AnnotatorSpec("tiny", "batch", "tiny", base_urls=(url,), run=run, **changes)


class Client:
    """What a labelling run does with the engine: keeps replies, and asks only for those it lacks."""

    def __init__(self, server, run, wait_s=0.0, *, key_env=None, max_bytes=10**9, **options):
        self.replies, self.failures = {}, {}
        options = {"wait_s": wait_s, **options}
        self.spec = batch_spec(server.url, run, api_key_env=key_env, engine_options=options)
        self.limits = Limits(max_bytes=max_bytes, poll_s=0.001, retry_s=0.01, unsure_s=0.0)

    def run(self, wanted):
        """One run of the command; returns the error that ended it, if one did."""
        self.failures = {}

        async def collect():
            asked = (request for request in wanted if request.key not in self.replies)
            async with aclosing(OpenAIBatch(self.spec, self.limits).stream(asked)) as stream:
                async for outcome in stream:
                    (self.replies if isinstance(outcome, Reply) else self.failures)[outcome.key] = outcome

        try:
            asyncio.run(collect())
        except (AnnotatorError, StoppedError) as ended:
            return ended

    def until_done(self, wanted, runs=60):
        wanted = list(wanted)
        for _ in range(runs):
            if not isinstance(ended := self.run(wanted), StoppedError):
                return ended
        raise AssertionError(f"not done: {ended}")

    def texts(self):
        return {key: reply.text for key, reply in self.replies.items()}


@contextmanager
def connected(run, **options):
    """A server and a client of it, each with those of the options that it knows."""
    known = signature(FakeBatch).parameters
    with FakeBatch(**{name: value for name, value in options.items() if name in known}) as server:
        yield server, Client(server, run, **{k: v for k, v in options.items() if k not in known})


def answers(count, first=0):
    return {f"{n:032x}": f"answer to prompt {n}" for n in range(first, first + count)}


def events(run):
    return [json.loads(line) for line in (run / "batches.jsonl").read_text().splitlines()]
