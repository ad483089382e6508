from dataclasses import replace

import pytest
from ensembles import evidence_of

from angle_data.ensembling.evidence import Verdict
from angle_data.ensembling.report import grade_notes
from angle_data.records import Candidate
from angle_data.text import pair_key

SAID = {"synonym": "We lost {}, {} says.", "antonym": "The {} works as it should, {} says."}


def candidates(*annotators, sources=20):
    """A synonym and an antonym of each annotator for every source; no two are alike."""
    things = [f"{noun} of unit {i}" for i, noun in enumerate(["disk", "fan", "node", "link", "probe"] * 4)]
    return [
        Candidate(f"t{i}", f"The {it} is down.", polarity, text.format(it, model), model, f"k{i}")
        for i, it in enumerate(things[:sources])
        for model in annotators
        for polarity, text in SAID.items()
    ]


def graded(rows, *graders, wrong=0):
    """Synonyms 4 and antonyms 1 by every grader; the first `wrong` rows get what the other polarity has."""
    high = [(row.polarity == "synonym") != (number < wrong) for number, row in enumerate(rows)]
    grades = zip(rows, (4.0 if each else 1.0 for each in high), strict=True)
    return {pair_key(row.source, row.text): dict.fromkeys(graders, grade) for row, grade in grades}


def join(one, other):
    return {pair: {**one.get(pair, {}), **other.get(pair, {})} for pair in one.keys() | other.keys()}


def test_a_grader_that_hardly_tells_the_polarities_apart_is_left_out():
    rows = candidates("a")
    # Ten of twenty synonyms and as many antonyms the wrong way round: half of the wins, half of the losses.
    grades = join(graded(rows, "poor", wrong=20), graded(rows, "good"))
    evidence = evidence_of(rows, grades)
    why = "hardly tells synonyms from antonyms (area under the curve 0.50, 0.75 is needed)"
    good, poor = Verdict(1.0, {"a": 1.0}, None), Verdict(0.5, {"a": 0.5}, why)
    assert evidence.verdicts == {"good": good, "poor": poor}
    assert evidence.used == ["good"]
    assert evidence.grades == graded(rows, "good")


@pytest.mark.parametrize(("wrong", "auc", "used"), [(10, 0.75, True), (12, 0.7, False)])
def test_the_limit(wrong, auc, used):
    """With a share e of either side wrong, the area is ((1 - e)² + (1 - e) e), that is 1 - e."""
    rows = candidates("a")
    evidence = evidence_of(rows, graded(rows, "x", wrong=wrong))
    assert evidence.verdicts["x"].auc == pytest.approx(auc)
    assert evidence.used == ["x"] * used


def test_too_few_pairs_judge_no_grader_and_disputed_ones_do_not_count():
    rows = candidates("a")
    evidence = evidence_of(rows, graded(rows[1:], "x", wrong=39))
    assert (evidence.verdicts, evidence.graded) == ({"x": Verdict(0.0, {}, None)}, 39)
    disputed = replace(rows[0], polarity="antonym", model="b")  # a calls it a synonym
    evidence = evidence_of([*rows, disputed], graded(rows, "x"))
    assert evidence.verdicts["x"] == Verdict(1.0, {}, None)  # 19 synonyms of a are left


@pytest.mark.parametrize(("number", "trusted"), [(0, True), (38, True), (40, False)])
def test_a_grader_of_given_pairs_that_nothing_checks_is_said(number, trusted):
    rows = candidates("a")
    given = pair_key("One text.", "Another.")
    grades = {**graded(rows[:number], "x"), given: {"x": 3.0}}
    evidence = evidence_of(rows, grades, {given})
    assert evidence.used == ["x"]
    said = "x graded given pairs and fewer than 20 candidates of either polarity: its grades are believed"
    assert any(note.startswith(said) for note in grade_notes(evidence, {})) == trusted
    assert "x graded given pairs" not in str(grade_notes(evidence_of(rows, graded(rows, "x")), {}))


def test_a_grader_of_its_own_or_of_other_pairs_is_not_used():
    rows = candidates("a", "b")
    mine = [row for row in rows if row.model == "a"]
    grades = join(graded(mine, "a"), {pair_key("What else?", "Nothing."): {"stray": 3.0}})
    evidence = evidence_of(rows, grades)
    why = "graded none of the candidates, or only those it wrote itself"
    assert evidence.verdicts == {"a": Verdict(None, {}, why), "stray": Verdict(None, {}, why)}
    assert (evidence.grades, evidence.graded, len(evidence.pairs)) == ({}, 0, 80)


def turned(rows, *annotators):
    """The candidates, those of some annotators with the other polarity."""
    other = {"synonym": "antonym", "antonym": "synonym"}
    return [replace(r, polarity=other[r.polarity]) if r.model in annotators else r for r in rows]


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_an_annotator_turned_round_vetoes_no_good_grader(names):
    rows = candidates(*names)
    evidence = evidence_of(turned(rows, "b"), graded(rows, "x"))
    assert evidence.used == ["x"]
    assert evidence.verdicts["x"].annotators == {name: float(name != "b") for name in names}


def test_annotators_that_confuse_the_polarities_veto_no_good_grader():
    """Of a and b half are the wrong way round, whatever the grader says."""
    rows = candidates("a", "b", "c")
    mixed = [turned([row], "a", "b")[0] if int(row.source_id[1:]) % 2 else row for row in rows]
    evidence = evidence_of(mixed, graded(rows, "x"))
    assert evidence.verdicts["x"].annotators == {"a": 0.5, "b": 0.5, "c": 1.0}
    assert evidence.used == ["x"]


@pytest.mark.parametrize(("names", "wrong"), [("a", "a"), ("abc", "ab")])
def test_annotators_turned_round_or_the_scale_upside_down(names, wrong):
    """Which of the two it is cannot be told, so the grades are not used, and the words leave it open."""
    area = "0.00" if names == "a" else "0.33, a 0.00, b 0.00, c 1.00"
    rows = candidates(*names)
    evidence = evidence_of(turned(rows, *wrong), graded(rows, "x"))
    assert evidence.used == []
    said = f"grades antonyms above synonyms (area under the curve {area}, 0.75 is needed)"
    assert evidence.verdicts["x"].reason == said
