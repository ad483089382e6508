"""Where only `--max-tokens` has grown, what was not cut is not asked again."""

import json
from dataclasses import replace

import pytest
from fake_openai import FakeOpenAI, completion
from labelling_runs import config_of, read_rows, write_texts

from angle_data.annotators.spec import EngineConfig
from angle_data.jsonl import write_jsonl
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.label import label
from angle_data.labelling.pilot import plan_label
from angle_data.labelling.score import score

WHOLE = "1. The machine is gone from the group.\n2. It is no longer a member of the group."


def cut_below(limit, texts, end="length"):
    """Replies that are cut for some texts under a longest reply below `limit`."""

    def reply(body):
        prompt, most = body["messages"][-1]["content"], body["max_tokens"]
        if most < limit and any(f"Node {n} " in prompt for n in texts):
            return completion(body, WHOLE[:60], (10, most), end)
        return completion(body, WHOLE, (10, 20))

    return reply


@pytest.mark.parametrize("end", ["length", None])
def test_only_what_was_cut_is_asked_again(tmp_path, caplog, end):
    write_texts(tmp_path, 20)
    caplog.set_level("INFO")
    with FakeOpenAI(cut_below(200, range(5), end)) as server:
        asked = config_of(tmp_path, server, prompts="paper", polarity="synonym", max_tokens=100)
        first = label(asked).counts
        assert first["kept"] == 15 * 2 + 5
        files = {
            name: (tmp_path / f"run/{name}").read_bytes() for name in ("candidates.jsonl", "rejected.jsonl")
        }
        longer = replace(asked, engine=replace(asked.engine, max_tokens=300))
        assert plan_label(longer).to_ask == 5
        counts = label(longer).counts
        assert (counts["asked"], counts["kept"], len(server.seen)) == (5, 40, 25)
        assert "--max-tokens has grown: only what was cut is asked again" in caplog.text
        assert "was run with other settings" not in caplog.text
        assert all(seen.body["max_tokens"] == 300 for seen in server.seen[20:])
        assert label(longer).counts["asked"] == 0
        # The earlier settings bring back the earlier files; a further growth asks nothing.
        label(asked)
        assert {name: (tmp_path / f"run/{name}").read_bytes() for name in files} == files
        assert label(replace(asked, engine=replace(asked.engine, max_tokens=900))).counts["asked"] == 0
        # What changes the answer is asked anew.
        warmer = replace(longer, engine=replace(longer.engine, temperature=1.0))
        assert plan_label(warmer).to_ask == 20
        assert len(server.seen) == 25
    assert len({row["key"] for row in read_rows(tmp_path / "run/journal.jsonl")}) == 25


@pytest.mark.parametrize(("per_call", "again"), [(1, 3), (4, 3)])
def test_grades_likewise(tmp_path, per_call, again):
    write_jsonl(
        tmp_path / "pairs.jsonl", ({"text1": f"{n} is up.", "text2": f"{n} runs."} for n in range(24))
    )

    def reply(body):
        pairs = body["messages"][-1]["content"].count("\nA: ")
        grades = json.dumps({"grades": [{"id": n + 1, "score": n % 5} for n in range(pairs)]})
        cut = body["max_tokens"] < 200 and len(server.seen) <= again
        return (
            completion(body, grades[: -20 * pairs], (10, 100), "length") if cut else completion(body, grades)
        )

    with FakeOpenAI(reply) as server:
        engine = EngineConfig("judge", base_urls=(server.url,), max_tokens=100, concurrency=1)
        asked = ScoreConfig(
            engine, tmp_path / "run", pairs=(tmp_path / "pairs.jsonl",), pairs_per_call=per_call
        )
        score(asked)
        before = len(server.seen)
        counts = score(replace(asked, engine=replace(engine, max_tokens=300))).counts
        assert counts["kept"] == 24
        assert counts["asked"] == len(server.seen) - before <= again
        assert score(replace(asked, engine=replace(engine, max_tokens=300))).counts["asked"] == 0
