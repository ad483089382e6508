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

# The lowest layer: imports nothing of ours but what stands before it.
BASE = ["resources", "errors", "disjoint", "text", "jsonl", "tables", "locking", "records", "console"]
# What the training half may use of the data half; nothing flows the other way.
SHARED = {*BASE, "publish"}
# What the packages of the data half may use of each other.
NEIGHBOURS = {
    "annotators": set(),
    "publish": set(),
    "labelling": {"annotators"},
    "ensemble": {"publish"},
    "gis": {"publish", "annotators.retry"},
}
# Inside a package, from the lowest layer to the highest: a module may import, directly or through others,
# what stands in its own layer or below. Modules that are not named only have to make no cycle.
LAYERS = {
    "angle_data.annotators": [
        "base spec retry",
        "models registry limiter",
        "choice",
        "__init__",
        "recorded openai_server vllm_offline",
        "openai_batch ray_offline",
    ],
    "angle_data.labelling": [
        "chatter prompts texts index",
        "layout journal engine",
        "replies answers ledger tokens grades",
        "requests collect derive",
        "runfile forecast session",
        "run score",
        "command score_command",
    ],
    "angle_data.ensemble": [
        "gate splits graders",
        "runs sources",
        "balance merge topic __init__",
        "strategies principled scores labels",
        "report",
        "build",
        "command",
    ],
    "angle_data.publish": ["card", "dataset"],
    "angle_data.gis": [
        "rows queries references masking phrases",
        "client store markers cleaning",
        "crawl links",
        "clusters",
        "pairing negatives splits",
        "report",
        "build",
        "command command_audit command_explain",
    ],
    "angle_train": [
        "__init__ evaluate.__init__ report.__init__",
        "autocast backbones batching chunking command_options hub long_text lookups lora losses memory "
        "monitor objectives poolings processes prompting rows saving scales settings sharding_settings "
        "text_rows trackers triplets tuning",
        "config distributed gradient_cache",
        "encode loss merge pairs replay runstate sharding unused",
        "arguments folds halving leaks places space",
        "inputs",
        "evaluate.sts evaluate.sources evaluate.neighbours evaluate.logistic evaluate.seeds evaluate.views "
        "report.repeat",
        "evaluate.statistics evaluate.analysis",
        "evaluate.tasks",
        "evaluate.task_sts evaluate.task_pairs evaluate.task_transfer evaluate.task_captions",
        "evaluate.task_duplicates evaluate.embedding",
        "evaluate.bootstrap peers trainer",
        "evaluate.compare evaluate.scores",
        "evaluate.suite evaluate.suite_table evaluate.mteb_adapter",
        "evaluate.run report.advice report.insight report.style report.svg report.table",
        "report.figures report.summary",
        "report.card report.markup",
        "report.sections",
        "crossfit",
        "report.run_sections",
        "outcome report.html",
        "report.eval_html",
        "fit",
        "grid",
        "command_encode command_eval command_fit command_grid",
        "cli",
        "__main__",
    ],
}
# Modules that must not know of others, whatever the layers allow: (who, whom).
APART = [
    ("angle_data.gis.build", "angle_data.gis.client"),  # the dataset follows from what is stored
    ("angle_data.gis.build", "angle_data.gis.crawl"),
    ("angle_data.gis.crawl", "angle_data.gis.markers"),  # what is fetched does not depend on what is found
    ("angle_data.ensemble.build", "angle_data.labelling"),
    ("angle_train.trainer", "angle_train.report"),
    ("angle_train.evaluate.run", "angle_train.trainer"),  # measuring needs no training
]
HEAVY = ("torch", "transformers", "sentence_transformers", "datasets", "pyarrow", "numpy", "openai", "github")


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def on_command_line(name):
    """Whether a module is a program or one of its commands (`command`, `score_command`, `command_audit`)."""
    last = name.split(".")[-1]
    return last in ("cli", "__main__") or "command" in last.split("_")


