"""Runs one part in a process of its own, with a time limit: whatever happens there, the others run.

A part is a function that takes the `Setting` and yields rows. Each row is written as soon as it is there, so
that a part that is killed leaves those before. All that it starts is in its process group, and ends with it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from setting import Setting

DONE, FAILED, TIMEOUT, SKIPPED = "done", "failed", "timeout", "skipped"


class Skip(Exception):
    """The part cannot run here; the message says why."""


@dataclass(frozen=True)
class Part:
    """One part.

    Attributes:
        name: What `--only` takes.
        answers: The question, for the table.
        function: `module:function`, imported in the part's process.
        limit_s: Seconds it may take.
    """

    name: str
    answers: str
    function: str
    limit_s: float


def attempt(what: str, function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the row of `function`, or one with the reason why there is none: the part's others go on."""
    try:
        return {"what": what, **function()}
    except Exception as error:  # noqa: BLE001 - a row of the table, whatever it is
        traceback.print_exc()
        return {"what": what, "failed": one_line(error)}


def one_line(error: BaseException) -> str:
    """Return kind and start of an error's message."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def run_part(part: Part, setting: Setting, folder: Path, limit_s: float) -> dict[str, Any]:
    """Return what a part found: `name`, `state`, `seconds`, `said` and its `rows`.

    Its output goes to NAME.log in `folder`.
    """
    rows, log = folder / f"{part.name}.jsonl", folder / f"{part.name}.log"
    rows.write_text("", encoding="utf-8")
    # CUDA cannot be used in a forked process; without it, a fork spares the import of torch.
    context = multiprocessing.get_context("spawn" if setting.on_gpu else "fork")
    process = context.Process(target=_work, args=(part.function, setting, rows, log))
    started = time.monotonic()
    process.start()
    process.join(limit_s)
    timed_out = process.is_alive()
    _end(process)
    found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    rows.unlink()
    ending = found.pop() if found and "state" in found[-1] else {}
    if timed_out:
        ending = {"state": TIMEOUT, "said": f"stopped after {limit_s:.0f} s; see {log.name}"}
    elif not ending:
        ending = {"state": FAILED, "said": f"its process {_how_it_ended(process.exitcode)}; see {log.name}"}
    elif ending["state"] == DONE and any("failed" in row for row in found):
        ending = {"state": FAILED, "said": f"some rows failed; see {log.name}"}
    seconds = round(time.monotonic() - started, 1)
    return {"name": part.name, "answers": part.answers, "seconds": seconds, **ending, "rows": found}


def _work(function: str, setting: Setting, rows: Path, log: Path) -> None:
    """Run the function in this process, which does nothing else, and write rows, then how it ended."""
    os.setsid()
    with log.open("w", encoding="utf-8") as output:
        for stream in (1, 2):  # of everything, also of what is no Python
            os.dup2(output.fileno(), stream)
    sys.stdout = sys.stderr = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    module, _, name = function.partition(":")
    with rows.open("a", encoding="utf-8") as file:

        def write(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()

        try:
            for row in getattr(import_module(module), name)(setting):
                write(row)
            write({"state": DONE, "said": ""})
        except Skip as reason:
            write({"state": SKIPPED, "said": str(reason)})
        except BaseException as error:  # noqa: BLE001 - out of memory, exits of libraries: a line of the table
            traceback.print_exc()
            write({"state": FAILED, "said": one_line(error)})


def _end(process: Any) -> None:
    """End the process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code} and said nothing"
