"""The search for a recipe: what it draws, whom it keeps, that it goes on, and what it says in the end."""

import json
import random
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cut_runs import CutOff, cut_off

from angle_data.errors import InputError
from angle_train import grid as grid_module
from angle_train.cli import main
from angle_train.data.pairs import load_pairs
from angle_train.evaluation.bootstrap import Difference
from angle_train.evaluation.similarity import evaluate_model, spearman
from angle_train.grid import (
    GridConfig,
    GridResult,
    Row,
    grid_table,
    most_rungs,
    planned,
    ranked,
    search,
    survivors,
)
from angle_train.recipe import Recipe
from angle_train.run import FitConfig, load_data, load_for_run
from angle_train.train import trainer
from angle_train.train.choosing import Choice
from angle_train.train.ranges import SPACE, Range, check_space, draw_trials, read_space, usable
from angle_train.train.trainer import train


def test_values_are_drawn_evenly_on_a_logarithmic_scale():
    generator = random.Random(1)
    drawn = [Range(1e-5, 1e-3, zero=0.25).draw(generator) for _ in range(4000)]
    assert sum(value == 0 for value in drawn) / 4000 == pytest.approx(0.25, abs=0.03)
    positive = [value for value in drawn if value]
    assert min(positive) >= 1e-5
    assert max(positive) <= 1e-3
    assert sum(value < 1e-4 for value in positive) / len(positive) == pytest.approx(0.5, abs=0.04)


def test_trials_begin_with_the_recipe_as_given_and_are_legal():
    recipe = Recipe()
    trials = draw_trials(SPACE, 40, 3, recipe)
    assert trials[0] == {}
    assert trials[:7] == draw_trials(SPACE, 7, 3, recipe)
    assert trials[1:] != draw_trials(SPACE, 40, 4, recipe)[1:]
    assert all(set(values) == set(SPACE) for values in trials[1:])
    # All three weights are 0 now and then; such a draw is no recipe.
    none = dict.fromkeys(("cosine_weight", "in_batch_weight"), Range(1, 2, zero=1.0))
    often = draw_trials(none | {"angle_weight": Range(1, 2, zero=0.5)}, 30, 0, recipe)
    assert all(values["angle_weight"] > 0 for values in often[1:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no ranges in it"),
        ("angle_tau = 3", r"angle_tau must be \{ low = …, high = … \} with 0 < low < high"),
        ("angle_tau = { low = 3 }", "angle_tau must be"),
        ("angle_tau = { low = 3, high = 2 }", "angle_tau must be"),
        ("angle_tau = { low = true, high = 2 }", "angle_tau must be"),
        ("angle_tau = { low = 1, high = 2, step = 1 }", "angle_tau must be"),
        ("angle_tau = { low = 1, high = 2, zero = 0.1 }", "angle_tau must be above 0, got 0"),
        ("angle_ta = { low = 1, high = 2 }", "unknown recipe key 'angle_ta', did you mean 'angle_tau'"),
        ("batch_size = { low = 8.5, high = 64 }", "batch_size must be a whole number, got 8.5"),
        ("epochs = { low = 1, high = 2 }", "epochs cannot be searched: the rounds decide"),
        ("human_weight = { low = 1, high = 2 }", "human_weight cannot be searched: it is given to the pairs"),
        ("average_with_backbone = { low = 0.1, high = 0.5 }", "average_with_backbone cannot be searched"),
        ("angle_tau = {", "not a valid TOML file"),
    ],
)
def test_ranges_that_cannot_be_searched_are_named(tmp_path, text, message):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_space(path)
    assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(InputError, match="no such file of ranges"):
        read_space(tmp_path / "missing.toml")


def test_whole_numbers_are_searched_as_such(tmp_path):
    (tmp_path / "space.toml").write_text(
        "batch_size = { low = 8, high = 64 }\nlora_rank = { low = 2, high = 8, zero = 0.5 }\n"
    )
    trials = draw_trials(read_space(tmp_path / "space.toml"), 40, 1, Recipe())[1:]
    assert {type(value) for values in trials for value in values.values()} == {int}
    assert len({values["batch_size"] for values in trials}) > 10
    assert all(8 <= values["batch_size"] <= 64 for values in trials)
    assert 0 in {values["lora_rank"] for values in trials}


