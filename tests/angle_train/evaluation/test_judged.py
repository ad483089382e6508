"""Few grades by people and many by a language model: right intervals whoever the grader is."""

import numpy as np
import pytest
from train_runs import pair_set

from angle_train.data.judged import JudgedPairs
from angle_train.evaluation import judged as judged_module
from angle_train.evaluation.compare import compare
from angle_train.evaluation.judged import (
    DISAGREES,
    FEW,
    UNLIKE,
    Grades,
    correct,
    correct_all,
    figures_of,
    unlike,
    unused,
    with_judge,
)
from angle_train.evaluation.sharing import Sharing
from angle_train.evaluation.statistics import Drawn, draw, interval_around, spearman, spearman_of

GRADED, JUDGED = 40, 200


def grades_of(kind, generator, meant, new):
    """What a grader says of pairs: in the new model's favour, with noise, at random."""
    if kind == "random":
        return generator.integers(0, 11, len(meant)) / 2
    bias = {"good": 0.0, "favours": 0.7}[kind]
    said = (1 - bias) * meant + bias * new + generator.normal(0, 0.4, len(meant))
    return np.clip(np.round(2 * said) / 2, 0, 5)


def world(kind, size=60_000):
    """People's grades, a grader's, and what an old and a new model say of many pairs."""
    generator = np.random.default_rng(0)
    meant = generator.random(size) * 5
    models = {"old": meant + generator.normal(0, 2.0, size), "new": meant + generator.normal(0, 1.3, size)}
    people = np.clip(np.round(meant + generator.normal(0, 0.5, size)), 0, 5)
    return people, grades_of(kind, generator, meant, models["new"]), models


def sample(whole, seed, graded=GRADED, judged=JUDGED):
    """A random sample of a world, of which people graded the first few."""
    people, grader, models = whole
    at = np.random.default_rng(seed).choice(len(people), judged, replace=False)
    return Grades(people[at[:graded]], grader[at]), {name: column[at] for name, column in models.items()}


def difference(columns):
    return columns["new"].minus(columns["old"])


def covered(kind, draws):
    """How often the interval holds the truth: corrected, and trusting the grader; and how wide it is."""
    whole = world(kind)
    people, _, models = whole
    truth = spearman(people, models["new"]) - spearman(people, models["old"])
    rows = []
    for seed in range(draws):
        grades, columns = sample(whole, seed)
        found = figures_of(grades, columns, seed, resamples=200)
        corrected = {name: figure for name, (figure, _) in correct_all(found, "old").items()}
        row = []
        for figures in (corrected, found.many, found.people):
            gain = difference(figures)
            interval = interval_around(gain.value, gain.drawn)
            row += [interval.low <= truth <= interval.high, interval.high - interval.low]
        rows.append(row)
    coverage, width, naive, _, alone, alone_width = np.mean(rows, axis=0)
    return {"coverage": coverage, "naive": naive, "alone": alone, "width": width / alone_width}


def test_a_grader_in_favour_of_one_model_breaks_trust_but_not_the_interval():
    found = covered("favours", draws=200)
    assert 0.88 <= found["coverage"] <= 0.99
    assert found["naive"] < 0.5  # the same grades, trusted


def test_a_good_grader_makes_intervals_much_narrower_at_the_same_coverage():
    found = covered("good", draws=60)
    assert 0.88 <= found["coverage"] <= 1.0
    assert found["width"] < 0.8


def test_random_grades_are_not_used_and_leave_what_people_say():
    whole = world("random")
    grades, columns = sample(whole, 1)
    figures = figures_of(grades, columns, resamples=2_000)
    assert unused(grades, figures.agreement) == DISAGREES
    widths = []
    for seed in range(20):
        found = figures_of(*sample(whole, seed), seed, resamples=300)
        gain = difference({name: figure for name, (figure, _) in correct_all(found, "old").items()})
        widths.append(gain.drawn.std() / difference(found.people).drawn.std())
    assert 0.93 <= np.mean(widths) <= 1.0  # even if they were used


def test_what_people_alone_say_is_drawn_as_without_a_grader():
    grades, columns = sample(world("good"), 2)
    found = figures_of(grades, columns, seed=5, resamples=400)
    alone = spearman_of(grades.people, columns["new"][:GRADED])
    assert (found.people["new"].drawn == draw([alone], 400, 5)[0]).all()
    assert found.people["new"].value == alone.value()


def test_the_correction_has_the_weight_that_leaves_least_variance_and_is_none_without_a_gap():
    generator = np.random.default_rng(0)
    few, many = (Drawn(value, generator.normal(size=500), np.zeros(3)) for value in (0.5, 0.4))
    human = Drawn(0.6, 0.5 * (few.drawn - many.drawn) + 0.1 * generator.normal(size=500), np.zeros(3))
    found, weight = correct(human, few, many)
    assert weight == pytest.approx(0.5, abs=0.02)
    assert found.value == pytest.approx(0.6 - weight * 0.1)
    assert all(
        found.drawn.std() <= (human.drawn - other * (few.drawn - many.drawn)).std()
        for other in np.linspace(0, 1, 21)
    )
    assert correct(human, few, few) == (human, 0.0)


