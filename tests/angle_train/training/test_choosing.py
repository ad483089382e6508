"""The rule that chooses among several candidates on held-out pairs."""

from dataclasses import replace

import numpy as np
import pytest
from train_runs import pair_set

from angle_train.data.judged import JudgedPairs
from angle_train.data.search_set import SearchSet
from angle_train.evaluation.compare import compare
from angle_train.evaluation.judged import correct_all, figures_of, grades_of
from angle_train.evaluation.sharing import Sharing
from angle_train.evaluation.statistics import spearman
from angle_train.training import choosing
from angle_train.training.choosing import (
    TOO_FEW,
    TOO_FEW_QUERIES,
    Candidate,
    resampled,
    select_simplest,
    what_pairs_show,
    with_grades,
)


def ranking(gold, quality, seed):
    """Similarities (B,) that correlate with the gold scores by `quality`."""
    noise = np.random.default_rng(seed).standard_normal(len(gold))
    return quality * gold + np.sqrt(1 - quality**2) * noise


def pairs(gold, sources=None):
    """Pairs with these scores whose texts all differ."""
    return pair_set([(f"a{i}", f"b{i}") for i in range(len(gold))], gold, source_ids=sources)


def choose(sets, candidates, levels, lost=()):
    return select_simplest(resampled(sets, candidates), levels, lost)


GOLD = np.random.default_rng(0).standard_normal(300)
POOR, GOOD, BEST = ([ranking(GOLD, quality, seed)] for quality, seed in ((0.3, 1), (0.8, 2), (0.97, 3)))
NEARLY_GOOD = [GOOD[0] + 0.01 * np.random.default_rng(14).standard_normal(300)]


@pytest.mark.parametrize(
    ("candidates", "levels", "lost", "chosen"),
    [
        ([POOR, GOOD], [0, 1], (), 1),
        ([GOOD, POOR], [0, 1], (), 0),
        ([GOOD, NEARLY_GOOD], [0, 1], (), 0),  # the simpler of two that chance could tell apart
        ([POOR, GOOD, NEARLY_GOOD], [0, 2, 1], (), 2),  # the simpler level, though its figure may be lower
        ([POOR, GOOD, BEST], [0, 1, 2], (), 2),  # surely better than the simpler tuned one too
        ([GOOD, POOR, BEST], [0, 1, 2], (), 2),  # the plan failed, an alternative did not
        ([POOR, GOOD, BEST], [0, 1, 2], (2,), 1),  # the best cannot be had any more
        ([POOR, GOOD, BEST], [0, 1, 1], (), 2),  # the highest figure of one level
        ([POOR], [0], (), 0),
    ],
)
def test_the_simplest_stays_unless_another_is_surely_better(candidates, levels, lost, chosen):
    choice = choose([pairs(GOLD)], candidates, levels, lost)
    assert (choice.chosen, choice.compared) == (chosen, len(candidates) - 1)
    if chosen:
        assert choice.confidence > 0.99


def test_equal_candidates_and_those_no_better_than_chance_are_not_chosen():
    same = choose([pairs(GOLD)], [GOOD, GOOD], [0, 1])
    assert (same.chosen, same.confidence) == (0, 0.0)
    constant, opposite = [np.zeros(300)], [-GOLD]
    assert (
        choose([pairs(GOLD)], [opposite, constant], [0, 1]).chosen == 0
    )  # 0 is better than -1, and worthless


def test_all_sets_count_alike():
    """Better on one set by as much as it is worse on the other, which has fewer pairs."""
    few = np.random.default_rng(5).standard_normal(100)
    one = [ranking(GOLD, 0.5, 6), ranking(few, 0.8, 7)]
    other = [ranking(GOLD, 0.8, 8), ranking(few, 0.5, 9)]
    both = [ranking(GOLD, 0.8, 10), ranking(few, 0.8, 11)]
    assert choose([pairs(GOLD), pairs(few)], [one, other], [0, 1]).chosen == 0
    assert choose([pairs(GOLD), pairs(few)], [one, both], [0, 1]).chosen == 1


def adopted(candidates, gain, count=40, worlds=120):
    """Return how often a candidate is taken whose Spearman is truly higher by `gain`."""
    taken = 0
    for world in range(worlds):
        generator = np.random.default_rng([world, candidates])
        gold = generator.standard_normal(count)
        tuned = np.sqrt(1 - (0.6 + gain) ** 2) * generator.standard_normal((candidates, count))
        columns = [[(0.6 + gain) * gold + noise] for noise in tuned]
        backbone = [0.6 * gold + 0.8 * generator.standard_normal(count)]
        taken += choose([pairs(gold)], [backbone, *columns], [0, 1, *[2] * (candidates - 1)]).chosen > 0
    return taken / worlds


