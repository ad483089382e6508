"""The rule that chooses among several candidates on held-out pairs."""

import numpy as np
import pytest

from angle_train.train.choosing import Choice, choose, what_pairs_show


def ranking(gold, quality, seed):
    """Similarities (B,) that correlate with the gold scores by `quality`."""
    noise = np.random.default_rng(seed).standard_normal(len(gold))
    return quality * gold + np.sqrt(1 - quality**2) * noise


GOLD = np.random.default_rng(0).standard_normal(300)
POOR, GOOD, BEST = ([ranking(GOLD, quality, seed)] for quality, seed in ((0.3, 1), (0.8, 2), (0.97, 3)))
NEARLY_GOOD = [GOOD[0] + 0.01 * np.random.default_rng(14).standard_normal(300)]


@pytest.mark.parametrize(
    ("candidates", "rungs", "lost", "chosen"),
    [
        ([POOR, GOOD], [0, 1], (), 1),
        ([GOOD, POOR], [0, 1], (), 0),
        ([GOOD, NEARLY_GOOD], [0, 1], (), 0),  # the simpler of two that chance could tell apart
        ([POOR, GOOD, NEARLY_GOOD], [0, 2, 1], (), 2),  # the simpler rung, though its figure may be lower
        ([POOR, GOOD, BEST], [0, 1, 2], (), 2),  # surely better than the simpler tuned one too
        ([GOOD, POOR, BEST], [0, 1, 2], (), 2),  # the plan failed, an alternative did not
        ([POOR, GOOD, BEST], [0, 1, 2], (2,), 1),  # the best cannot be had any more
        ([POOR, GOOD, BEST], [0, 1, 1], (), 2),  # the highest figure of one rung
        ([POOR], [0], (), 0),
    ],
)
def test_the_simplest_stays_unless_another_is_surely_better(candidates, rungs, lost, chosen):
    choice = choose([GOLD], candidates, rungs, lost)
    assert (choice.chosen, choice.compared) == (chosen, len(candidates) - 1)
    if chosen:
        assert choice.probability > 0.99


def test_equal_candidates_and_those_no_better_than_chance_are_not_chosen():
    assert choose([GOLD], [GOOD, GOOD], [0, 1]) == Choice(0, 1, 0.0, [pytest.approx(0.8, abs=0.05)] * 2)
    constant, opposite = [np.zeros(300)], [-GOLD]
    assert choose([GOLD], [opposite, constant], [0, 1]).chosen == 0  # 0 is better than -1, and worthless


def test_all_sets_count_alike():
    """Better on one set by as much as it is worse on the other, which has fewer pairs."""
    few = np.random.default_rng(5).standard_normal(100)
    one = [ranking(GOLD, 0.5, 6), ranking(few, 0.8, 7)]
    other = [ranking(GOLD, 0.8, 8), ranking(few, 0.5, 9)]
    both = [ranking(GOLD, 0.8, 10), ranking(few, 0.8, 11)]
    assert choose([GOLD, few], [one, other], [0, 1]).chosen == 0
    assert choose([GOLD, few], [one, both], [0, 1]).chosen == 1


def adopted(candidates, gain, pairs=40, worlds=120):
    """Return how often a candidate is taken whose Spearman is truly higher by `gain`."""
    taken = 0
    for world in range(worlds):
        generator = np.random.default_rng([world, candidates])
        gold = generator.standard_normal(pairs)
        tuned = np.sqrt(1 - (0.6 + gain) ** 2) * generator.standard_normal((candidates, pairs))
        columns = [[(0.6 + gain) * gold + noise] for noise in tuned]
        backbone = [0.6 * gold + 0.8 * generator.standard_normal(pairs)]
        taken += choose([gold], [backbone, *columns], [0, 1, *[2] * (candidates - 1)]).chosen > 0
    return taken / worlds


@pytest.mark.parametrize("candidates", [1, 20])
def test_the_best_of_many_noisy_figures_is_no_evidence(candidates):
    """With 20 of them the plain maximum beats the backbone nearly always."""
    assert adopted(candidates, gain=0.0) <= 0.15  # 0.1 and the chance of 120 worlds
    assert adopted(candidates, gain=0.25) >= 0.5


def test_the_choice_in_words():
    found = choose([GOLD], [POOR, GOOD], [0, 1])
    assert found.sentence("step 8", "dev pairs").startswith("chosen: step 8; Spearman ")
    assert "chosen: the backbone;" in choose([GOLD], [GOOD, POOR], [0, 1]).sentence("step 8", "dev pairs")
    assert "probability 1.00" in found.sentence("step 8", "dev pairs")


def test_fewer_pairs_show_larger_gains_only():
    points = [int(what_pairs_show(n).partition("about ")[2].split()[0]) for n in (30, 50, 200, 1000)]
    assert points == sorted(points, reverse=True)
    assert points[0] > 2 * points[2]
