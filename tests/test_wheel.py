"""The wheel as a user installs it: both programs answer, and find their prompts, recipes and texts in it."""

import importlib.util
import json
import os
import zipfile
from pathlib import Path

import pytest
from programs import python

ROOT = Path(__file__).resolve().parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
CARRIED = {
    "prompts": "angle_data/prompts",
    "recipes": "angle_train/recipes",
    "general": "angle_train/general",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with what the wheel installs, without its dependencies; nothing is fetched."""
    for needed in ("hatchling", "pip"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed, so no wheel can be built without a network")
    made, home = (tmp_path_factory.mktemp(name) for name in ("wheel", "installed"))
    alone = ("--no-deps", "--no-index")
    done = python(*PIP, "wheel", *alone, "--no-build-isolation", "--wheel-dir", made, ROOT, cwd=made)
    assert done.returncode == 0, done.stderr
    (wheel,) = made.glob("*.whl")
    done = python(*PIP, "install", *alone, "--target", home, wheel, cwd=made)
    assert done.returncode == 0, done.stderr
    return wheel, home


@pytest.fixture
def run(installed, tmp_path):
    """Run Python in an empty folder, where the packages of the wheel come before this clone."""
    environment = os.environ | {"PYTHONPATH": str(installed[1]), "PYTHONSAFEPATH": "1"}
    return lambda *arguments: python(*arguments, cwd=tmp_path, env=environment)


def test_the_wheel_carries_every_file_that_the_programs_read(installed):
    wheel, _ = installed
    held = set(zipfile.ZipFile(wheel).namelist())
    for folder, place in CARRIED.items():
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        assert files
        assert {f"{place}/{path.relative_to(ROOT / folder).as_posix()}" for path in files} <= held
    read = [
        path
        for package in ("angle_data", "angle_train")
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".html", ".css", ".txt", ".toml", ".md", ".typed")
    ]
    assert {path.relative_to(ROOT).as_posix() for path in read} <= held


@pytest.mark.parametrize("name", ["angle-data", "angle-train"])
def test_the_programs_of_the_wheel_answer(run, installed, name):
    done = run(installed[1] / "bin" / name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_the_first_step_works_from_the_wheel_alone(run, installed, tmp_path, examples):
    home = installed[1]
    rows = (examples / "texts.jsonl").read_text().splitlines()[:5]
    (tmp_path / "notes.jsonl").write_text("\n".join(rows))
    recorded = ("--engine", "recorded", "--replies", examples / "replies/annotator-b.jsonl")
    given = ("--model", "annotator-b", *recorded, "--texts", "notes.jsonl", "--out", "run")
    done = run(home / "bin/angle-data", "llm-label", *given)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run/run.json").read_text())["counts"]["replied"] == 10


def test_what_comes_with_the_wheel_is_found_in_it(run, installed):
    program = (
        "import angle_data, angle_train; from angle_data.resources import packaged_folder as folder;"
        "print(angle_data.__file__, angle_train.__file__, *map(folder, ['prompts', 'recipes', 'general']))"
    )
    done = run("-c", program)
    assert done.returncode == 0, done.stderr
    places = done.stdout.split()
    assert len(places) == 5
    assert all(Path(place).is_relative_to(installed[1]) for place in places), places
