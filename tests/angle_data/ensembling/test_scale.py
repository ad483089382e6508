"""Where pairs stand by what was asked for, who was asked, and what graders saw."""

import pytest

from angle_data.ensembling.evidence import Evidence
from angle_data.ensembling.given import GivenPair
from angle_data.ensembling.read import Source
from angle_data.ensembling.scale import Scale
from angle_data.ensembling.screen import Screened, merge
from angle_data.ensembling.strategies import Choice
from angle_data.records import Candidate


def choices(model, asked, count=30):
    polarity, degree = (None, asked) if isinstance(asked, int) else (asked, None)
    found = []
    for i in range(count):
        text = f"source {i}"
        candidate = Candidate(f"t{i}", text, polarity, f"{model} {asked} {i}", model, f"k{i}", degree)
        found.append(Choice(Source(text, f"t{i}", text), candidate, (model,)))
    return found


def graded(pairs, *grades, grader="x"):
    """The pairs of `choices` in turn with each of the grades."""
    return {pair.key: {grader: grades[i % len(grades)]} for i, pair in enumerate(pairs)}


def scale_of(kept, given, grades, *, antonym_score):
    evidence = Evidence(Screened(merge(kept), []), grades, {pair.key for pair in given})
    return Scale(kept, given, evidence, antonym_score=antonym_score)


def level(scale, choice):
    return round(scale.of_choice(choice).value, 6)


def test_graders_of_other_scales_are_read_alike():
    """Grader y says 4 and 3 where x says 5 and 1; each graded other pairs."""
    same, other = choices("a", "synonym", 200), choices("a", "antonym", 200)
    grades = graded(same[:100], 5.0) | graded(other[:100], 1.0)
    grades |= graded(same[100:], 4.0, grader="y") | graded(other[100:], 3.0, grader="y")
    given = [GivenPair("one text", f"text {grade}") for grade in (2.0, 3.5, 4.5)]
    grades |= {pair.key: {"y": grade} for pair, grade in zip(given, (2.0, 3.5, 4.5), strict=True)}
    scale = scale_of([*same, *other], given, grades, antonym_score=0.2)
    assert level(scale, same[0]) == pytest.approx(level(scale, same[100]), abs=0.1)
    assert level(scale, other[0]) == pytest.approx(level(scale, other[100]), abs=0.1)
    # Below what y gives opposites, half-way to what it gives synonyms, and above that.
    values = [scale.of_given(pair).value for pair in given]
    assert values == pytest.approx([2 / 3, 3, 5], abs=0.1)


@pytest.mark.parametrize("score", [0.2, 0.5])
def test_antonyms_stand_about_their_score_in_the_order_of_their_grades(score):
    pairs = choices("a", "antonym")
    grades = graded(pairs[:-2], 0.5, 1.0, 1.5, 2.0)
    scale = scale_of(pairs, [], grades, antonym_score=score)
    levels = [level(scale, pair) for pair in pairs]
    assert levels[-1] == levels[-2] == pytest.approx(5 * score)
    assert levels[:4] == sorted(levels[:4])
    assert levels[0] < 5 * score < levels[3]
    assert sum(levels) / len(levels) == pytest.approx(5 * score, abs=0.1)


@pytest.mark.parametrize(("asked", "expected"), [("synonym", 5), ("antonym", 1.5), (4, 4), (1, 1)])
def test_without_grades_a_pair_stands_where_it_was_asked_for(asked, expected):
    pairs = choices("a", asked)
    assert level(scale_of(pairs, [], {}, antonym_score=0.3), pairs[0]) == expected


def test_annotators_are_expected_to_go_on_as_they_did():
    one, other = choices("a", "synonym"), choices("b", "synonym")
    grades = {**graded(one[:-1], 5.0), **graded(other[:-1], 4.0)}
    scale = scale_of([*one, *other], [], grades, antonym_score=0.5)
    assert level(scale, one[-1]) > 4.8
    assert level(scale, other[-1]) < 4.2


def test_grades_of_one_annotator_say_nothing_about_another():
    """What b writes at degree 1 are contradictions, which graders put at 2; what a writes is off topic."""
    one, other = choices("a", 1), choices("b", 1)
    scale = scale_of([*one, *other], [], graded(other, 2.0), antonym_score=0.2)
    assert level(scale, one[0]) == 1
    assert level(scale, other[0]) > 1.7


def test_levels_and_their_variances_are_posterior_means_by_hand():
    """Of forty pairs at degree 3 the first thirty have two grades each, 1.2 apart and about 2 or 3."""
    pairs = choices("a", 3, 40)
    means = [2.0 + i % 2 for i in range(30)]
    grades = {
        pair.key: {"x": mean + 0.6 * sign, "y": mean - 0.6 * sign}
        for i, (pair, mean) in enumerate(zip(pairs, means, strict=False))
        for sign in (1 if i // 2 % 2 else -1,)  # so that neither grader is the stricter
    }
    grades[pairs[28].key], grades[pairs[29].key] = {"x": 2.0, "y": 2.0}, {"x": 3.0, "y": 3.0}
    scale = scale_of(pairs, [], grades, antonym_score=0.5)
    noise = (28 * 2 * 0.6**2 + 20 * 0.15) / (30 + 20)  # of one grade; before any, 20 pairs say 0.15
    mean = (75 + 5 * 3) / 35  # thirty pairs of mean 2.5, and five that say 3
    square = (sum((value - mean) ** 2 for value in means) + 5 * 0.5) / 35
    spread = square - noise / 2
    share = spread / (spread + noise / 2)
    graded_pair, other = scale.of_choice(pairs[1]), scale.of_choice(pairs[39])
    assert (other.value, other.variance) == pytest.approx((mean, spread))
    assert graded_pair.value == pytest.approx(mean + share * (3 - mean))
    assert graded_pair.variance == pytest.approx(share * noise / 2)
    assert graded_pair.certainty == pytest.approx(1 / (1 + share * noise / 2))


def test_a_grade_is_read_on_straight_lines_between_what_is_known():
    same, other = choices("a", "synonym"), choices("a", "antonym")
    low, high = (30 * 1 + 5 * 1.5) / 35, (30 * 4 + 5 * 4.5) / 35  # five pairs say 1.5 and 4.5 beforehand
    read = {0.0: 0.0, low / 2: low / 2, low: low}
    read |= {(low + high) / 2: (low + 4.5) / 2, (high + 5) / 2: 4.75, 5: 5}
    given = [GivenPair("one text", f"text {grade}") for grade in read]
    grades = {**graded(same, 4.0), **graded(other, 1.0)}
    grades |= {pair.key: {"x": grade} for pair, grade in zip(given, read, strict=True)}
    scale = scale_of([*same, *other], given, grades, antonym_score=0.5)
    found = [scale.of_given(pair).value for pair in given]
    assert found == pytest.approx(list(read.values()), abs=1e-3)  # who may err counts a little less
