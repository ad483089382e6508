"""Trackers of a run are told of it."""

from train_runs import run_of, write

from angle_train.run import fit

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


def test_a_tracker_is_told_of_losses_and_dev_scores(monkeypatch, tmp_path, tiny_model_dir, rows):
    (tmp_path / "site" / "tensorboardX").mkdir(parents=True)
    (tmp_path / "site" / "tensorboardX" / "__init__.py").write_text(WRITER)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "")  # what the run sets is undone
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR")
    pairs, values = write(tmp_path / "pairs.jsonl", rows[:32]), {"epochs": 2, "batch_size": 16}
    fit(run_of(tiny_model_dir, tmp_path / "out", pairs, values, report_to="tensorboard"))
    told = (tmp_path / "out" / "tensorboard" / "told.txt").read_text().splitlines()
    assert {"train/loss 2", "train/loss 4", "train/cosine 4", "eval/dev_spearman 4"} <= set(told)
