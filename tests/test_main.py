"""Where the program starts: it can be stopped while it loads, and the installed command is this one."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(package, *arguments, path=""):
    return subprocess.run(
        [sys.executable, "-m", package, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(path)},
    )


INTERRUPT = "import signal; signal.raise_signal(signal.SIGINT)"


@pytest.mark.parametrize("code", [INTERRUPT, f"exec({INTERRUPT!r})"], ids=["module", "code from a string"])
@pytest.mark.parametrize("package", ["angle_data", "angle_train"])
def test_a_ctrl_c_while_the_program_loads_is_one_line(tmp_path, code, package):
    (tmp_path / "typer.py").write_text(code)  # found before the real one, and loaded by every command
    done = run(package, "--help", path=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"{package.replace('_', '-')}: interrupted; everything so far is kept\n"


@pytest.mark.parametrize(
    ("package", "command", "option"),
    [("angle_data", "llm-label", "--texts"), ("angle_train", "fit", "--data")],
)
def test_the_module_is_the_program(package, command, option):
    done = run(package, command, "--help")
    assert done.returncode == 0, done.stderr
    assert option in done.stdout


@pytest.mark.parametrize("package", ["angle_data", "angle_train"])
def test_the_installed_command_starts_here(package):
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, function = scripts[package.replace("_", "-")].split(":")
    assert module == f"{package}.__main__"
    assert callable(getattr(import_module(module), function))
