"""How often `training.choosing` takes a tuned model that is no better, and how often it finds one that is.

    python benchmarks/training/operating_curve.py [--gains 0 0.1] [--worlds 400] [--pairs 8 16 --each 4]
    … --judged 300 --grader 0.88 --favours 0.5   # so many pairs that a language model graded, too
    … --refused 0.5                              # guards refuse so many of the candidates
    … --texts 60                                 # the pairs are among so many texts
    … --hubs 10                                  # each pair has one of so many texts, and one of its own
    … --gains 0.2 --flat                         # all tuned weights are equally good: is the plan replaced?

Simulated are similarities of a backbone that correlates with the gold scores by 0.6 and of tuned weights
after 12 evaluations, whose true gain grows up to the one named (or falls to it); noise is shared by weights
that are close to each other, and the parts of k-fold shift it. With merging, 6 evaluations with 5 shares of
the backbone each. With `--texts` both ends of a pair are drawn from so many, with `--hubs` the first, and
half of what a correlation leaves open is of the texts: of each its gold scores and every model's similarities
have an effect of their own. With `--each` half of it is of the source.
A grader's grades correlate with the gold scores by `--grader`; of its errors, so large a share as `--favours`
are those of the fully tuned weights. Guards refuse at random. `maximum` is the rule of earlier releases: the
best figure, if it exceeds the backbone's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import options, save_results  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.stats import norm, spearmanr  # noqa: E402

from angle_train.data.judged import FEWEST_JUDGED, JudgedPairs  # noqa: E402
from angle_train.data.pairs import PairSet  # noqa: E402
from angle_train.evaluation.judged import no_help  # noqa: E402
from angle_train.evaluation.sharing import Sharing  # noqa: E402
from angle_train.evaluation.statistics import draw_figures, interval_around, spearman_of  # noqa: E402
from angle_train.training.choosing import MOST_RESAMPLES, Candidate, choose  # noqa: E402

Array = NDArray[np.float64]
PAIRS = (30, 50, 100, 200)
GAINS = (-0.10, 0.0, 0.03, 0.05, 0.10)
_SPEARMAN = 0.6
_UNLIKE = 0.4  # share of the noise in which fully tuned weights and the backbone differ
_OWN = 0.02  # share of the noise that is of one evaluation alone
_SHIFT = 0.1  # of a part's similarities, in standard deviations: another model measured it

Ends = NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """What is the same in all worlds: see the options of the same names."""

    each: int = 1
    judged: int = 0
    grader: float = 0.88
    favours: float = 0.0
    refused: float = 0.0
    texts: int = 0
    hubs: int = 0
    flat: bool = False


def ends_of(generator: np.random.Generator, pairs: int, setting: Setting) -> Ends:
    """Return the numbers of the two texts of each pair (B, 2); all differ without `texts` and `hubs`."""
    texts, hubs = setting.texts, setting.hubs
    if hubs:
        return np.stack([np.arange(pairs) % hubs, hubs + np.arange(pairs)], axis=1)
    if not texts:
        return np.arange(2 * pairs).reshape(pairs, 2)
    first = generator.integers(texts, size=pairs)
    return np.stack([first, (first + 1 + generator.integers(texts - 1, size=pairs)) % texts], axis=1)


def normal(generator: np.random.Generator, columns: int, ends: Ends, each: int) -> Array:
    """Return columns (C, B) of mean 0 and variance 1, half of which is of the pair, half of what it shares.

    That is its two texts, or the source that it has with `each` pairs; nothing if no pair shares any.
    """
    own, shared = generator.standard_normal((columns, len(ends))), 0.0
    if ends.max() < 2 * len(ends) - 1:
        shared = generator.standard_normal((columns, ends.max() + 1))[:, ends].sum(axis=-1) / 2
    elif each > 1:
        source = np.arange(len(ends)) // each
        shared = generator.standard_normal((columns, source.max() + 1))[:, source] * np.sqrt(0.5)
    else:
        return own
    found: Array = own * np.sqrt(0.5) + shared
    return found


def world(
    generator: np.random.Generator,
    ends: Ends,
    evaluations: int,
    shares: Sequence[float],
    gain: float,
    setting: Setting,
) -> tuple[Array, Array, list[int], Array]:
    """Return gold scores (B,), similarities (C, B), rungs (C,) and true correlations (C,); backbone first.

    `ends` are the texts of the pairs. The gain grows up to `gain`; where it is `flat`, all tuned
    weights have it.
    """
    moved = [0.0, *((e / evaluations) * (1 - share) for e in range(evaluations, 0, -1) for share in shares)]
    at, of = np.array(moved), np.array([0, *np.repeat(range(1, evaluations + 1), len(shares))])
    alike = (1 - _OWN) * (1 - _UNLIKE * np.abs(at[:, None] - at)) + _OWN * (of[:, None] == of)
    own = normal(generator, len(at), ends, setting.each)
    noise = np.linalg.cholesky(alike + 1e-9 * np.eye(len(at))) @ own
    gold = normal(generator, 1, ends, setting.each)[0]
    true = _SPEARMAN + gain * (at > 0 if setting.flat else at)
    similarity = true[:, None] * gold + np.sqrt(1 - true**2)[:, None] * noise
    similarity += _SHIFT * at[:, None] * generator.standard_normal(5)[np.arange(len(ends)) % 5]
    rungs = [0] + [3 if share else 1 + (e > 0) for e in range(evaluations) for share in shares]
    return np.round(5 * norm.cdf(gold)), similarity, rungs, true


def graded(generator: np.random.Generator, gold: Array, tuned: Array, setting: Setting) -> Array:
    """Return a language model's grades (B,) of pairs with these gold scores and tuned similarities."""
    truth, errors = ((column - column.mean()) / column.std() for column in (gold, tuned))
    errors -= truth * (errors @ truth) / len(truth)
    own = generator.standard_normal(len(gold))
    wrong = setting.favours * errors / errors.std() + np.sqrt(1 - setting.favours**2) * own
    found: Array = setting.grader * truth + np.sqrt(1 - setting.grader**2) * wrong
    return found


