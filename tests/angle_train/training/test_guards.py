"""Guards: what tuned weights lose elsewhere, and that weights which surely lose too much are not taken."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from train_runs import changed, now, pair_set, run_of, same_weights, turned, write

from angle_data.errors import InputError
from angle_train import run as fit_module
from angle_train.data.guards import Guard, general_pairs, load_guards, own_pairs, own_texts
from angle_train.data.pairs import load_pairs
from angle_train.evaluation.similarity import word_overlap
from angle_train.evaluation.statistics import spearman
from angle_train.report.verdict import BACKBONE, IN_TUNED_HARMFUL, TUNED
from angle_train.run import fit, load_data
from angle_train.training.choosing import Candidate, choose
from angle_train.training.guards import (
    SHARES,
    SPENT,
    Loss,
    costs_sentence,
    guards_of,
    within_guards,
    worse_sentence,
    worth_of,
)

FAST = {"loss": "graded", "epochs": 3, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}
TEXTS = [(f"one {n}", f"two {n}") for n in range(60)]


def rising(noise=0.0, seed=0):
    """Similarities that rise with the scores of `TEXTS`, less steadily with noise."""
    return np.linspace(0, 1, 60) + noise * np.random.default_rng(seed).normal(size=60)


def labelled(most=1.0):
    """One labelled guard that the backbone ranks perfectly."""
    return guards_of([Guard("labelled", pair_set(TEXTS, name="titles"))], [rising()], most)


def tuned(harm):
    """What guards measure of weights that harm so much less, the more of the backbone is mixed in."""
    return lambda share, sets: [rising(harm * (1 - share)) for _ in sets]


def test_weights_that_harm_a_guard_are_had_with_more_of_the_backbone():
    planned = Candidate(8, 1, [rising()], 0.1)
    taken, weighed = within_guards(planned, labelled(), tuned(0.3))
    assert (taken.refused, taken.step) == (False, 8)
    assert taken.share > 0.1
    assert 100 * weighed.losses[0].loss <= 1
    assert weighed.spared == labelled().losses(tuned(0.3)(0.1, [0]))
    below = labelled().losses(tuned(0.3)(round(taken.share - 0.1, 1), [0]))
    assert 100 * below[0].loss > 1  # it is the least share that does
    assert within_guards(planned, labelled(most=50.0), tuned(0.3))[0] is planned
    asked = []
    within_guards(planned, labelled(), lambda share, sets: (asked.append(share), tuned(0.3)(share, sets))[1])
    assert asked[:2] == [0.1, 0.2]  # nothing is measured twice
    unchanged, weighed = within_guards(planned, labelled(), tuned(0.01))
    assert (unchanged, weighed.spared) == (planned, [])


def test_a_share_is_not_taken_because_its_loss_is_no_longer_sure():
    """60 pairs let a loss of many points pass as chance; that of the share which is kept is measured."""
    before, harmful = rising(0.3), rising(1.0, seed=2)
    guards = guards_of([Guard("labelled", pair_set(TEXTS, name="titles"))], [before], 1.0)

    def measured(share, sets):
        return [share * before + (1 - share) * harmful]

    taken, weighed = within_guards(Candidate(8, 1, [rising()]), guards, measured)
    at = {share: guards.losses(measured(share, 0))[0] for share in SHARES}
    edge = next(share for share in SHARES if not at[share].too_much(1.0))
    assert 100 * at[edge].loss > 3
    assert (taken.refused, weighed.losses[0].within(1.0)) == (False, True)
    assert taken.share > edge


def test_where_every_share_loses_more_though_not_surely_the_largest_is_taken():
    def measured(share, sets):
        return [-rising() if not share else rising(0.02)]  # 0.2 is lost, which is not sure

    few = guards_of([Guard("labelled", pair_set(TEXTS[:12]))], [rising()[:12]], 1.0)
    taken, weighed = within_guards(
        Candidate(8, 1, [rising()]), few, lambda *asked: [measured(*asked)[0][:12]]
    )
    assert (taken.share, taken.refused) == (SHARES[-1], False)
    assert 100 * weighed.losses[0].loss > 1 >= 100 * weighed.losses[0].low
    assert 100 * weighed.spared[0].low > 1


def test_weights_that_harm_a_guard_with_any_share_are_not_taken():
    def measured(share, sets):
        return [-rising() for _ in sets]

    dev = pair_set(TEXTS)
    base = Candidate(0, 0, [rising(2.0)])
    best, other = Candidate(8, 1, [rising()]), Candidate(4, 2, [rising(0.1)])
    assert choose([base, best, other], [dev]).chosen == 1
    refused, weighed = within_guards(best, labelled(), measured)
    assert (refused.refused, refused.share) == (True, best.share)
    assert weighed.losses[0].loss == pytest.approx(2)
    assert not weighed.spared
    choice = choose([base, refused, other], [dev])
    assert (choice.chosen, choice.refused) == (2, False)  # another one does no harm
    choice = choose([base, refused, replace(other, available=False)], [dev])
    assert (choice.chosen, choice.refused, choice.best) == (0, True, 1)
    assert "it surely loses too much on guards" in choice.sentence("", "dev pairs")


def test_a_loss_that_may_be_chance_refuses_nothing():
    few = Guard("labelled", pair_set(TEXTS[:12], name="few"))
    guards = guards_of([few], [rising()[:12]], 1.0)
    (loss,) = guards.losses([rising(0.02)[:12]])
    assert 100 * loss.loss > 1 >= 100 * loss.low
    assert not guards.refuse([loss])


def test_a_text_that_a_tenth_of_a_guards_pairs_have_hides_no_loss():
    draw = np.random.default_rng(1)
    texts = [("thanks" if n < 100 else f"a {n}", f"b {n}") for n in range(1_000)]
    truth = draw.normal(size=1_000)
    before, after = (truth + noise * draw.normal(size=1_000) for noise in (0.5, 1.3))
    guards = guards_of([Guard("labelled", replace(pair_set(texts), score=truth))], [before], 1.0)
    (loss,) = guards.losses([after])
    assert 0.2 < loss.loss < 0.4
    assert guards.refuse([loss])  # it was told as [-11, 71]


def test_pairs_that_share_texts_say_less_surely_that_a_guard_lost(tmp_path):
    def interval(texts):
        guards = guards_of([Guard("labelled", pair_set(texts, name="shared"))], [rising()], 1.0)
        (loss,) = guards.losses([rising(0.1)])
        return loss.loss, loss.high - loss.low

    lost, alone = interval(TEXTS)
    neighbours = [(f"text {n}", f"text {n + 1}") for n in range(60)]  # a chain ties all of them together
    assert interval(neighbours) == (lost, pytest.approx(alone, rel=0.5))
    rows = [{"text1": a, "text2": b, "score": n} for n, (a, b) in enumerate(neighbours)]
    file = write(tmp_path / "chain.jsonl", rows)
    assert len(load_guards([file], [], [], "0-59")[0].pairs) == 60  # and may guard
    harmed = np.argsort(np.abs(rising(0.1) - rising()))
    together = [TEXTS[0]] * 60
    for rank, position in enumerate(harmed):  # those that change alike share a text
        together[position] = (f"hub {rank // 20}", f"two {rank}")
    assert interval(together)[0] == lost
    assert interval(together)[1] > 1.2 * alone


def general(noise):
    """The general guard as a backbone sees it that ranks its pairs as they were written, but for noise."""
    pairs = general_pairs()
    return pairs, pairs.score + np.random.default_rng(1).normal(scale=noise, size=len(pairs))


def test_without_labels_the_loss_is_what_a_change_costs_that_knows_nothing_of_meaning():
    pairs, before = general(0.2)
    guards = guards_of([Guard("general", pairs)], [before], 1.0)
    assert 0.7 < guards.worth < 1
    (same,) = guards.losses([before])
    assert (same.loss, same.low, same.high, same.after) == (0, 0, 0, pytest.approx(1))
    blind = before + np.random.default_rng(2).normal(scale=0.3, size=len(before))
    (loss,) = guards.losses([blind])
    blindly = guards.worth * (1 - loss.after)
    assert loss.loss == pytest.approx(SPENT * blindly)
    clear = pairs.take(np.flatnonzero(pairs.score != 0.5).tolist(), "clear")
    kept = [column[pairs.score != 0.5] for column in (before, blind)]
    found = [spearman(clear.score, column) for column in kept]
    assert blindly == pytest.approx(found[0] - found[1], abs=0.05)  # what it does cost these pairs
    assert guards.refuse([loss])


def test_a_backbone_that_knows_no_more_than_shared_words_has_no_order_to_keep():
    pairs, known = general(0.2)
    chance = np.random.default_rng(3).normal(size=len(pairs))
    assert worth_of(pairs, known) > 0.5
    assert worth_of(pairs, chance) == 0
    guards = guards_of([Guard("general", pairs)], [chance], 1.0)
    (loss,) = guards.losses([-chance])
    assert not guards.refuse([loss])
    assert worse_sentence([loss], 1.0) == "What got worse: not known; give --guard pairs"


def test_an_order_is_known_only_if_it_is_surely_better_than_shared_words():
    pairs, _ = general(0.2)
    clear = pairs.score != 0.5
    words = spearman(pairs.score[clear], word_overlap(pairs)[clear])
    known = []
    for seed in range(12):
        similarity = pairs.score + np.random.default_rng(seed).normal(scale=0.3, size=len(pairs))
        assert spearman(pairs.score[clear], similarity[clear]) > words
        known.append(worth_of(pairs, similarity) > 0)
    assert {*known} == {False, True}  # it is a little better: now and then that is sure


def test_a_change_of_the_order_costs_a_part_of_what_a_blind_one_would():
    """Tuning is not blind to meaning: what would cost 2 points if it were is no sure loss of 1."""
    pairs, before = general(0.2)
    guards = guards_of([Guard("general", pairs)], [before], 1.0)
    for seed in range(2, 9):
        after = before + np.random.default_rng(seed).normal(scale=0.09, size=len(before))
        (loss,) = guards.losses([after])
        blind = 100 * guards.worth * (1 - loss.after)
        assert 1.5 < blind < 2.5
        assert 0 < 100 * loss.loss < 0.6 * blind
        assert not guards.refuse([loss])


def test_an_order_that_general_text_shows_to_be_better_is_no_loss():
    pairs, before = general(0.2)
    guards = guards_of([Guard("general", pairs)], [before], 1.0)
    (loss,) = guards.losses([pairs.score])
    assert loss.after < 0.95  # a change that would cost more than a point
    assert (loss.loss, loss.low, loss.refuses) == (0, 0, True)
    assert worse_sentence([loss], 1.0).startswith("What got worse: nothing that general text shows")
    same = np.where(pairs.score == 0.5, np.random.default_rng(4).normal(size=len(pairs)), before)
    (loss,) = guards.losses([same])  # how near the near copies are says nothing
    assert loss.loss == 0


def test_general_text_refuses_only_where_its_known_order_surely_got_worse():
    """Two models that know as much and differ in what they get wrong: each is better about as often."""
    pairs, _ = general(0.2)
    refused, worse = 0, 0
    for seed in range(12):
        one, other = (
            pairs.score + np.random.default_rng([seed, n]).normal(scale=0.2, size=len(pairs)) for n in (0, 1)
        )
        guards = guards_of([Guard("general", pairs)], [one], 1.0)
        (loss,) = guards.losses([other])
        assert 100 * (1 - loss.after) * guards.worth > 5
        refused += guards.refuse([loss])
        worse += loss.loss > 0
    assert 2 <= worse <= 10
    assert refused <= 2
    (loss,) = guards.losses([one + np.random.default_rng(20).normal(scale=0.4, size=len(pairs))])
    assert guards.refuse([loss])


def test_a_guard_that_lost_nothing_for_sure_asks_for_no_share():
    """Of the losses as measured on a noisy guard some are above the limit at any share, by chance."""
    harmed = Guard("labelled", pair_set(TEXTS, name="titles"))
    few = Guard("labelled", pair_set(TEXTS[:12], name="few"))
    own = Guard("own", pair_set(TEXTS, np.zeros(60), name="your own texts"))
    before = [rising(), rising(0.1, seed=1)[:12], rising()]

    def measured(share, sets):
        return [rising(0.12 * (1 - share)), rising(0.1, seed=5)[:12], -rising()][: len(sets)]

    planned = Candidate(8, 1, [rising()])
    alone, _ = within_guards(planned, guards_of([harmed], before[:1], 1.0), measured)
    taken, weighed = within_guards(planned, guards_of([harmed, few, own], before, 1.0), measured)
    assert 100 * weighed.losses[1].loss > 1 >= 100 * weighed.losses[1].low
    assert 0 < taken.share == alone.share < 0.9


def test_of_guards_that_lost_too_much_every_one_is_within_the_limit():
    less, more = (Guard("labelled", pair_set(TEXTS, name=name)) for name in ("less", "more"))
    before, harmful = rising(0.3), rising(1.0, seed=2)

    def measured(share, sets):
        mixed = share * before + (1 - share) * harmful
        return [rising(0 if share else 0.2), mixed][-len(sets) :]

    planned = Candidate(8, 1, [rising()])
    taken, weighed = within_guards(planned, guards_of([less, more], [rising(), before], 1.0), measured)
    alone, _ = within_guards(planned, guards_of([more], [before], 1.0), measured)
    assert [loss.name for loss in weighed.spared] == ["less", "more"]
    assert taken.share == alone.share
    assert all(loss.within(1.0) for loss in weighed.losses)


def test_an_estimate_alone_is_not_called_sure():
    general = Loss("general", "general text", 256, 1.0, 0.9, 0.03, 0.02, 0.04, True)
    titles = Loss("labelled", "titles", 200, 0.6, 0.5, 0.1, 0.07, 0.13, True)
    said = costs_sentence([general], 1.0)
    assert said == (
        "tuning costs more than --guard-loss 1 elsewhere by the estimate: general text by an estimated 3.0"
    )
    assert costs_sentence([titles, general], 1.0).startswith("tuning surely costs more than --guard-loss 1")


def test_the_order_of_the_users_own_texts_may_change():
    pairs, known = general(0.2)
    own = pair_set(TEXTS, np.zeros(60), name="your own texts")
    guards = guards_of([Guard("general", pairs), Guard("own", own)], [known, rising()], 1.0)
    losses = guards.losses([known, -rising()])
    assert 100 * losses[1].low > 50
    assert not guards.refuse(losses)


def test_what_got_worse_is_said_also_where_it_is_nothing():
    guards = labelled()
    assert re.fullmatch(
        r"What got worse: nothing, surely less than \d\.\d \(titles\)",
        worse_sentence(guards.losses([rising(0.01)]), 1.0),
    )
    told = worse_sentence(guards.losses([rising(0.5)]), 1.0)
    assert re.fullmatch(r"What got worse: titles by \d+\.\d \[\d+\.\d, \d+\.\d\]", told)


def test_a_guard_that_holds_is_told_beside_what_got_worse():
    worse = Loss("general", "general text", 256, 1.0, 0.9, 0.01, 0.005, 0.02, True)
    holds = Loss("labelled", "titles", 200, 0.6, 0.6, 0.0, -0.002, 0.0031, True)
    said = worse_sentence([worse, holds], 1.0)
    assert said == "What got worse: general text by an estimated 1.0; titles by less than 0.4, if at all"
    said = worse_sentence([worse, replace(holds, high=-0.001)], 1.0)
    assert said == "What got worse: general text by an estimated 1.0; titles did not"
    a_trace = replace(holds, loss=0.0003, low=0.0001)
    assert worse_sentence([a_trace], 1.0) == "What got worse: nothing, surely less than 0.4 (titles)"


def test_a_guard_too_small_to_tell_says_so():
    small = Loss("labelled", "few", 12, 0.6, 0.6, 0.0, -0.09, 0.066, True)
    general = Loss("general", "general text", 256, 1.0, 0.99, 0.004, 0.0, 0.013, True)
    vague = "few: not known, 12 pairs cannot rule out a loss of 6.6"
    assert worse_sentence([small], 1.0) == f"What got worse: nothing surely; {vague}"
    said = worse_sentence([small, general], 1.0)
    assert said == f"What got worse: general text by an estimated 0.4; {vague}"
    none = replace(general, loss=0.0)
    assert worse_sentence([small, none], 1.0) == f"What got worse: nothing surely; {vague}"
    assert worse_sentence([none], 1.0).startswith("What got worse: nothing that general text shows; give")
    lost = replace(general, loss=0.01, low=0.005, high=0.02)
    assert worse_sentence([small, lost], 1.0) == f"What got worse: general text by an estimated 1.0; {vague}"
    assert "not known" not in worse_sentence([small], 4.0)  # twice that is what it can tell
    sure = replace(small, pairs=5000, low=-0.002, high=0.002)
    assert worse_sentence([sure], 0.0) == "What got worse: nothing, surely less than 0.2 (few)"


def test_pairs_among_own_texts_are_near_and_far_and_always_the_same(examples):
    lines = (examples / "texts.jsonl").read_text().splitlines()
    every = [json.loads(line)["text"] for line in lines]
    guarded, rest = own_texts(pair_set([(text, "written") for text in every]))
    again, _ = own_texts(pair_set([(text, "other") for text in reversed(every)]))
    assert guarded == again
    assert sorted([*guarded, *rest]) == sorted(every)
    pairs = own_pairs(guarded)
    assert 200 < len(pairs) <= 3 * len(guarded) == 270
    assert {*pairs.text1, *pairs.text2} <= {*guarded}
    assert word_overlap(pairs).max() > 0.2 > word_overlap(pairs).min()
    assert own_pairs(["one text", "another"]) is None


def test_a_text_stands_with_the_nearest_the_20th_and_one_half_way_round():
    """Windows of one row of words: of a text in the middle the two that are d steps away share as much."""
    texts = [" ".join(f"word{n}" for n in range(start, start + 40)) for start in range(100)]
    pairs = own_pairs(texts)
    places = [sorted((texts.index(a), texts.index(b))) for a, b in zip(pairs.text1, pairs.text2, strict=True)]
    assert {b - a for a, b in places if a >= 20 and b < 80} == {1, 10, 50}


def test_general_text_is_in_no_set_that_trains():
    pairs = general_pairs()
    assert (len(pairs), len({*pairs.text1, *pairs.text2})) == (256, 256)
    learned = pair_set([(pairs.text2[0], pairs.text1[0]), *TEXTS])
    general, own = load_guards((), [learned], [f"one {n}" for n in range(9)])
    assert (len(general.pairs), own.kind) == (255, "own")


def then(rows):
    """Near copies of rows, other than `now` makes."""
    return [row | {"sentence2": f"{row['sentence2']} then"} for row in rows]


@pytest.fixture
def config(rows, tiny_model_dir, tmp_path, monkeypatch):
    """A run that learns the opposite of what people said, to which a guard holds."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)
    data, guard = write(tmp_path / "data.jsonl", turned(rows)), write(tmp_path / "guard.jsonl", then(rows))
    return run_of(tiny_model_dir, tmp_path / "out", data, FAST, guard=[guard])


