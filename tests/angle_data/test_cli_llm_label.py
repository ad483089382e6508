"""`angle-data llm-label` as its users meet it: tables, JSON, exit codes, and one-line errors."""

import json
import socket
import subprocess
import sys

import pytest
from fake_openai import FakeOpenAI, Fault


def angle_data(*arguments, env=None):
    program = "from angle_data.cli import main; main()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=120)


def recorded(examples, name, out, *more):
    return angle_data(
        "llm-label", "--model", name, "--engine", "recorded", "--replies", examples / f"replies/{name}.jsonl",
        "--texts", examples / "texts.jsonl", "--out", out, *more,
    )  # fmt: skip


def test_recorded_replies_of_the_demo(examples, tmp_path):
    done = recorded(examples, "annotator-c", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    table = {
        line.rsplit(None, 1)[0].strip(): line.rsplit(None, 1)[1] for line in done.stdout.splitlines()[:-1]
    }
    assert table["requests"] == table["asked"] == table["replied"] == "720"
    assert table["kept"] == "1,358"
    assert table["rejected: refusal"] == "7"
    assert done.stdout.splitlines()[-1] == f"annotator-c -> {tmp_path / 'run'}"
    first = json.loads((tmp_path / "run" / "candidates.jsonl").read_text().splitlines()[0])
    assert list(first) == ["source_id", "source", "polarity", "text", "model", "key"]
    again = recorded(examples, "annotator-c", tmp_path / "run", "--json", "--quiet")
    assert json.loads(again.stdout)["from_journal"] == 720
    assert again.stderr == ""


def test_dry_run_counts_and_writes_nothing(examples, tmp_path):
    done = recorded(examples, "annotator-a", tmp_path / "run", "--dry-run", "--limit", 10, "--json")
    assert json.loads(done.stdout) == {
        "requests": 20,
        "from_journal": 0,
        "blank": 0,
        "repeated": 0,
        "to_ask": 20,
    }
    assert not (tmp_path / "run").exists()
    plain = recorded(examples, "annotator-a", tmp_path / "run", "--dry-run", "--polarity", "synonym")
    assert plain.stdout.splitlines()[0].split() == ["requests", "360"]


def test_blank_texts_are_reported_once(tmp_path):
    (tmp_path / "texts.txt").write_text("One node left.\n\n \nTwo nodes left.\n")
    with FakeOpenAI() as server:
        done = angle_data(
            "llm-label", "--model", "m", "--base-url", server.url, "--texts", tmp_path / "texts.txt",
            "--out", tmp_path / "run",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("2 blank texts skipped") == 1


def test_verbose_names_every_failure_and_quiet_only_their_number(tmp_path, texts):
    options = [
        "llm-label",
        "--model",
        "m",
        "--texts",
        texts,
        "--out",
        tmp_path / "run",
        "--polarity",
        "synonym",
    ]
    with FakeOpenAI(always=Fault(400, message="too long")) as server:
        loud = angle_data(*options, "--base-url", server.url, "--verbose")
        quiet = angle_data(*options, "--base-url", server.url, "--quiet")
    assert "a, synonym: http_400: too long" in loud.stderr
    assert quiet.stderr == "1 requests failed; run the same command again to ask them again\n"
    assert "failed: http 400" in quiet.stdout


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "a", "text": "One node left."}\n')
    return path


def fails(tmp_path, texts, *more, env=None):
    """The one line a failing command prints."""
    done = angle_data("llm-label", "--texts", texts, "--out", tmp_path / "run", "--quiet", *more, env=env)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.strip()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "gpt9"], "unknown model 'gpt9'; known: chatglm, chatgpt, llama."),
        (["--model", "llama"], "start `vllm serve"),
        (["--model", "chatgpt", "--api-key-env", "NO_SUCH_KEY"], "set the environment variable NO_SUCH_KEY"),
        (
            ["--model", "chatgpt", "--engine", "offline"],
            "unknown engine 'offline'; known: auto, recorded, server",
        ),
        (
            ["--model", "chatgpt", "--prompts", "nice"],
            "--prompts nice: neither a folder nor a built-in prompt set",
        ),
        (["--model", "chatgpt", "--size", "0"], "--size must be at least 1, got 0"),
        (["--model", "x", "--replies", "nothing.jsonl"], "nothing.jsonl does not exist; check --replies"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, texts, options, message):
    line = fails(tmp_path, texts, *options)
    assert line.startswith("angle-data: error: ")
    assert message in line


def test_a_rejected_key_is_one_line_without_the_key(tmp_path, texts, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-wrong-123456")
    with FakeOpenAI(key="sk-right") as server:
        line = fails(tmp_path, texts, "--model", "m", "--base-url", server.url, "--api-key-env", "MY_KEY")
    assert line == (
        f"angle-data: error: {server.url} rejects the API key in MY_KEY (HTTP 401); set MY_KEY to a valid key"
    )


def test_an_unreachable_server_is_one_line(tmp_path, texts):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    line = fails(tmp_path, texts, "--model", "m", "--base-url", url)
    assert f"cannot reach {url}" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist; check the path"),
        ("", "holds no texts; give a file with at least one"),
        ('{"text": "One."}\n{"text"\n', "texts.jsonl:2: not valid JSON"),
    ],
)
def test_bad_texts_are_one_line(tmp_path, texts, content, message):
    texts.unlink() if content is None else texts.write_text(content)
    line = fails(tmp_path, texts, "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert message in line


def test_an_unknown_option_is_a_usage_error(tmp_path, texts):
    done = angle_data("llm-label", "--modle", "m")
    assert done.returncode == 2
