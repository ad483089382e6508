"""The house: which room may use which, how large rooms and files are, and what starting a program costs."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("angle_data", "angle_train")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# A room is a folder; the files at the top of a package are rooms by what they do. Each room: what it may use.
# `angle_data` alone is what every room shares (errors, text, jsonl ...), and `calling`.
SHARED = {"angle_data", "angle_data.calling"}
ROOMS = {
    "angle_data": "",
    "angle_data.calling": "",
    "angle_data.publish": "",
    "angle_data.similar": "",
    "angle_data.annotators": "",
    "angle_data.annotators.loaded": "annotators",
    "angle_data.labelling.replies": "",
    "angle_data.labelling.asking": "annotators",
    "angle_data.labelling": "annotators labelling.replies labelling.asking similar",
    "angle_data.ensembling": "publish similar",
    "angle_data.gis.comments": "",
    "angle_data.gis.crawl": "",
    "angle_data.gis.build": "gis.comments gis.crawl publish similar",
    "angle_data.gis.ask": (
        "gis.build gis.comments gis.crawl annotators labelling labelling.asking labelling.replies"
    ),
    "angle_data.gis": "gis.ask gis.build gis.comments gis.crawl publish",
    "angle_data.look": "",
    "angle_data.cli": "ensembling gis labelling look project",
    "angle_data.api": "annotators ensembling labelling labelling.asking look",
    "angle_data.project": "annotators api ensembling labelling look",
    "angle_train.recipe": "",
    "angle_train.objective": "recipe",
    "angle_train.data": "recipe",
    "angle_train.model": "recipe data",
    "angle_train.evaluation": "recipe data model",
    "angle_train.training": "recipe objective data model evaluation",
    "angle_train.report": "recipe data model evaluation training",
    "angle_train.runs": "recipe objective data model evaluation training report",
    "angle_train.cli": "recipe data model evaluation training report runs",
}
# Files at the top of a package that are more than what all share.
TOP = {
    "angle_data": {"cli": "cli", "__main__": "cli", "api": "api"},
    "angle_train": {
        "cli": "cli",
        "__main__": "cli",
        "api": "runs",
        "inputs": "runs",
        "run": "runs",
        "outcome": "runs",
        "in_memory": "runs",
        "given": "runs",
        "reading": "runs",
        "keywords": "recipe",
        "encode": "runs",
        "options": "recipe",
        "recipe": "recipe",
        "dropped": "recipe",
        "trainer_arguments": "recipe",
    },
}
# Public names that more than one module defines, with the reason.
SAME_NAMES = {
    "each module's logger, each program's app": {"log", "app", "main"},
    "a function of the documented API, and the step of that name that it runs": {
        "ensemble", "evaluate", "fit", "grade", "label", "mine", "score", "show", "train",
    },
    "of the documented API; inside: the same folder, the same rows": {"Run", "Rows"},
    "the reason codes of a room": {"REASONS"},
    "numpy's arrays: of float64 in `angle_train`, of any numbers in `angle_data`": {"Array"},
    "`records`: a sentence of an annotator; `choosing`: weights that might be kept": {"Candidate"},
    "a command, and what it runs": {"probe", "pilot"},
    "to be renamed, of the judged evaluation and the guards": {
        "Columns", "Drawn", "FEWEST", "Grades", "figures_of", "own_pairs", "unit_rows",
    },
    "to be renamed": {"Choice", "LONGEST", "Outcome", "Part", "Source", "Task", "Verdict"},
}  # fmt: skip
FLOORS = 8
FILES_IN_A_ROOM = 15
LINES_IN_A_FILE = 500
PARAMETERS = 7
HEAVY = {
    "torch", "transformers", "sentence_transformers", "datasets", "pyarrow", "numpy", "openai", "github",
    "jinja2",
}  # fmt: skip


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def room_of(module):
    """The room of a module, given with `.__init__` where it is a folder's."""
    package, *rest = module.split(".")
    if len(rest) > 1:
        return ".".join([package, *rest[:-1]])
    if rest == ["__init__"]:
        return None  # the door of a package, loaded with everything: it opens `api` when that is asked for
    top = TOP[package].get(rest[0])
    return f"{package}.{top}" if top else package


