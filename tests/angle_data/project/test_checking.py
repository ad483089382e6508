"""Before anything is asked, every step of a project is looked at; `status` says what is to be mended."""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Fault
from programs import run_here
from test_docs_commands import reply
from typer.testing import CliRunner

from angle_data import Project
from angle_data.cli import app, main
from angle_data.errors import AngleError, AnnotatorError, InputError
from angle_train.given import look_at_section

PRICE = "0.15,0.60"


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    """A folder with 6 notes, and a key of OpenAI's alone."""
    with (tmp_path / "notes.csv").open("w", newline="") as stream:
        rows = [(n, 10_000_000_000 + n, f"Disk {n} of the primary is full.") for n in range(6)]
        csv.writer(stream).writerows([("nr", "phone", "note"), *rows])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def server():
    with FakeOpenAI(reply, usage=lambda body: (1000, 1000)) as server:
        yield server


def start(server, **options):
    given = {"purpose": "opposites", "model": "writer", "base_url": server.url, "price": PRICE}
    return Project.start("notes.csv", **given | options)


def edited(project, old, new):
    """The project with a part of its angle.toml replaced."""
    path = project.folder / "angle.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return Project(project.folder)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pairs-per-call = 10", "pairs-per-call = 500", "[llm-score] --pairs-per-call must be from 1 to 50"),
        ("n = 150", 'n = "many"', "[grade] --n must be of type int, got 'many'"),
        ('[ensemble]\n', '[ensemble]\nlabels = "odd"\n', "[ensemble] unknown labels 'odd'; choose"),
        ('prompts = "contrast"', 'prompts = "contarst"', "[llm-label.contrast] --prompts contarst: neither"),
        ('prompts = "contrast"', 'prompts = "degrees"\nsize = 2', "[llm-label.contrast] --size is for"),
        ('purpose = "opposites"\npairs', 'purpose = "opposite"\npairs', "[llm-score] --purpose must be one"),
        ('purpose = "opposites"\npairs', 'prompt = "none.txt"\npairs', "[llm-score] none.txt"),
        ('scores = ["runs/grades"]', 'scores = ["runs/grade"]', "[ensemble] scores: runs/grade is not there"),
        ('text-field = "note"', 'text-field = "nosuch"', "[llm-label.structured] "),
        ('model = "reader"', 'model = "reader"\nengine = "magic"', "[llm-score] unknown engine 'magic'"),
        ('out = "runs/pairs"', 'out = "angle.toml/pairs"', "[ensemble] out: angle.toml/pairs is below"),
        ('out = "runs/grades"', 'out = "angle.toml"', "[llm-score] out: angle.toml is a file or"),
        ('out = "grades.csv"', 'out = "angle.toml/g.csv"', "[grade] out: angle.toml/g.csv is below"),
    ],
)  # fmt: skip
def test_a_wrong_value_of_a_later_step_stops_before_the_first_request(server, old, new, said):
    project = edited(start(server, grader="reader"), old, new)
    place = f"{project.folder / 'angle.toml'}: {said}"
    for step in (project.pilot, project.run):
        with pytest.raises(InputError) as raised:
            step()
        assert str(raised.value).startswith(place)
        assert "\n" not in str(raised.value)
    assert not server.seen
    status = project.status()
    assert str(raised.value) in [said for name, said in status.rows if name == "mend"]
    assert status.next == "mend that, then angle-data pilot"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("drop-leaks = true", "drop-leaks = true\nepoch = 3", " has no option 'epoch'; did you mean epochs?"),
        ("drop-leaks = true", 'epochs = "three"', " --epochs must be of type float, got 'three'"),
        ("drop-leaks = true", "epochs = 0", " --epochs: must be greater than 0, got 0"),
        ("drop-leaks = true", 'drop-leaks = "yes"', " --drop-leaks must be of type bool, got 'yes'"),
        ("drop-leaks = true", 'max-seq-length = "long"', " --max-seq-length: must be"),
        ("drop-leaks = true", 'recipe = "oposites"', " no recipe is called 'oposites', did you mean 'opp"),
        ("drop-leaks = true", 'set = "batch_sise=1"', " unknown recipe key 'batch_sise', did you mean"),
        ("drop-leaks = true", 'set = "weight_decay=1"', " weight_decay moved: write weight_decay"),
        ("drop-leaks = true", 'set = "arguments.adam_beta=1"', " [arguments] unknown argument 'adam_b"),
        ("drop-leaks = true", 'set = ["arguments.weight_decay=much"]', " [arguments] weight_decay: Input"),
        ("drop-leaks = true", 'scale = "5"', " scale '5' must be LOW-HIGH"),
        ("drop-leaks = true", 'device = "gpu"', " --device must be cpu, cuda or mps, got 'gpu'"),
        ('data = ["runs/pairs"]\n', "", ' names nothing to train on; add data = ["runs/pairs"]'),
        ('data = ["runs/pairs"]\n', 'data = ["runs/pears"]\n', " data: runs/pears is not there"),
        ('"grades-dev.csv"', '"grade-dev.csv"', " dev: grade-dev.csv is not there"),
        ("drop-leaks = true", 'judged = "runs/judged"', " judged: runs/judged is not there"),
        ("backbone =", "back-bone =", " has no option 'back-bone'; did you mean backbone?"),
        ("backbone = \"sentence-transformers/all-MiniLM-L6-v2\"\n", "", " lacks backbone; add it"),
        ('"sentence-transformers/all-MiniLM-L6-v2"', '"./none"', " model directory ./none does not exist"),
    ],
)  # fmt: skip
def test_a_wrong_value_of_the_training_stops_before_the_first_request(server, old, new, said):
    project = edited(start(server), old, new)
    for step in (project.pilot, project.run):
        with pytest.raises(InputError) as raised:
            step()
        assert str(raised.value).startswith(f"{project.folder / 'angle.toml'}: [fit]{said}")
        assert "\n" not in str(raised.value)
    assert not server.seen
    status = project.status()
    assert [said for name, said in status.rows if name == "mend"] == [str(raised.value)]
    assert status.next == "mend that, then angle-data pilot"


