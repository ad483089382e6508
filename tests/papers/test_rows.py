"""The commands behind the papers' rows parse, and every row, recipe and task that they name exists."""

import shlex
from itertools import pairwise
from pathlib import Path

import measure
import paper
import pytest
import table
import typer
from tasks import AVERAGES, GROUPS, TASKS, tasks_of

from angle_data.cli import app as data_app
from angle_train.cli import app as train_app
from angle_train.recipe import Recipe, builtin_recipes, find_recipe, parse_settings

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {"angle-train": typer.main.get_command(train_app), "angle-data": typer.main.get_command(data_app)}
ROWS = [row for found in table.tables() for row in found["row"]]
COMMANDS = sorted({row["command"] for row in ROWS if "command" in row})
OF_PAPER = [command for command in COMMANDS if command.split()[0] in paper.FAMILIES]


def check(command):
    """Parse a command as the program would, and look up the recipe and the tasks that it names."""
    program, name, *arguments = command
    if program == "python":
        assert (ROOT / name).is_file()
        if name.endswith("measure.py"):
            assert tasks_of([value for key, value in pairwise(arguments) if key == "--task"])
        return
    parsed = PROGRAMS[program].commands[name].make_context(name, list(arguments)).params
    if name == "fit":
        recipe = Recipe.from_toml(find_recipe(parsed["recipe"] or "default"))
        recipe.with_overrides(parse_settings(parsed["set"] or []))


@pytest.mark.parametrize("words", OF_PAPER)
def test_every_command_of_a_row_is_one_of_ours(words, tmp_path):
    given = paper.parser().parse_args([*shlex.split(words), "--out", str(tmp_path)])
    found = paper.commands(given)
    assert found[-1][:2] == ["python", "benchmarks/papers/measure.py"]
    models = [value for key, value in pairwise(found[-1]) if key in ("--model", "--against")]
    assert models == [command[command.index("--out") + 1] for command in found if "--seed" in command]
    for command in found:
        check(command)


@pytest.mark.parametrize("words", [command for command in COMMANDS if command not in OF_PAPER])
def test_every_other_row_names_a_script_and_tasks_that_exist(words):
    name, *arguments = shlex.split(words)
    check(["python", f"benchmarks/papers/{name}.py", *arguments])


def test_the_page_is_what_the_rows_say():
    assert (ROOT / "benchmarks" / "papers" / "README.md").read_text(encoding="utf-8") == table.page()
    assert {row["needs"] for row in ROWS} == table.NEEDS.keys()


def test_every_variant_and_method_is_a_row():
    used = {words.split()[1] for words in OF_PAPER if len(words.split()) > 1}
    assert {"angle", *used} == {*paper.VARIANTS, *paper.METHODS_OF}


def test_averages_are_of_known_tasks_and_no_name_stands_for_two_things():
    assert set(AVERAGES) <= GROUPS.keys()
    assert {name for names in GROUPS.values() for name in names} == TASKS.keys()
    assert not GROUPS.keys() & TASKS.keys()


def test_the_t_test_is_paired_by_data_set_and_averages_do_not_count():
    ours = {"a": [3.0, 5.0], "b": [6.0], "c": [9.5], "average of x": [0.0]}
    theirs = {"a": [3.0], "b": [5.0], "c": [8.0], "average of x": [99.0]}
    # Differences 1, 1, 1.5: mean 7/6, standard error 1/6, t = 7 with 2 degrees of freedom.
    assert measure.paired_t_test(ours, theirs) == pytest.approx(0.0198, abs=1e-4)
    shown = measure.report(ours, theirs)
    assert "4.00 ± 1.41" in shown
    assert "p = 0.0198" in shown


def test_rows_of_the_aoe_paper_hold_llama_in_four_bits_and_those_of_angle_do_not():
    found = []
    for family, variant in (("nli-llama-7b", "angle"), ("nli-llama-7b", "aoe"), ("nli-llama-13b", "aoe")):
        whole = Recipe.from_toml(find_recipe(paper.FAMILIES[family].recipe))
        recipe = whole.with_overrides(parse_settings(paper.settings_of(family, variant)))
        found.append(recipe.backbone.quantization)
    assert found == ["none", "4bit", "4bit"]


def test_every_recipe_of_the_papers_is_used():
    used = {family.recipe for family in paper.FAMILIES.values()}
    assert used == {name for name in builtin_recipes() if name.startswith("paper-")}
