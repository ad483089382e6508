"""One reading of what a service answers, whoever was asked: from its JSON, as decoded, to an `Answer`.

Pure, and no shape makes it raise. The journal keeps the message itself, so that a better reader recovers
later what this one misses: `reply_of` gives what a row holds, `raw_of` the message back. An ordinary
message needs no field beyond those that a row always had.

The shapes of services and model families, each with its expected outcome: tests/answers/shapes.jsonl.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

from angle_data.annotators.base import Failure, Reply
from angle_data.annotators.messages import Said, body_of, choice_of, ending_of, said_in
from angle_data.annotators.thinking import answer_in_thoughts, split_thinking
from angle_data.http import BadAnswer, CallError, NoReply, ServiceError, is_retryable

_NO_COMPLETION = "the answer is not a chat completion"
Finish = Literal["done", "cut", "blocked", "failed", "unknown"]
"""How a reply ended: by itself, at a limit, by a filter, by a fault of the service, or nobody says how."""

_DONE = """stop eos eostoken endturn endofturn endoftext stopsequence stopstr stoptoken toolcall toolcalls
    tooluse functioncall complete completed end ended finish finished done normal success"""
_BLOCKED = """contentfilter contentfiltered contentfiltering contentpolicy contentpolicyviolation
    filter filtered safety recitation blocklist blocked prohibitedcontent prohibited spii imagesafety refusal
    refused sensitive censored moderation moderated guardrail guardrailintervened modelarmor language
    errortoxic toxic"""
_FAILED = """error abort aborted cancel cancelled canceled interrupted failed failure timeout networkerror
    servererror internalerror insufficientsystemresource insufficientsystemresources overloaded unavailable
    malformedfunctioncall malformedresponse malformedtoolcall unexpectedtoolcall invalidtoolcall
    toomanytoolcalls enginedisconnected evicted preempted"""
_FINISHES: dict[str, Finish] = {
    **dict.fromkeys(_DONE.split(), "done"),
    **dict.fromkeys(_BLOCKED.split(), "blocked"),
    **dict.fromkeys(_FAILED.split(), "failed"),
    **dict.fromkeys(("", "null", "none", "unspecified", "unknown"), "unknown"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one message says.

    `text` is the answer itself, without `thinking` and without a `refusal`, the words in which a service
    declines beside the text. `usage` are tokens by OpenAI's names, as far as they can be believed.
    `error` is set where there is nothing to read: what a service reports in place of a reply, as the
    HTTP error that it names.
    """

    text: str = ""
    finish: Finish = "unknown"
    thinking: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    refusal: str = ""
    error: CallError | None = None


class Unfinished(NoReply):
    """The service gave up in the middle of a reply, for a reason of its own."""

    kind = "failed"


def read_answer(raw: Any, source: str = "") -> Answer:
    """Read a chat completion, or what came in its place; see `Answer`.

    `source` is the text that was asked about: a mark of thoughts that it holds may be echoed in an answer.
    """
    if not isinstance(raw, dict):
        return Answer(error=BadAnswer(f"{_NO_COMPLETION}; does --base-url end in /v1?"))
    return _read(raw, choice_of(raw), source)


def _read(raw: Mapping[str, Any], choice: Mapping[str, Any] | None, source: str) -> Answer:
    said = Said() if choice is None else said_in(choice)
    has_words = any(map(str.strip, chain(said.texts, said.others, said.arguments)))
    error = reported_error(choice, in_choice=True, has_words=has_words)
    error = error or reported_error(raw, in_choice=choice is not None, has_words=has_words)
    content = said.content().replace("\0", "").lstrip("\ufeff\u200b\u2060")
    answer, thinking = split_thinking(content, source)
    refusal = "".join(said.refusals)
    if not answer.strip() and not refusal:
        answer = "\n".join(said.arguments) or answer_in_thoughts("\n".join(said.thoughts), source) or answer
    usage = read_usage(raw, has_text=bool(answer.strip()))
    thinking = "\n".join(filter(None, (*said.thoughts, thinking)))
    finish = "unknown" if choice is None else _finish(choice)
    if error is None and choice is None:
        error = _missing(raw)
    elif error is None and finish == "failed":
        error = Unfinished(f"the service ended the reply early ({choice and ending_of(choice)})")
    if error is not None:
        error.usage = usage
    return Answer(answer, finish, thinking, usage, refusal, error)


