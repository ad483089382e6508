"""`llm-label` and `llm-score` as their users meet them: tables, JSON, exit codes, and one-line errors."""

import json
from functools import partial
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Fault
from programs import python, run_here

from angle_data.annotators.spec import EngineConfig
from angle_data.cli import main
from angle_data.errors import InputError
from angle_data.labelling.config import LabelConfig, ScoreConfig


def angle_data(line, *more):
    return run_here(main, *line.split(), *more)


@pytest.fixture
def label(tmp_path):
    """Runs llm-label on one text, in a folder of its own."""
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "One node left."}\n')
    where = f"llm-label --texts {tmp_path}/texts.jsonl --out {tmp_path}/run"
    return lambda line, *more: angle_data(f"{where} {line}", *more)


@pytest.fixture
def demo(examples, tmp_path):
    """Runs llm-label on the demo's texts with the recorded replies of one annotator."""
    where = f"llm-label --texts {examples}/texts.jsonl --out {tmp_path}/run --engine recorded --replies "
    return lambda name, line: angle_data(f"{where} {examples}/replies/{name}.jsonl --model {name} {line}")


def test_a_sigterm_while_the_candidates_are_written_is_an_interrupt(examples, tmp_path):
    """The asking catches signals in its own way, and must leave them as it found them."""
    program = """
import os, signal
from angle_data.cli import main
import angle_data.labelling.label as label
class Stopped(label.LabelJob):
    def derive(self, replies):
        os.kill(os.getpid(), signal.SIGTERM)
        return super().derive(replies)
label.LabelJob = Stopped
main()
"""
    options = f"--texts {examples}/texts.jsonl --replies {examples}/replies/annotator-a.jsonl --limit 3"
    command = ("llm-label", "--model", "annotator-a", *options.split(), "--out", tmp_path / "run")
    done = python("-c", program, *command)
    assert done.returncode == 130
    assert done.stderr.endswith("angle-data: interrupted; run the same command again to go on\n")
    assert len((tmp_path / "run/journal.jsonl").read_text().splitlines()) == 6
    assert json.loads((tmp_path / "run/run.json").read_text())["finished"] is False


def test_recorded_replies_of_the_demo(demo):
    """Read by eye, item by item: every rejection is right, and no talk is left among the sentences."""
    counts = json.loads(demo("annotator-c", "--json").stdout)
    assert counts["requests"] == counts["asked"] == counts["replied"] == 720
    rejected = {"chatter": 131, "echo_source": 23, "refusal": 7, "truncated": 14}
    assert (counts["kept"], counts["rejected"]) == (1358, rejected)


@pytest.mark.parametrize("more", ["--dry-run", "--dry-run --json", "", "--json"])
def test_quiet_prints_no_table_and_still_the_json(demo, tmp_path, more):
    (tmp_path / "pairs.jsonl").write_text('{"text1": "Up.", "text2": "Runs."}\n')
    (tmp_path / "grades.jsonl").write_text('{"text1": "Up.", "text2": "Runs.", "reply": "4"}\n')
    paths = f"--pairs {tmp_path}/pairs.jsonl --replies {tmp_path}/grades.jsonl --out {tmp_path}/scores"
    graded = angle_data(f"llm-score --model m {paths} --quiet {more}")
    for done in (demo("annotator-a", f"--limit 3 --quiet {more}"), graded):
        assert (done.returncode, bool(done.stdout), done.stderr) == (0, "--json" in more, "")


def test_dry_run_counts_and_writes_nothing(demo, tmp_path):
    plan = json.loads(demo("annotator-a", "--dry-run --limit 10 --json").stdout)
    assert (plan["requests"], plan["to_ask"]) == (20, 20)
    assert [plan[name] for name in ("from_journal", "blank", "repeated")] == [0, 0, 0]
    assert (plan["usd"], plan["counted_by"]) == (None, "an estimate by characters")
    assert not (tmp_path / "run").exists()
    plain = demo("annotator-a", "--dry-run --polarity synonym").stdout
    assert plain.splitlines()[0].split() == ["requests", "360"]
    assert plain.splitlines()[-1] == "source of the token counts: an estimate by characters"
    assert "cost" not in plain


def test_recorded_replies_forecast_no_tokens_for_they_do_not_say_any(demo):
    measured = json.loads(demo("annotator-a", "--pilot 20 --price 1,2 --json").stdout)["pilot"]["measured"]
    assert measured["requests"] == {"pilot": 40, "all": 720}
    assert measured["tokens"] == measured["USD"] == {"pilot": None, "all": None}