def imports(path):
    """Every module named in an import statement anywhere in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def import_graph():
    """{module: modules of ours that it imports when it runs}; packages are called `….__init__`."""
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in SOURCES}

    def known(name):
        return next((n for n in (name, f"{name}.__init__") if n in files), None)

    graph = {}
    for name, path in files.items():
        tree = ast.parse(path.read_text())
        types_only = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
            for part in ast.walk(node)
        }
        targets = set()
        for node in ast.walk(tree):
            if id(node) in types_only:
                continue
            if isinstance(node, ast.Import):
                targets |= {known(alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                targets |= {
                    known(f"{node.module}.{alias.name}") or known(node.module) for alias in node.names
                }
        graph[name] = targets - {None, name}
    return graph


def reachable(graph, start):
    """Every module that `start` imports, directly or through others."""
    found, open_ends = set(), [start]
    while open_ends:
        for target in graph.get(open_ends.pop(), ()):
            if target not in found:
                found.add(target)
                open_ends.append(target)
    return found


def wrong_arrows(graph, layers=LAYERS, apart=APART):
    """What is wrong with a graph of imports, a line for each fault."""
    faults = [f"{name} imports itself through others" for name in graph if name in reachable(graph, name)]
    for package, names in layers.items():
        height = {f"{package}.{name}": i for i, layer in enumerate(names) for name in layer.split()}
        faults += [
            f"{name} is below {target}"
            for name in sorted(height.keys() & graph.keys())
            for target in sorted(reachable(graph, name))
            if height.get(target, -1) > height[name]
        ]
    faults += [
        f"{who} must not know {target}"
        for who, whom in apart
        for target in sorted(reachable(graph, who))
        if f"{target}.".startswith(f"{whom}.")
    ]
    return faults


def test_layers_inside_the_packages():
    assert wrong_arrows(import_graph()) == []


def test_neighbouring_packages_use_only_what_they_may():
    for name, targets in import_graph().items():
        _, package, *_ = name.split(".")
        if name.startswith("angle_data.") and package in NEIGHBOURS:
            for target in targets:
                other = target.split(".")[1]
                if other in NEIGHBOURS and other != package:
                    allowed = {other, target.removeprefix("angle_data.")} & NEIGHBOURS[package]
                    assert allowed, f"{name} may not use {target}"


def test_every_module_of_the_training_half_stands_in_a_layer():
    listed = {f"angle_train.{name}" for layer in LAYERS["angle_train"] for name in layer.split()}
    assert listed == {name for name in import_graph() if name.startswith("angle_train.")}


@pytest.mark.parametrize(
    ("graph", "fault"),
    [
        ({"p.low": {"p.high"}}, "p.low is below p.high"),
        ({"p.low": {"p.new"}, "p.new": {"p.high"}}, "p.low is below p.high"),  # through one that is not named
        ({"p.new": {"p.newer"}, "p.newer": {"p.new"}}, "p.new imports itself through others"),
        ({"p.high": {"p.low"}, "p.low": {"q.secret"}}, "p.high must not know q.secret"),
        ({"p.high": {"p.low", "p.new"}, "p.new": {"p.low"}, "p.twin": {"p.high"}}, None),
    ],
)
def test_a_wrong_arrow_is_noticed(graph, fault):
    faults = wrong_arrows(graph, {"p": ["low", "high twin"]}, [("p.high", "q")])
    assert faults == [] if fault is None else fault in faults


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_point_one_way(path):
    name = module_name(path)
    for target in imports(path):
        if name.startswith("angle_data"):
            assert not target.startswith("angle_train"), "angle_data must not know angle_train"
            assert target.split(".")[0] not in {"torch", "transformers", "sentence_transformers"}
        elif target.startswith("angle_data"):
            assert target.split(".")[1] in SHARED, f"{name} may not use {target}"
        if target.startswith("angle_") and not on_command_line(name):
            assert not on_command_line(target), f"{name} imports the command line"
        if not name.endswith(".__main__"):
            assert not (target.startswith("angle_") and target.endswith(".cli")), f"{name} imports a program"


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
        ("angle_data.cli", "llm-score", "--help"),
        ("angle_data.cli", "ensemble", "--help"),
        ("angle_data.cli", "gis", "--help"),
        ("angle_data.cli", "gis", "explain", "--help"),
        ("angle_data.cli", "gis", "sample", "--help"),
        ("angle_data.cli", "gis", "rehydrate", "--help"),
        ("angle_train.cli", "--help"),
        ("angle_train.cli", "fit", "--help"),
        ("angle_train.cli", "grid", "--help"),
        ("angle_train.cli", "eval", "--help"),
        ("angle_train.cli", "encode", "--help"),
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