def reply_of(key: str, raw: Any, seconds: float) -> Reply:
    """Return the reply that a message holds, as it is journalled; raises the error of one that holds none.

    Its `text` is the content where that is text, `raw` what else there is: the choice without its usual
    fields. An error takes with it (`said`) what there is.
    """
    choice = choice_of(raw) if isinstance(raw, dict) else None
    answer = read_answer(raw) if choice is None else _read(raw, choice, "")
    if answer.error is not None and choice is None:
        raise answer.error
    reply = _held(key, raw, choice or {}, answer.usage, seconds)
    if answer.error is None:
        return reply
    if reply.text.strip() or "message" in reply.raw:
        said = {"reply": reply.text, "finish_reason": reply.finish_reason, "raw": reply.raw}
        answer.error.said = {name: value for name, value in said.items() if value}
    raise answer.error


def failure_of(key: str, error: CallError, message: str, kind: str | None = None) -> Failure:
    """Return the failure of a request, of a `kind` or that which the error tells.

    `message` is what the error says, on one line without secrets.
    """
    kind = kind or wrong_with_text(error) or error.kind
    return Failure(key, kind, message, dict(error.usage), dict(error.said))


def _held(
    key: str, raw: Mapping[str, Any], choice: Mapping[str, Any], usage: dict[str, int], seconds: float
) -> Reply:
    """Return a message as it is journalled; `usage` are the tokens that were read."""
    message = choice["message"] if isinstance(choice.get("message"), dict) else {}
    content = message.get("content")
    inner = {name: value for name, value in message.items() if name != "role"}
    text = inner.pop("content") if isinstance(content, str) else ""
    rest = {
        name: value for name, value in choice.items() if name not in ("message", "index", "finish_reason")
    }
    given = body_of(raw).get("usage")
    given = given if isinstance(given, dict) else {}
    for name in _COUNTS:
        if name in given and usage.get(name) != given[name]:
            rest["usage"] = given
    rest["message"] = _filled(inner)
    ended = choice.get("finish_reason")
    if not isinstance(ended, str | None):
        rest["finish_reason"] = ended
    return Reply(key, text, ended if isinstance(ended, str) else None, usage, seconds, _filled(rest))


def raw_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of a journal row, as `read_answer` takes it."""
    rest = dict(row.get("raw") or {})
    message = ({"content": row["reply"]} if row["reply"] else {}) | rest.pop("message", {})
    usage = rest.pop("usage", row.get("usage"))
    return {
        "choices": [{"finish_reason": row.get("finish_reason"), **rest, "message": message}],
        "usage": usage,
    }


def answer_of(row: Mapping[str, Any]) -> Answer:
    """Read the message of a journal row."""
    source = row.get("source")
    return read_answer(raw_of(row), source if isinstance(source, str) else "")


def words_of(row: Mapping[str, Any]) -> str:
    """Return what a journal row holds of a message, to be shown."""
    return row["reply"] or (json.dumps(row["raw"], ensure_ascii=False) if row.get("raw") else "")


def _filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, False)}


def _finish(choice: Mapping[str, Any]) -> Finish:
    """Return how a reply ended; a word that is not known counts as cut, which costs half a sentence at most.

    Gateways give their own word, and the word of the service behind them, which may know more.
    """
    finish = _class_of(ending_of(choice), "cut")
    native = _class_of(str(choice.get("native_finish_reason") or ""), finish)
    return native if finish in ("done", "unknown") and native not in ("done", "unknown") else finish


_CUT_WORDS = re.compile("length|maxtokens|maxoutput|limit|exceed|truncat|incomplete")


@lru_cache(maxsize=64)  # services have few words
def _class_of(word: str, otherwise: Finish) -> Finish:
    bare = re.sub(r"[^a-z]", "", word[:80].casefold()).removeprefix("finishreason")
    return _FINISHES.get(bare) or ("cut" if _CUT_WORDS.search(bare) else otherwise)


# --- tokens -------------------------------------------------------------------------------------------

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
# The names of Gemini, Bedrock and Ollama.
_OTHER_NAMES = {
    "prompt_tokens": ("promptTokenCount", "inputTokens", "promptTokens", "prompt_eval_count"),
    "completion_tokens": ("candidatesTokenCount", "outputTokens", "completionTokens", "eval_count"),
    "total_tokens": ("totalTokenCount", "totalTokens"),
}
_AS_OPENAI = {other: name for name, others in _OTHER_NAMES.items() for other in others}


def _given_usage(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts that an answer tells, by OpenAI's names where others mean the same."""
    for name in ("usage", "usageMetadata"):
        if isinstance(given := body.get(name), dict):
            if given.keys().isdisjoint(_AS_OPENAI):
                return given
            return {_AS_OPENAI.get(str(told), str(told)): value for told, value in given.items()}
    return {ours: body[other] for other, ours in _AS_OPENAI.items() if other in body}