@pytest.mark.parametrize(
    ("recorded", "code", "said"),
    [
        ("One node left.", 0, "1 request without a recorded reply\n"),
        ("Two nodes left.", 1, "for this text; check that the file of --replies holds what is asked for\n"),
    ],
)
def test_texts_without_a_recorded_reply_are_warned_of(label, tmp_path, recorded, code, said):
    row = {"text": recorded, "polarity": "synonym", "reply": "1. It left.\n2. Gone."}
    (tmp_path / "replies.jsonl").write_text(json.dumps(row) + "\n")
    done = label(f"--model m --replies {tmp_path}/replies.jsonl")
    assert done.returncode == code
    assert said in done.stderr
    assert json.loads((tmp_path / "run/run.json").read_text())["finished"] is (code == 0)


def test_a_run_of_degrees_shows_its_words(label, tmp_path):
    reply = json.dumps({"5": "A node went.", "4": "One node is gone.", "2": "One node joined."})
    row = {"text": "One node left.", "task": "degrees", "reply": reply}
    (tmp_path / "replies.jsonl").write_text(json.dumps(row) + "\n")
    done = label(f"--model m --prompts degrees --replies {tmp_path}/replies.jsonl")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split() for line in lines if line.startswith(("kept", "missing"))] == [
        ["kept", "3"], ["missing", "degrees", "2"],
    ]  # fmt: skip
    assert lines[-5:-1] == [
        "degree 5: 1 kept, word overlap 0.20",
        "degree 4: 1 kept, word overlap 0.40",
        "degree 2: 1 kept, word overlap 0.50",
        "a 5 or 4 shares more words than a 3 or 2: 0% (50% tells nothing)",
    ]
    again = json.loads(label(f"--model m --prompts degrees --replies {tmp_path}/replies.jsonl --json").stdout)
    assert again["degrees"]["3"] == {"kept": 0, "overlap": None}


def test_a_dry_run_of_a_public_model_forecasts_its_cost_without_a_key(label):
    done = label("--model chatgpt --prompts paper --dry-run --price 1000,0")
    tokens = int(next(line.split()[-1] for line in done.stdout.splitlines() if "prompt tokens" in line))
    assert f"about {tokens / 1000:.4f} USD" in done.stdout
    assert 50 < tokens < 200


@pytest.mark.parametrize("where", ["", "--base-url http://127.0.0.1:9/v1"])
def test_a_dry_run_sends_nothing_and_says_what_is_missing_for_a_price(label, monkeypatch, where):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = label(f"--model gpt-unheard --dry-run {where}")
    assert done.returncode == 0, done.stderr
    unknown = "cost unknown: no price is listed for gpt-unheard; give --price IN,OUT"
    assert done.stdout.splitlines()[-2] == unknown
    assert ("OPENAI_API_KEY" in done.stderr) == (not where)


BATCH = "--model gpt-m --engine batch --engine-option a=1"


@pytest.mark.parametrize(
    "line", ["--model llama --engine server", "--model a/b --engine batch", BATCH, "--model m --replies x"]
)
def test_a_dry_run_refuses_what_the_run_would_refuse(label, monkeypatch, line):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0")
    planned, asked = label(f"{line} --dry-run"), label(line)
    assert (planned.returncode, asked.returncode) == (1, 1)
    assert planned.stderr == asked.stderr.splitlines(keepends=True)[-1]


def test_a_model_that_reasons_is_asked_as_it_wants_and_further_fields_are_sent(label, tmp_path):
    with FakeOpenAI(reasoning=True, extra=["reasoning_effort", "stop", "x"]) as server:
        line = f"--model m --prompts paper --polarity synonym --base-url {server.url}"
        more = '--temperature none --param reasoning_effort=low --param stop=["a"] --param x=1.5'
        first, other, again = label(line), label(f"{line} {more}"), label(f"{line} {more}")
    assert [done.returncode for done in (first, other, again)] == [0, 0, 0], first.stderr
    bodies = [seen.body for seen in server.seen]
    known = {"model", "messages", "max_completion_tokens"}
    more = {"reasoning_effort": "low", "stop": ["a"], "x": 1.5}
    first_asked = [{"max_tokens", "temperature"}, {"temperature"}, set()]
    assert [b.keys() - known for b in bodies] == [*first_asked, {"max_tokens", *more}, more.keys()]
    assert {name: bodies[-1][name] for name in more} == more
    for said in ("max_completion_tokens", "without temperature"):
        assert first.stderr.count(f"{said} now") == 1
    sampling = json.loads((tmp_path / "run/run.json").read_text())["sampling"]
    assert (sampling["temperature"], sampling["params"]["x"]) == (None, 1.5)


