"""Which kind of labels training pairs have, and what a recipe takes for it."""

import json
import logging
from dataclasses import asdict
from typing import get_args

import numpy as np
import pytest

from angle_data.errors import InputError
from angle_train.data.kinds import PRESETS, kind_of, settle
from angle_train.data.pairs import PairSet, join, load_pairs
from angle_train.data.splits import load_run_data
from angle_train.recipe import Loss, Recipe, builtin_recipes


def pairs_of(scores, polarity=None):
    texts = [f"text {i}" for i in range(len(scores))]
    return PairSet("made", texts, texts[::-1], np.array(scores), np.ones(len(scores)), polarity=polarity)


LLM = ["synonym", "antonym", "random"]


@pytest.mark.parametrize(
    ("pairs", "kind", "why"),
    [
        (pairs_of([1.0, 0.5, 0.0], LLM), "polarity", "3 of 3 pairs have the polarity that an LLM"),
        (pairs_of([1.0, 0.0, 0.0], LLM), "polarity", "3 of 3"),
        (pairs_of([1.0, 0.8, 0.4, 0.2], [*LLM, "antonym"]), "degrees", "an LLM was asked for, and 4 scores"),
        (pairs_of([1.0, 0.0, 1.0]), "binary", "3 pairs have two scores"),
        (pairs_of([0.2, 0.8, 1.0]), "graded", "3 pairs have 3 scores"),
        (pairs_of([1.0, 1.0]), "positives", "all 2 pairs have one score"),
        # The majority decides: few graded pairs beside an LLM's, few of an LLM beside graded ones.
        (pairs_of([1.0, 0.5, 0.0, 0.3, 0.7], [*LLM, "", ""]), "polarity", "3 of 5"),
        (pairs_of([1.0, 0.5, 0.0, 0.3, 0.7, 0.1], [*LLM, "", "", ""]), "graded", "6 pairs have 6 scores"),
    ],
)
def test_pairs_tell_the_kind_of_their_labels(pairs, kind, why):
    found, reason = kind_of(pairs)
    assert found == kind
    assert why in reason


def test_what_is_open_is_chosen_and_what_is_stated_stays(caplog):
    recipe = Recipe().with_overrides({"in_batch_weight": 0.3, "epochs": 5})
    with caplog.at_level(logging.INFO, logger="angle"):
        settled = settle(recipe, pairs_of([0.0, 1.0, 1.0]))
    values = asdict(settled.objective) | asdict(settled.training)
    expected = PRESETS["binary"] | {"in_batch_weight": 0.3, "epochs": 5.0, "loss": "binary"}
    assert {key: values[key] for key in expected} == expected
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("labels: binary (3 pairs have two scores); chosen for them: cosine_weight ")
    assert line.endswith("; the recipe states in_batch_weight 0.3, epochs 5")
    assert settle(settled, pairs_of([0.2, 0.3, 1.0])) == settled
    # As run and read back it is the same recipe, whatever the pairs.
    assert len(caplog.records) == 1


@pytest.mark.parametrize("kind", PRESETS)
def test_a_recipe_names_its_kind_and_every_preset_leaves_nothing_open(kind):
    settled = settle(Recipe().with_overrides({"loss": kind}), pairs_of([0.0, 0.3, 1.0]))
    values = asdict(settled.objective) | asdict(settled.training)
    assert {key: values[key] for key in PRESETS[kind]} == PRESETS[kind]
    assert [key for key, value in values.items() if value is None] == ["max_seq_length"]


def test_presets_are_those_that_a_recipe_can_name():
    assert set(get_args(Loss)) == {"auto", *PRESETS}


def test_values_that_do_not_go_with_the_kind_are_refused():
    recipe = Recipe().with_overrides({"loss": "positives", "in_batch_weight": 0})
    with pytest.raises(InputError, match="at least one of the three weights must be above 0"):
        settle(recipe, pairs_of([1.0, 1.0]))


@pytest.mark.parametrize("name", [name for name in builtin_recipes() if name != "default"])
def test_recipes_of_published_results_leave_nothing_to_the_presets(name):
    recipe = Recipe.from_toml(builtin_recipes()[name])
    values = asdict(recipe.objective) | asdict(recipe.training)
    assert not [key for key in PRESETS["papers"] if values[key] is None]


def test_polarity_is_read_with_the_pairs_and_kept(tmp_path):
    rows = [
        {"text1": f"a{i}", "text2": f"b{i}", "score": score, "polarity": polarity}
        for i, (score, polarity) in enumerate(zip([1.0, 0.5, 0.0, 1.0], [*LLM, None], strict=True))
    ]
    file = tmp_path / "llm.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    pairs = load_pairs(str(file))
    assert pairs.polarity == [*LLM, ""]
    assert pairs.take([2, 0], "two").polarity == ["random", "synonym"]
    others = pairs_of([0.0, 1.0])
    assert join([others, pairs]).polarity == ["", "", *LLM, ""]
    assert join([others, others]).polarity is None


def test_a_run_settles_its_recipe_on_all_its_training_pairs(tmp_path):
    def write(name, rows):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
        return str(tmp_path / name)

    llm = [
        {"text1": f"a{i}", "text2": f"b{i}", "score": i % 2, "polarity": ("antonym", "synonym")[i % 2]}
        for i in range(8)
    ]
    human = [{"text1": f"c{i}", "text2": f"d{i}", "score": i} for i in range(5)]
    data, graded = write("llm.jsonl", llm), write("human.jsonl", human)
    recipe = Recipe().with_overrides({"learning_rate": 1e-3})

    def kind(*given):
        settled = load_run_data(*given, (), (), recipe=recipe).recipe
        assert settled.training.learning_rate == 1e-3
        return settled.objective.loss

    assert kind([data], [graded]) == "polarity"
    assert kind([], [graded]) == "graded"
