"""What a message says, sorted by kinds: text, thoughts, refusals, arguments of tools.

A service may wrap its message as another API does (OpenAI's Responses, Anthropic, Gemini, Bedrock, Ollama,
Cloudflare), or send it in the pieces of a stream. Pure, and no shape makes it raise.

The shapes, each with its expected outcome: tests/answers/shapes.jsonl.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text", "thoughts")
_THOUGHT_PARTS = ("reasoning_details", "thinking_blocks")  # where none of the fields is there
_USUAL = frozenset({"role", "content", "annotations", "audio"})  # what holds no other words
_MOST_WITHIN = 5  # parts in parts
# The kinds of parts: by the name of their type, and where they have none, by the names of their fields.
_IS_THOUGHT = re.compile("think|thought|reason|summary|analysis|reflection|scratchpad")
_IS_CALL = re.compile("tool|function")
_IS_TEXT = re.compile("text|^(?:answer|content|final|markdown|message|response|string)$")


@dataclass(slots=True)
class Said:
    """The strings of a message by what they are.

    `arguments` are those of calls of tools. `others` are the texts of parts of a kind that is not known: the
    answer where there is no other, else citations and the like.
    """

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def has_answer(self) -> bool:
        """Whether there are words apart from thoughts and a refusal."""
        return any(map(str.strip, chain(self.texts, self.others, self.arguments)))

    def has_words(self) -> bool:
        """Whether there are words apart from a refusal."""
        return self.has_answer() or any(map(str.strip, self.thoughts))

    def content(self) -> str:
        """Return the text, thoughts in its own marks included."""
        text = "".join(self.texts)
        return text if text.strip() else text + "".join(self.others)


# --- where the message is -----------------------------------------------------------------------------


def body_of(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a gateway has wrapped in a `result` (Cloudflare); else `raw` itself."""
    inner = raw.get("result")
    return inner if isinstance(inner, dict) and "choices" not in raw else raw


