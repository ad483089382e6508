"""The harness of the golden tests: run the two programs, normalise what they leave, compare with `expected/`.

`ANGLE_GOLDEN=write pytest tests/golden` writes the expected files anew; without it a difference, or a missing
file, fails. Only the command lines are called, so that modules may move. Ints and texts must be equal,
floats to 1e-6 (or the `tolerance` of a check, which may depend on the place).
"""

import hashlib
import json
import math
import os
import re
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from programs import run_here

REPO = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).parent / "expected"
WRITE = os.environ.get("ANGLE_GOLDEN") == "write"
MOST_SHOWN = 12
# What differs between two equal runs or two machines; dropped wherever the key stands.
UNSTABLE = {
    "created", "device", "duration", "elapsed", "environment", "hardware", "host", "hostname", "latency_s",
    "machine", "memory", "peak_memory", "platform", "runtime", "seconds", "started", "time", "timing",
    "times", "version", "versions",
}  # fmt: skip
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "COLUMNS": "110", "NO_COLOR": "1"}
_PROGRESS = re.compile(r"\d/s\b")
_UNSTABLE_ENDS = ("_seconds", "_per_second", "_at_utc", "_memory", "_hours")


class Runner:
    """Calls the programs of this checkout, in this process."""

    def __init__(self, tmp):
        self.tmp = Path(tmp)

    def __call__(self, program, *arguments, code=0):
        """Run a program in the repository; return stdout and stderr, normalised."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(REPO)
            for name, value in ENVIRONMENT.items():
                patch.setenv(name, value)
            done = run_here(import_module(f"{program}.cli").main, *arguments)
        said = f"exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert done.returncode == code, f"{program} {arguments}\n{said}"
        # Progress lines depend on how fast the machine is.
        spoken = [line for line in done.stderr.splitlines(True) if not _PROGRESS.search(line)]
        return self.text(done.stdout), self.text("".join(spoken))

    def text(self, text):
        """Text without the machine's paths."""
        for place in sorted({str(self.tmp), str(self.tmp.resolve())}, key=len, reverse=True):
            text = text.replace(place, "<TMP>")
        return text.replace(str(REPO), "<REPO>")

    def plain(self, value):
        """JSON without the machine's paths, times and versions."""
        if isinstance(value, dict):
            return {self.text(key): self.plain(inside) for key, inside in value.items() if not unstable(key)}
        if isinstance(value, list | tuple):
            return [self.plain(inside) for inside in value]
        return self.text(value) if isinstance(value, str) else value

    def json(self, path):
        """A JSON file, normalised."""
        return self.plain(json.loads(Path(path).read_text(encoding="utf-8")))

    def lines(self, path):
        """A text file as normalised lines, which make readable differences."""
        return self.text(Path(path).read_text(encoding="utf-8")).splitlines()

    def jsonl(self, path, first=3, drop=()):
        """A JSON Lines file as a digest."""
        raw = Path(path).read_text(encoding="utf-8")
        rows = [json.loads(line) for line in raw.splitlines()]
        if drop:
            return digest([{k: v for k, v in row.items() if k not in drop} for row in rows], first)
        return {"bytes_sha256": sha256(raw), **digest(rows, first)}

    def text_rows(self, text, first=8):
        """Printed JSON Lines as a digest."""
        return {"bytes_sha256": sha256(text), **digest(list(map(json.loads, text.splitlines())), first)}

    def dataset(self, folder, card=False):
        """The files of a data set: every split's columns and rows, the card, and the names of the rest.

        `card`: keep the card's lines, too, which is enough for some of the data sets.
        """
        folder = Path(folder)
        found = {"files": sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())}
        for path in sorted(folder.rglob("*.parquet")):
            table = parquet.read_table(path)
            columns = {field.name: str(field.type) for field in table.schema}
            found[path.relative_to(folder).as_posix()] = {"columns": columns, **digest(table.to_pylist(), 2)}
        lines = self.lines(folder / "README.md")
        found["README.md"] = {"lines": len(lines), "sha256": sha256("\n".join(lines))}
        if card:
            found["README.md"]["text"] = lines
        return found


