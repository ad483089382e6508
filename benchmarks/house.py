"""How large the house is: files, lines, functions, and how its rooms use each other; one row a fact.

    python benchmarks/house.py [CHECKOUT ...]            one column for each checkout; without one, this one

Counts the Python files of `angle_data` and `angle_train` unless a row says otherwise. Docstrings do not count
as code. A floor is a room above those of its package that it imports; files at the top of a package count by
what they do, as `tests/test_architecture.py` says. Rooms that form a circle share one floor.
"""

from __future__ import annotations

import ast
import io
import runpy
import tokenize
from pathlib import Path
from statistics import median, quantiles

import networkx as nx
from common import ROOT, options

PACKAGES = ("angle_data", "angle_train")
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_SKIPPED = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def line_kinds(text: str) -> tuple[int, int, int]:
    """Return how many lines of a file are code, docstrings, and comments alone."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTION)) and ast.get_docstring(node) is not None:
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    coded: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _SKIPPED:
            coded |= set(range(token.start[0], token.end[0] + 1))
    return len(coded - docs), len(docs), len(comments - coded - docs)


def rooms(root: Path) -> nx.DiGraph:
    """Return the rooms, each with arrows to those of its package that it imports from when it runs.

    What a room is, and which imports count, says `tests/test_architecture.py` of that checkout.
    """
    graph = nx.DiGraph()
    for here, there, _ in runpy.run_path(str(root / "tests" / "test_architecture.py"))["arrows"]():
        if here.partition(".")[0] == there.partition(".")[0]:
            graph.add_edge(here, there)
    return graph


def facts(root: Path) -> dict[str, str]:
    """Return the facts on one checkout, by the words of their row."""

    def sources(*folders: str) -> dict[Path, str]:
        paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
        return {path: path.read_text() for path in paths}

    def total(*folders: str) -> str:
        texts = sources(*folders).values()
        return f"{sum(len(text.splitlines()) for text in texts):,} in {len(texts)}"

    def spread(values: list[int]) -> str:
        return f"{median(values):.0f} / {quantiles(values, n=10)[-1]:.0f} / {max(values)}"

    files = sources(*PACKAGES)
    kinds = map(sum, zip(*map(line_kinds, files.values()), strict=True))
    lengths: list[int] = []
    many = 0  # functions of many parameters; those of a command are its options
    for path, text in files.items():
        is_command = path.stem == "cli" or "command" in path.stem.split("_")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, _FUNCTION):
                lengths.append((node.end_lineno or 0) - node.lineno + 1)
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                many += len({a.arg for a in given} - {"self", "cls"}) > 7 and not is_command
    folders = [path.parent for path in files]
    graph = rooms(root)
    floors = nx.condensation(graph)  # a circle is one node of it
    circles = sum(len(names) for _, names in floors.nodes(data="members") if len(names) > 1)
    return {
        "product: lines in files": total(*PACKAGES),
        "angle_data": total("angle_data"),
        "angle_train": total("angle_train"),
        "code / docstring / comment lines": " / ".join(f"{count:,}" for count in kinds),
        "benchmarks: lines in files": total("benchmarks"),
        "tests: lines in files": total("tests"),
        "folders, most files in one": f"{len(set(folders))}, {max(map(folders.count, folders)) - 1}",
        "floors of rooms, rooms in a circle": f"{nx.dag_longest_path_length(floors) + 1}, {circles}",
        "lines of a file: median / p90 / max": spread([len(text.splitlines()) for text in files.values()]),
        "lines of a function: median / p90 / max": spread(lengths),
        "functions of more than 7 parameters (commands aside)": str(many),
    }


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("checkouts", type=Path, nargs="*", default=[ROOT])
    columns = [facts(checkout) for checkout in parser.parse_args().checkouts]
    for row in columns[0]:
        print("| " + " | ".join([row, *(column[row] for column in columns)]) + " |")
