"""RESULTS.md is up to date, its results are complete, and the commands of results and log run at HEAD.

A command is parsed by the parser of its own script, which then stops before any work. One that names a script
at a commit is left alone.
"""

import argparse
import gzip
import hashlib
import json
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import typer

from angle_data.cli import app as data_app
from angle_data.errors import InputError
from angle_train.cli import app as train_app
from angle_train.evaluation.task import expand_names
from angle_train.recipe import parse_settings

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGES = sorted(
    [*(BENCHMARKS / "log").glob("*.md"), *BENCHMARKS.glob("*.md"), *(BENCHMARKS / "labelling").glob("*.md")]
)
PROGRAMS = {"angle-train": typer.main.get_command(train_app), "angle-data": typer.main.get_command(data_app)}
AT_A_COMMIT = re.compile(r"[0-9a-f]{7,8}:benchmarks/\S+\.py")
SCRIPT = re.compile(r"(?:python )?(benchmarks/\S+\.py|[\w/]+\.py(?= -))")

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(BENCHMARKS)
    import llm_supervised
    import results as generator
    import stsb_replies

    patch.syspath_prepend(BENCHMARKS / "papers")
    from tasks import tasks_of

RESULTS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in generator.FOLDER.glob("*.json")
}


class Parsed(Exception):
    """A script has read its options."""


def check(command, monkeypatch):
    """Parse a command as the program that it names would, and run nothing."""
    program, *arguments = shlex.split(command)
    if AT_A_COMMIT.match(program):
        return  # a script as it was at that commit
    if program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = [word for word in arguments if "=" not in word]
        assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets), command
        scripts = "".join(file.read_text(encoding="utf-8") for file in ROOT.glob("examples/*/*.sh"))
        for name, _, _ in (word.partition("=") for word in arguments if "=" in word):
            assert re.search(rf"^{name} \?=", makefile, re.M) or f"${{{name}:-" in scripts, command
    elif program in PROGRAMS:
        context = PROGRAMS[program].commands[arguments[0]].make_context(arguments[0], arguments[1:])
        expand_names(without_placeholders(context.params.get("task") or []))
    else:
        script, *options = arguments if program == "python" else [program, *arguments]
        assert (ROOT / script).is_file(), f"{command}: no such script"
        check_script(ROOT / script, options, monkeypatch)


def without_placeholders(names):
    """What stands for a name of the reader's own is in capitals."""
    return [name for name in names if not name.isupper()]


def check_script(path, options, monkeypatch):
    """Run a script up to the point at which its options are parsed; one that takes none is only compiled."""
    source = path.read_text(encoding="utf-8")
    if "parse_args(" not in source and "parser(" not in source:
        assert not options, f"{path.name} takes no options"
        compile(source, str(path), "exec")
        return
    parse = argparse.ArgumentParser.parse_args

    def stop(parser, *arguments, **named):
        raise Parsed(parse(parser, *arguments, **named))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(sys, "argv", [str(path), *options])
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.syspath_prepend(BENCHMARKS)
    with pytest.raises(Parsed) as parsed:
        runpy.run_path(str(path), run_name="__main__")
    options_given = parsed.value.args[0]
    parse_settings(getattr(options_given, "set", None) or [])
    if path.parent.name == "papers" and isinstance(tasks := getattr(options_given, "task", None), list):
        tasks_of(without_placeholders(tasks))


def commands_of(page):
    """Return the commands that a page names, without those of scripts as they were at a commit."""
    text = page.read_text(encoding="utf-8")
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    blocks = re.findall(r"^```bash\n(.*?)^```$", text, re.M | re.S)
    spans += [line for block in blocks for line in block.splitlines()]
    found = [span for span in spans if SCRIPT.match(span) or span.startswith("angle-train eval ")]
    return [span for span in found if not AT_A_COMMIT.match(span)]


@pytest.mark.parametrize("command", ["angle-train eval", "python benchmarks/papers/measure.py"])
def test_a_command_with_an_unknown_task_is_noticed(command, monkeypatch):
    check(f"{command} --model M --task stsb", monkeypatch)
    with pytest.raises(InputError, match="mrcp"):
        check(f"{command} --model M --task mrcp", monkeypatch)