def imports(path):
    """Every module of ours that a file imports, for types alone too, and every other module by its name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                target = ROOT.joinpath(*node.module.split("."), alias.name)
                is_module = target.with_suffix(".py").is_file() or target.is_dir()
                yield f"{node.module}.{alias.name}" if is_module else node.module


def target_room(target):
    """The room of what an import names; a folder stands for its `__init__`."""
    return room_of(f"{target}.__init__" if ROOT.joinpath(*target.split(".")).is_dir() else target)


def arrows():
    """(room, room that it uses, file) of every import between rooms."""
    for path in SOURCES:
        here = room_of(module_name(path))
        for target in imports(path):
            there = target_room(target) if target.startswith(PACKAGES) else here
            if None not in (here, there) and there != here:
                yield here, there, module_name(path)


def uses(name):
    """The rooms that a room may use, by their whole names."""
    package = name.split(".")[0]
    shared = SHARED if name not in SHARED else {"angle_data"}
    return {*shared, *(f"{package}.{other}" for other in ROOMS[name].split())} | (
        {"angle_data.publish", "angle_data.similar"} if package == "angle_train" else set()
    )


def floor(name, below=()):
    """How many rooms stand on each other below and with this one; fails where they form a circle."""
    assert name not in below, f"a circle: {' -> '.join([*below, name])}"
    others = {other for other in uses(name) if other != name and other.split(".")[0] == name.split(".")[0]}
    return 1 + max((floor(other, (*below, name)) for other in others), default=0)


def test_rooms_use_only_what_they_may():
    assert [arrow for arrow in arrows() if arrow[1] not in uses(arrow[0])] == []


def test_files_form_no_circle():
    ahead = {module_name(path): {*imports(path)} for path in SOURCES}
    ahead = {name.removesuffix(".__init__"): targets for name, targets in ahead.items()}
    # Peel off what imports none of the rest, and what none of the rest imports, until circles are left.
    while ends := {name for name, targets in ahead.items() if not targets & ahead.keys()} | (
        ahead.keys() - set().union(*ahead.values())
    ):
        ahead = {name: targets for name, targets in ahead.items() if name not in ends}
    assert sorted(ahead) == []


def test_every_room_of_the_table_is_there():
    assert {room_of(module_name(path)) for path in SOURCES} - {None} == ROOMS.keys()


def test_rooms_stand_on_few_floors_and_form_no_circle():
    assert max(map(floor, ROOMS)) <= FLOORS


def test_data_half_loads_no_training_library():
    others = {"angle_train", "torch", "transformers", "sentence_transformers"}
    for path in (path for path in SOURCES if path.parts[len(ROOT.parts)] == "angle_data"):
        assert others.isdisjoint(target.split(".")[0] for target in imports(path)), path


def test_objective_terms_are_plain_torch():
    found = {name.split(".")[0] for name in imports(ROOT / "angle_train" / "objective" / "terms.py")}
    assert found <= {"torch", "collections", "typing", "__future__"}


def folders():
    return sorted({path.parent for path in SOURCES})


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_room_is_small_and_its_door_names_what_is_inside(folder):
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert len(files) <= FILES_IN_A_ROOM
    door = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    unnamed = {name for name in files - {"__main__"} if f"`{name}`" not in door}
    assert not unnamed, f"{folder}/__init__.py does not say what these are for: {sorted(unnamed)}"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_files_and_functions_are_small(path):
    text = path.read_text()
    assert len(text.splitlines()) <= LINES_IN_A_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_command(path):
            names = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
            count = len(set(names) - {"self", "cls"})
            assert count <= PARAMETERS, f"{path}:{node.lineno}: {node.name} takes {count} parameters"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_public_names_are_documented(path):
    tree = ast.parse(path.read_text())
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [node for node in tree.body if isinstance(node, named) and node.name[0] != "_"]
    assert [node for node in (tree, *public) if not ast.get_docstring(node)] == []


def public_names(path):
    """The public names that a file defines at its top."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        else:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            found = [part for target in targets if target for part in ast.walk(target)]
            names = [part.id for part in found if isinstance(part, ast.Name)]
        yield from (name for name in names if name[0] != "_")


def test_a_public_name_is_defined_once():
    counts = Counter(name for path in SOURCES for name in {*public_names(path)})
    assert {name for name, count in counts.items() if count > 1} == set().union(*SAME_NAMES.values())


def is_command(path):
    """Whether a file holds commands: typer reads their options from their parameters."""
    return path.stem == "cli" or path.stem.startswith("command")


LOADS_NOTHING = """
import io, sys
from contextlib import redirect_stdout
import PACKAGE

def loaded(*names):
    return [name for name in sys.modules if name.startswith(names)]

assert not loaded("PACKAGE."), loaded("PACKAGE.")
from PACKAGE import *
assert not HEAVY & sys.modules.keys(), HEAVY & sys.modules.keys()
from typer.main import get_command
from PACKAGE.cli import app, main

def words(command, before=()):
    yield before
    for name, sub in getattr(command, "commands", {}).items():
        yield from words(sub, (*before, name))

for command in words(get_command(app)):
    sys.argv = ["program", *command, "--help"]
    with redirect_stdout(io.StringIO()) as said:
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, (command, stop.code)
    assert "Usage:" in said.getvalue(), command
    assert "Example" in said.getvalue() or not command, command
    assert not HEAVY & sys.modules.keys(), (command, HEAVY & sys.modules.keys())
print(len(list(words(get_command(app)))))
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_and_its_help_load_nothing_heavy(package):
    program = LOADS_NOTHING.replace("PACKAGE", package).replace("HEAVY", repr(HEAVY))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_takes_the_name_of_a_function_of_its_package(package):
    offered = importlib.import_module(package).__all__
    assert not {module.name for module in pkgutil.iter_modules([str(ROOT / package)])} & {*offered}


def test_benchmarks_have_different_names():
    """In the tests their folders share one sys.path, where one of two modules of a name hides the other."""
    names = [path.stem for path in (ROOT / "benchmarks").rglob("*.py") if path.stem != "__init__"]
    assert [name for name, times in Counter(names).items() if times > 1] == []