@pytest.mark.parametrize(
    ("space", "settings", "message"),
    [
        ({"positive_score": Range(0.1, 0.3)}, {"negative_score": 0.5}, "must be below positive_score"),
        ({"angle_weight": Range(1, 2, zero=1.0)}, {"cosine_weight": 0, "in_batch_weight": 0}, "weights"),
    ],
)
def test_ranges_without_a_legal_draw_are_refused(space, settings, message):
    with pytest.raises(InputError, match=f"1000 draws in a row .*{message}.*; give other ranges"):
        draw_trials(space, 3, 0, Recipe().with_overrides(settings))


def test_what_has_been_used_before_the_search_cannot_be_searched():
    check_space({"negative_score": Range(0.1, 0.2)}, Recipe())
    with pytest.raises(InputError, match="negative_score cannot be searched: skip_near_copies"):
        check_space({"negative_score": Range(0.1, 0.2)}, Recipe().with_overrides({"skip_near_copies": True}))


def test_the_cost_of_the_rounds_counts_the_given_recipe():
    assert planned(27, 3) == [27, 10, 5]
    assert planned(2, 3) == [2, 2, 2]
    worst = dict.fromkeys(range(27), 0.5) | {0: 0.1}
    assert len(survivors(worst)) == 10
    assert (most_rungs(2), most_rungs(27)) == (2, 6)  # 27, 10, 5, 3, 2, 2
    assert ranked({0: 0.1, 1: 0.3, 2: 0.3, 3: 0.2}) == [1, 2, 3, 0]


def test_the_best_third_goes_on_and_the_given_recipe_always():
    assert survivors({0: 0.1, 1: 0.5, 2: 0.9, 3: 0.2, 4: 0.9, 5: 0.3, 6: 0.2}) == [0, 1, 2, 4]
    assert survivors({0: 0.9, 1: 0.5}) == [0]
    assert survivors({0: 0.2, 1: 0.2, 2: 0.2}) == [0]  # the earlier of equals


STRONG = {"learning_rate": 2e-3}


@pytest.fixture(scope="module")
def config(examples, tiny_model_dir, tmp_path_factory):
    """Four recipes of which one learns nothing, in two rounds."""
    folder = tmp_path_factory.mktemp("grid")
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("split") == "dev"]
    for name, part in {"train": rows[:48], "dev": rows[:48]}.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
    settings = {"epochs": 3, "batch_size": 16, "evals_per_epoch": 1, "learning_rate": 1e-6}
    run = FitConfig(
        data=[str(folder / "train.jsonl")],
        backbone=str(tiny_model_dir),
        out=folder / "out",
        recipe=Recipe().with_overrides(settings),
        dev=[str(folder / "dev.jsonl")],
        device="cpu",
    )
    return GridConfig(run, trials=4, rungs=2, seed=1, space={"learning_rate": Range(1e-3, 3e-3)})


@pytest.fixture(scope="module")
def found(config):
    return search(config)


def test_trials_are_compared_at_the_same_share_of_their_full_training(config, found):
    """A round is the beginning of the training in full, not a short training of its own."""
    out = config.run.out
    assert [(row.rung, row.trial) for row in found.rows[:4]] == [(0, trial) for trial in range(4)]
    last = {row.trial: row for row in found.rows if row.rung == 1}
    assert list(last) == survivors({row.trial: row.dev for row in found.rows if row.rung == 0})
    assert {row.steps for row in found.rows if row.rung == 0} == {3}
    assert {row.steps for row in last.values()} == {9}
    alone = load_for_run(config.run)
    train(alone, load_data(config.run).train, config.run.recipe, out.parent / "alone")
    pairs = load_pairs(config.run.dev[0])
    assert spearman(pairs.score, evaluate_model(alone, pairs)) == pytest.approx(last[0].dev)


