"""The import arrows, the public names, the size budget and the start-up cost of the programs."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("angle_data", "angle_train")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# What the training half may use of the data half; nothing flows the other way.
SHARED = {"disjoint", "errors", "records", "jsonl", "locking", "text", "console", "publish"}
# The lowest layer: imports nothing of ours but what stands before it.
BASE = ["errors", "disjoint", "text", "jsonl", "locking", "records", "console"]
HEAVY = ("torch", "transformers", "sentence_transformers", "datasets", "pyarrow", "numpy", "openai", "github")


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path):
    """Every module named in an import statement anywhere in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_point_one_way(path):
    name = module_name(path)
    for target in imports(path):
        if name.startswith("angle_data"):
            assert not target.startswith("angle_train"), "angle_data must not know angle_train"
            assert target.split(".")[0] not in {"torch", "transformers", "sentence_transformers"}
        elif target.startswith("angle_data"):
            assert target.split(".")[1] in SHARED, f"{name} may not use {target}"
        if target.startswith("angle_") and not name.endswith(".cli"):
            assert target.split(".")[-1] not in {"cli", "command"}, f"{name} imports the command line"


@pytest.mark.parametrize("position", range(len(BASE)), ids=BASE)
def test_base_modules_import_only_what_stands_before_them(position):
    path = ROOT / "angle_data" / f"{BASE[position]}.py"
    ours = {target for target in imports(path) if target.startswith("angle_")}
    assert ours <= {f"angle_data.{name}" for name in BASE[:position]}


def test_objectives_are_plain_torch():
    allowed = {"torch", "torch.nn.functional", "collections.abc", "typing", "__future__"}
    assert set(imports(ROOT / "angle_train" / "objectives.py")) <= allowed


def public_modules():
    for package in PACKAGES:
        root = importlib.import_module(package)
        yield package
        for module in pkgutil.walk_packages(root.__path__, prefix=f"{package}."):
            yield module.name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(public_modules()))
def test_public_names_are_listed_and_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    tree = ast.parse(Path(module.__file__).read_text())
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
    }
    listed = set(module.__all__)
    assert defined <= listed, f"{name}.__all__ lacks {sorted(defined - listed)}"
    for exported in module.__all__:
        value = getattr(module, exported)
        if exported in defined:
            assert value.__doc__, f"{name}.{exported} has no docstring"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_no_file_outgrows_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize(
    "arguments",
    [
        ("angle_data.cli", "--help"),
        ("angle_data.cli", "llm-label", "--help"),
        ("angle_data.cli", "ensemble", "--help"),
        ("angle_train.cli", "--help"),
        ("angle_train.cli", "fit", "--help"),
        ("angle_train.cli", "eval", "--help"),
    ],
    ids=" ".join,
)
def test_help_loads_nothing_heavy(arguments):
    module, *rest = arguments
    program = (
        "import sys\n"
        f"sys.argv = ['program', *{rest!r}]\n"
        f"from {module} import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as stop:\n"
        "    assert not stop.code, stop.code\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout
    if len(rest) > 1:
        assert "Example" in done.stdout
