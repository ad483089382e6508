"""`start`: three answers, asked or given, become an angle.toml that holds nothing but options of commands."""

import csv
import tomllib
from contextlib import chdir
from pathlib import Path

import pytest
import typer
from programs import run_here
from typer.testing import CliRunner

from angle_data import Project
from angle_data.calling.defaults import SECTION_NAMES
from angle_data.cli import app, main
from angle_data.errors import InputError
from angle_data.project.start import StartConfig
from angle_train.cli import app as train_app
from angle_train.cli import main as train

NOTES = [("7", "The dog limps after the walk.", "mon"), ("8", "No limp was seen today.", "tue")]


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("notes.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([("nr", "note", "day"), *NOTES])
    return Path("notes.csv")


def toml(folder="notes"):
    return tomllib.loads(Path(folder, "angle.toml").read_text())


def asked(*answers):
    """`start` in a terminal that answers."""
    runner = CliRunner()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("angle_data.project.command.in_terminal", lambda: True)
        return runner.invoke(app, ["start", "notes.csv"], input="\n".join(answers) + "\n")


def test_three_answers_are_enough(notes):
    done = asked("", "n", "gpt-mine")
    assert done.exit_code == 0, done.output
    found = toml()
    assert found["llm-label"]["text-field"] == "note"  # what is proposed: the column of the longest texts
    assert found["llm-label"]["model"] == "gpt-mine"
    assert found["llm-label"]["texts"] == "../notes.csv"
    assert found["ensemble"]["purpose"] == "topics"
    assert "cd notes && angle-data pilot" in done.output


def test_opposites_and_another_column_and_a_slip(notes):
    done = asked("nosuch", "day", "y", "")
    assert done.exit_code == 0, done.output
    assert toml()["llm-label"]["text-field"] == "day"
    assert {name for name, value in toml()["llm-label"].items() if isinstance(value, dict)} == {
        "structured", "contrast",
    }  # fmt: skip


def test_without_a_terminal_one_line_has_the_complete_command(notes):
    done = run_here(main, "start", "notes.csv", "--model", "gpt-m x")
    assert done.returncode == 1
    line = "angle-data start notes.csv --text-field note --purpose opposites --model 'gpt-m x'"
    assert f"give --text-field, --purpose, as in `{line}`" in done.stderr
    assert not Path("notes").exists()
    assert CliRunner().invoke(app, ["start", "notes.csv", "--model", "gpt-m x", "--yes"]).exit_code == 0
    assert toml()["llm-label"]["model"] == "gpt-m x"


def test_a_text_file_has_no_columns_and_a_project_says_so_in_python_too(notes):
    Path("lines.txt").write_text("One line.\nAnother.\n")
    done = run_here(main, "start", "lines.txt", "--purpose", "topics", "--model", "gpt-m")
    assert done.returncode == 0, done.stderr
    assert "2 of lines.txt" in done.stdout
    project = Project.start("notes.csv", purpose="topics", model="gpt-m", grader="gpt-g", out="with")
    assert [step.command for step in project.steps] == ["llm-label", "mine", "llm-score", "ensemble", "grade"]
    assert "angle-data pilot" in repr(project)


def test_every_option_of_angle_toml_is_one_of_its_command(notes):
    """The file is nothing but options: both programs know every section and every name in it."""
    Project.start("notes.csv", purpose="topics", grader="gpt-g", base_url="http://a/v1", price="1,2")
    commands = {}
    for each in (app, train_app):
        commands |= typer.main.get_command(each).commands
    for name, section in toml().items():
        known = {
            option for parameter in commands[name].params for option in (parameter.name, *parameter.opts)
        }
        for part in (section, *(value for value in section.values() if isinstance(value, dict))):
            given = {key for key, value in part.items() if not isinstance(value, dict)}
            assert {key.replace("-", "_") for key in given} <= known, name


def test_the_same_answers_again_change_nothing_and_others_are_refused(notes):
    options = {"purpose": "topics", "model": "gpt-m"}
    file = Project.start("notes.csv", **options).folder / "angle.toml"
    written = "# my own remark\n" + file.read_text()
    file.write_text(written)
    Project.start("notes.csv", **options)
    assert file.read_text() == written
    with pytest.raises(
        InputError, match=r"angle.toml exists, with other options: \[llm-label\] model; edit it"
    ):
        Project.start("notes.csv", purpose="topics", model="gpt-n")
    several = r"\[llm-label.structured\] prompts, .* and 5 more; edit it, or give another --out"
    with pytest.raises(InputError, match=several):
        Project.start("notes.csv", purpose="opposites", model="gpt-m")
    file.write_text(written.replace("drop-leaks", "drop_leaks"))
    Project.start("notes.csv", **options)
    file.write_text(written + "[llm-label.extra]\n")
    with pytest.raises(InputError, match=r"with other options: \[llm-label.extra\]; edit it"):
        Project.start("notes.csv", **options)
    file.write_text(written + "[fit")
    with pytest.raises(InputError, match=r"angle.toml is not valid TOML .*; correct it"):
        Project.start("notes.csv", **options)
    file.write_text(written)
    Path("full").mkdir()
    Path("full.csv").write_text("text\nA note.\n")
    Path("full/other").write_text("")
    with pytest.raises(InputError, match="full exists and is no project"):
        Project.start("full.csv", **options)


@pytest.mark.parametrize(("grader", "told"), [("gpt-m", True), ("gpt-g", False)])
def test_a_grader_that_is_the_writer_is_told(notes, grader, told):
    given = ["start", "notes.csv", "--yes", "--purpose", "topics", "--model", "gpt-m", "--grader", grader]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0
    assert ("note     a model's grades of what it wrote itself do not count" in done.output) == told


def test_a_project_that_was_there_and_one_inside_another_are_told(notes):
    start = ["start", "notes.csv", "--yes"]
    assert "next     cd notes && angle-data pilot" in CliRunner().invoke(app, start).output
    again = CliRunner().invoke(app, start).output
    assert "notes/angle.toml  (was there, and says the same: unchanged)" in again
    assert "next     cd notes && angle-data status\n" in again
    inside = CliRunner()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir("notes")
        found = inside.invoke(app, ["start", "../notes.csv", "--yes"]).output
        assert "note     it lies in the folder of another project; give --out DIR" in found
        for more in ([], ["--out", "../other"]):  # it was there, and elsewhere
            done = inside.invoke(app, ["start", "../notes.csv", "--yes", *more])
            assert done.exit_code == 0
            assert "note " not in done.output


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"text\n", "holds no rows"),
        ("a.pdf", b"%PDF", "unknown kind of file"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\xff\xfe", "no text file"),
        ("none.csv", None, "none.csv"),
    ],
)
def test_files_that_hold_no_texts(notes, name, content, said):
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        Project.start(name, purpose="topics")


