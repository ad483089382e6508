"""The search for a recipe: what it draws, whom it keeps, that it goes on, and what it says in the end."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from cut_runs import CutOff, cut_off
from train_runs import changed, evaluate_model, run_of, turned, write

from angle_data.errors import InputError
from angle_train import grid
from angle_train.data.pairs import load_pairs
from angle_train.evaluation.statistics import spearman
from angle_train.grid import SPACE, draw_trials, grid_table, search
from angle_train.recipe import Recipe
from angle_train.run import load_data, load_for_run
from angle_train.train import trainer
from angle_train.train.trainer import train


def test_trials_begin_with_the_recipe_as_given_and_are_drawn_evenly_on_a_logarithmic_scale(monkeypatch):
    monkeypatch.setattr(grid, "SPACE", SPACE)
    recipe = Recipe()
    trials = draw_trials(2000, 3, recipe)
    assert trials[0] == {}
    assert trials[:7] == draw_trials(7, 3, recipe)
    assert trials[1:7] != draw_trials(7, 4, recipe)[1:]
    assert all(set(values) == set(SPACE) for values in trials[1:])
    drawn = [values["angle_weight"] for values in trials[1:]]
    assert sum(value == 0 for value in drawn) / 2000 == pytest.approx(0.2, abs=0.03)
    positive = [value for value in drawn if value]
    assert 0.02 <= min(positive) < max(positive) <= 2
    assert sum(value < 0.2 for value in positive) / len(positive) == pytest.approx(0.5, abs=0.04)
    # All three weights are 0 now and then, which is no recipe; a term that is left out has no temperature.
    often = draw_trials(30, 0, recipe.with_overrides({"cosine_weight": 0.0}))[1:]
    assert all(values["angle_weight"] or values["in_batch_weight"] for values in often)
    assert all(set(values) == {*SPACE} - {"cosine_tau"} for values in often)


SETTINGS = {"epochs": 3, "batch_size": 16, "evals_per_epoch": 1, "learning_rate": 1e-6}
HOW = {"trials": 4, "rungs": 2, "seed": 1}


@pytest.fixture(scope="module", autouse=True)
def rates():
    """Trials of few steps differ by their learning rate alone, and learn something."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "SPACE", {"learning_rate": (1e-3, 3e-3, 0.0)})
        yield


@pytest.fixture(scope="module")
def config(rows, tiny_model_dir, tmp_path_factory):
    """A recipe that learns nothing."""
    folder = tmp_path_factory.mktemp("grid")
    train, dev = (write(folder / f"{name}.jsonl", rows[:48]) for name in ("train", "dev"))
    return run_of(tiny_model_dir, folder / "out", train, SETTINGS, dev=[dev])


@pytest.fixture(scope="module")
def found(config):
    return search(config, **HOW)


def rows_of(result, rung):
    return {row["trial"]: row for row in result["rows"] if row["rung"] == rung}


def test_trials_are_compared_at_the_same_share_of_their_full_training(config, found):
    """A round is the beginning of the training in full, not a short training of its own."""
    first, last = rows_of(found, 0), rows_of(found, 1)
    assert list(first) == [0, 1, 2, 3]
    assert list(last) == sorted({0, *sorted(first, key=lambda trial: -first[trial]["dev"])[:2]})
    assert {row["steps"] for row in first.values()} == {3}
    assert {row["steps"] for row in last.values()} == {9}
    alone = load_for_run(config)
    train(alone, load_data(config).train, config.recipe, config.out.parent / "alone")
    pairs = load_pairs(config.dev[0])
    assert spearman(pairs.score, evaluate_model(alone, pairs)) == pytest.approx(last[0]["dev"])


def test_a_trial_that_is_surely_better_is_found(config, found):
    last, best = rows_of(found, 1), found["best"]
    assert best == max(last.values(), key=lambda row: row["dev"])
    assert best["trial"] != 0
    assert found["choice"]["compared"] == 3
    assert found["choice"]["confidence"] > 0.9
    recipe = Recipe.from_toml(config.out / "recipe.toml")
    assert recipe.objective.loss == "graded"  # what the given recipe left open is chosen
    assert recipe.training == replace(config.recipe.training, **best["values"])
    assert recipe.description == f"Trial {best['trial']} of a grid of 4."
    gain = best["gain"]
    assert gain["delta"] == pytest.approx(best["dev"] - last[0]["dev"])
    points = f"{100 * gain['delta']:+.1f} [{100 * gain['low']:+.1f}, {100 * gain['high']:+.1f}]"
    told = f"Trial {best['trial']} is better than the recipe as given: {points} (confidence "
    assert found["verdict"].startswith(told)
    assert json.loads((config.out / "grid.json").read_text()) == found
    assert not list((config.out / "trials").glob("*/checkpoints"))
    lines = [line.split() for line in grid_table(found).splitlines()]
    assert lines[2][:4] == ["2", str(best["trial"]), "9", f"{100 * best['dev']:.2f}"]
    assert [line[1] for line in lines[2:-1] if line[0] == "1"] == [
        str(trial) for trial in sorted(range(4), key=lambda trial: -rows_of(found, 0)[trial]["dev"])
    ]


def test_the_given_recipe_is_kept_where_nothing_is_surely_better(config, tmp_path):
    """All trials are the same training, but for a rate that hardly differs."""
    run = replace(changed(config, learning_rate=2e-3), out=tmp_path / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "SPACE", {"learning_rate": (1.99e-3, 2.01e-3, 0.0)})
        result = search(run, trials=3, rungs=1)
    assert result["best"]["trial"] == 0
    assert Recipe.from_toml(run.out / "recipe.toml") == load_data(run).recipe
    assert result["verdict"].startswith("No trial ")


