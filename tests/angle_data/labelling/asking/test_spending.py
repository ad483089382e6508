"""What a finished run says about its tokens and money: to people, with --json, and to Python."""

import json
import subprocess
import sys

import pytest
from fake_openai import FakeOpenAI, completion, numbered_reply
from labelling_runs import run_json, write_texts

import angle_data

# Each reply of the fake server reports 10 and 5 tokens; two requests a text.
TOLD = "60 tokens (40 of prompts, 20 of replies)"


def uncounted(body):
    return {name: part for name, part in completion(body, numbered_reply(body)).items() if name != "usage"}


def ask(tmp_path, server, *options):
    command = ("llm-label", "--model", "tiny", "--texts", tmp_path / "texts.jsonl", "--out", tmp_path / "run")
    command += ("--base-url", server.url, "--prompts", "paper", *options)
    program = [sys.executable, "-c", "from angle_data.cli import main; main()"]
    done = subprocess.run([*program, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("options", "money", "usd"),
    [
        ((), "price unknown: --price IN,OUT gives it", None),
        (("--price", "1000,100"), "0.0420 USD", 0.042),
    ],
)
def test_a_finished_run_says_what_it_took_in_all(tmp_path, options, money, usd):
    write_texts(tmp_path, 2)
    with FakeOpenAI() as server:
        assert ask(tmp_path, server, *options).splitlines()[-2] == f"spent in all: {TOLD}, {money}"
        # A run that finds everything in the journal has taken no more.
        counts = json.loads(ask(tmp_path, server, "--json", *options))
        assert len(server.seen) == 4
    assert counts["tokens"] == run_json(tmp_path)["tokens"] | {"estimated_tokens": 0}
    assert (counts["tokens"]["total_tokens"], counts["usd"]) == (60, usd)


def test_tokens_that_the_service_does_not_count_are_called_estimated(tmp_path):
    write_texts(tmp_path, 2)
    with FakeOpenAI(uncounted) as server:
        said = ask(tmp_path, server, "--price", "1,1").splitlines()[-2]
    assert "; estimated, the service does not count them), about 0.0" in said


def test_python_has_the_same_counts_also_where_only_some_tokens_are_counted(tmp_path):
    write_texts(tmp_path, 2)
    answers = iter([uncounted] + [lambda body: completion(body, numbered_reply(body))] * 3)
    with FakeOpenAI(lambda body: next(answers)(body)) as server:
        run = angle_data.label(
            tmp_path / "texts.jsonl", model="tiny", out=tmp_path / "run", base_url=server.url, prompts="paper"
        )
        assert "of them estimated, the service does not count them), price unknown" in ask(tmp_path, server)
    tokens = run.counts["tokens"]
    assert 0 < tokens["estimated_tokens"] == tokens["total_tokens"] - 45
    assert run.counts["usd"] is None