def test_a_model_known_to_reason_is_asked_right_at_once(label):
    with FakeOpenAI(reasoning=True) as server:
        done = label(f"--model gpt-5-mini --base-url {server.url}")
    assert (done.returncode, server.counts) == (0, {"200": 2}), done.stderr


def test_options_reach_the_run(label, tmp_path):
    """Every option of the asking that is not checked elsewhere, as run.json and the requests show it."""
    with FakeOpenAI() as one, FakeOpenAI() as other:
        done = label(
            f"--model m --base-url {one.url} --base-url {other.url} --shard 1/1 --checkpoint big "
            "--temperature 0.25 --seed 3 --max-tokens 99 --max-usd 5 --price 1,2 "
            "--max-tokens-total 100000 --requests-per-minute 6000 --tokens-per-minute 1000000"
        )
        bodies = [seen.body for seen in (*one.seen, *other.seen)]
    assert done.returncode == 0, done.stderr
    settings = json.loads((tmp_path / "run/run.json").read_text())
    assert (settings["shard"], settings["checkpoint"]) == ("1/1", "big")
    assert settings["base_urls"] == [one.url, other.url]
    assert settings["usd"] == pytest.approx(2 * (10 * 1 + 5 * 2) / 1e6)
    asked = [(body["model"], body["temperature"], body["seed"], body["max_tokens"]) for body in bodies]
    assert asked == [("big", 0.25, 3, 99)] * 2


@pytest.mark.parametrize(("named", "sent"), [("", False), ("--api-key-env OPENAI_API_KEY", True)])
def test_the_address_of_the_environment_gets_a_key_only_if_it_is_named(label, monkeypatch, named, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0")
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = label(f"--model chatgpt --polarity synonym {named}")
    assert done.returncode == 0, done.stderr
    assert ["sk-0" in (seen.authorization or "") for seen in server.seen] == [sent]


def test_blank_texts_are_reported_once(label, tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"text": "One node left."}\n{"text": " "}\n{"text": ""}\n')
    with FakeOpenAI() as server:
        done = label(f"--model m --base-url {server.url}")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("2 blank rows skipped") == 1


def test_verbose_names_every_failure_and_quiet_only_their_number(label):
    with FakeOpenAI(always=Fault(400, message="Prompt is too long")) as server:
        line = f"--model m --polarity synonym --base-url {server.url}"
        loud, quiet = label(f"{line} --verbose"), label(f"{line} --quiet")
    said = "too_long: Prompt is too long"
    assert f"a, synonym: {said}" in loud.stderr
    assert quiet.stderr == f"angle-data: error: every request failed (1), most with {said}\n"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--api-key-env", "NO_SUCH_KEY", "set the environment variable NO_SUCH_KEY"),
        ("--shard", "3", "--shard '3': give I/N, such as 1/8"),
        ("--shard", "a/b", "--shard 'a/b': give I/N"),
        ("--shard", "", "--shard '': give I/N"),
        ("--price", "1", "--price '1': give two prices"),
        ("--price", "1,2,3", "--price '1,2,3': give two prices"),
        ("--temperature", "hot", "--temperature 'hot': give a number from 0 to 2, or none"),
        ("--param", "effort", "--param 'effort': give KEY=VALUE, such as reasoning_effort=low"),
        ("--engine-option", "x", "'x': give KEY=VALUE"),
        ("--engine-option", "1a=1", "'1a=1': give KEY=VALUE"),
    ],
)
def test_a_wrong_option_is_one_line_and_an_unknown_one_a_usage_error(label, option, value, message):
    done = label(f"--quiet --model chatgpt {option}", value)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith("angle-data: error: ")
    assert message in done.stderr
    assert angle_data("llm-label --modle m").returncode == 2


LABEL = partial(LabelConfig, texts=Path("texts.jsonl"))


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (LABEL, {"size": 0}, "--size must be at least 1, got 0"),
        (LABEL, {"limit": 0}, "--limit must be at least 1, got 0"),
        (LABEL, {"polarity": "all"}, "--polarity must be one of both, synonym, antonym, got 'all'"),
        (ScoreConfig, {"pairs_per_call": 0}, "--pairs-per-call must be from 1 to 50, got 0"),
        (ScoreConfig, {"pairs_per_call": 51}, "--pairs-per-call must be from 1 to 50, got 51"),
        (ScoreConfig, {"limit": 0}, "--limit must be at least 1, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(tmp_path, config, changes, message):
    with pytest.raises(InputError, match=message):
        config(EngineConfig("m"), out=tmp_path, **changes)