@pytest.mark.parametrize(("slope", "weight"), [(-0.5, 0.0), (3.0, 1.0)])
def test_the_weight_of_a_correction_is_from_0_to_1(slope, weight):
    generator = np.random.default_rng(0)
    few, many = (Drawn(value, generator.normal(size=500), np.zeros(3)) for value in (0.5, 0.4))
    human = Drawn(0.6, slope * (few.drawn - many.drawn), np.zeros(3))
    assert correct(human, few, many)[1] == weight


def around_hubs(seed, graded=40, judged=300, hubs=20):
    """Pairs that people graded and those that a grader did, around a few texts; what two models say of both.

    A text moves the grader and the new model alike for all of its pairs.
    """
    generator = np.random.default_rng(seed)
    hub = generator.integers(hubs, size=judged)
    meant, odd = generator.normal(size=judged), generator.normal(0, 1, (2, hubs))[:, hub]
    people = meant + generator.normal(0, 0.3, judged)
    grader = meant + 0.8 * odd[0] + generator.normal(0, 0.3, judged)
    columns = {
        "old": meant + odd[1] + generator.normal(0, 1, judged),
        "new": meant + odd[0] + generator.normal(0, 0.6, judged),
    }
    texts = [(f"hub {number}", f"text {place}") for place, number in enumerate(hub)]
    pairs = pair_set(texts[:graded], people[:graded], "my")
    rest = pair_set(texts[graded:], grader[graded:], "gpt-x")
    return pairs, JudgedPairs("gpt-x", grader[:graded], rest), columns


def test_the_weight_leaves_least_variance_with_what_pairs_share_and_widens_no_interval():
    apart_wider, seen = 0, 0
    for seed in range(12):
        pairs, judged, columns = around_hubs(seed)
        sharing = Sharing([pairs, judged.rest])
        figures = figures_of(judged_module.grades_of(pairs, judged), columns, seed, 400)
        human, few, many = (difference(found) for found in (figures.people, figures.few, figures.many))
        found, weight = correct(human, few, many, sharing)
        best = min(sharing.deviation(human.minus(few.minus(many), other)) for other in np.linspace(0, 1, 101))
        assert sharing.deviation(found) <= sharing.deviation(human)
        assert sharing.deviation(found) <= best
        single, other = correct(human, few, many)
        apart_wider += sharing.deviation(single) > sharing.deviation(human)
        seen += weight != pytest.approx(other, abs=0.02)
        note = with_judge(pairs, judged, columns, "old", seed, 400).notes["new"]
        assert note.weight == (0.0 if note.unused else weight)
        whole = correct_all(figures, "old", sharing)["old"][1]
        of_each = [found["old"] for found in (figures.people, figures.few, figures.many)]
        assert whole == correct(*of_each, sharing)[1]
        seen += whole != pytest.approx(correct(*of_each)[1], abs=0.02)
        assert note.counts_like >= len(pairs) - 1e-9
    assert seen > 8
    assert apart_wider > 0  # without what they share in view, it does


def test_results_with_a_judge_are_widened_for_what_pairs_share():
    pairs, judged, columns = around_hubs(1)
    sharing = Sharing([pairs, judged.rest])
    found = with_judge(pairs, judged, columns, "old").figures
    gain = found["new"].minus(found["old"])
    assert sharing.widening(gain) > 1.05
    new = results(pairs, judged, columns)[-1]
    assert not new.judged.unused
    wide = interval_around(gain.value, sharing.widened(gain))
    assert (new.difference.low, new.difference.high) == (wide.low, wide.high)


def test_a_gain_has_a_weight_of_its_own():
    found = figures_of(*sample(world("favours"), 4), resamples=2_000)
    corrected = correct_all(found, "old")
    gain, weight = correct(
        *(figures["new"].minus(figures["old"]) for figures in (found.people, found.few, found.many))
    )
    assert corrected["new"][1] == weight
    assert difference({name: figure for name, (figure, _) in corrected.items()}).drawn.std() == pytest.approx(
        gain.drawn.std()
    )
    its_own = correct(found.people["new"], found.few["new"], found.many["new"])[1]
    assert weight != pytest.approx(its_own, abs=0.01)


