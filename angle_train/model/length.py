"""How many tokens of a text a model should read: the length that leaves all but the longest texts whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sentence_transformers import SentenceTransformer

from angle_data.console import Progress
from angle_train.model.prompt import TEXT_SLOT, has_template

_ROUND_TO = 8  # lengths that processors like
_COUNTED_AT_ONCE = 1024


def _tokens_around(model: SentenceTransformer, prompt: str | None) -> int:
    """Return how many tokens an empty text has: markers, prompt and template."""
    return int(model.preprocess([""], prompt=prompt)["input_ids"].shape[-1])


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
