"""Several models of one recipe that differ in their seed, taken as one system: spread and a paired test.

Two kinds of chance are kept apart: which items a test set happens to hold (the bootstrap's intervals) and
which seed a model happens to have (the standard deviation and Student's test here).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from angle_data.errors import InputError

__all__ = ["SeedTest", "System", "paired_test", "seeds_of", "short_names", "systems_of"]

_WILDCARDS = "*?["


@dataclass(frozen=True, slots=True)
class System:
    """What is compared: one model, or several that differ in their seed alone.

    Attributes:
        name: Of the system, for tables.
        members: Directories or hub ids, in the order of their seeds.
    """

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeedTest:
    """Differences between two systems, seed by seed, under Student's paired t-test.

    Attributes:
        seeds: How many.
        mean: Of the differences.
        sd: Their standard deviation.
        low, high: 95 % interval of the mean difference over seeds.
        p_value: Two-sided; None where all differences are equal and the test says nothing.
    """

    seeds: int
    mean: float
    sd: float
    low: float
    high: float
    p_value: float | None


def seeds_of(pattern: str) -> System:
    """Return the model directories that a pattern such as `runs/gis-seed*` names, sorted, as one system.

    Raises:
        InputError: It names fewer than two.
    """
    path = Path(pattern)
    at = next((i for i, part in enumerate(path.parts) if any(c in part for c in _WILDCARDS)), len(path.parts))
    root = Path(*path.parts[:at])
    rest = str(Path(*path.parts[at:]))
    found = sorted(str(p) for p in root.glob(rest) if p.is_dir()) if at < len(path.parts) else []
    if len(found) < 2:
        raise InputError(
            f"--seeds-of {pattern}: {len(found)} directories match; it needs at least two, and quotes around "
            "the pattern so that the shell leaves it alone"
        )
    return System(path.name if at == len(path.parts) - 1 else pattern, tuple(found))


def systems_of(
    models: Sequence[str], patterns: Sequence[str], baseline: str | None
) -> tuple[list[System], System | None]:
    """Return the systems that single models and patterns of seeds stand for, and that of the baseline.

    Args:
        models: Directories or hub ids, each a system.
        patterns: See `seeds_of`.
        baseline: Either of these.

    Raises:
        InputError: A pattern names fewer than two directories.
    """
    plain = baseline is not None and not any(character in baseline for character in _WILDCARDS)
    names = short_names(list(dict.fromkeys([*([baseline] if baseline and plain else []), *models])))
    systems = [System(names[model], (model,)) for model in dict.fromkeys(models)]
    systems += [seeds_of(pattern) for pattern in dict.fromkeys(patterns)]
    if baseline is None:
        return systems, None
    return systems, System(names[baseline], (baseline,)) if plain else seeds_of(baseline)


def short_names(models: Sequence[str]) -> dict[str, str]:
    """Return the last part of each id or path where that is unambiguous, else the whole."""
    last = [Path(model).name or model for model in models]
    return {
        model: short if last.count(short) == 1 else model for model, short in zip(models, last, strict=True)
    }


def paired_test(before: Sequence[float], after: Sequence[float]) -> SeedTest | None:
    """Return the test of after minus before; a single `before` is compared with every `after`.

    None where there is no spread over seeds to judge by: a single `after`, or lists of unlike length.
    """
    if len(before) == 1:
        before = list(before) * len(after)
    if len(after) < 2 or len(before) != len(after):
        return None
    from scipy.stats import t

    differences = [new - old for old, new in zip(before, after, strict=True)]
    mean, sd = statistics.mean(differences), statistics.stdev(differences)
    error = sd / len(differences) ** 0.5
    freedom = len(differences) - 1
    reach = float(t.ppf(0.975, freedom)) * error
    p_value = float(2 * t.sf(abs(mean) / error, freedom)) if error > 0 else None
    return SeedTest(len(differences), mean, sd, mean - reach, mean + reach, p_value)
