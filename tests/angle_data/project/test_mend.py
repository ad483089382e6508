"""`status` names all that is to be mended at once: no wrong value, file, model or key hides another."""

import csv

import pytest

from angle_data import Project
from angle_data.calling.checks import errors_of
from angle_data.errors import InputError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of 6 notes with a grader, and no key."""
    with (tmp_path / "notes.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("nr", "note"), *((n, f"Disk {n} is full.") for n in range(6))])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    return Project.start("notes.csv", purpose="opposites", model="gpt-4o", grader="gpt-4.1")


def to_mend(project, *edits):
    """The lines `mend` after edits, without the name of the file; each begins as it is expected to."""
    path = project.folder / "angle.toml"
    text = path.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)
    return [said.removeprefix(f"{path}: ") for name, said in Project(project.folder).status().rows
            if name == "mend"]  # fmt: skip


def begin(lines, *starts):
    assert len(lines) == len(starts), "\n".join(lines)
    for start in starts:
        assert any(line.startswith(start) for line in lines), "\n".join([start, "not in", *lines])


def test_wrong_values_and_a_missing_file_of_the_training_are_all_named(project):
    wrong = (
        'threshold = "three"\nguard = ["none.csv", "nor.csv"]\nguard-loss = -4\nepochs = 0\ndevice = "gpu"\n'
    )
    wrong += 'set = ["batch_sise=1", "sed=2"]\nteacher = "./nothere"\n'
    found = to_mend(
        project, ("drop-leaks = true\n", wrong), ('"runs/pairs"]\nbackbone', '"runs/p"]\nbackbone')
    )
    begin(
        found,
        "[fit] --threshold must be of type float, got 'three'",
        "[fit] guard: none.csv is not there",
        "[fit] guard: nor.csv is not there",
        "[fit] --guard-loss: must be greater than or equal to 0, got -4",
        "[fit] --epochs: must be greater than 0, got 0",
        "[fit] --device must be cpu, cuda or mps, got 'gpu'",
        "[fit] unknown recipe key 'batch_sise'",
        "[fit] unknown recipe key 'sed'",
        "[fit] model directory ./nothere does not exist",
        "[fit] data: runs/p is not there",
    )


def test_wrong_values_of_a_step_are_all_named_with_its_missing_files(project):
    found = to_mend(
        project,
        ("n = 150\ndev-share = 0.33", "n = -1\ndev-share = 3"),
        ("pairs-per-call = 10", 'pairs-per-call = 500\nconcurrency = "two"\nprice = "cheap"'),
        ('scores = ["runs/grades"]', 'scores = ["runs/a", "runs/b"]\nseed = "x"'),
    )
    begin(
        found,
        "[grade] --n must be at least 2, got -1",
        "[grade] --dev-share must be more than 0 and less than 1, got 3",
        "[llm-score] --pairs-per-call must be from 1 to 50, got 500",
        "[llm-score] --concurrency must be of type",
        "[llm-score] --price 'cheap'",
        "[ensemble] --seed must be of type int, got 'x'",
        "[ensemble] scores: runs/a is not there",
        "[ensemble] scores: runs/b is not there",
    )


def test_a_missing_key_hides_neither_files_nor_prompts(project, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    found = to_mend(
        project, ("../notes.csv", "../gone.csv"), ('prompts = "contrast"', 'prompts = "contarst"')
    )
    gone = "texts: ../gone.csv is not there"
    key = "no API key: set the environment variable OPENAI_API_KEY"
    runs = ("[llm-label.structured]", "[llm-label.contrast]")
    starts = [f"{run} {said}" for run in runs for said in (gone, key)]
    begin(found, *starts, "[llm-label.contrast] --prompts contarst", f"[llm-score] {key}")


def test_what_only_follows_from_another_slip_is_not_named(project):
    begin(
        to_mend(project, ('data = ["runs/pairs"]\nbackbone', "data = 3\nbackbone")), "[fit] --data must be of"
    )
    begin(
        to_mend(project, ("data = 3", 'dota = ["runs/pairs"]')),
        "[fit] has no option 'dota'; did you mean data?",
    )
    begin(
        to_mend(project, ("dota", "data"), ("drop-leaks", 'dev-search = ["gone"]\ndrop-leaks')),
        "[fit] gone does not",
    )


def test_a_teacher_of_the_hub_is_warned_of_as_a_backbone_is(project, caplog, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert not to_mend(project, ("drop-leaks", 'teacher = "nothere/model"\ndrop-leaks'))
    assert (
        "nothere/model is not in the cache, and HF_HUB_OFFLINE forbids to fetch it: fit will need teacher"
        in (caplog.text)
    )


def test_the_home_folder_of_nobody_is_a_folder_that_is_not_there(project):
    found = to_mend(
        project,
        ("../notes.csv", "~nouser/notes.csv"),
        ('data = ["runs/pairs"]\nbackbone', 'data = ["~nouser/pairs"]\nbackbone'),
        ("drop-leaks", 'dev-search = ["~nouser/search"]\ndrop-leaks'),
    )
    gone = "texts: ~nouser/notes.csv is not there"
    begin(
        found,
        f"[llm-label.structured] {gone}",
        f"[llm-label.contrast] {gone}",
        "[fit] ~nouser/search does not exist",
        "[fit] data: ~nouser/pairs is not there",
    )


@pytest.mark.parametrize("value", ["-1", "[3]", "1e999", "[[]]"])
@pytest.mark.parametrize(
    ("old", "section", "option"),
    [
        ('"../notes.csv"', "llm-label.structured", "texts"),
        ('["runs/grades"]', "ensemble", "scores"),
        ('"runs/grades"\n', "llm-score", "out"),
    ],
)
def test_what_is_no_path_is_one_line(project, old, section, option, value):
    with pytest.raises(InputError, match=rf"\[{section}\] {option} must be a path, got "):
        to_mend(project, (f"{option} = {old}", f"{option} = {value}\n"))


@pytest.mark.parametrize("value", ["-1", "[]", '["model"]'])
def test_a_model_folder_that_is_no_path_is_to_be_mended(project, value):
    begin(to_mend(project, ('out = "model"', f"out = {value}")), "[fit] --out must be of type Path, got ")


def test_a_wrong_value_hides_no_missing_key_of_the_model(project, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    asked = "[llm-label]\n"
    found = to_mend(project, (asked, f'{asked}concurrency = "two"\n'))
    begin(
        found,
        "[llm-label.structured] --concurrency must be of type int, got 'two'",
        "[llm-label.structured] no API key: set the environment variable OPENAI_API_KEY",
        "[llm-label.contrast] --concurrency must be of type int, got 'two'",
        "[llm-label.contrast] no API key: set the environment variable OPENAI_API_KEY",
        "[llm-score] no API key: set the environment variable OPENAI_API_KEY",
    )


def test_a_wrong_setting_hides_no_unknown_recipe(project):
    found = to_mend(project, ("drop-leaks = true\n", 'recipe = "nothere"\nepochs = 0\nset = ["sed=2"]\n'))
    begin(
        found,
        "[fit] --epochs: must be greater than 0, got 0",
        "[fit] unknown recipe key 'sed'",
        "[fit] no recipe is called 'nothere'",
    )


@pytest.mark.parametrize("option", ["teacher", "data", "guard", "dev-search"])
def test_a_name_that_is_too_long_is_told_in_a_line_and_hides_nothing(project, option):
    long = "x" * 300
    value = f'["./{long}"]' if option != "teacher" else f'"./{long}"'
    old = "drop-leaks = true\n" if option != "data" else 'data = ["runs/pairs"]\n'
    found = to_mend(project, (old, f"{option} = {value}\nepochs = 0\n"))
    begin(found, "[fit] --epochs: must be greater than 0, got 0", "[fit]")
    assert sum(long in line for line in found) == 1


def test_a_wrong_header_is_told_and_no_key_beside_it(project, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("MY_KEY", "a-key")
    address = 'base-url = ["https://me.openai.azure.com/openai/v1"]\n'
    headers = 'header = ["api-key=MY_KEY", "X-Title foo"]\n'
    found = to_mend(project, ("[llm-label]\n", f"[llm-label]\n{address}{headers}"))
    begin(
        found,
        "[llm-label.structured] --header takes NAME=VARIABLE",
        "[llm-label.contrast] --header takes NAME=VARIABLE",
        "[llm-score] no API key",
    )


def test_an_error_of_the_disk_keeps_its_words():
    def lacks():
        raise OSError("the folder is missing")

    assert [str(error) for error in errors_of([lacks])] == ["the folder is missing"]


def test_a_value_that_is_refused_for_what_it_says_hides_no_missing_key_either(project, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    found = to_mend(
        project,
        ("[llm-label]\n", '[llm-label]\npolarity = "bothh"\n'),
        ("pairs-per-call = 10", 'pairs-per-call = 10\nprompt = "mine.txt"'),
    )
    key = "no API key: set the environment variable OPENAI_API_KEY"
    begin(
        found,
        "[llm-label.structured] --polarity must be one of both, synonym, antonym, got 'bothh'",
        f"[llm-label.structured] {key}",
        "[llm-label.contrast] --polarity must be one of both, synonym, antonym, got 'bothh'",
        f"[llm-label.contrast] {key}",
        "[llm-score] --purpose",
        f"[llm-score] {key}",
    )


def test_a_model_whose_name_is_too_long_is_told_beside_a_value_that_is_refused(project):
    long = "x" * 300
    found = to_mend(project, ('model = "gpt-4o"', f'model = "{long}"\npolarity = "bothh"'))
    said = [line.split(" ")[0] for line in found if long in line]
    assert said == ["[llm-label.structured]", "[llm-label.contrast]"], found
    assert sum("--polarity must be one of" in line for line in found) == 2
