"""`--keep`: pairs of general text stay as similar as the backbone finds them, while others are learned."""

import json
import re
from dataclasses import replace

import pytest
from cut_runs import CutOff, cut_off

from angle_data.errors import InputError
from angle_train import run as fit_module
from angle_train.data.keep import KEPT, load_to_keep
from angle_train.evaluation.similarity import evaluate_model, spearman
from angle_train.model.load import load_backbone
from angle_train.recipe import Recipe
from angle_train.run import FitConfig, fit, load_data

FAST = {"loss": "graded", "epochs": 6, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}


def write(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.fixture
def config(rows, tiny_model_dir, tmp_path, monkeypatch):
    """48 graded pairs, whose dev pairs are their own, and 40 pairs of other texts to keep."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)
    graded = write(tmp_path / "graded.jsonl", rows[:48])
    kept = [{"text1": row["sentence1"], "text2": row["sentence2"], "kind": "near"} for row in rows[48:88]]
    return FitConfig(
        [graded],
        str(tiny_model_dir),
        tmp_path / "out",
        Recipe().with_overrides(FAST),
        dev=[graded],
        keep=[write(tmp_path / "kept.jsonl", kept)],
        device="cpu",
    )


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
    assert len(found["keep"]["scores"]) > 2
    assert "--keep kept.jsonl" in report["details"]["command"]
    assert (
        "Pairs that keep the similarity of before: kept, 40 pairs." in (config.out / "README.md").read_text()
    )


def test_a_run_that_was_cut_off_keeps_the_same(config, tmp_path):
    fit(config)
    again = replace(config, out=tmp_path / "again")
    with cut_off("on_save", 12), pytest.raises(CutOff):
        fit(again)
    few = [{"text1": f"one {number}", "text2": f"two {number}"} for number in range(20)]
    fewer = write(tmp_path / "fewer.jsonl", few)
    with pytest.raises(InputError, match="holds a run with different pairs to keep"):
        fit(replace(again, keep=[fewer]))
    fit(again)
    for name in ("model.safetensors", "report.json"):
        assert (again.out / name).read_bytes() == (config.out / name).read_bytes(), name


def test_pairs_that_have_a_label_or_are_measured_are_not_kept(config, rows, tmp_path):
    both = [{"text1": row["sentence2"], "text2": row["sentence1"]} for row in rows[40:60]]
    test = write(tmp_path / "test.jsonl", rows[50:70])
    data = load_data(replace(config, keep=[write(tmp_path / "both.jsonl", both)], test=[test]))
    assert data.kept.text1 == [row["sentence2"] for row in rows[48:50]]


def test_kept_pairs_are_ranked_among_themselves_and_beside_parts_held_out_in_turn(config):
    parts = replace(config, dev=(), human=config.data, data=())
    report = fit(parts).report
    assert [(note.role, note.pairs) for note in report.data][:3] == [
        ("train", 88),
        ("human", 48),
        ("keep", 40),
    ]
    pairs = load_to_keep(config.keep, [])
    assert set(pairs.supervision) == {KEPT}
    data = load_data(config)
    joined = fit_module.with_kept(data, pairs.score + 0.5).train
    assert sorted({*joined.scales()[:48]} & {*joined.scales()[48:]}) == []


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([{"text": "alone"}], r"kept.jsonl:1: --keep needs pairs .* found: text; .angle-data mine --texts"),
        ([{"text1": "one", "text2": " "}], r"kept.jsonl:1: text2 must be a text that is not blank"),
        ([{"text1": "one", "text2": "two"}], "it has 1 of 1 pair to keep; give at least two"),
        ([], "it has 0 of 0 pairs to keep; give at least two"),
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
        InputError, match="0 of 48 pairs to keep; the others train or measure, or come twice; give"
    ):
        fit(replace(config, keep=config.data))
    assert not config.out.exists()
