from dataclasses import replace

import pytest

from angle_data.ensemble.graders import Verdict, judge
from angle_data.ensemble.principled import principled
from angle_data.ensemble.read import Grades, group_by_source
from angle_data.records import Candidate, Polarity
from angle_data.text import pair_key

TEXTS: tuple[tuple[Polarity, str], ...] = (
    ("synonym", "We lost the {} of unit {} again, {} says."),
    ("antonym", "The {} of unit {} works as it should, {} says."),
)


def candidates(*annotators: str, sources: int = 20) -> list[Candidate]:
    """A synonym and an antonym of each annotator for every source; no two are alike."""
    nouns = ("disk", "fan", "node", "link", "probe")
    return [
        Candidate(
            f"t{i}", f"The {noun} of unit {i} is down.", polarity, text.format(noun, i, model), model, f"k{i}"
        )
        for i, noun in ((i, nouns[i % 5]) for i in range(sources))
        for model in annotators
        for polarity, text in TEXTS
    ]


def graded(rows: list[Candidate], *graders: str, wrong: int = 0) -> Grades:
    """Synonyms 4 and antonyms 1 by every grader; the first `wrong` rows get what the other polarity has."""
    return {
        pair_key(row.source, row.text): dict.fromkeys(
            graders, 4.0 if (row.polarity == "synonym") != (number < wrong) else 1.0
        )
        for number, row in enumerate(rows)
    }


def join(*many: Grades) -> Grades:
    return {
        pair: {name: grade for grades in many for name, grade in grades.get(pair, {}).items()}
        for pair in set().union(*many)
    }


def test_a_grader_that_hardly_tells_the_polarities_apart_is_left_out() -> None:
    rows = candidates("a")
    # Ten of twenty synonyms and as many antonyms the wrong way round: half of the wins, half of the losses.
    grades = join(graded(rows, "poor", wrong=20), graded(rows, "good"))
    judgement = judge(group_by_source(rows), grades)
    assert judgement.verdicts == {
        "good": Verdict(1.0, {"a": 1.0}, None),
        "poor": Verdict(
            0.5, {"a": 0.5}, "hardly tells synonyms from antonyms (area under the curve 0.50, 0.75 is needed)"
        ),
    }
    assert judgement.used == ["good"]
    assert judgement.grades == graded(rows, "good")


@pytest.mark.parametrize(("wrong", "auc", "used"), [(10, 0.75, True), (12, 0.7, False)])
def test_the_limit(wrong: int, auc: float, used: bool) -> None:
    """With a share e of either side wrong, the area is ((1 - e)² + (1 - e) e), that is 1 - e."""
    rows = candidates("a")
    judgement = judge(group_by_source(rows), graded(rows, "x", wrong=wrong))
    assert judgement.verdicts["x"].auc == pytest.approx(auc)
    assert judgement.used == ["x"] * used


def test_a_grader_of_too_few_pairs_to_know_is_used() -> None:
    rows = candidates("a")
    antonyms = [row for row in rows if row.polarity == "antonym"]
    some = [row for row in rows if row not in antonyms[:1]]
    judgement = judge(group_by_source(rows), graded(some, "x", wrong=len(some)))
    assert judgement.verdicts == {"x": Verdict(0.0, {}, None)}
    assert judgement.used == ["x"]
    assert (judgement.graded, judgement.pairs) == (39, 40)


def test_a_grader_of_one_polarity_is_used() -> None:
    rows = candidates("a", sources=25)
    synonyms = [row for row in rows if row.polarity == "synonym"]
    judgement = judge(group_by_source(rows), graded(synonyms, "x"))
    assert judgement.verdicts == {"x": Verdict(None, {}, None)}
    assert judgement.used == ["x"]


def test_a_grader_of_its_own_or_of_other_pairs_is_not_used() -> None:
    rows = candidates("a", "b")
    mine = [row for row in rows if row.model == "a"]
    grades = join(graded(mine, "a"), {pair_key("What else?", "Nothing."): {"stray": 3.0}})
    judgement = judge(group_by_source(rows), grades)
    why = "graded none of the candidates, or only those it wrote itself"
    assert judgement.verdicts == {"a": Verdict(None, {}, why), "stray": Verdict(None, {}, why)}
    assert (judgement.grades, judgement.graded, judgement.pairs) == ({}, 0, 80)


def test_what_the_gate_drops_needs_no_grade() -> None:
    rows = candidates("a")
    blank = replace(rows[0], text="...")
    judgement = judge(group_by_source([*rows, blank]), graded(rows[:-3], "x"))
    assert (judgement.graded, judgement.pairs) == (37, 40)


def test_disputed_pairs_do_not_judge_a_grader() -> None:
    rows = candidates("a")
    disputed = replace(rows[0], polarity="antonym", model="b")  # a calls it a synonym
    judgement = judge(group_by_source([*rows, disputed]), graded(rows, "x"))
    assert judgement.verdicts["x"] == Verdict(1.0, {}, None)  # 19 synonyms of a are left


