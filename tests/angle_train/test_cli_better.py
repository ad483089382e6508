"""`angle-train fit --require-better`: the backbone where the test pairs do not show a gain."""

import json

import pytest
from train_runs import same_weights, saved_score, turned, write

LORA = ("--set", "lora_rank=2", "--set", "prompt=about: {text} now")
STAYS = "so the backbone stays. The tuned weights are in tuned/, "
TAKEN = (f"{STAYS}for you to take all the same.", "take it all the same")
HARMFUL = (f"{STAYS}to be looked at and not to be used.", "to look at")


@pytest.fixture
def fit(tmp_path, rows, tiny_model_dir, program):
    """Fit into a directory, on pairs with the dev pairs among them; returns exit code, stdout and stderr."""
    # The worst test that there can be: what was learned, the other way round.
    parts = {"train": rows[:60], "same": rows[:40], "wrong": turned(rows[:40])}
    # Nearly the same as what was learned, but other pairs.
    parts |= {
        word: [row | {"sentence1": f"{row['sentence1']} {word}"} for row in rows[:40]]
        for word in ("now", "too")
    }
    for name, part in parts.items():
        write(tmp_path / f"{name}.jsonl", part)

    def call(out, test, *more, dev="same.jsonl", rate="1e-3"):
        sources = {"data": "train.jsonl", "dev": dev} | ({"test": test} if test else {})
        given = [word for name, file in sources.items() for word in (f"--{name}", str(tmp_path / file))]
        given += ["--backbone", str(tiny_model_dir), "--out", str(tmp_path / out), "--epochs", "4"]
        given += ["--batch-size", "16", "--set", "evals_per_epoch=1", "--learning-rate", rate]
        return program("fit", *given, *more)

    return call


def content(directory):
    """Every file of a run that readers see, and its bytes."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in found if ".angle" not in path.parts
    }


@pytest.mark.parametrize(("more", "rate", "stays"), [((), "1e-3", HARMFUL), (LORA, "2e-2", TAKEN)])
def test_the_backbone_stays_the_tuned_weights_are_beside_it_and_a_finished_run_ends_the_same(
    fit, tmp_path, tiny_model_dir, more, rate, stays
):
    out = tmp_path / "out"
    said, what = stays
    code, told, err = fit("out", "wrong.jsonl", "--require-better", *more, rate=rate)
    assert code == 1
    assert said in told
    assert "wrong: " in told
    assert f'{out}/tuned   {what}: SentenceTransformer("{out}/tuned")' in told
    last = err.splitlines()[-1]
    assert last.startswith("angle-train: error: --require-better: ")
    assert "than the backbone" in last
    assert same_weights(out, tiny_model_dir)
    assert not same_weights(out / "tuned", tiny_model_dir)
    for name in ("README.md", "report.json", "report.html"):
        assert said in (out / name).read_text(), name
    files = content(out)
    code, again, err = fit("out", "wrong.jsonl", "--require-better", *more, rate=rate)
    assert (code, again, content(out)) == (1, told, files)
    assert "step 0" not in err
    assert fit("out", "wrong.jsonl", *more, rate=rate)[0] == 0  # says what is there, trains nothing
    assert content(out) == files


def test_the_weights_beside_are_those_of_the_report(fit, tmp_path):
    assert fit("out", "wrong.jsonl")[0] == 0
    report = json.loads((tmp_path / "out/report.json").read_text())
    (row,) = [
        row for row in report["results"] if row["model"] == "tuned, in tuned/" and row["role"] == "test"
    ]
    found = saved_score(tmp_path / "out/tuned", tmp_path / "wrong.jsonl")
    assert found == pytest.approx(row["score"]["value"], abs=1e-4)
    # A later run that takes the tuned weights leaves none of the earlier one beside them.
    assert fit("out", "too.jsonl", "--overwrite", dev="now.jsonl")[0] == 0
    assert not (tmp_path / "out/tuned").exists()


def test_pairs_that_were_learned_show_nothing(fit, tmp_path, tiny_model_dir):
    for test, judges in (("same.jsonl", "test pairs"), (None, "dev pairs")):
        out = tmp_path / f"out-{test}"
        code, told, err = fit(out.name, test, "--require-better")
        assert code == 1
        assert f"The {judges} hold too many training or dev pairs to show a gain" in err
        # Without test pairs the dev pairs chose, and every report says that they flatter the model.
        assert same_weights(out, tiny_model_dir) == bool(test)
        assert "which flatters the model" in told


def test_a_model_that_is_better_passes(fit, tmp_path, tiny_model_dir):
    for test in ("too.jsonl", None):  # without test pairs those that chose must show it
        code, _, err = fit(f"out-{test}", test, "--require-better", dev="now.jsonl")
        assert code == 0, err
        warned = "warning: --require-better without --test pairs" in err
        assert warned == (test is None)
        assert not warned or err.index("--require-better without") < err.index("step 0")
        assert not same_weights(tmp_path / f"out-{test}", tiny_model_dir)


def test_a_training_that_changed_nothing_is_no_gain_and_called_the_same_model(fit, tmp_path):
    code, told, err = fit("kept", None, "--require-better", rate="1e-12")
    assert code == 1
    same = "Tuned weights and backbone give every pair the same similarity, so the backbone stays"
    assert same in told
    assert f"--require-better: {same}" in err
    headline = json.loads((tmp_path / "kept/report.json").read_text())["headline"]
    assert headline.startswith("The same model, for training changed nothing")


def test_without_test_pairs_those_that_chose_must_show_it(fit):
    code, told, err = fit("kept", None, "--require-better", dev="wrong.jsonl")
    assert code == 1
    assert "Tuning did not " in told
    assert "--require-better: Tuning did not " in err
