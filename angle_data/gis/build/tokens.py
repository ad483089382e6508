"""How many tokens a text has: by a tokenizer file if one is given, else by a stated estimate."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from angle_data.errors import InputError, MissingExtraError

ESTIMATE = "estimate: a token for every 5 letters of a word begun and for every other sign"

_TOKEN = re.compile(r"[^\W_]{1,5}|[^\w\s]|_")


def token_counter(tokenizer: str | None) -> tuple[str, Callable[[str], int]]:
    """Return the name of the tokenizer and a function that counts the tokens of a text.

    `tokenizer` is a `tokenizer.json`, or a folder that holds one such as that of a model; None is `ESTIMATE`.
    Special tokens are not counted.

    Raises:
        InputError: There is no such file or it is no tokenizer.
        MissingExtraError: The library that reads it is not installed.
    """
    if tokenizer is None:
        return ESTIMATE, lambda text: sum(1 for _ in _TOKEN.finditer(text))
    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"--tokenizer {tokenizer}: no tokenizer.json there; give the file or its folder")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("--tokenizer", "train") from None
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception
        raise InputError(f"--tokenizer {tokenizer}: not a tokenizer file ({error})") from None
    loaded.no_truncation()
    loaded.no_padding()
    return path.parent.name or str(path), lambda text: len(loaded.encode(text, add_special_tokens=False).ids)