def test_graders_of_one_annotator_each_are_judged_together() -> None:
    """Alone, neither has enough grades to be known."""
    rows = candidates("a", "b", sources=10)
    parts = (graded([row for row in rows if row.model == name], f"of-{name}", wrong=20) for name in "ab")
    judgement = judge(group_by_source(rows), join(*parts))
    assert judgement.used == []


def turned(rows: list[Candidate], share: float, *annotators: str) -> list[Candidate]:
    """The first `share` of each annotator's candidates with the other polarity."""
    made = []
    for name in sorted({row.model for row in rows}):
        own = [row for row in rows if row.model == name]
        count = round(share * len(own)) if name in annotators else 0
        made += [
            replace(row, polarity="antonym" if row.polarity == "synonym" else "synonym")
            for row in own[:count]
        ]
        made += own[count:]
    return made


@pytest.mark.parametrize(
    ("names", "share", "own"),
    [
        ("abc", 1.0, 0.0),
        ("abc", 0.8, 0.2),
        ("ab", 1.0, 0.0),  # one of two: as many annotators speak for the grader as against it
    ],
)
def test_an_annotator_turned_round_does_not_condemn_a_good_grader(
    names: str, share: float, own: float
) -> None:
    rows = candidates(*names)
    judgement = judge(group_by_source(turned(rows, share, "b")), graded(rows, "x", "y"))
    verdict = judgement.verdicts["x"]
    assert (verdict.auc or 0.0) < 0.75
    assert verdict.annotators == pytest.approx(dict.fromkeys(names, 1.0) | {"b": own})
    assert judgement.used == ["x", "y"]
    assert judgement.remarks == [
        "b: its polarities disagree with grades that fit the other annotators' (area under the curve: "
        f"x {own:.2f}, y {own:.2f}). Read some of its candidates: replies may be swapped"
    ]


@pytest.mark.parametrize(("names", "wrong"), [("a", "a"), ("abc", "ab")])
def test_most_annotators_turned_round_or_the_scale_upside_down(names: str, wrong: str) -> None:
    """Which of the two it is cannot be told, so the grades are not used, and the words leave it open."""
    rows = candidates(*names)
    judgement = judge(group_by_source(turned(rows, 1.0, *wrong)), graded(rows, "x"))
    assert judgement.used == []
    if names == "a":
        assert str(judgement.verdicts["x"].reason) == (
            "grades antonyms above synonyms (area under the curve 0.00, 0.75 is needed): either grades or "
            "polarities are swapped"
        )
    else:
        assert "(area under the curve 0.33, a 0.00, b 0.00, c 1.00, 0.75 is needed)" in str(
            judgement.verdicts["x"].reason
        )


@pytest.mark.parametrize(("errors", "used"), [((0.25, 0.5, 0.0), True), ((0.3, 0.6, 0.15), False)])
def test_a_grader_weak_on_most_annotators_is_left_out(errors: tuple[float, ...], used: bool) -> None:
    """Areas of 0.75, 0.5 and 1, and of 0.7, 0.4 and 0.85; both make less than 0.75 together."""
    rows = candidates("a", "b", "c")
    parts = (
        graded(own, "x", wrong=round(error * len(own)))
        for error, own in zip(errors, ([r for r in rows if r.model == name] for name in "abc"), strict=True)
    )
    verdict = judge(group_by_source(rows), join(*parts)).verdicts["x"]
    assert verdict.annotators == pytest.approx({n: 1 - e for n, e in zip("abc", errors, strict=True)})
    assert (verdict.reason is None) is used


def test_annotators_of_few_pairs_do_not_judge_a_grader() -> None:
    """One with 19 sources has no area of its own: what is left is the one that was swapped."""
    rows = [*candidates("b"), *candidates("a", sources=19)]
    verdict = judge(group_by_source(turned(rows, 1.0, "b")), graded(rows, "x")).verdicts["x"]
    assert verdict.annotators == {"b": 0.0}
    assert verdict.reason


def test_a_weak_grader_with_a_taste_in_style_condemns_nobody() -> None:
    """It gives b's sentences 0 throughout, as one that goes by shared words does where b shares few."""
    rows = candidates("a", "b", "c", sources=30)
    grades = {
        pair_key(row.source, row.text): {"g": 0.0 if row.model == "b" else 3.0 + (row.polarity == "synonym")}
        for row in rows
    }
    sources = group_by_source(rows)
    judgement = judge(sources, grades)
    # Synonyms of a, b and c have 4, 0, 4, antonyms 3, 0, 3: of nine comparisons six are won, one is a tie.
    assert judgement.verdicts["g"].auc == pytest.approx(6.5 / 9)
    # Neither a nor c speaks against it; that b's grades are below all others does.
    assert judgement.verdicts["g"].annotators == {"a": 1.0, "b": 0.5, "c": 1.0}
    assert judgement.used == []
    assert principled(sources, judgement.grades) == principled(sources)
    believed = principled(sources, grades).details["reliability"]["b"]["synonym"]["reliability"]
    assert believed < 0.6  # what it would do if it were let in