def test_a_run_that_harms_a_guard_saves_no_harmful_weights(config):
    harmful = fit(changed(config, guard_loss=100.0))
    assert harmful.report.kept == "tuned"
    (loss,) = (one for one in harmful.report.details["guards"]["losses"] if one["kind"] == "labelled")
    assert 100 * loss["low"] > 1
    assert harmful.report.verdict.lines[1].startswith("What got worse: guard by ")
    card = (config.out / "README.md").read_text()
    assert harmful.report.verdict.lines[1] in card
    assert "* Guarded by: guard, " in card
    report = fit(replace(config, overwrite=True)).report
    assert same_weights(config.out, config.backbone)
    assert "Tuning surely costs more than --guard-loss 1 elsewhere" in report.verdict.advice
    assert report.verdict.advice.endswith(IN_TUNED_HARMFUL)
    assert "\nNext: " not in "\n".join(report.verdict.lines)
    assert not report.verdict.spared


def test_a_run_says_that_guards_asked_for_more_of_the_backbone_and_what_for(config):
    report = fit(changed(config, guard_loss=60.0)).report
    assert report.kept == "tuned"
    losses = report.details["guards"]["losses"]
    assert all(100 * one["low"] <= 60 for one in losses if one["refuses"])
    (spared,) = report.details["guards"]["spared"]
    assert 100 * spared["low"] > 60
    share = report.details["merge"]["share"]
    assert share > 0
    saved = next(row.score.value for row in report.results if row.role == "dev" and row.model == TUNED)
    assert report.details["choice"]["best"] == pytest.approx(saved)  # measured with that share
    said = report.verdict.lines[2]
    assert said.startswith(
        f"{100 * share:.0f} % of the backbone is mixed into the tuned weights: as planned, "
    )
    assert "planned, tuning surely costs more than --guard-loss 60 elsewhere: guard by " in said
    before = next(row.score.value for row in report.results if row.role == "dev" and row.model == BACKBONE)
    planned = next(point["dev"] for point in report.curve if point["step"] == report.best_step)
    told = f"{100 * saved:.1f} with this share, {100 * planned:.1f} as planned; the backbone has"
    assert said.endswith(f"On the dev pairs the tuned weights have {told} {100 * before:.1f}")
    assert saved < planned
    assert said in json.loads((config.out / "report.json").read_text())["verdict"]


