"""Both programs start as modules and as installed commands, and can be stopped while they load."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from programs import run_here

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = pytest.mark.parametrize("package", ["angle_data", "angle_train"])


def run(package, path=""):
    """`python -m PACKAGE --help`, with `path` before all other places of modules."""
    return subprocess.run(
        [sys.executable, "-m", package, "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(path)},
    )


@PACKAGES
def test_a_ctrl_c_while_the_program_loads_is_one_line(tmp_path, package):
    # Found before the real typer, which every command loads.
    (tmp_path / "typer.py").write_text("import signal; signal.raise_signal(signal.SIGINT)")
    done = run(package, path=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"{package.replace('_', '-')}: interrupted\n"


@PACKAGES
def test_the_module_is_the_installed_command(package):
    done = run(package)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout
    assert "--install-completion" in done.stdout
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, function = project["scripts"][package.replace("_", "-")].split(":")
    assert module == f"{package}.__main__"
    said = run_here(getattr(import_module(module), function), "--version")
    assert said[:2] == (0, f"angle-toolkit {project['version']}\n")
