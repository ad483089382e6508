"""Texts, settings and files of runs of llm-label; what these hold is read by `read_rows` and `run_json`."""

import json
from dataclasses import fields

from angle_data.annotators.spec import EngineConfig
from angle_data.jsonl import read_jsonl, write_jsonl
from angle_data.labelling.config import LabelConfig

ENGINE_OPTIONS = {field.name for field in fields(EngineConfig)}


def write_texts(folder, numbers, text="Node {} has left the cluster.", name="texts.jsonl"):
    """A text of each number, or of so many numbers from 0 on."""
    numbers = range(numbers) if isinstance(numbers, int) else numbers
    write_jsonl(folder / name, ({"id": f"t{n}", "text": text.format(n)} for n in numbers))


def config_of(folder, server, **changes):
    """Settings for a run in `folder` against the server; changes go to where they belong."""
    engine = {"model": "tiny", "base_urls": (server.url,), "concurrency": 4}
    engine |= {name: value for name, value in changes.items() if name in ENGINE_OPTIONS}
    settings = {"texts": folder / "texts.jsonl", "out": folder / "run"}
    settings |= {name: value for name, value in changes.items() if name not in ENGINE_OPTIONS}
    return LabelConfig(engine=EngineConfig(**engine), **settings)


def read_rows(path):
    """The rows of a file."""
    return [row for _, row in read_jsonl(path)]


def run_json(folder):
    """The account of the run in `folder`."""
    return json.loads((folder / "run/run.json").read_text())
