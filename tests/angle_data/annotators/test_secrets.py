"""An API key from the environment reaches the server and no other place."""

import json
import sys
import traceback
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from fake_openai import FakeOpenAI, Fault

from angle_data.annotators.choice import choose_annotator, load_annotator
from angle_data.annotators.spec import EngineConfig
from angle_data.cli import main
from angle_data.errors import AngleError
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import label

KEY = "sk-secret-0123456789"
DENIED = {"faults": [None], "always": Fault(403, message=f"bad key {KEY}")}


def files_with_key(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def run(tmp_path, monkeypatch, server):
    """Run llm-label against the server; its exit code."""
    (tmp_path / "texts.txt").write_text("One node left.\nTwo nodes left.\nThree nodes left.\n")
    options = ["--model", "tiny", "--base-url", server.url, "--api-key-env", "MY_KEY", "--verbose"]
    paths = ["--texts", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["angle-data", "llm-label", *options, *paths])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0


@pytest.mark.parametrize(
    ("server", "code"),
    [
        ({"key": KEY}, 0),
        ({"key": "sk-other"}, 1),  # the answer 401 repeats the key that was sent
        ({"faults": [Fault(400, message=f"bad key {KEY}")]}, 0),
        (DENIED, 1),
        ({"always": Fault(400, message=f"bad key {KEY}")}, 1),
        ({"always": Fault(404, message=f"no model for {KEY}")}, 1),
    ],
    ids=["accepted", "rejected", "some refused", "no access", "all refused", "unknown model"],
)
def test_the_key_is_in_no_file_and_no_line(tmp_path, monkeypatch, capfd, server, code):
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeOpenAI(**server) as fake:
        ended = run(tmp_path, monkeypatch, fake)
        assert {seen.authorization for seen in fake.seen} == {f"Bearer {KEY}"}
    printed = capfd.readouterr()
    assert ended == code, printed.err
    assert ("; check the key in MY_KEY and" in printed.err) == (server in ({"key": "sk-other"}, DENIED))
    assert KEY not in printed.out + printed.err
    assert (tmp_path / "run" / "run.json").is_file()
    assert files_with_key(tmp_path) == []


def lower_escapes(key):
    return quote_plus(key).replace("%2B", "%2b").replace("%2F", "%2f").replace("%3D", "%3d")


ODD = "sk+secret/0123456789=="


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("form", [str, quote, quote_plus, lower_escapes, json.dumps])
def test_a_key_that_is_repeated_in_an_encoded_form_is_masked(tmp_path, monkeypatch, capfd, form, status):
    monkeypatch.setenv("MY_KEY", ODD)
    echoed = form(ODD).strip('"')
    fault = Fault(400, message=f"see http://h/?key={echoed}") if status == 400 else None
    with FakeOpenAI(lambda body: f"1. Your key {echoed} is fine.\n2. Gone.", always=fault) as fake:
        run(tmp_path, monkeypatch, fake)
    shown = "".join(capfd.readouterr()) + "".join(p.read_text() for p in (tmp_path / "run").glob("*.json*"))
    assert "[key]" in shown
    assert echoed not in shown


@pytest.mark.parametrize(
    "server",
    [
        {"key": "sk-other"},
        {"always": Fault(400, message=f"bad key {KEY}")},
        {"always": Fault(400, message=f"no json_schema for {KEY}")},
        {"always": Fault(404, message=f"no model for {KEY}")},
    ],
    ids=["rejected", "refused", "laxer form", "unknown model"],
)
def test_the_key_is_in_no_exception(tmp_path, monkeypatch, server):
    """Not in the message, nor in what an exception was raised from, nor in the annotator's settings."""
    monkeypatch.setenv("MY_KEY", KEY)
    (tmp_path / "texts.txt").write_text("One node left.\n")
    with FakeOpenAI(**server) as fake:
        engine = EngineConfig("tiny", base_urls=(fake.url,), api_key_env="MY_KEY")
        with pytest.raises(AngleError) as raised:
            label(LabelConfig(engine, tmp_path / "texts.txt", tmp_path / "run"))
    assert KEY not in str(raised.value) + repr(raised.value)
    assert KEY not in "".join(traceback.format_exception(raised.value))
    assert KEY not in repr(engine) + repr(spec := choose_annotator(engine)) + repr(load_annotator(spec))


def test_a_key_that_an_answer_holds_in_parts_is_masked_when_the_row_is_written(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("MY_KEY", KEY)
    parts = [
        {"type": "text", "text": text} for text in (f"1. Your key {KEY[:9]}", f"{KEY[9:]} is fine.\n2. Gone.")
    ]
    raw = {"choices": [{"message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}]}
    with FakeOpenAI(lambda body: raw) as fake:
        run(tmp_path, monkeypatch, fake)
    rows = (tmp_path / "run" / "journal.jsonl").read_text()
    assert "Your key [key] is fine." in rows
    assert files_with_key(tmp_path) == []
    assert KEY not in "".join(capfd.readouterr())
