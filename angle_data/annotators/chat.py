"""The chat completions protocol: what goes out, what comes back, and whose key signs it. Sends nothing.

Bodies and answers follow the OpenAI API reference, https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from angle_data.annotators.base import ChatRequest, Reply
from angle_data.annotators.spec import AnnotatorSpec, Dialect
from angle_data.errors import CredentialsError
from angle_data.http import BadAnswer

Form = Literal["json_schema", "json_object", "text"]
"""How a reply is held to JSON: to the schema, to any object, not at all (the prompt asks for it anyway)."""


def api_key(spec: AnnotatorSpec) -> str:
    """Return the API key from the variable that `spec` names.

    Raises:
        CredentialsError: The variable is not set, or holds what cannot be a key.
    """
    if spec.api_key_env is None:
        return "EMPTY"  # what `vllm serve` without --api-key accepts; services want some key
    key = os.environ.get(spec.api_key_env, "").strip()
    if not key:
        raise CredentialsError(
            f"no API key: set the environment variable {spec.api_key_env} or name another (--api-key-env)"
        )
    if not (key.isascii() and key.isprintable()):
        raise CredentialsError(
            f"the value of {spec.api_key_env} is no API key: it holds characters no key has"
        )
    return key


def credentials_message(spec: AnnotatorSpec, address: str, status: int, said: str) -> str:
    """Return one line on a 401 or 403; `said` are the service's words, without the key.

    A 401 is about the key. A 403 often is not: it may be about the country, the project or the model.
    """
    name = spec.api_key_env
    if status == 403:
        detail = "" if said == "HTTP 403" else f": {said}"
        fix = (
            "if it wants an API key, name its variable with --api-key-env"
            if name is None
            else f"check the key in {name} and the rights of its project"
        )
        return f"{address} refuses access (HTTP 403{detail}); {fix}"
    if name is None:
        return f"{address} wants an API key (HTTP {status}); name its variable with --api-key-env"
    return f"{address} rejects the API key in {name} (HTTP {status}); set {name} to a valid key"


def first_form(dialect: Dialect) -> Form:
    """Return the strictest form that a dialect has."""
    return "json_object" if dialect == "glm" else "json_schema"


def next_form(form: Form) -> Form:
    """Return the form to try when a server does not know `form`."""
    return "json_object" if form == "json_schema" else "text"


def request_body(
    request: ChatRequest, dialect: Dialect = "openai", form: Form = "json_schema"
) -> dict[str, Any]:
    """Return the JSON body that asks `request`.

    The GLM cloud takes no seed, and its models think aloud unless told not to, see
    https://docs.bigmodel.cn/api-reference.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": request.model,
        "messages": list(request.messages),
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
    }
    if dialect == "glm":
        body["thinking"] = {"type": "disabled"}
    elif sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.schema is not None and form != "text":
        body["response_format"] = {"type": form}
        if form == "json_schema":
            named = {"name": "sentences", "schema": sampling.schema, "strict": True}
            body["response_format"]["json_schema"] = named
    return body


def read_reply(key: str, answer: Any, seconds: float) -> Reply:
    """Read a chat completion, as decoded from JSON; see the API reference, "The chat completion object".

    Raises:
        BadAnswer: It is none.
    """
    if not isinstance(answer, dict):
        raise BadAnswer("the answer is no chat completion; does --base-url end in /v1?")
    try:
        choice = answer["choices"][0]
        text = choice["message"].get("content") or choice["message"].get("refusal") or ""
        finish_reason, usage = choice.get("finish_reason"), answer.get("usage") or {}
        tokens = {name: count for name, count in usage.items() if isinstance(count, int)}
    except (TypeError, AttributeError, LookupError) as error:
        raise BadAnswer(f"the answer is no chat completion ({type(error).__name__}: {error})") from error
    return Reply(key, str(text), finish_reason, tokens, seconds)
