"""`angle-train fit` as a user runs it: what it prints, what it writes, exit codes and one-line errors."""

import importlib.util
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from cut_runs import CutOff, cut_off, interrupt
from full_disk import models_of_at_most
from train_runs import dataset, now, write

from angle_train.recipe import Recipe, find_recipe

TINY_RUN = """
[training]
epochs = 6
batch_size = 16
learning_rate = 1e-3
evals_per_epoch = 1
"""


@pytest.fixture
def options(tmp_path, rows, tiny_model_dir):
    """A run of a second: the natural dev pairs as training and test pairs, their halves as dev pairs."""
    train, dev, test = ([row | {"split": s} for row in rows[:60]] for s in ("train", "dev", "test"))
    write(tmp_path / "train.jsonl", train)
    write(tmp_path / "graded.jsonl", dev[:40] + test)
    (tmp_path / "run.toml").write_text(TINY_RUN)
    return {
        "--data": tmp_path / "train.jsonl",
        "--backbone": tiny_model_dir,
        "--out": tmp_path / "out",
        "--recipe": tmp_path / "run.toml",
        "--dev": tmp_path / "graded.jsonl",
        "--test": tmp_path / "graded.jsonl",
    }


def flat(options):
    return [part for pair in options.items() for part in pair]


def test_fit_prints_table_and_verdict_and_writes_everything(program, options):
    code, out, err = program("fit", *flat(options))
    assert code == 0, err
    lines = out.splitlines()
    assert " ".join(lines[0].split()) == "pairs n model Spearman 95 % difference 95 % verdict"
    assert [line.split()[:2] for line in lines[2:8]] == [["graded/dev", "40"]] * 3 + [
        ["graded/test", "60"]
    ] * 3
    said = "The test pairs hold too many training or dev pairs to show a gain, so the backbone stays."
    assert any(line.startswith(said) for line in lines)
    assert lines[-2] == f"model: {options['--out']}   report: {options['--out'] / 'report.html'}"
    assert lines[-1].startswith(f"tuned: {options['--out'] / 'tuned'}   take it all the same: ")
    assert "rows with split dev are used (dev 40, test 60)" in err
    assert "rows with split test are used" in err
    assert "step 0, the untouched backbone: dev Spearman" in err
    assert "step 24/24, epoch 6.00: loss" in err
    assert "warning: 60 of 60 test pairs of graded/test are training pairs too" in err
    assert "%|" not in err  # no library's progress bar
    assert {"modules.json", "report.html", "report.json"} <= set(os.listdir(options["--out"]))
    report = json.loads((options["--out"] / "report.json").read_text())
    assert report["verdict"][0] in (options["--out"] / "report.html").read_text()
    assert report["details"]["command"] == (
        "angle-train fit --recipe recipe.toml --backbone model --data train.jsonl --dev graded.jsonl "
        "--test graded.jsonl --out again"
    )
    (shown,) = report["details"]["comparisons"]
    assert shown["pairs"] == "graded/test"
    assert set(shown["right"]) == {"backbone", "tuned"}
    assert shown["right"]["backbone"] != shown["right"]["tuned"]
    counts = [(note["role"], note["pairs"]) for note in report["data"]]
    assert counts == [("train", 60), ("dev", 40), ("test", 60)]

    code, again, err = program("fit", *flat(options))
    assert (code, again) == (0, out)
    assert "already finished; --overwrite runs it again" in err
    assert program("fit", *flat(options), "--quiet") == (0, "", "")

    for name, mend in (
        ("report.json", "--overwrite runs it again"),
        (".angle/fit_state.json", "give another --out; "),
    ):
        (options["--out"] / name).write_text('{"status": ')
        code, out, err = program("fit", *flat(options), "--quiet")
        assert (code, out) == (1, "")
        assert err.startswith(f"angle-train: error: {options['--out'] / name} is damaged; {mend}")
        assert len(err.splitlines()) == 1


