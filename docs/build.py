"""What mkdocs cannot do by itself: commands, formulas, the notebook, and files outside `docs/`.

A hook of mkdocs, see https://www.mkdocs.org/dev-guide/plugins/#events. Links to `../FILE` work on a code
host and, without the `../`, on the site.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import typer
from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = "examples/notebook.ipynb"
OUTSIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/**/*.md", "examples/cloud-ops/README.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in `docs/`: documents of the repository, and the notebook."""
    found = {path for pattern in OUTSIDE for path in ROOT.glob(pattern)}
    for name in sorted(path.relative_to(ROOT).as_posix() for path in found):
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    page = NOTEBOOK.replace(".ipynb", ".md")
    files.append(File.generated(config, page, content="\n\n".join(cells(ROOT / NOTEBOOK))))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what a page asks for, and point its links at pages of the site."""
    path = page.file.src_uri
    if path.startswith(("benchmarks/", "examples/")):
        return markdown
    markdown = re.sub(r"\]\(\.\./([^)]+)\)", _on_site, markdown)
    markdown = re.sub(r"<!-- commands: (\S+) -->", lambda found: commands(found[1]), markdown)
    markdown = re.sub(r"<!-- reasons: (\S+) -->", lambda found: reasons(found[1]), markdown)
    return formulas(markdown) if path == "maths.md" else markdown


def _on_site(link: re.Match[str]) -> str:
    return f"]({link[1].replace('.ipynb', '.md')})"


def formulas(markdown: str) -> str:
    """Turn `$$…$$` and `$…$` into MathML, which browsers draw without scripts."""
    markdown = re.sub(
        r"\$\$(.+?)\$\$", lambda found: convert(found[1], display="block"), markdown, flags=re.S
    )
    return re.sub(r"\$([^$\n]+)\$", lambda found: f"<span>{convert(found[1])}</span>", markdown)


def commands(program: str) -> str:
    """Return the reference of a program (`angle-data`): every command with its help and its options."""
    group = typer.main.get_command(import_module(f"{program.replace('-', '_')}.cli").app)
    return "\n\n".join(_command(group, program, 2))


def reasons(module: str) -> str:
    """Return the table of a module's `REASONS`."""
    return _table("reason", import_module(module).REASONS.items())


def _command(command: click.Command, name: str, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    subcommands = getattr(command, "commands", {})
    if not subcommands or getattr(command, "invoke_without_command", False):
        yield f"{'#' * level} {name}"
        yield from _prose(command.help or "")
        yield _table(
            "option", filter(None, (o.get_help_record(context) for o in command.get_params(context)))
        )
    for sub in subcommands.values():
        yield from _command(sub, f"{name} {sub.name}", level + bool(not subcommands))


def _prose(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text, an example as code."""
    for paragraph in re.sub(r"[\b\f]", "", text).split("\n\n"):
        line = " ".join(paragraph.split())
        lead, example, rest = line.partition(": angle-")
        if example:
            yield f"{lead}:\n\n    angle-{rest}"
        else:
            yield line.replace("<", "&lt;")


def _table(first: str, rows: Iterable[tuple[str, str]]) -> str:
    shown = ((name.replace("|", "\\|"), text.replace("|", "\\|").replace("<", "&lt;")) for name, text in rows)
    lines = (f"| `{name}` | {text} |" for name, text in shown)
    return "\n".join([f"| {first} | meaning |", "| --- | --- |", *lines])


def cells(notebook: Path) -> Iterator[str]:
    """Yield the cells of a notebook as markdown: prose, code, and what the code showed."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            html = "".join(data.get("text/html", ""))
            yield (
                f'<div class="output">{html}</div>'
                if html
                else f"```text\n{''.join(data['text/plain'])}\n```"
            )
