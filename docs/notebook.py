"""Makes examples/notebook.ipynb of examples/notebook.py: runs the cells and keeps what each shows.

    python docs/notebook.py

The source is a script in the percent format (https://jupytext.readthedocs.io/en/latest/formats-scripts.html),
of which a notebook cannot differ unnoticed: `tests/test_notebook.py` compares the two. No kernel is needed.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "examples" / "notebook.py"
NOTEBOOK = SOURCE.with_suffix(".ipynb")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}


class Cell(NamedTuple):
    """A cell: `markdown` or `code`, and its text."""

    kind: str
    text: str


def cells_of(source: str) -> Iterator[Cell]:
    """Yield the cells of a script in the percent format; what stands before the first one is no cell."""
    for part in re.split(r"^# %%", source, flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        body = body.strip("\n")
        if "[markdown]" in head:
            yield Cell("markdown", re.sub(r"^# ?", "", body, flags=re.M))
        else:
            yield Cell("code", body)


def run_cell(text: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell in these names; return what it prints, and its last expression, as outputs of a notebook.

    The current folder is left out of paths.
    """
    tree = ast.parse(text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)

    def shown(text: str) -> list[str]:
        return _lines(text.replace(f"{Path.cwd()}/", ""))

    outputs: list[dict[str, Any]] = []
    if said := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": shown(said)})
    if value is not None:
        data = {"text/plain": shown(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = shown(value._repr_html_())
        outputs.append({"output_type": "execute_result", "metadata": {}, "data": data})
    return outputs


def notebook_of(cells: Iterable[Cell], outputs: Iterable[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a notebook (nbformat 4.5) of cells, with the outputs of each code cell in turn."""
    found = iter(outputs)
    made = []
    count = 0
    for number, cell in enumerate(cells):
        plain = {"cell_type": cell.kind, "id": f"cell-{number}", "metadata": {}, "source": _lines(cell.text)}
        if cell.kind == "code":
            count += 1
            shown = [
                output | ({"execution_count": count} if output["output_type"] == "execute_result" else {})
                for output in next(found)
            ]
            plain |= {"execution_count": count, "outputs": shown}
        made.append(plain)
    return {"cells": made, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def _lines(text: str) -> list[str]:
    """Return a text as a notebook keeps it."""
    return text.splitlines(keepends=True)


def main() -> None:
    """Run the cells in examples/ as on the first day, and write the notebook."""
    os.chdir(SOURCE.parent)
    for name in ("runs/notes", "runs/notes.jsonl"):
        place = Path(name)
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    cells = list(cells_of(SOURCE.read_text(encoding="utf-8")))
    names: dict[str, Any] = {"__name__": "notebook"}
    outputs = []
    for cell in cells:
        if cell.kind == "code":
            print(f"{cell.text.splitlines()[0]} …", file=sys.stderr)  # noqa: T201
            outputs.append(run_cell(cell.text, names))
    NOTEBOOK.write_text(json.dumps(notebook_of(cells, outputs), indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