def pair_set(gold: Array, ends: Ends, setting: Setting) -> PairSet:
    """Return the pairs of a world, without their similarities."""
    first, second = (list(map(str, side)) for side in ends.T.tolist())
    sources = [f"{i // setting.each}" for i in range(len(gold))] if setting.each > 1 else None
    return PairSet("pairs", first, second, gold, np.ones(len(gold)), source_ids=sources)


def rule(
    gold: Array,
    similarity: Array,
    rungs: Sequence[int],
    ends: Ends,
    setting: Setting,
    generator: np.random.Generator,
) -> int:
    """Return the candidate that the toolkit takes; a language model alone graded the last pairs."""
    n, pairs = len(gold) - setting.judged, pair_set(gold, ends, setting)
    own, judged = pairs.take(list(range(n)), "own"), None
    if setting.judged:
        grades = graded(generator, gold, similarity[1], setting)
        rest = replace(pairs, score=grades).take(list(range(n, len(gold))), "judged")
        judged = JudgedPairs("grader", grades[:n], rest)
        judged = None if no_help(own, judged, FEWEST_JUDGED) else judged  # `fit` wants `FEWEST_TO_CHOOSE`
    refused = generator.random(len(rungs)) < setting.refused
    candidates = [
        Candidate(0 if number == 0 else 1, rung, [column[:n], column[n:]], refused=bool(number and lost))
        for number, (rung, column, lost) in enumerate(zip(rungs, similarity, refused, strict=True))
    ]
    return choose(candidates, [own], judged).chosen


def maximum(gold: Array, similarity: Array, _: object, __: object, setting: Setting, ___: object) -> int:
    """Return the candidate with the highest figure by people's grades."""
    n = len(gold) - setting.judged
    return int(np.argmax([spearmanr(gold[:n], column[:n]).statistic for column in similarity]))


