"""Which recipe `fit` uses: the one that is given, or that of what the pairs are for. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Sequence

from angle_data.calling.options import is_path
from angle_data.errors import InputError
from angle_data.records import PURPOSES
from angle_train.data.pairs import name_of
from angle_train.data.sources import stated_purpose
from angle_train.recipe import Recipe, find_recipe


def choose_recipe(given: str | os.PathLike[str] | Recipe | None, data: Sequence[str]) -> tuple[Recipe, str]:
    """Return the recipe for the pairs of `data`, and why it is that one, if there is something to say.

    Args:
        given: A recipe, or the name or file of one; None for that of what the pairs are for, see
            `sources.stated_purpose`: sources that do not say follow those that do, and if none does, it is
            `default`.
        data: Sources of training pairs.

    Raises:
        InputError: There is no such recipe, or the sources are for different purposes and none is given.
    """
    if isinstance(given, Recipe):
        return given, ""
    if given is not None and not is_path(given):
        raise InputError(
            f"recipe: got a {type(given).__name__}; give a built-in name, a .toml file or an "
            "angle_train.Recipe, and single values by their names, such as epochs=3"
        )
    said = {spec: purpose for spec in data if (purpose := stated_purpose(spec))}
    made = " and ".join(f"{name_of(spec)} for {purpose}" for spec, purpose in said.items())
    purposes = sorted(set(said.values()))
    if given is None and len(purposes) > 1:
        raise InputError(
            f"the pairs were made for different purposes: {made}; choose with --recipe "
            f"{' or --recipe '.join(purposes)}"
        )
    name = os.path.expanduser(given or (purposes or ["default"])[0])
    recipe = Recipe.from_toml(find_recipe(name))
    if given is None and purposes:
        who = "the pairs say what they are for:" if "search" in purposes else "ensemble --purpose made"
        return recipe, f"recipe {name}: {who} {made}"
    if name in PURPOSES and set(purposes) - {name}:
        return recipe, f"recipe {name}, as given, although ensemble --purpose made {made}"
    return recipe, ""
