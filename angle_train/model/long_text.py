"""Texts of more tokens than a model reads at once: which part of them it reads.

`cut`, the start alone, is what every tokenizer does at the length that `load` sets. `head_tail` is done here:
The texts are shortened before the tokenizer sees them, so this works with every backbone, prompt and pooling.
A saved model holds native modules only: opened without this toolkit, it cuts long texts after
`max_seq_length` tokens. A `long_text.json` beside it says that it was trained on both ends. Also here: which
`max_seq_length` suits some texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_data.console import Progress
from angle_data.jsonl import write_json
from angle_train.model.prompt import TEXT_SLOT, has_template

LONG_TEXT_FILE = "long_text.json"
"""Stands beside a model that was trained on both ends of its long texts."""

HEAD_TAIL = "head_tail"
"""The value of a recipe's `long_text` that keeps both ends."""

_ROUND_TO = 8  # lengths that processors like
_COUNTED_AT_ONCE = 1024


def head_and_tail(text: str, spans: Sequence[tuple[int, int]], budget: int) -> str:
    """Return the first and the last half of `budget` tokens of a text that has more, a space between them.

    `spans` are the first character of every token and the one after its last. Of an odd number of tokens the
    start has one more.
    """
    head, tail = budget - budget // 2, budget // 2
    end = text[spans[-tail][0] :] if tail else ""
    return f"{text[: spans[head - 1][1]].rstrip()} {end.lstrip()}"


class LongTextModel(SentenceTransformer):
    """A Sentence Transformers model that reads both ends of long texts, in training and encoding.

    Saved, it is an ordinary model with a `long_text.json`.
    """

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Shorten the texts that are too long, and tokenize them all."""
        if all(isinstance(text, str) for text in inputs):
            inputs = [self.shortened(text, prompt) for text in inputs]
        return super().preprocess(inputs, prompt=prompt, **kwargs)

    def shortened(self, text: str, prompt: str | None = None) -> str:
        """Return what the model reads of `text`; the text itself where it is not too long."""
        if self.max_seq_length is None:
            return text
        around: dict[str | None, int] = self.__dict__.setdefault("_around", {})
        if prompt not in around:
            around[prompt] = _tokens_around(self, prompt)
        budget = max(2, self.max_seq_length - around[prompt])
        # A token is a byte at least, so most texts need no look.
        if len(text.encode(errors="replace")) <= budget:
            return text
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        spans = encoded["offset_mapping"]
        return text if len(spans) <= budget else head_and_tail(text, spans, budget)

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Save the model, and beside it how it reads long texts."""
        super().save(path, *args, **kwargs)
        write_json(Path(path) / LONG_TEXT_FILE, {"mode": HEAD_TAIL})


def _tokens_around(model: SentenceTransformer, prompt: str | None) -> int:
    """Return how many tokens an empty text has: markers, prompt and template."""
    ids: Tensor = SentenceTransformer.preprocess(model, [""], prompt=prompt)["input_ids"]
    return ids.shape[-1]


@dataclass(frozen=True, slots=True)
class LengthChoice:
    """How many tokens a model should read of some texts.

    Attributes:
        max_seq_length: The choice, markers and prompt included.
        truncated: Share of the texts, 0..1, that are longer.
        longest: Tokens of the longest text.
    """

    max_seq_length: int
    truncated: float
    longest: int


def choose_length(
    model: SentenceTransformer, texts: Iterable[str], prompt: str | None = None, percentile: float = 99.0
) -> LengthChoice:
    """Return the length that leaves all but the longest texts whole.

    That is the given percentile of the texts' tokens, rounded up to a multiple of 8, within what the model
    reads now, which is not changed. Distinct texts, at least one, count once. `prompt` is what will be put
    around every text, as `prompt.set_prompt` takes it; default what the model has.
    """
    distinct = list(dict.fromkeys(texts))
    if prompt is None:
        prompt = model.prompts.get(model.default_prompt_name or "")
    elif has_template(model):
        prompt = None
    around = _tokens_around(model, (prompt or "").replace(TEXT_SLOT, ""))
    lengths: list[int] = []
    with Progress("counting tokens", len(distinct)) as progress:
        for start in range(0, len(distinct), _COUNTED_AT_ONCE):
            part = distinct[start : start + _COUNTED_AT_ONCE]
            block: Mapping[str, Any] = model.tokenizer(part, add_special_tokens=False, verbose=False)
            lengths += [len(ids) + around for ids in block["input_ids"]]
            progress.advance(len(part))
    ranked = sorted(lengths)
    wanted = ranked[max(0, math.ceil(percentile / 100 * len(ranked)) - 1)]
    chosen = -(-wanted // _ROUND_TO) * _ROUND_TO
    if model.max_seq_length is not None:
        chosen = min(chosen, model.max_seq_length)
    truncated = sum(length > chosen for length in lengths) / len(lengths)
    return LengthChoice(chosen, truncated, ranked[-1])
