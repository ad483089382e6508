"""`--keep`: texts stay as similar to each other as the backbone finds them, while pairs are learned."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from letter_model import collator
from train_runs import changed, evaluate_model, now, pair_set, run_of, weights, write

from angle_data.errors import InputError
from angle_data.text import normalise, stable_hash
from angle_train import run as fit_module
from angle_train.data import keep as keeping
from angle_train.data.guards import general_pairs, own_texts
from angle_train.data.keep import general_texts, load_to_keep
from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone
from angle_train.objective.kept import kept_objective, kept_of
from angle_train.run import fit, load_data
from angle_train.training import distillation, folds
from angle_train.training.trainer import train

FAST = {"loss": "graded", "epochs": 6, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}


@pytest.fixture
def config(rows, tiny_model_dir, tmp_path, monkeypatch):
    """48 graded pairs, whose dev pairs are near copies, and 80 other texts to keep."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)
    graded, dev = write(tmp_path / "graded.jsonl", rows[:48]), write(tmp_path / "dev.jsonl", now(rows[:48]))
    kept = [{"text1": row["sentence1"], "text2": row["sentence2"], "kind": "near"} for row in rows[48:88]]
    keep = [write(tmp_path / "kept.jsonl", kept)]
    return run_of(tiny_model_dir, tmp_path / "out", graded, FAST, dev=[dev], keep=keep)


def agreement(config, rows, model):
    """Rank correlation of a model's cosines with the backbone's, of the texts to keep put together anew."""
    first, second = ([row[name] for row in rows[48:88]] for name in ("sentence1", "sentence2"))
    pairs = pair_set([*zip(first, second[7:] + second[:7], strict=True), *zip(first, second, strict=True)])
    before = evaluate_model(load_backbone(config.backbone, device="cpu"), pairs)
    return spearman(before, evaluate_model(load_backbone(str(model), device="cpu"), pairs))


def test_texts_keep_their_similarities_to_each_other(config, rows, tmp_path):
    without = replace(config, keep=(), out=tmp_path / "without")
    assert fit(without).report.kept == fit(config).report.kept == "tuned"
    assert agreement(config, rows, config.out) > agreement(config, rows, without.out) + 0.03
    report = json.loads((config.out / "report.json").read_text())
    found = {note["role"]: note for note in report["data"]}
    assert (found["train"]["pairs"], found["keep"]["pairs"]) == (48, 80)
    assert "--keep kept.jsonl" in report["details"]["command"]
    card = (config.out / "README.md").read_text()
    assert "Unlabelled texts that stay as the backbone has them: kept, 80 texts." in card


def test_texts_that_measure_are_not_kept(config, rows, tmp_path):
    test = write(tmp_path / "test.jsonl", rows[50:70])
    kept = load_data(replace(config, test=[test]))[0].kept
    assert len(kept) == 40
    measured = {row[name] for row in rows[50:70] for name in ("sentence1", "sentence2")}
    assert not measured & {*kept.texts}


def test_the_recipe_may_keep_general_text_and_the_users_own(config, rows):
    data, _ = load_data(replace(changed(config, keep_general=True), keep=()))
    guarded, own = own_texts(data.train)
    assert (len(guarded), len(own)) == (12, 36)
    assert {*own} <= {*data.kept.texts}
    assert {*general_texts()} <= {*data.kept.texts}
    held_out = {text for guard in data.guards for text in (*guard.pairs.text1, *guard.pairs.text2)}
    assert len(held_out) == 256 + 12
    assert not held_out & {*data.kept.texts}  # guards are measured on texts that nothing was learned of
    assert load_data(replace(config, keep=()))[0].kept is None


