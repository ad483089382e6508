"""One frozen, self-validating recipe is one run; read from TOML, where unknown keys are errors.

Loads nothing heavy. What the values of its sections may be is in `settings`.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

from angle_data.errors import InputError
from angle_data.resources import packaged_folder
from angle_train.settings import (
    SECTIONS,
    BackboneConfig,
    ObjectiveConfig,
    TrainingConfig,
    problems_of_values,
    raise_if,
)

# They decide how a result is computed; what it is changes by rounding and by which activations dropout draws.
_SAME_RESULT = ("chunk_size", "chunking", "gradient_cache", "gradient_checkpointing")
_TOLD = ("backbone", "number of trials, rounds or seed")  # parts of a fingerprint that a user can read


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides one run apart from the data and the backbone."""

    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    backbone: BackboneConfig = field(default_factory=BackboneConfig)
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
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, IsADirectoryError):
            raise InputError(f"{path}: no such recipe file; check the path") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not a valid TOML file: {error}") from None
        try:
            return cls.from_toml_text(text)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_toml_text(cls, text: str) -> Self:
        """Read a recipe from its text, see `from_toml`."""
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not a valid TOML file: {error}") from None
        return cls._from_tables(tables)

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
                    lines.append(f"{key} = {_toml(_canonical(value, hints[key]))}")
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


def parse_settings(settings: Sequence[str]) -> dict[str, object]:
    """Return the values of `KEY=VALUE` settings by key, for `with_overrides`.

    A value is read as TOML (`3`, `1e-4`, `true`, `[128, 64]`), or else as a text; a key may name its section
    too (`training.epochs`).

    Raises:
        InputError: A setting has no `=` or names a section that is not the key's.
    """
    values: dict[str, object] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        section, _, key = name.strip().rpartition(".")
        if not equals or not key:
            raise InputError(f"--set {setting}: write KEY=VALUE, such as --set weight_decay=0.1")
        if section and (section not in SECTIONS or key not in {f.name for f in fields(SECTIONS[section])}):
            raise InputError(f"--set {setting}: section {section!r} has no key {key!r}")
        values[key] = toml_value(text)
    return values


def toml_value(text: str) -> object:
    """Return what is written as TOML (`3`, `1e-4`, `true`), or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def overrides_of(settings: Sequence[str], named: Mapping[str, tuple[str, object]]) -> dict[str, object]:
    """Return the values of `--set` and of the options that have a name of their own, for `with_overrides`.

    Args:
        settings: As `parse_settings` takes them.
        named: Option and value by key of the recipe; those that are None were not given.

    Raises:
        InputError: A setting is malformed, or given in both ways.
    """
    values = parse_settings(settings)
    for key, (option, value) in named.items():
        if value is None:
            continue
        if key in values:
            raise InputError(f"{key} is given twice: leave out {option} or --set {key}")
        values[key] = value
    return values


def recipe_changes(earlier: str, now: str) -> list[str]:
    """Return `key old -> new` for every setting in which two texts of recipes differ.

    A setting that a text lacks has its default: recipes of earlier versions lack those that came later. The
    settings that leave the result the same do not count.
    """
    try:
        old, new = Recipe.from_toml_text(earlier), Recipe.from_toml_text(now)
    except InputError:
        return [] if earlier == now else ["of another version"]
    found = []
    for name, section in SECTIONS.items():
        for f in (f for f in fields(section) if f.name not in _SAME_RESULT):
            values = [getattr(getattr(recipe, name), f.name) for recipe in (old, new)]
            if values[0] != values[1]:
                before, after = ("none" if value is None else _toml(value) for value in values)
                found.append(f"{f.name} {before} -> {after}")
    return found


def changed_parts(earlier: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the parts in which the fingerprints of two runs differ, and how where that can be read."""
    found = []
    for part, text in now.items():
        old = earlier.get(part, "")
        if part == "recipe":
            changes = recipe_changes(old, text)
            found += [f"recipe ({', '.join(changes)})"] if changes else []
        elif old != text:
            found.append(f"{part} ({old} -> {text})" if part in _TOLD else part)
    return found


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


def _canonical(value: object, hint: Any) -> object:
    """Return a number as a float where the field takes floats."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if number and (hint is float or float in get_args(hint)) else value  # type: ignore[arg-type]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are legal in TOML; DEL is the one character that only TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