def test_what_a_data_set_is_for_names_the_recipe_and_its_cost_stands_in_the_report(
    program, options, rows, tmp_path
):
    opposites = [row | {"purpose": "opposites", "score": row["score"] / 5} for row in rows[:60]]
    options["--data"] = dataset(tmp_path / "pairs" / "dataset", train=opposites)
    (tmp_path / "pairs" / "report.json").write_text('{"runs": [{"usd": 1.25}], "scores": {"usd": 0.25}}')
    del options["--recipe"]
    code, _, err = program("fit", *flat(options), "--epochs", 1, "--set", "batch_size=32")
    assert code == 0, err
    reason = "recipe opposites: ensemble --purpose made pairs for opposites"
    assert err.count(f"{reason}\n") == 1
    report = json.loads((options["--out"] / "report.json").read_text())
    assert report["details"]["reason"] == reason
    page = (options["--out"] / "report.html").read_text()
    assert reason[1:] in page
    assert "the labels cost 1.50 USD" in page
    ran, wanted = (
        Recipe.from_toml(options["--out"] / "recipe.toml"),
        Recipe.from_toml(find_recipe("opposites")),
    )
    assert ran.training == replace(wanted.training, epochs=1.0, batch_size=32)
    assert ran.objective.transitive


def test_any_value_of_the_recipe_can_be_set_and_few_labels_train_along(program, options, rows, tmp_path):
    write(tmp_path / "human.jsonl", rows[:20])
    given = [
        "fit", *flat(options), "--human", tmp_path / "human.jsonl", "--scale", "0-5", "--merge-back", 0.1,
        "--max-seq-length", "auto", "--epochs", 1, "--set", "arguments.warmup_ratio=0.2",
        "--set", "angle_weight=0", "--set", "arguments.weight_decay=0.1", "--json",
    ]  # fmt: skip
    code, out, err = program(*given, "--drop-leaks")
    assert code == 1, "all training pairs are test pairs here"
    assert "no training pairs are left" in err
    code, out, err = program(*given)
    assert code == 0, err
    report = json.loads(out)
    changed = {"epochs": 1.0, "average_with_backbone": 0.1}
    assert {"warmup_ratio": 0.2, "weight_decay": 0.1}.items() <= report["recipe"]["arguments"].items()
    assert changed.items() <= report["recipe"]["training"].items()
    assert report["recipe"]["objective"]["angle_weight"] == 0
    assert {note["role"] for note in report["data"]} == {"train", "human", "dev", "test"}
    assert {"merge", "lengths", "leaks", "dropped"} <= report["details"].keys()


def test_interrupted_run_exits_130_and_goes_on(program, options):
    with cut_off("on_step_end", 3, interrupt):
        code, out, err = program("fit", *flat(options))
    assert (code, out) == (130, "")
    assert "finishing this step and saving a checkpoint" in err
    assert "interrupted at step" in err
    assert "Traceback" not in err
    code, out, err = program("fit", *flat(options))
    assert code == 0
    assert "resuming from" in err
    assert f"model: {options['--out']}" in out