@pytest.mark.parametrize("candidates", [1, 20])
def test_the_best_of_many_noisy_figures_is_no_evidence(candidates):
    """With 20 of them the plain maximum beats the backbone nearly always."""
    assert adopted(candidates, gain=0.0) <= 0.15  # 0.1 and the chance of 120 worlds
    assert adopted(candidates, gain=0.25) >= 0.5


def test_fewer_pairs_show_larger_gains_only():
    def points(*sets):
        return int(what_pairs_show(sets).partition("about ")[2].split()[0])

    shown = [points(pairs(np.zeros(n))) for n in (30, 50, 200, 1000)]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] > 2 * shown[2]
    # The mean over sets errs by the smallest one; pairs of one source count once.
    assert points(pairs(np.zeros(1000)), pairs(np.zeros(20))) > shown[2]
    assert points(pairs(np.zeros(200), sources=[str(i % 50) for i in range(200)])) == shown[1]


def test_pairs_of_one_source_are_one_piece_of_evidence():
    """20 pairs, each five times: as sure as 20 pairs, not as 100."""
    few = np.random.default_rng(1).standard_normal(20)
    backbone, tuned = ranking(few, 0.5, 30), ranking(few, 0.75, 31)
    once = choose([pairs(few)], [[backbone], [tuned]], [0, 1])
    sources = [str(i) for i in range(20)] * 5
    often = choose([pairs(np.tile(few, 5), sources)], [[np.tile(backbone, 5)], [np.tile(tuned, 5)]], [0, 1])
    alone = choose([pairs(np.tile(few, 5))], [[np.tile(backbone, 5)], [np.tile(tuned, 5)]], [0, 1])
    assert often.confidence == pytest.approx(once.confidence, abs=0.05)
    assert alone.confidence > often.confidence + 0.02


def test_a_few_sources_show_nothing_however_many_pairs_they_have():
    """Every resample of so few is nearly the same, so chance would look like certainty."""

    def of(count):
        return pairs(GOLD, [str(i % count) for i in range(300)])

    few = choose([pairs(GOLD), of(4)], [[*POOR, *POOR], [*BEST, *BEST]], [0, 1])
    assert (few.chosen, few.confidence) == (0, None)
    assert few.sentence("step 3", "dev pairs").endswith(f"; the dev pairs {TOO_FEW}")
    assert choose([of(5)], [POOR, BEST], [0, 1]).chosen == 1
    assert "300 held-out pairs, of 5 sources, show a gain of" in what_pairs_show([of(5)])
    said = what_pairs_show([pairs(GOLD), of(4)])
    assert said.startswith(f"{of(4).name}: 300 held-out pairs, of 4 sources, are too few to choose by; give")
    assert what_pairs_show([pairs(GOLD[:3])]).endswith(
        ": 3 held-out pairs are too few to choose by; give --dev pairs of at least 5 sources, or 5 "
        "without a common text, in each set, better 50. The backbone is kept, whatever training does"
    )


