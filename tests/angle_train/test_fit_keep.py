"""`--keep`: pairs of general text stay as similar as the backbone finds them, while others are learned."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from letter_model import collator
from train_runs import changed, evaluate_model, run_of, write

from angle_data.errors import InputError
from angle_train import run as fit_module
from angle_train.data.keep import load_to_keep
from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone
from angle_train.objective.terms import ranking_loss
from angle_train.run import fit, load_data
from angle_train.train import folds
from angle_train.train.trainer import train

FAST = {"loss": "graded", "epochs": 6, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}


@pytest.fixture
def config(rows, tiny_model_dir, tmp_path, monkeypatch):
    """48 graded pairs, whose dev pairs are their own, and 40 pairs of other texts to keep."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)
    graded = write(tmp_path / "graded.jsonl", rows[:48])
    kept = [{"text1": row["sentence1"], "text2": row["sentence2"], "kind": "near"} for row in rows[48:88]]
    keep = [write(tmp_path / "kept.jsonl", kept)]
    return run_of(tiny_model_dir, tmp_path / "out", graded, FAST, keep=keep)


def agreement(config, model):
    """Rank correlation of a model's cosines with the backbone's on the pairs to keep."""
    pairs = load_to_keep(config.keep, [])
    before = evaluate_model(load_backbone(config.backbone, device="cpu"), pairs)
    return spearman(before, evaluate_model(load_backbone(str(model), device="cpu"), pairs))


def test_pairs_keep_the_order_that_the_backbone_gives_them(config, tmp_path):
    without = replace(config, keep=(), out=tmp_path / "without")
    assert fit(without).report.kept == fit(config).report.kept == "tuned"
    assert agreement(config, config.out) > agreement(config, without.out) + 0.1
    report = json.loads((config.out / "report.json").read_text())
    found = {note["role"]: note for note in report["data"]}
    assert (found["train"]["pairs"], found["keep"]["pairs"]) == (88, 40)
    assert found["keep"]["scale"] == "0-1, the backbone's cosines"
    assert "--keep kept.jsonl" in report["details"]["command"]
    card = (config.out / "README.md").read_text()
    assert "Of these, unlabelled, to keep their similarity: kept, 40 pairs." in card


def test_pairs_that_have_a_label_or_are_measured_are_not_kept(config, rows, tmp_path):
    both = [{"text1": row["sentence2"], "text2": row["sentence1"]} for row in rows[40:60]]
    test = write(tmp_path / "test.jsonl", rows[50:70])
    data, _ = load_data(replace(config, keep=[write(tmp_path / "both.jsonl", both)], test=[test]))
    assert data.kept.text1 == [row["sentence2"] for row in rows[48:50]]


def test_parts_held_out_in_turn_train_on_kept_pairs_too(config, monkeypatch):
    sizes = []

    def counted(model, pairs, *given, **options):
        sizes.append(len(pairs))
        return train(model, pairs, *given, **options)

    monkeypatch.setattr(folds, "train", counted)
    parts = replace(changed(config, folds=2), dev=(), human=config.data, data=())
    report = fit(parts).report
    found = [(note.role, note.pairs) for note in report.data][:3]
    assert found == [("train", 88), ("human", 48), ("keep", 40)]
    assert sizes == [24 + 40, 24 + 40]


def test_the_untouched_backbone_scores_without_the_prompt(config, tmp_path):
    plain, prompted = (
        fit(replace(changed(config, prompt=prompt), out=tmp_path / f"out{len(prompt)}")).report
        for prompt in ("", "about: ")
    )
    notes = [next(note for note in report.data if note.role == "keep") for report in (plain, prompted)]
    assert notes[0] == notes[1]


def test_kept_pairs_are_ranked_alone_and_say_of_no_two_texts_that_they_mean_the_same(config, rows, tmp_path):
    sourced = [row | {"source_id": f"s{number}"} for number, row in enumerate(rows[:48])]
    data, recipe = load_data(replace(config, data=[write(tmp_path / "sourced.jsonl", sourced)]))
    joined = fit_module.with_kept(data, data.kept, np.linspace(-0.2, 1.0, 40), recipe.objective)
    assert joined.train.scales() == [1] * 48 + [-1] * 40
    assert joined.train.source_ids[:48] == [f"0/s{number}" for number in range(48)]
    assert len(joined.others) == 88
    assert joined.kept.score.min() == 0
    rows = [
        {"text1": "a", "text2": "b", "score": 1.0, "scale": 1},
        {"text1": "c", "text2": "d", "score": 1.0, "scale": -1},
        {"text1": "e", "text2": "f", "score": 0.0, "scale": -1},
    ]
    labels = collator()(rows)["label"]
    assert labels["positive"].tolist() == [True, False, False]
    assert labels["neutral"].tolist() == [False, True, True]
    assert len(set(labels["group"].tolist())) == 5  # a and b are one
    # Of labelled pairs, random ones (scale 0) among them, and kept ones, none is ranked against the other.
    score, scale = torch.tensor([1.0, 0.0, 0.9, 0.1]), torch.tensor([1, 0, -1, -1])
    cosine = torch.tensor([0.3, 0.2, 0.8, 0.7])
    parts = [(cosine[i + 1] - cosine[i]).div(0.05).exp() for i in (0, 2)]
    assert ranking_loss(cosine, score, tau=0.05, scale=scale) == pytest.approx(float(sum(parts).log1p()))


def test_an_objective_that_ranks_nothing_and_pairs_that_do_not_differ_are_refused(config, tmp_path):
    with pytest.raises(InputError, match=r"ranks no pairs; add --set cosine_weight=0\.2"):
        fit(changed(config, loss="positives"))
    alike = [{"text1": f"text {number}", "text2": f"text {number}"} for number in range(20)]
    with pytest.raises(InputError, match="--keep: the backbone scores all its pairs the same"):
        fit(replace(config, keep=[write(tmp_path / "alike.jsonl", alike)]))
    assert not (config.out / "model.safetensors").exists()


def test_a_pair_counts_once(config, caplog):
    with caplog.at_level("INFO", logger="angle"):
        pairs = load_to_keep([*config.keep, *config.keep], [])
    assert len(pairs) == 40
    assert "40 of 80 pairs keep the similarity" in caplog.text
    assert "or repeats" in caplog.text


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([{"text": "alone"}], r"kept.jsonl:1: --keep needs pairs .* found: text; .angle-data mine --texts"),
        ([{"text1": "one", "text2": " "}], r"kept.jsonl:1: text2 must be a text that is not blank"),
        ([{"text1": "one", "text2": "two"}], "only 1 of 1 pair can be kept; give at least two"),
        ([], "only 0 of 0 pairs can be kept; give at least two"),
    ],
)
def test_what_is_no_pair_is_refused_in_one_line(program, config, tmp_path, written, message):
    given = ["fit", "--data", *config.data, "--backbone", config.backbone, "--out", tmp_path / "new"]
    code, _, said = program(*given, "--keep", write(tmp_path / "kept.jsonl", written))
    assert code == 1
    assert re.search(message, said.splitlines()[-1])
    assert not (tmp_path / "new").exists()


def test_pairs_that_all_train_leave_nothing_to_keep(config):
    with pytest.raises(
        InputError,
        match="only 0 of 48 pairs can be kept; the others are training, dev or test pairs, or",
    ):
        fit(replace(config, keep=config.data))
    assert not config.out.exists()
