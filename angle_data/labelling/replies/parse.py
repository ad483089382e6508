"""Turns one raw reply of an annotator into sentences, and gives a reason for every dropped part.

What counts as cut off (`truncated`):

- a JSON string or an opening quotation mark that never closes, and a JSON string without an end mark that is
  as long as a schema with lengths allows (`text.longest_answer`);
- where the reply was cut or failed, the last piece unless it ends a sentence or closes its JSON string;
  if no sentence was kept then, everything that is empty or cannot be read;
- where nobody says how the reply ended, the last of several items when it alone lacks the end mark that the
  source and all its fellows have, and opens like a sentence (log lines and "Ticket: …" do without end marks).
  When the service says that the model stopped by itself, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from angle_data.labelling.replies.chatter import (
    is_about_task,
    is_chatter,
    is_heading,
    is_prompt_echo,
    is_refusal,
    may_be_refusal,
)
from angle_data.labelling.replies.layout import is_complete, only_answer, split_reply, without_fences
from angle_data.labelling.replies.structured import Piece, unquoted
from angle_data.records import Polarity
from angle_data.text import longest_answer, normalise, whole_characters

REASONS: dict[str, str] = {
    "blocked": "a filter of the service stopped the reply",
    "chatter": "words around the sentences (greeting, heading, closing remark), or about them",
    "duplicate": "the same sentence twice in one reply; at two degrees neither counts",
    "echo_prompt": "words of the instruction, or a new task made up after the answer",
    "echo_source": "the input sentence given back unchanged, or again and again",
    "empty": "a reply, or an item of one, without words",
    "other_data": "what a structured reply holds beside its sentences: a second list, a note, a number",
    "prompt_cut": "the server read only part of a long prompt, without a word",
    "refusal": "the annotator declined, asked back or chatted instead of answering",
    "refused_by_server": "no reply: whoever was asked refuses this request for good, and answers others",
    "request_failed": "no reply: the request failed and is asked again in the next run",
    "surplus": "a sentence beyond the number asked for, or a second one at a degree",
    "truncated": "a sentence that was cut off",
    "unparseable": "structured data without sentences, markup, or sentences that name no degree",
}
"""Reason code -> meaning, for everything that `llm-label` writes to rejected.jsonl."""

_CUT = ("cut", "failed")  # how a reply ended whose last piece may be half a sentence
# A reply's few sentences are compared with each other and with the source several times.
_normalised = lru_cache(maxsize=32)(normalise)
_NEW_TASK = re.compile(r"^[ \t*]{0,8}input(?: sentence)?[ *]{0,4}:", re.IGNORECASE | re.MULTILINE)
_MOST_TASKS = 20
_LABEL = re.compile(
    r"(?:\*\*)?(?:(?:the |a |my )?(?:revised|rewritten|reworded|rephrased|new|opposite|synonymous) )?"
    r"(?:synonym(?:ous)?|antonym(?:ous)?|paraphrase|opposite|sentence|output)(?: sentence)?"
    r"(?: ?#?\d{1,2})?(?:\*\*)?:(?:\*\*)?\s+",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\w+")
_LEAST_OF_PROMPT = 4
_BOLD = re.compile(r"(?:(?<=[\s\"“(])|^)(\*\*|__)(?=\S)([^\n]{1,400}?)(?<=\S)\1(?=[\s\"”).,;:!?]|$)")
_RATED = re.compile(
    r"(?<=\S) {0,2}[(\[](?:similarity|score|confidence)[:=]? ?[\d.]{1,5}%?[)\]]$", re.IGNORECASE
)
_MARKUP = re.compile(r"""\{\s{0,8}["']|\[\s{0,8}["'{]|\|.*\|$|</?\w{1,40}>""")
_QUOTES = {"*": "*", '"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "「": "」", "`": "`"}
_SENTENCE_START = re.compile(r"""["“'(]?[A-Z](?!\S{0,40}(?: \S{1,40}){0,2}?:\s)""")
_BUT = re.compile(r"\b(?:but|however|instead|still|here are(?!.{0,80}\breasons?\b))\b", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(?<=\w)'|'(?=\w)")
_LONGEST_TAIL = 400
_TAIL = re.compile(r"(?<=[.!?\"”])\s{1,8}(\(?[A-Z][^.!?]{0,400}[.!?)]{0,8}(?: ?:\))?)$")


class Part(NamedTuple):
    """A part of a reply: a sentence, or something dropped for a `reason`; `degree` is its label, if any."""

    text: str
    reason: str | None = None
    degree: int | None = None


def parse_reply(
    raw: str,
    *,
    source: str,
    finish: str,
    size: int,
    polarity: Polarity | None = None,
    prompt: str = "",
    split: Callable[[str], list[Piece]] | None = None,
) -> list[Part]:
    """Return at most `size` sentences of the reply `raw` to a request about `source`, and what was dropped.

    Never raises. `finish` says how the reply ended: `done`, `cut`, `blocked`, `failed` or `unknown`.
    `polarity` is what was asked for, and helps where a reply gives both. `prompt` is the instruction
    without the source: its own words are no answer. `split` finds the pieces of a reply
    in which they need a degree; sentences of high degrees come first. Halves of surrogate pairs become
    U+FFFD.
    """
    raw = whole_characters(raw)
    if finish == "blocked":
        return [Part(raw, "blocked")]
    text, next_turn = only_answer(raw, source)
    if not text.strip():
        return [Part(raw, "truncated" if finish in _CUT else "empty")]
    text, new_task = _before_new_task(text, source)
    new_task = "\n".join(filter(None, (new_task, next_turn)))
    bare = unquoted(without_fences(text))
    found = split(bare) if split else split_reply(bare, source=source, size=size, polarity=polarity)
    # Once more: an escape in JSON can stand for half a pair.
    pieces = [replace(piece, text=whole_characters(piece.text)) for piece in found]
    _split_tail(pieces, source)
    spoken = pieces or [Piece(line, "line") for line in text.splitlines() if line.strip()]
    if _is_refused(spoken, source, size):
        return [Part(text.strip(), "refusal")]
    # What goes on after the answer did not cut it off.
    parts = _judge(pieces, source, size, prompt, "done" if new_task else finish)
    parts.sort(key=lambda part: -(part.degree or 0) if part.reason is None else 0)
    if new_task:
        parts.append(Part(new_task, "echo_prompt"))
    unread = Part(text.strip(), "unparseable") if split else Part(raw, "empty")
    return parts or [unread._replace(reason="truncated") if finish in _CUT else unread]


def _judge(pieces: list[Piece], source: str, size: int, prompt: str, finish: str) -> list[Part]:
    """Return what the pieces of a reply are worth, in their order; a sentence of two degrees has none."""
    cut = _cut_off(pieces, source, finish)
    parts: list[Part] = []
    kept: dict[str, int | None] = {}  # sentences, normalised, and their degrees
    degrees: dict[str, set[int | None]] = {}  # of each sentence
    longest = longest_answer(source)  # what schemas allow
    for index, piece in enumerate(pieces):
        sentence = _clean(piece.text, source) if piece.kind in ("marked", "line") else _unwrap(piece.text)
        known = _normalised(sentence)
        full = piece.kind == "structured" and len(piece.text) == longest and not is_complete(piece.text)
        why = "truncated" if index == cut or full else _reason(sentence, piece, source)
        if why is None:
            if known in kept:
                why = "duplicate"
            elif _is_of_prompt(sentence, prompt, source):
                why = "echo_prompt"
            elif len(kept) >= size or (piece.degree is not None and piece.degree in kept.values()):
                why = "surplus"
            else:
                kept[known] = piece.degree
        if why in (None, "duplicate"):
            degrees.setdefault(known, set()).add(piece.degree)
        parts.append(Part(sentence if why is None else piece.text.strip(), why, piece.degree))
    for index, part in enumerate(parts):
        if part.reason is None and len(degrees[_normalised(part.text)]) > 1:
            parts[index] = Part(pieces[index].text.strip(), "duplicate", part.degree)
        elif finish in _CUT and not kept and part.reason in ("empty", "unparseable"):
            parts[index] = part._replace(reason="truncated")
    return parts


def _before_new_task(text: str, source: str) -> tuple[str, str]:
    """Split off a made-up further task ("Input sentence: …") that a base model wrote after its answer."""
    for match in islice(_NEW_TASK.finditer(text), _MOST_TASKS):
        before = [line for line in text[: match.start()].splitlines() if line.strip()]
        if any(not (is_chatter(line, source) or is_prompt_echo(line)) for line in before):
            return text[: match.start()], text[match.start() :].strip()
    return text, ""


def _is_refused(pieces: list[Piece], source: str, size: int) -> bool:
    """Whether the reply opens with a refusal; what follows it is explanation, even as a numbered list."""
    spoken = [piece for piece in pieces if not is_heading(piece.text)]
    if not spoken or (opening := spoken[0]).kind not in ("line", "marked", "around"):
        return False
    # Fewer pieces than sentences were asked for: what might be one of the domain is none.
    if len(spoken) < max(size, 2) and may_be_refusal(opening.text, source):
        return True
    # Not after "I cannot …, but here are two:", nor before JSON.
    offers = _BUT.search(opening.text) or any(piece.kind == "structured" for piece in pieces)
    return not (opening.kind == "around" and offers) and is_refusal(opening.text, source)


def _cut_off(pieces: list[Piece], source: str, finish: str) -> int | None:
    """Return the index of the piece that was cut off, if any; see the module's docstring."""
    if not pieces:
        return None
    *others, last = pieces
    if last.kind == "open":
        return len(others)
    if last.kind not in ("marked", "line") or is_complete(last.text):
        return None
    bare = last.text.strip(" *_")
    is_open = (bare[:1] == '"' and bare.count('"') == 1) or (bare[:1] == "“" and "”" not in bare)
    if not is_open and finish == "done":
        return None
    if not is_open and finish not in _CUT:  # nobody says how the reply ended: a guess
        fellows = [p for p in others if p.kind == last.kind and not is_chatter(p.text, source)]
        expected = fellows and all(map(is_complete, [source, *(p.text for p in fellows)]))
        guessed = expected and _SENTENCE_START.match(_clean(last.text, source))
        if not guessed or is_chatter(last.text, source):
            return None
    return len(others)


def _split_tail(pieces: list[Piece], source: str) -> None:
    """Split closing remarks off the last item ("2. … works. Hope this helps!")."""
    last = len(pieces) - 1
    while pieces and pieces[last].kind in ("marked", "line"):
        text = pieces[last].text.strip()
        match = _TAIL.search(text, max(len(text) - _LONGEST_TAIL, 0))
        if match is None or not is_chatter(match[1], source):
            break
        item = replace(pieces[last], text=text[: match.start()])
        pieces[last : last + 1] = item, Piece(match[1], "around")


def _clean(text: str, source: str) -> str:
    """Return the sentence without label, markdown emphasis, wrapping quotes and line breaks."""
    text = text.strip()
    label = _LABEL.match(text)
    if label and not normalise(source).startswith(normalise(label[0])):
        text = text[label.end() :]
    if not _RATED.search(source):
        text = _RATED.sub("", text)
    text = _BOLD.sub(r"\2", text.strip())
    if text.count("**") == 1:
        text = text.removeprefix("**").removesuffix("**")
    return _unwrap(text)


def _unwrap(text: str) -> str:
    """Return `text` on one line and without quotation marks or single asterisks around the whole of it."""
    text = " ".join(text.split())
    for _ in range(3):
        body = text[:-1] if text.endswith(('",', "”,", '";')) else text
        # A full stop outside the closing mark belongs inside.
        stop = "." if len(body) > 3 and body[-1] == "." and body[-2] in _QUOTES.values() else ""
        body = body.removesuffix(stop)
        if len(body) < 3 or _QUOTES.get(body[0]) != body[-1]:
            break
        # In `"a" is not "b"` the pair wraps nothing; an apostrophe is no closing mark.
        if body[-1] in (_APOSTROPHE.sub("", body[1:-1]) if body[-1] == "'" else body[1:-1]):
            break
        text = body[1:-1].strip() + stop
    return text


def _reason(sentence: str, piece: Piece, source: str) -> str | None:
    """Return why the piece by itself is no candidate, or None when it is one."""
    if piece.kind in ("data", "beside"):
        return "unparseable" if piece.kind == "data" else "other_data"
    if not any(character.isalnum() for character in sentence):
        return "empty"
    if not any(character.isalpha() for character in sentence):  # a number
        return "chatter" if piece.kind == "around" else "other_data"
    echoes = _repeats(_normalised(sentence), _normalised(source))
    unmarked = piece.kind in ("around", "line") or sentence.endswith(":")
    if unmarked and not echoes and is_chatter(piece.text, source):
        return "chatter"
    if is_refusal(sentence, source):
        return "refusal"
    if is_prompt_echo(piece.text):
        return "echo_prompt"
    if not echoes and is_about_task(sentence, source):
        return "chatter"
    if piece.kind == "line" and _MARKUP.match(sentence) and sentence[0] not in source:
        return "unparseable"
    if echoes:
        return "echo_source"
    return "chatter" if piece.kind == "around" else None


def _repeats(sentence: str, source: str) -> bool:
    """Whether a sentence is the source, once or again and again; both are normalised."""
    if not (source and sentence.startswith(source)):
        return False
    return source.startswith(" ".join(sentence.split(source)).strip(" \t\"'.,;:!?…。！？"))


def _is_of_prompt(sentence: str, prompt: str, source: str) -> bool:
    """Whether a sentence of a few words or more stands in the prompt, and not in the source."""
    said = _spoken(sentence)
    if not prompt or len(said.split()) < _LEAST_OF_PROMPT:
        return False
    return said in _spoken(prompt) and said not in _spoken(source)


@lru_cache(maxsize=32)
def _spoken(text: str) -> str:
    """Return the words of a text, without its marks and with a space around each."""
    return f" {' '.join(_TOKEN.findall(text.casefold()))} "
