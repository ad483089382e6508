"""`--teacher`: another model's cosines of pairs without labels train the model, alone or beside labels."""

import json
import logging
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from train_runs import changed, pair_set, run_of, weights, write

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_train import fit as fit_in_python
from angle_train import run as fit_module
from angle_train.data.pairs import TEACHER
from angle_train.data.teacher import Unscored
from angle_train.data.vectors import load_vectors
from angle_train.evaluation.similarity import pair_similarity
from angle_train.run import fit, load_data
from angle_train.training import teacher as teacher_module
from angle_train.training.teacher import pairs_among, taught_pairs

FAST = {"epochs": 6, "batch_size": 16, "learning_rate": 2e-3, "evals_per_epoch": 1}


@pytest.fixture(autouse=True)
def _no_page(monkeypatch):
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)


@pytest.fixture
def vectors(rows, tiny_model, tmp_path):
    """A teacher that sees four of the backbone's 32 dimensions, in a file."""
    texts = sorted({row[name] for row in rows for name in ("sentence1", "sentence2")})
    found = tiny_model.encode(texts)[:, :4].tolist()
    stored = [{"text": text, "embedding": row} for text, row in zip(texts, found, strict=True)]
    return write(tmp_path / "four.jsonl", stored)


def mined(rows, steps=(0, 1, 5)):
    """Pairs without labels: the two texts of rows that stand some places apart."""
    pairs = ((row, rows[(number + step) % len(rows)]) for number, row in enumerate(rows) for step in steps)
    return [{"text1": one["sentence1"], "text2": other["sentence2"], "kind": "near"} for one, other in pairs]


@pytest.fixture
def config(rows, vectors, tiny_model_dir, tmp_path):
    """150 pairs for the teacher; the dev pairs are near copies of some, with the teacher's cosines."""
    dev = mined(rows[:50], steps=(0,))
    pairs = pair_set([(row["text1"], row["text2"]) for row in dev])
    wanted = pair_similarity(pairs, load_vectors(vectors))
    dev = [
        {"text1": f"{row['text1']} now", "text2": f"{row['text2']} then", "score": float(score)}
        for row, score in zip(dev, wanted, strict=True)
    ]
    run = run_of(tiny_model_dir, tmp_path / "out", "", FAST, dev=[write(tmp_path / "dev.jsonl", dev)])
    pairs = write(tmp_path / "mined.jsonl", mined(rows[:50]))
    return replace(run, data=None, teacher=vectors, teacher_pairs=[pairs])


def test_a_model_learns_its_teachers_order_without_any_label(config, rows):
    result = fit(config).report
    assert result.kept == "tuned"
    assert result.dev_after > result.dev_before + 0.2
    report = json.loads((config.out / "report.json").read_text())
    notes = {note["role"]: (note["name"], note["pairs"], note["scale"]) for note in report["data"]}
    assert notes["train"] == notes["teacher"] == ("mined by four.jsonl", 150, "cosines of four.jsonl")
    assert "--teacher four.jsonl --teacher-pairs mined.jsonl" in report["details"]["command"]
    card = (config.out / "README.md").read_text()
    assert "Scored by a teacher, without labels: mined by four.jsonl, 150 pairs." in card


def test_a_teacher_scores_once(config, monkeypatch):
    fit(config)

    def loaded(*_):
        raise AssertionError("the teacher was loaded again")

    monkeypatch.setattr(teacher_module, "encoder_of", loaded)
    assert fit(config).already_finished
    assert [path.suffix for path in (config.out / ".angle" / "teacher").iterdir()] == [".jsonl"]
    with pytest.raises(AssertionError, match="loaded again"):
        fit(replace(config, out=config.out.parent / "another"))


def test_a_run_with_a_teacher_goes_on_as_if_it_had_not_been_cut_off(config, tmp_path, monkeypatch):
    from cut_runs import CutOff, cut_off, interrupt

    whole = replace(config, out=tmp_path / "whole")
    fit(whole)
    with pytest.raises((CutOff, KeyboardInterrupt)), cut_off("on_step_end", 7, interrupt):
        fit(config)
    monkeypatch.setattr(teacher_module, "encoder_of", None)
    fit(config)
    assert weights(config.out) == weights(whole.out)


def test_another_teacher_is_another_run_and_the_message_names_both(config, tmp_path):
    fit(changed(config, epochs=1))
    other = tmp_path / "other" / "four.jsonl"
    other.parent.mkdir()
    write(other, [json.loads(line) for line in Path(config.teacher).read_text().splitlines()][::-1])
    with pytest.raises(InputError, match=r"different .*teacher \(four.jsonl@\w+ -> four.jsonl@\w+\)"):
        fit(changed(replace(config, teacher=str(other)), epochs=1))


def test_labels_and_a_teacher_train_together_each_on_its_own_scale(config, rows, tmp_path):
    labelled = write(tmp_path / "labelled.jsonl", rows[:30])
    data, recipe = load_data(replace(config, data=[labelled]))
    assert (len(data.train), len(data.taught)) == (150, 120)  # those that have a label are not asked about
    assert data.train.scales() == [1] * 30 + [-1] * 120
    alone, _ = load_data(replace(config, data=[labelled], teacher=None, teacher_pairs=None))
    assert alone.train.scales() == [1] * 30
    assert alone.taught is None
    assert recipe.objective.loss == "graded"  # that of the labels


