"""The pairs of a run, read and checked before anything heavy is loaded. Imports no torch.

What is wrong with a file is said within a second or two, and not after torch was loaded. Only a teacher that
scores pairs loads it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace

from angle_train.data.guards import load_guards, own_texts
from angle_train.data.keep import load_to_keep
from angle_train.data.pairs import PairSet
from angle_train.data.search_set import load_dev_searches, load_searches
from angle_train.data.splits import RunData, assign_uses, load_sets, with_judged
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.training.presets import settle
from angle_train.training.processes import first_process_logs

log = logging.getLogger("angle.fit")

_NUMBER = re.compile(r"\s*[-+]?\d[\d.,eE+-]*\s*")
_LOOKED_AT = 200


def load_data(options: FitOptions, reason: str = "") -> tuple[RunData, Recipe]:
    """Return the pairs of a run, and the recipe settled for them; `reason` is that of `fit`.

    Raises:
        InputError: A file cannot be read or used, or the recipe does not go with the pairs.
    """
    with first_process_logs():
        if reason:
            log.info("%s", reason)
        given = load_sets(options)
        searches = load_searches(options.test_search or ())
        dev_searches = load_dev_searches(options.dev_search or ())
        searched = [found.pairs() for found in (*searches, *dev_searches)]
        if options.teacher or options.teacher_pairs:
            from angle_train.training.teacher import with_teacher

            given = with_teacher(given, options, searched)
        recipe = settle(options.recipe, given.training)
        data = assign_uses(
            given, recipe, drop_leaks=options.drop_leaks, searches=searches, dev_searches=dev_searches
        )
        for pairs in (data.train, *data.dev, *data.test):
            warn_of_numbers(pairs)
        if options.judged:
            data = with_judged(data, options.judged)
        guarded, own = own_texts(data.train)
        own = [] if options.teacher else own  # how alike these are is for the teacher to say
        measured = [*data.dev, *data.test, *searched]
        kept = load_to_keep(options.keep or (), recipe.training.keep_general, own, measured)
        guards = load_guards(options.guard or (), [data.train, *data.chose], guarded, options.scale)
    return replace(data, kept=kept, guards=guards), recipe


def warn_of_numbers(pairs: PairSet) -> None:
    """Warn if the texts of a set of pairs are numbers, as where a column of ids was taken for the texts."""
    for side, texts in (("first", pairs.text1), ("second", pairs.text2)):
        seen = texts[:_LOOKED_AT]
        if len(seen) and all(map(_NUMBER.fullmatch, seen)):
            log.warning(
                "warning: %s: the %s texts are numbers, such as %r; check which columns hold the texts",
                pairs.name,
                side,
                seen[0],
            )
