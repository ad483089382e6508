"""Several models of one recipe that differ in their seed, taken as one system: spread and a test.

Two kinds of chance are kept apart: which items a test set happens to hold (the bootstrap's intervals) and
which seed a model happens to have (the standard deviation and Student's or Welch's test here). A seed is
what the wildcards of a pattern matched. Models that lie beside their `recipe.toml` must have one recipe.
"""

from __future__ import annotations

import glob
import re
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_train.recipe import Recipe

_WILDCARD = re.compile(r"\*\*/|\[!?\]?[^\]]*\]|[*?]+")
_ROUNDING = 1e-12  # of figures of at most about 1, which are sums of many
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class System:
    """What is compared: one model, or several that differ in their seed alone.

    Attributes:
        name: Of the system, for tables.
        members: Directories or hub ids, in the order of their seeds.
        seeds: The seed of each member; empty where they are not known.
    """

    name: str
    members: tuple[str, ...]
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeedTest:
    """The difference of two systems over their seeds.

    Attributes:
        seeds: How many; the smaller number where the systems have unlike ones.
        mean: Of the differences.
        sd: Their standard deviation; None where the seeds are not paired.
        low, high: 95 % interval of the mean difference over seeds.
        p_value: Two-sided; None where there is no spread and the test says nothing.
        kind: `paired`, Student's test seed by seed or of all seeds against a single model, or `unpaired`,
            Welch's test, where the systems do not have the same seeds.
    """

    seeds: int
    mean: float
    sd: float | None
    low: float
    high: float
    p_value: float | None
    kind: Literal["paired", "unpaired"] = "paired"

    def supports(self, delta: float) -> bool:
        """Return whether the interval over seeds lies on that side of 0 where `delta` is."""
        return self.low > 0 if delta > 0 else self.high < 0


def seeds_of(pattern: str) -> System:
    """Return the model directories that a pattern such as `runs/gis-seed*` names as one system.

    They are sorted by what the wildcards matched, numbers by their size: seed 2 before seed 10. The system is
    called by the last part of the pattern, or by all of it where a folder above has a wildcard too.

    Raises:
        InputError: It names fewer than two, or models whose recipes differ in more than the seed.
    """
    # What stands between the wildcards matches itself.
    literals = (re.escape(part) for part in _WILDCARD.split(pattern))
    wanted = re.compile("(.*)".join(literals))
    places = [place for place in glob.glob(pattern, recursive=True) if Path(place).is_dir()]
    matches = {place: wanted.fullmatch(place) for place in places}
    seeds = {
        place: "/".join(part.strip("/") for part in found.groups())
        for place, found in matches.items()
        if found
    }
    if len(seeds) < 2:
        raise InputError(
            f"--seeds-of {pattern}: {len(seeds)} directories match; it needs at least two, and quotes around "
            "the pattern so that the shell leaves it alone"
        )
    members = sorted(seeds, key=lambda place: (_natural(seeds[place]), place))
    _check_recipes(pattern, members)
    path = Path(pattern)
    name = pattern if glob.has_magic(str(path.parent)) else path.name
    return System(name, tuple(members), tuple(seeds[place] for place in members))


def _check_recipes(pattern: str, members: Sequence[str]) -> None:
    """Check that models have one recipe but for the seed, where a `recipe.toml` lies in their directory."""
    first: tuple[str, dict[str, Any]] | None = None
    for member in members:
        path = Path(member) / "recipe.toml"
        if not path.is_file():
            continue
        sections = asdict(Recipe.from_toml(path))
        sections.pop("description")
        values = {f"{name}.{key}": value for name, part in sections.items() for key, value in part.items()}
        first = first or (member, values)
        unlike = [key for key in values if values[key] != first[1][key] and key != "training.seed"]
        if unlike:
            raise InputError(
                f"--seeds-of {pattern}: {first[0]} and {member} differ in more than their seed, in "
                f"{', '.join(unlike)}; give models of one recipe"
            )


