"""How large the house is: files, lines, functions, and how its rooms use each other; one row a fact.

    python benchmarks/house.py [CHECKOUT ...]            one column for each checkout; without one, this one
    python benchmarks/house.py --visits angle-train fit ...     the files of ours that a command runs through

Counts the Python files of `angle_data` and `angle_train` unless a row says otherwise. Docstrings do not count
as code. A floor is a room above those of its package that it imports; files at the top of a package count by
what they do, as `tests/test_architecture.py` says. Rooms that form a circle share one floor.
"""

from __future__ import annotations

import ast
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("angle_data", "angle_train")

# Notes the files in which a function of ours is called; loaded by every Python process that is started.
_VISITS = """
import atexit, os, sys, threading
seen = set()
def note(frame, event, arg):
    code = frame.f_code
    ours = "/angle_data/" in code.co_filename or "/angle_train/" in code.co_filename
    if event == "call" and ours and code.co_name != "<module>":
        seen.add(code.co_filename)
sys.setprofile(note)
threading.setprofile(note)
atexit.register(lambda: open(os.environ["VISITS"], "a").write("".join(f"{name}\\n" for name in seen)))
"""


def sources(root: Path, *folders: str) -> list[Path]:
    """Return the Python files below some folders of a checkout."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def line_kinds(path: Path) -> tuple[int, int, int]:
    """Return how many lines of a file are code, docstrings, and comments alone."""
    text = path.read_text()
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            ast.get_docstring(node) is not None
        ):
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    coded: set[int] = set()
    comments: set[int] = set()
    skipped = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in skipped:
            coded |= set(range(token.start[0], token.end[0] + 1))
    return len(coded - docs), len(docs), len(comments - coded - docs)


def functions(path: Path) -> Iterator[tuple[int, int]]:
    """Yield the lines and the parameters of every function in a file; self and cls do not count."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield (node.end_lineno or 0) - node.lineno + 1, len({a.arg for a in arguments} - {"self", "cls"})


def room_arrows(root: Path) -> dict[str, set[str]]:
    """Return the rooms of its package that each room imports from when it runs.

    What a room is, and which imports count, says `tests/test_architecture.py` of that checkout.
    """
    graph: dict[str, set[str]] = {}
    for here, there, _ in runpy.run_path(str(root / "tests" / "test_architecture.py"))["arrows"]():
        graph.setdefault(here, set())
        if here.partition(".")[0] == there.partition(".")[0]:
            graph[here].add(there)
            graph.setdefault(there, set())
    return graph


def floors_and_circles(graph: dict[str, set[str]]) -> tuple[int, int]:
    """Return the floors of a graph of rooms, and how many rooms stand in a circle."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        ends = [start]
        while ends:
            for target in graph.get(ends.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    ends.append(target)
        return seen

    reached = {name: reach(name) for name in graph}
    circle = {
        name: frozenset({name, *(o for o in reached[name] if name in reached.get(o, ()))}) for name in graph
    }

    def height(name: str) -> int:
        below = {o for member in circle[name] for o in graph.get(member, ()) if o not in circle[name]}
        return 1 + max((height(o) for o in below), default=0)

    return max(height(name) for name in graph), sum(name in reached[name] for name in graph)


def facts(root: Path) -> dict[str, str]:
    """Return the facts on one checkout, by the words of their row."""
    files = sources(root, *PACKAGES)
    kinds = [line_kinds(path) for path in files]
    lengths = [len(path.read_text().splitlines()) for path in files]
    found = [(lines, parameters, path) for path in files for lines, parameters in functions(path)]
    by_command = {path for path in files if path.stem == "cli" or "command" in path.stem.split("_")}
    folders = {path.parent for path in files}
    inside = {folder: sum(path.parent == folder for path in files) - 1 for folder in folders}
    floors, circles = floors_and_circles(room_arrows(root))

    def total(*names: str) -> str:
        chosen = sources(root, *names)
        return f"{sum(len(path.read_text().splitlines()) for path in chosen):,} in {len(chosen)}"

    def spread(values: list[int]) -> str:
        return f"{median(values):.0f} / {quantiles(values, n=10)[-1]:.0f} / {max(values)}"

    return {
        "product: lines in files": total(*PACKAGES),
        "angle_data": total("angle_data"),
        "angle_train": total("angle_train"),
        "code / docstring / comment lines": " / ".join(f"{sum(k[i] for k in kinds):,}" for i in range(3)),
        "benchmarks: lines in files": total("benchmarks"),
        "tests: lines in files": total("tests"),
        "folders, most files in one": f"{len(folders)}, {max(inside.values())}",
        "floors of rooms, rooms in a circle": f"{floors}, {circles}",
        "lines of a file: median / p90 / max": spread(lengths),
        "lines of a function: median / p90 / max": spread([lines for lines, _, _ in found]),
        "functions of more than 7 parameters (commands aside)": str(
            sum(parameters > 7 and path not in by_command for _, parameters, path in found)
        ),
    }


def visits(command: list[str]) -> list[str]:
    """Run a command of ours and return the files in which it called a function."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(_VISITS)
        path = os.pathsep.join([folder, os.getcwd(), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path, "VISITS": f"{folder}/visits"}
        program = [sys.executable, "-m", command[0].replace("-", "_"), *command[1:]]
        subprocess.run(program, env=environment, check=True, stdout=sys.stderr)
        return sorted(set(Path(folder, "visits").read_text().split("\n")) - {""})


def main() -> None:
    """Print the table, or the files that a command runs through."""
    if sys.argv[1:2] == ["--visits"]:
        names = visits(sys.argv[2:])
        print(json.dumps({"files": len(names), "names": [name.partition("/angle_")[2] for name in names]}))
        return
    roots = [Path(name) for name in sys.argv[1:]] or [ROOT]
    columns = [facts(root) for root in roots]
    for row in columns[0]:
        print("| " + " | ".join([row, *(column[row] for column in columns)]) + " |")


if __name__ == "__main__":
    main()
