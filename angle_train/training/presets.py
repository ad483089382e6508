"""What a recipe takes for the kind of labels where it states nothing. Imports no torch."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict

from angle_data.errors import InputError
from angle_train.data.kinds import kind_of
from angle_train.data.pairs import PairSet
from angle_train.recipe import AUTO, Recipe

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
_LEAST_STEPS = 60
_MOST_EPOCHS = 20


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
        step = recipe.training.batch_size * recipe.arguments["gradient_accumulation_steps"]
        needed = math.ceil(_LEAST_STEPS * step / max(len(pairs), 1))
        chosen["epochs"] = float(max(chosen["epochs"], min(needed, _MOST_EPOCHS)))
    if chosen:
        kept = {key: stated[key] for key in PRESETS[kind] if key not in chosen}
        also = f"; the recipe sets {_in_words(kept)}" if kept else ""
        log.info("labels: %s (%s); chosen for them: %s%s", kind, why, _in_words(chosen), also)
    elif automatic:
        log.info("labels: %s (%s); the recipe sets everything that depends on them", kind, why)
    try:
        return recipe.with_overrides({"loss": kind, **chosen})
    except InputError as error:
        raise InputError(f"{error} (for labels of the kind {kind}: {_in_words(chosen)})") from None


def _in_words(values: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {value:g}" for key, value in values.items())
