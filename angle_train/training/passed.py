"""A user's own training arguments: what of them is the recipe's, what else passes, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from angle_data.errors import InputError
from angle_train.recipe import ARGS
from angle_train.trainer_arguments import IGNORED, RECIPE_KEYS, REFUSED

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
        return dict(given or {})
    usual = type(given)(output_dir=given.output_dir)
    names = [field.name for field in fields(given) if field.init]
    return {name: getattr(given, name) for name in names if getattr(given, name) != getattr(usual, name)}


def read_arguments(given: TrainingArguments | Mapping[str, Any] | None) -> Passed:
    """Return what training arguments say, as a recipe says it.

    Args:
        given: `TrainingArguments`, those of sentence-transformers too, or a mapping with their names.

    Raises:
        InputError: An argument would break what a run rests on; the line names it and says why.
    """
    arguments = {name: value for name, value in stated(given).items() if value is not None}
    for name, why in REFUSED.items():
        if name in arguments:
            raise InputError(f"args: {name} cannot be set here: {why}; leave it out")
    for name in IGNORED:
        arguments.pop(name, None)
    max_steps = arguments.pop("max_steps", 0)
    report_to = arguments.pop("report_to", "none")
    trackers = [report_to] if isinstance(report_to, str) else list(report_to)
    warmup = arguments.pop("warmup_steps", None)
    if warmup is not None:
        if warmup >= 1:
            raise InputError("args: warmup_steps cannot be set here: give warmup_ratio, a share of all steps")
        arguments.setdefault("warmup_ratio", float(warmup))
    recipe = {}
    for name, key in RECIPE_KEYS.items():
        value = arguments.pop(name, None)
        if key == "precision":  # there a switch for each
            value = name if value else None
        if value is not None:
            recipe[key] = value
    if arguments:
        recipe[ARGS] = _writable(arguments)
    steps = max_steps if max_steps and max_steps > 0 else None
    return Passed(recipe, [name for name in trackers if name != "none"], steps)


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