@pytest.mark.parametrize(
    "line",
    [
        'max-seq-length = "auto"',
        "epochs = 3",
        'set = "arguments.weight_decay=0.1"',
        'keep = "hub:a/b"',
        "seed = 1\nroles = true",
        'epochs = "0.5"\nbatch-size = "16"',
        "query-prompt = 1\ndocument-prompt = 2.5",
    ],
)
def test_options_of_the_training_that_are_right_are_no_problem(server, line):
    project = edited(start(server), "drop-leaks = true", line)
    assert "mend" not in str(project.status())


def test_the_training_may_name_files_in_the_home_folder(tmp_path, monkeypatch, tiny_model_dir):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "my.toml").write_text("[training]\nepochs = 2\n")
    (tmp_path / "model").symlink_to(tiny_model_dir)
    section = {"data": ["runs/pairs"], "recipe": "~/my.toml", "backbone": "~/model", "out": "~/out"}
    assert look_at_section(section, "[fit]") == ([], [("data", "runs/pairs")])
    (tmp_path / "out").write_text("")
    (error,), _ = look_at_section(section, "[fit]")
    assert re.match(r"\[fit\] --out .*out is a file", str(error))


def test_a_training_loads_no_torch_to_be_checked(server):
    """`angle-data` works without torch; a process of its own says what looking at a project loads."""
    project = start(server)
    code = (
        "import sys; from angle_data import Project; said = str(Project(sys.argv[1]).status()); "
        "assert 'angle_train.given' in sys.modules; "
        "print([n for n in ('torch', 'transformers', 'sentence_transformers') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(project.folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_backbone_that_is_not_there_is_refused_before_a_project_is_made():
    done = run_here(main, "start", "notes.csv", "--yes", "--backbone", "./none")
    assert done.returncode == 1
    assert "[fit] model directory ./none does not exist; check the path" in done.stderr
    assert not Path("notes").exists()


def test_a_backbone_that_cannot_be_fetched_is_said_before_anything_is_asked(server, caplog, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    project = start(server, backbone="nobody/no-model")
    with caplog.at_level("WARNING"):
        project.status()
    said = (
        "nobody/no-model is not in the cache, and HF_HUB_OFFLINE forbids to fetch it: fit will need backbone"
    )
    assert said in caplog.text
    caplog.clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    project.status()
    assert "nobody/no-model" not in caplog.text


def test_a_model_or_key_of_a_later_step_that_is_missing_stops_before_the_first_request(server):
    project = start(server, grader="reader")
    url = f'base-url = "{server.url}"\n'
    path = project.folder / "angle.toml"
    before, section, after = path.read_text().partition("[llm-score]")
    for model, said in (
        ("reader", "[llm-score] --model 'reader' does not say where to ask"),
        ("claude-x", "[llm-score] no API key: set the environment variable ANTHROPIC_API_KEY"),
    ):
        path.write_text(before + section + after.replace(url, "").replace('"reader"', f'"{model}"'))
        project = Project(project.folder)
        with pytest.raises(AngleError) as raised:
            project.run()
        assert said in str(raised.value)
        assert said in str(project.status())
    assert not server.seen


def test_a_project_whose_steps_can_be_taken_has_nothing_to_mend(server, monkeypatch):
    project = edited(start(server, grader="reader"), '"writer"', '"writer"\napi-key-env = "MY_KEY"')
    assert "set the environment variable MY_KEY" in str(project.status())
    monkeypatch.setenv("MY_KEY", "a-key-of-mine")
    assert [name for name, _ in project.status().rows if name == "mend"] == []
    assert project.status().next == "angle-data pilot"
    # What is done needs no key any more.
    project.run()
    monkeypatch.delenv("MY_KEY")
    assert "mend" not in str(project.status())


def test_a_moved_project_is_told_that_its_texts_are_missing(server, tmp_path):
    project = start(server)
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    shutil.move(project.folder, tmp_path / "elsewhere/deep/notes")
    done = run_here(main, "status", "--project", "elsewhere/deep/notes")
    assert done.returncode == 0, done.stderr
    assert "[llm-label.structured] texts: ../notes.csv is not there" in done.stdout
    assert "mend that, then angle-data pilot" in done.stdout
    with pytest.raises(InputError, match="was the project moved"):
        Project("elsewhere/deep/notes").pilot()


def test_after_a_pilot_that_was_of_no_use_status_does_not_say_run(tmp_path):
    with FakeOpenAI(lambda body: "I cannot help with that.") as server:
        project = start(server)
        with pytest.raises(AnnotatorError):
            project.pilot(3)
    assert project.status().next.startswith("angle-data show runs/structured; no reply there was of use")


def test_after_a_pilot_that_failed_the_pilot_comes_again(tmp_path):
    with FakeOpenAI(reply, always=Fault(401, message="no")) as server:
        project = start(server)
        with pytest.raises(AnnotatorError):
            project.pilot(3)
    assert (project.folder / "runs/structured/run.json").exists()
    assert project.status().next == "angle-data pilot"


def test_a_price_that_is_not_known_is_taken_by_pilot_and_run(server, monkeypatch):
    project = start(server, price=None)
    monkeypatch.chdir(project.folder)
    refused = run_here(main, "run", "--max-usd", "2")
    assert refused.returncode == 1
    assert "needs a price, and that of 'writer'" in refused.stderr
    assert (
        'give --price IN,OUT (USD per million tokens), or write price = "IN,OUT" below [llm-label'
        in refused.stderr
    )
    assert not server.seen
    wrong = run_here(main, "pilot", "--price", "cheap")
    assert "--price 'cheap': give two prices" in wrong.stderr
    pilot = run_here(main, "pilot", "--n", "2", "--price", PRICE)
    assert pilot.returncode == 0, pilot.stderr
    assert "--price 0.15,0.6 " in pilot.stderr
    assert pilot.stderr.count("texts go to") == 2  # the pilots of two runs
    assert "angle-data run --max-usd 2" in pilot.stdout
    # The price that the pilot was told counts for its runs from then on, and for others of the same model.
    Path("runs/contrast/run.json").unlink()
    done = run_here(main, "run", "--max-usd", "2")
    assert done.returncode == 0, done.stderr
    run = json.loads(Path("runs/contrast/run.json").read_text())
    assert run["usd_per_million"] == {"input": 0.15, "output": 0.60}
    assert project.status().usd == pytest.approx(len(server.seen) * 0.75 * 1000 / 1e6)


def test_a_price_is_that_of_a_model_at_an_address(server, monkeypatch):
    project = start(server, price=None)
    monkeypatch.chdir(project.folder)
    assert run_here(main, "pilot", "--n", "2", "--price", PRICE).returncode == 0
    Path("runs/contrast/run.json").unlink()
    run = Path("runs/structured/run.json")
    found = json.loads(run.read_text())
    for other in ({"base_urls": ["http://elsewhere/v1"]}, {"checkpoint": "larger"}, {"engine": "batch"}):
        run.write_text(json.dumps(found | other))
        refused = run_here(main, "run", "--max-usd", "2")
        assert "needs a price, and that of 'writer'" in refused.stderr, other


def test_a_server_that_refuses_is_no_matter_of_the_order_of_steps(monkeypatch):
    with FakeOpenAI(reply, always=Fault(401, message="no")) as server:
        monkeypatch.chdir(start(server).folder)
        refused = run_here(main, "pilot", "--n", "2")
    assert refused.returncode == 1
    assert "refuses access" in refused.stderr
    assert "says what comes first" not in refused.stderr


def test_a_price_in_angle_toml_or_of_the_toolkit_counts_more(server):
    project = start(server)  # with a price
    project.run(price=(9, 9))
    run = json.loads((project.folder / "runs/contrast/run.json").read_text())
    assert run["usd_per_million"] == {"input": 0.15, "output": 0.60}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("text_feild", "did you mean text_field"),
        ("grade", "did you mean grader"),
        ("colum", "it has text_field, pu"),
    ],
)
def test_an_unknown_keyword_of_start_is_named_with_the_nearest(name, said):
    with pytest.raises(TypeError, match=rf"Project.start\(\) has no option '{name}'; {said}"):
        Project.start("notes.csv", **{name: "note"})
    assert not Path("notes").exists()


