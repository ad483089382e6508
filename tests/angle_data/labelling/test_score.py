"""Grading runs against a real socket: what is asked, what is written, and what is never asked twice."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Fault
from typer.testing import CliRunner

from angle_data.annotators.spec import EngineConfig
from angle_data.cli import app
from angle_data.errors import InputError, StoppedError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.score import group_pairs, plan_score, score
from angle_data.labelling.texts import Pair, PairFile
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
    rows = [{"text1": f"Node {i} is up.", "text2": f"Host {i} runs."} for i in numbers]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config(tmp_path, server, **changes):
    engine = EngineConfig(model="judge", base_urls=(server.url,), temperature=0.0, concurrency=4)
    return ScoreConfig(engine, tmp_path / "pairs.jsonl", tmp_path / "run", **changes)


def rows(path: Path):
    return [row for _, row in read_jsonl(path)]


def run_json(tmp_path):
    return json.loads((tmp_path / "run" / "run.json").read_text())


@pytest.mark.parametrize("per_call", [1, 5])
def test_every_pair_gets_its_own_grade(tmp_path, per_call):
    write_pairs(tmp_path / "pairs.jsonl", range(40))
    with FakeOpenAI(grader) as server:
        result = score(config(tmp_path, server, pairs_per_call=per_call))
    scores = rows(tmp_path / "run" / "scores.jsonl")
    assert len(scores) == result.counts["kept"] == result.counts["pairs"] == 40
    assert result.counts["requests"] == len(server.seen)
    assert len(server.seen) == 40 if per_call == 1 else len(server.seen) < 20
    assert all(row["score"] == pytest.approx(true_grade(row["text1"], row["text2"])) for row in scores)
    in_order = [row["text1"] for row in scores] if per_call == 1 else sorted(row["text1"] for row in scores)
    names = [f"Node {i} is up." for i in range(40)]
    assert in_order == (names if per_call == 1 else sorted(names))
    for body in (seen.body for seen in server.seen):
        schema = body["response_format"]["json_schema"]["schema"]["properties"]["grades"]
        assert schema["minItems"] == schema["maxItems"] == len(shown(body)) <= per_call
    assert list(scores[0]) == ["text1", "text2", "score", "model", "key"]
    assert run_json(tmp_path)["finished"] is True


def test_a_second_run_asks_nothing_and_a_further_pair_asks_one_call(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(20))
    with FakeOpenAI(grader) as server:
        score(config(tmp_path, server))
        first = (tmp_path / "run" / "scores.jsonl").read_bytes()
        score(config(tmp_path, server))
        assert len(server.seen) == 20
        assert (tmp_path / "run" / "scores.jsonl").read_bytes() == first
        write_pairs(tmp_path / "pairs.jsonl", range(21))
        assert plan_score(config(tmp_path, server)).to_ask == 1
        score(config(tmp_path, server))
    assert len(server.seen) == 21


def test_a_further_pair_changes_few_of_the_shared_calls():
    pairs = [Pair(f"a{i}", f"b{i}", stable_hash(str(i))) for i in range(1001)]
    before, after = set(group_pairs(pairs[:1000], 8)), set(group_pairs(pairs, 8))
    assert len(after - before) <= 3
    assert sum(map(len, before)) == 1000
    assert max(map(len, before)) <= 8
    assert 4 < 1000 / len(before) < 6.5  # 8 (1 - 1/e) = 5.06


def test_a_call_holds_pairs_from_all_over_the_file(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(200))
    pairs = list(PairFile(tmp_path / "pairs.jsonl"))
    place = {pair: number for number, pair in enumerate(pairs)}
    near = [
        abs(place[one] - place[other]) == 1
        for call in group_pairs(pairs, 10)
        for one, other in itertools.pairwise(call)
    ]
    assert sum(near) < len(near) / 10


@pytest.mark.parametrize("fault", ["skips", "cut off", "refused"])
def test_pairs_that_a_call_leaves_without_a_grade_are_asked_alone_when_wanted(tmp_path, fault):
    write_pairs(tmp_path / "pairs.jsonl", range(20, 32))
    lost = {"skips": "missing_id", "cut off": "truncated", "refused": "refused_by_server"}[fault]
    alone = []  # what is said of a pair that is asked alone, when it is not its grade

    def faulty(body):
        pairs = shown(body)
        if len(pairs) == 1:
            return alone[0] if alone else grader(body)
        whole = json.dumps({"grades": [{"id": 1, "score": true_grade(*pairs[0][1:])}]})
        return whole if fault == "skips" else whole[:-2] + ', {"id": 2, "sco'

    end = "length" if fault == "cut off" else "stop"
    faults = [Fault(400, message="odd text")] if fault == "refused" else []
    with FakeOpenAI(grader if fault == "refused" else faulty, faults=faults, finish_reason=end) as server:
        plain = config(tmp_path, server, pairs_per_call=6)
        plain = replace(plain, engine=replace(plain.engine, concurrency=1))
        counts = score(plain).counts
        calls, missing = len(server.seen), 12 - counts["kept"]
        assert calls < 12
        assert missing > 1
        assert counts["rejected"] == {lost: missing}
        assert {row["reason"] for row in rows(tmp_path / "run" / "rejected.jsonl")} == {lost}
        assert score(plain).counts["asked"] == 0
        again = replace(plain, retry_rejected=True)
        assert plan_score(again).to_ask == missing
        if fault == "skips":  # what is still without a grade is asked alone each time
            alone.append("no idea")
            counts = score(again).counts
            assert (counts["asked"], counts["rejected"]) == (missing, {"no_number": missing})
            assert plan_score(again).to_ask == missing
            alone.clear()
        counts = score(again).counts
        assert (counts["asked"], counts["kept"], counts["rejected"]) == (missing, 12, {})
        assert counts["requests"] == counts["replied"] + counts["refused"] == calls + missing
        assert all(len(shown(seen.body)) == 1 for seen in server.seen[calls:])
        assert plan_score(again).to_ask == 0
        assert score(plain).counts["kept"] == 12
    scores = rows(tmp_path / "run" / "scores.jsonl")
    assert all(row["score"] == pytest.approx(true_grade(row["text1"], row["text2"])) for row in scores)


def test_what_cannot_be_read_is_accounted_for_with_its_reason(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(4))
    replies = {"0": "no idea", "1": '{"score": 9}', "2": "3 or 4", "3": '{"score": 2}'}

    def reply(body):
        ((_, a, _),) = shown(body)
        return replies[a.split()[1]]

    with FakeOpenAI(reply) as server:
        counts = score(config(tmp_path, server)).counts
    rejected = {
        row["text1"]: (row["reason"], row["raw"]) for row in rows(tmp_path / "run" / "rejected.jsonl")
    }
    assert rejected == {
        "Node 0 is up.": ("no_number", "no idea"),
        "Node 1 is up.": ("out_of_range", '{"score": 9}'),
        "Node 2 is up.": ("ambiguous", "3 or 4"),
    }
    assert counts["replied"] == counts["kept"] + sum(counts["rejected"].values()) == 4


def test_failed_pairs_are_asked_again_by_the_same_command(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(8))
    broken = Fault(500, {"retry-after-ms": "5"})
    with FakeOpenAI(grader, faults=[broken] * 6) as server:
        one_by_one = config(tmp_path, server)
        one_by_one = replace(one_by_one, engine=replace(one_by_one.engine, concurrency=1))
        with pytest.raises(StoppedError, match=r"^1 request failed, with http_500"):
            score(one_by_one)
        counts = run_json(tmp_path)["counts"]
        assert (counts["kept"], counts["failed"], counts["requests"]) == (7, {"http_500": 1}, 8)
        assert [row["reason"] for row in rows(tmp_path / "run" / "rejected.jsonl")] == ["request_failed"]
        assert score(config(tmp_path, server)).counts["kept"] == 8
    assert len(server.seen) == 6 + 7 + 1


def test_refused_pairs_are_final_and_asked_again_when_wanted(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(8))
    with FakeOpenAI(grader, faults=[Fault(400, message="odd text")]) as server:
        for asked in (8, 0):
            counts = score(config(tmp_path, server)).counts
            assert (counts["asked"], counts["kept"], counts["refused"]) == (asked, 7, 1)
            assert counts["rejected"] == {"refused_by_server": 1}
            assert run_json(tmp_path)["finished"] is True
        ((row),) = rows(tmp_path / "run" / "rejected.jsonl")
        assert (row["reason"], row["raw"]) == ("refused_by_server", "http_400: odd text")
        again = config(tmp_path, server, retry_rejected=True)
        assert plan_score(again).to_ask == 1
        counts = score(again).counts
        assert (counts["asked"], counts["kept"], counts["refused"]) == (1, 8, 0)
    assert len(server.seen) == 9


def test_the_command_line_grades_candidates_of_another_annotator(tmp_path):
    row = {"source_id": "1", "source": "It is up.", "polarity": "synonym", "text": "It runs.", "model": "m"}
    (tmp_path / "candidates.jsonl").write_text(json.dumps({**row, "key": "00"}) + "\n")
    with FakeOpenAI(grader) as server:
        arguments = ["llm-score", "--model", "judge", "--base-url", server.url, "--json"]
        arguments += ["--pairs", str(tmp_path / "candidates.jsonl"), "--out", str(tmp_path / "run")]
        planned = CliRunner().invoke(app, [*arguments, "--dry-run"])
        assert json.loads(planned.stdout)["to_ask"] == 1
        assert not server.seen
        done = CliRunner().invoke(app, arguments)
    assert json.loads(done.stdout)["kept"] == 1
    assert rows(tmp_path / "run" / "scores.jsonl")[0]["text1"] == "It is up."


def test_recorded_grades_need_no_server(tmp_path):
    """In either order of the texts; where both were recorded, the one that is asked counts."""
    write_pairs(tmp_path / "pairs.jsonl", range(4))
    recorded = [
        {"text1": "Node 0 is up.", "text2": "Host 0 runs.", "reply": "Score: 4"},
        {"text1": "Host 1 runs.", "text2": "Node 1 is up. ", "reply": '{"score": 2}', "annotator": "judge"},
        {"text1": "Node 2 is up.", "text2": "Host 2 runs.", "reply": "5"},
        {"text1": "Host 2 runs.", "text2": "Node 2 is up.", "reply": "4"},
        {"text1": "Node 3 is up.", "text2": "Host 3 runs.", "reply": "1", "annotator": "another"},
    ]
    replies = tmp_path / "grades.jsonl"
    replies.write_text("".join(json.dumps(row) + "\n" for row in recorded))
    arguments = ["llm-score", "--model", "judge", "--engine", "recorded", "--replies", str(replies), "--json"]
    arguments += ["--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception
    counts = json.loads(done.stdout)
    assert (counts["requests"], counts["kept"], counts["failed"]) == (4, 3, {"not_recorded": 1})
    found = {row["text1"]: row["score"] for row in rows(tmp_path / "run" / "scores.jsonl")}
    assert found == {"Node 0 is up.": 4, "Node 1 is up.": 2, "Node 2 is up.": 5}
    refused = CliRunner().invoke(app, [*arguments, "--pairs-per-call", "2"])
    assert (refused.exit_code, "recorded grades are of single pairs" in str(refused.exception)) == (1, True)


def test_equal_pairs_are_graded_once_and_blank_ones_never(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('sentence1,sentence2\na b,c d\nC d.,A b\n"",x\ne f,g h\n')
    pairs = PairFile(path)
    assert [(pair.text1, pair.text2) for pair in pairs] == [("a b", "c d"), ("e f", "g h")]
    assert (pairs.repeated, pairs.blank, pairs.count) == (1, 1, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text1": "a", "text2": "b"}\n{"text1": "a", "other": "b"}\n', r"pairs\.jsonl:2: no two texts"),
        ('{"text1": "a", "text2": 5}\n', r"pairs\.jsonl:1: field 'text2' must be a string, got int"),
        ('{"text1": "a", "text2": "b\\u0000"}\n', r"pairs\.jsonl:1: field 'text2' holds NUL characters"),
        ('{"text1": "a", "text2": "b"}\n{oops\n', r"pairs\.jsonl:2: not valid JSON"),
        ("", "holds no pairs"),
    ],
)
def test_a_bad_row_is_named_before_anything_is_asked(tmp_path, content, message):
    (tmp_path / "pairs.jsonl").write_text(content)
    with FakeOpenAI(grader) as server:
        with pytest.raises(InputError, match=message):
            score(config(tmp_path, server))
        assert not server.seen


def test_a_prompt_of_ones_own_needs_its_placeholder(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(2))
    prompt = tmp_path / "mine.txt"
    prompt.write_text('+++\nplaceholders = ["pairs"]\nreply = "text"\n+++\nGrade!\n{pairs}\n')
    with FakeOpenAI(grader) as server:
        score(config(tmp_path, server, prompt=prompt))
        assert server.seen[0].prompt.startswith("Grade!\nPair 1\nA: ")
        assert "response_format" not in server.seen[0].body
        prompt.write_text('+++\nplaceholders = []\nreply = "text"\n+++\nGrade!\n')
        with pytest.raises(InputError, match="pairs"):
            score(config(tmp_path, server, prompt=prompt))
