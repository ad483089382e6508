"""`fit` killed with SIGKILL after its first checkpoint and started again, against a run that was not.

On a GPU sums come in no fixed order, so two whole runs differ as well; a resumed one should differ no more.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guard import attempt
from models import bert
from setting import Setting, write_pairs
from training import COSINE, fit_once

_WAIT_S = 60.0


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield how far the weights of two whole runs are apart, and those of one that was killed."""
    # First of all: a forked process must not find torch in use.
    killed = attempt("killed", lambda: _killed(setting))
    if "failed" in killed:
        yield killed
        return
    one, resumed = (_run(setting, name) for name in ("whole", "killed"))
    again = _run(setting, "whole-again")
    yield attempt("two whole runs", lambda: compared(one, again))
    yield attempt(f"{killed['said']}, then resumed", lambda: compared(one, resumed))


def difference(one: Path, other: Path) -> dict[str, Any]:
    """Return how far the saved weights of two models are apart."""
    from safetensors.torch import load_file

    first, second = one / "model.safetensors", other / "model.safetensors"
    if first.read_bytes() == second.read_bytes():
        return {"said": "the same bytes"}
    weights, others = load_file(first), load_file(second)
    apart = max(float((weights[name].float() - others[name].float()).abs().max()) for name in weights)
    return {"weights_differ": apart}


def compared(one: Any, other: Any) -> dict[str, Any]:
    """Return how far two runs are apart: what they measured on the way, and what they saved.

    Where the dev pairs chose the backbone, it is what both saved, and says nothing.
    """
    scores = [[point["dev"] for point in run.report.curve] for run in (one, other)]
    apart = max(abs(a - b) for a, b in zip(*scores, strict=True))
    found = {"curves_differ": 100 * apart, "points": len(scores[0])}
    if one.report.kept == other.report.kept == "tuned":
        found |= difference(one.path, other.path)
    return found


def _run(setting: Setting, name: str) -> Any:
    """Run `fit`, or go on with it, and return what it returned."""
    count = setting.pick(32 * 40, 4 * 128)
    values = {"batch_size": setting.pick(32, 4), "precision": "bf16", "evals_per_epoch": 4, **COSINE}
    values |= {"learning_rate": setting.pick(5e-5, 2e-3), "overwrite": False}
    fitted, _ = fit_once(setting, name, bert(setting), write_pairs(setting, count), values)
    return fitted


def _killed(setting: Setting) -> dict[str, Any]:
    """Start the run in a process, kill that once a checkpoint is whole, and say at which step."""
    bert(setting)
    checkpoints = setting.folder("killed") / "checkpoints"
    context = multiprocessing.get_context("spawn" if setting.on_gpu else "fork")
    process = context.Process(target=_run, args=(setting, "killed"))
    process.start()
    end = time.monotonic() + _WAIT_S
    while process.is_alive() and time.monotonic() < end:
        if whole := sorted(checkpoints.glob("checkpoint-*/trainer_state.json")):
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            return {"said": f"killed after {whole[0].parent.name}"}
        time.sleep(0.01)
    process.kill()
    process.join()
    raise RuntimeError(f"the run ended (code {process.exitcode}) before it could be killed")
