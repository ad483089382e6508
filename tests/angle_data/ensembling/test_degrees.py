"""Runs in which sentences were asked for at degrees of similarity."""

import pytest
from ensembles import card, outcome_of, report, split_rows, write_grades, write_run

from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.ensembling.read import offers_of
from angle_data.ensembling.screen import gate, screen
from angle_data.records import Candidate
from angle_data.text import pair_key

WORDS = {
    5: "The {} of unit{} broke.", 4: "The {} of unit{} broke again.", 3: "Some {} near unit{} broke.",
    2: "The {} of unit{} runs well.", 1: "Spare parts are ordered on Mondays, says clerk {}{}.",
}  # fmt: skip
NOUNS = ("disk", "fan", "node", "link", "probe")


def asked(model, what, text, number=0, *, source=None):
    polarity, degree = (None, what) if isinstance(what, int) else (what, None)
    source = source or f"The {NOUNS[number % 5]} of unit{number} is down."
    return Candidate(f"t{number}", source, polarity, text, model, f"{model}{polarity}{number}", degree)


def ladder(model="d", sources=30):
    """A sentence at each degree for every source; the first is sources x 5 rows."""
    steps = [(i, degree) for i in range(sources) for degree in WORDS]
    return [asked(model, degree, WORDS[degree].format(NOUNS[i % 5], i), i) for i, degree in steps]


@pytest.mark.parametrize("strategy", ["concat", "vote", "principled"])
def test_degrees_become_scores_and_a_supervision_of_their_own(tmp_path, strategy):
    run = write_run(tmp_path / "run", ladder())
    summary = build_ensemble(EnsembleConfig((run,), tmp_path / "out", strategy, ratios=(1.0,)))
    assert summary.pairs == {"train": {"degrees": 150, "random": 30}}
    rows = [row for row in split_rows(tmp_path / "out")["train"] if row["supervision"] == "degrees"]
    assert {(r["polarity"], r["label"], r["score"]) for r in rows} == {
        ("", 1, 1.0), ("", 1, 0.8), ("", 0, 0.6), ("", 0, 0.4), ("", 0, 0.2),
    }  # fmt: skip
    assert min(r["weight"] for r in rows) > 0.96
    assert report(tmp_path / "out")["settings"]["labels"] == "graded"
    text = card(tmp_path / "out")
    assert "models wrote sentences at degrees of similarity for each source text" in text
    assert "| d | 0 | 0 | 150 |" in text


def test_binary_labels_part_four_from_three(tmp_path):
    run = write_run(tmp_path / "run", ladder())
    build_ensemble(EnsembleConfig((run,), tmp_path / "out", labels="binary", ratios=(1.0,)))
    rows = split_rows(tmp_path / "out")["train"]
    assert sorted(row["score"] for row in rows) == [0.0] * 90 + [1.0] * 60


def test_degrees_and_polarities_need_no_grades_to_be_put_together(tmp_path):
    others = [asked("a", "antonym", f"unit{i} has a {NOUNS[i % 5]} that works", i) for i in range(30)]
    runs = (write_run(tmp_path / "d", ladder()), write_run(tmp_path / "a", others))
    build_ensemble(EnsembleConfig(runs, tmp_path / "out", labels="graded", antonym_score=0.2, ratios=(1.0,)))
    rows = split_rows(tmp_path / "out")["train"]
    assert {r["score"] for r in rows if r["supervision"] == "polarity"} == {0.2}
    assert {r["score"] for r in rows if r["supervision"] == "degrees"} == {0.2, 0.4, 0.6, 0.8, 1.0}


@pytest.mark.parametrize("degree", [5, 3, 2, 1])
def test_a_low_degree_may_be_of_any_length(degree):
    reason = gate("The disk of the build host is full.", "Why? " * 30, degree=degree)
    assert reason == ("length_ratio" if degree >= 3 else None)


