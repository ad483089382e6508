"""Which weights a run with dev pairs keeps, and what it says of that in the log, the reports and the card."""

import json
import random
import re
from html import unescape

import pytest
from train_runs import run_of, same_weights, saved_score, turned, write

from angle_train.run import fit

FAST = {"loss": "papers", "epochs": 3, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}
HOT = {"learning_rate": 0.02, "args": {"lr_scheduler_type": "constant"}}


@pytest.fixture
def run(rows, tiny_model_dir, tmp_path, caplog):
    """A function that makes a run and returns its configuration, report and log."""

    def made(trained, dev, **values):
        data, dev = write(tmp_path / "trained.jsonl", trained), write(tmp_path / "dev.jsonl", dev)
        config = run_of(tiny_model_dir, tmp_path / "out", data, FAST | values, dev=[dev])
        with caplog.at_level("INFO", logger="angle"):
            return config, fit(config).report, caplog.text

    return made


def shuffled(rows):
    """The rows with each other's scores."""
    scores = [row["score"] for row in rows]
    random.Random(0).shuffle(scores)
    return [row | {"score": score} for row, score in zip(rows, scores, strict=True)]


def read_page(path):
    """What is read on the page, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", path.read_text())).split())


def test_the_backbone_stays_where_tuning_brings_nothing_surely(run, rows):
    config, report, log = run(shuffled(rows[:60]), rows[:60])
    choice, saved = report.details["choice"], json.loads((config.out / "report.json").read_text())
    assert (report.kept, choice["chosen"], choice["compared"]) == ("backbone", 0, 3)
    assert report.best_step == report.planned_steps
    assert {result.model for result in report.judged} == {"tuned, in tuned/"}
    assert choice["confidence"] < 0.9
    assert saved["details"]["choice"] == choice
    confidence = f"{choice['confidence']:.2f}"
    best, own = max(point["dev"] for point in report.curve[1:]), report.curve[-1]["dev"]
    assert best > own
    assert (
        f"Spearman {100 * own:.2f} on the dev pairs, the backbone's {100 * report.dev_before:.2f}; another "
        f"step had {100 * best:.2f}, better with confidence {confidence} (3 compared)"
    ) in log
    why = (
        "Tuning did not surely help: of 3 compared, none ranked the dev pairs better than the backbone by "
        f"more than chance explains (confidence {confidence}; {100 * best:.1f} at best, "
        f"backbone {100 * report.dev_before:.1f}), so the backbone stays. The tuned weights are in "
        "tuned/, for you to take all the same."
    )
    page = read_page(config.out / "report.html")
    said, further = report.verdict.lines
    assert saved["verdict"] == [said, further]
    assert said == why
    assert (
        further == "Next: see whether anything was to be learned (epochs, learning_rate, the training pairs)"
    )
    assert why in log
    assert why in page
    assert "3 candidates were compared with the backbone" in page
    assert f"the confidence in that is {confidence}." in page
    card = (config.out / "README.md").read_text()
    assert why in card
    assert same_weights(config.out, config.backbone)


def test_a_clear_gain_is_adopted(run, rows):
    config, report, log = run(rows[:60], rows[:60])
    choice, tuned = report.details["choice"], [point["dev"] for point in report.curve[1:]]
    assert (report.kept, choice["chosen"], choice["compared"]) == ("tuned", 1, 3)
    assert choice["confidence"] > 0.99
    assert [point["step"] for point in report.curve] == [0, 4, 8, 12]
    assert report.best_step == report.steps == report.planned_steps == 12
    assert report.dev_after == tuned[-1] > report.dev_before == report.curve[0]["dev"]
    assert (choice["simplest"], choice["best"]) == pytest.approx((report.dev_before, report.dev_after))
    assert report.notes == ["60 of 60 dev pairs of dev are training pairs too"]
    assert (
        f"step 12: Spearman {100 * report.dev_after:.2f} on the dev pairs, the backbone's "
        f"{100 * report.dev_before:.2f}; better with confidence {choice['confidence']:.2f} (3 compared)"
    ) in log
    page = read_page(config.out / "report.html")
    assert "Chosen on dev pairs 3 candidates were compared" in page
    assert "The tuned weights are better on these pairs by more than chance explains" in page


def test_the_planned_end_is_kept_where_an_earlier_evaluation_is_slightly_better(run, rows):
    config, report, _ = run(turned(rows[:48]), turned(rows[:48]), **HOT)
    tuned = [point["dev"] for point in report.curve[1:]]
    assert max(tuned[:-1]) > tuned[-1] + 0.02  # on 48 pairs that is nothing
    assert (report.kept, report.best_step) == ("tuned", report.planned_steps)
    assert report.dev_after == tuned[-1] == pytest.approx(saved_score(config.out, config.dev[0]))


def test_an_earlier_evaluation_is_taken_where_the_end_is_no_better_than_the_backbone(run, rows):
    config, report, log = run(turned(rows[:48]), turned(rows[:48]), **HOT | {"learning_rate": 0.05})
    first, _, end = tuned = [point["dev"] for point in report.curve[1:]]
    assert first == max(tuned) > 0 > end  # the rate is far too high
    assert (report.kept, report.best_step, report.steps) == ("tuned", 3, 9)
    assert "step 3: Spearman" in log
    assert report.dev_after == first == pytest.approx(saved_score(config.out, config.dev[0]))
