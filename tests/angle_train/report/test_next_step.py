"""Bad news told well: both figures, what to do next with its price, the same model, what would get worse."""

from dataclasses import asdict

import pytest
from report_examples import BETTER, WORSE, report, result

from angle_train.evaluation.power import share_found
from angle_train.report.next_step import grade_more, more_pairs
from angle_train.report.right_shares import RightShares
from angle_train.report.text import advice
from angle_train.report.verdict import IN_TUNED_HARMFUL
from angle_train.training.guards import Loss

PROMISING = (0.10, -0.04, 0.24)
SHARES = {"comparisons": [asdict(RightShares("set0", {"backbone": 0.75, "tuned": 0.82}, {}))]}


def kept(*tested, **details):
    return report(*tested, kept="backbone", details=SHARES | details).verdict


def test_the_headline_has_both_figures_and_says_that_only_grades_are_missing():
    said = kept(PROMISING)
    assert said.headline == (
        "Not shown to be better, so the backbone stays: of 100 comparisons 75 come out right, 82 with the "
        "tuned weights; too few grades to be sure."
    )
    assert said.next in said.lines
    # ±14 on 200 pairs: an error of 7.1; a gain of 10 must be 2.8 of them, which takes four times the pairs.
    assert said.next == (
        "Next: grade about 610 more test pairs (about 2 h 2 min at 12 seconds a pair) and fit again: a gain "
        "of this size is then found 8 times in 10; where your texts do not give so many, label "
        "more texts first; a language model's grades beside yours (--judged) may spare you a third of that"
    )
    assert not any("see ±5" in line for line in said.evidence)  # one number of pairs, not two


@pytest.mark.parametrize("tested", [[WORSE], [PROMISING, WORSE], [(-0.02, -0.16, 0.12)]])
def test_nobody_is_sent_to_grade_where_that_would_not_help(tested):
    said = kept(*tested)
    assert "too few grades" not in said.headline
    assert said.next.startswith("Next: read the losses")


def test_a_proven_gain_needs_no_next_step():
    said = report(BETTER, details=SHARES).verdict
    assert said.next == ""
    assert said.headline == "Better: of 100 comparisons 82 come out right, 75 before."
    assert not any("grade about" in line for line in [*said.lines, *said.evidence])


def test_so_many_more_pairs_find_the_gain_as_often_as_promised():
    """By the other side's formula: that of the power which is said before training."""
    error = 0.6 / 200**0.5
    found = result("set", "tuned", 0.5, (0.08, 0.08 - 1.96 * error, 0.08 + 1.96 * error))
    assert share_found(0.08, 200 + more_pairs(found)) == pytest.approx(0.8, abs=0.01)


def test_of_several_sets_the_nearest_is_named_and_a_tiny_gain_is_not_worth_the_grading():
    far, near = (result(name, "tuned", 0.5, (gain, gain - 0.14, gain + 0.14)) for name, gain in
                 (("far", 0.05), ("near", 0.10)))  # fmt: skip
    assert "more test pairs of near" in grade_more([far, near])
    tiny = kept((0.01, -0.13, 0.15))
    assert "too small to be shown" in tiny.next
    assert "too few grades" not in tiny.headline


def test_weights_that_changed_nothing_are_called_the_same_model():
    said = kept((0.0, 0.0, 0.0), same=True)
    assert said.headline.startswith("The same model, for training changed nothing: of 100")
    assert "give every pair the same similarity" in said.advice
    assert said.next.startswith("Next: see whether anything was to be learned")


def test_an_evaluation_calls_equal_rankings_the_same_model_too():
    alike = result("set", "other", 0.5, (0.0, 0.0, 0.0))
    said = advice([alike], "base")
    assert said == "The same model as base, or one that ranks all 200 pairs alike: keep base."
    assert advice([alike, alike], "base").startswith(
        "The same model as base, or one that ranks everything alike"
    )
    assert "same model" not in advice([alike, result("set", "other", 0.5, BETTER)], "base")


def test_a_model_that_is_better_and_no_better_than_chance_is_not_to_be_used():
    chance, sound = result("set", "new", -0.2, BETTER), result("more", "new", 0.5, BETTER)
    assert advice([chance], "base").endswith("but it ranks them no better than chance, so use neither.")
    assert advice([chance, sound], "base").endswith(": use it.")


def test_what_the_tuned_weights_would_lose_is_said_where_the_backbone_stays_too():
    loss = Loss("labelled", "news", 90, before=0.8, after=0.7, loss=0.1, low=0.05, high=0.15)
    guards = {"most": 3.0, "losses": [asdict(loss)]}
    said = kept(PROMISING, guards=guards)
    assert said.worse.startswith("What got worse with the tuned weights: news")
    tuned = report(BETTER, details={"guards": guards}).verdict
    assert tuned.worse.startswith("What got worse: news")