def read_usage(raw: Mapping[str, Any], *, has_text: bool) -> dict[str, int]:
    """Return the tokens of an answer under OpenAI's names; what cannot be believed is left out.

    Some services count the tokens of thoughts in the total alone (Gemini) or beside `completion_tokens`
    (xAI), so the greatest of the ways to count is taken. A reply with text has not taken 0 tokens.
    """
    given = _given_usage(body_of(raw))
    usage = {name: count for name, value in given.items() if (count := _count(value)) is not None}
    prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if prompt is None and "input_tokens" in usage:  # Anthropic's, which count what is cached apart
        cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
        prompt = usage["input_tokens"] + sum(usage.get(name, 0) for name in cached)
    output = usage.get("output_tokens") if output is None else output
    details = given.get("completion_tokens_details")
    thought = (_count(details.get("reasoning_tokens")) if isinstance(details, dict) else None) or 0
    total = usage.get("total_tokens")
    if output is not None and thought > output:
        output += thought
    if total and prompt is not None and total - prompt > (output or 0):
        output = total - prompt
    if not output and has_text:
        output = None
    for name, count in zip(_COUNTS, (prompt or None, output, total or None), strict=True):
        usage.pop(name, None)
        if count is not None:
            usage[name] = count
    return usage


def _count(value: Any) -> int | None:
    if type(value) is int and 0 <= value < _MOST_TOKENS:  # as nearly all are
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST_TOKENS:
        return None
    return int(value)


_MOST_TOKENS = 1e9

# --- errors -------------------------------------------------------------------------------------------

_STATUS_FIELDS = ("code", "status", "status_code", "statusCode", "http_status", "error_code")
_MESSAGES = ("message", "msg", "detail", "error_description", "status_msg", "error_msg", "title", "reason")
# What names and, where there are none, the words of a message say of the HTTP status.
_NO_MONEY = re.compile(
    r"insufficient.?(?:balance|credit|fund)|payment.?required|arrears|out.of.credits", re.IGNORECASE
)
_STATUS_OF = (
    (429, r"rate.?limit|too.?many.?requests|insufficient.?quota|resource.?exhausted|throttl|quota.?exceeded"),
    (401, r"unauthori[sz]ed|authentication|invalid.?api.?key|incorrect api key|invalid.?token"),
    (403, r"forbidden|permission.?denied|access.?denied"),
    (404, r"not.?found|does not exist|unknown.?model"),
    (
        400,
        r"invalid.?(?:request|argument|param)|bad.?request|context.?length|content.?filter|content.?policy",
    ),
    (503, r"overloaded|unavailable|try again|busy|capacity"),
    (504, r"time.?out|timed.?out|deadline"),
    (500, r"internal|server.?error|api.?error|upstream|provider.?error"),
)
_STATUS_WORDS = [(status, re.compile(words, re.IGNORECASE)) for status, words in _STATUS_OF]
_SEARCHED = 500  # characters of a message that are searched for words
# What gateways write in place of an error where there is none.
_SUCCESS = frozenset({"", "0", "200", "none", "null", "success", "ok"})


def reported_error(body: Any, *, in_choice: bool, has_words: bool = False) -> CallError | None:
    """Return the error that a body with status 200 reports, as the HTTP status that it names; else None.

    Understood are `error` and `errors` (an object, a list or a text) and, unless `in_choice` or beside
    one, `detail`, `message` with a `code`, and MiniMax's `base_resp`. Where the choice `has_words`, a report
    of success is no error.
    """
    if not isinstance(body, dict):
        return None
    inner = body.get("error") or body.get("errors") or (not in_choice and (body.get("base_resp") or body))
    inner = inner[0] if isinstance(inner, list) and inner else inner
    if not inner or inner is True:
        return None
    message, codes = error_words(inner)
    if not message and not (codes - {"0"}):
        return None
    if has_words and _is_success(message, codes):
        return None
    status = _status_of(inner, message, codes) or _status_of(body, "", frozenset())
    said = message or f"the service reports an error ({', '.join(sorted(codes))})"
    return BadAnswer(said) if status is None else service_error(status, said, codes, {})


def _is_success(message: str, codes: frozenset[str]) -> bool:
    """Return whether the codes, or the message where there are none, say that all went well."""
    return {code.casefold() for code in codes or {message.strip()}} <= _SUCCESS


