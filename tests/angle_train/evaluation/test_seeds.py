"""Models that differ in their seed: which they are, what they are called, and how they are tested."""

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from angle_data.errors import InputError
from angle_train.evaluation.seeds import System, paired_test, seed_test, seeds_of, systems_of
from angle_train.recipe import Recipe


@pytest.fixture
def directories(tmp_path, monkeypatch):
    """Make directories below the working directory."""
    monkeypatch.chdir(tmp_path)

    def make(*names):
        for name in names:
            (tmp_path / name).mkdir(parents=True)

    return make


def test_seeds_stand_in_the_order_of_their_numbers(directories, tmp_path):
    directories("run-seed2", "run-seed10", "run-seed1", "other")
    (tmp_path / "run-seed3").write_text("no directory")
    system = seeds_of("run-seed*")
    assert system == System("run-seed*", ("run-seed1", "run-seed2", "run-seed10"), ("1", "2", "10"))
    assert seeds_of(f"{tmp_path}/run-seed*").members[2] == f"{tmp_path}/run-seed10"
    with pytest.raises(InputError, match=r"other\*: 1 directories match; it needs at least two, and quotes"):
        seeds_of("other*")
    with pytest.raises(InputError, match="0 directories match"):
        seeds_of("none*")


@pytest.mark.parametrize(
    ("pattern", "name", "seeds"),
    [
        ("m/a/seed-*", "seed-*", ("1", "2")),
        ("m/a/seed-?", "seed-?", ("1", "2")),
        ("m/[ab]/seed-1", "m/[ab]/seed-1", ("a", "b")),
        ("m/[!b]/seed-*", "m/[!b]/seed-*", ("a/1", "a/2")),
        ("m/*/seed-*", "m/*/seed-*", ("a/1", "a/2", "b/1", "b/2")),
        ("m/**/seed-2", "m/**/seed-2", ("a", "b")),
        ("m/a/s*d-*", "s*d-*", ("ee/1", "ee/2")),
    ],
)
def test_a_seed_is_what_the_wildcards_matched(directories, pattern, name, seeds):
    directories("m/a/seed-1", "m/a/seed-2", "m/b/seed-1", "m/b/seed-2")
    system = seeds_of(pattern)
    assert (system.name, system.seeds) == (name, seeds)


def test_baselines_may_be_models_or_patterns(directories):
    directories("a1", "a2", "b/m", "c/m")
    models = ["b/m", "c/m"]
    systems, base = systems_of(models, ["a?"], "c/m")
    assert [s.name for s in systems] == [*models, "a?"]
    assert base == System("c/m", ("c/m",))
    systems, base = systems_of(["b/m"], [], "a?")
    assert (systems[0].name, base.name, base.members, base.seeds) == ("m", "a?", ("a1", "a2"), ("1", "2"))
    assert systems_of(["b/m"], [], None)[1] is None


def test_systems_of_equal_last_parts_are_told_apart(directories):
    directories("m/a/seed-1", "m/a/seed-2", "m/b/seed-1", "m/b/seed-2", "x/seed-1")
    a, b = "m/a/seed-*", "m/b/seed-*"
    systems, base = systems_of([], [a, b], None)
    assert [(s.name, s.members[0]) for s in systems] == [
        ("a/seed-*", "m/a/seed-1"),
        ("b/seed-*", "m/b/seed-1"),
    ]
    systems, base = systems_of(["x/seed-1", "m/a/seed-1"], [b], a)
    names = [system.name for system in [base, *systems]]
    assert names == ["a/seed-*", "x/seed-1", "a/seed-1", "b/seed-*"]
    systems, base = systems_of(["x/seed-1"], [b, b], b)
    assert [s.name for s in systems] == ["seed-1", "seed-*"]
    assert systems[1] == base


def test_the_paired_test_is_students():
    before, after = [0.5, 0.6, 0.55, 0.58], [0.61, 0.66, 0.6, 0.69]
    found, known = paired_test(before, after), ttest_rel(after, before)
    assert found.p_value == pytest.approx(known.pvalue)
    low, high = known.confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    differences = np.subtract(after, before)
    assert (found.seeds, found.kind, found.mean) == (4, "paired", pytest.approx(np.mean(differences)))
    assert found.sd == pytest.approx(np.std(differences, ddof=1))
    assert paired_test([0.5], [0.6]) is None
    assert paired_test([0.5, 0.6, 0.7], [0.6, 0.7]) is None


