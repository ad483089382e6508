"""Trackers of a run: what is refused before it starts, and that they are told of it."""

import json

import pytest

from angle_data.errors import InputError
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.run import fit
from angle_train.train.arguments import check_trackers


def test_trackers_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"--report-to notebook is not installed \(installed: .*pip install"):
        check_trackers(["notebook"], tmp_path)


# What the libraries use of the package, writing down what it is told.
WRITER = """
class SummaryWriter:
    def __init__(self, log_dir):
        import os
        os.makedirs(log_dir, exist_ok=True)
        self.file = open(os.path.join(log_dir, "told.txt"), "a", encoding="utf-8")

    def add_scalar(self, name, value, step):
        print(name, step, file=self.file, flush=True)

    def add_text(self, name, value):
        pass

    def flush(self):
        pass

    def close(self):
        self.file.close()
"""


def test_a_tracker_is_told_of_losses_and_dev_scores(monkeypatch, tmp_path, tiny_model_dir, examples):
    (tmp_path / "site" / "tensorboardX").mkdir(parents=True)
    (tmp_path / "site" / "tensorboardX" / "__init__.py").write_text(WRITER)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "")  # what the run sets is undone
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR")
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("split") == "dev"]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("\n".join(map(json.dumps, rows[:32])))
    recipe = Recipe().with_overrides({"epochs": 2, "batch_size": 16, "evals_per_epoch": 1})
    fit(
        FitOptions(
            str(tiny_model_dir),
            tmp_path / "out",
            [str(pairs)],
            recipe=recipe,
            dev=[str(pairs)],
            device="cpu",
            report_to="tensorboard",
        )
    )
    told = (tmp_path / "out" / "tensorboard" / "told.txt").read_text().splitlines()
    assert {"train/loss 2", "train/loss 4", "train/cosine 4", "eval/dev_spearman 4"} <= set(told)
