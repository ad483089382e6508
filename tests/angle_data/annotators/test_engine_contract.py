"""What every engine of the registry promises a labelling run, whoever it asks; new entries are covered.

Nothing is asked twice, a kill loses nothing that was answered, the order of texts and replies does not
matter, and a key from the environment is written nowhere. Each engine has its own fake of what it asks, see
SETUPS.
"""

import json
import re
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fake_batch import FakeBatch
from fake_openai import FakeOpenAI
from programs import angle_data, plain_prompts, run_here, started
from tiny_llm import RAY_MARKS, wait_until

from angle_data.annotators.batch import Limits
from angle_data.annotators.choice import ANNOTATORS, choose_annotator, load_annotator
from angle_data.annotators.spec import EngineConfig
from angle_data.cli import main
from angle_data.errors import InputError, MissingExtraError
from angle_data.jsonl import read_jsonl

KEY = "sk-secret-0123456789"
PATIENCE_S = 60
TEXTS = 12
GATED = 6  # the text at which the fake of vLLM waits until the gate is open


@dataclass
class Engine:
    """How an engine is tried. `asked` counts the requests that whoever it asks has seen so far.

    A run is killed once it has `begun`; of what was asked until then, up to `in_flight` requests may be asked
    again.
    """

    options: list[object]
    begun: Callable[[Path], bool]
    in_flight: int
    asked: Callable[[], int] | None = None
    texts_to_kill: int = 12
    folder: Path = field(default_factory=Path)

    def write_texts(self, numbers):
        """Write the texts in this order and return the file."""
        path = self.folder / f"texts-{len(list(self.folder.iterdir()))}.jsonl"
        path.write_text("".join(json.dumps({"text": text_of(self.folder, n)}) + "\n" for n in numbers))
        return path

    def command(self, texts, out):
        prompts = self.folder / "prompts"
        paths = ["--texts", texts, "--out", self.folder / out, "--prompts", prompts]
        return ["llm-label", "--model", "tiny", "--polarity", "synonym", *paths, "--json", *self.options]

    def run(self, texts, out, *more):
        """Run the program in this process; returns its counts, and all that it printed."""
        done = run_here(main, *self.command(texts, out), *more)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout), done.stdout + done.stderr

    def candidates(self, out):
        return [row for _, row in read_jsonl(self.folder / out / "candidates.jsonl")]


def text_of(folder, number):
    return f"Node {number} may wait for {folder / 'gate'}" if number == GATED else f"Node {number} left"


def echo(body):
    return f"{body['messages'][-1]['content']} as well"


@contextmanager
def server(folder, request):
    with FakeOpenAI(echo, key=KEY, latency_s=0.05) as fake:
        options = ["--base-url", fake.url, "--api-key-env", "MY_KEY", "--concurrency", 3]
        yield Engine(options, lambda run: len(fake.seen) >= 6, 3, lambda: len(fake.seen))


@contextmanager
def batch(folder, request):
    quick = Limits(poll_s=0.001)
    request.getfixturevalue("monkeypatch").setattr("angle_data.annotators.batch.Limits", lambda: quick)
    with FakeBatch(echo, key=KEY) as fake:
        waits = ["--engine-option", f"wait_s={PATIENCE_S}"]
        options = ["--base-url", fake.url, "--api-key-env", "MY_KEY", *waits]
        yield Engine(options, lambda run: bool(fake.batches), 0, lambda: len(fake.asked))


def on_fake(calls, *options):
    def asked():
        return sum(map(len, calls("chat")))

    def gated(run):
        return any("wait for" in prompt for prompts in calls("chat") for prompt in prompts)

    return Engine([*options], gated, 2, asked)


def on_fake_vllm(calls, *options):
    return on_fake(calls, *options, "--engine-option", "max_model_len=4096")


@contextmanager
def offline(folder, request):
    yield on_fake_vllm(request.getfixturevalue("calls"), "--engine-option", "chunk=2")


@contextmanager
def local(folder, request):
    (folder / "tiny.gguf").write_bytes(b"GGUF")
    yield on_fake(request.getfixturevalue("calls"), "--checkpoint", folder / "tiny.gguf")


@contextmanager
def ray(folder, request):
    # Two chunks are under way at a time.
    yield on_fake_vllm(request.getfixturevalue("ray_calls"), "--engine-option", "chunk=1")


@contextmanager
def recorded(folder, request):
    count = 1500  # enough to be killed between the first and the last
    texts = ((n, text_of(folder, n)) for n in range(count))
    rows = ({"text": text, "polarity": "synonym", "reply": f"{n} as well"} for n, text in texts)
    (folder / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    yield Engine(["--replies", folder / "replies.jsonl"], lambda run: lines(run) > 0, 0, texts_to_kill=count)


SETUPS = {each.__name__: each for each in (server, batch, local, offline, ray, recorded)}
MARKS = {"ray": RAY_MARKS}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, [])) for name in ANNOTATORS])
def engine(request, tmp_path, monkeypatch):
    """Every engine of the registry, with the key in the environment."""
    if request.param not in SETUPS:
        pytest.fail(f"engine {request.param!r} has no entry in SETUPS, so nothing tries it")
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    plain_prompts(tmp_path / "prompts")
    with SETUPS[request.param](tmp_path, request) as found:
        found.folder = tmp_path
        found.options = ["--engine", request.param, *found.options]
        (tmp_path / "gate").touch()
        yield found


