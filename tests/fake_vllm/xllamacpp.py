"""The part of xllamacpp that the toolkit uses, without a model: it repeats the prompt and the seed.

Checked against the real one by the tests that run both. Calls are written to $FAKE_VLLM_CALLS.
"""

from types import SimpleNamespace

from vllm import obey, record


class CommonParams:
    """Takes any parameter."""

    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = (SimpleNamespace() for _ in range(3))


class Server:
    """A model that repeats the prompt and the seed."""

    def __init__(self, params):
        print("a banner on stdout")

    def handle_chat_completions(self, body):
        """Answer a chat request, as the real one does."""
        prompt = body["messages"][-1]["content"]
        record(chat=[prompt])
        obey(prompt)
        text = f"{prompt} #{body.get('seed')}"
        prompt_tokens, completion_tokens = len(prompt.split()), len(text.split())
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        usage["total_tokens"] = prompt_tokens + completion_tokens
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}


def json_schema_to_grammar(schema):
    """Return what holds a reply to a schema."""
    return str(schema)
