"""Loads prompt files and fills their placeholders; sends nothing.

A prompt is one text file: TOML front matter between two `+++` lines (`placeholders`, `reply`, `description`),
then the template. A prompt set is a folder with `synonym.txt` and `antonym.txt`, or with `degrees.txt`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.records import DEGREES
from angle_data.resources import packaged_folder

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_KEYS = {"placeholders", "reply", "description"}


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: its template, the kind of reply it asks for, and the SHA-256 of the template."""

    template: str
    reply: Literal["text", "json"]
    sha256: str

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the prompt with its placeholders filled, in a single pass: braces inside values stay."""
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)


Asked = Literal["synonym", "antonym", "degrees"]
"""What a prompt of labelling asks for."""

PromptSet = dict[Asked, Prompt]
"""The prompts of both polarities, or that of the degrees alone."""


def load_prompts(name_or_dir: str) -> PromptSet:
    """Load a built-in prompt set by name, or the one in a folder.

    Raises:
        InputError: No such set, a prompt file is missing, or its front matter or placeholders are wrong.
    """
    home = packaged_folder("prompts")
    names = sorted(p.parent.name for file in ("synonym", "degrees") for p in home.glob(f"*/{file}.txt"))
    folder = home / name_or_dir if name_or_dir in names else Path(name_or_dir)
    if not folder.is_dir():
        known = ", ".join(names)
        raise InputError(f"--prompts {name_or_dir}: neither a folder nor a built-in prompt set ({known})")
    if (degrees := folder / "degrees.txt").is_file():
        if other := next((p for p in (folder / "synonym.txt", folder / "antonym.txt") if p.is_file()), None):
            raise InputError(f"{folder} holds {other.name} and degrees.txt; give each kind its own folder")
        return {"degrees": load_prompt(degrees, known=("text",))}
    for path in (folder / "synonym.txt", folder / "antonym.txt"):
        if not path.is_file():
            raise InputError(
                f"{path} does not exist; a prompt folder holds synonym.txt and antonym.txt, or degrees.txt"
            )
    return {"synonym": load_prompt(folder / "synonym.txt"), "antonym": load_prompt(folder / "antonym.txt")}


def load_prompt(
    path: Path, *, known: Sequence[str] = ("size", "text"), required: Sequence[str] = ("text",)
) -> Prompt:
    """Load one prompt file that may use the placeholders `known` and must use the `required` ones.

    Raises:
        InputError: The file is missing, or its front matter or placeholders are wrong.
    """
    if not path.is_file():
        what = "is a folder; give a file in it" if path.is_dir() else "does not exist; give a prompt file"
        raise InputError(f"{path} {what}")
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
    _check(front, template, path, known, required)
    return Prompt(template, front["reply"], hashlib.sha256(template.encode()).hexdigest())


def object_schema(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_schema(name: str, items: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the JSON Schema of the replies to a prompt for JSON: an object with a list of `count` items."""
    return object_schema(**{name: {"type": "array", "items": items, "minItems": count, "maxItems": count}})


def degrees_schema() -> dict[str, Any]:
    """Return the JSON Schema of the reply to a prompt for degrees: a sentence for each, of any length."""
    return object_schema(**{str(degree): {"type": "string"} for degree in DEGREES})


def _check(
    front: dict[str, Any], template: str, path: Path, known: Sequence[str], required: Sequence[str]
) -> None:
    if unknown := sorted(front.keys() - _KEYS):
        raise InputError(
            f"{path}: unknown front matter key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}"
        )
    if front.get("reply") not in ("text", "json"):
        raise InputError(f'{path}: reply must be "text" or "json", got {front.get("reply")!r}')
    declared, used = front.get("placeholders"), set(_PLACEHOLDER.findall(template))
    if not isinstance(declared, list) or set(map(str, declared)) != used:
        found = ", ".join(sorted(used)) or "none"
        raise InputError(f"{path}: placeholders must list those of the template ({found}), got {declared!r}")
    if unknown := sorted(used - set(known)):
        raise InputError(f"{path}: unknown placeholder {unknown[0]!r}; known: {', '.join(known)}")
    if missing := [name for name in required if name not in used]:
        raise InputError(f"{path}: the template lacks {{{missing[0]}}}")
