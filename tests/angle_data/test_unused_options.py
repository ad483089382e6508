"""Options that an engine passes over are named in one line, and no others."""

import json
from dataclasses import fields

import pytest

from angle_data.annotators.registry import ANNOTATORS
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.unused_options import UNUSED, unused_options
from angle_data.cli import main
from angle_data.labelling.engine import EngineConfig

ALL = {
    "concurrency": 8,
    "requests_per_minute": 60.0,
    "tokens_per_minute": 1000.0,
    "api_key_env": "MY_KEY",
    "temperature": 0.0,
    "seed": 1,
    "max_tokens": 64,
}


def line(engine, dialect="openai", **given):
    return unused_options(AnnotatorSpec("m", engine, "m", dialect=dialect), EngineConfig("m", **given))


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (
            "batch",
            "--engine batch does not use --concurrency, --requests-per-minute, --tokens-per-minute: "
            "the service sets the pace of its batches",
        ),
        (
            "offline",
            "--engine offline does not use --concurrency, --requests-per-minute, --tokens-per-minute, "
            "--api-key-env: vLLM sets its own pace; see --engine-option max_num_seqs=N and chunk=N",
        ),
        (
            "recorded",
            "--engine recorded does not use --concurrency, --requests-per-minute, --tokens-per-minute, "
            "--api-key-env, --temperature, --seed, --max-tokens: the replies are there already",
        ),
        ("server", None),
    ],
)
def test_what_was_given_in_vain_is_named(engine, said):
    assert line(engine, **ALL) == said


@pytest.mark.parametrize("engine", ANNOTATORS)
def test_what_was_not_given_is_not_named(engine):
    assert line(engine) is None
    assert line(engine, max_tokens_total=9, usd_per_million=(1.0, 2.0), shard=(1, 2)) is None


def test_only_what_was_given_is_named():
    assert line("ray", seed=3, api_key_env="MY_KEY") == (
        "--engine ray does not use --api-key-env: vLLM sets its own pace; see --engine-option concurrency=N "
        "(engines) and chunk=N"
    )


def test_a_seed_is_not_for_the_glm_cloud():
    assert "--seed is not sent" in line("server", "glm", seed=3)
    assert line("server", "glm", temperature=0.1) is None


def test_every_name_is_a_setting_and_every_engine_is_one():
    assert UNUSED.keys() <= ANNOTATORS.keys()
    assert {name for names in UNUSED.values() for name in names} <= {f.name for f in fields(EngineConfig)}


@pytest.mark.parametrize(("options", "warned"), [(["--concurrency", "8"], 1), ([], 0)])
def test_the_command_says_it_once(tmp_path, monkeypatch, capsys, options, warned):
    (tmp_path / "texts.txt").write_text("One node left.\n")
    reply = {"text": "One node left.", "polarity": "synonym", "reply": "1. A node went."}
    (tmp_path / "replies.jsonl").write_text(json.dumps(reply))
    paths = {"--texts": "texts.txt", "--replies": "replies.jsonl", "--out": "run"}
    given = [part for name, file in paths.items() for part in (name, str(tmp_path / file))]
    arguments = ["llm-label", "--model", "m", "--polarity", "synonym", *given, *options]
    monkeypatch.setattr("sys.argv", ["angle-data", *arguments])
    with pytest.raises(SystemExit):
        main()
    said = "--engine recorded does not use --concurrency: the replies are there already"
    assert capsys.readouterr().err.count(said) == warned