def diluted(mixed, **more):
    """Details of a run that gained 10 on the dev pairs, until guards asked for 80 % of the backbone."""
    loss = Loss("labelled", "news", 900, before=0.8, after=0.6, loss=0.2, low=0.15, high=0.25)
    figures = {"planned": 0.7, "mixed": mixed, "backbone": 0.6} | more
    guards = {"most": 1.0, "losses": [], "spared": [asdict(loss)], "where_chosen": figures}
    return {"guards": guards, "merge": {"share": 0.8}}


@pytest.mark.parametrize("tested", [[(0.01, -0.02, 0.04)], [WORSE], [PROMISING]])
def test_where_guards_took_the_gain_they_are_what_to_decide_on(tested):
    said = kept(*tested, **diluted(0.62))
    assert said.next == (
        "Next: decide what may get worse, for with 80 % of the backbone less than half of the gain is left: "
        "--guard-loss allows more; fewer epochs or a lower learning_rate may cost less elsewhere"
    )
    told = "the tuned weights have 62.0 with this share, 70.0 as planned; the backbone has 60.0"
    assert said.spared.endswith(f"--guard-loss allows more. On the dev pairs {told}")
    choice = {"chosen": 0, "compared": 3, "confidence": 0.3, "simplest": 0.6, "best": 0.63, "judged": 400}
    judged = kept(*tested, choice=choice, **diluted(0.62))
    assert judged.spared.endswith(f"On the dev pairs {told}")  # not on those that it graded
    assert said.lines[1:3] == [said.spared, said.next]
    assert "too few grades" not in said.headline  # one thing to do, not two


def test_a_report_of_before_the_dev_figures_were_kept_is_told_without_them():
    details = diluted(0.62)
    del details["guards"]["where_chosen"]
    said = kept(PROMISING, **details)
    assert said.spared.endswith("news by 20.0 [15.0, 25.0]; --guard-loss allows more")
    assert said.next.startswith("Next: grade about 610 more")


def test_what_guards_left_the_gain_of_is_judged_as_all_else():
    plain = kept(WORSE)
    assert kept(WORSE, **diluted(0.651)).next == plain.next  # more than half is left
    assert kept(WORSE, **diluted(0.58, planned=0.59)).next == plain.next  # nothing was to be taken
    assert kept(WORSE, **diluted(0.6, planned=0.609)).next == plain.next  # nor anything to speak of
    assert "less than half of the gain is left" in kept(WORSE, **diluted(0.649)).next
    assert "80 % of the backbone nothing of the gain is left" in kept(WORSE, **diluted(0.59)).next
    leak = {"role": "test", "name": "set0", "origin": "training", "count": 200, "pairs": 50, "texts": 0.9}
    assert "--drop-leaks" in kept(BETTER, leaks=[leak], **diluted(0.62)).next
    assert report(BETTER, details=diluted(0.62)).verdict.next == ""


@pytest.mark.parametrize("tested", [[(0.002, -0.018, 0.024)], [PROMISING], [WORSE]])
def test_training_that_spoiled_the_model_is_said_though_guards_hid_it(tested):
    said = kept(*tested, **diluted(0.87, planned=0.485, backbone=0.881))
    assert said.next == (
        "Next: look at the training pairs, for with them the model fell from 88.1 to 48.5 on the dev pairs "
        "before guards mixed the backbone in: are their scores turned round, or do they stand beside other "
        "texts?"
    )
    assert "--guard-loss allows more" not in said.spared
    assert said.advice.endswith(IN_TUNED_HARMFUL)
    assert "too few grades" not in said.headline
    chance = kept(*tested, **diluted(0.87, planned=0.80, backbone=0.881))
    assert chance.next == kept(*tested).next
    assert "--guard-loss allows more" in chance.spared


def test_a_leaky_test_set_is_no_reason_to_grade():
    leak = {"role": "test", "name": "set0", "origin": "training", "count": 200, "pairs": 50, "texts": 0.9}
    said = kept(BETTER, leaks=[leak])
    assert "--drop-leaks" in said.next
    chosen_by = kept(BETTER, leaks=[leak | {"origin": "dev"}])
    assert chosen_by.next.startswith("Next: give test pairs that are not among the dev pairs")
    both = kept(BETTER, leaks=[leak, leak | {"origin": "dev"}])
    assert "--drop-leaks" in both.next


def test_that_nothing_is_known_of_a_loss_is_said_of_weights_that_were_taken_only():
    """Pairs without labels alone refuse nothing."""
    loss = Loss(
        "own", "your own texts", 90, before=1.0, after=0.9, loss=0.1, low=0.05, high=0.15, refuses=False
    )
    guards = {"most": 3.0, "losses": [asdict(loss)]}
    assert kept(PROMISING, guards=guards).worse == ""
    assert "not known" in report(BETTER, details={"guards": guards}).verdict.worse
