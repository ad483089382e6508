"""`probe`: two cheap questions before money is spent, and one line each of what they show.

The first asks for JSON, the second gives a long prompt and asks for the word at its start. What concerns the
form of requests goes to RUN/probe.json with --out RUN: llm-label and llm-score begin with it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from angle_data.annotators.answers import Answer, answer_of
from angle_data.annotators.base import Annotator, ChatRequest, Failure, Reply, Sampling, request_key
from angle_data.annotators.choice import choose_annotator, load_annotator
from angle_data.annotators.models import price_of
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import PROBE_FILE
from angle_data.errors import AnnotatorError, InputError
from angle_data.jsonl import write_json
from angle_data.labelling.asking.budget import guess_tokens, usd_of
from angle_data.labelling.asking.journal import Tokens
from angle_data.labelling.config import ProbeConfig
from angle_data.labelling.prompts import object_schema

log = logging.getLogger("angle.labelling")

_TEXT = "A node ran out of memory."
_ASK_JSON = (
    f'Rewrite this text in other words: "{_TEXT}" Reply with JSON only: {{"sentence": "your sentence"}}'
)
# Words that are one token each with every usual tokenizer, so the prompt has no fewer tokens than words: more
# than 4,096, the longest context that servers are known to cut to without a word.
_WORD = "marigold"
_FILLER = "the dog ran to the old house and the man saw it from the road " * 335
_WORDS = len(_FILLER.split())
_ASK_LONG = (
    f"Remember this word: {_WORD}.\n{_FILLER}\nWhich word were you to remember? Reply with that word only."
)
_SHORT_REPLY = 64
_CUT_BELOW = 0.85  # of the words


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What was found: `lines` for people, by what they are about; `found` for programs."""

    lines: dict[str, str]
    found: dict[str, Any]

    def __str__(self) -> str:
        """Show it to people, one line each."""
        width = max(map(len, self.lines))
        return "\n".join(f"{name:<{width}}  {said}" for name, said in self.lines.items())


def probe(config: ProbeConfig) -> ProbeResult:
    """Ask two questions, one after the other, and say what the answers show.

    Raises:
        InputError: The options cannot be used.
        AnnotatorError: There is no answer; of a wrong key a `CredentialsError`.
        StoppedError: The service asks to wait, or the account is empty.
    """
    spec = _who(config)
    first_question = _question(spec, _ASK_JSON, spec.sampling(object_schema(sentence={"type": "string"})))
    short = replace(spec.sampling(), max_tokens=min(spec.max_tokens, _SHORT_REPLY))
    long = _question(spec, _ASK_LONG, short)
    expected = guess_tokens(first_question, 100) + Tokens(_WORDS, short.max_tokens)
    price = price_of(spec)
    usd = usd_of(price, expected)
    cost = "no price is known" if usd is None else f"about {usd:.4f} USD"
    cost = cost if spec.paid else "nothing to pay"
    log.info("two questions to %s: about %s tokens, %s", spec.checkpoint, f"{expected.total:,.0f}", cost)
    annotator = load_annotator(spec)
    first, second = asyncio.run(_ask(annotator, first_question, long))
    if isinstance(first, Failure):
        raise AnnotatorError(f"{_where(spec)} gives no answer: {first.kind}: {first.message}")
    known = annotator.found()
    lines: dict[str, str] = {
        "address": f"{_where(spec)} answers as {spec.checkpoint} ({first.seconds:.1f} s)"
    }
    found: dict[str, Any] = {"checkpoint": spec.checkpoint, "address": spec.addresses[0]}
    answer = _read(first)
    for name, said, value in (
        ("account", "the key is accepted" if spec.api_key_env else "no key is used", bool(spec.api_key_env)),
        ("JSON", *_json_form(spec, known, answer)),
        ("thinking", *_thinking(first, answer, known)),
        ("tokens", *_counting(first, known)),
        ("long prompts", *_long_prompts(second)),
        ("price", *_price(spec)),
        ("limits", *_limits(known)),
    ):
        lines[name], found[name.replace(" ", "_").lower()] = said, value
    form = {name: known[name] for name in ("form", "max_tokens_field", "without") if name in known}
    result = ProbeResult(lines, found | form)
    if config.out is not None:
        config.out.mkdir(parents=True, exist_ok=True)
        write_json(config.out / PROBE_FILE, result.found)
    return result


def _who(config: ProbeConfig) -> AnnotatorSpec:
    spec = choose_annotator(config.engine)
    if spec.engine == "recorded":
        raise InputError("recorded replies cost nothing and need no probe; leave out --replies")
    if len(spec.base_urls) > 1:
        log.warning("of %d addresses only the first is asked", len(spec.base_urls))
    if spec.engine == "batch":
        log.info("a batch takes a day: the questions go to the same service directly, at its full price")
    engine = "server" if spec.engine == "batch" else spec.engine
    options = spec.engine_options if engine == spec.engine else {}
    return replace(spec, engine=engine, base_urls=spec.base_urls[:1], concurrency=1, engine_options=options)


def _question(spec: AnnotatorSpec, content: str, sampling: Sampling) -> ChatRequest:
    messages = ({"role": "user", "content": content},)
    key = request_key(spec.identity, messages, sampling)
    return ChatRequest(key, "probe", _TEXT, "synonym", messages, spec.checkpoint, sampling)