def covers(pairs: PairSet, before: Array, after: Array) -> bool:
    """Return whether the 95 % interval that is told of a gain holds 0, the truth where there is none."""
    first, second = draw_figures([spearman_of(pairs.score, one) for one in (before, after)], MOST_RESAMPLES)
    gain = second.minus(first)
    interval = interval_around(gain.value, Sharing([pairs]).widened(gain))
    return interval.low <= 0 <= interval.high


RULES: dict[str, Callable[..., int]] = {"rule": rule, "maximum": maximum}


def simulate(worlds: int, gains: Sequence[float], sizes: Sequence[int], setting: Setting) -> dict[str, Any]:
    """Return how often a tuned model is taken, and its true gain, by rule, kind of run, pairs and gain."""
    found: dict[str, Any] = {}
    kinds = {"checkpoints": (12, (0.0,)), "with merging": (6, (0.0, 0.2, 0.4, 0.6, 0.8))}
    for (name, (evaluations, shares)), pairs, gain in product(kinds.items(), sizes, gains):
        unit, taken, replaced, held = f"{name}, {pairs} pairs, true gain {gain:+.2f}", [], 0, 0
        null = not gain and not setting.judged  # the truth that an interval is to hold is known
        for number in range(worlds):
            seeds = [number, pairs, round(1000 + 1000 * gain), evaluations]
            generator = np.random.default_rng(seeds)
            ends = ends_of(generator, pairs + setting.judged, setting)
            made = world(generator, ends, evaluations, shares, gain, setting)
            chosen = [choice(*made[:3], ends, setting, generator) for choice in RULES.values()]
            replaced += chosen[0] > 1
            if null:
                held += covers(pair_set(made[0], ends, setting), *made[1][:2])
            taken.append([made[3][one] - _SPEARMAN if one else np.nan for one in chosen])
        adopted = (~np.isnan(taken)).mean(axis=0).tolist()
        worth = (np.nansum(taken, axis=0) / worlds).tolist()
        plan = replaced / worlds
        found[unit] = {
            "rules": list(RULES),
            "adopted": adopted,
            "gain": worth,
            "replaced": plan,
            "covered": held / worlds if null else None,
        }
        also = f", other weights than the planned ones {plan:.2f}" if setting.flat else ""
        also += f", coverage of the planned end's interval {held / worlds:.2f}" if null else ""
        print(f"{unit}: adopted {adopted[0]:.2f}, by the maximum {adopted[1]:.2f}{also}", flush=True)
    return found


def main() -> None:
    """Print how often tuned models are taken."""
    parser = options(__doc__)
    parser.add_argument("--gains", type=float, nargs="+", default=GAINS, help="true ones")
    parser.add_argument("--worlds", type=int, default=400, help="for each figure")
    parser.add_argument("--pairs", type=int, nargs="+", default=PAIRS, help="held out")
    parser.add_argument("--each", type=int, default=1, help="pairs of a source")
    parser.add_argument("--judged", type=int, default=0, help="pairs that a language model alone graded")
    parser.add_argument("--grader", type=float, default=0.88, help="correlation of its grades with gold")
    parser.add_argument(
        "--favours", type=float, default=0.0, help="share of its errors that tuned weights make"
    )
    parser.add_argument("--refused", type=float, default=0.0, help="share of candidates that guards refuse")
    parser.add_argument("--texts", type=int, default=0, help="that all pairs are among; default all differ")
    parser.add_argument("--hubs", type=int, default=0, help="texts of which each pair has one")
    parser.add_argument("--flat", action="store_true", help="all tuned weights are equally good")
    asked = parser.parse_args()
    if (asked.each > 1) + bool(asked.texts) + bool(asked.hubs) > 1:
        parser.error("give one of --each, --texts and --hubs: pairs share one kind of thing here")
    setting = Setting(
        asked.each,
        asked.judged,
        asked.grader,
        asked.favours,
        asked.refused,
        asked.texts,
        asked.hubs,
        asked.flat,
    )
    save_results("operating-curve", simulate(asked.worlds, asked.gains, asked.pairs, setting))


if __name__ == "__main__":
    main()
