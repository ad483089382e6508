"""Loads prompt files and fills their placeholders; sends nothing.

A prompt is one text file: TOML front matter between two `+++` lines (`placeholders`, `reply`, `description`),
then the template. A prompt set is a folder with `synonym.txt` and `antonym.txt`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.records import Polarity

__all__ = ["Prompt", "PromptSet", "builtin_names", "load_prompts"]

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_KNOWN = ("size", "text")
_KEYS = {"placeholders", "reply", "description"}
_PACKAGE = Path(__file__).resolve().parents[1]
# The wheel carries the prompts inside the package; a checkout has them beside it.
_HOMES = (_PACKAGE / "prompts", _PACKAGE.parent / "prompts")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: its template, the kind of reply it asks for, and the SHA-256 of the template."""

    template: str
    reply: Literal["text", "json"]
    sha256: str

    def render(self, *, size: int, text: str) -> str:
        """Return the prompt for one text, in a single pass: braces inside `text` stay as they are."""
        values = {"size": str(size), "text": text}
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of both polarities and the name or folder that they came from."""

    name: str
    synonym: Prompt
    antonym: Prompt

    def of(self, polarity: Polarity) -> Prompt:
        """Return the prompt of one polarity."""
        return self.synonym if polarity == "synonym" else self.antonym


def builtin_names() -> list[str]:
    """Return the names of the prompt sets that come with the toolkit, sorted."""
    home = _home()
    return sorted(path.name for path in home.iterdir() if path.is_dir()) if home else []


def load_prompts(name_or_dir: str) -> PromptSet:
    """Load a built-in prompt set by name, or the one in a folder.

    Raises:
        InputError: No such set, a prompt file is missing, or its front matter or placeholders are wrong.
    """
    home = _home()
    folder = home / name_or_dir if home and name_or_dir in builtin_names() else Path(name_or_dir)
    if not folder.is_dir():
        known = ", ".join(builtin_names())
        raise InputError(f"--prompts {name_or_dir}: neither a folder nor a built-in prompt set ({known})")
    return PromptSet(name_or_dir, _load(folder / "synonym.txt"), _load(folder / "antonym.txt"))


def _home() -> Path | None:
    return next((home for home in _HOMES if home.is_dir()), None)


def _load(path: Path) -> Prompt:
    if not path.is_file():
        raise InputError(f"{path} does not exist; a prompt folder holds synonym.txt and antonym.txt")
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; convert the file to UTF-8") from None
    match = re.fullmatch(r"\+\+\+\n(.*?)\n\+\+\+\n(.*)", content, re.DOTALL)
    if match is None:
        raise InputError(f"{path}: a prompt opens with TOML front matter between two +++ lines")
    try:
        front = tomllib.loads(match[1])
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: front matter is not valid TOML ({error})") from None
    template = match[2].strip("\n")
    _check(front, template, path)
    return Prompt(template, front["reply"], hashlib.sha256(template.encode()).hexdigest())


def _check(front: dict[str, Any], template: str, path: Path) -> None:
    if unknown := sorted(front.keys() - _KEYS):
        raise InputError(
            f"{path}: unknown front matter key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}"
        )
    if front.get("reply") not in ("text", "json"):
        raise InputError(f'{path}: reply must be "text" or "json", got {front.get("reply")!r}')
    declared = front.get("placeholders")
    if not isinstance(declared, list) or "text" not in declared:
        raise InputError(f'{path}: placeholders must be a list that holds "text", got {declared!r}')
    used = set(_PLACEHOLDER.findall(template))
    for name in declared:
        if name not in _KNOWN:
            raise InputError(f"{path}: unknown placeholder {name!r}; known: {', '.join(_KNOWN)}")
        if name not in used:
            raise InputError(f"{path}: placeholder {{{name}}} is declared but not in the template")
    if undeclared := sorted(used - set(declared)):
        raise InputError(f"{path}: placeholder {{{undeclared[0]}}} is in the template but not declared")
