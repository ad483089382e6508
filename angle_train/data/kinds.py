"""What training pairs say of their recipe: which it is, and what it takes where it states nothing.

Imports no torch.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from angle_data.errors import InputError
from angle_data.records import PURPOSES
from angle_data.text import jaccard, words
from angle_train.data.pairs import DEGREES, GRADES, POLARITY, RANDOM, PairSet, name_of
from angle_train.data.sources import stated_purpose
from angle_train.recipe import AUTO, Recipe, find_recipe

log = logging.getLogger("angle.fit")

_COSINE = {"cosine_weight": 1.0, "in_batch_weight": 0.0, "angle_weight": 0.0}
_IN_BATCH = {"cosine_weight": 0.0, "in_batch_weight": 1.0, "angle_weight": 0.0}
_REST = {"cosine_tau": 0.05, "in_batch_tau": 0.05, "angle_tau": 0.1}
_REST |= {"positive_score": 0.8, "negative_score": 0.0}
_LENGTH = {"learning_rate": 1e-4, "epochs": 3.0}
# Scores that were shrunk: a 4 of 5 may be just below 0.8, a 0 just above 0.
_DEGREES = _IN_BATCH | _REST | _LENGTH | {"cosine_weight": 0.2, "positive_score": 0.75, "negative_score": 0.1}

PRESETS: dict[str, dict[str, float]] = {
    "graded": _COSINE | _REST | _LENGTH | {"cosine_tau": 0.1},
    "degrees": _DEGREES,
    "mixed": _DEGREES,
    "polarity": _IN_BATCH | _REST | _LENGTH | {"cosine_weight": 0.05},
    "binary": _IN_BATCH | _REST | _LENGTH | {"cosine_weight": 0.2},
    "near_misses": _COSINE | _REST | _LENGTH,
    "positives": _IN_BATCH | _REST | _LENGTH,
    "papers": dict.fromkeys(_COSINE, 1.0) | _REST | {"angle_tau": 1.0, "learning_rate": 5e-5, "epochs": 3.0},
}
"""Kind of labels, as `[objective] loss` names it -> the values that a recipe may leave open.

