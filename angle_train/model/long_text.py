"""Texts of more tokens than a model reads at once: the start and the end kept, or all of it piece by piece.

It is done to the texts, before the tokenizer, so it works with every backbone, prompt and pooling. A saved
model holds native modules only: opened without this toolkit it cuts long texts after `max_seq_length` tokens.
`long_text.json` beside it says what was done in training, and whoever loads it through `backbones` gets that.
Also tells which `max_seq_length` suits some texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_train.model.prompt import TEXT_SLOT, has_template
from angle_train.settings import BackboneConfig

LONG_TEXT_FILE = "long_text.json"
"""Stands beside a model that was trained on more of its long texts than their start."""

_ROUND_TO = 8  # lengths that processors like
_COUNTED_AT_ONCE = 1024
_MANY = 20_000  # texts whose counting takes seconds
# What `preprocess` tells `forward` about the rows: whose window each is, and how many tokens it adds.
_ROW_OF, _ADDED = "window_text", "window_added"


@dataclass(frozen=True, slots=True)
class LongText:
    """What to do with a text of more tokens than the model reads at once.

    Attributes:
        mode: `head_tail` reads the first and the last half of the budget as one text; `windows` reads
            overlapping windows, whose embeddings are averaged by the tokens that each adds to those before.
        window: Tokens of a window, markers and prompt included; none is the model's `max_seq_length`.
        stride: Tokens from one window to the next, a window at most; none is three quarters of one.
        max_windows: Windows of a text at most; what comes later is cut.
        memory: Tokens of the text's start that stand before every later window, so that it is read knowing
            what the text is about. Plays the part of the memory that RAN hands from window to window.
    """

    mode: Literal["head_tail", "windows"]
    window: int | None = None
    stride: int | None = None
    max_windows: int = 8
    memory: int = 0

    @classmethod
    def of(cls, config: BackboneConfig) -> Self | None:
        """Return what a recipe asks for; None where long texts are just cut."""
        if config.long_text == "cut":
            return None
        return cls(config.long_text, config.window, config.stride, config.max_windows, config.window_memory)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote.

        Raises:
            InputError: The file is damaged, or written by a later release.
        """
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            known = {f.name for f in fields(cls)}
            if values["mode"] not in ("head_tail", "windows") or not values.keys() <= known:
                raise ValueError
            return cls(**values)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path} does not say how long texts are read; delete it to cut them") from None

    def write(self, directory: Path) -> None:
        """Write it beside the model in `directory`."""
        with replace_file(directory / LONG_TEXT_FILE) as stream:
            stream.write(json.dumps(asdict(self), indent=2) + "\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that is encoded at once, and how many tokens it adds to the pieces before it."""

    text: str
    added: int


def head_and_tail(text: str, spans: Sequence[tuple[int, int]], budget: int) -> str:
    """Return the first and the last half of `budget` tokens of `text`, a space between them.

    Args:
        text: Of more than `budget` tokens.
        spans: First character and the one after the last, of every token.
        budget: Tokens to keep; of an odd number the start has one more.
    """
    head, tail = budget - budget // 2, budget // 2
    end = text[spans[-tail][0] :] if tail else ""
    return f"{text[: spans[head - 1][1]].rstrip()} {end.lstrip()}"


def windows(text: str, spans: Sequence[tuple[int, int]], budget: int, config: LongText) -> list[Piece]:
    """Return the overlapping windows of a text of more than `budget` tokens, in order.

    The last window ends with the text, so it may overlap the one before by more than the others do.

    Args:
        text: What to divide.
        spans: First character and the one after the last, of every token.
        budget: Tokens a window has for the text; `memory` comes out of it in all windows but the first.
        config: Stride, memory, and how many windows at most.
    """
    memory = min(config.memory, budget // 2)
    opening = text[: spans[memory - 1][1]].rstrip() + " " if memory else ""
    later = budget - memory
    step = min(config.stride or max(1, later * 3 // 4), later)
    pieces: list[Piece] = []
    start = covered = 0
    while covered < len(spans) and len(pieces) < config.max_windows:
        size = later if pieces else budget
        start = min(start, len(spans) - size)
        part = text[spans[start][0] : spans[start + size - 1][1]]
        pieces.append(Piece(opening + part if pieces else part, start + size - covered))
        covered = start + size
        start = covered - (later - step)
    return pieces


class LongTextModel(SentenceTransformer):
    """A Sentence Transformers model that reads long texts as `long_text` says, in training and encoding.

    `long_text` is to be set once the model is loaded. Saved, it is an ordinary model with a `long_text.json`.
    """

    long_text: LongText | None = None

    def use(self, config: LongText) -> None:
        """Read long texts in this way from now on.

        Raises:
            InputError: The model has no tokenizer that tells where tokens are, or a window is more than it
                reads at once.
        """
        limit = self.max_seq_length
        if limit is None or not getattr(self.tokenizer, "is_fast", False):
            raise InputError(f"long_text {config.mode} needs a model with a fast tokenizer; set it to cut")
        if config.window is not None and config.window > limit:
            raise InputError(f"window {config.window} is more than the model's max_seq_length {limit}")
        self.long_text = config

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Tokenize texts; with windows, a text takes as many rows as it has windows."""
        config = self.long_text
        if config is None or not all(isinstance(text, str) for text in inputs):
            return super().preprocess(inputs, prompt=prompt, **kwargs)
        pieces = [self.pieces(text, prompt) for text in inputs]
        rows = [piece for parts in pieces for piece in parts]
        features = super().preprocess([piece.text for piece in rows], prompt=prompt, **kwargs)
        if config.mode == "windows":
            features[_ROW_OF] = torch.tensor([i for i, parts in enumerate(pieces) for _ in parts])
            features[_ADDED] = torch.tensor([float(piece.added) for piece in rows])
        return features

    def pieces(self, text: str, prompt: str | None = None) -> list[Piece]:
        """Return the parts of `text` that are encoded one by one; the text itself where it is not long."""
        config, limit = self.long_text, self.max_seq_length
        if config is None or limit is None:
            return [Piece(text, 1)]
        budget = max(2, (config.window or limit) - self._around(prompt))
        # A token is a byte at least, so most texts need no look.
        if len(text.encode(errors="replace")) <= budget:
            return [Piece(text, 1)]
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        spans = encoded["offset_mapping"]
        if len(spans) <= budget:
            return [Piece(text, 1)]
        if config.mode == "head_tail":
            return [Piece(head_and_tail(text, spans, budget), 1)]
        return windows(text, spans, budget, config)

    def forward(self, input: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Encode the rows, then average the windows of each text."""
        row_of, added = input.get(_ROW_OF), input.get(_ADDED)
        if row_of is None or added is None:
            return super().forward(input, **kwargs)
        features = {name: value for name, value in input.items() if name not in (_ROW_OF, _ADDED)}
        output = super().forward(features, **kwargs)
        pooled = _average(output["sentence_embedding"], row_of, added)
        ends_normalised = isinstance(self[-1], Normalize)
        output["sentence_embedding"] = torch.nn.functional.normalize(pooled) if ends_normalised else pooled
        return output

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Save the model, and beside it how it reads long texts."""
        super().save(path, *args, **kwargs)
        if self.long_text is not None:
            self.long_text.write(Path(path))

    def _around(self, prompt: str | None) -> int:
        """Return how many tokens markers, prompt and template take."""
        cache: dict[str | None, int] = self.__dict__.setdefault("_around_cache", {})
        if prompt not in cache:
            cache[prompt] = _tokens_around(self, prompt)
        return cache[prompt]


# The model's card says by this name how to load it, which the plain class does.
LongTextModel.__name__ = SentenceTransformer.__name__


def _tokens_around(model: SentenceTransformer, prompt: str | None) -> int:
    """Return how many tokens a text of none has: markers, prompt and template."""
    ids: Tensor = SentenceTransformer.preprocess(model, [""], prompt=prompt)["input_ids"]
    return ids.shape[-1]


def _average(embeddings: Tensor, row_of: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted means (N, D) of the rows (R, D) of each of N texts."""
    weight = weight.to(embeddings.device, torch.float32)
    row_of = row_of.to(embeddings.device)
    count = int(row_of[-1]) + 1
    total = torch.zeros(count, device=embeddings.device).index_add(0, row_of, weight)
    share = (weight / total[row_of]).unsqueeze(1).to(embeddings.dtype)
    means = embeddings.new_zeros(count, embeddings.shape[1])
    return means.index_add(0, row_of, share * embeddings)


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
    reads now. Distinct texts count once.

    Args:
        model: Whose tokenizer and limit count; its limit is not changed.
        texts: At least one.
        prompt: What will be put around every text, as `prompting.set_prompt` takes it; default what the
            model has.
        percentile: Of the lengths.
    """
    distinct = list(dict.fromkeys(texts))
    if prompt is None:
        prompt = model.prompts.get(model.default_prompt_name or "")
    elif has_template(model):
        prompt = None
    around = _tokens_around(model, (prompt or "").replace(TEXT_SLOT, ""))
    lengths: list[int] = []
    with Progress("counting tokens", len(distinct)) if len(distinct) > _MANY else nullcontext() as progress:
        for start in range(0, len(distinct), _COUNTED_AT_ONCE):
            part = distinct[start : start + _COUNTED_AT_ONCE]
            block: Mapping[str, Any] = model.tokenizer(part, add_special_tokens=False, verbose=False)
            lengths += [len(ids) + around for ids in block["input_ids"]]
            if progress:
                progress.advance(len(part))
    ranked = sorted(lengths)
    wanted = ranked[max(0, math.ceil(percentile / 100 * len(ranked)) - 1)]
    chosen = -(-wanted // _ROUND_TO) * _ROUND_TO
    if model.max_seq_length is not None:
        chosen = min(chosen, model.max_seq_length)
    truncated = sum(length > chosen for length in lengths) / len(lengths)
    return LengthChoice(chosen, truncated, ranked[-1])
