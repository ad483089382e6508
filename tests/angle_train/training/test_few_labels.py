"""Few human-graded pairs, beside others and as their own dev set; what else is chosen or dropped by pairs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cut_runs import CutOff, cut_off
from train_runs import (
    changed,
    evaluate_model,
    now,
    run_data,
    run_of,
    same_weights,
    saved_score,
    state,
    tuned_weights,
    weights,
    write,
)

from angle_data.errors import InputError
from angle_train import run as fit_module
from angle_train.data.pairs import load_pairs
from angle_train.data.splits import run_leaks
from angle_train.model.load import load_backbone
from angle_train.recipe import Recipe
from angle_train.run import fit
from angle_train.training import distillation, trainer
from angle_train.training import folds as cross_fitting
from angle_train.training.presets import settle

SHORT = {
    "loss": "papers",
    "epochs": 2,
    "batch_size": 16,
    "learning_rate": 2e-3,
    "evals_per_epoch": 1,
}


@pytest.fixture(scope="module", autouse=True)
def _short():
    """Two parts; and no HTML report, whose figures take longer than the training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "write_fit_page", lambda *given: None)
        patch.setattr(cross_fitting, "PARTS", 2)
        yield


@pytest.fixture(scope="module")
def config(rows, tiny_model_dir, tmp_path_factory):
    """48 pairs and 32 human-graded ones, 8 of which are among the 48; 16 test pairs.

    Of the other 24 the machine has a paraphrase, so that training on its pairs helps on them.
    """
    folder = tmp_path_factory.mktemp("few")
    data = write(folder / "machine.jsonl", [*rows[16:40], *now(rows[40:64])])
    human, test = write(folder / "human.jsonl", rows[32:64]), write(folder / "test.jsonl", rows[64:80])
    values = SHORT
    return run_of(tiny_model_dir, folder / "out", data, values, human=[human], dev=None, test=[test])


@pytest.fixture(scope="module")
def result(config):
    return fit(config)


def test_human_pairs_choose_the_number_of_steps_in_turn(config, result):
    report, folds = result.report, result.report.details["folds"]
    assert folds["sizes"] == [16, 16]
    # The planned end, and another evaluation; nothing is mixed in.
    assert (folds["evaluation"], folds["share"], report.details["choice"]["compared"]) == (2, 0.0, 2)
    assert report.dev_before == report.details["choice"]["simplest"]
    assert report.dev_after == folds["curve"][1] > report.dev_before
    assert [point["dev"] for point in report.curve] == [report.dev_before, *folds["curve"]]
    # 40 + 32 pairs are 5 batches.
    assert [point["step"] for point in report.curve] == [0, 5, 10]
    assert report.planned_steps == report.steps == report.best_step == 10
    assert [(note.role, note.pairs) for note in report.data] == [("train", 72), ("human", 32), ("test", 16)]
    assert report.details["dropped"] == {"graded by humans": 8}
    assert [(r.role, r.pairs, r.count) for r in report.results[::3]] == [
        ("dev", "human/held out in turn", 32),
        ("test", "test", 16),
    ]
    assert not (config.out / "folds").exists()
    card = (config.out / "README.md").read_text()
    assert report.verdict.advice in card
    assert "dev_spearman" not in card  # the parts measured other models


def choosing_evaluation(evaluation, last):
    """Let the parts choose this evaluation: for what comes after the choice."""
    original = cross_fitting.choose

    def choose(*given):
        return replace(original(*given), chosen=1 + last - evaluation)  # the first candidate is the last one

    return choose


@pytest.mark.parametrize(("evaluation", "steps"), [(2, 8), (3, 12)])
def test_all_pairs_are_trained_on_for_as_large_a_share_as_the_parts_were(
    config, tmp_path, monkeypatch, evaluation, steps
):
    """A part of 16 pairs is 6 steps, measured after 2, 4 and 6; all 32 would be after 3, 6, 9 and 12."""
    monkeypatch.setattr(cross_fitting, "choose", choosing_evaluation(evaluation, 3))
    values = {"batch_size": 6, "evals_per_epoch": 2}
    report = fit(replace(changed(config, **values), data=[], out=tmp_path / "out")).report
    assert report.details["folds"]["sizes"] == [16, 16]
    assert report.dev_after == report.details["folds"]["curve"][evaluation - 1]
    assert report.details["folds"]["progress"] == pytest.approx([1 / 3, 2 / 3, 1])
    assert [point["step"] for point in report.curve] == [0, 4, 8, 12]
    assert (report.steps, report.best_step, report.planned_steps) == (steps, steps, 12)