def test_no_trial_is_called_good_that_ranks_no_better_than_chance(config, rows, tmp_path):
    dev = write(tmp_path / "turned.jsonl", turned(rows[:48]))
    result = search(replace(config, out=tmp_path / "out", dev=[dev]), trials=2, rungs=1)
    assert max(row["dev"] for row in result["rows"]) < 0
    kept = "No trial ranks the dev pairs better than chance would: the recipe as given is kept."
    assert (result["best"]["trial"], result["verdict"]) == (0, kept)


def test_a_search_that_was_cut_off_goes_on_with_the_training_that_was(config, found, tmp_path, monkeypatch):
    run = replace(config, out=tmp_path / "out")
    trained = []

    def count(trainer_, *given, **options):
        trained.append(Path(trainer_.args.output_dir).parent.name)
        return original(trainer_, *given, **options)

    original = trainer.SentenceTransformerTrainer.train
    with cut_off("on_save", 6, folder="trials/trial-0"), pytest.raises(CutOff):
        search(run, **HOW)
    told = r"different seed of the grid \(1 -> 2\); give another directory"
    with pytest.raises(InputError, match=told):
        search(run, **HOW | {"seed": 2})
    monkeypatch.setattr(trainer.SentenceTransformerTrainer, "train", count)
    assert search(replace(run, overwrite=True), **HOW) == found  # it goes on as without
    assert trained == [f"trial-{trial}" for trial in rows_of(found, 1)]
    for name in ("grid.json", "recipe.toml"):
        assert (run.out / name).read_bytes() == (config.out / name).read_bytes(), name
    # Finished: it is only read again, also where there are fewer trials; more go on with those there are.
    trained.clear()
    assert search(run, **HOW) == found
    assert trained == []
    more = search(run, **HOW | {"trials": 5})
    assert [row for row in more["rows"] if row["rung"] == 0][:4] == found["rows"][:4]
    assert more["choice"]["compared"] == 4
    assert trained[0] == "trial-4"


def test_dev_pairs_that_are_trained_on_are_told(config, found, caplog):
    search(config, **HOW)
    assert "warning: 48 of 48 dev pairs of dev are training pairs too" in caplog.text


def test_rounds_that_end_at_the_same_evaluation_are_one(config, tmp_path):
    result = search(replace(changed(config, epochs=1), out=tmp_path / "out"), trials=2, rungs=2)
    assert [(row["rung"], row["steps"]) for row in result["rows"]] == [(0, 3), (0, 3)]


def test_the_command_takes_pairs_to_keep_and_prints_table_verdict_and_recipe(config, tmp_path, program):
    words = ("disk full", "a text about birds and bees", "")
    general = [{"text1": f"text {n}", "text2": f"{n} {words[n % 3]}"} for n in range(20)]
    kept = write(tmp_path / "kept.jsonl", general)
    out = tmp_path / "out"
    options = {"--backbone": config.backbone, "--data": config.data[0], "--dev": config.dev[0]}
    given = ["grid", "--out", out, "--trials", 2, "--rungs", 1, "--seed", 1, "--device", "cpu"]
    given += [part for pair in options.items() for part in pair]
    given += [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    code, said, _ = program(*given, "--keep", kept)
    assert not code
    run = replace(config, out=out, keep=[kept])
    found = search(run, trials=2, rungs=1, seed=1)  # everything has been measured
    assert {row["steps"] for row in found["rows"]} == {15}  # 48 pairs and 20 to keep
    assert said.startswith(f"{grid_table(found)}\n\n{found['verdict']}\nrecipe: {out / 'recipe.toml'}")
    told = shlex.split(said.splitlines()[-1].removeprefix("train with it: angle-train fit "))
    options |= {"--recipe": out / "recipe.toml", "--keep": kept, "--out": "model"}
    assert dict(zip(told[::2], told[1::2], strict=True)) == {k: str(v) for k, v in options.items()}
    shown = program(*given, "--keep", kept, "--json")[1]
    assert json.loads(shown)["best"]["trial"] == found["best"]["trial"]
    same = [{"text1": f"same {n}", "text2": f"same {n}"} for n in range(9)]
    alike = write(tmp_path / "alike.jsonl", same)
    hub = write(
        tmp_path / "hub.jsonl", [{"text1": f"a {n % 2}", "text2": f"{n}", "score": n % 5} for n in range(9)]
    )
    for more, refusal in (
        ([], "holds a run with different pairs to keep"),
        (["--dev", hub], "hub: 9 held-out pairs, of 2 sources, are too few to choose by; give"),
        (["--overwrite", "--keep", alike], "finds all its pairs equally similar"),
        (["--overwrite", "--keep", tmp_path / "no.jsonl"], "no.jsonl does not exist"),
        (["--device", "gpu"], "--device gpu: torch finds no such device here"),
        (["--trials", 1], "angle-train: error: --trials must be from 2 to 1000, got 1"),
        (["--trials", 1001], "--trials must be from 2 to 1000, got 1001"),
        (["--rungs", 0], "--rungs must be at least 1, got 0"),
        (["--seed", -1], "--seed must be at least 0, got -1"),
        (["--drop-leaks"], "no training pairs are left"),  # they are the dev pairs
    ):
        assert refusal in program(*given, *more)[2]
    assert (out / "grid.json").exists()  # what is refused replaces nothing


def test_a_search_has_a_directory_and_a_process_of_its_own(config, tmp_path, monkeypatch):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no earlier run"):
        search(replace(config, out=tmp_path))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="a grid runs in one process"):
        search(config)
