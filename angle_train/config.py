"""One frozen, self-validating recipe is one run; read from TOML, where unknown keys are errors.

Loads nothing heavy. What the values of its sections may be is in `settings`.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, get_type_hints

from angle_data.errors import InputError
from angle_data.resources import packaged_folder
from angle_train.settings import SECTIONS, ObjectiveConfig, TrainingConfig, problems_of_values, raise_if

__all__ = ["Recipe", "builtin_recipes", "find_recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides one run apart from the data and the backbone."""

    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    description: str = ""

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read a recipe file; what it leaves out keeps its default.

        Raises:
            InputError: The file is missing or no TOML, or holds unknown keys or illegal values: all of
                them are named in one line.
        """
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, IsADirectoryError):
            raise InputError(f"{path}: no such recipe file; check the path") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not a valid TOML file: {error}") from None
        try:
            return cls._from_tables(tables)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def _from_tables(cls, tables: Mapping[str, Any]) -> Self:
        problems = _unknown(tables, [f.name for f in fields(cls)], "section")
        description = tables.get("description", "")
        if not isinstance(description, str):
            problems.append("description must be a text")
        for name, section in SECTIONS.items():
            table = tables.get(name, {})
            if isinstance(table, dict):
                problems += _unknown(table, [f.name for f in fields(section)], f"[{name}] key")
                problems += problems_of_values(section, table, name)
            else:
                problems.append(f"{name} must be a section: [{name}]")
        raise_if(problems)
        return cls(
            **{name: section(**tables.get(name, {})) for name, section in SECTIONS.items()},
            description=description,
        )

    def to_toml_text(self) -> str:
        """Return the recipe as TOML with every value spelt out; `from_toml` reads the same recipe back."""
        lines = [f"description = {_toml(self.description)}"] if self.description else []
        for name in SECTIONS:
            section = getattr(self, name)
            lines += ["", f"[{name}]"] if lines else [f"[{name}]"]
            hints = get_type_hints(type(section))
            for key, value in ((f.name, getattr(section, f.name)) for f in fields(section)):
                if value is not None:
                    # One text for 1 and 1.0: the text decides whether two runs are the same.
                    lines.append(f"{key} = {_toml(float(value) if hints[key] is float else value)}")
        return "\n".join(lines) + "\n"

    def with_overrides(self, overrides: Mapping[str, object]) -> Self:
        """Return the recipe with single values replaced, whichever section they belong to.

        Args:
            overrides: Values by key; those that are None are left alone.

        Raises:
            InputError: A key is unknown or a value illegal.
        """
        given = {key: value for key, value in overrides.items() if value is not None}
        owner = {f.name: name for name, section in SECTIONS.items() for f in fields(section)}
        raise_if(_unknown(given, list(owner), "recipe key"))
        changes = {
            name: replace(getattr(self, name), **{k: v for k, v in given.items() if owner[k] == name})
            for name in SECTIONS
        }
        return replace(self, **changes)


def builtin_recipes() -> dict[str, Path]:
    """Return the recipes that come with the toolkit, by name."""
    return {path.stem: path for path in sorted(packaged_folder("recipes").glob("*.toml"))}


def find_recipe(name_or_path: str) -> Path:
    """Return the file of a built-in recipe, or the path itself where it names a file.

    Raises:
        InputError: It is neither.
    """
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.parent != Path():
        return path
    builtin = builtin_recipes()
    if name_or_path not in builtin:
        hint = _did_you_mean(name_or_path, list(builtin)) or f"; built in: {', '.join(builtin)}"
        raise InputError(f"no recipe is called {name_or_path!r}{hint}; or give a .toml file")
    return builtin[name_or_path]


def _did_you_mean(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def _unknown(table: Mapping[str, Any], known: list[str], what: str) -> list[str]:
    everything = f" (known: {', '.join(known)})"
    return [
        f"unknown {what} {name!r}{_did_you_mean(name, known) or everything}"
        for name in table
        if name not in known
    ]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are legal in TOML; DEL is the one character that only TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