def test_the_page_is_what_the_results_make():
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(generator.load())


@pytest.mark.parametrize("field", sorted(generator.FIELDS))
def test_a_result_without_a_field_is_refused(field):
    whole = next(iter(RESULTS.values()))
    assert generator.problems(whole) == []
    found = generator.problems({name: value for name, value in whole.items() if name != field})
    assert f"no field {field}" in found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"commit": ""}, "commit is empty"),
        ({"seeds": 3}, "seeds has a wrong type"),
        ({"figures": [{"name": "STS-B", "value": "82", "spread": ""}]}, "is not an object of"),
        ({"group": "Other"}, "group is none of"),
        ({"commands": [], "caveat": ""}, "caveat must say so"),
        ({"cost": 1}, "unknown field cost"),
    ],
)
def test_a_wrong_result_is_refused(change, problem):
    assert problem in "\n".join(generator.problems({**next(iter(RESULTS.values())), **change}))


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_the_commands_of_a_result_run_here(name, monkeypatch):
    for command in RESULTS[name]["commands"]:
        check(command, monkeypatch)


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_a_result_leads_to_its_page_and_is_quoted_where_it_says(name):
    result = RESULTS[name]
    assert (BENCHMARKS / "log" / f"{result['log']}.md").is_file()
    for page in result["rests_on_it"]:
        assert f"RESULTS.md#{name})" in (ROOT / page).read_text(encoding="utf-8"), page


@pytest.mark.parametrize("page", [p for p in PAGES if commands_of(p)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_here(page, monkeypatch):
    for command in commands_of(page):
        with monkeypatch.context() as patch:
            check(command, patch)


def test_every_page_of_the_log_says_question_rule_and_decision_and_is_in_the_index():
    index = (BENCHMARKS / "log" / "README.md").read_text(encoding="utf-8")
    for page in (BENCHMARKS / "log").glob("*.md"):
        if page.name != "README.md":
            text = page.read_text(encoding="utf-8")
            assert all(f"**{part}.** " in text for part in ("Question", "Rule", "Decision")), page.name
            assert f"]({page.name})" in index, page.name


def test_replies_are_put_together_with_their_texts(monkeypatch, tmp_path):
    texts = [{"sentence1": "A dog runs."}, {"sentence1": "Cats sleep. "}]
    with gzip.open(tmp_path / "train.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in texts)
    stored = tmp_path / "stored"
    stored.mkdir()
    digest = hashlib.sha256(b"Cats sleep.").hexdigest()[:12]
    files = {
        "texts": {"id": "7", "row": 1, "sha256": digest},
        "annotator-d": {"id": "7", "reply": {"5": "Yes: <Text>", "4": "So, <text>"}},
        "grader-e": {"one": "7:d4", "other": "7:text", "kind": "degrees", "score": 4.0},
    }
    files |= {
        f"annotator-{name}": {"id": "7", "polarity": "synonym", "reply": "<Text> Indeed."} for name in "abc"
    }
    for name, row in files.items():
        (stored / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.setattr(stsb_replies, "STORED", stored)
    home = stsb_replies.restore(tmp_path / "train.jsonl.gz", tmp_path / "home")
    assert stsb_replies.rows_of(home / "annotator-b.jsonl")[0]["reply"] == "Cats sleep. Indeed."
    grade = stsb_replies.rows_of(home / "grader-e.jsonl")[0]
    assert (grade["text1"], grade["text2"], grade["score"]) == ("So, cats sleep.", "Cats sleep.", 4.0)
    files["texts"]["row"] = 0
    (stored / "texts.jsonl").write_text(json.dumps(files["texts"]) + "\n")
    with pytest.raises(SystemExit, match="not the sentence that the replies answer"):
        stsb_replies.restore(tmp_path / "train.jsonl.gz", tmp_path / "home")


def test_a_data_set_that_a_script_does_not_know_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(llm_supervised, "data_sets", lambda task: {"degrees": Path("degrees")})
    monkeypatch.setattr(sys, "argv", ["llm_supervised.py", "cloud-ops", "--only", "degrees", "degree"])
    with pytest.raises(SystemExit):
        llm_supervised.main()
    assert "--only degree: cloud-ops has degrees" in capsys.readouterr().err