def test_a_trial_that_is_surely_better_is_found(config, found):
    out = config.run.out
    last = {row.trial: row for row in found.rows if row.rung == 1}
    assert found.best == max(last.values(), key=lambda row: row.dev)
    assert found.best.trial != 0
    assert found.choice.compared == 3
    assert found.choice.confidence > 0.9
    recipe = Recipe.from_toml(out / "recipe.toml")
    assert recipe.objective.loss == "graded"  # what the given recipe left open is chosen
    assert recipe.training == replace(config.run.recipe.training, **found.best.values)
    assert "Trial" in recipe.description
    assert found.best.gain.delta == pytest.approx(found.best.dev - last[0].dev)
    assert json.loads((out / "grid.json").read_text()) == json.loads(json.dumps(found.to_dict()))
    assert not list((out / "trials").glob("*/checkpoints"))


def test_the_given_recipe_is_kept_where_nothing_is_surely_better(config, tmp_path):
    """All trials are the same training, but for a rate that hardly differs."""
    run = replace(config.run, out=tmp_path / "out", recipe=config.run.recipe.with_overrides(STRONG))
    result = search(replace(config, run=run, space={"learning_rate": Range(1.99e-3, 2.01e-3)}))
    assert result.best.trial == 0
    assert Recipe.from_toml(run.out / "recipe.toml") == load_data(run).recipe
    assert result.verdict().startswith("No trial ")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_search_that_was_cut_off_goes_on_with_the_training_that_was(
    config, found, tmp_path, monkeypatch, overwrite
):
    run = replace(config.run, out=tmp_path / "out", overwrite=overwrite)
    cut = replace(config, run=run)
    trained = []

    def count(trainer_, *given, **options):
        trained.append(Path(trainer_.args.output_dir).parent.name)
        return original(trainer_, *given, **options)

    original = trainer.SentenceTransformerTrainer.train
    with cut_off("on_save", 6, folder="trials/trial-0"), pytest.raises(CutOff):
        search(cut)
    for change, told in (
        ({"seed": 2}, r"seed \(1 -> 2\)"),
        ({"space": {"learning_rate": Range(1e-3, 2e-3)}}, "ranges"),
    ):
        other = replace(cut, **change, run=replace(run, overwrite=False))
        with pytest.raises(InputError, match=f"holds a grid with different {told}; give another directory"):
            search(other)
    monkeypatch.setattr(trainer.SentenceTransformerTrainer, "train", count)
    assert search(cut) == found
    finalists = [f"trial-{row.trial}" for row in found.rows if row.rung == 1]
    assert trained == finalists
    for name in ("grid.json", "recipe.toml"):
        assert (run.out / name).read_bytes() == (config.run.out / name).read_bytes(), name
    # Finished: it is only read again, but replaced with --overwrite.
    trained.clear()
    assert search(cut) == found
    assert len(trained) == (len(found.rows) if overwrite else 0)


def test_more_trials_go_on_with_those_there_are(config, found, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(config.run.out, out)
    more = search(replace(config, trials=5, run=replace(config.run, out=out)))
    assert [row for row in more.rows if row.rung == 0][:4] == found.rows[:4]
    assert more.choice.compared == 4


def test_dev_pairs_that_are_trained_on_are_told(config, found, caplog):
    search(config)
    assert "warning: 48 of 48 dev pairs of dev are training pairs too" in caplog.text


def test_more_rounds_than_trials_can_fill_are_refused(config):
    with pytest.raises(InputError, match="--rungs 9 is more than 4 trials need; give at most 4"):
        search(replace(config, rungs=9))


def test_rounds_that_would_be_one_and_the_same_are_refused(config):
    run = replace(config.run, recipe=config.run.recipe.with_overrides({"epochs": 1}))
    with pytest.raises(InputError, match=r"--rungs 2: rounds end at evaluations, .* give --rungs 1, or"):
        search(replace(config, run=run))


def test_a_search_needs_dev_pairs_and_a_directory_of_its_own(config, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="a grid needs dev pairs to choose on; give --dev"):
        search(replace(config, run=replace(config.run, dev=())))
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no earlier grid"):
        search(replace(config, run=replace(config.run, out=tmp_path)))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="a grid runs in one process"):
        search(config)


