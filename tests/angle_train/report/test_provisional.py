"""What a run says and shows on the way, and that nothing of it is left at the end."""

import re
from dataclasses import replace

import pytest
from cut_runs import CutOff, cut_off
from train_runs import now, run_of, weights, write

from angle_train.run import fit
from angle_train.training import watch

FAST = {"loss": "papers", "epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}


@pytest.fixture
def run(rows, tiny_model_dir, tmp_path):
    data = write(tmp_path / "train.jsonl", now(rows[:48]))
    return run_of(
        tiny_model_dir, tmp_path / "out", data, FAST, dev=[write(tmp_path / "dev.jsonl", rows[:48])]
    )


def test_every_evaluation_says_how_it_stands_and_leaves_a_page_marked_as_such(run, caplog):
    page = run.out / "report.html"
    with cut_off("on_save", 3), pytest.raises(CutOff), caplog.at_level("INFO", logger="angle"):
        fit(run)
    said = re.findall(
        r"after .* of training: on the dev pairs, of 100 comparisons (\d+) come .*\(provisional: (.*)\)",
        caplog.text,
    )
    assert [where for _, where in said] == [str(page)]
    text = page.read_text()
    assert "<title>Provisional report</title>" in text
    assert "The training is at step 3 of 6; the report of the whole run will replace this page." in text
    assert f"of 100 comparisons {said[0][0]} come out right" in text
    assert ">backbone<" in text
    assert ">tuned so far<" in text
    fit(run)
    assert "rovisional" not in page.read_text()


def test_a_first_look_shows_how_it_stands_and_changes_nothing(run, caplog, monkeypatch):
    looked = replace(run, out=run.out.with_name("looked"))
    curves = [fit(run).report.curve]
    monkeypatch.setattr(watch, "FIRST_LOOK_S", 0.0)
    caplog.clear()
    with caplog.at_level("INFO", logger="angle"):
        curves.append(fit(looked).report.curve)
    said = re.findall(r"after .* of training|step \d/6", caplog.text)
    assert [line.startswith("after") for line in said] == [True, True, False, True, False]
    assert curves[0] == curves[1]
    assert weights(run.out) == weights(looked.out)


def test_the_report_of_an_earlier_model_stays_until_the_new_one_is_saved(run, caplog):
    fit(run)
    before = (run.out / "report.html").read_bytes()
    again = replace(run, overwrite=True)
    with cut_off("on_save", 3), pytest.raises(CutOff), caplog.at_level("INFO", logger="angle"):
        fit(again)
    assert (run.out / "report.html").read_bytes() == before
    assert "after" in caplog.text
    assert "(provisional" not in caplog.text.split("step 0, the untouched backbone")[-1]
