"""Settings, pairs and a grader of runs of llm-score."""

import json
import re

from angle_data.annotators.spec import EngineConfig
from angle_data.jsonl import write_jsonl
from angle_data.labelling.config import ScoreConfig
from angle_data.text import stable_hash

SHOWN = re.compile(r"Pair (\d+)\nA: (.*)\nB: (.*)")


def shown(body):
    """The pairs of a request as (number, A, B)."""
    return [(int(n), a, b) for n, a, b in SHOWN.findall(body["messages"][-1]["content"])]


def true_grade(a, b):
    """A grade that tells which pair it belongs to, whatever its place in a call."""
    return stable_hash("|".join(sorted((a, b)))) % 51 / 10


def grader(body):
    """Grades by content, last pair first, so that anything matched by place shows."""
    grades = [{"id": n, "score": true_grade(a, b)} for n, a, b in shown(body)]
    return json.dumps({"grades": grades[::-1]})


def write_pairs(path, numbers):
    write_jsonl(path, ({"text1": f"Node {i} is up.", "text2": f"Host {i} runs."} for i in numbers))


def config(tmp_path, server, **changes):
    engine = EngineConfig(model="judge", base_urls=(server.url,), temperature=0.0, concurrency=4)
    given = {"pairs": (tmp_path / "pairs.jsonl",)} | changes
    return ScoreConfig(engine, tmp_path / "run", **given)
