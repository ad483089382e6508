"""The pairs of a run, read and checked before anything heavy is loaded. Imports no torch.

What is wrong with a file is said within a second or two, and not after torch was loaded.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from angle_train.data.guards import load_guards, own_texts
from angle_train.data.keep import load_to_keep
from angle_train.data.splits import RunData, assign_uses, load_sets, with_judged
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.train.presets import settle
from angle_train.train.processes import first_process_logs

log = logging.getLogger("angle.fit")


def load_data(options: FitOptions, reason: str = "") -> tuple[RunData, Recipe]:
    """Return the pairs of a run, and the recipe settled for them; `reason` is that of `fit`.

    Raises:
        InputError: A file cannot be read or used, or the recipe does not go with the pairs.
    """
    with first_process_logs():
        if reason:
            log.info("%s", reason)
        given = load_sets(
            options.data or (), options.human or (), options.dev or (), options.test or (), options.scale
        )
        recipe = settle(options.recipe, given.training)
        data = assign_uses(given, recipe, drop_leaks=options.drop_leaks)
        if options.judged:
            data = with_judged(data, options.judged)
        guarded, own = own_texts(data.train)
        kept = load_to_keep(options.keep or (), recipe.training.keep_general, own, [*data.dev, *data.test])
        guards = load_guards(options.guard or (), [data.train, *data.dev], guarded, options.scale)
    return replace(data, kept=kept, guards=guards), recipe
