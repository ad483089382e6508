"""`fit` as torchrun starts it, with one process: NCCL on a GPU, gloo on a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from models import bert
from setting import Setting, write_pairs


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield whether the command ends well, and how long it takes with its start."""
    out = setting.folder("processes")
    pairs = write_pairs(setting, setting.pick(32 * 10, 4 * 2))
    dev = write_pairs(setting, setting.pick(64, 8), seed=1)
    values = ["loss=papers", f"chunk_size={setting.pick(32, 4)}", "evals_per_epoch=1"]
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"),
        *("-m", "angle_train", "fit", "--data", pairs, "--dev", dev, "--backbone", bert(setting)),
        *("--out", out, "--epochs", "1", "--batch-size", setting.pick(32, 4), "--precision", "bf16"),
        *("--device", setting.device),
        *(part for value in values for part in ("--set", value)),
    ]
    started = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    if done.returncode:
        raise RuntimeError(f"torchrun ended with code {done.returncode}: {done.stderr.strip()[-200:]}")
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    yield {
        "what": "torchrun, one process",
        "steps": report["steps"],
        "seconds": time.perf_counter() - started,
        "said": f"on {report['device']} in {report['precision']}",
    }
