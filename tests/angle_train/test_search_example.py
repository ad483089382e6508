"""The example that searches for a recipe, on a tiny model."""

import importlib.util
import re
from pathlib import Path

import pytest
from train_runs import write

FILE = Path(__file__).resolve().parents[2] / "examples" / "search.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("search_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_trials_begin_with_the_recipe_as_it_is_and_stay_within_the_space(example):
    trials = example.draw(200, 3)
    assert trials[0] == {}
    assert trials[:7] == example.draw(7, 3)
    for key, (low, high) in example.SPACE.items():
        drawn = [values[key] for values in trials[1:]]
        assert low <= min(drawn) < max(drawn) <= high


@pytest.mark.parametrize(("trials", "rounds"), [(1, 1), (3, 1), (4, 2), (9, 2), (10, 3), (27, 3)])
def test_rounds_leave_one_trial(example, trials, rounds):
    assert example.rounds(trials) == rounds


def test_the_better_trial_is_trained_to_the_end_beside_the_recipe(
    example, rows, tiny_model_dir, tmp_path, monkeypatch
):
    monkeypatch.setattr(example, "SPACE", {"learning_rate": (1e-7, 5e-3)})
    train, dev = (write(tmp_path / f"{name}.jsonl", rows[:48]) for name in ("train", "dev"))
    given = {"pairs": train, "dev": dev, "model": str(tiny_model_dir), "loss": "graded", "device": "cpu"}
    given |= {"batch_size": 16, "evals_per_epoch": 1, "epochs": 6, "trials": 4, "seed": 2}
    found = example.search(tmp_path / "out", **given)
    assert len(list((tmp_path / "out" / "round-1").iterdir())) == 4
    last = sorted(path.name for path in (tmp_path / "out" / "round-2").iterdir())
    assert last == sorted(f"trial-{trial}" for _, trial, _ in found)
    assert "trial-0" in last
    assert found == sorted(found, key=lambda each: -each[0])
    assert found == example.search(tmp_path / "out", **given)  # reopens what is finished


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [(("--trials", "0"), 2, "--trials must be at least 1"), ((), 1, "search.py: error: .*none.jsonl")],
)
def test_a_slip_is_one_line(example, tmp_path, monkeypatch, capsys, tiny_model_dir, more, code, said):
    none = str(tmp_path / "none.jsonl")
    given = ["--data", none, "--dev", none, "--backbone", str(tiny_model_dir), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["search.py", *given, *more])
    with pytest.raises(SystemExit) as stop:
        example.main()
    told = capsys.readouterr().err if code == 2 else stop.value.code
    assert re.search(said, told)
    assert code == 1 or stop.value.code == code