def test_a_slip_in_angle_toml_is_named(notes):
    Project.start("notes.csv", purpose="topics", model="gpt-m")
    path = Path("notes/angle.toml")
    whole = path.read_text()
    for slip, said in (
        ("text-feild = 'x'\n[llm-label.degrees]", "has no option 'text-feild'; did you mean text-field?"),
        ("[llm-label.degrees", "is not valid TOML"),
    ):
        path.write_text(whole.replace("[llm-label.degrees]", slip))
        done = run_here(main, "run", "--project", "notes")
        assert done.returncode == 1
        assert said in done.stderr, done.stderr
    path.write_text(whole.replace('model = "gpt-m"\n', ""))
    assert "[llm-label.degrees] lacks model" in run_here(main, "run", "--project", "notes").stderr
    path.write_text(whole.replace('texts = "../notes.csv"\n', ""))
    assert "[llm-label.degrees] lacks texts" in run_here(main, "run", "--project", "notes").stderr
    path.write_text("a = 1\n")
    assert "stands in no section" in run_here(main, "status", "--project", "notes").stderr
    assert "is no project" in run_here(main, "status").stderr


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("grades", "grade"), ("llm_label", "llm-label"), ("fits", "fit"), ("Fit", "fit"), ("ftt", "fit")],
)
def test_a_misspelt_section_is_named_and_not_left_out(notes, slip, meant):
    path = Project.start("notes.csv", purpose="topics", model="gpt-m").folder / "angle.toml"
    path.write_text(path.read_text().replace(f"[{meant}", f"[{slip}"))
    for program, *words in ((main, "status", "--project", "notes"), (train, "fit"), (main, "show", "runs")):
        with chdir(Path() if "--project" in words else path.parent):
            done = run_here(program, *words)
        assert done.returncode == 1
        assert f"angle.toml: [{slip}] is the section of no command; did you mean [{meant}]?" in done.stderr


def test_a_section_that_is_near_no_command_is_told_which_there_are(notes):
    path = Project.start("notes.csv", purpose="topics", model="gpt-m").folder / "angle.toml"
    for name in ("foo", "train"):
        path.write_text(f"[{name}]\n")
        done = run_here(main, "status", "--project", "notes")
        assert done.returncode == 1
        assert f"[{name}] is the section of no command; there are start, pilot, run, status, " in done.stderr


def test_a_section_may_have_the_name_of_every_command_of_both_programs():
    commands = [name for each in (app, train_app) for name in typer.main.get_command(each).commands]
    assert sorted(SECTION_NAMES) == sorted(commands)


def test_sections_of_other_commands_may_stand_in_angle_toml(notes):
    path = Project.start("notes.csv", purpose="topics", model="gpt-m").folder / "angle.toml"
    others = ("run", "pilot", "status", "show", "probe", "gis", "eval", "encode")
    path.write_text(path.read_text() + "".join(f"[{name}]\n" for name in others))
    assert run_here(main, "status", "--project", "notes").returncode == 0


def test_a_server_that_is_no_address_is_refused_before_a_project_is_made(notes):
    with pytest.raises(InputError, match="--base-url 'localhost:8000' is not an address"):
        Project.start("notes.csv", purpose="topics", base_url="localhost:8000")
    assert not Path("notes").exists()


def test_a_search_says_by_itself_what_the_project_is_for(notes):
    assert StartConfig(notes, search="my-search").purpose == "search"
    with pytest.raises(InputError, match="--search is for --purpose search, got topics"):
        StartConfig(notes, search="my-search", purpose="topics")