def test_every_human_pair_is_measured_by_a_run_that_did_not_train_on_it(
    config, result, tmp_path, monkeypatch
):
    left_out, original, human = [], trainer.train, load_pairs(config.human[0])

    def watch(model, pairs, *given, evaluator=None, **options):
        trained = set(zip(pairs.text1, pairs.text2, strict=True))
        rest = [i for i in range(len(human)) if (human.text1[i], human.text2[i]) not in trained]
        left_out.append(rest)
        done = original(model, pairs, *given, evaluator=evaluator, **options)
        if evaluator:
            *_, last = evaluator.measured().values()
            expected = evaluate_model(model, human.take(rest, "left out"))
            np.testing.assert_array_equal(last[0], expected)
        return done

    monkeypatch.setattr(distillation, "train", watch)
    fit(replace(config, out=tmp_path / "out"))
    first, second, rest = left_out
    assert (sorted(first + second), rest) == (list(range(32)), [])
    assert weights(tmp_path / "out") == weights(config.out)


# A part is 4 steps an epoch, all pairs are 5.
@pytest.mark.parametrize(("folder", "step"), [("folds/part-2", 4), ("", 5)])
def test_a_run_killed_in_a_part_or_after_them_goes_on(config, result, tmp_path, folder, step):
    run = replace(config, out=tmp_path / "out")
    with cut_off("on_save", step, folder=folder), pytest.raises(CutOff):
        fit(run)
    for change in ({"human": [config.test[0]]}, {"recipe": config.recipe.with_overrides({"seed": 1})}):
        with pytest.raises(InputError, match="holds a run with different"):
            fit(replace(run, **change))
    fit(run)
    for name in ("model.safetensors", "report.json"):
        assert (run.out / name).read_bytes() == (config.out / name).read_bytes(), name
    assert weights(run.out) == weights(config.out)


def test_with_dev_pairs_human_pairs_train_along(config, tmp_path):
    # Dev pairs that are training pairs: tuning is surely better.
    given = replace(config, dev=config.human, test=(), out=tmp_path / "one")
    report = fit(given).report
    assert report.kept == "tuned"
    assert [(note.role, note.pairs) for note in report.data][:2] == [("train", 72), ("human", 32)]
    assert "folds" not in report.details


@pytest.fixture
def near_copies(config, rows, tmp_path):
    """A run that learns its 60 dev pairs from near copies of them: tuning is surely better."""
    data, dev = write(tmp_path / "alike.jsonl", now(rows[:60])), write(tmp_path / "dev.jsonl", rows[:60])
    return replace(config, data=[data], dev=[dev], human=(), test=(), out=tmp_path / "out")


def test_a_share_that_the_recipe_names_is_measured_on_the_way(near_copies, caplog):
    plain, mixed = (replace(near_copies, out=near_copies.out / name) for name in ("plain", "mixed"))
    fit(changed(plain, learning_rate=0.02))
    with caplog.at_level("INFO", logger="angle"):
        report = fit(changed(mixed, average_with_backbone=0.4, learning_rate=0.02)).report
    assert report.details["merge"] == {"share": 0.4}
    assert report.dev_after == report.curve[-1]["dev"]
    assert saved_score(mixed.out, near_copies.dev[0]) == pytest.approx(report.dev_after)
    assert report.details["choice"]["compared"] == 2
    assert "step 8 with 40 % of the backbone: Spearman" in caplog.text
    tuned, backbone = state(plain.out), state(near_copies.backbone)
    for name, weights_now in state(mixed.out).items():
        torch.testing.assert_close(weights_now, tuned[name].lerp(backbone[name], 0.4), msg=name)


def test_twenty_graded_pairs_cannot_choose_the_length(config, rows, tmp_path, caplog):
    human = write(tmp_path / "human.jsonl", rows[40:60])
    run = replace(changed(config, epochs=4), human=[human], out=tmp_path / "out")
    with caplog.at_level("INFO", logger="angle"):
        report = fit(run).report
    assert "20 graded pairs are too few to choose the training length (30 are enough)" in caplog.text
    assert "20 held-out pairs show a gain of about 38 points of Spearman 8 times in 10;" in caplog.text
    assert report.details["choice"]["compared"] == 1
    assert report.details["folds"]["sizes"] == [10, 10]
    assert report.steps == report.planned_steps
    # One figure for one thing: all pairs ranked together, each by the run that did not train on it.
    tuned = report.details["choice"]["best"]
    rows = [r for r in report.results if r.pairs == "human/held out in turn"]
    (row,) = [r for r in rows if r.model.startswith("tuned")]
    assert report.dev_after == tuned == row.score.value
    assert report.details["folds"]["curve"][-1] == report.curve[-1]["dev"] == tuned
    assert f"evaluation 4 of 4: Spearman {100 * tuned:.2f} on the held-out pairs" in caplog.text


