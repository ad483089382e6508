"""The walks: how many lines and files one reads to follow one thing through the house, with a ceiling each.

A walk is the module where a command's work begins and every module of ours that it imports, inside functions
too and whatever is reached from there. Imports for types alone are not followed. An engine or strategy that
is imported by its name from a table stands beside the start. The work of `gis` is crawl and build; what
its command does instead (dumps, --dry-run, explain, rehydrate) is no part of that way.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("angle_data", "angle_train")

# What is followed: where its walk begins, and the most lines that it may have.
WALKS = {
    "llm-label, a text": (("angle_data.labelling.label", "angle_data.annotators.server"), 8_725),
    "gis, a comment": (("angle_data.gis.collect", "angle_data.gis.build.build"), 9_055),
    "ensemble, a candidate": (("angle_data.ensembling.build", "angle_data.ensembling.strategies"), 4_370),
    "fit, a run": (("angle_train.run",), 16_020),
}


def file_of(module):
    """The file of a module or folder; None where it is none of ours."""
    path = ROOT.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def imported(file):
    """The modules that a file imports when it runs, at the top or inside functions."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if file_of(inside) else node.module


def walk(*start):
    """The files of a walk."""
    seen, ahead = set(), [*start]
    while ahead:
        module = ahead.pop()
        file = file_of(module) if module.startswith(PACKAGES) else None
        if file is not None and file not in seen:
            seen.add(file)
            ahead += imported(file)
    return seen


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_short_enough_to_be_read(name):
    start, ceiling = WALKS[name]
    files = walk(*start)
    assert set(map(file_of, start)) <= files  # a start that moved away would be a walk of nothing
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    longest = sorted(lines, key=lines.get, reverse=True)[:5]
    said = ", ".join(f"{file.relative_to(ROOT)} {lines[file]}" for file in longest)
    total = sum(lines.values())
    assert total <= ceiling, f"{total} lines in {len(files)} files; longest: {said}"
