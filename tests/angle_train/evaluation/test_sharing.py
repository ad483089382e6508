"""Intervals of pairs that share texts: as wide as they must be, and unchanged where nothing is shared."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import t
from train_runs import pair_set

from angle_train.evaluation.compare import _interval, compare
from angle_train.evaluation.judged import counts_like
from angle_train.evaluation.sharing import INDEPENDENT, Sharing
from angle_train.evaluation.statistics import (
    Drawn,
    Interval,
    draw_figures,
    interval_around,
    mean_of,
    spearman,
    spearman_of,
)


def figure_of(values, resamples=4_000):
    return draw_figures([mean_of(np.asarray(values, dtype=np.float64))], resamples)[0]


def dyadic(pairs, values):
    """How much more a mean varies than of single pairs, by a slow double loop."""
    pull = (values - values.mean()) / len(values)
    things = [{*texts} for texts in pairs]
    shared = sum(
        pull[i] * pull[j] for i in range(len(pull)) for j in range(len(pull)) if things[i] & things[j]
    )
    return shared / (pull**2).sum()


def student(sources):
    """How much wider an interval of Student's t is, of so many sources."""
    return t.ppf(0.975, sources - 1) / 1.959964 * (sources / (sources - 1)) ** 0.5


def sources_of(sizes):
    """As many sources of one size, of sources of these sizes."""
    counts = np.array([*sizes])
    return counts.sum() ** 2 / (counts**2).sum()


@pytest.mark.parametrize("texts", [8, 25])
def test_the_widening_is_that_of_a_slow_loop(texts):
    generator = np.random.default_rng(texts)
    effect = generator.normal(0, 2, texts)
    ends = [generator.choice(texts, 2, replace=False) for _ in range(60)]
    ends += [ends[0], ends[1][::-1]]  # the same pairs again, in either order
    values = np.array([effect[a] + effect[b] + generator.normal() for a, b in ends])
    pairs = [(f"Text {a}", f"text {b}.") for a, b in ends]
    found = Sharing([pair_set(pairs)]).widening(figure_of(values, 20_000))
    expected = dyadic([(str(a), str(b)) for a, b in ends], values)
    few = student(sources_of(Counter(end for pair in ends for end in pair).values()))
    assert found == pytest.approx(max(1.0, expected) ** 0.5 * few, rel=0.08)
    assert found > 1.2


def test_many_pairs_of_few_sources_are_widened_by_what_they_share_and_not_by_chance():
    """Of 20,000 values that have nothing to do with their sources the right widening is near 1."""
    values = np.random.default_rng(3).normal(size=20_000)
    sources = np.arange(20_000) % 100
    pairs = pair_set([(f"a {n}", f"b {n}") for n in range(20_000)], source_ids=[*map(str, sources)])
    pull = (values - values.mean()) / len(values)
    exact = (np.bincount(sources, pull) ** 2).sum() / (pull**2).sum()
    found = Sharing([pairs]).widening(figure_of(values, 400))
    assert found == pytest.approx(max(1.0, exact) ** 0.5 * student(100), abs=0.02)