def tied(gold, texts):
    """Pairs whose texts are so few that a chain ties all of them together."""
    ends = [(i % texts, (i % texts + 1 + i // texts) % texts) for i in range(len(gold))]
    return pair_set([(f"t{a}", f"t{b}") for a, b in ends], gold), np.array(ends)


def test_pairs_that_a_chain_of_texts_ties_together_still_choose():
    shared, _ = tied(GOLD, 60)
    assert choose([shared], [POOR, GOOD], [0, 1]).chosen == 1
    assert ", 30 of them without a common text, show a gain of" in what_pairs_show([shared])
    of_one = pair_set([("q", f"a{i}") for i in range(300)], GOLD)
    assert choose([of_one], [POOR, BEST], [0, 1]).confidence is None
    assert "300 held-out pairs, 1 of them without a common text, are too few" in what_pairs_show([of_one])
    turned = pair_set([("q", f"a{i}") if i % 2 else (f"a{i}", "q") for i in range(300)], GOLD)
    assert choose([turned], [POOR, BEST], [0, 1]).confidence is None


def test_pairs_that_share_what_moves_them_are_less_evidence():
    """What a text does to the grades and the similarities of all its pairs is one chance, not ten."""
    generator = np.random.default_rng(13)
    _, ends = tied(GOLD, 60)
    meant, one, other = (
        generator.standard_normal(60)[ends].sum(axis=1) + 0.3 * generator.standard_normal(300)
        for _ in range(3)
    )
    shared, _ = tied(meant, 60)
    columns = [[meant + 1.3 * one], [meant + 0.9 * other]]
    together, apart = (choose([kind], columns, [0, 1]) for kind in (shared, pairs(meant)))
    assert together.scores == apart.scores
    assert together.scores[1] > together.scores[0]
    assert 0.5 < together.confidence < 0.9 < 0.95 < apart.confidence


def test_tuned_weights_are_compared_by_what_their_own_difference_shares():
    """As `eval` would compare the two, whatever either shares with the backbone."""
    generator = np.random.default_rng(13)
    _, ends = tied(GOLD, 60)
    meant, luck, one, other = (
        generator.standard_normal(60)[ends].sum(axis=1) + 0.3 * generator.standard_normal(300)
        for _ in range(4)
    )
    shared, _ = tied(meant, 60)
    noise = 1.3 * generator.standard_normal((2, 300))
    for plan, step in ((meant + one, meant + other), (meant + luck + noise[0], meant + luck + noise[1])):
        gains = resampled([shared], [[meant + noise[0]], [plan], [step]]).gains(1, [2])[0]
        *_, found = compare(shared, {"plan": plan, "step": step}, baseline="plan")
        widths = [np.diff(np.percentile(gains, (2.5, 97.5)))[0], 2 * found.difference.half]
        assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_pairs_with_grades_of_too_few_sources_choose_nothing():
    gold, grades, *columns = (found[:300] for found in (GOLD, GRADED, POOR[0], BEST[0]))
    own = pairs(gold[:40], sources=[str(i % 4) for i in range(40)])
    cut = [[column[:40], column[40:]] for column in columns]
    assert with_grades(own, judged_by(grades, 40), cut) is None
    candidates = [Candidate(0, 0, cut[0]), Candidate(9, 1, cut[1])]
    choice = choosing.choose(candidates, [own], judged_by(grades, 40))
    assert (choice.chosen, choice.confidence, choice.judged) == (0, None, 0)


def test_the_plan_has_most_of_the_error_to_itself():
    """A plan that is nearly sure is taken beside alternatives, and nothing else as unsure as that."""
    gold = np.random.default_rng(2).standard_normal(60)
    backbone, other = ranking(gold, 0.6, 40), ranking(gold, 0.6, 41)
    for seed in range(400):
        plan = ranking(gold, 0.72, 100 + seed)
        alone = choose([pairs(gold)], [[backbone], [plan]], [0, 1])
        if 0.93 < alone.confidence < 0.95:
            break
    assert choose([pairs(gold)], [[backbone], [plan], [other]], [0, 1, 2]).chosen == 1
    assert choose([pairs(gold)], [[backbone], [other], [plan]], [0, 1, 2]).chosen == 0


def test_sets_of_one_size_are_resampled_apart():
    """With the same resamples for both, two sets would err together, and the mean as much as each."""
    first, second = (np.random.default_rng(seed).standard_normal(50) for seed in (3, 4))
    columns = [[ranking(first, q, 50 + i), ranking(second, q, 60 + i)] for i, q in enumerate((0.5, 0.75))]
    both = resampled([pairs(first), pairs(second)], columns)
    single = [resampled([pairs(g)], [[c[i]] for c in columns]) for i, g in enumerate((first, second))]
    spread = [found.gains(0, [1]).std() for found in (both, *single)]
    assert spread[0] == pytest.approx(np.hypot(spread[1], spread[2]) / 2, rel=0.1)


def judged_by(grades, people):
    """What a grader says of all pairs, of which people graded the first `people`."""
    whole = pairs(grades)
    rest = whole.take(list(range(people, len(grades))), "gpt-x")
    return JudgedPairs("gpt-x", grades[:people], rest)


def choice_of_40(grader, tuned, backbone=POOR):
    """What 40 pairs graded by people and 260 by a grader choose."""
    own = pairs(GOLD[:40])
    cut = [[column[0][:40], column[0][40:]] for column in (backbone, tuned)]
    candidates = [Candidate(0, 0, cut[0]), Candidate(9, 1, cut[1])]
    return choosing.choose(candidates, [own], judged_by(grader, 40) if grader is not None else None)


BETTER = [ranking(GOLD, 0.55, 6)]
GRADED = ranking(GOLD, 0.9, 4)


def test_a_good_graders_pairs_find_a_gain_that_few_grades_of_people_do_not():
    alone, helped = choice_of_40(None, BETTER), choice_of_40(GRADED, BETTER)
    assert (alone.chosen, alone.judged) == (0, 0)
    assert (helped.chosen, helped.judged) == (1, 260)
    assert helped.confidence > 0.97 > 0.9 > alone.confidence
    assert " and 260 that a language model graded" in helped.sentence("step 9", "dev pairs" + helped.beside())
    assert helped.to_dict()["judged"] == 260


def test_a_grader_that_favours_the_tuned_weights_does_not_choose_them():
    # Its grades follow the tuned weights more than the truth; on people's pairs that shows, and is taken off.
    equal = [ranking(GOLD, 0.3, 6)]
    favours = 0.5 * GOLD + equal[0]
    assert np.corrcoef(favours, equal[0])[0, 1] > np.corrcoef(favours, POOR[0])[0, 1] + 0.3
    choice = choice_of_40(favours, equal)
    assert (choice.chosen, choice.judged) == (0, 260)
    trusted = choose([pairs(favours)], [POOR, equal], [0, 1])
    assert trusted.chosen == 1


def test_pairs_of_one_source_are_no_surer_with_a_grader():
    # Ten copies of thirty pairs say no more than thirty.
    gold, grades, *columns = (np.tile(found[:30], 10) for found in (GOLD, GRADED, POOR[0], BETTER[0]))
    cut = [[column[:40], column[40:]] for column in columns]
    sources = [str(i % 30) for i in range(300)]
    alone = with_grades(pairs(gold[:40]), judged_by(grades, 40), cut)
    shared = replace(judged_by(grades, 40), rest=pairs(grades, sources).take(list(range(40, 300)), "gpt-x"))
    tied = with_grades(pairs(gold[:40], sources[:40]), shared, cut)
    gains = [found.gains(0, [1])[0] for found in (alone, tied)]
    assert gains[1].std() > 1.2 * gains[0].std()
    seen = correct_all(
        figures_of(
            grades_of(pairs(gold[:40]), shared),
            {str(n): np.concatenate(column) for n, column in enumerate(cut)},
            resamples=2_000,
        ),
        "0",
        Sharing([pairs(gold[:40], sources[:40]), shared.rest]),
    )
    assert tied.scores == pytest.approx([figure.value for figure, _ in seen.values()])
    assert tied.scores != pytest.approx(alone.scores)  # other weights than of single pairs


def search_set(count, alike=1, name="search"):
    """A search of so many queries, of which `alike` each look for the same document."""
    names = [f"q{i}" for i in range(count)]
    grades = [{i // alike: 1.0} for i in range(count)]
    own = np.full(count, -1)
    ids = [f"d{i}" for i in range(count)]
    return SearchSet(name, ids, ids, names, names, grades, [[]] * count, own)


def test_a_search_chooses_by_the_mean_of_its_queries():
    found = np.random.default_rng(6).uniform(0, 0.5, 100)
    better = found + np.random.default_rng(7).uniform(-0.1, 0.3, 100)
    choice = choose([search_set(100)], [[found], [better]], [0, 1])
    assert (choice.chosen, choice.scores) == (1, pytest.approx([found.mean(), better.mean()]))
    assert choose([search_set(100)], [[better], [found]], [0, 1]).chosen == 0


def test_pairs_and_a_search_count_alike():
    """What is better on the pairs and as much worse on the search is not better, and the other way round."""
    good, poor = np.full(100, 0.9), np.full(100, 0.2)
    sets = [pairs(GOLD), search_set(100)]
    worse_search = choose(sets, [[*POOR, good], [*BEST, poor]], [0, 1])
    both = choose(sets, [[*POOR, poor], [*BEST, good]], [0, 1])
    assert (worse_search.chosen, both.chosen) == (0, 1)
    means = [(spearman(GOLD, column) + rest.mean()) / 2 for (column,), rest in ((POOR, poor), (BEST, good))]
    assert both.scores == pytest.approx(means)


def test_queries_for_the_same_document_are_one_piece_of_evidence():
    few = np.random.default_rng(8).uniform(0, 1, 20)
    gain = np.random.default_rng(9).normal(0.04, 0.12, 20)
    columns = [[np.repeat(column, 5)] for column in (few, few + gain)]
    once = choose([search_set(20)], [[few], [few + gain]], [0, 1])
    often = choose([search_set(100, alike=5)], columns, [0, 1])
    alone = choose([search_set(100)], columns, [0, 1])
    assert often.confidence == pytest.approx(once.confidence, abs=0.05)
    assert alone.confidence > often.confidence + 0.02


def test_a_few_queries_show_nothing():
    few = choose([search_set(4)], [[np.zeros(4)], [np.ones(4)]], [0, 1])
    assert (few.chosen, few.confidence) == (0, None)
    assert few.sentence("step 3", "dev queries").endswith(f"; the dev queries {TOO_FEW_QUERIES}")
    said = what_pairs_show([search_set(20, alike=5)])
    assert said.startswith(
        "search: 20 dev queries, for 4 different documents, are too few to choose by; give"
    )
    assert what_pairs_show([pairs(GOLD), search_set(7)]) == (
        "300 pairs of made and 7 queries of search choose the weights, by mean of Spearman and nDCG@10"
    )
