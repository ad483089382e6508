"""A user's own training arguments: what of them is the recipe's, what else passes, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from angle_data.errors import InputError
from angle_train.recipe import ARGS
from angle_train.trainer_arguments import IGNORED, RECIPE_KEYS, REFUSED, tracker_names

if TYPE_CHECKING:
    from transformers import TrainingArguments


class Passed(NamedTuple):
    """What training arguments say.

    Attributes:
        recipe: Values of the recipe, by key; under `args` those of its table `[arguments]`.
        trackers: Programs that the run is reported to.
        max_steps: How many optimiser steps to take, in place of epochs; None for as many as the epochs have.
    """

    recipe: dict[str, Any]
    trackers: list[str]
    max_steps: int | None = None


def stated(given: TrainingArguments | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return by name what training arguments say, apart from what is the library's default."""
    if given is None or isinstance(given, Mapping):
        return _without_none(given or {})
    from transformers import TrainingArguments

    if not isinstance(given, TrainingArguments):
        raise InputError(
            f"args: got {type(given).__name__}; give TrainingArguments, or a dictionary of names and values, "
            "such as {'weight_decay': 0.1}"
        )
    usual = type(given)(output_dir=given.output_dir)
    names = [field.name for field in fields(given) if field.init]
    said = {name: getattr(given, name) for name in names if getattr(given, name) != getattr(usual, name)}
    return _without_none(said)


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def read_arguments(given: TrainingArguments | Mapping[str, Any] | None) -> Passed:
    """Return what training arguments say, as a recipe says it.

    Args:
        given: `TrainingArguments`, those of sentence-transformers too, or a mapping with their names.

    Raises:
        InputError: An argument would break what a run rests on; the line names it and says why.
    """
    arguments = stated(given)
    for name, why in REFUSED.items():
        if name in arguments:
            raise InputError(f"args: {name} cannot be set here: {why}; leave it out")
    _check_together(arguments)
    for name in IGNORED:
        arguments.pop(name, None)
    max_steps = _number(arguments, "max_steps")
    trackers = _names(arguments.pop("report_to", "none"))
    _settle_warmup(arguments)
    recipe = {}
    for name, key in RECIPE_KEYS.items():
        value = arguments.pop(name, None)
        if key == "precision":  # there a switch for each
            value = name if value else None
        if value is not None:
            recipe[key] = value
    if arguments:
        recipe[ARGS] = _writable(arguments)
    if max_steps is not None and not max_steps.is_integer():
        raise InputError(f"args: max_steps must be a whole number, got {max_steps}")
    steps = int(max_steps) if max_steps and max_steps > 0 else None
    return Passed(recipe, [name for name in trackers if name != "none"], steps)


def _settle_warmup(arguments: dict[str, Any]) -> None:
    """Put a share of warm-up where recipes have it; the library has two places, and 0 in one says nothing."""
    steps, ratio = _number(arguments, "warmup_steps"), arguments.get("warmup_ratio")
    if steps is not None and ratio is None:
        arguments["warmup_ratio"] = steps
    elif steps and isinstance(ratio, (int, float)) and ratio != steps:
        raise InputError("args: warmup_steps and warmup_ratio say different shares; leave out one")


def _check_together(arguments: Mapping[str, Any]) -> None:
    """Raise an InputError for switches that do not go together, and what no run has."""
    for name in ("bf16", "fp16"):
        if not isinstance(arguments.get(name, False), bool):
            raise InputError(f"args: {name} must be True or False, got {arguments[name]!r}")
    if arguments.get("bf16") and arguments.get("fp16"):
        raise InputError("args: bf16 and fp16 are both on; leave out one")
    warmup = arguments.get("warmup_steps")
    if isinstance(warmup, (int, float)) and not 0 <= warmup < 1:
        raise InputError("args: warmup_steps cannot be set here: give warmup_ratio, a share of all steps")


def _number(arguments: dict[str, Any], name: str) -> float | None:
    """Take a number out of the arguments; None where there is none."""
    value = arguments.pop(name, None)
    real = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if value is not None and not real:
        raise InputError(f"args: {name} must be a number, got {value!r}")
    return None if value is None else float(value)


def _names(report_to: Any) -> list[str]:
    """Return the names of programs that are given as one text or as several."""
    names = [report_to] if isinstance(report_to, str) else report_to
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InputError(f"args: report_to must be a name or a list of names, got {report_to!r}")
    found = [each for name in names for each in tracker_names(name)]
    if "all" in found:
        raise InputError("args: report_to cannot be 'all' here; name the programs")
    return found


def _writable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as a recipe is written; an InputError names one that no file can hold."""
    for name, value in arguments.items():
        try:
            json.dumps(value)
        except TypeError:
            kind = type(value).__name__
            raise InputError(
                f"args: {name} cannot be set here: a recipe is a file and cannot hold a {kind}; leave it out"
            ) from None
    found: dict[str, Any] = json.loads(json.dumps(arguments))  # members of enumerations become their names
    return found


def with_arguments(values: Mapping[str, Any], passed: Passed) -> dict[str, Any]:
    """Return the values of a recipe that a caller gives by their names and in training arguments.

    Raises:
        InputError: One is given in both ways.
    """
    if twice := sorted(values.keys() & passed.recipe.keys()):
        raise InputError(f"{twice[0]} is given twice, by its name and in args; leave one out")
    return {**passed.recipe, **values}
