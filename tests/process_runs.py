"""Programs that fork processes which train together: their start, and what two runs have in common."""

import gc
import json
import os
import socket
import sys
import traceback
from pathlib import Path

import numpy as np
from programs import python
from safetensors.numpy import load_file

TESTS = Path(__file__).parent


def run_program(program, *arguments):
    """Run a program that calls `in_processes`; return what it wrote to stderr."""
    environment = os.environ | {
        "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}", "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    done = python(program, *arguments, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def in_processes(count, action):
    """Exit codes of `count` forked processes that call `action(rank)` with torchrun's variables set.

    They are forked because importing the libraries takes longer than everything else.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    children = []
    gc.freeze()  # what the libraries made is here to stay; looking through it takes longer than a run
    for rank in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if count > 1:
                    os.environ |= {
                        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count),
                        "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                    }  # fmt: skip
                status = action(rank) or 0
            except SystemExit as stop:
                status = stop.code
            except BaseException:  # noqa: BLE001 - told, and an exit code
                traceback.print_exc()
            finally:  # never go on with the parent's program
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def report(folder):
    """The report of a run."""
    return json.loads((folder / "report.json").read_text())


def differences(one, other):
    """The difference of every weight, the largest last."""
    first, second = (load_file(folder / "model.safetensors") for folder in (one, other))
    return np.sort(np.concatenate([np.abs(first[name] - second[name]).ravel() for name in first]))


def check_alike(one, two, near=1e-6):
    """Fail unless a run of two processes ended where one of one process did, all but few weights `near`."""
    # Where a gradient is next to 0, Adam divides rounding errors by it: one weight in 10,000 may differ more.
    apart = differences(one, two)
    assert apart[: len(apart) * 9999 // 10_000].max() < near
    assert apart[-1] < 1e-4
    alone, together = report(one), report(two)
    assert (alone["details"].pop("processes"), together["details"].pop("processes")) == (1, 2)
    for key in ("kept", "steps", "best_step", "planned_steps", "data", "notes"):
        assert alone[key] == together[key]
    scores = [[point["dev"] for point in found["curve"]] for found in (alone, together)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-6)