def unstable(key):
    """Whether a value is left out by its key."""
    return key in UNSTABLE or key.endswith(_UNSTABLE_ENDS)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def digest(rows, first=5):
    """Rows as their number, a digest, four digits a row (which row differs?), and the first of them."""
    texts = [json.dumps(row, ensure_ascii=False, sort_keys=True, default=str) for row in rows]
    return {
        "rows": len(rows),
        "sha256": sha256("\n".join(texts)),
        "each": "".join(sha256(text)[:4] for text in texts),
        "first": json.loads(json.dumps(rows[:first], default=str)),
    }


def differences(expected, found, tolerance, place="$"):  # noqa: C901
    """Yield a line for every difference of two JSON values."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            if key not in found:
                yield f"{place}.{key}: gone; was {short(expected[key])}"
            elif key not in expected:
                yield f"{place}.{key}: new: {short(found[key])}"
            else:
                yield from differences(expected[key], found[key], tolerance, f"{place}.{key}")
        if list(expected) != list(found) and set(expected) == set(found):
            yield f"{place}: other order of keys: {list(expected)} -> {list(found)}"
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{place}: {len(expected)} items -> {len(found)}"
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from differences(one, other, tolerance, f"{place}[{number}]")
    elif place.endswith(".each"):
        count = min(len(expected), len(found)) // 4
        other = [n for n in range(count) if expected[4 * n : 4 * n + 4] != found[4 * n : 4 * n + 4]]
        if other:
            yield f"{place}: {len(other)} of {count} rows differ, the first is row {other[0]}"
    elif isinstance(expected, float) or isinstance(found, float):
        numbers = {type(expected), type(found)} <= {int, float}
        if not numbers or not math.isclose(
            expected, found, rel_tol=tolerance(place), abs_tol=tolerance(place)
        ):
            yield f"{place}: {expected!r} -> {found!r}"
    elif type(expected) is not type(found) or expected != found:
        yield f"{place}: {short(expected)} -> {short(found)}"


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def check_value(name, value, tolerance=1e-6):
    """Compare a JSON value with expected/NAME.json, or write it there."""
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    # Short lists of numbers, such as intervals, stand on one line.
    text = re.sub(r"\[\s+(-?[\d.e-]+(?:,\s+-?[\d.e-]+){0,11})\s+\]", _on_one_line, text)
    path = EXPECTED / f"{name}.json"
    machine = [part for part in ("/tmp/", "/home/", "/root/", str(REPO)) if part in text]
    assert not machine, f"{name}: a path of the machine is in it: {machine}"
    if WRITE:
        EXPECTED.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.exists(), f"{path.relative_to(REPO)} is missing; ANGLE_GOLDEN=write writes it"
    expected = json.loads(path.read_text(encoding="utf-8"))
    at = tolerance if callable(tolerance) else lambda place: tolerance
    lines = list(differences(expected, json.loads(text), at))
    more = [f"… and {len(lines) - MOST_SHOWN} more"] if len(lines) > MOST_SHOWN else []
    if lines:
        pytest.fail("\n".join([f"golden {name}:", *lines[:MOST_SHOWN], *more]), pytrace=False)


def _on_one_line(match):
    return "[" + re.sub(r"\s+", " ", match[1]) + "]"


@pytest.fixture(scope="session")
def check():
    """`check(name, value)`: compare with the expected file of that name."""
    return check_value


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Call a program, see `Runner`."""
    return Runner(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="session")
def labelled(run):
    """The demo's three annotators on the first 80 texts: name -> run folder and what was said."""
    found = {}
    for name in ("annotator-a", "annotator-b", "annotator-c"):
        folder = run.tmp / "runs" / name
        said = run(
            "angle_data", "llm-label", "--prompts", "paper", "--model", name, "--engine", "recorded",
            "--replies", f"examples/cloud-ops/replies/{name}.jsonl",
            "--texts", "examples/cloud-ops/texts.jsonl", "--limit", 80, "--out", folder,
        )  # fmt: skip
        found[name] = (folder, said)
    return found


@pytest.fixture(scope="session")
def voted(run, labelled):
    """The data set of the demo: voted, ordinal labels; and what was said."""
    out = run.tmp / "pairs" / "vote-ordinal"
    folders = [folder for folder, _ in labelled.values()]
    said = run("angle_data", "ensemble", *folders, "--out", out, "--strategy", "vote", "--labels", "ordinal",
               "--antonym-score", 0.2)  # fmt: skip
    return out, said
