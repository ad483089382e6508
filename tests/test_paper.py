"""The commands behind the papers' figures: they parse, name what exists, and read their data rightly."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from angle_data.cli import app as data_app
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.cli import app as train_app
from angle_train.evaluation.task import expand_names
from angle_train.evaluation.tasks.sources import Source
from angle_train.recipe import Recipe, builtin_recipes, find_recipe, parse_settings

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "benchmarks" / "paper.md").read_text(encoding="utf-8")
PROGRAMS = {"angle-train": typer.main.get_command(train_app), "angle-data": typer.main.get_command(data_app)}


def _script(name):
    """Import a script of benchmarks/ as running it would, and leave path and environment as they were."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    before = dict(os.environ)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
        os.environ.clear()
        os.environ.update(before)


paper = _script("paper")


def check(command):
    """Parse a command as the program would, and look up the recipe and the tasks that it names."""
    program, name, *arguments = command
    parsed = PROGRAMS[program].commands[name].make_context(name, list(arguments)).params
    if name == "fit":
        Recipe.from_toml(find_recipe(parsed["recipe"] or "default")).with_overrides(
            parse_settings(parsed["set"] or [])
        )
    if name == "eval" and not parsed["pairs"]:
        assert expand_names(parsed["task"])


def _rows_on_the_page():
    """The options of every row that the page has, `nli aoe` and the like, read as paper.py reads them."""
    texts = [text for text in re.findall(r"`([^`\n]+)`", PAGE) if text.split()[0] in paper.FAMILIES]
    return [paper._options().parse_args(shlex.split(text)) for text in texts]


def _words_on_the_page():
    return {(row.family, row.variant) for row in _rows_on_the_page()}


@pytest.mark.parametrize(
    ("family", "variant"),
    sorted({*(tuple(words.split()) for words in paper.PUBLISHED), *_words_on_the_page()}),
)
def test_every_command_of_a_row_is_one_of_ours(family, variant, tmp_path):
    found = paper.commands(family, variant, tmp_path, seeds=[42], data_dir=tmp_path)
    assert [command[1] for command in found][-2:] == ["fit", "eval"]
    for command in found:
        check(command)


def test_every_variant_is_a_row_of_the_page():
    assert {variant for _, variant in _words_on_the_page()} == set(paper.VARIANTS)


def _recipe(family, variant):
    whole = Recipe.from_toml(find_recipe(paper.FAMILIES[family].recipe))
    return whole.with_overrides(parse_settings(paper.settings_of(family, variant)))


def test_rows_of_the_aoe_paper_hold_llama_in_four_bits_and_those_of_angle_do_not():
    names = [("nli-llama-7b", "angle"), ("nli-llama-7b", "aoe"), ("nli-llama-13b", "aoe")]
    found = [_recipe(*name).backbone.quantization for name in names]
    assert found == ["none", "4bit", "4bit"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["angle-train", "fit", "--recipes", "default", "--backbone", "b", "--out", "o"], "No such option"),
        (["angle-train", "fit", "--recipe", "paper-nil", "--backbone", "b", "--out", "o"], "no recipe"),
        (
            ["angle-train", "fit", "--set", "angle_wait=1", "--backbone", "b", "--out", "o"],
            "unknown recipe key",
        ),
        (["angle-train", "eval", "--model", "m", "--task", "sts-b"], "no task"),
        (["angle-data", "llm-label", "--model", "m", "--text", "t", "--out", "o"], "No such option"),
    ],
)
def test_the_check_notices_what_is_misspelt(wrong, message):
    with pytest.raises(Exception, match=message):
        check(wrong)


def test_every_recipe_of_the_papers_is_used():
    used = {family.recipe for family in paper.FAMILIES.values()}
    assert used == {name for name in builtin_recipes() if name.startswith("paper-")}


def _commands_on_the_page():
    quoted = [
        *re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.S)),
        *(line for block in re.findall(r"```\w*\n(.*?)```", PAGE, re.S) for line in block.splitlines()),
    ]
    return [text for text in quoted if text.split()[0] in (*PROGRAMS, "python") and "…" not in text]