def systems_of(
    models: Sequence[str], patterns: Sequence[str], baseline: str | None
) -> tuple[list[System], System | None]:
    """Return the systems that single models and patterns of seeds stand for, and that of the baseline.

    Their names differ, see `short_names`.

    Args:
        models: Directories or hub ids, each a system.
        patterns: See `seeds_of`.
        baseline: Either of these.

    Raises:
        InputError: A pattern names fewer than two directories.
    """
    seeded = set(patterns)
    if baseline is not None and glob.has_magic(baseline) and not Path(baseline).is_dir():
        seeded.add(baseline)
    every = list(dict.fromkeys([*([] if baseline is None else [baseline]), *models, *patterns]))
    names = short_names(every)

    def system(spec: str) -> System:
        if spec not in seeded:
            return System(names[spec], (spec,))
        found = seeds_of(spec)
        return System(names[spec] if found.name != spec else spec, found.members, found.seeds)

    systems = {spec: system(spec) for spec in every}
    chosen = [systems[spec] for spec in dict.fromkeys([*models, *patterns])]
    return chosen, None if baseline is None else systems[baseline]


def short_names(models: Sequence[str]) -> dict[str, str]:
    """Return as many of the last parts of each id, path or pattern as tell it from the others."""
    names = {}
    for model in models:
        parts = Path(model).parts or (model,)
        tails = ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        others = [Path("/", other) for other in models if other != model]
        names[model] = next((tail for tail in tails if not _ends_so(tail, others)), model)
    return names


def _ends_so(tail: str, paths: Sequence[Path]) -> bool:
    count = len(Path(tail).parts)
    return any(path.parts[-count:] == Path(tail).parts for path in paths)


def seed_test(old: System, before: Sequence[float], new: System, after: Sequence[float]) -> SeedTest | None:
    """Return the test of a figure of `new` minus that of `old`, member by member in their order.

    Systems of the same seeds are paired by them; a single model is compared with every seed of the other.
    Else the test is Welch's. None where both are single models.
    """
    if len(before) == 1 or len(after) == 1:
        return paired_test(before, after)
    if old.seeds and len(set(old.seeds)) == len(old.seeds) and set(old.seeds) == set(new.seeds):
        by_seed = dict(zip(new.seeds, after, strict=True))
        return paired_test(before, [by_seed[seed] for seed in old.seeds])
    return _welch(before, after)


def paired_test(before: Sequence[float], after: Sequence[float]) -> SeedTest | None:
    """Return Student's test of after minus before; a single value is compared with every one of the other.

    None where there is no spread over seeds to judge by: two single values, or lists of unlike length.
    """
    most = max(len(before), len(after))
    old, new = (list(values) * (most if len(values) == 1 else 1) for values in (before, after))
    if most < 2 or len(old) != len(new):
        return None
    differences = [y - x for x, y in zip(old, new, strict=True)]
    mean, sd = statistics.mean(differences), statistics.stdev(differences)
    if _equal(differences):
        return SeedTest(most, mean, 0.0, mean, mean, None)
    from scipy.stats import ttest_1samp

    return SeedTest(most, mean, sd, *_judged(ttest_1samp(differences, 0)))


def _welch(before: Sequence[float], after: Sequence[float]) -> SeedTest:
    """Return Welch's test of the means of two samples of two values or more each."""
    mean, fewest = statistics.mean(after) - statistics.mean(before), min(len(before), len(after))
    if _equal(before) and _equal(after):
        return SeedTest(fewest, mean, None, mean, mean, None, "unpaired")
    from scipy.stats import ttest_ind

    with warnings.catch_warnings(action="ignore"):  # of one side that is constant, which the test allows
        test = ttest_ind(after, before, equal_var=False)
    return SeedTest(fewest, mean, None, *_judged(test), "unpaired")


def _judged(test: Any) -> tuple[float, float, float]:
    """Return the interval and the p-value of a t-test."""
    low, high = test.confidence_interval(_CONFIDENCE)
    return float(low), float(high), float(test.pvalue)


def _equal(values: Sequence[float]) -> bool:
    """Return whether values differ by no more than rounding."""
    return max(values) - min(values) <= _ROUNDING * max(1.0, *map(abs, values))


def _natural(text: str) -> list[str | int]:
    """Return a sort key with numbers by their size."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", text))]
