"""What commands fill in: the run folder by the name of model or list, and options from angle.toml."""

from pathlib import Path

import pytest
from programs import run_here

from angle_data.calling.defaults import command_words
from angle_data.cli import main
from angle_train.cli import main as train


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("The disk is full.\n")


def test_a_run_folder_is_named_after_model_and_prompts():
    replies = (
        '{"text": "The disk is full.", "polarity": "%s", "reply": "1. No space is left.\\n2. It is full."}\n'
    )
    Path("replies.jsonl").write_text(replies % "synonym" + replies % "antonym")
    common = ["llm-label", "--replies", "replies.jsonl", "--texts", "notes.txt"]
    assert run_here(main, *common, "--model", "org/m:1").returncode == 0
    assert run_here(main, *common, "--model", "org/m:1", "--prompts", "contrast").returncode == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == ["org-m-1", "org-m-1-contrast"]


def test_without_texts_the_error_is_the_complete_command():
    done = run_here(main, "llm-label", "--model", "llama")
    assert done.returncode == 1
    line = "angle-data llm-label --model llama --texts notes.jsonl --out runs/llama"
    assert f"`{line}`" in done.stderr


def test_gis_writes_where_its_list_says():
    Path("list.txt").write_text("owner/name\n")
    done = run_here(main, "gis", "--repos", "list.txt", "--no-crawl")
    assert done.returncode == 1
    assert "runs/list" in done.stderr
    assert run_here(main, "gis").returncode == 2


def test_a_repeatable_option_may_stand_alone_and_a_line_is_whole():
    Path("angle.toml").write_text(
        '[ensemble]\nruns = "runs/a b"\npurpose = "topics"\nout = "pairs"\nseed = 0\n'
    )
    done = run_here(main, "ensemble")
    assert "angle.toml: --runs 'runs/a b' --purpose topics --out pairs --seed 0" in done.stderr
    assert "runs/a b holds no candidates.jsonl" in done.stderr
    assert "`angle-data status` says what comes first in this project" in done.stderr
    given = {"a_b": [1, "x y"], "flag": True, "off": False, "none": None, "zero": 0, "empty": []}
    assert command_words("do", given) == "do --a-b 1 --a-b 'x y' --flag --zero 0"


@pytest.mark.parametrize("value", ["true", "false"])
def test_an_option_that_takes_a_value_is_neither_true_nor_false(value):
    """A number would read true as 1; a flag is either."""
    Path("angle.toml").write_text(f'[llm-label]\nmodel = "m"\nretry-rejected = {value}\nlimit = {value}\n')
    done = run_here(main, "llm-label", "--texts", "notes.txt", "--dry-run")
    assert done.returncode == 1
    assert f"angle.toml: [llm-label] limit takes a value, got {value}" in done.stderr
    Path("angle.toml").write_text(f'[llm-label]\nmodel = "m"\nretry-rejected = {value}\nlimit = 1\n')
    assert "takes a value" not in run_here(main, "llm-label", "--texts", "notes.txt", "--dry-run").stderr


@pytest.mark.parametrize(
    ("section", "command", "said"),
    [
        ('[fit]\nthreshold = "three"', ["fit", "--backbone", "b", "--out", "o"],
         'angle.toml: [fit] threshold = "three": Input should be a valid number'),
        ("[fit]\nthreshold = [1, 2]", ["fit", "--backbone", "b", "--out", "o"],
         "angle.toml: [fit] threshold = [1, 2]: Input should be a valid number"),
        ("[encode]\nbatch-size = -3", ["encode", "--model", "m", "--texts", "notes.txt", "--out", "o"],
         "angle.toml: [encode] --batch-size must be at least 1, got -3"),
    ],
)  # fmt: skip
def test_an_error_about_a_value_of_angle_toml_names_the_file(section, command, said):
    Path("angle.toml").write_text(section)
    done = run_here(train, *command)
    assert done.returncode == 1
    assert f"error: {said}" in done.stderr.splitlines()[-1]


def test_the_command_line_counts_more_than_angle_toml_and_is_named_by_itself():
    Path("angle.toml").write_text("[encode]\nbatch-size = -3\n")
    command = ["encode", "--model", "m", "--texts", "notes.txt", "--out", "o", "--batch-size"]
    assert "error: --batch-size must be at least 1, got -2" in run_here(train, *command, "-2").stderr
    assert "--batch-size" not in run_here(train, *command, "2").stderr
    wrong = run_here(train, *command, "x")
    assert wrong.returncode == 2
    assert "Invalid value for '--batch-size'" in wrong.stderr


def test_an_option_whose_name_is_a_word_of_python_is_known_by_its_flag():
    command = ["encode", "--model", "m", "--texts", "notes.txt", "--out", "o"]
    for line, said in (
        ('as = "querry"', '[encode] as = "querry": '),
        ("as = true", "[encode] as takes a value, got true"),
        ('ass = "query"', "[encode] has no option 'ass'; did you mean as?"),
        ('as- = "query"', "[encode] has no option 'as-'; did you mean as?"),
    ):
        Path("angle.toml").write_text(f"[encode]\n{line}\n")
        done = run_here(train, *command)
        assert done.returncode == 1
        assert f"error: angle.toml: {said}" in done.stderr
    Path("angle.toml").write_text('[encode]\nas = "query"\n')
    assert "angle.toml: --as query" in run_here(train, *command).stderr.splitlines()
    # Were it not for the flag, the slip in the file would be told.
    Path("angle.toml").write_text('[encode]\nas = "querry"\n')
    assert "querry" not in run_here(train, *command, "--as", "query").stderr


@pytest.mark.parametrize("content", ["[tool]\nx = 1\n", "[encode]\nfoo = 3\n[show]\nfoo = 3\n", "no TOML"])
def test_a_slip_in_angle_toml_leaves_help_and_version(content):
    Path("angle.toml").write_text(content)
    for program, command in ((main, "show"), (train, "encode")):
        assert "Usage: " in run_here(program, "--help").stdout
        assert "Usage: " in run_here(program, command, "--help").stdout
        assert run_here(program, "--version").stdout.startswith("angle-toolkit ")
        assert "error: angle.toml" in run_here(program, command).stderr


def test_an_unknown_option_stops_the_program_of_its_section_and_is_named_by_status():
    step = "[llm-label]\nmodel = 'gpt-4o'\ntexts = 'notes.txt'\nout = 'o'\n"
    Path("angle.toml").write_text(f"{step}[fit]\nfoo-bar = 3\n")
    said = "angle.toml: [fit] has no option 'foo-bar'"
    assert said in run_here(train, "encode").stderr
    assert said not in run_here(main, "show", "notes.txt").stderr
    assert said in run_here(main, "status").stdout
    Path("angle.toml").write_text("[llm-label]\nfoo-bar = 3\n")
    said = "angle.toml: [llm-label] has no option 'foo-bar'"
    for command in ("show", "status"):
        done = run_here(main, command, *(["notes.txt"] if command == "show" else []))
        assert (done.returncode, said in done.stderr) == (1, True)
