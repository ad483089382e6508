"""A run's report as data and in words: verdicts, advice, the table, report.json; what is kept."""

import json
import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from report_examples import (
    BETTER,
    CHOICE,
    FOLDS,
    NOT_SAVED,
    SAME,
    WORSE,
    made_report,
    report,
    result,
    untrained,
)
from train_runs import pair_set

from angle_train.data.splits import RunData
from angle_train.evaluation.compare import WORD_OVERLAP
from angle_train.recipe import Recipe
from angle_train.report.result import (
    FitReport,
    Trained,
    make_fit_report,
)
from angle_train.report.text import command_line, portable, results_table
from angle_train.training.choosing import TOO_FEW
from angle_train.training.trainer import Training

SAVED = " The tuned model was saved because the dev pairs chose it (--require-better saves the backbone)."
ALONE = CHOICE | {"chosen": 0, "compared": 1, "confidence": 0.4, "best": 0.45}


def test_table_is_aligned_and_multiplied_by_a_hundred():
    rows = [
        result("news", WORD_OVERLAP, -0.236),
        result("news", "backbone", 0.67),
        result("news", "tuned", 0.782, BETTER),
    ]
    assert results_table(rows).splitlines() == [
        "pairs    n  model         Spearman            95 %  difference          95 %  verdict",
        "-----  ---  ------------  --------  --------------  ----------  ------------  -------",
        "news   200  word overlap     -23.6  [-33.6, -13.6]",
        "news   200  backbone          67.0    [57.0, 77.0]",
        "news   200  tuned             78.2    [68.2, 88.2]        +5.0  [+1.0, +9.0]  better",
        "Spearman x 100, 95 % bootstrap intervals over pairs; differences to backbone, paired.",
    ]


def test_sets_of_one_name_have_their_role_behind_it():
    same = [result("x", "tuned", 0.9, role="test"), result("x", "tuned", 0.3, role="dev")]
    lines = results_table(same).splitlines()[2:-1]
    assert [line.split("  ")[0] for line in lines] == ["x (test)", "x (dev)"]
    assert results_table(same[:1]).splitlines()[2].startswith("x  ")


@pytest.mark.parametrize(
    ("tested", "advice"),
    [
        ([BETTER], "Better than the backbone by 5.0 [1.0, 9.0] on 200 pairs: use it."),
        ([BETTER, BETTER], "Better than the backbone on 2 of 2 sets: use it."),
        ([BETTER, SAME, SAME],
         "Better than the backbone on 1 of 3 sets, not reliably different on the others: use it."),
        ([BETTER, WORSE],
         "Better than the backbone on 1 of 2 sets, worse on 1: use it only where it is better." + SAVED),
        ([SAME],
         "Not reliably better than the backbone (+1.0 [-2.0, +4.0] on 200 pairs): use the backbone." + SAVED),
        ([SAME, SAME], "Not reliably better than the backbone on any of 2 sets: use the backbone." + SAVED),
        ([WORSE], "Worse than the backbone by 5.0 [1.0, 9.0] on 200 pairs: use the backbone." + SAVED),
        ([WORSE, SAME],
         "Not reliably better than the backbone on any of 2 sets, worse on 1: use the backbone." + SAVED),
    ],
)  # fmt: skip
def test_the_verdict_weighs_all_test_sets(tested, advice):
    assert report(*tested).verdict.lines[0] == report(*tested).verdict.advice == advice


def test_verdict_lists_each_test_set_with_its_interval():
    assert report(BETTER, WORSE, SAME).verdict.lines[1:] == [
        "set0: better, +5.0 [+1.0, +9.0]",
        "set1: worse, -5.0 [-9.0, -1.0]",
        "set2: no reliable difference, +1.0 [-2.0, +4.0]",
    ]


@pytest.mark.parametrize(
    ("tested", "shown"), [([BETTER], True), ([BETTER, SAME], True), ([SAME], False), ([BETTER, WORSE], False)]
)
def test_a_model_is_shown_to_be_better_on_some_pairs_and_worse_on_none(tested, shown):
    made = report(*tested)
    assert made.verdict.shown_better == shown
    assert any("--require-better" in line for line in made.verdict.lines) != shown


@pytest.mark.parametrize(
    ("details", "chose"), [({}, "dev pairs"), ({"folds": FOLDS}, "pairs held out in turn")]
)
def test_the_pairs_that_chose_the_tuned_model_are_no_witness_against_it(details, chose):
    """Their interval is wider than what the choice needs; both must not be told as two verdicts."""
    made = report(dev=SAME, details=details)
    assert made.verdict.advice == (
        "Not reliably better than the backbone (+1.0 [-2.0, +4.0] on 200 pairs): the "
        f"{chose} chose the tuned model with confidence 0.98, so it was saved; measure it on test pairs "
        "before you use it (--require-better saves the backbone)."
    )
    assert made.verdict.doubted
    assert "keep the backbone" not in " ".join(made.verdict.lines)


@pytest.mark.parametrize(
    ("details", "chose"), [({}, "the checkpoint"), ({"folds": FOLDS}, "the number of steps")]
)
def test_without_test_sets_the_verdict_rests_on_the_pairs_that_chose(details, chose):
    made = report(dev=BETTER, details=details)
    assert made.verdict.lines == [
        "Better than the backbone by 5.0 [1.0, 9.0] on 200 pairs: "
        "measure it on other pairs before you use it.",
        "picked: better, +5.0 [+1.0, +9.0]",
        f"these pairs also chose {chose}, so the gain is flattered; give --test pairs",
    ]


