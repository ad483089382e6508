"""What a recipe takes for the kind of labels where it states nothing."""

import logging
from dataclasses import asdict

import pytest
from train_runs import pair_set, write

from angle_data.errors import InputError
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.run import load_data
from angle_train.training.presets import PRESETS, settle


def pairs_of(scores, supervision=None):
    texts = [f"text {i}" for i in range(len(scores))]
    return pair_set(list(zip(texts, texts[::-1], strict=True)), scores, supervision=supervision)


def test_what_is_open_is_chosen_and_what_is_stated_stays(caplog):
    recipe = Recipe().with_overrides({"in_batch_weight": 0.3, "epochs": 5})
    with caplog.at_level(logging.INFO, logger="angle"):
        settled = settle(recipe, pairs_of([0.0, 1.0, 1.0]))
    values = asdict(settled.objective) | asdict(settled.training)
    expected = PRESETS["binary"] | {"in_batch_weight": 0.3, "epochs": 5.0, "loss": "binary"}
    assert {key: values[key] for key in expected} == expected
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("labels: binary (3 pairs have two scores); chosen for them: cosine_weight ")
    assert line.endswith("; the recipe sets in_batch_weight 0.3, epochs 5")
    assert settle(settled, pairs_of([0.2, 0.3, 1.0])) == settled
    # As run and read back it is the same recipe, whatever the pairs.
    assert len(caplog.records) == 1


@pytest.mark.parametrize("kind", ["degrees", "mixed"])
def test_degrees_5_and_4_are_positives_and_only_0_is_a_negative(kind):
    taken = settle(Recipe().with_overrides({"loss": kind}), pairs_of([0.0, 0.4, 1.0])).objective
    assert [degree for degree in range(6) if degree / 5 >= taken.positive_score] == [4, 5]
    assert [degree for degree in range(6) if degree / 5 <= taken.negative_score] == [0]


@pytest.mark.parametrize(
    ("kind", "pairs", "epochs"),
    [("degrees", 3000, 3), ("degrees", 300, 13), ("polarity", 900, 5), ("mixed", 30, 20), ("graded", 30, 3)],
)
def test_few_pairs_of_an_llm_train_for_more_epochs(kind, pairs, epochs):
    recipe = Recipe().with_overrides({"loss": kind, "batch_size": 64})
    settled = settle(recipe, pairs_of([0.0, 0.3, 1.0] * (pairs // 3)))
    assert settled.training.epochs == epochs
    accumulated = settle(
        recipe.with_overrides({"args": {"gradient_accumulation_steps": 2}}), pairs_of([0.0, 0.3, 1.0] * 100)
    )
    assert accumulated.training.epochs == (3 if kind == "graded" else 20)
    assert settle(recipe.with_overrides({"epochs": 2}), pairs_of([0.0, 1.0])).training.epochs == 2


def test_negatives_that_are_near_misses_leave_out_the_in_batch_term():
    weights = {kind: PRESETS[kind]["in_batch_weight"] for kind in ("binary", "near_misses")}
    assert weights == {"binary": 1.0, "near_misses": 0.0}


def test_values_that_do_not_go_with_the_kind_are_refused():
    recipe = Recipe().with_overrides({"loss": "positives", "in_batch_weight": 0})
    with pytest.raises(InputError, match="at least one of the three weights must be above 0"):
        settle(recipe, pairs_of([1.0, 1.0]))


def test_a_run_settles_its_recipe_on_all_its_training_pairs(tmp_path):
    llm = [
        {"text1": f"a{i}", "text2": f"b{i}", "score": i % 2, "polarity": ("antonym", "synonym")[i % 2]}
        for i in range(20)
    ]
    human = [{"text1": f"c{i}", "text2": f"d{i}", "score": i % 6} for i in range(16)]
    data, graded = write(tmp_path / "llm.jsonl", llm), write(tmp_path / "human.jsonl", human)
    recipe = Recipe().with_overrides({"learning_rate": 1e-3})

    def kind(pairs, graded):
        given = FitOptions(backbone="b", out=tmp_path, recipe=recipe, data=pairs, human=graded)
        settled = load_data(given)[1]
        assert settled.training.learning_rate == 1e-3
        return settled.objective.loss

    assert kind([data], [graded]) == "polarity"
    assert kind([], [graded]) == "graded"
