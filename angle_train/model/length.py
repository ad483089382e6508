"""How many tokens of a text a model should read: the length that leaves all but the longest texts whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentence_transformers import SentenceTransformer

from angle_data.console import Progress
from angle_train.model.prompt import TEXT_SLOT, has_template
from angle_train.model.roles import PAIR, Role, role_options, tokenizer_of, tokens_read

_ROUND_TO = 8  # lengths that processors like
_COUNTED_AT_ONCE = 1024


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
    if prompt is None:
        prompt = model.prompts.get(model.default_prompt_name or "")
    elif has_template(model):
        prompt = None
    prompt = (prompt or "").replace(TEXT_SLOT, "")
    options = role_options(model, "") | {"prompt": prompt}
    return _chosen(model, _lengths(model, texts, options), percentile)


def choose_length_in_roles(
    model: SentenceTransformer, queries: Iterable[str], documents: Iterable[str], percentile: float = 99.0
) -> LengthChoice:
    """Return the length that leaves all but the longest queries and documents whole, see `choose_length`.

    Each has the prompt of its role, and is tokenised as its route does it.
    """
    sides = zip(PAIR, (queries, documents), strict=True)
    lengths = [_lengths(model, texts, role_options(model, role), role) for role, texts in sides]
    return _chosen(model, [length for side in lengths for length in side], percentile)


def _lengths(
    model: SentenceTransformer, texts: Iterable[str], options: Mapping[str, Any], role: Role = ""
) -> list[int]:
    """Return how many tokens each distinct text has; none where a role has no transformer to read it."""
    tokenizer = tokenizer_of(model, role)
    if tokenizer is None:
        return []
    distinct = list(dict.fromkeys(texts))
    around = int(model.preprocess([""], **options)["input_ids"].shape[-1])  # markers, prompt and template
    lengths: list[int] = []
    with Progress("counting tokens", len(distinct)) as progress:
        for start in range(0, len(distinct), _COUNTED_AT_ONCE):
            part = distinct[start : start + _COUNTED_AT_ONCE]
            block: Mapping[str, Any] = tokenizer(part, add_special_tokens=False, verbose=False)
            lengths += [len(ids) + around for ids in block["input_ids"]]
            progress.advance(len(part))
    return lengths


def _chosen(model: SentenceTransformer, lengths: Sequence[int], percentile: float) -> LengthChoice:
    ranked = sorted(lengths)
    wanted = ranked[max(0, math.ceil(percentile / 100 * len(ranked)) - 1)]
    chosen = -(-wanted // _ROUND_TO) * _ROUND_TO
    most = tokens_read(model)
    if most is not None:
        chosen = min(chosen, most)
    truncated = sum(length > chosen for length in lengths) / len(lengths)
    return LengthChoice(chosen, truncated, ranked[-1])
