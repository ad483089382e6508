"""The search for a recipe: what it draws, whom it keeps, that it goes on, and what it says in the end."""

import json
import random
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cut_runs import CutOff, cut_off

from angle_data.errors import InputError
from angle_train import grid as grid_module
from angle_train.data.pairs import KEPT, load_pairs
from angle_train.evaluation.bootstrap import Difference
from angle_train.evaluation.similarity import evaluate_model
from angle_train.evaluation.statistics import spearman
from angle_train.grid import (
    GridConfig,
    GridResult,
    Row,
    grid_table,
    planned,
    ranked,
    search,
    survivors,
)
from angle_train.recipe import Recipe
from angle_train.run import FitConfig, load_data, load_for_run
from angle_train.train import trainer
from angle_train.train.choosing import Choice
from angle_train.train.ranges import SPACE, Range, draw_trials, usable
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


def test_temperatures_of_terms_without_weight_are_left_out():
    recipe = Recipe().with_overrides({"in_batch_weight": 0.0, "angle_weight": 0.0})
    assert set(usable(SPACE, recipe)) == set(SPACE)  # the weights are searched too
    temperatures = {name: SPACE[name] for name in ("cosine_tau", "angle_tau", "learning_rate")}
    assert set(usable(temperatures, recipe)) == {"cosine_tau", "learning_rate"}


def test_the_cost_of_the_rounds_counts_the_given_recipe():
    assert planned(27, 3) == [27, 10, 5]
    assert planned(2, 3) == [2, 2, 2]
    worst = dict.fromkeys(range(27), 0.5) | {0: 0.1}
    assert len(survivors(worst)) == 10
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
        with pytest.raises(InputError, match=f"holds a run with different {told}; give another directory"):
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


def test_rounds_that_would_be_one_and_the_same_are_refused(config):
    run = replace(config.run, recipe=config.run.recipe.with_overrides({"epochs": 1}))
    with pytest.raises(InputError, match=r"--rungs 2: rounds end at evaluations, .* give --rungs 1, or"):
        search(replace(config, run=run))


def test_pairs_to_keep_are_scored_by_the_backbone_and_train_in_every_trial(config, tmp_path, monkeypatch):
    kept = [{"text1": f"a text about {n}", "text2": f"{n} other words"} for n in range(20)]
    (tmp_path / "kept.jsonl").write_text("\n".join(map(json.dumps, kept)))
    run = replace(config.run, out=tmp_path / "out", keep=[str(tmp_path / "kept.jsonl")])
    trained = []

    def count(model, pairs, *given, **options):
        ways = zip(pairs.score, pairs.supervision, strict=True)
        trained.append([score for score, way in ways if way == KEPT])
        return train(model, pairs, *given, **options)

    monkeypatch.setattr(grid_module, "train", count)
    search(replace(config, run=run, trials=2, rungs=1))
    assert [len(scores) for scores in trained] == [20, 20]
    assert np.ptp(trained[0]) > 0
    with pytest.raises(InputError, match="holds a run with different pairs to keep"):
        search(replace(config, run=replace(run, keep=()), trials=2, rungs=1))


def test_the_command_passes_the_pairs_to_keep_and_names_them_for_fit(config, program, tmp_path):
    kept = [{"text1": f"a text about {n}", "text2": f"{n} other words"} for n in range(20)]
    (tmp_path / "kept.jsonl").write_text("\n".join(map(json.dumps, kept)))
    given = ["grid", "--data", *config.run.data, "--dev", *config.run.dev, "--backbone", config.run.backbone]
    given += [
        "--device",
        "cpu",
        "--trials",
        "2",
        "--rungs",
        "1",
        "--set",
        "epochs=1",
        "--out",
        tmp_path / "out",
    ]
    code, said, _ = program(*given, "--keep", tmp_path / "kept.jsonl")
    assert (code, said.count(f"--keep {tmp_path / 'kept.jsonl'}")) == (0, 1)
    state = json.loads((tmp_path / "out" / ".angle" / "fit_state.json").read_text())
    assert "pairs to keep" in state["fingerprint"]
    code, _, said = program(*given, "--keep", tmp_path / "nowhere.jsonl", "--overwrite")
    assert (code, "nowhere.jsonl does not exist" in said) == (1, True)
    alike = [{"text1": f"same {n}", "text2": f"same {n}"} for n in range(9)]
    (tmp_path / "alike.jsonl").write_text("\n".join(map(json.dumps, alike)))
    code, _, said = program(*given, "--keep", tmp_path / "alike.jsonl", "--overwrite")
    assert (code, "finds all its pairs equally similar" in said) == (1, True)
    assert (tmp_path / "out" / "grid.json").exists()


def test_a_search_needs_dev_pairs_and_a_directory_of_its_own(config, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="a grid needs dev pairs to choose on; give --dev"):
        search(replace(config, run=replace(config.run, dev=())))
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no earlier run"):
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


def test_the_command_prints_table_verdict_and_recipe(config, tmp_path, program, monkeypatch):
    run = config.run
    settings = ["epochs=3", "batch_size=16", "evals_per_epoch=1", "learning_rate=1e-6"]
    given = [*("--data", run.data[0], "--backbone", run.backbone, "--dev", run.dev[0], "--out", tmp_path)]
    given += [*("--trials", 2, "--rungs", 1, "--seed", 1, "--device", "cpu")]
    given += [part for setting in settings for part in ("--set", setting)]
    code, out, _ = program("grid", *given)
    assert not code
    found = search(replace(config, run=replace(run, out=tmp_path), trials=2, rungs=1, space=SPACE))
    assert out.startswith(f"{grid_table(found)}\n\n{found.verdict()}\nrecipe: {tmp_path / 'recipe.toml'}")
    told = shlex.split(out.splitlines()[-1].removeprefix("train with it: angle-train fit "))
    options = {"--recipe": tmp_path / "recipe.toml", "--backbone": run.backbone, "--out": "model"}
    options |= {"--data": run.data[0], "--dev": run.dev[0]}
    assert dict(zip(told[::2], told[1::2], strict=True)) == {k: str(v) for k, v in options.items()}
    # Everything has been measured, so nothing is trained again.
    monkeypatch.setattr(grid_module, "train", None)
    assert json.loads(program("grid", *given, "--json")[1])["best"]["trial"] == found.best.trial
    assert program("grid", *given, "--quiet")[1] == ""
    for more, refusal in (
        (["--device", "gpu"], "--device gpu: torch finds no such device here"),
        (["--drop-leaks"], "no training pairs are left"),  # they are the dev pairs
    ):
        assert refusal in program("grid", *given, *more)[2]
