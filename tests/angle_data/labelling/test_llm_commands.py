"""`angle-data llm-label` as its users meet it: tables, JSON, exit codes, and one-line errors."""

import io
import json
import socket
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest
from fake_openai import FakeOpenAI, Fault

from angle_data.cli import main


@dataclass
class Done:
    """What a command left behind, as `subprocess.run` has it."""

    returncode: int
    stdout: str
    stderr: str


def angle_data(*arguments):
    """Run the program in this process, which spares the start of another."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["angle-data", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
    return Done(stop.value.code or 0, out.getvalue(), err.getvalue())


def test_a_sigterm_while_the_candidates_are_written_is_an_interrupt(examples, tmp_path):
    """The asking catches signals in its own way, and must leave them as it found them."""
    program = (
        "import os, signal\n"
        "from angle_data.cli import main\n"
        "from angle_data.labelling.label import LabelJob\n"
        "class Stopped(LabelJob):\n"
        "    def derive(self, replies):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        return super().derive(replies)\n"
        "import angle_data.labelling.label as label\n"
        "label.LabelJob = Stopped\n"
        "main()\n"
    )
    options = ["--replies", examples / "replies/annotator-a.jsonl", "--texts", examples / "texts.jsonl"]
    options += ["--model", "annotator-a", "--out", tmp_path / "run", "--limit", 3]
    command = [sys.executable, "-c", program, "llm-label", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 130
    assert done.stderr.endswith("angle-data: interrupted; everything so far is kept\n")
    assert len((tmp_path / "run/journal.jsonl").read_text().splitlines()) == 6
    assert json.loads((tmp_path / "run/run.json").read_text())["finished"] is False


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


def test_quiet_prints_no_table_and_still_the_json(examples, tmp_path):
    for more, shown in (
        (["--dry-run"], False),
        (["--dry-run", "--json"], True),
        ([], False),
        (["--json"], True),
    ):
        done = recorded(examples, "annotator-a", tmp_path / "run", "--limit", 3, "--quiet", *more)
        assert (done.returncode, bool(done.stdout), done.stderr) == (0, shown, "")
        pairs = tmp_path / "run/candidates.jsonl"
        if pairs.exists():
            options = [
                "--model",
                "m",
                "--base-url",
                "http://h/v1",
                "--pairs",
                pairs,
                "--out",
                tmp_path / "scores",
            ]
            done = angle_data("llm-score", *options, "--dry-run", "--quiet", *more)
            assert (done.returncode, bool(done.stdout)) == (0, shown)


def test_dry_run_counts_and_writes_nothing(examples, tmp_path):
    done = recorded(examples, "annotator-a", tmp_path / "run", "--dry-run", "--limit", 10, "--json")
    plan = json.loads(done.stdout)
    assert {name: plan[name] for name in ("requests", "from_journal", "blank", "repeated", "to_ask")} == {
        "requests": 20,
        "from_journal": 0,
        "blank": 0,
        "repeated": 0,
        "to_ask": 20,
    }
    assert (plan["usd"], plan["counted_by"]) == (None, "an estimate by characters")
    assert not (tmp_path / "run").exists()
    plain = recorded(examples, "annotator-a", tmp_path / "run", "--dry-run", "--polarity", "synonym")
    assert plain.stdout.splitlines()[0].split() == ["requests", "360"]
    assert plain.stdout.splitlines()[-1] == "source of the token counts: an estimate by characters"
    assert "cost" not in plain.stdout


def test_texts_without_a_recorded_reply_are_a_warning_unless_there_is_none_at_all(tmp_path, texts):
    def run(name, text):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(
            json.dumps({"text": text, "polarity": "synonym", "reply": "1. It left.\n2. Gone."}) + "\n"
        )
        return angle_data(
            "llm-label", "--model", "m", "--replies", path, "--texts", texts, "--out", tmp_path / name
        )

    some, none = run("some", "One node left."), run("none", "Two nodes left.")
    assert (some.returncode, none.returncode) == (0, 1)
    assert "1 request without a recorded reply\n" in some.stderr
    assert json.loads((tmp_path / "some/run.json").read_text())["finished"] is True
    assert "every request failed (2), most with not_recorded: no recorded" in none.stderr


def test_a_dry_run_of_a_public_model_forecasts_its_cost_without_a_key(tmp_path, texts):
    done = angle_data(
        "llm-label", "--model", "chatgpt", "--texts", texts, "--out", tmp_path / "run", "--dry-run",
        "--usd-per-million", "1000,0",
    )  # fmt: skip
    tokens = int(next(line.split()[-1] for line in done.stdout.splitlines() if "prompt tokens" in line))
    assert f"about {tokens / 1000:.4f} USD" in done.stdout
    assert 50 < tokens < 200


@pytest.mark.parametrize("where", [[], ["--base-url", "http://127.0.0.1:9/v1"]])
def test_a_dry_run_needs_no_address_and_says_what_is_missing_for_a_price(tmp_path, texts, where):
    options = ["--model", "some-model", "--texts", texts, "--out", tmp_path / "run", "--dry-run", *where]
    done = angle_data("llm-label", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == [
        "cost unknown: give --usd-per-million IN,OUT",
        "source of the token counts: an estimate by characters",
    ]


def test_options_reach_the_run(tmp_path, texts):
    """Every option of the asking that is not checked elsewhere, as run.json and the requests show it."""
    with FakeOpenAI() as one, FakeOpenAI() as other:
        done = angle_data(
            "llm-label", "--model", "m", "--base-url", one.url, "--base-url", other.url, "--texts", texts,
            "--out", tmp_path / "run", "--shard", "1/1", "--checkpoint", "big", "--temperature", "0.25",
            "--seed", "3", "--max-tokens", "99", "--max-usd", "5", "--usd-per-million", "1,2",
            "--max-tokens-total", "100000", "--requests-per-minute", "6000", "--tokens-per-minute", "1000000",
        )  # fmt: skip
        bodies = [seen.body for seen in (*one.seen, *other.seen)]
    assert done.returncode == 0, done.stderr
    settings = json.loads((tmp_path / "run/run.json").read_text())
    assert (settings["shard"], settings["checkpoint"], settings["base_urls"]) == (
        "1/1",
        "big",
        [one.url, other.url],
    )
    assert settings["usd"] == pytest.approx(2 * (10 * 1 + 5 * 2) / 1e6)
    assert len(bodies) == 2
    for body in bodies:
        assert (body["model"], body["temperature"], body["seed"], body["max_tokens"]) == ("big", 0.25, 3, 99)


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
    assert quiet.stderr == "angle-data: error: every request failed (1), most with http_400: too long\n"


def test_some_failures_are_exit_75_and_the_rest_is_written(tmp_path):
    (tmp_path / "texts.txt").write_text("One node left.\nTwo nodes left.\n")
    command = [
        "llm-label",
        "--model",
        "m",
        "--texts",
        tmp_path / "texts.txt",
        "--out",
        tmp_path / "run",
        "--quiet",
    ]
    broken = Fault(500, {"retry-after-ms": "5"}, message="out of memory")
    with FakeOpenAI(faults=[broken] * 6) as server:
        command += ["--concurrency", 1]
        first = angle_data(*command, "--base-url", server.url)
        second = angle_data(*command, "--base-url", server.url)
    assert (first.returncode, second.returncode) == (75, 0)
    assert first.stderr == (
        "angle-data: 1 request failed, with http_500: out of memory; run the same command again to ask it "
        "again\n"
    )


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "a", "text": "One node left."}\n')
    return path


def fails(tmp_path, texts, *more):
    """The one line a failing command prints."""
    done = angle_data("llm-label", "--texts", texts, "--out", tmp_path / "run", "--quiet", *more)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.strip()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "gpt9"], "unknown model 'gpt9'; known: chatglm, chatgpt, llama."),
        (["--model", "chatgpt", "--api-key-env", "NO_SUCH_KEY"], "set the environment variable NO_SUCH_KEY"),
        (["--model", "chatgpt", "--engine", "offline"], "'chatgpt' cannot be loaded here"),
        (["--model", "m", "--base-url", "http://"], "--base-url 'http://' names no host"),
        (["--model", "chatgpt", "--shard", "3"], "--shard '3': give I/N, such as 1/8"),
        (["--model", "chatgpt", "--shard", "a/b"], "--shard 'a/b': give I/N"),
        (["--model", "chatgpt", "--shard", "3/2"], "--shard i/n needs 1 <= i <= n, got 3/2"),
        (["--model", "chatgpt", "--usd-per-million", "1"], "--usd-per-million '1': give two prices"),
        (["--model", "chatgpt", "--usd-per-million", "1,2,3"], "--usd-per-million '1,2,3': give two prices"),
        (["--model", "llama", "--engine", "offline", "--engine-option", "x"], "'x': give KEY=VALUE"),
        (["--model", "llama", "--engine-option", "a b=1"], "'a b=1': give KEY=VALUE"),
        (
            ["--model", "m", "--base-url", "http://h/v1", "--max-usd", "1"],
            "needs a price, and that of 'm' at http://h/v1 is not known: give --usd-per-million IN,OUT",
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


def test_a_model_that_nothing_here_can_load_says_how_to_serve_it(tmp_path, texts, monkeypatch):
    monkeypatch.setattr("angle_data.annotators.choice.find_spec", lambda name: None)
    assert "start `vllm serve meta-llama/" in fails(tmp_path, texts, "--model", "llama")


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