def test_pairs_of_one_source_share_it_and_several_sets_are_seen_together():
    values = np.repeat(np.random.default_rng(0).normal(size=20), 3)
    texts = [(f"a {n}", f"b {n}") for n in range(60)]
    figure = figure_of(values)
    assert not Sharing([pair_set(texts)])
    assert Sharing([pair_set(texts)]).widening(figure) == INDEPENDENT.widening(figure) == 1.0
    sources = [str(n // 3) for n in range(60)]
    found = Sharing([pair_set(texts, source_ids=sources)]).widening(figure)
    assert found == pytest.approx(3**0.5 * student(20), rel=0.1)
    again = np.repeat(np.random.default_rng(1).normal(size=20), 2)
    sets = [pair_set([(f"q {n}", f"{name} {n}") for n in range(20)]) for name in "xy"]
    two = figure_of(np.append(again[::2], again[::2]))
    assert Sharing(sets).widening(two) == pytest.approx(2**0.5 * student(20), rel=0.1)
    assert not Sharing(sets[:1])


def test_what_labels_count_like_is_told_by_intervals_that_are_widened():
    values = np.repeat(np.random.default_rng(0).normal(size=20), 3)
    alone, surer = figure_of(values), figure_of(values / 2)
    sharing = Sharing(
        [pair_set([(f"a {n}", f"b {n}") for n in range(60)], source_ids=[str(n // 3) for n in range(60)])]
    )
    assert counts_like(60, alone, surer) == pytest.approx(240, rel=0.05)
    surer = figure_of(
        np.random.default_rng(1).permutation(values / 2)
    )  # what is shared does not widen this one
    narrow = sharing.widening(alone) / sharing.widening(surer)
    assert narrow > 1.3
    assert counts_like(60, alone, surer, sharing) == pytest.approx(240 * narrow**2, rel=0.05)


def test_texts_that_push_against_each_other_never_narrow_an_interval():
    values = np.tile([1.0, -1.0], 30)
    found = Sharing([pair_set([(f"q {n // 2}", f"x {n}") for n in range(60)])])
    assert found
    figure = figure_of(values)
    assert found.widening(figure) == pytest.approx(student(30))
    assert found.widened(figure).std() == pytest.approx(student(30) * figure.drawn.std())


ALIKE = figure_of(np.tile([1.0, -1.0], 100))


@pytest.mark.parametrize(
    ("hubs", "sizes"),
    [
        ([n % 5 for n in range(200)], [40] * 5),
        ([min(n // 20, 1) * (n + 1) for n in range(200)], [20] + [1] * 180),  # one text of many pairs
        ([n // 100 for n in range(200)], [100, 100]),
    ],
)
def test_sources_of_unlike_size_count_as_fewer(hubs, sizes):
    texts = [(f"q {hub}", f"a {n}") for n, hub in enumerate(hubs)]
    expected = student(sources_of(sizes))
    assert Sharing([pair_set(texts)]).of_few(ALIKE) == pytest.approx(expected)
    assert Sharing([pair_set(texts)]).widening(ALIKE) == pytest.approx(expected, rel=0.05)
    named = pair_set(texts, source_ids=[f"of {hub}" for hub in hubs])
    assert Sharing([named]).of_few(ALIKE) == pytest.approx(expected)  # a source and its text are one


def test_a_text_that_a_tenth_of_the_pairs_have_leaves_the_others_as_sure_as_they_are():
    pairs = [("how?" if n < 100 else f"q {n}", f"a {n}") for n in range(1_000)]
    values = np.random.default_rng(0).normal(size=1_000)
    values[:100] -= values[:100].mean()  # they have nothing else in common
    assert Sharing([pair_set(pairs)]).widening(figure_of(values)) == pytest.approx(1.0, abs=0.03)


SIGNS = figure_of(np.tile([1.0, -1.0], 25))


@pytest.mark.parametrize("strays", [0, 1, 2])
def test_a_text_most_of_whose_pairs_are_of_one_source_is_part_of_it(strays):
    """Each source has ten pairs, eight with its text; so have as many pairs of the next source as stray."""
    texts = [(f"q {n // 10}", f"a {n}") if n % 10 < 8 else (f"b {n}", f"c {n}") for n in range(50)]
    for source in range(5):
        for stray in range(strays):
            texts[10 * source + 8 + stray] = (f"q {(source + 1) % 5}", f"a {10 * source + 8 + stray}")
    named = pair_set(texts, source_ids=[f"{n // 10}" for n in range(50)])
    assert Sharing([named]).of_few(SIGNS) == pytest.approx(student(5))


def test_a_text_of_two_sources_alike_is_a_source_of_its_own():
    texts = [(f"q {n // 2}", f"a {n}") for n in range(50)]
    across = Sharing([pair_set(texts, source_ids=[f"{n % 5}" for n in range(50)])])
    assert across.of_few(SIGNS) < student(6)


def test_sources_of_one_text_that_all_pairs_have_are_part_of_it():
    pairs = pair_set([("q", f"a {n}") for n in range(50)], source_ids=[f"{n // 10}" for n in range(50)])
    assert Sharing([pairs]).of_few(SIGNS) == pytest.approx(student(2))


def test_sets_of_the_same_sources_are_no_more_sources():
    texts = [(f"q {n % 5}", f"a {n}") for n in range(40)]
    other = [(f"q {n % 5}", f"b {n}") for n in range(40)]
    figure = Drawn(0.0, np.array([-1.0, 1.0]), np.tile([1.0, -1.0], 40))
    assert Sharing([pair_set(texts), pair_set(other)]).of_few(figure) == pytest.approx(student(5))
    apart = [(f"x {n % 5}", f"b {n}") for n in range(40)]
    # Two means are taken off, so eight degrees of freedom are left, and a fifth of either variance is lost.
    expected = t.ppf(0.975, 8) / 1.959964 * 1.25**0.5
    assert Sharing([pair_set(texts), pair_set(apart)]).of_few(figure) == pytest.approx(expected)


def test_of_one_text_that_all_pairs_have_next_to_nothing_is_known():
    one = Sharing([pair_set([("q", f"a {n}") for n in range(200)])])
    assert one.widening(ALIKE) == pytest.approx(student(2))
    ten = [pair_set([(f"q {k}", f"a {k} {n}") for n in range(20)]) for k in range(10)]
    assert Sharing(ten).of_few(ALIKE) == pytest.approx(student(2))  # nor of ten such sets together


@pytest.mark.parametrize("linked", [False, True])
def test_a_set_of_few_sources_stays_one_beside_a_set_of_many_whether_they_share_one_or_not(linked):
    few = pair_set([(f"q {n // 10}", f"a {n}") for n in range(50)])
    many = pair_set([(f"x {n // 10}" if n or not linked else "q 0", f"y {n}") for n in range(1_000)])
    figure = Drawn(0.0, np.array([-1.0, 1.0]), np.append(np.ones(50), np.full(1_000, 0.02)))
    assert Sharing([few, many]).of_few(figure) == pytest.approx(student(5), rel=0.02)


@pytest.mark.parametrize("linked", [False, True])
def test_a_set_of_one_text_weighs_by_what_it_adds_to_the_variance(linked):
    one = [("q", f"a {n}") for n in range(50)]
    many = pair_set([(f"x {n // 10}" if n or not linked else "q", f"y {n}") for n in range(1_000)])
    figure = Drawn(0.0, np.array([-1.0, 1.0]), np.append(np.full(50, 0.02), np.full(1_000, 0.02)))
    found = Sharing([pair_set(one), many]).of_few(figure)
    share = 50**2 / (50**2 + 100 * 10**2)
    expected = (share * student(2) ** 2 + (1 - share) * student(100) ** 2) ** 0.5
    assert found == pytest.approx(expected, rel=0.02)


def test_pairs_of_a_text_outside_the_source_that_it_is_part_of_stay_together():
    """Each text has 51 pairs of a source of 101, and 49 pairs of no other."""
    pairs, sources = [], []
    for k in range(3):
        for n in range(150):
            pairs.append((f"q {k}" if n < 51 or n >= 101 else f"x {k} {n}", f"a {k} {n}"))
            sources.append(f"{k}" if n < 101 else f"alone {k} {n}")
    figure = figure_of(np.tile([1.0, -1.0], 225))
    few = student(sources_of([101, 49] * 3))
    assert Sharing([pair_set(pairs, source_ids=sources)]).of_few(figure) == pytest.approx(few)


def test_two_texts_that_nearly_the_same_pairs_have_are_one_source():
    pairs = [(f"q {k}", f"a {k}") for k in range(5) for _ in range(9)]
    pairs += [pair for k in range(5) for pair in ((f"q {k}", f"z {k}"), (f"y {k}", f"a {k}"))]
    figure = figure_of(np.append(np.tile([1.0, -1.0], 27), 0.0))
    assert Sharing([pair_set(pairs)]).of_few(figure) == pytest.approx(student(sources_of([10, 1] * 5)))


@pytest.mark.parametrize("pull", [0.5, 0.0])
def test_of_several_sets_a_pair_counts_by_how_much_its_set_moves_the_figure(pull):
    few = pair_set([(f"q {n % 5}", f"a {n}") for n in range(40)])
    many = pair_set([(f"x {n % 20}", f"y {n}") for n in range(400)])
    moved = np.append(np.ones(40), np.full(400, pull)) * np.tile([1.0, -1.0], 220)
    figure = Drawn(0.0, np.array([-1.0, 1.0]), moved)
    # Five sources of 8 pairs and 20 of 20, as if those of a source were alike.
    variances = np.array([5 * 8**2, 20 * (20 * pull) ** 2])
    shares = variances / variances.sum()
    freedom = 1 / (shares[0] ** 2 / 4 + shares[1] ** 2 / 19)
    lost = (shares[0] * 5 / 4 + shares[1] * 20 / 19) ** 0.5
    expected = t.ppf(0.975, freedom) / 1.959964 * lost
    assert Sharing([few, many]).of_few(figure) == pytest.approx(expected)


def test_where_no_pair_moves_the_figure_by_itself_all_count_alike():
    found = Sharing([pair_set([(f"q {n // 2}", f"a {n}") for n in range(4)])])
    figure = Drawn(0.9, np.array([0.9, 1.0, 0.0]), np.zeros(4))
    assert found.widening(figure) == pytest.approx(student(2))


def test_intervals_of_five_sources_hold_as_often_as_they_promise():
    """Of a mean that is 0; half of what moves a pair is of its source."""
    held = []
    pairs = pair_set([(f"a {n}", f"b {n}") for n in range(50)], source_ids=[str(n // 10) for n in range(50)])
    for seed in range(400):
        generator = np.random.default_rng(seed)
        values = np.repeat(generator.normal(size=5), 10) + generator.normal(size=50)
        figure = draw_figures([mean_of(values)], 200, seed)[0]
        found = interval_around(figure.value, Sharing([pairs]).widened(figure))
        held.append(found.low <= 0 <= found.high)
    assert 0.93 <= np.mean(held) <= 0.98


def test_resamples_that_say_nothing_stay_so():
    figure = Drawn(0.5, np.array([0.4, np.nan, 0.6, 0.5]), np.array([0.2, 0.2, -0.4]))
    found = Sharing([pair_set([("a", "b"), ("a", "c"), ("d", "e")])])
    assert np.isnan(found.widened(figure)).tolist() == [False, True, False, False]


def answers(seed, questions=30, each=10):
    """Questions with answers: a question moves the grades and the model's word for all of its answers."""
    generator = np.random.default_rng(seed)
    meant, odd = generator.normal(0, 1.2, (2, questions))
    which = np.repeat(np.arange(questions), each)
    gold = meant[which] + generator.normal(0, 1, questions * each)
    column = gold + odd[which] + generator.normal(0, 1, questions * each)
    return pair_set([(f"q {q}", f"a {n}") for n, q in enumerate(which)], gold, "answers"), column


def test_coverage_of_pairs_that_share_questions():
    gold, column = (
        np.concatenate(parts)
        for parts in zip(*((p.score, c) for p, c in map(answers, range(400, 800))), strict=True)
    )
    truth = spearman(gold, column)
    held = []
    for seed in range(120):
        pairs, column = answers(seed)
        figure = draw_figures([spearman_of(pairs.score, column)], 200, seed)[0]
        intervals = [
            interval_around(figure.value, drawn) for drawn in (figure.drawn, Sharing([pairs]).widened(figure))
        ]
        held.append([found.low <= truth <= found.high for found in intervals])
    single, widened = np.mean(held, axis=0)
    assert single < 0.88
    assert 0.88 <= widened <= 0.99


def test_results_on_pairs_that_share_texts_have_the_wider_intervals():
    pairs, column = answers(1)
    apart = pair_set([(f"q {n}", f"a {n}") for n in range(len(pairs))], pairs.score, "answers")
    models = {"old": column, "new": 0.5 * column + pairs.score}
    found, single = (compare(which, models, baseline="old")[1:] for which in (pairs, apart))
    for wide, narrow in zip(found, single, strict=True):
        assert wide.score.value == narrow.score.value
        assert wide.score.high - wide.score.low > 1.1 * (narrow.score.high - narrow.score.low)
    assert found[1].difference.delta == single[1].difference.delta


def test_no_interval_of_a_score_goes_beyond_what_a_correlation_can_be():
    """What sharing adds knows no end, nor does what a judge adds; a difference may reach 2."""
    pairs, column = answers(3, questions=3, each=4)
    figure = draw_figures([spearman_of(pairs.score, column)], 2_000)[0]
    assert interval_around(figure.value, Sharing([pairs]).widened(figure)).high > 1
    found = compare(pairs, {"old": column, "new": pairs.score}, baseline="old")
    assert all(-1 <= result.score.low <= result.score.high <= 1 for result in found)
    assert found[1].score.high == 1.0
    beyond = Drawn(1.03, np.array([0.9, 1.5, 2.5] * 50), np.zeros(12))
    assert _interval(beyond, INDEPENDENT, most=1.0) == Interval(1.0, pytest.approx(0.9), 1.0)
    assert _interval(beyond, INDEPENDENT) == Interval(1.03, pytest.approx(0.9), 2.0)