@pytest.mark.parametrize("turned", [False, True])
def test_a_single_model_is_compared_with_every_seed(turned):
    one, many = [0.5], [0.6, 0.7, 0.62]
    found = paired_test(many, one) if turned else paired_test(one, many)
    known = ttest_rel([0.5] * 3, many) if turned else ttest_rel(many, [0.5] * 3)
    assert (found.seeds, found.p_value) == (3, pytest.approx(known.pvalue))
    assert found.mean == pytest.approx(-0.14 if turned else 0.14)


@pytest.mark.parametrize(
    ("before", "after", "mean"),
    [
        ([0.5], [0.75, 0.75], 0.25),
        ([0.1, 0.2, 0.3], [0.2, 0.3, 0.4], 0.1),
        ([61.0, 62.3], [71.1, 72.4], 10.1),
    ],
)
def test_differences_that_are_equal_but_for_rounding_have_no_p_value(before, after, mean):
    found = paired_test(before, after)
    assert (found.mean, found.low, found.high) == pytest.approx((mean, mean, mean))
    assert (found.sd, found.p_value) == (0, None)


def system(*seeds):
    return System("s", tuple(f"m{seed}" for seed in seeds), seeds)


def test_seeds_are_paired_by_what_they_are_not_by_their_place():
    found = seed_test(system("1", "2", "3"), [0.1, 0.2, 0.4], system("3", "1", "2"), [0.55, 0.2, 0.33])
    assert found == paired_test([0.1, 0.2, 0.4], [0.2, 0.33, 0.55])
    assert found.sd < 0.03


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (system("1", "2", "3"), system("1", "2", "4")),
        (System("s", ("a", "b", "c")), System("t", ("d", "e", "f"))),
        (System("s", ("a", "b", "c"), ("1", "1", "2")), System("t", ("d", "e", "f"), ("1", "2", "2"))),
        (system("1", "2", "3"), system("1", "2")),
    ],
)
def test_seeds_that_are_not_the_same_are_compared_unpaired(old, new):
    before, after = [0.1, 0.2, 0.4], [0.3, 0.35, 0.6][: len(new.members)]
    found = seed_test(old, before, new, after)
    known = ttest_ind(after, before, equal_var=False)
    assert (found.kind, found.seeds, found.sd) == ("unpaired", len(new.members), None)
    assert found.mean == pytest.approx(np.mean(after) - np.mean(before))
    assert (found.low, found.high) == pytest.approx(tuple(known.confidence_interval(0.95)))
    assert found.p_value == pytest.approx(known.pvalue)


def test_unpaired_seeds_without_spread_have_no_p_value():
    two, three = system("1", "2"), system("1", "2", "3")
    found = seed_test(two, [0.3, 0.1 + 0.2], three, [0.4, 0.4, 0.4])
    assert (found.p_value, found.low, found.high) == (None, pytest.approx(0.1), pytest.approx(0.1))
    assert seed_test(two, [0.3, 0.3], three, [0.4, 0.5, 0.6]).p_value == pytest.approx(
        ttest_rel([0.4, 0.5, 0.6], [0.3] * 3).pvalue
    )
    assert seed_test(system("1"), [0.3], system("2"), [0.4]) is None


def test_a_baseline_that_is_a_directory_is_no_pattern_whatever_its_name(directories):
    directories("m[1]", "tuned")
    systems, base = systems_of(["tuned"], [], "m[1]")
    assert [system.members for system in (*systems, base)] == [("tuned",), ("m[1]",)]


def test_models_of_several_recipes_are_no_seeds_of_one(directories, tmp_path):
    directories("run-1", "run-2", "run-3")
    for seed in (1, 2):
        recipe = Recipe().with_overrides({"seed": seed})
        (tmp_path / f"run-{seed}" / "recipe.toml").write_text(recipe.to_toml_text())
    assert len(seeds_of("run-*").members) == 3  # of one model the recipe is not known
    other = recipe.with_overrides({"epochs": 9, "angle_tau": 2.0})
    (tmp_path / "run-3" / "recipe.toml").write_text(other.to_toml_text())
    with pytest.raises(InputError) as caught:
        seeds_of("run-*")
    assert str(caught.value) == (
        "--seeds-of run-*: run-1 and run-3 differ in more than their seed, in objective.angle_tau, "
        "training.epochs; give models of one recipe"
    )
