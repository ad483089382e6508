"""The model's card: metadata that the hub reads, the conclusion first, nothing private."""

from dataclasses import replace

import pytest
from huggingface_hub import ModelCard
from report_examples import BESIDE, BETTER, made_report, report

from angle_train.report.card import write_card
from angle_train.report.text import results_table

THEIRS = "---\nlicense: apache-2.0\nlanguage: en\ndatasets:\n- theirs\n---\n# Their model\n\nTheir words.\n"


@pytest.fixture
def card(tiny_model, tmp_path):
    def write(made, theirs=None):
        tiny_model._model_card_text = theirs
        write_card(tmp_path / "README.md", made, tiny_model)
        return (tmp_path / "README.md").read_text()

    return write


def on_the_hub(made, **details):
    command = "angle-train fit --data hub:me/pairs --data mine.jsonl --test hub:me/test"
    more = {"base_model": "owner/small-model", "command": command} | details
    return replace(made, backbone="owner/small-model", details=made.details | more)


def test_the_hub_reads_base_model_data_licence_and_test_figures(card):
    data = ModelCard(card(on_the_hub(made_report()), THEIRS)).data
    assert (data.base_model, data.license, data.language) == ("owner/small-model", "apache-2.0", "en")
    assert data.datasets == ["me/pairs"]
    assert data.pipeline_tag == "sentence-similarity"
    assert data.model_name == "small-model-tuned"
    tested = [r for r in made_report().results if (r.role, r.model) == ("test", "tuned")]
    assert [(found.dataset_name, found.metric_value) for found in data.eval_results] == [
        (r.pairs, pytest.approx(r.score.value)) for r in tested
    ]
    assert {found.metric_type for found in data.eval_results} == {"spearman_cosine"}


def test_the_conclusion_comes_first_and_the_figures_follow(card):
    made = on_the_hub(made_report())
    text = card(made).split("---\n", 2)[2]
    assert text.startswith(
        f"\n# small-model-tuned\n\n**{made.verdict.headline}**\n\n{made.verdict.advice}\n\n"
    )
    for part in (
        results_table(made.results),
        *(f"* {line}" for line in [*made.verdict.lines[1:], *made.verdict.evidence, *made.notes]),
        'SentenceTransformer("small-model-tuned")',
        'hf upload OWNER/small-model-tuned . . --exclude ".angle/*" --exclude report.html\n',
        "tuned from owner/small-model.",
        "* Training data: pairs & more, 100 pairs.",
    ):
        assert part in text


def test_the_terms_that_trained_are_named_and_no_other(card):
    objective = {"cosine_weight": 0.2, "in_batch_weight": 1.0, "angle_weight": 0.0}
    objective |= dict.fromkeys(("cosine_tau", "in_batch_tau", "angle_tau"), 0.05)
    made = replace(report(BETTER), recipe={"objective": objective})
    named = "terms cosine (weight 0.2, temperature 0.05) and in-batch (weight 1, temperature 0.05) of [AoE"
    assert named in card(made)
    alone = {"objective": objective | {"in_batch_weight": 0.0}}
    assert "Trained with the term cosine (weight 0.2, temperature 0.05) of" in card(
        replace(made, recipe=alone)
    )
    angle = {"objective": objective | {"angle_weight": 0.5}}
    assert "and angle (weight 0.5, temperature 0.05) of" in card(replace(made, recipe=angle))
    assert "Trained with" not in card(report(BETTER, kept="backbone"))


def test_a_kept_backbone_is_called_that_and_has_its_own_figures(card):
    made = on_the_hub(report(BETTER, kept="backbone"))
    text = card(made, THEIRS)
    data = ModelCard(text).data
    assert text.split("---\n", 2)[2].startswith(
        "\n# small-model\n\n**Not shown to be better, so the backbone stays"
    )
    assert [found.metric_value for found in data.eval_results] == [0.6]
    assert "the untouched weights of owner/small-model" in text
    assert "Their words" not in text
    assert BESIDE in text


@pytest.mark.parametrize("theirs", ["no metadata", "---\nlicense: [\n---\n", "---\nmodel-index: 3\n---\n"])
def test_a_card_that_cannot_be_read_is_passed_over(card, theirs):
    assert ModelCard(card(report(BETTER), theirs)).data.license is None


def test_a_folder_called_model_is_named_after_the_data(card):
    made = replace(report(BETTER), backbone="model@0123456789ab")
    text = card(made)
    assert "\n# pairs-more-tuned\n" in text
    assert "0123456789ab" not in text