def test_the_commands_on_the_page_are_ours():
    found = [shlex.split(text.split("#")[0]) for text in _commands_on_the_page()]
    assert len(found) >= 8
    for command in found:
        if command[0] in PROGRAMS:
            if len(command) > 2:
                check(command)
            assert command[1] in PROGRAMS[command[0]].commands
        elif command[1] == "benchmarks/paper.py":
            paper._options().parse_args(command[2:])
        else:
            assert (ROOT / command[1]).is_file()


def _table_rows(words):
    name = f"`{words.removesuffix(' angle')}`"
    return [line for line in PAGE.splitlines() if line.startswith("|") and name in line]


@pytest.mark.parametrize(("words", "figures"), paper.PUBLISHED.items(), ids=paper.PUBLISHED)
def test_the_page_has_a_row_for_every_published_figure(words, figures):
    values = re.findall(r"\d+\.\d+", figures)
    assert values
    for value in values:
        assert any(value in row for row in _table_rows(words)), value


def test_lines_of_the_page_can_be_read():
    assert max(map(len, PAGE.splitlines())) <= 140


@pytest.fixture
def source(tmp_path):
    """A folder with two or three rows of each data set, in the columns that the hub's have."""
    graded = ("sentence1", "sentence2", "score")
    inference = ("premise", "hypothesis", "label")
    rows = {
        "stsb/train": (graded, [("a", "b", 3.8), ("a", "c", 0)]),
        "stsb/validation": (graded, [("d", "e", 5)]),
        "qnli/train": (("question", "sentence", "label"), [("q", "s", 0), ("q", "t", 1)]),
        "qqp/train": (("question1", "question2", "label"), [("q", "s", 0), ("q", "t", 1)]),
        "snli/train": (inference, [("p", f"h{label}", label) for label in (0, 1, 2, -1)]),
        "mnli/train": (inference, [("m", "n", "contradiction")]),
    }
    for name, (columns, values) in rows.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        found = (dict(zip(columns, row, strict=True)) for row in values)
        write_jsonl(tmp_path / "data" / f"{name}.jsonl", found)
    return Source(tmp_path / "data")


def _written(source, family, name, out):
    paper.write_data(paper.FAMILIES[family], source, out)
    return [json.loads(line) for line in (out / name).read_text(encoding="utf-8").splitlines()]


def test_stsb_keeps_its_grades_and_its_validation_pairs_choose(source, tmp_path):
    train = _written(source, "stsb", "stsb/train.jsonl", tmp_path / "out")
    assert [row["score"] for row in train] == [3.8, 0]
    assert _written(source, "stsb", "stsb/validation.jsonl", tmp_path / "out")[0]["text2"] == "e"


def test_label_one_means_that_the_texts_belong_together(source, tmp_path):
    assert [row["label"] for row in _written(source, "qnli", "qnli/train.jsonl", tmp_path)] == [1, 0]
    assert [row["label"] for row in _written(source, "qqp", "qqp/train.jsonl", tmp_path)] == [0, 1]


def test_inference_pairs_leave_out_what_is_neutral_or_undecided(source, tmp_path):
    rows = _written(source, "nli", "nli/train.jsonl", tmp_path / "out")
    assert [(row["text2"], row["label"]) for row in rows] == [("h0", 1), ("h2", 0), ("n", 0)]
    assert (tmp_path / "out" / "stsb" / "validation.jsonl").exists()


def test_the_llms_are_given_each_first_sentence_once(source, tmp_path):
    assert _written(source, "llm-llama", "llm/texts.jsonl", tmp_path / "out") == [{"text": "a"}]
    assert not (tmp_path / "out" / "stsb" / "train.jsonl").exists()


def _refused(source, family, out):
    with pytest.raises(InputError) as caught:
        paper.write_data(paper.FAMILIES[family], source, out)
    return str(caught.value)


def test_pairs_of_a_folder_are_not_those_of_the_hub(source, tmp_path):
    _written(source, "qqp", "qqp/train.jsonl", tmp_path / "out")
    assert "not from hub:nyu-mll/glue qqp train" in _refused(Source(), "qqp", tmp_path / "out")


