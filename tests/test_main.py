"""Both programs start as modules and as installed commands, and can be stopped while they load."""

import os
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from programs import python, run_here

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = pytest.mark.parametrize("package", ["angle_data", "angle_train"])


def run(package, path=""):
    """`python -m PACKAGE --help`, with `path` before all other places of modules."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return python("-m", package, "--help", timeout=60, cwd=ROOT, env=environment)


@PACKAGES
def test_a_ctrl_c_while_the_program_loads_is_one_line(tmp_path, package):
    # Found before the real typer, which every command loads.
    (tmp_path / "typer.py").write_text("import signal; signal.raise_signal(signal.SIGINT)")
    done = run(package, path=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"{package.replace('_', '-')}: interrupted\n"


@pytest.mark.parametrize(
    ("command", "option", "says"),
    [
        ("angle_data llm-score", "--pairs-per-call", "1 to 50"),
        ("angle_data grade", "--n", "at least 2"),
        ("angle_train fit", "--max-seq-length", "at least 2"),
        ("angle_train encode", "--max-seq-length", "at least 2"),
    ],
)
def test_the_help_tells_the_range_of_a_number_where_one_may_not_guess_it(command, option, says):
    package, name = command.split()
    shown = run_here(import_module(f"{package}.__main__").main, name, "--help").stdout
    told = re.search(rf"^ +{option} <.*?(?=^ +--)", shown, re.DOTALL | re.MULTILINE)[0]
    assert says in " ".join(told.split())


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