async def _ask(annotator: Annotator, *questions: ChatRequest) -> list[Reply | Failure]:
    """Return the outcomes in the order of the questions; the second is not asked where the first fails."""
    outcomes: list[Reply | Failure] = []

    def in_turn() -> Iterator[ChatRequest]:
        for question in questions:
            if not any(isinstance(outcome, Failure) for outcome in outcomes):
                yield question

    async for outcome in annotator.stream(in_turn()):
        outcomes.append(outcome)
    return [*outcomes, *(Failure("", "not_asked", "not asked") for _ in questions)][: len(questions)]


def _where(spec: AnnotatorSpec) -> str:
    return f"engine {spec.engine}" if spec.loads else spec.addresses[0]


def _read(reply: Reply) -> Answer:
    row = {"reply": reply.text, "finish_reason": reply.finish_reason, "usage": reply.usage, "raw": reply.raw}
    return answer_of(row)


_FORMS = {
    "bounded_schema": "json_schema, with lengths",
    "json_schema": "json_schema",
    "json_object": "json_object, without a schema",
    "text": "none: the prompt alone asks for it",
}


def _json_form(spec: AnnotatorSpec, known: Mapping[str, Any], answer: Answer) -> tuple[str, str]:
    """Return which form of JSON is taken, and whether the answer kept to it."""
    form = str(known.get("form", "json_schema"))
    how = _FORMS[form] if not spec.loads else "a grammar of the engine, from the schema"
    try:
        fits = isinstance(json.loads(answer.text)["sentence"], str)
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    cut = ", which was cut" if answer.finish == "cut" else ""
    return f"{how}; the reply{cut} {'keeps' if fits else 'does not keep'} to it", form


_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text", "thoughts", "reasoning_details")


def _thinking(reply: Reply, answer: Answer, known: Mapping[str, Any]) -> tuple[str, str]:
    """Return how the model marks what it thinks."""
    message = reply.raw.get("message", {})
    field = next((name for name in _FIELDS if message.get(name)), None)
    if field is not None:
        return f"in the field {field} ({len(answer.thinking):,} characters)", field
    if answer.thinking:
        way = "parts" if isinstance(message.get("content"), list) else "marks"
        return f"in {way} of the content ({len(answer.thinking):,} characters), which are taken off", way
    if hidden := _reasoning(known.get("usage") or {}):
        return f"hidden: {hidden:,} tokens that are not shown", "hidden"
    return "none seen", "none"


def _reasoning(usage: Mapping[str, Any]) -> int:
    details = usage.get("completion_tokens_details")
    count = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return count if isinstance(count, int) else 0


def _counting(reply: Reply, known: Mapping[str, Any]) -> tuple[str, str]:
    """Return how tokens are counted."""
    usage = known.get("usage") or reply.raw.get("usage") or reply.usage
    prompt, output, total = (usage.get(f"{name}_tokens") for name in ("prompt", "completion", "total"))
    if prompt is None and "input_tokens" in usage:
        return "input_tokens and output_tokens", "input_output"
    if not prompt or output is None:
        return "not counted: they are estimated by length, for limits and costs", "none"
    said = f"counted (the last question: {prompt:,} and {output:,})"
    thought = _reasoning(usage)
    if thought > output or (total and total > prompt + output):
        return f"{said}; thoughts are beside completion_tokens, and are added", "outside"
    if thought:
        return f"{said}; thoughts are within completion_tokens", "inside"
    return said, "plain"


def _long_prompts(outcome: Reply | Failure) -> tuple[str, str]:
    """Return whether a long prompt is read as a whole, refused, or cut without a word."""
    if isinstance(outcome, Failure):
        longer = f"one of about {_WORDS:,} tokens is refused, and said so ({outcome.message})"
        return (
            (longer, "refused") if outcome.kind == "too_long" else (f"unknown: {outcome.message}", "unknown")
        )
    count = outcome.usage.get("prompt_tokens")
    is_back = _WORD in _read(outcome).text.casefold()
    if count is not None and count < _CUT_BELOW * _WORDS:
        return f"CUT without a word: {count:,} of about {_WORDS:,} tokens were read; raise its context", "cut"
    if count is not None:
        word = "came back" if is_back else "did not come back, as with weak models"
        return f"read as a whole ({count:,} tokens; the word at the start {word})", "whole"
    if is_back:
        return f"read as a whole (about {_WORDS:,} tokens; the word at the start came back)", "whole"
    return "perhaps cut: no tokens are counted, and the word at the start did not come back", "unknown"


def _price(spec: AnnotatorSpec) -> tuple[str, list[float] | None]:
    price = price_of(spec)
    if price is not None:
        return f"{price.input:g} and {price.output:g} USD per million tokens", [price.input, price.output]
    return ("not known: give --price IN,OUT" if spec.paid else "nothing to pay"), None


def _limits(known: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    limits: dict[str, str] = known.get("limits", {})
    told = [f"{count} {name}" for name, count in limits.items()]
    return ", ".join(told) if told else "none told; they are learnt from refusals", limits