`graded`, `binary`, `near_misses` and `polarity` were chosen on dev pairs by
`benchmarks/training/objectives.py`, with small encoders, most with one seed; `positives` was not measured,
`degrees` and `mixed` by a few trials (benchmarks/log).
`benchmarks/log` has the figures. By the two scores, degrees 5 and 4 are positives of the in-batch
term; 3, 2 and 1, and grades as high, are neither positives nor negatives of their text.
The angle term has weight 0 in all but `papers`: at the papers' temperature of 1 its gradient is 1 to 6 % of
the cosine term's, and at 0.05 to 0.1, where it acts, four dev sets were ranked 0.2 to 0.4 better with it on
average, which one seed cannot tell from nothing. `papers` was the default of earlier releases: the papers'
three terms and temperatures.
"""

_WRITTEN = {"degrees", "mixed", "polarity"}  # kinds that an LLM wrote
_LEAST_STEPS, _MOST_EPOCHS = 60, 20
_POLARITIES = 3  # synonym, antonym and random; more scores than these are grades
_MOST = 0.9  # of what an LLM supervised, in one way: the rest makes no difference
# Of `nearness_of_negatives`: from where on, pairs of each score, characters of a text, standard errors.
_NEAR_MISSES, _FEWEST, _LOOKED_AT, _READ, _CLEARLY = 0.5, 30, 1000, 2000, 4


_KIND_OF = {POLARITY: "polarity", DEGREES: "degrees", GRADES: "graded"}


def kind_of(pairs: PairSet) -> tuple[str, str]:
    """Return the kind of labels of training pairs, a key of `PRESETS`, and what says so.

    Whatever most pairs are decides: few graded pairs beside many that an LLM wrote make no difference.
    """
    total, counts = len(pairs), Counter(pairs.supervision or ())
    by_llm = [name for name, _ in counts.most_common() if name in _KIND_OF]
    supervised = sum(counts[name] for name in by_llm)
    if by_llm and 2 * (supervised + counts[RANDOM]) > total:
        said = ", ".join(f"{count:,} {name or 'that do not say'}" for name, count in counts.most_common())
        if counts[by_llm[0]] < _MOST * supervised:
            return "mixed", said
        own = [name in (by_llm[0], RANDOM) for name in pairs.supervision or ()]
        scores = len(np.unique(pairs.score[own]))
        if by_llm[0] == POLARITY and scores > _POLARITIES:
            return "degrees", f"{said}, with {scores} scores"
        return _KIND_OF[by_llm[0]], said
    scores = len(np.unique(pairs.score))
    if scores == 1:
        return "positives", f"all {total} pairs have one score"
    if scores == 2:
        share = nearness_of_negatives(pairs)
        why = f"; beyond chance, the lower share {share:.0%} as many words as the higher" if share > 0 else ""
        return "near_misses" if share >= _NEAR_MISSES else "binary", f"{total} pairs have two scores{why}"
    return "graded", f"{total} pairs have {scores} scores"


def nearness_of_negatives(pairs: PairSet) -> float:
    """Return how many words pairs of the lowest score share, as a share of what those of the highest do.

    Both are mean overlaps (Jaccard) less that of texts put together by chance, over at most 1,000 pairs of
    each score. 0 where words say nothing, or there are fewer than 30 pairs of a score; about 0 where
    negatives are strangers; 1 where words do not tell the two apart: the negatives are near misses. The
    in-batch term, whose negatives are strangers, does harm there
    (benchmarks/log/objectives.md).
    """
    places = [np.flatnonzero(pairs.score == end) for end in (pairs.score.min(), pairs.score.max())]
    if min(map(len, places)) < _FEWEST:
        return 0.0
    low, high = (own[np.linspace(0, len(own) - 1, min(len(own), _LOOKED_AT)).astype(int)] for own in places)
    picked = np.concatenate([low, high])
    first, second = ([words(texts[i][:_READ]) for i in picked] for texts in (pairs.text1, pairs.text2))
    strangers = np.random.default_rng(0).permutation(len(picked))
    shared = np.array([jaccard(a, b) for a, b in zip(first, second, strict=True)])
    chance = np.array([jaccard(a, second[i]) for a, i in zip(first, strangers, strict=True)])
    near, far = shared[: len(low)], shared[len(low) :]
    excess = far.mean() - chance.mean()
    if excess <= _CLEARLY * np.sqrt(far.var() / len(far) + chance.var() / len(chance)):
        return 0.0
    return float((near.mean() - chance.mean()) / excess)


def choose_recipe(given: str | Recipe | None, data: Sequence[str]) -> tuple[Recipe, str]:
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
    said = {spec: purpose for spec in data if (purpose := stated_purpose(spec))}
    made = " and ".join(f"{name_of(spec)} for {purpose}" for spec, purpose in said.items())
    purposes = sorted(set(said.values()))
    if given is None and len(purposes) > 1:
        raise InputError(
            f"must opposites be kept apart? The pairs disagree: {made}; --recipe "
            f"{' or --recipe '.join(purposes)} decides"
        )
    name = given or (purposes or ["default"])[0]
    recipe = Recipe.from_toml(find_recipe(name))
    if given is None and purposes:
        return recipe, f"recipe {name}: ensemble --purpose made {made}"
    if name in PURPOSES and set(purposes) - {name}:
        return recipe, f"recipe {name}, as given, although ensemble --purpose made {made}"
    return recipe, ""


def settle(recipe: Recipe, pairs: PairSet) -> Recipe:
    """Return the recipe with a kind of labels for `auto`, and values for all that it leaves open.

    Says in the log which kind it is, why, and what was chosen for it. Few pairs that an LLM wrote train for
    more epochs than `PRESETS` has: about 60 steps, but at most 20 epochs. On 50 STS-B sentences that ranked
    the dev pairs 0.6 to 5.0 better, on 100 0.8 to 1.4 (benchmarks/log).

    Args:
        recipe: What it states stays as it is.
        pairs: What will train; their kind counts where the recipe's is `auto`.

    Raises:
        InputError: What the recipe states does not go with the values of that kind.
    """
    automatic = recipe.objective.loss == AUTO
    kind, why = kind_of(pairs) if automatic else (str(recipe.objective.loss), "as the recipe says")
    stated = asdict(recipe.objective) | asdict(recipe.training)
    chosen = {key: value for key, value in PRESETS[kind].items() if stated[key] is None}
    if "epochs" in chosen and kind in _WRITTEN:
        step = recipe.training.batch_size * recipe.training.gradient_accumulation
        needed = math.ceil(_LEAST_STEPS * step / max(len(pairs), 1))
        chosen["epochs"] = float(max(chosen["epochs"], min(needed, _MOST_EPOCHS)))
    if chosen:
        kept = {key: stated[key] for key in PRESETS[kind] if key not in chosen}
        also = f"; the recipe states {_in_words(kept)}" if kept else ""
        log.info("labels: %s (%s); chosen for them: %s%s", kind, why, _in_words(chosen), also)
    elif automatic:
        log.info("labels: %s (%s); the recipe states everything that depends on them", kind, why)
    try:
        return recipe.with_overrides({"loss": kind, **chosen})
    except InputError as error:
        raise InputError(f"{error} (for labels of the kind {kind}: {_in_words(chosen)})") from None


def _in_words(values: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {value:g}" for key, value in values.items())