def test_a_first_degree_shares_no_word_and_is_on_topic_but_a_reply_that_lost_its_subject_is_not():
    others = [asked("a", "synonym", f"The {NOUNS[i % 5]} of unit{i} has failed.", i) for i in range(30)]
    rows = ladder()[4:]  # for the first source a first degree is all there is
    pairs, dropped = screen(offers_of([*rows, *others]))
    assert (len(pairs), dropped) == (176, [])
    lost = [asked("d", degree, f"Invoices were paid by wire {degree} times.") for degree in WORDS]
    _, dropped = screen(offers_of([*rows[1:], *lost, *others]))
    assert [(r.reason, r.degree) for r in dropped] == [("off_topic", degree) for degree in (1, 2, 3, 4, 5)]


def kept(outcome):
    return [(c.candidate.polarity or c.candidate.degree, c.models) for c in outcome.kept]


@pytest.mark.parametrize("strategy", ["concat", "vote", "principled"])
def test_a_degree_and_a_polarity_that_agree_are_one_pair(strategy):
    rows = [asked("a", "synonym", "It broke, the disk."), asked("d", 5, "it broke, the disk")]
    outcome = outcome_of(strategy, rows)
    assert kept(outcome) == [(5, ("a", "d"))]
    assert [(r.reason, r.model) for r in outcome.dropped] == [("duplicate", "a")]


def test_a_degree_and_a_polarity_that_do_not_agree_contradict_each_other():
    rows = [asked("a", "synonym", "It broke, the disk."), asked("d", 2, "it broke, the disk")]
    assert kept(outcome_of("concat", rows)) == [("synonym", ("a",)), (2, ("d",))]
    for strategy in ("vote", "principled"):
        assert [r.reason for r in outcome_of(strategy, rows).dropped] == ["conflict", "conflict"]


@pytest.mark.parametrize(("degree", "flags"), [(5, ()), (4, ()), (3, ("near_copy",)), (2, ("near_copy",))])
def test_a_low_degree_that_differs_by_a_word_is_flagged(degree, flags):
    outcome = outcome_of("vote", [asked("d", degree, "The disk of unit0 is up.")])
    assert [c.flags for c in outcome.kept] == [flags]


def grade(rows, odd):
    """As asked for, a tenth of a point less, but for texts with other grades."""
    found = {pair_key(row.source, row.text): odd.get(row.text, row.degree - 0.1) for row in rows}
    return {key: dict.fromkeys("xyz", score) for key, score in found.items()}


def test_grades_that_contradict_a_degree_drop_it_and_it_is_never_flipped():
    rows = ladder()
    odd = {WORDS[5].format("disk", 0): 1.0, WORDS[2].format("disk", 0): 5.0, WORDS[3].format("disk", 0): 5.0}
    outcome = outcome_of("principled", rows, grade(rows, odd))
    # A third degree is neither the same nor not: its score follows the grade.
    assert [(r.reason, r.degree) for r in outcome.dropped] == [("contradicted", 2), ("contradicted", 5)]
    assert not [c for c in outcome.kept if "flipped" in c.flags]


def test_grades_move_the_scores_of_degrees(tmp_path):
    """All 3 are graded 2, and one of them 4; the 5 are not graded."""
    rows = ladder()
    odd = {WORDS[3].format(NOUNS[i % 5], i): 2.0 for i in range(30)} | {WORDS[3].format("disk", 0): 4.0}
    lines = [
        {"text1": row.source, "text2": row.text, "score": found["x"], "model": "x"}
        for row, found in zip(rows, grade(rows, odd).values(), strict=True)
        if row.degree != 5
    ]
    scores, run = write_grades(tmp_path / "scores", lines), write_run(tmp_path / "run", rows)
    build_ensemble(EnsembleConfig((run,), tmp_path / "out", scores=(scores,), ratios=(1.0,)))
    found = {r["text2"]: r for r in split_rows(tmp_path / "out")["train"]}
    one, usual, top = (found[text] for text in (
        WORDS[3].format("disk", 0), WORDS[3].format("fan", 1), WORDS[5].format("fan", 1)
    ))  # fmt: skip
    assert 0.38 < usual["score"] < 0.45 < one["score"] < 0.8
    assert top["score"] == 1.0
    assert top["weight"] < usual["weight"] < 1
