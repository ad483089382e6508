"""The pairs of a run, read and checked before anything heavy is loaded. Imports no torch.

What is wrong with a file is said within a second or two, and not after torch was loaded. Only a teacher that
scores pairs loads it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path

from angle_data.calling.options import check_named_once
from angle_data.errors import InputError
from angle_train.data.guards import load_guards, own_texts
from angle_train.data.judged import FEWEST_TO_CHOOSE, ONE_SET, halves, holds_any, load_judged, match_judged
from angle_train.data.keep import load_to_keep, load_to_stay
from angle_train.data.pairs import PairSet
from angle_train.data.search_set import load_dev_searches, load_searches
from angle_train.data.splits import RunData, assign_uses, load_sets
from angle_train.evaluation.judged import no_help
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.training.presets import settle
from angle_train.training.processes import first_process_logs

log = logging.getLogger("angle.fit")

_MEASURED = ("human", "dev", "test", "dev_search", "test_search", "guard")
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
        check_given_once(options)
        given = load_sets(options)
        searches = load_searches(options.test_search or ())
        dev_searches = load_dev_searches(options.dev_search or ())
        searched = [found.pairs() for found in (*searches, *dev_searches)]
        if options.teacher_pairs and options.teacher is None:
            raise InputError("--teacher-pairs are for a teacher to score; give --teacher MODEL too")
        if options.teacher:
            from angle_train.training.teacher import with_teacher

            given = with_teacher(given, options, searched)
        recipe = settle(options.recipe, given.deciding)
        data = assign_uses(
            given, recipe, drop_leaks=options.drop_leaks, searches=searches, dev_searches=dev_searches
        )
        if len(data.train) < 2:
            raise InputError(f"{data.train.name}: 1 pair cannot train; give at least two, better hundreds")
        for pairs in (data.train, *data.dev, *data.test):
            warn_of_numbers(pairs)
        if options.judged:
            data = with_judged(data, options.judged, dev_by_people=bool(options.dev))
        guarded, own = own_texts(data.train)
        own = [] if options.teacher else own  # how alike these are is for the teacher to say
        learned = [data.train, *data.chose]
        guards = load_guards(options.guard or (), learned, guarded, options.scale, data.test)
        held = [guard.pairs for guard in guards if guard.kind == "labelled"]
        measured = [*data.dev, *data.test, *searched, *held]
        training, keep = recipe.training, options.keep or ()
        if training.distil_epochs:
            kept = load_to_stay(
                keep, training.keep_general, dict.fromkeys((*data.train.text1, *data.train.text2)), measured
            )
        else:
            kept = load_to_keep(keep, training.keep_general, own, measured)
        data = replace(data, kept=kept, guards=guards)
        if training.distil_epochs and kept is None:
            log.warning(
                "warning: distil_epochs has no effect, since no texts of other kinds are kept; give --keep "
                "FILE, or --set keep_general=true"
            )
    return data, recipe


def check_given_once(options: FitOptions) -> None:
    """Raise an InputError if a file is given twice to one option that measures: it would count twice.

    Training pairs may be given twice, which makes them weigh more.
    """
    for name in _MEASURED:
        check_named_once(map(Path, getattr(options, name) or ()), f"--{name.replace('_', '-')} ")


def with_judged(data: RunData, spec: str, *, dev_by_people: bool) -> RunData:
    """Return the data of a run with what a language model says of its test and dev pairs.

    See `judged.load_judged`. Dev pairs take part if people graded them, there is one set of them, and the
    language model's grades are of help. What trains, chooses or tests is left out of the pairs that it alone
    graded; the others serve either the test or the dev pairs, by halves.

    Raises:
        InputError: There is not one set of test pairs, or without any of dev pairs, or it has no pairs in
            common with what was judged.
    """
    sole = data.dev[0] if dev_by_people and len(data.dev) == 1 and not data.dev_searches else None
    if len(data.test) > 1 or not (data.test or sole):
        several = dev_by_people and len(data.dev) > 1 and not data.test
        neither = not data.test and not data.dev
        wanted = "--dev" if several else "--test or one --dev" if neither else "--test"
        raise InputError(ONE_SET.format(wanted))
    judged = load_judged(spec)
    dev = None
    if sole is not None and (not data.test or holds_any(judged, sole)):
        dev = match_judged(spec, sole, [data.train, *data.test], judged)
        if why := no_help(sole, dev, FEWEST_TO_CHOOSE):
            log.info("%s chooses nothing: %s; people's grades alone choose", dev.grader, why)
            dev = None
    if not data.test:
        return replace(data, judged_dev=dev)
    test = match_judged(spec, data.test[0], [data.train, *data.chose], judged)
    if dev is None or len(test.rest) < 2:
        return replace(data, judged=test)
    to_choose, to_test = halves(test.rest)
    log.info("%s: %d of the pairs that it alone graded help to choose, %d to test", dev.grader,
             len(to_choose), len(to_test))  # fmt: skip
    return replace(data, judged=replace(test, rest=to_test), judged_dev=replace(dev, rest=to_choose))


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