def error_words(inner: Any, depth: int = 0) -> tuple[str, frozenset[str]]:
    """Return the message of an error and its short names, as OpenAI, vLLM, GLM and FastAPI write them.

    Azure has the name of its filter in an `innererror`, which LiteLLM wraps once more; OpenRouter may wrap a
    whole error in another.
    """
    if isinstance(inner, str):
        return inner.strip(), frozenset()
    if not isinstance(inner, dict):
        return "", frozenset()
    codes = {
        str(inner[name]) for name in ("code", "type", "status_code") if isinstance(inner.get(name), str | int)
    }
    holders = (inner, inner.get("provider_specific_fields"))
    within = [holder.get("innererror") for holder in holders if isinstance(holder, dict)]
    codes |= {str(one["code"]) for one in within if isinstance(one, dict) and "code" in one}
    for name in _MESSAGES:
        if value := inner.get(name):
            # FastAPI gives a list of objects, each with a `msg`.
            parts = value if isinstance(value, list) else [value]
            return "; ".join(
                part if isinstance(part, str) else error_words(part)[0] for part in parts
            ), frozenset(codes)
    said, more = error_words(inner["error"], depth + 1) if "error" in inner and depth < 3 else ("", codes)
    return said, frozenset(codes | more)


def _status_of(inner: Any, message: str, codes: frozenset[str]) -> int | None:
    for name in _STATUS_FIELDS if isinstance(inner, dict) else ():
        digits = str(inner.get(name, ""))
        if digits.isascii() and digits.isdecimal() and len(digits) == 3 and "400" <= digits < "600":
            return int(digits)
    names = " ".join(sorted(codes))
    if _NO_MONEY.search(f"{names} {message[:_SEARCHED]}"):
        return 402
    for text in filter(None, (names, message[:_SEARCHED])):
        for status, words in _STATUS_WORDS:
            if words.search(text):
                return status
    return None


def _missing(raw: Mapping[str, Any]) -> CallError:
    """Return the error for an answer without anything to read."""
    if "choices" not in raw:
        return BadAnswer(f"{_NO_COMPLETION}: it has no choices; does --base-url end in /v1?")
    if raw["choices"]:
        return BadAnswer(f"{_NO_COMPLETION}: its choices cannot be read; does --base-url end in /v1?")
    return NoReply("the answer holds no choices; a safety filter may have stopped it")


# OpenAI's and Azure's names, Alibaba's and the GLM cloud's, for a text that a filter stops.
_BLOCKED_CODES = frozenset(
    {
        "content_filter", "content_policy_violation", "moderation_blocked", "data_inspection_failed", "1301",
        "ResponsibleAIPolicyViolation",
    }
)  # fmt: skip
# Where a model gave up in the middle of its JSON: Groq's name, with status 400.
_GAVE_UP = frozenset({"json_validate_failed"})

# OpenAI's name, llama.cpp's and the GLM cloud's, and the words of these, vLLM, SGLang, Mistral, Bedrock and
# Gemini. A setting can be "too long", too, and would be for each text.
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error", "1261"})
_SAYS_TOO_LONG = re.compile(
    r"(?i)context (?:length|size|window)|longer than the maximum model|maximum number of tokens allowed|"
    r"\b(?:prompt|input|text|messages)\b(?:\[\d+\](?:\.content)?)?[ :'\w]{0,80}? (?:too long|longer than)"
)
_MOST_SEARCHED = 20_000  # characters of a message


def service_error(
    status: int, said: str, codes: frozenset[str], headers: Mapping[str, str], param: str = ""
) -> CallError:
    """Return the error that an answer with an error status reports; see `ServiceError`.

    Where the model gave up, not the service refused, it is `Unfinished`, and worth another attempt.
    """
    if not _GAVE_UP.isdisjoint(codes):
        return Unfinished(said)
    return ServiceError(status, said, codes, headers, param)


def wrong_with_text(error: CallError) -> str | None:
    """Return `blocked` or `too_long` if a filter or the model's length stopped this text; others may pass.

    A server error may say of its own memory that a context is full. It is about the text only where it has
    a code of its own for that.
    """
    if not _BLOCKED_CODES.isdisjoint(error.codes):
        return "blocked"
    if not _TOO_LONG.isdisjoint(error.codes) and error.status_code != 429:
        return "too_long"
    told = _SAYS_TOO_LONG.search(str(error)[:_MOST_SEARCHED])
    return "too_long" if told and not is_retryable(error) else None
