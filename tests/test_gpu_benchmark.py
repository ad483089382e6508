"""`benchmarks/gpu`: every part runs small on a CPU, and no part takes the others with it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "gpu"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(FOLDER)
    import guard
    import run
    from setting import Setting

BAD_PARTS = """
import os, signal, subprocess, time
from guard import Skip, attempt

def fine(setting):
    yield {"what": "a", "steps": 1}

def raises(setting):
    yield {"what": "before", "steps": 2}
    raise MemoryError("no memory left")

def exits(setting):
    yield {"what": "before", "steps": 2}
    raise SystemExit("no")

def dies(setting):
    yield {"what": "before", "steps": 3}
    os.kill(os.getpid(), signal.SIGKILL)

def hangs(setting):
    child = subprocess.Popen(["sleep", "600"])
    yield {"what": "started", "said": child.pid}
    time.sleep(600)

def skips(setting):
    raise Skip("there is no such thing")
    yield

def half(setting):
    yield attempt("bad", lambda: {"steps": 1 / 0})
    yield attempt("good", lambda: {"steps": 4})
"""


@pytest.fixture
def part(tmp_path, monkeypatch):
    """A part by its name in `BAD_PARTS`, with a limit of some seconds."""
    (tmp_path / "bad_parts.py").write_text(BAD_PARTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)
    yield lambda name, limit=30.0: guard.Part(name, "?", f"bad_parts:{name}", limit)
    sys.modules.pop("bad_parts", None)


def found(part, tmp_path):
    """What `run_part` says of a part: its state, the reason, and its rows."""
    result = guard.run_part(part, Setting("cpu", True, tmp_path), tmp_path, part.limit_s)
    return result["state"], result["said"], result["rows"]


def ended(pid):
    """Whether a process is gone, or a zombie that nobody has waited for."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


# Forked beside the threads of other tests' libraries; these parts use none of them.
forks = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@forks
@pytest.mark.parametrize(
    ("name", "state", "said", "rows"),
    [
        ("fine", "done", "", [{"what": "a", "steps": 1}]),
        ("raises", "failed", "MemoryError: no memory left", [{"what": "before", "steps": 2}]),
        ("exits", "failed", "SystemExit: no", [{"what": "before", "steps": 2}]),
        (
            "dies",
            "failed",
            "its process was ended by SIGKILL; see dies.log",
            [{"what": "before", "steps": 3}],
        ),
        ("skips", "skipped", "there is no such thing", []),
    ],
)
def test_a_part_ends_in_a_line_whatever_happens_there(part, tmp_path, name, state, said, rows):
    assert found(part(name), tmp_path) == (state, said, rows)


@forks
def test_a_row_that_fails_leaves_the_rows_after_it(part, tmp_path):
    state, said, rows = found(part("half"), tmp_path)
    assert (state, said) == ("failed", "some rows failed; see half.log")
    assert rows[0] == {"what": "bad", "failed": "ZeroDivisionError: division by zero"}
    assert rows[1] == {"what": "good", "steps": 4}
    assert "ZeroDivisionError" in (tmp_path / "half.log").read_text()


@forks
def test_a_part_that_hangs_ends_at_its_limit_with_all_that_it_started(part, tmp_path):
    state, said, rows = found(part("hangs", 2.0), tmp_path)
    assert (state, said) == ("timeout", "stopped after 2 s; see hangs.log")
    (row,) = rows  # what was there before stays
    until = time.monotonic() + 20
    while not ended(row["said"]) and time.monotonic() < until:
        time.sleep(0.01)
    assert ended(row["said"])


@forks
def test_the_others_run_and_what_does_not_fit_is_said(part, tmp_path, capsys):
    parts = [part("raises"), part("fine"), part("half", 10_000.0)]
    results = run.run_all(parts, Setting("cpu", True, tmp_path / "work"), tmp_path, minutes=1.0)
    assert [result["state"] for result in results] == ["failed", "done", "skipped"]
    assert json.loads((tmp_path / "results.json").read_text())["parts"] == results
    lines = run.written(results).splitlines()
    assert "| raises | before | 2 steps |" in lines
    assert "| raises | FAILED | MemoryError: no memory left |" in lines
    assert "| fine | a | 1 steps |" in lines
    assert any(line.startswith("| half | SKIPPED | ") and "it may need 10000" in line for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_part_runs_small_on_a_cpu(tmp_path):
    names = [part.name for part in run.PARTS if part.name != "vllm"]  # its start alone takes a minute
    command = [sys.executable, str(FOLDER / "run.py"), "--out", str(tmp_path), "--tiny", "--only", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    parts = json.loads((tmp_path / "results.json").read_text())["parts"]
    assert {part["name"]: part["state"] for part in parts} == dict.fromkeys(names, "done")
    rows = {part["name"]: {row["what"]: row for row in part["rows"]} for part in parts}
    for what, row in rows["objective"].items():  # on a CPU, too, the formulas must agree
        assert row["gradient_error"] < (1e-5 if what.endswith("fp32") else 5e-3), what
    for what, row in rows["resume"].items():
        assert row["said"] == "the same bytes", what
    saved = [row["off"] for part in ("real", "lora") for row in rows[part].values() if "off" in row]
    assert len(saved) == 5
    assert max(saved) < 0.01  # the report measures the model that is saved
    assert all(row["share"] > 0 for row in rows["training"].values())