def test_a_column_of_numbers_holds_no_texts():
    with pytest.raises(InputError, match=r"column 'phone' holds numbers \(10000000000, .*--text-field"):
        Project.start("notes.csv", text_field="phone", purpose="topics")
    assert not Path("notes").exists()
    rows = Path("notes.csv").read_text().replace("Disk", "1").replace(" of the primary is full.", "")
    Path("short.csv").write_text(rows.replace("note", "when", 1).replace("1 3", "Disk 3"))
    # What is proposed is a column with texts, though ids are longer.
    project = Project.start("short.csv", purpose="topics", model="gpt-4o")
    assert project.options_of("llm-label")["text_field"] == "when"


def test_an_unknown_purpose_is_named_with_those_there_are():
    done = run_here(main, "start", "notes.csv", "--purpose", "nosuch", "--yes")
    assert done.returncode == 1
    assert "--purpose must be opposites or topics or search, got 'nosuch'" in done.stderr


def test_a_model_that_says_not_where_to_ask_is_asked_for_again(monkeypatch):
    monkeypatch.setattr("angle_data.project.command.in_terminal", lambda: True)
    done = CliRunner().invoke(app, ["start", "notes.csv"], input="note\ny\nmy-model\nclaude-x\n")
    assert done.exit_code == 0, done.output
    assert "'my-model' does not say where to ask" in done.output
    assert Project("notes").options_of("llm-label")["model"] == "claude-x"
    with pytest.raises(InputError, match="'reader' does not say where to ask"):
        Project.start("notes.csv", purpose="topics", model="gpt-4o", grader="reader", out="other")
    assert not Path("other").exists()
