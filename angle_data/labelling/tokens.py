"""Token counts without asking the service: by the model's own tokenizer where it is at hand, else by length.

Downloads nothing. Chat templates add a few tokens a message, which are counted as a constant.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import ChatRequest
from angle_data.labelling.ledger import Tokens

_CHARS_PER_TOKEN = 4.0
_WIDE_PER_TOKEN = 1.5
_TEMPLATE_TOKENS = 8.0

Counter = Callable[[str], float]
"""The number of tokens of a text."""


def estimate(text: str) -> float:
    """Guess the tokens of a text from its length: four characters a token, one and a half beyond Latin."""
    narrow = len(text) if text.isascii() else sum(character < "\u0370" for character in text)
    return narrow / _CHARS_PER_TOKEN + (len(text) - narrow) / _WIDE_PER_TOKEN


def prompt_tokens(request: ChatRequest, counter: Counter) -> float:
    """Return the tokens of a request's messages, the chat template's included."""
    return sum(counter(message["content"]) + _TEMPLATE_TOKENS for message in request.messages)


def guess_tokens(request: ChatRequest, reply_chars: float) -> Tokens:
    """Guess what a request takes before any reply is known; the reply is bounded by its `max_tokens`."""
    reply = min(reply_chars / _CHARS_PER_TOKEN + _TEMPLATE_TOKENS, request.sampling.max_tokens)
    return Tokens(prompt_tokens(request, estimate), reply)


def find_counter(spec: AnnotatorSpec) -> tuple[Counter, str]:
    """Return the best way to count tokens of this model that is on this machine, and what to call it."""
    return _own_tokenizer(spec) or _tiktoken(spec) or (estimate, "an estimate by characters")


def _own_tokenizer(spec: AnnotatorSpec) -> tuple[Counter, str] | None:
    """Return the checkpoint's tokenizer, from its folder or the hub's cache."""
    if find_spec("tokenizers") is None or spec.engine == "recorded":
        return None
    folder = Path(spec.checkpoint)
    path = folder / "tokenizer.json" if folder.is_dir() else _cached(spec)
    if path is None or not path.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return (
        lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
    ), "the model's own tokenizer"


def _cached(spec: AnnotatorSpec) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(spec.checkpoint, "tokenizer.json", revision=spec.revision)
    except HFValidationError:  # not the name of a repository
        return None
    return Path(found) if isinstance(found, str) else None


def _tiktoken(spec: AnnotatorSpec) -> tuple[Counter, str] | None:
    """Return OpenAI's tokenizer for one of its models, if its vocabulary was downloaded before."""
    if find_spec("tiktoken") is None:
        return None
    tiktoken: Any = import_module("tiktoken")
    try:
        name = tiktoken.encoding_name_for_model(spec.checkpoint)
    except KeyError:
        return None
    if not _vocabulary_is_cached(name):
        return None
    encoding = tiktoken.get_encoding(name)
    return (lambda text: len(encoding.encode_ordinary(text))), f"tiktoken ({name})"


def _vocabulary_is_cached(name: str) -> bool:
    """Whether tiktoken needs no download; as load.py of https://github.com/openai/tiktoken stores files."""
    cache = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folder = Path(cache) if cache else Path(tempfile.gettempdir()) / "data-gym-cache"
    url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    return (folder / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).is_file()