def test_parts_held_out_in_turn_save_no_harmful_weights_either(config, rows, tmp_path, two_parts):
    data = [write(tmp_path / "machine.jsonl", now(turned(rows)))]
    by_parts = replace(config, dev=(), human=config.data, data=data)
    assert fit(changed(by_parts, guard_loss=100.0)).report.kept == "tuned"
    report = fit(replace(by_parts, overwrite=True)).report
    assert (report.kept, report.details["choice"]["refused"]) == ("backbone", True)
    assert "--merge-back mixes in more of the backbone; --guard-loss allows more" in report.verdict.advice
    assert same_weights(config.out, config.backbone)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([], r"guard.jsonl holds no pairs"),
        (
            [{"text1": f"a {n}", "text2": f"b {n}", "score": 1} for n in range(9)],
            r"all 9 scores are 1; a ranking needs",
        ),
        (
            [{"text1": f"a {n}", "text2": f"b {n}", "score": n % 2} for n in range(4)],
            r"4 pairs, 4 of them without a common text, cannot show a loss",
        ),
        (
            [{"text1": "a", "text2": f"b {n}", "score": n % 2} for n in range(9)],
            r"9 pairs, 1 of them without a common text, cannot show a loss",
        ),
        (
            [
                {"text1": a, "text2": f"b {n}", "score": n % 2}
                for n, a in enumerate(["a", "A", "a.", " A ", "a!"])
            ],
            r"5 pairs, 1 of them without a common text, cannot show a loss",
        ),
        (
            [{"text1": f"a {n}", "text2": f"b {n}", "score": int(n < 4)} for n in range(60)],
            r"56 of 60 pairs have the same score and 4 another, which cannot show a loss; give at least 5",
        ),
    ],
)
def test_guards_that_say_nothing_are_refused(program, config, tmp_path, written, message):
    given = ["fit", "--data", *config.data, "--backbone", config.backbone, "--out", tmp_path / "new"]
    code, _, said = program(*given, "--guard", write(tmp_path / "guard.jsonl", written))
    assert code == 1
    assert re.search(message, said.splitlines()[-1])
    assert not (tmp_path / "new").exists()


