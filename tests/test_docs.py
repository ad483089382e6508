"""The site builds without a network; its links, error messages and the tree of rooms are true."""

import ast
import os
import re
from pathlib import Path

import pytest
from programs import python

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; mkdocs ends with 1 on a link or anchor that leads nowhere, or a page in no menu."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: the documents are not built (.[docs])")
    folder = tmp_path_factory.mktemp("docs") / "site"
    nowhere = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https")}
    environment = {**os.environ, **nowhere, "PYTHONPATH": str(ROOT)}
    options = ("--strict", "--site-dir", folder)
    done = python("-m", "mkdocs", "build", *options, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


def pages(site):
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}


def test_no_page_fetches_anything(site):
    fetched = r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^\"'> ]*"
    for name, html in pages(site).items():
        assert re.findall(fetched, html) == [], name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text()), style


def test_the_reference_holds_every_command_and_function(site):
    html = pages(site)
    for name in ("llm-label", "llm-score", "mine", "ensemble", "show", "grade", "gis", "gis-rehydrate"):
        assert f'id="angle-data-{name}"' in html["cli.html"], name
    for name in ("fit", "eval", "encode"):
        assert f'id="angle-train-{name}"' in html["cli.html"], name
    assert "--require-better" in html["cli.html"]
    for name in ("data.api.label", "train.api.Fitted", "train.objective.terms.ranking_loss"):
        assert f'id="angle_{name}"' in html["api.html"], name
    assert "<math" in html["maths.html"]
    assert "$" not in re.sub(r"<script.*?</script>", "", html["maths.html"], flags=re.S)
    assert "off_topic" in html["files.html"]
    assert "come out right" in html["examples/notebook.html"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_to_files_on_a_code_host_too(document):
    for link in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if not link.startswith("http"):
            assert (document.parent / link).is_file(), link


def test_every_message_explained_is_one_that_the_programs_say():
    said = set()
    for package in ("angle_data", "angle_train"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    said.add("".join(p.value if isinstance(p, ast.Constant) else "…" for p in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    said.add(node.value)
    everything = "\n".join(said)
    messages = re.findall(r"^### `(.+)`$", (ROOT / "docs/troubleshooting.md").read_text(), re.M)
    assert len(messages) > 30
    for message in messages:
        for part in filter(None, message.split("…")):
            assert part in everything, f"{message}: nothing says {part!r}"


def test_the_tree_names_what_is_there():
    tree = re.search(r"^```\n(angle_data/.*?)^```", (ROOT / "docs/architecture.md").read_text(), re.M | re.S)
    levels: list[Path] = []
    for line in tree[1].splitlines():
        indent = (len(line) - len(line.lstrip())) // 2
        if indent > 3:  # the rest of a description
            continue
        for name in re.match(r" *((?:[\w*.]+/?  )*[\w*.]+/?)(?: |$)", line)[1].split():
            levels[indent:] = [(levels[indent - 1] if indent else ROOT) / name]
            assert "*" in name or levels[-1].exists(), line