def test_the_order_of_pairs_changes_nothing_but_chance():
    grades, columns = sample(world("good"), 3)
    generator = np.random.default_rng(1)
    order = np.append(generator.permutation(GRADED), GRADED + generator.permutation(JUDGED - GRADED))
    turned = Grades(grades.people[order[:GRADED]], grades.grader[order])
    first, second = (
        difference({name: figure for name, (figure, _) in correct_all(found, "old").items()})
        for found in (
            figures_of(grades, columns, resamples=4_000),
            figures_of(turned, {name: column[order] for name, column in columns.items()}, resamples=4_000),
        )
    )
    assert first.value == pytest.approx(second.value, abs=0.01)
    assert first.drawn.std() == pytest.approx(second.drawn.std(), rel=0.06)


def test_a_sample_that_is_not_random_is_noticed_and_a_random_one_rarely_is_not():
    whole = world("good")
    noticed = []
    for seed in range(100):
        grades, _ = sample(whole, seed)
        noticed.append(unlike(grades))
    assert sum(noticed) <= 5
    grades, _ = sample(whole, 0, judged=600)
    ends = np.argsort(-np.abs(grades.grader - 2.5), kind="stable")  # the clear cases, as many high as low
    high = np.argsort(-grades.grader, kind="stable")
    for order in (ends, high):
        assert unlike(Grades(grades.people, grades.grader[order]))


def made(graded=GRADED, kind="good", unjudged=0):
    """Pairs that people graded, those that a language model graded, and what two models say of both."""
    grades, columns = sample(world(kind), 4, graded)
    texts = [(f"a {number}", f"b {number}") for number in range(JUDGED)]
    pairs = pair_set(texts[:graded], grades.people / 5, "my")
    own = grades.grader[:graded].copy()
    own[:unjudged] = np.nan
    rest = pair_set(texts[graded:], grades.grader[graded:], "gpt-x")
    return pairs, JudgedPairs("gpt-x", own, rest), columns


def results(pairs, judged, columns):
    n = len(pairs)
    return compare(
        pairs,
        {name: column[:n] for name, column in columns.items()},
        baseline="old",
        judged=judged,
        rest={name: column[n:] for name, column in columns.items()},
    )


def test_results_are_surer_add_up_and_keep_what_people_alone_say():
    pairs, judged, columns = made(unjudged=3)
    overlap, old, new = results(pairs, judged, columns)
    alone = compare(pairs, {name: column[:GRADED] for name, column in columns.items()}, baseline="old")
    assert [r.judged.alone for r in (overlap, old, new)] == [r.score for r in alone]
    assert new.judged.alone_difference == alone[2].difference
    assert new.difference.delta == pytest.approx(new.score.value - old.score.value)
    widths = [found.difference.high - found.difference.low for found in (new, alone[2])]
    assert widths[0] < 0.85 * widths[1]
    note = new.judged
    assert (note.grader, note.graded, note.both, note.judged) == ("gpt-x", 40, 37, 197)
    assert note.counts_like == pytest.approx(40 * (widths[1] / widths[0]) ** 2, rel=0.15)
    assert not note.unused
    assert new.to_dict()["judged"]["grader"] == "gpt-x"
    assert "judged" not in alone[2].to_dict()


@pytest.mark.parametrize(
    ("graded", "unjudged", "kind", "why"),
    [(40, 21, "good", FEW), (40, 0, "random", DISAGREES)],
)
def test_grades_that_cannot_help_leave_the_results_of_people_alone(graded, unjudged, kind, why):
    pairs, judged, columns = made(graded, kind, unjudged)
    found = results(pairs, judged, columns)
    alone = compare(pairs, {name: column[:graded] for name, column in columns.items()}, baseline="old")
    assert [(r.score, r.difference) for r in found] == [(r.score, r.difference) for r in alone]
    assert {r.judged.unused for r in found} == {why}
    assert {r.judged.counts_like for r in found} == {40.0}


def test_twenty_pairs_with_both_grades_are_enough():
    assert {r.judged.unused for r in results(*made(40, "good", 20))} == {""}


def test_a_sample_that_is_not_random_is_not_corrected():
    pairs, judged, columns = made()
    lifted = JudgedPairs("gpt-x", np.minimum(5, judged.grades + 2), judged.rest)
    assert {r.judged.unused for r in results(pairs, lifted, columns)} == {UNLIKE}


def test_grades_count_like_no_more_pairs_than_there_are(monkeypatch):
    """Resamples of few pairs can say so; who grades every pair as people do would be worth these."""
    pairs, judged, columns = made()
    monkeypatch.setattr(judged_module, "counts_like", lambda *_: 1_000.0)
    assert {note.counts_like for note in with_judge(pairs, judged, columns, "old").notes.values()} == {200.0}


def test_without_a_baseline_every_model_has_a_correction_of_its_own():
    pairs, judged, columns = made()
    found = with_judge(pairs, judged, columns, None)
    assert found.notes["old"].weight != found.notes["new"].weight
    assert all(note.counts_like > 40 for note in found.notes.values())