def choice_of(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the first choice by its index; where an API knows no choices, its message as one."""
    body = body_of(raw)
    for name in ("choices", "candidates"):  # Gemini's
        listed = body.get(name)
        found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        if len(found) == 1:
            return found[0]
        if found:
            return min(found, key=lambda one: one["index"] if isinstance(one.get("index"), int) else 0)
    message = _message_of(body)
    return message and {"message": message, "finish_reason": ending_of(body) or _status_of(body)}


def _message_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the message of an API that has no choices."""
    output = body.get("output")
    for message in (body.get("message"), output.get("message") if isinstance(output, dict) else None):
        if isinstance(message, dict):  # Ollama, Bedrock's Converse
            return message
    if isinstance(output, list):  # OpenAI's Responses
        return {"content": output}
    content = body.get("content")
    if isinstance(content, list) or (isinstance(content, str) and {"role", "finish_reason"} & body.keys()):
        return {name: value for name, value in body.items() if name in (*_THOUGHT_FIELDS, "content")}
    response = body.get("response")
    is_ours = "done" in body or body.keys() <= {"response", "usage", "tool_calls"}  # Ollama, Cloudflare
    return {"content": response} if isinstance(response, str) and is_ours else None


def ending_of(choice: Mapping[str, Any]) -> str:
    """Return the word for why a reply ended, under any of its names; some wrap it in an object."""
    for name in ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason"):
        value = choice.get(name)
        value = value.get("type") or value.get("reason") if isinstance(value, dict) else value
        if isinstance(value, str) and value:
            return value
    return ""


def _status_of(body: Mapping[str, Any]) -> str:
    """Return the word for how a response ended where it tells its status (OpenAI's Responses)."""
    details, status = body.get("incomplete_details"), body.get("status")
    why = details.get("reason") if isinstance(details, dict) else None
    return str(why or (status if isinstance(status, str) else ""))


def message_of_events(events: Iterable[Any]) -> Any:
    """Return the message that the events of a stream make, or what came in place of one."""
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    for event in events:
        if not isinstance(event, dict):
            continue
        whole |= {name: value for name, value in event.items() if value is not None}
        listed = event.get("choices")
        for part in listed if isinstance(listed, list) else []:
            if isinstance(part, dict) and not part.get("index"):
                choice |= {name: value for name, value in part.items() if value is not None}
                delta = part.get("delta") or part.get("message")
                for name, value in delta.items() if isinstance(delta, dict) else ():
                    if value is not None:  # as the last event may say of a text that has come
                        message[name] = _joined(message.get(name), value) if name != "role" else value
    return {**whole, "choices": [{**choice, "message": message}]} if choice else whole


def _joined(before: Any, value: Any) -> Any:
    """Return two pieces of one field; texts and lists go on, of anything else the last one counts."""
    if isinstance(before, str) and isinstance(value, str):
        return before + value
    if isinstance(before, str | list) and isinstance(value, str | list):
        return [part for piece in (before, value) for part in ([piece] if isinstance(piece, str) else piece)]
    return value


# --- what it says -------------------------------------------------------------------------------------


def said_in(choice: Mapping[str, Any]) -> Said:
    """Return what a choice says, sorted."""
    said = Said()
    message = choice.get("message") or choice.get("delta")
    message = message if isinstance(message, dict) else choice
    content = message.get("content")
    _add_parts(choice.get("text") if content is None else content, said)
    if message.keys() <= _USUAL:  # as nearly all are
        return said
    for name in (*_THOUGHT_FIELDS, *_THOUGHT_PARTS):
        if thought := _words(message.get(name)):
            said.thoughts.append(thought)
            break  # the others repeat it
    if isinstance(refusal := message.get("refusal"), str) and refusal.strip():
        said.refusals.append(refusal)
    calls = message.get("tool_calls")
    _add_calls([*(calls if isinstance(calls, list) else []), message.get("function_call")], said)
    return said


def _add_parts(content: Any, said: Said, depth: int = 0) -> None:
    """Sort the parts of a content by their kinds."""
    if isinstance(content, str):
        said.texts.append(content)
        return
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            said.texts.append(part)
        elif isinstance(part, dict):
            _add_part(part, said, depth)


def _add_part(part: Mapping[str, Any], said: Said, depth: int) -> None:
    text = _words(part.get("text"))
    kind = str(part.get("type") or ("text" if text else " ".join(part))).casefold()
    if isinstance(part.get("content"), list) and kind == "message" and depth < _MOST_WITHIN:
        _add_parts(part["content"], said, depth + 1)
    elif _IS_THOUGHT.search(kind) or part.get("thought") is True:
        said.thoughts += filter(None, [_words(part)])
    elif "refusal" in kind:
        said.refusals += filter(None, [_words(part.get("refusal") or part)])
    elif _IS_CALL.search(kind):
        inner = next((value for value in part.values() if isinstance(value, dict)), {})
        given = (holder.get(name) for holder in (part, inner) for name in ("input", "arguments", "args"))
        _add_arguments(next(filter(None, given), None), said)
    elif _IS_TEXT.search(kind):
        said.texts += filter(None, [text or _words(part)])
    elif part.get("type"):
        said.others += filter(None, [text])
    elif not part.keys() <= {"role", "parts"}:
        said.texts.append(json.dumps(part, ensure_ascii=False))  # the object that was asked for


def _add_calls(calls: Iterable[Any], said: Said) -> None:
    """Add the arguments of calls; some gateways give them in the pieces in which they were streamed.

    A piece has neither a name nor an id of its own, or the id of the call that it goes on with. Where its
    index is that of no call, it belongs to the last one.
    """
    whole: list[Any] = []
    places: dict[Any, int] = {}  # of ids, and of indices
    for call in calls:
        if not isinstance(call, dict):
            continue
        inner = call.get("function") or call.get("custom")  # OpenAI's tools of free text
        function: dict[str, Any] = inner if isinstance(inner, dict) else call
        arguments = function.get("arguments") or function.get("input")
        mark, index = call.get("id"), call.get("index")
        mark = mark if isinstance(mark, str) and mark else None
        index = index if isinstance(index, int) else None
        begins = mark not in places if mark else bool(function.get("name"))
        if begins or not whole:
            whole.append(arguments)
            places |= {name: len(whole) - 1 for name in (mark, index) if name is not None}
        else:
            place = places.get(mark or index, len(whole) - 1)
            whole[place] = arguments if whole[place] is None else _joined(whole[place], arguments)
    for arguments in whole:
        _add_arguments(arguments, said)


def _add_arguments(arguments: Any, said: Said) -> None:
    if isinstance(arguments, dict | list) and arguments:
        arguments = json.dumps(arguments, ensure_ascii=False)
    if isinstance(arguments, str) and arguments.strip():
        said.arguments.append(arguments)


def _words(value: Any, depth: int = 0) -> str:
    """Return the words of thoughts or a text, however deep their parts hold them."""
    if isinstance(value, str) or depth > _MOST_WITHIN:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "".join(_words(part, depth + 1) for part in value)
    names = (
        "text", "thinking", "reasoning", "content", "summary", "value", "refusal", "reasoningContent",
        "reasoningText",
    )  # fmt: skip
    found = (value[name] for name in names if isinstance(value, dict) and value.get(name))
    return _words(next(found, ""), depth + 1)