def test_of_very_many_texts_some_are_kept_and_none_of_the_general_ones_is_lost(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(keeping, "MOST", 20)
    given = [f"the text with the number {number}" for number in range(50)]
    spec = write(tmp_path / "many.jsonl", [{"text": text} for text in given])
    own = ["one of my own", "another of my own"]
    kept = load_to_keep([spec], True, own, []).texts
    assert {*general_texts(), *own} <= {*kept}
    assert len({*given} & {*kept}) == len(kept) - len(general_texts()) - 2 == 20
    assert {*given} & {*kept} == {*sorted(given, key=lambda text: stable_hash(normalise(text)))[:20]}
    assert "--keep: 20 of 50 distinct texts are kept, drawn by hash" in caplog.text
    fewer = write(tmp_path / "fewer.jsonl", [{"text": text} for text in given[:20]])
    assert {*given[:20]} <= {*load_to_keep([fewer], True, own, []).texts}
    assert caplog.text.count("drawn by hash") == 1


def test_at_most_5000_texts_of_ones_own_choice_are_kept(tmp_path):
    given = [{"text": f"the text with the number {number}"} for number in range(5_001)]
    assert len(load_to_keep([write(tmp_path / "many.jsonl", given)], False, [], []).texts) == 5_000


def test_general_texts_to_keep_are_others_than_those_that_guard():
    pairs, texts = general_pairs(), general_texts()
    assert len({*texts}) == len(texts) == 2960
    assert not {*texts} & {*pairs.text1, *pairs.text2}


def test_parts_held_out_in_turn_keep_texts_too(config, monkeypatch):
    given = []

    def seen(model, pairs, *args, **options):
        given.append(len(options["options"].kept.texts))
        return train(model, pairs, *args, **options)

    monkeypatch.setattr(distillation, "train", seen)
    monkeypatch.setattr(folds, "PARTS", 2)
    fit(replace(config, dev=(), human=config.data, data=()))
    assert given == [80, 80, 80]  # two parts, then all pairs


def test_a_run_that_keeps_texts_goes_on_as_if_it_had_not_been_cut_off(config, tmp_path):
    """The texts of a step follow from its pairs, not from what was drawn before."""
    from cut_runs import CutOff, cut_off, interrupt

    whole = replace(config, out=tmp_path / "whole")
    fit(whole)
    with pytest.raises((CutOff, KeyboardInterrupt)), cut_off("on_step_end", 7, interrupt):
        fit(config)
    fit(config)
    assert weights(config.out) == weights(whole.out)


def kept(count=30, width=5):
    vectors = np.random.default_rng(0).normal(size=(count, width)).astype(np.float32)
    return kept_of([f"text {number:02d}" for number in range(count)], vectors)


def test_texts_are_drawn_with_their_neighbours():
    texts = kept()
    cosines = texts.vectors @ texts.vectors.T - 2 * np.eye(30)
    assert texts.neighbours.shape == (30, 29)
    assert (texts.neighbours[:, 0] == cosines.argmax(axis=1)).all()
    places = texts.draw(8, torch.Generator().manual_seed(1))
    assert len({*places}) == 8
    drawn = {texts.texts[place] for place in places}
    assert any(len(drawn & {*texts.at(texts.neighbours[place, :8])}) >= 2 for place in places)
    assert places == texts.draw(8, torch.Generator().manual_seed(1))
    assert sorted(texts.draw(99, torch.Generator())) == list(range(30))
    assert texts.table([3, 5])[0, 1] == pytest.approx(float(texts.vectors[3] @ texts.vectors[5]))


def test_the_term_is_the_squared_difference_of_all_cosines_but_a_texts_own():
    table = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    embeddings = torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, 1.0]])
    assert float(kept_objective(embeddings, table)) == pytest.approx(2 * (0.25 + 1) / 6)


