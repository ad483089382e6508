"""Models of one training with several seeds, as mean and standard deviation."""

import json
from dataclasses import replace

import pytest
from train_runs import changed, run_of, write

from angle_train.evaluation.compare import Evaluation, Result
from angle_train.evaluation.seeds import kept_backbones, spreads
from angle_train.evaluation.statistics import Difference, Interval
from angle_train.recipe import Recipe, find_recipe
from angle_train.run import fit


@pytest.fixture
def saved(tmp_path):
    """Write what a model folder says of its training."""

    def save(name, seed, epochs=1, data="pairs", backbone="base", kept="tuned", roles=("test",)):
        recipe = {"description": "x", "training": {"seed": seed, "epochs": epochs}, "objective": {}}
        notes = [{"role": "train", "name": data}, *({"role": role, "name": name} for role in roles)]
        (tmp_path / name).mkdir()
        report = {"backbone": backbone, "recipe": recipe, "data": notes, "kept": kept}
        (tmp_path / name / "report.json").write_text(json.dumps(report))
        return str(tmp_path / name)

    return save


def result(model, value, gain=None, pairs="my", **more):
    difference = None if gain is None else Difference(gain, gain - 0.1, gain + 0.1)
    baseline = None if gain is None else "base"
    return Result(pairs, "test", 50, model, Interval(value, 0, 1), baseline, difference, **more)


def test_seeds_of_one_training_are_taken_together_and_others_are_not(saved):
    models = {saved(f"s{seed}", seed): f"s{seed}" for seed in (1, 2, 3)}
    models |= {
        saved("longer", 4, epochs=2): "longer",
        saved("other", 5, data="more"): "other",
        saved("untouched", 6, kept="backbone"): "untouched",
        "hub/id": "id",
    }
    results = [result(name, 0.7 + 0.01 * n, 0.1 + 0.02 * n) for n, name in enumerate(models.values())]
    results += [result("s1", 0.5, main=False, metric="auc"), result("base", 0.6)]
    (found,) = spreads(results, models)
    assert found.models == ["s1", "s2", "s3"]
    assert (found.mean, found.sd) == (pytest.approx(0.71), pytest.approx(0.01))
    assert (found.baseline, found.difference, found.difference_sd) == (
        "base",
        pytest.approx(0.12),
        pytest.approx(0.02),
    )
    said = "my: 3 seeds (s1, s2, s3): Spearman 71.0 ± 1.0, difference to base +12.0 ± 2.0."
    evaluation = Evaluation(results, seeds=[found])
    assert evaluation.notes == [said]
    assert json.loads(evaluation.to_json())["seeds"][0]["models"] == ["s1", "s2", "s3"]
    assert "seeds" not in json.loads(Evaluation(results).to_json())


def test_what_only_measured_parts_no_seeds_and_what_chose_does(saved):
    measured = {
        saved(f"m{n}", n, roles=[role]): f"m{n}" for n, role in enumerate(("test", "search", "judged"))
    }
    chosen = {saved(f"c{n}", n, roles=["test", "judged dev"]): f"c{n}" for n in (1, 2)}
    (found,) = spreads([result(name, 0.7) for name in (measured | chosen).values()], measured | chosen)
    assert found.models == ["m0", "m1", "m2"]


def test_one_seed_a_folder_without_a_report_or_a_damaged_one_have_no_spread(saved, tmp_path):
    models = {saved("s1", 1): "s1", str(tmp_path): "folder"}
    (tmp_path / "odd").mkdir()
    for content in ("[]", "{", '{"recipe": 3}'):
        (tmp_path / "odd" / "report.json").write_text(content)
        assert (
            spreads([result("s1", 0.5), result("odd", 0.5)], {**models, str(tmp_path / "odd"): "odd"}) == []
        )


def test_without_a_baseline_there_is_no_difference(saved):
    models = {saved(f"s{seed}", seed): f"s{seed}" for seed in (1, 2)}
    (found,) = spreads([result("s1", 0.5), result("s2", 0.7)], models)
    assert found.sentence() == "my: 2 seeds (s1, s2): Spearman 60.0 ± 14.1."


def test_a_run_that_kept_the_backbone_is_named(saved, tmp_path):
    kept = saved("kept", 1, kept="backbone")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "report.json").write_text("[]")
    models = {kept: "kept", saved("tuned", 1): "tuned", str(tmp_path / "odd"): "odd", "hub/id": "id"}
    assert kept_backbones(models) == {"kept": ""}
    (note,) = Evaluation([result("kept", 0.5)], untuned={"kept": ""}).notes
    assert note == "kept is the backbone: its run kept that."
    (tmp_path / "kept" / "tuned").mkdir()
    found = Evaluation([result("kept", 0.5)], untuned=kept_backbones(models))
    assert found.notes == [f"kept is the backbone: its run kept that; what it tuned is in {kept}/tuned."]
    assert json.loads(found.to_json())["untuned"] == {"kept": f"{kept}/tuned"}
    assert "untuned" not in json.loads(Evaluation([result("kept", 0.5)]).to_json())


def test_seeds_of_real_runs_are_taken_together(rows, tiny_model_dir, tmp_path, program):
    """A recipe of the toolkit has a description, and its report has whatever reports have."""
    data = write(tmp_path / "data.jsonl", rows[:48])
    run = run_of(tiny_model_dir, tmp_path / "s1", data, {})
    values = {"loss": "graded", "epochs": 2, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}
    run = changed(replace(run, recipe=Recipe.from_toml(find_recipe("default"))), **values)
    for seed in (1, 2):
        fit(changed(replace(run, out=tmp_path / f"s{seed}"), seed=seed))
    models = [name for seed in (1, 2) for name in ("--model", tmp_path / f"s{seed}")]
    code, table, _ = program("eval", *models, "--baseline", tiny_model_dir, "--pairs", data)
    assert code == 0
    assert ": 2 seeds (s1, s2): Spearman " in table
