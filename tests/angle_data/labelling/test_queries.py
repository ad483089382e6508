"""Queries that passages answer: what is asked and written, and the way to pairs, a check and negatives."""

import json
from pathlib import Path

import pytest
from datasets import load_dataset
from fake_openai import FakeOpenAI
from labelling_runs import config_of, read_rows, run_json, write_texts

from angle_data.annotators.spec import EngineConfig
from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.errors import InputError
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.label import label
from angle_data.labelling.mine import MineConfig, mine
from angle_data.labelling.score import score

PASSAGE = (
    "Drain node {0} first when a deployment hangs, then delete pod {0}; the controller makes a new one in a "
    "minute, and the claim stays. Never delete claim {0}: what it holds is lost, and no backup has it."
)


@pytest.fixture
def passages(tmp_path):
    write_texts(tmp_path, 8, PASSAGE)
    return tmp_path


def queries(node):
    return [f"deployment hangs {node}", f"Why must claim {node} stay?", f"pod {node} is stuck, what now"]


def answer(body):
    """Queries about a passage; or grades, low for questions about claims."""
    asked = body["messages"][-1]["content"]
    if "Pair 1" not in asked:
        node = asked.rpartition("Drain node ")[2].split()[0]
        return json.dumps({"queries": queries(node)})
    grade = 0.5 if "Why must" in asked.rpartition("Pair 1")[2] else 5
    return json.dumps({"grades": [{"id": 1, "score": grade}]})


@pytest.fixture
def labelled(passages):
    """A run of queries, what the server saw of it, and its counts."""
    with FakeOpenAI(answer) as server:
        counts = label(config_of(passages, server, prompts="queries")).counts
        return passages, server.seen, counts


def test_one_request_a_passage_gives_a_candidate_for_each_query(labelled):
    folder, seen, counts = labelled
    assert (len(seen), counts["kept"], counts["rejected"]) == (8, 24, {})
    schema = seen[0].body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["queries"]
    assert schema["properties"]["queries"]["maxItems"] == 3
    rows = read_rows(folder / "run/candidates.jsonl")
    found = [(row["source_id"], row["polarity"], row["kind"], row["text"]) for row in rows]
    assert found == [(f"t{i}", "synonym", "query", text) for i in range(8) for text in queries(i)]
    assert {row["task"] for row in read_rows(folder / "run/journal.jsonl")} == {"query"}
    assert run_json(folder)["size"] == 3
    assert "polarity" not in run_json(folder)


def test_queries_of_long_passages_become_pairs_of_a_query_and_what_answers_it(labelled, tmp_path):
    folder, _, _ = labelled
    summary = build_ensemble(
        EnsembleConfig(runs=(folder / "run",), out=tmp_path / "pairs", purpose="search", ratios=(1.0,))
    )
    assert (summary.kept, summary.dropped) == (24, {})
    rows = load_dataset(str(summary.dataset), split="train", cache_dir=str(tmp_path / "cache"))
    assert {(row["text1"], row["text2"]) for row in rows} == {
        (query, PASSAGE.format(i)) for i in range(8) for query in queries(i)
    }
    assert {(row["label"], row["score"], row["purpose"]) for row in rows} == {(1, 1.0, "search")}


def test_a_language_model_checks_that_the_passage_answers(labelled, tmp_path):
    folder, _, _ = labelled
    with FakeOpenAI(answer) as server:
        engine = EngineConfig(model="grader", base_urls=(server.url,))
        score(ScoreConfig(engine, tmp_path / "graded", (folder / "run",), prompt=Path("answers")))
        assert "whether the passage answers the query" in server.seen[0].body["messages"][-1]["content"]
    summary = build_ensemble(
        EnsembleConfig(
            runs=(folder / "run",),
            out=tmp_path / "pairs",
            purpose="search",
            scores=(tmp_path / "graded",),
            ratios=(1.0,),
        )
    )
    rows = load_dataset(str(summary.dataset), split="train", cache_dir=str(tmp_path / "cache"))
    positives = {row["text1"] for row in rows if row["label"] == 1}
    assert positives == {query for i in range(8) for query in (queries(i)[0], queries(i)[2])}


def test_negatives_are_mined_for_them(labelled, tmp_path):
    folder, _, _ = labelled
    build_ensemble(EnsembleConfig(runs=(folder / "run",), out=tmp_path / "pairs", ratios=(1.0,)))
    counts = mine(
        MineConfig(
            tmp_path / "n.jsonl", folder / "texts.jsonl", negatives=tmp_path / "pairs/dataset", per_query=2
        )
    )
    assert counts["pairs"] == 24
    for row in read_rows(tmp_path / "n.jsonl"):
        assert row["positive"] not in row["negatives"]
        assert row["query"] in queries(row["positive"].split()[2])


@pytest.mark.parametrize("size", [1, 6])
def test_the_number_of_queries_can_be_chosen(passages, size):
    with FakeOpenAI(answer) as server:
        counts = label(config_of(passages, server, prompts="queries", size=size, limit=2)).counts
        assert f"Write {size} search queries" in server.seen[0].body["messages"][-1]["content"]
    assert counts["kept"] == 2 * min(size, 3)


def test_polarity_is_not_for_queries(passages):
    with (
        FakeOpenAI(answer) as server,
        pytest.raises(InputError, match=r"--polarity is for .*, not for queries"),
    ):
        label(config_of(passages, server, prompts="queries", polarity="synonym"))
