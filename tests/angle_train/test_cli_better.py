"""`angle-train fit --require-better`: the backbone where the test pairs do not show a gain."""

import pytest
from train_runs import same_weights, turned, write

LORA = ("--set", "lora_rank=2", "--set", "prompt=about: {text} now", "--learning-rate", "2e-2")
DOUBT = "The tuned model was saved because the dev pairs chose it (--require-better saves the backbone)."


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

    def call(out, test, *more, dev="same.jsonl"):
        sources = {"data": "train.jsonl", "dev": dev} | ({"test": test} if test else {})
        given = [word for name, file in sources.items() for word in (f"--{name}", str(tmp_path / file))]
        given += ["--backbone", str(tiny_model_dir), "--out", str(tmp_path / out), "--epochs", "4"]
        given += ["--batch-size", "16", "--set", "evals_per_epoch=1", "--learning-rate", "1e-3"]
        return program("fit", *given, *more)

    return call


def content(directory):
    """Every file of a run that readers see, and its bytes."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in found if ".angle" not in path.parts
    }


def test_the_backbone_is_saved_and_a_finished_run_ends_the_same(fit, tmp_path, tiny_model_dir):
    out = tmp_path / "out"
    code, told, err = fit("out", "wrong.jsonl", "--require-better")
    assert code == 1
    why = "The test pairs do not show the tuned model to be better"
    assert f"{why}, so the untouched backbone was saved, as --require-better asks." in told
    assert "wrong: worse" in told
    assert err.splitlines()[-1].startswith(
        "angle-train: error: --require-better: The test pairs do not show the tuned model to be better"
    )
    assert same_weights(out, tiny_model_dir)
    for name in ("README.md", "report.json", "report.html"):
        assert f"{why}, so the untouched" in (out / name).read_text(), name
    files = content(out)
    code, again, err = fit("out", "wrong.jsonl", "--require-better")
    assert (code, again, content(out)) == (1, told, files)
    assert "step 0" not in err
    assert fit("out", "wrong.jsonl")[0] == 0  # says what is there, trains nothing
    assert content(out) == files


def test_a_doubtful_model_is_saved_with_a_warning_until_better_is_required(fit, tmp_path, tiny_model_dir):
    out = tmp_path / "out"
    code, told, err = fit("out", "wrong.jsonl", *LORA)
    assert code == 0, err
    assert DOUBT in told
    for name in ("README.md", "report.json", "report.html"):
        assert DOUBT in (out / name).read_text(), name
    assert not same_weights(out, tiny_model_dir)
    tuned = content(out)
    code, told, err = fit("out", "wrong.jsonl", *LORA, "--require-better")
    assert (code, content(out)) == (1, tuned)
    assert "step 1" not in err
    assert f"{out} holds the tuned model, of a run without this option: use the backbone, or" in err
    assert fit("out", "wrong.jsonl", *LORA, "--require-better", "--overwrite")[0] == 1
    assert same_weights(out, tiny_model_dir)


def test_pairs_that_were_learned_show_nothing(fit, tmp_path, tiny_model_dir):
    for test, judges in (("same.jsonl", "test pairs"), (None, "dev pairs")):
        out = tmp_path / f"out-{test}"
        code, told, _ = fit(out.name, test, "--require-better")
        assert code == 1
        assert (
            f"The {judges} hold too many training or dev pairs to show the tuned model to be better" in told
        )
        assert same_weights(out, tiny_model_dir)


def test_a_model_that_is_better_passes(fit, tmp_path, tiny_model_dir):
    for test in ("too.jsonl", None):  # without test pairs those that chose must show it
        code, _, err = fit(f"out-{test}", test, "--require-better", dev="now.jsonl")
        assert code == 0, err
        assert not same_weights(tmp_path / f"out-{test}", tiny_model_dir)


def test_without_test_pairs_those_that_chose_must_show_it(fit):
    code, told, err = fit("kept", None, "--require-better", "--learning-rate", "1e-12")
    assert code == 1
    assert "Tuning did not surely help: of " in told
    assert "--require-better: Tuning did not surely help: of " in err
