"""Loads prompt files and fills their placeholders; sends nothing.

A prompt is one text file: the template, perhaps after TOML front matter between two `+++` lines
(`placeholders`, `reply`, `description`). A prompt set is a folder with `synonym.txt` and `antonym.txt`, with
`degrees.txt`, or with `query.txt`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from angle_data.errors import InputError
from angle_data.jsonl import read_lines
from angle_data.resources import packaged_folder

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_MARK = "+++\n"
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


Asked = Literal["synonym", "antonym", "degrees", "query"]
"""What a prompt of labelling asks for."""

PromptSet = dict[Asked, Prompt]
"""The prompts of both polarities, or that of the degrees or of queries alone."""


def load_prompts(name_or_dir: str) -> PromptSet:
    """Load a built-in prompt set by name, or the one in a folder.

    Raises:
        InputError: No such set, a prompt file is missing, or its front matter or placeholders are wrong.
    """
    home = packaged_folder("prompts")
    names = sorted(
        p.parent.name for file in ("synonym", "degrees", "query") for p in home.glob(f"*/{file}.txt")
    )
    folder = home / name_or_dir if name_or_dir in names else Path(name_or_dir)
    if not folder.is_dir():
        known = ", ".join(names)
        raise InputError(f"--prompts {name_or_dir}: neither a folder nor a built-in prompt set ({known})")
    files = {asked: folder / f"{asked}.txt" for asked in get_args(Asked)}
    found = {asked: path for asked, path in files.items() if path.is_file()}
    if found.keys() not in ({"synonym", "antonym"}, {"degrees"}, {"query"}):
        held = ", ".join(path.name for path in found.values()) or "none of them"
        raise InputError(
            f"{folder} must hold synonym.txt and antonym.txt, or degrees.txt or query.txt alone; "
            f"it has {held}"
        )
    size = set() if "degrees" in found else {"size"}
    return {asked: load_prompt(path, {"text"}, size) for asked, path in found.items()}


def load_prompt(path: Path, needed: Set[str], known: Set[str] = frozenset()) -> Prompt:
    """Load a prompt file, which uses all placeholders `needed` and may use others that are `known`.

    Raises:
        InputError: The file is missing, or its front matter or placeholders are wrong.
    """
    content = "".join(line.rstrip("\r\n") + "\n" for _, line in read_lines(path))
    matter = ""
    template = content
    if content.startswith(_MARK):
        matter, closed, template = content.removeprefix(_MARK).partition(_MARK)
        if not closed:
            raise InputError(f"{path}: its front matter has no second +++ line")
    try:
        front = {"reply": "text", **tomllib.loads(matter)}
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: front matter is not valid TOML ({error})") from None
    template = template.strip("\n")
    used = set(_PLACEHOLDER.findall(template))
    declared = front.get("placeholders", [*used])
    if unknown := sorted(front.keys() - _KEYS):
        raise InputError(
            f"{path}: unknown front matter key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}"
        )
    if front["reply"] not in ("text", "json"):
        raise InputError(f'{path}: reply must be "text" or "json", got {front["reply"]!r}')
    if not isinstance(declared, list) or set(map(str, declared)) != used:
        names = ", ".join(sorted(used)) or "none"
        raise InputError(f"{path}: placeholders must list those of the template ({names}), got {declared!r}")
    if not needed <= used <= needed | known:
        wanted = ", ".join(f"{{{name}}}" for name in sorted(needed))
        also = "".join(f" and may use {{{name}}}" for name in sorted(known))
        raise InputError(f"{path}: the template must use {wanted}{also}, and no other placeholder")
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