def test_what_is_in_the_way_stays_until_the_new_model_is_saved_and_what_is_no_model_for_good(
    program, options, monkeypatch, rows, tmp_path
):
    out = options["--out"]
    options["--test"] = write(tmp_path / "shown.jsonl", now(rows[:60]))  # the tuned model is taken
    mine = [out / "data" / "notes.txt", out / "onnx" / "model.onnx", out / "model-old.safetensors"]
    assert program("fit", *flat(options))[0] == 0
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    before = {name: (out / name).read_bytes() for name in ("model.safetensors", "report.json", "recipe.toml")}
    again = ["fit", *flat(options), "--epochs", 3, "--overwrite"]
    with cut_off("on_step_end", 1), pytest.raises(CutOff):
        program(*again)
    with models_of_at_most(5000):
        code, _, err = program(*again)
    assert (code, err.count("cannot be written")) == (1, 1)
    assert {name: (out / name).read_bytes() for name in before} == before
    assert not (out / ".angle" / "made").exists()  # it would take up the room that is needed
    measure = ["eval", "--quiet", "--model", out, "--pairs", options["--test"]]
    code, _, err = program(*measure)
    assert (code, err.count("\n"), err.count("the model there may be an earlier one")) == (0, 1, 1)

    def killed(path, target, replacing=Path.replace):
        if path.name == "modules.json" and ".angle" in path.parts:
            raise CutOff
        return replacing(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(CutOff):
            program(*again)
    code, _, err = program(*measure)
    assert (code, err.count("\n"), err.count("interrupted as it replaced one; run it again")) == (
        1,
        1,
        1,
    )
    code, _, err = program(*again)
    assert (code, err.count("onnx was exported from the earlier model")) == (0, 1)
    assert program(*measure) == (0, "", "")
    assert not [name for name in before if (out / name).read_bytes() == before[name]]
    assert {path.read_text() for path in mine} == {"mine"}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--data", "broken.jsonl", "broken.jsonl:2: not valid JSON"),
        ("--data", "percent.jsonl", "percent.jsonl:1: score 80 fits no known scale"),
        ("--recipe", "typo.toml", "typo.toml: unknown [training] key 'epoch', did you mean 'epochs'?"),
        ("--backbone", "./nowhere", "model directory ./nowhere does not exist; check the path"),
        ("--data", "runs/gpt", "llm-label; `angle-data ensemble runs/gpt --out pairs` makes pairs"),
        ("--dev", "my.csv", "my.csv:3: score must be a number, got ''; fill in this sheet, then "
         "`angle-data grade --finish my.csv` makes dev and test pairs"),
        ("--data", "equal.jsonl", "equal: all 2 training pairs have score 0 on the scale 0-1; nothing"),
        ("--test", "ones.jsonl", "ones.jsonl: all 2 scores are 1; a ranking needs different scores"),
        ("--device", "gpu", "--device gpu: torch finds no such device; available: cpu"),
        ("--set", "seed=abc", "seed is given twice: leave out --seed or --set seed"),
        ("--scale", "0-3", "train.jsonl:5: score 4 is outside the scale 0-3"),
        ("--threshold", "5", "train.jsonl: --threshold 5 must lie above 0 and below 5, the ends of its"),
        ("--recipe", "fancy", "no recipe is called 'fancy'; built in: "),
        ("--epochs", "0", "--epochs: must be greater than 0, got 0.0"),
        ("--set", "epoch=3", "unknown recipe key 'epoch', did you mean 'epochs'?"),
        ("--merge-back", "most", "--merge-back: must be a valid number, got 'most'"),
        ("--max-seq-length", "1", "--max-seq-length: must be greater than or equal to 2 or 'auto', got 1"),
        ("--report-to", "notebook", "report_to: the trainer reports to no program 'notebook' (known: "),
        ("--human", "missing.jsonl", "missing.jsonl does not exist; check the path"),
        ("--precision", "fp8", "--precision: must be 'auto', 'fp32', 'bf16' or 'fp16', got 'fp8'"),
        ("--dev", "train.jsonl", "train.jsonl: no rows with split dev or validation; found: train 60"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_exit_1(program, options, tmp_path, monkeypatch, option, value, message):
    monkeypatch.chdir(tmp_path)
    row = '{"text1": "a", "text2": "b", "score": %s}\n'
    (tmp_path / "broken.jsonl").write_text(row % 1 + '{"text1": \n')
    (tmp_path / "percent.jsonl").write_text(row % 80 + row % 20)
    (tmp_path / "typo.toml").write_text("[training]\nepoch = 3\n")
    (tmp_path / "equal.jsonl").write_text(row % 0 + row % 0)
    (tmp_path / "ones.jsonl").write_text(row % 1 + row % 1)
    (tmp_path / "runs" / "gpt").mkdir(parents=True)
    (tmp_path / "runs" / "gpt" / "candidates.jsonl").touch()
    (tmp_path / "my.csv").write_text("sentence1,sentence2,score,split\na,b,3,dev\nc,d,,dev\ne,f,1,test\n")
    code, out, err = program("fit", "--quiet", "--seed", 1, *flat(options | {option: value}))
    assert (code, out) == (1, "")
    (line,) = [line for line in err.splitlines() if not line.startswith("warning: ")]
    assert line.startswith("angle-train: error: ")
    assert message in line
    assert not options["--out"].exists()


def test_missing_extra_names_the_install_command(program, options, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    code, _, err = program("fit", *flat(options))
    assert code == 1
    assert err == ('angle-train: error: angle-train fit needs the "train" extra: pip install -e ".[train]"\n')


def test_a_missing_option_is_a_usage_error_and_a_missing_choice_is_not(program):
    code, _, err = program("fit", "--data", "x.jsonl")
    assert code == 2
    assert "--backbone" in err
    code, _, err = program("fit", "--backbone", "x", "--out", "y")
    assert (code, err.count("\n")) == (1, 1)
    assert "give --data, --human, or --teacher" in err