@pytest.mark.parametrize(
    ("role", "name", "shared", "named", "trusted"),
    [
        ("test", "set0", 2, True, True),  # a hundredth of the pairs moves little
        ("test", "set0", 3, True, False),
        ("test", "set0", 0, False, True),
        ("test", "another", 3, False, True),
        ("dev", "set0", 3, False, True),
    ],
)
def test_figures_on_pairs_that_were_learned_from_are_not_trusted(role, name, shared, named, trusted):
    leak = {"role": role, "name": name, "origin": "training", "count": 200, "pairs": shared, "texts": 0.1}
    made = report(BETTER, details={"leaks": [leak]})
    sentence = f"{shared} of 200 test pairs of set0 are training pairs too, which flatters the model"
    assert (sentence in made.verdict.lines) == named
    assert made.verdict.advice.endswith("pairs: use it.") == trusted


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (report(BETTER, kept="backbone"),
         "Tuning did not surely help: of 5 compared, none ranked the dev pairs better than the backbone "
         "by more than chance explains (confidence 0.63; 45.0 at best, backbone 50.0)"),
        (report(kept="backbone", details={"choice": ALONE}),
         "Tuning did not surely help: the tuned weights did not rank the dev pairs better than the backbone "
         "by more than chance explains (confidence 0.40; 45.0 at best, backbone 50.0)"),
        (untrained(),
         "Tuning did not surely help: of 5 compared, none ranked the held-out pairs better than the backbone "
         "by more than chance explains (confidence 0.63; 45.0 at best, backbone 50.0)"),
        (report(kept="backbone", details={"choice": ALONE | {"simplest": -0.5, "best": 0.0}}),
         "Tuning did not help: the tuned weights rank the dev pairs no better than chance would "
         "(0.0 at best, backbone -50.0)"),
        (report(kept="backbone", details={"choice": ALONE | {"confidence": None}}),
         f"Whether tuning helped is not known: the dev pairs {TOO_FEW}. The untouched backbone was saved."),
    ],
)  # fmt: skip
def test_a_kept_backbone_is_explained_and_nothing_else_is_claimed(made, why):
    end = "" if why.endswith(".") else ", so the untouched backbone was saved."
    assert made.verdict.lines == [why + end]


def test_results_are_named_after_what_was_saved():
    made = report(BETTER)
    assert [row.model for row in made.results] == ["tuned", "backbone", "tuned"]
    kept = made.with_backbone()
    assert [row.model for row in kept.results] == [NOT_SAVED, "backbone", NOT_SAVED]
    assert (kept.judged[0].difference, kept.tuned_name) == (made.judged[0].difference, NOT_SAVED)


@pytest.mark.parametrize("details", [made_report().details, {}])  # earlier runs had fewer
def test_json_report_holds_the_verdict_and_reads_back(tmp_path, details):
    made = replace(made_report(), details=details)
    made.write(tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["format"] == 1
    assert content["verdict"] == made.verdict.lines
    assert [row.get("verdict") for row in content["results"]].count("worse") == 1
    assert FitReport.read(tmp_path / "report.json") == made


def test_command_is_quoted_and_names_no_place_on_the_machine():
    line = command_line(
        "angle-train fit",
        {"data": ["my pairs.jsonl", "/b/c"], "x": None, "drop_leaks": True, "y": False},
        moved=True,
    )
    assert shlex.split(line) == [
        "angle-train", "fit", "--data", "my pairs.jsonl", "--data", "c", "--drop-leaks",
    ]  # fmt: skip
    assert portable("runs/pairs/dataset") == "runs/pairs/dataset"
    assert portable("hub:some/data") == "hub:some/data"
    assert portable("/home/someone/dev.jsonl") == "dev.jsonl"
    assert portable("/home/someone/pairs/dataset") == "pairs/dataset"


SOME = pair_set([(f"text {i}", f"other {i}") for i in range(6)])


def reported(data, training, dev_before, dev_after, **details):
    """The report of a run that was measured on one set alone."""
    ((_, pairs),) = sets = [("dev", data.dev[0] if data.dev else data.human)]
    like = [pairs.score]
    trained = Trained(training, sets, like, like, dev_before, dev_after, details)
    model = SimpleNamespace(device=torch.device("cpu"))
    return make_fit_report(Recipe(), data, trained, "some/model", {"leaks": []}, model)


@pytest.mark.parametrize(
    ("chosen", "after", "kept"),
    [(0, 0.7, "backbone"), (1, 0.7, "tuned"), (3, 0.5, "tuned")],  # the choice alone decides, not the figure
)
def test_the_choice_decides_what_is_saved(chosen, after, kept):
    training = Training([{"step": 2, "epoch": 1.0, "dev": after}], 2, 2, 2)
    made = reported(RunData(SOME, [SOME], []), training, 0.6, after, choice=CHOICE | {"chosen": chosen})
    assert made.kept == kept
    assert made.results[-1].model == made.tuned_name == ("tuned" if kept == "tuned" else NOT_SAVED)


def test_a_run_that_its_parts_advise_against_has_no_tuned_figures():
    training = Training([{"step": 2, "epoch": 1.0, "dev": 0.4}], 0, 2, 0)
    found = {"folds": FOLDS, "choice": CHOICE | {"chosen": 0}}
    made = reported(RunData(SOME, [], [], SOME), training, 0.6, 0.6, **found)
    assert (made.kept, made.tuned_name) == ("backbone", None)
    assert [result.model for result in made.results] == ["word overlap", "backbone"]