def made(best, confidence):
    rows = [
        Row(0, 0, 2, 0.5, None, {}),
        Row(0, 1, 4, 0.625, Difference(0.125, -0.05, 0.3, 0.1), {"learning_rate": 1e-4}),
    ]
    return GridResult(rows, rows[best], Choice(best, 4, confidence, [0.5, 0.625], 1), Recipe(), 0.25)


def test_what_was_chosen_is_said_with_how_sure_that_is():
    assert made(0, 0.71).verdict() == (
        "No trial is surely better than the recipe as given, which is kept: at best trial 1, "
        "+12.5 [-5.0, +30.0] (confidence 0.71, 4 compared)."
    )
    assert made(1, 0.97).verdict() == (
        "Trial 1 is better than the recipe as given: +12.5 [-5.0, +30.0] (confidence 0.97, 4 compared)."
    )


def test_the_table_shows_every_trial_the_best_first_with_its_interval():
    lines = grid_table(made(1, 0.97)).splitlines()
    assert [line.split() for line in lines[2:4]] == [
        ["1", "1", "4", "62.50", "+12.5", "[-5.0,", "+30.0]", "0.0001"],
        ["1", "0", "2", "50.00", "as", "given"],
    ]
    assert lines[-1].endswith("the backbone has 25.00.")


def test_ranges_that_no_trial_would_follow_are_refused_or_left_out():
    recipe = Recipe().with_overrides({"in_batch_weight": 0.0, "angle_weight": 0.0})
    with pytest.raises(InputError, match="angle_tau makes no difference where angle_weight is 0"):
        check_space({"angle_tau": Range(0.1, 1.0)}, recipe)
    with pytest.raises(InputError, match="lora_alpha makes no difference where lora_rank is 0"):
        check_space({"lora_alpha": Range(8, 64)}, recipe)
    check_space({"angle_tau": Range(0.1, 1.0), "angle_weight": Range(0.1, 1.0)}, recipe)
    assert set(usable({"angle_tau": SPACE["angle_tau"], "cosine_tau": SPACE["cosine_tau"]}, recipe)) == {
        "cosine_tau"
    }


def test_the_command_prints_table_verdict_and_recipe(config, found, monkeypatch, capsys):
    run = config.run
    options = {"--data": run.data[0], "--backbone": run.backbone, "--dev": run.dev[0], "--out": run.out}
    options |= {"--trials": 4, "--rungs": 2, "--seed": 1, "--device": "cpu"}
    space = run.out.parent / "space.toml"
    space.write_text("learning_rate = { low = 1e-3, high = 3e-3 }\n")
    settings = ["epochs=3", "batch_size=16", "evals_per_epoch=1", "learning_rate=1e-6"]
    given = [*options.items(), *(("--set", setting) for setting in settings), ("--space", space)]
    arguments = [str(part) for pair in given for part in pair]
    # Everything has been measured, so nothing is trained; the recipe's description plays no part.
    monkeypatch.setattr(grid_module, "train", None)
    for more in ([], ["--json"], ["--quiet"]):
        monkeypatch.setattr(sys, "argv", ["angle-train", "grid", *arguments, *more])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        out = capsys.readouterr().out
        if more == ["--quiet"]:
            assert out == ""
        elif more:
            assert json.loads(out)["best"]["trial"] == found.best.trial
        else:
            assert grid_table(found) in out
            assert f"\n{found.verdict()}\nrecipe: {run.out / 'recipe.toml'}" in out
            told = shlex.split(out.splitlines()[-1].removeprefix("train with it: angle-train fit "))
            options = {"--recipe": run.out / "recipe.toml", "--backbone": run.backbone, "--out": "model"}
            options |= {"--data": run.data[0], "--dev": run.dev[0]}
            assert dict(zip(told[::2], told[1::2], strict=True)) == {k: str(v) for k, v in options.items()}
    for more, refusal in (
        (["--device", "gpu"], "--device gpu: torch finds no such device here"),
        (["--drop-leaks"], "no training pairs are left"),  # they are the dev pairs
    ):
        monkeypatch.setattr(sys, "argv", ["angle-train", "grid", *arguments, *more])
        with pytest.raises(SystemExit):
            main()
        assert refusal in capsys.readouterr().err
