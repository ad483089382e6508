"""Which recipe a run takes."""

import pytest
from train_runs import write

from angle_data.errors import InputError
from angle_train.recipe import Recipe, find_recipe
from angle_train.training.purpose import choose_recipe


@pytest.mark.parametrize(
    ("given", "said", "recipe", "reason"),
    [
        (None, ["opposites"], "opposites", "recipe opposites: ensemble --purpose made 0 for opposites"),
        (None, ["topics", None, "topics"], "topics", "ensemble --purpose made 0 for topics and 2 for topics"),
        (None, ["search"], "search", "recipe search: the pairs say what they are for: 0 for search"),
        (None, [None, "shopping"], "default", ""),
        (None, [], "default", ""),
        ("topics", ["topics"], "topics", ""),
        ("topics", [None], "topics", ""),
        ("default", ["topics"], "default", ""),
        ("topics", ["topics", "opposites"], "topics", "recipe topics, as given, although ensemble --purpose"),
    ],
)
def test_what_the_pairs_are_for_names_the_recipe_unless_one_is_given(tmp_path, given, said, recipe, reason):
    chosen, why = choose_recipe(given, for_purposes(tmp_path, said))
    assert chosen == Recipe.from_toml(find_recipe(recipe))
    assert reason in why
    assert bool(reason) == bool(why)


def test_pairs_for_different_purposes_leave_the_recipe_to_the_user(tmp_path):
    data = for_purposes(tmp_path, ["topics", "opposites"])
    with pytest.raises(
        InputError, match=r"0 for topics and 1 for opposites; choose with --recipe opposites or"
    ):
        choose_recipe(None, data)
    assert choose_recipe(Recipe(), data) == (Recipe(), "")


def for_purposes(folder, purposes):
    """A file of pairs for each purpose, or without the column."""
    row = {"text1": "a", "text2": "b", "score": 1}
    rows = [row | ({"purpose": purpose} if purpose else {}) for purpose in purposes]
    return [write(folder / f"{number}.jsonl", [row]) for number, row in enumerate(rows)]
