"""Runs `angle-data` in this process, or in one of its own for tests that kill or interrupt it."""

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest


class Done(NamedTuple):
    """What a command left behind, named as `subprocess.run` has it."""

    returncode: int
    stdout: str
    stderr: str


def run_here(main, *arguments: object) -> Done:
    """Run a program in this process, which spares the start of another."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["angle-data", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    return Done(code, out.getvalue(), err.getvalue())


def python(*arguments: object, **options: object) -> subprocess.CompletedProcess:
    """Run Python with these arguments in a process of its own."""
    options = {"capture_output": True, "text": True, "check": False, "timeout": 600, **options}
    return subprocess.run([sys.executable, *map(str, arguments)], **options)


def angle_data(*arguments: object) -> list[str]:
    """The command line of the program."""
    return [sys.executable, "-m", "angle_data", *map(str, arguments)]


@contextmanager
def started(command: list[str], limit_s: float = 60.0, **options: object) -> Iterator[subprocess.Popen]:
    """The program, running in a process group of its own; it is killed after `limit_s` or with the test.

    So a test that reads its stderr or waits for its end fails instead of hanging.
    """
    env = os.environ | {"PYTHONFAULTHANDLER": "1"}  # on SIGABRT it writes the stacks of its threads
    options = {"env": env, "stderr": subprocess.PIPE, "text": True, "process_group": 0, **options}
    with subprocess.Popen(command, **options) as process:
        timer = threading.Timer(limit_s, process.kill)
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            process.kill()


def journalled(run: Path) -> list[str]:
    """The texts whose replies a run has kept, in the order in which they came."""
    path = run / "journal.jsonl"
    return [json.loads(line)["source"] for line in path.read_text().splitlines()] if path.exists() else []


def plain_prompts(folder: Path) -> Path:
    """Prompts that are the text itself, so that an echo of the prompt with a word more is a good answer."""
    folder.mkdir(exist_ok=True)
    for polarity in ("synonym", "antonym"):
        content = '+++\nplaceholders = ["text"]\nreply = "text"\n+++\n{text}\n'
        (folder / f"{polarity}.txt").write_text(content)
    return folder


def went_through(done: subprocess.CompletedProcess) -> bool:
    """Whether a run has asked everything; that nothing a random model says is of use is no matter."""
    return done.returncode == 0 or "error: no reply is of use" in done.stderr