def test_the_hub_is_not_asked_again(source, tmp_path):
    _written(source, "qqp", "qqp/train.jsonl", tmp_path / "out")
    note = tmp_path / "out" / "qqp" / "train.source.json"
    noted = json.loads(note.read_text(encoding="utf-8")) | {"from": "hub:nyu-mll/glue qqp train"}
    note.write_text(json.dumps(noted), encoding="utf-8")
    paper.write_data(paper.FAMILIES["qqp"], Source(), tmp_path / "out")


def test_pairs_without_a_note_are_refused(source, tmp_path):
    (tmp_path / "out" / "qqp").mkdir(parents=True)
    (tmp_path / "out" / "qqp" / "train.jsonl").write_text('{"mine": 1}\n', encoding="utf-8")
    assert "made from something else" in _refused(source, "qqp", tmp_path / "out")


@pytest.fixture
def run(monkeypatch, source, tmp_path):
    """Run paper.py with the programs replaced; returns what they were called with, and the exit code."""

    def call(*arguments, codes=()):
        called, left = [], list(codes)

        def program(command, check):
            called.append(command[2:] if command[0] == sys.executable else command)
            return SimpleNamespace(returncode=left.pop(0) if left else 0)

        where = ["--data-dir", str(source.root), "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", ["paper.py", *arguments, *where])
        monkeypatch.setattr(subprocess, "run", program)
        try:
            paper.main()
        except SystemExit as stop:
            return called, stop.code
        return called, 0

    return call


def test_a_row_is_fitted_with_every_seed_and_then_scored(run, capsys):
    called, code = run("stsb", "without-angle", "--seeds", "1", "2", "1")
    assert (code, [command[1] for command in called]) == (0, ["fit", "fit", "eval"])
    assert [command[command.index("--seed") + 1] for command in called[:2]] == ["1", "2"]
    assert all("angle_weight=0" in command for command in called[:2])
    fitted = [command[command.index("--out") + 1] for command in called[:2]]
    assert [part for part in called[-1] if part.endswith(("seed-1", "seed-2"))] == fitted
    assert capsys.readouterr().out.splitlines()[-1] == "published, on the whole data sets: STS-B 85.30"


def test_trials_have_folders_of_their_own(tmp_path):
    def folder(**trial):
        fit = paper.commands("stsb", "angle", tmp_path, seeds=[1], **trial)[0]
        return Path(fit[fit.index("--out") + 1])

    assert folder() == tmp_path / "stsb" / "angle" / "seed-1"
    trials = [folder(backbone="b"), folder(settings=["epochs=1"]), folder(settings=["epochs=2"])]
    assert len({folder(), *trials}) == 4
    assert all(one.parent.parent == tmp_path / "stsb" / "angle" for one in trials)
    assert folder(backbone="b") == trials[0]


def test_own_settings_come_last_and_are_not_set_beside_the_published_figure(run, capsys):
    called, _ = run("qqp", "--set", "epochs=1")
    given = [value for flag, value in zip(called[0], called[0][1:], strict=False) if flag == "--set"]
    assert given == ["epochs=3", "epochs=1"]
    assert parse_settings(given) == {"epochs": 1}
    assert "published" not in capsys.readouterr().out


def test_a_command_that_stops_ends_the_row_with_its_exit_code(run):
    called, code = run("llm-ensemble", codes=[0, 75])
    assert (code, [command[0] for command in called]) == (75, ["angle_data"] * 2)


def test_printing_and_preparing_run_nothing(run, capsys, tmp_path):
    called, code = run("stsb", "--print")
    assert (called, code) == ([], 0)
    assert not (tmp_path / "out").exists()
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("python benchmarks/paper.py stsb --prepare --out ")
    check(shlex.split(second))
    called, code = run(*shlex.split(first)[2:])
    assert (called, code) == ([], 0)
    assert (tmp_path / "out" / "data" / "stsb" / "train.jsonl").exists()


def test_missing_data_is_one_line(run):
    called, code = run("mrpc")
    assert called == []
    assert re.fullmatch(r"paper\.py: error: .*mrpc/train\.jsonl\.gz does not exist .*", code)
