"""Whole runs with a real, small language model: its poor answers are counted right and nothing gets lost.

Texts are never compared: what it says depends on the machine. About 20 s.
"""

import json
from contextlib import suppress

import pytest
from smollm2 import needs_smollm2, smollm2_server

from angle_data.annotators.spec import EngineConfig
from angle_data.errors import AnnotatorError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import label
from angle_data.labelling.score import score
from angle_data.text import longest_answer, normalise

pytestmark = [needs_smollm2, pytest.mark.slow]

TEXTS = ["The heating has been out of order since Monday.", "Rent is due on the first of May."]


@pytest.fixture(scope="module")
def served():
    """The address of a server with the model."""
    with smollm2_server() as url:
        yield url


def run(tmp_path, url, **changes):
    """A labelling run at temperature 0: its counts and the rows of its files."""
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    sampling = {"temperature": 0.0, "max_tokens": changes.pop("max_tokens", 60), "concurrency": 2}
    engine = EngineConfig("smollm2", min_yield=0, base_urls=() if url is None else (url,), **sampling)
    with suppress(AnnotatorError):  # no reply of any use, which may well be
        label(LabelConfig(engine, tmp_path / "texts.txt", tmp_path / "run", **changes))
    counts = json.loads((tmp_path / "run/run.json").read_text())["counts"]
    files = ("journal", "candidates", "rejected")
    return counts, *([row for _, row in read_jsonl(tmp_path / f"run/{name}.jsonl")] for name in files)


@pytest.mark.parametrize("prompts", ["paper", "structured"])
def test_replies_over_http_are_english_counted_and_accounted_for(tmp_path, served, prompts):
    counts, journal, candidates, rejected = run(tmp_path, served, prompts=prompts)
    assert (counts["requests"], counts["replied"], counts["failed"]) == (4, 4, {})
    assert (counts["kept"], sum(counts["rejected"].values())) == (len(candidates), len(rejected))
    assert {row["key"] for row in candidates + rejected} == {row["key"] for row in journal}
    usage = [row["usage"] for row in journal]
    tokens = json.loads((tmp_path / "run/run.json").read_text())["tokens"]["total_tokens"]
    assert tokens == sum(each["prompt_tokens"] + each["completion_tokens"] for each in usage)
    assert all(each["completion_tokens"] <= 60 for each in usage)
    assert {"the", "a", "is", "of"} & set(" ".join(row["reply"] for row in journal).lower().split())
    for row in candidates:
        assert normalise(row["text"]) != normalise(row["source"])
    if prompts == "structured":
        for row in (row for row in journal if row["finish_reason"] == "stop"):
            said = json.loads(row["reply"])["sentences"]
            assert len(said) == 2
            assert max(map(len, said)) <= longest_answer(row["source"])


def test_cut_replies_are_called_cut(tmp_path, served):
    counts, journal, _, rejected = run(tmp_path, served, prompts="degrees", max_tokens=4)
    assert [row["finish_reason"] for row in journal] == ["length"] * 2
    assert (counts["kept"], counts["rejected"]) == (0, {"truncated": len(rejected)})


def test_grades_of_the_local_engine_are_numbers_in_range_or_have_a_reason(tmp_path):
    pairs = [{"text1": a, "text2": b} for a in TEXTS for b in ("It is cold.", "The rent is paid.")]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    engine = EngineConfig("smollm2", temperature=0.0, max_tokens=40)
    settings = ScoreConfig(engine, tmp_path / "run", pairs=(tmp_path / "pairs.jsonl",))
    counts = score(settings).counts
    grades = [row["score"] for _, row in read_jsonl(tmp_path / "run/scores.jsonl")]
    assert counts["pairs"] == len(pairs) == len(grades) + sum(counts["rejected"].values())
    assert all(0 <= grade <= 5 for grade in grades)
    assert score(settings).counts["asked"] == 0
