"""The commands behind the papers' figures parse, and every row, recipe and task that they name exists."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from angle_data.cli import app as data_app
from angle_train.cli import app as train_app
from angle_train.evaluation.task import expand_names
from angle_train.recipe import Recipe, builtin_recipes, find_recipe, parse_settings

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "benchmarks" / "paper.md").read_text(encoding="utf-8")
PROGRAMS = {"angle-train": typer.main.get_command(train_app), "angle-data": typer.main.get_command(data_app)}


with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "benchmarks")
    import paper


def check(command):
    """Parse a command as the program would, and look up the recipe and the tasks that it names."""
    program, name, *arguments = command
    parsed = PROGRAMS[program].commands[name].make_context(name, list(arguments)).params
    if name == "fit":
        recipe = Recipe.from_toml(find_recipe(parsed["recipe"] or "default"))
        recipe.with_overrides(parse_settings(parsed["set"] or []))
    if name == "eval" and not parsed["pairs"]:
        assert expand_names(parsed["task"])


def _rows_on_the_page():
    """The options of every row that the page has, `nli aoe` and the like, read as paper.py reads them."""
    texts = [text for text in re.findall(r"`([^`\n]+)`", PAGE) if text.split()[0] in paper.FAMILIES]
    return [paper.parser().parse_args(shlex.split(text)) for text in texts]


def _words_on_the_page():
    return {(row.family, row.variant) for row in _rows_on_the_page()}


@pytest.mark.parametrize(
    ("family", "variant"),
    sorted({*(tuple(words.split()) for words in paper.PUBLISHED), *_words_on_the_page()}),
)
def test_every_command_of_a_row_is_one_of_ours(family, variant, tmp_path):
    options = ["--seeds", "42", "--out", str(tmp_path), "--data-dir", str(tmp_path)]
    found = paper.commands(paper.parser().parse_args([family, variant, *options]))
    assert [command[1] for command in found][-2:] == ["fit", "eval"]
    for command in found:
        check(command)


def test_every_variant_is_a_row_of_the_page():
    assert {variant for _, variant in _words_on_the_page()} == set(paper.VARIANTS)


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
            paper.parser().parse_args(command[2:])
        else:
            assert (ROOT / command[1]).is_file()


@pytest.mark.parametrize(("words", "figures"), paper.PUBLISHED.items(), ids=paper.PUBLISHED)
def test_the_page_has_a_row_for_every_published_figure(words, figures):
    values, name = re.findall(r"\d+\.\d+", figures), f"`{words.removesuffix(' angle')}`"
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and name in line]
    assert values
    for value in values:
        assert any(value in row for row in rows), value


def test_lines_of_the_page_can_be_read():
    assert max(map(len, PAGE.splitlines())) <= 140