def test_held_out_pairs_that_show_no_gain_leave_the_backbone(config, rows, tmp_path, caplog):
    """The scores of the graded pairs are shuffled: there is nothing that training could find out."""
    order = np.random.default_rng(1).permutation(32)
    shuffled = [row | {"score": rows[32 + i]["score"]} for row, i in zip(rows[32:64], order, strict=True)]
    human = write(tmp_path / "human.jsonl", shuffled)
    run = replace(config, human=[human], data=(), out=tmp_path / "out")
    with caplog.at_level("INFO", logger="angle"):
        report = fit(run).report
    choice = report.details["choice"]
    assert (report.kept, choice["chosen"], choice["compared"]) == ("backbone", 0, 2)
    assert report.steps == report.best_step == report.planned_steps
    assert f"better with confidence {choice['confidence']:.2f} (2 compared)" in caplog.text
    assert same_weights(run.out, config.backbone)
    assert not same_weights(run.out / "tuned", config.backbone)


@pytest.mark.parametrize("settings", [{}, {"cosine_weight": 0.0}])
def test_positive_pairs_alone_train_what_learns_from_the_batch(config, rows, tmp_path, settings):
    columns = [{"anchor": row["sentence1"], "positive": row["sentence2"]} for row in rows[:24]]
    data = write(tmp_path / "positives.jsonl", columns)
    run = replace(changed(config, epochs=1, **settings), data=[data], human=(), dev=config.test, test=())
    report = fit(replace(run, out=tmp_path / "out")).report
    assert report.data[0].pairs == 24
    with pytest.raises(
        InputError,
        match="training pairs of one score cannot choose the checkpoint; give --dev pairs",
    ):
        fit(replace(run, dev=(), out=tmp_path / "none"))


def test_positive_pairs_alone_are_refused_where_they_teach_nothing(config, rows, tmp_path):
    data = write(tmp_path / "ones.jsonl", [row | {"score": 1} for row in rows[:12]])
    run = replace(changed(config, in_batch_weight=0.0), data=[data], human=(), dev=config.test)
    with pytest.raises(InputError, match=r"ones: all 12 training pairs have score 1 .* set in_batch_weight"):
        fit(run)
    zeros = write(tmp_path / "zeros.jsonl", [row | {"score": 0} for row in rows[12:24]])
    data = run_data([data, zeros], (), run.dev, (), recipe=run.recipe)  # together they rank
    assert len(data.train) == 24


def test_the_length_follows_from_the_data(config, rows, tmp_path, caplog):
    long = [rows[0] | {"sentence1": "the node failed again and again " * 6}, *rows[1:40]]
    data = write(tmp_path / "data.jsonl", long)
    run = replace(changed(config, epochs=1, max_seq_length="auto"), data=[data], human=(), dev=config.test)
    learns = replace(changed(run, epochs=4), dev=[data], out=tmp_path / "out")
    with caplog.at_level("INFO", logger="angle"):
        report = fit(learns).report
    lengths = report.details["lengths"]
    assert lengths["max_seq_length"] < 64 == load_backbone(run.backbone, device="cpu").max_seq_length
    assert (
        load_backbone(str(tuned_weights(tmp_path / "out")), device="cpu").max_seq_length
        == lengths["max_seq_length"]
    )
    assert report.recipe["training"]["max_seq_length"] == "auto"
    assert Recipe.from_toml(tmp_path / "out" / "recipe.toml") == settle(learns.recipe, load_pairs(data))
    assert f"max_seq_length {lengths['max_seq_length']}: the longest training text has" in caplog.text
    cut = replace(changed(run, max_seq_length=4), out=tmp_path / "cut")
    with caplog.at_level("INFO", logger="angle"):
        assert fit(cut).report.details["lengths"]["truncated"] > 0.5
    assert "longer than 4 tokens and are cut; raise --max-seq-length if the model allows more" in caplog.text


def test_leaks_are_found_and_can_be_dropped(config, rows, tmp_path):
    half = [row | {"sentence2": "another text"} for row in rows[24:26]]
    dev = write(tmp_path / "dev.jsonl", [*rows[16:24], *half, *rows[76:86]])
    leak, *_ = run_leaks(run_data(config.data, (), [dev], (), recipe=config.recipe))
    assert (leak.role, leak.pairs, leak.count) == ("dev", 8, 20)
    assert 0.4 < leak.texts < 0.6
    without = run_data(config.data, (), [dev], (), recipe=config.recipe, drop_leaks=True)
    assert without.dropped == {"leaks": 8}
    assert len(without.train) == 40
    leak, *_ = run_leaks(without)
    assert leak.pairs == 0
    assert leak.texts > 0