def test_pairs_that_train_guard_nothing(config, rows, tmp_path, caplog):
    with pytest.raises(
        InputError, match=r"all its pairs train or choose the weights; give pairs of other text"
    ):
        fit(replace(config, guard=config.data))
    mixed = write(tmp_path / "mixed.jsonl", [*rows[:20], *now(rows)[:30]])
    train = load_pairs(config.data[0])
    guard, _ = load_guards([mixed], [train], [])
    assert len(guard.pairs) == 30
    assert "20 of 50 pairs left out: they train or choose the weights (--data, --human, " in caplog.text


def test_dev_pairs_guard_nothing_test_pairs_with_a_warning_and_no_text_of_a_guard_is_kept(
    config, rows, tmp_path, caplog
):
    dev = rows[:20]
    test = now(rows)[20:30]
    other = now(rows)[30:60]
    files = {
        name: write(tmp_path / f"{name}.jsonl", part) for name, part in {"dev": dev, "test": test}.items()
    }
    guard = write(tmp_path / "guard.jsonl", [*dev, *test, *other])
    kept = write(
        tmp_path / "kept.jsonl", [*other, *({"text1": f"x {n}", "text2": f"y {n}"} for n in range(9))]
    )
    asked = replace(config, dev=[files["dev"]], test=[files["test"]], guard=[guard], keep=[kept])
    data, _ = load_data(asked)
    assert len(data.guards[0].pairs) == 40
    assert "20 of 60 pairs left out: they train or choose the weights" in caplog.text
    assert (
        f"--guard {guard}: 10 of 40 pairs are test pairs, so figures on these test pairs may be flattered"
        in caplog.text
    )
    assert {*data.kept.texts} == {f"{side} {n}" for side in "xy" for n in range(9)}
    assert f"--keep {kept}: " in caplog.text
    assert "left out: in data that measures (dev, test, guards)" in caplog.text