def test_kept_texts_are_no_negatives_and_change_no_other_term():
    rows = [{"text1": "a", "text2": "b", "score": 1.0}, {"text1": "c", "text2": "d", "score": 0.0}]
    plain, more = collator()(rows), replace(collator(), kept=kept())(rows)
    table = more["label"].pop("table")
    assert table.shape == (8, 8)
    assert all(torch.equal(plain["label"][name], more["label"][name]) for name in plain["label"])


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([{"name": "alone"}], r"kept.jsonl:1: --keep needs texts \(text\) or pairs of them.*found: name"),
        ([{"text1": "one", "text2": " "}], r"kept.jsonl:1: text2 must be a text that is not blank"),
        (
            [{"text": "one"}, {"text": "One"}],
            "kept.jsonl: 1 distinct text outside dev, test and guards, too few to keep; give at least 8",
        ),
        ([], "kept.jsonl holds no texts; check the file, or leave it out"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_one_line(program, config, tmp_path, written, message):
    given = ["fit", "--data", *config.data, "--backbone", config.backbone, "--out", tmp_path / "new"]
    code, _, said = program(*given, "--keep", write(tmp_path / "kept.jsonl", written))
    assert code == 1
    assert re.search(message, said.splitlines()[-1])
    assert not (tmp_path / "new").exists()


def test_eight_texts_are_enough_and_of_the_users_own_the_first_2000_are_kept(tmp_path):
    eight = write(tmp_path / "eight.jsonl", [{"text": f"text number {n}"} for n in range(8)])
    assert len(load_to_keep([eight], False, [], [])) == 8
    own = [f"my own text number {n}" for n in range(2_003)]
    assert {*load_to_keep([], True, own, []).texts} - {*general_texts()} == {*own[:2_000]}


def test_a_text_file_has_a_text_a_line(program, config, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n\n".join(f"text number {n}" for n in range(9)) + "\n", encoding="utf-8-sig")
    found = load_to_keep([str(lines)], False, [], [])
    assert (found.name, len(found)) == ("lines.txt", 9)
    assert "text number 0" in found.texts
    given = ["fit", "--backbone", config.backbone, "--out", tmp_path / "new"]
    code, _, said = program(*given, "--data", lines)
    assert code == 1
    assert said.splitlines()[-1].endswith(
        f"data set folder; `angle-data start {lines}` has a model write pairs for the texts, and fit "
        "--keep and fit --teacher-pairs take them as they are"
    )
    code, _, said = program(*given, "--data", *config.data, "--keep", tmp_path / "other.doc")
    assert code == 1
    assert "other.doc does not exist; check the path, or write hub:ID" in said
    (tmp_path / "other.doc").write_text("a text")
    code, _, said = program(*given, "--data", *config.data, "--keep", tmp_path / "other.doc")
    assert code == 1
    assert said.splitlines()[-1].endswith(", or .txt[.gz] (one text per line)")
    code, _, said = program(*given, "--data", *config.data, "--keep", lines, "--set", "epochs=0.1")
    assert code == 0, said
    assert "texts whose similarities are kept: 9 of --keep" in said
    code, _, said = program(*given, "--data", *config.data, "--keep", tmp_path / "none.txt", "--overwrite")
    assert code == 1
    assert said.splitlines()[-1].endswith("none.txt does not exist; check the path")


def test_the_name_of_a_folder_says_nothing_of_its_rows(tmp_path):
    folder = tmp_path / "kept.txt"
    folder.mkdir()
    write(folder / "train.jsonl", [{"text": f"text number {n}"} for n in range(9)])
    assert len(load_to_keep([str(folder)], False, [], [])) == 9


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("keep_weight=500", "no texts are kept; give --keep FILE, or"),
        ("keep_texts=12", "no texts are kept; give --keep FILE, or"),
        ("keep_weight=500 keep_general=true", ""),
        (
            "keep_texts=12 keep_general=true distil_epochs=0.1",
            "distil_epochs keeps embeddings, not similarities; leave keep_texts out, or",
        ),
        ("learning_rate=0.002", ""),
    ],
)
def test_a_weight_of_nothing_is_told(program, config, tmp_path, setting, why):
    given = ["fit", "--data", *config.data, "--backbone", config.backbone, "--out", tmp_path / "new"]
    settings = [word for one in setting.split() for word in ("--set", one)]
    code, _, said = program(*given, "--epochs", "0.1", *settings)
    assert code == 0, said
    name = setting.partition("=")[0]
    assert (f"warning: {name} has no effect, since {why}" in said) == bool(why)


def test_a_file_without_texts_is_refused_beside_general_text(tmp_path):
    with pytest.raises(InputError, match=r"--keep .*none.jsonl holds no texts"):
        load_to_keep([write(tmp_path / "none.jsonl", [])], True, [], [])


def test_what_is_kept_and_what_is_left_out_is_said(tmp_path, caplog):
    caplog.set_level("INFO", "angle.fit")
    given = write(tmp_path / "given.jsonl", [{"text": f"text number {n}"} for n in range(10)])
    measured = pair_set([("Text number 1", "another"), ("text number 2", "text number 3")])
    own = ["one of my own", "text number 4", "Text number 3", general_pairs().text1[0]]
    kept = load_to_keep([given], True, own, [measured, general_pairs()])
    assert kept.name == "given + general text + your own texts"
    assert [*kept.texts] == sorted(
        kept.texts, key=lambda text: (stable_hash(normalise(text)), normalise(text))
    )
    assert not {"text number 1", "text number 2", "Text number 3", own[-1]} & {*kept.texts}
    assert f"--keep {given}: 3 texts left out: in data that measures (dev, test, guards)" in caplog.text
    assert f"kept: 7 of --keep, {len(general_texts()):,} of general text, 1 of your own texts" in caplog.text
    caplog.clear()
    load_to_keep([], True, ["one of my own"], [measured])
    assert f"kept: {len(general_texts()):,} of general text, 1 of your own texts" in caplog.text
    assert "left out" not in caplog.text


def test_texts_that_all_measure_leave_nothing_to_keep(config):
    with pytest.raises(InputError, match="0 distinct texts outside dev, test and guards, too few to keep"):
        load_to_keep(config.dev, False, [], load_data(config)[0].dev)
