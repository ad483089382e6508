"""Every pattern of the grammar has an example in the source, and finds it."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from angle_data.gis import comments
from angle_data.gis.comments.phrases import PHRASES
from angle_data.gis.comments.references import FILL, find_references, mark_references
from angle_data.gis.comments.sentences import split_sentences
from angle_data.gis.comments.vocabulary import expand

REPO, NUMBER = "lumen/editor", 9000
COMMENT = re.compile(r'# Finds: (".*")$')


def sentences(text):
    references = find_references(text, REPO)
    return split_sentences(mark_references(text, references, REPO, NUMBER), references)


def patterns():
    """(module, name, line above) of each pattern or part of one at the top of the modules."""
    for info in pkgutil.iter_modules(comments.__path__, f"{comments.__name__}."):
        module = importlib.import_module(info.name)
        source = Path(module.__file__).read_text("utf-8")
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            value = getattr(module, node.targets[0].id)
            if isinstance(node.value, ast.Dict):
                for key, part in zip(node.value.keys, node.value.values, strict=True):
                    if isinstance(part, ast.Constant | ast.JoinedStr):
                        yield pytest.param(
                            value[key.value], lines[key.lineno - 2].strip(), id=f"{info.name}.{key.value}"
                        )
                continue
            raw = re.match(r"\(?\s*rf?[\"']", ast.get_source_segment(source, node.value))
            if isinstance(value, re.Pattern) or (isinstance(value, str) and raw):
                yield pytest.param(value, lines[node.lineno - 2], id=f"{info.name}.{node.targets[0].id}")


@pytest.mark.parametrize(("pattern", "above"), list(patterns()))
def test_the_line_above_a_pattern_is_an_example_that_it_finds(pattern, above):
    written = COMMENT.fullmatch(above)
    assert written, f'put an example above it, such as # Finds: "...", not {above!r}'
    example = ast.literal_eval(written[1])
    marked = mark_references(example, find_references(example, REPO), REPO, NUMBER).replace(FILL, "")
    pattern = expand(pattern) if isinstance(pattern, str) else pattern
    assert pattern.search(example) or pattern.search(marked)


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.example)
def test_a_phrase_finds_its_example(phrase):
    assert any(phrase.pattern.search(s.text) for s in sentences(phrase.example))