def lines(run):
    path = run / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def number_of(text):
    return int(re.search(r"\d+", text)[0])


def test_every_reply_stands_beside_its_own_text_nothing_is_asked_twice_and_the_key_is_nowhere(engine):
    texts, run = engine.write_texts(range(TEXTS)), engine.folder / "run"
    first, printed = engine.run(texts, "run", "--verbose")
    assert first["asked"] == first["kept"] == TEXTS
    candidates, journal = (run / "candidates.jsonl").read_bytes(), (run / "journal.jsonl").read_bytes()
    rows = engine.candidates("run")
    assert [number_of(row["text"]) for row in rows] == list(range(TEXTS))
    again, _ = engine.run(texts, "run")
    assert (again["asked"], again["from_journal"]) == (0, TEXTS)
    assert (run / "candidates.jsonl").read_bytes() == candidates
    turned, _ = engine.run(engine.write_texts(reversed(range(TEXTS))), "run")
    assert turned["asked"] == 0
    assert engine.candidates("run") == rows[::-1]
    more, _ = engine.run(engine.write_texts(range(TEXTS + 1)), "run")
    assert more["asked"] == 1
    assert (run / "candidates.jsonl").read_bytes().startswith(candidates)
    assert (run / "journal.jsonl").read_bytes().startswith(journal)
    if engine.asked:
        assert engine.asked() == TEXTS + 1
    assert KEY not in printed
    files = [path for path in engine.folder.rglob("*") if path.is_file()]
    assert run / "run.json" in files
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_kill_loses_no_reply_and_the_result_is_the_same(engine):
    texts, run = engine.write_texts(range(engine.texts_to_kill)), engine.folder / "run"
    (engine.folder / "gate").unlink()
    with started(angle_data(*engine.command(texts, "run")), PATIENCE_S) as program:
        wait_until(lambda: engine.begun(run), PATIENCE_S - 10, program=program)
        program.kill()
        program.wait()
    assert program.returncode == -signal.SIGKILL
    (engine.folder / "gate").touch()
    kept = (run / "journal.jsonl").read_bytes() if (run / "journal.jsonl").exists() else b""
    kept = kept[: kept.rfind(b"\n") + 1]  # what was being written does not count
    journalled = kept.count(b"\n")
    counts, _ = engine.run(texts, "run")
    assert counts["asked"] == engine.texts_to_kill - journalled
    assert (run / "journal.jsonl").read_bytes().startswith(kept)
    if engine.asked:
        assert engine.asked() <= engine.texts_to_kill + engine.in_flight
    whole, _ = engine.run(engine.write_texts(reversed(range(engine.texts_to_kill))), "whole")
    assert whole["asked"] == engine.texts_to_kill
    assert engine.candidates("run") == engine.candidates("whole")[::-1]


def build(folder, engine, options):
    """The annotator for engine options, as a run builds it before anything is loaded or sent."""
    (folder / "tiny.gguf").write_bytes(b"GGUF")
    more = {"base_urls": ("http://localhost:1/v1",)} if engine in ("batch", "server") else {}
    config = EngineConfig("m", engine, str(folder / "tiny.gguf"), engine_options=options, **more)
    return load_annotator(choose_annotator(config, folder))


SECONDS, WHOLE = "must be a number of seconds, 0 or more, got ", "must be a whole number of at least 1, got 0"


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        ("server", {"a": 1}, "--engine server has no option 'a'; it has: timeout_s"),
        ("batch", {"wait_s": "9"}, f"--engine-option wait_s {SECONDS}'9'"),
        ("server", {"timeout_s": 0}, f"--engine-option timeout_s {SECONDS.replace('0 or more', 'above 0')}0"),
        ("batch", {"wait": 3}, "--engine batch has no option 'wait'; it has: batch_size, wait_s"),
        ("batch", {"wait_s": -1}, f"--engine-option wait_s {SECONDS}-1"),
        ("batch", {"wait_s": float("nan")}, f"--engine-option wait_s {SECONDS}nan"),
        ("batch", {"batch_size": 0}, f"--engine-option batch_size {WHOLE}"),
        ("offline", {"chunk": 0}, f"--engine-option chunk {WHOLE}"),
        ("offline", {"model": "x"}, "--engine-option model cannot be set; use --checkpoint"),
        ("ray", {"concurrency": 0}, f"--engine-option concurrency {WHOLE}"),
        ("local", {"n_ctx": 0}, f"--engine-option n_ctx {WHOLE}"),
        ("local", {"seed": 1}, "--engine-option seed cannot be set; use --seed"),
    ],
)
def test_a_wrong_engine_option_is_one_line(tmp_path, monkeypatch, engine, options, message):
    for package in ("vllm", "ray", "xllamacpp"):
        monkeypatch.setitem(sys.modules, package, json)  # any module will do: it is there
    with pytest.raises(InputError) as caught:
        build(tmp_path, engine, options)
    assert str(caught.value) == message


EXTRAS = [("offline", "vllm", "vllm"), ("ray", "ray", "ray"), ("local", "xllamacpp", "local")]


@pytest.mark.parametrize(("engine", "package", "extra"), EXTRAS)
def test_an_engine_without_its_package_names_the_extra(tmp_path, monkeypatch, engine, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'pip install -e "\.\[{extra}\]"'):
        build(tmp_path, engine, {})