def test_parts_held_out_in_turn_train_on_taught_pairs_too(config, rows, tmp_path):
    human = write(tmp_path / "human.jsonl", rows[:30])
    data, _ = load_data(replace(config, human=[human], dev=None))
    assert (data.dev, len(data.human), len(data.others), len(data.train)) == ([], 30, 120, 150)
    assert {*data.others.supervision} == {TEACHER}


def test_pairs_are_drawn_among_the_texts_of_the_data(config, rows, tmp_path):
    labelled = write(tmp_path / "labelled.jsonl", rows[:40])
    data, _ = load_data(replace(config, data=[labelled], teacher_pairs=None))
    first = {row["sentence1"] for row in rows[:40]}
    assert {*data.taught.text1, *data.taught.text2} == first
    assert len(data.taught) > 2 * len(first)
    assert data.taught.name == "your own texts by four.jsonl"


def test_drawn_pairs_are_near_and_far_and_none_comes_twice():
    """On a circle the neighbours of a text are known: 1, 2 (rank 3) and 11 (rank 20) steps away."""
    angles = 2 * np.pi * np.arange(60) / 60
    texts = [f"text {number}" for number in range(60)]
    found = pairs_among(texts, np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
    apart = [abs(int(a.split()[1]) - int(b.split()[1])) for a, b in found]
    steps = [min(number, 60 - number) for number in apart]
    assert {*steps} == {1, 2, 11, 30}
    assert len({frozenset(pair) for pair in found}) == len(found)
    assert {text for pair in found for text in pair} == {*texts}
    assert len(pairs_among(["a", "b"], np.eye(2, dtype=np.float32))) == 1


def test_the_texts_that_a_teacher_speaks_of_are_not_held_where_the_backbone_has_them(config, rows, tmp_path):
    run = changed(replace(config, data=[write(tmp_path / "labelled.jsonl", rows[:30])]), keep_general=True)
    own = {row["sentence1"] for row in rows}
    assert not own & {*load_data(run)[0].kept.texts}
    assert own & {*load_data(replace(run, teacher=None, teacher_pairs=None))[0].kept.texts}


def test_without_dev_pairs_the_report_says_whose_scores_these_are(config, caplog):
    with caplog.at_level(logging.WARNING, "angle"):
        report = fit(replace(config, dev=None)).report
    assert "how near the model comes to the teacher, not what people would say; give --dev" in caplog.text
    (dev,) = (note for note in report.data if note.role == "dev")
    assert dev.name == "mined by four.jsonl/held-out"
    assert report.notes[-1] == "the scores of mined by four.jsonl/held-out are its teacher's, not people's"


def test_a_teacher_that_tells_nothing_apart_is_refused(tmp_path):
    file = write(tmp_path / "flat.jsonl", [{"text": text, "embedding": [1.0, 0.0]} for text in "abcd"])
    with pytest.raises(InputError, match="gives all 2 pairs one score: it tells nothing apart"):
        taught_pairs(Unscored("mined", [("a", "b"), ("c", "d")], []), file, tmp_path / "kept")


def test_a_model_is_a_teacher_in_python_too(config, tiny_model_dir, tmp_path):
    values = changed(config, epochs=1).recipe
    given = {"teacher": tiny_model_dir, "teacher_pairs": config.teacher_pairs, "device": "cpu"}
    found = fit_in_python(
        backbone=tiny_model_dir, out=tmp_path / "new", dev=config.dev, recipe=values, **given
    )
    assert [note.name for note in found.report.data if note.role == "teacher"] == ["mined by model"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--teacher-pairs", "mined.jsonl"], "--teacher-pairs are for a teacher to score; give --teacher"),
        (["--teacher", "four.jsonl"], "nothing to train on: give --data, --human, or --teacher with"),
        (["--teacher", "nowhere.npy", "--teacher-pairs", "mined.jsonl"], "nowhere.npy does not exist"),
        (
            ["--teacher", "lines.txt", "--teacher-pairs", "mined.jsonl"],
            r"lines.txt is a file; give the directory of a model, its id on the hub, or its vectors \(.npy, ",
        ),
        (
            ["--teacher", "./no-model", "--teacher-pairs", "mined.jsonl"],
            "model directory ./no-model does not",
        ),
        (
            ["--teacher", "few.jsonl", "--teacher-pairs", "mined.jsonl"],
            r"few.jsonl has no vector for \d+ of .*; add them to the file, or give --teacher-pairs",
        ),
        (
            ["--teacher", "few.jsonl", "--teacher-pairs", "lines.txt"],  # a text a line
            "few.jsonl has no vector for 9 of 9 texts",
        ),
        (
            ["--teacher", "zeros.jsonl", "--teacher-pairs", "mined.jsonl"],
            r"zeros.jsonl: the vectors of \d+ of .* are nothing but zeros, such as .*; embed such texts",
        ),
        (
            ["--data", "mined.jsonl"],
            "no column score.*; add one .*, or let fit take pairs without scores as --teacher-pairs or",
        ),
    ],
)
def test_slips_are_one_line(program, config, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("\n".join("bcdefghij"))
    write(tmp_path / "few.jsonl", [{"text": "a", "embedding": [1.0, 0.0]}])
    texts = {text for _, row in read_jsonl(tmp_path / "mined.jsonl") for text in row.values()}
    write(tmp_path / "zeros.jsonl", [{"text": text, "embedding": [0.0, 0.0]} for text in sorted(texts)])
    given = ["fit", "--backbone", config.backbone, "--dev", *config.dev, "--out", tmp_path / "new"]
    code, _, said = program(*given, *more)
    assert code == 1
    assert re.search(message, said.splitlines()[-1]), said
    assert "Traceback" not in said
