"""Grading runs against a real socket: what is asked, what is written, and what is never asked twice."""

import itertools
import json
from dataclasses import replace

import pytest
from fake_openai import FakeOpenAI, Fault
from labelling_runs import read_rows as rows
from labelling_runs import run_json
from score_runs import config, grader, shown, true_grade, write_pairs
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import AnnotatorError, StoppedError
from angle_data.jsonl import write_jsonl
from angle_data.labelling.pilot import pilot
from angle_data.labelling.score import plan_score, score


@pytest.mark.parametrize("per_call", [1, 5])
def test_every_pair_gets_its_own_grade(tmp_path, per_call):
    write_pairs(tmp_path / "pairs.jsonl", range(40))
    with FakeOpenAI(grader) as server:
        result = score(config(tmp_path, server, pairs_per_call=per_call))
        written = (tmp_path / "run" / "scores.jsonl").read_bytes()
        assert score(config(tmp_path, server, pairs_per_call=per_call)).counts["asked"] == 0
    assert (tmp_path / "run" / "scores.jsonl").read_bytes() == written
    scores = rows(tmp_path / "run" / "scores.jsonl")
    assert len(scores) == result.counts["kept"] == result.counts["pairs"] == 40
    assert result.counts["requests"] == len(server.seen)
    assert len(server.seen) == 40 / per_call
    assert all(row["score"] == pytest.approx(true_grade(row["text1"], row["text2"])) for row in scores)
    assert [row["text1"] for row in scores] == [f"Node {i} is up." for i in range(40)]
    for body in (seen.body for seen in server.seen):
        schema = body["response_format"]["json_schema"]["schema"]["properties"]["grades"]
        assert schema["minItems"] == schema["maxItems"] == len(shown(body)) <= per_call
    assert list(scores[0]) == ["text1", "text2", "score", "scale", "model", "key"]
    assert run_json(tmp_path)["finished"] is True


@pytest.mark.parametrize("text", ["{} is up.", "{} is up.\n\nSee\nbelow."])
def test_calls_are_full_and_nothing_graded_is_asked_again_whatever_comes_or_goes(tmp_path, text):
    def write(numbers):
        rows = ({"text1": text.format(f"Node {i}"), "text2": f"Host {i} runs."} for i in numbers)
        write_jsonl(tmp_path / "pairs.jsonl", rows)

    def asked(numbers, most, **changes):
        """Grade the pairs, and return how many pairs each new call held, largest first."""
        write(numbers)
        before = len(server.seen)
        planned = plan_score(config(tmp_path, server, pairs_per_call=most, **changes)).to_ask
        result = score(config(tmp_path, server, pairs_per_call=most, **changes))
        sizes = [seen.prompt.count("\nA: ") for seen in server.seen[before:]]
        assert planned == len(sizes)
        assert result.counts["kept"] == result.counts["pairs"] == len(numbers)
        return sorted(sizes, reverse=True)

    def same(body):
        count = body["messages"][-1]["content"].count("\nA: ")
        return json.dumps({"grades": [{"id": n + 1, "score": n % 5} for n in range(count)]})

    with FakeOpenAI(same) as server:
        assert asked(range(20), 8) == [8, 8, 4]
        assert asked(range(5, 33), 8) == [8, 5]  # 0 to 4 are gone, 20 to 32 are new
        assert asked(range(34), 8) == [1]
        assert asked(range(36), 1) == [1, 1]
        assert asked(range(40), 3) == [3, 1]
        assert asked(range(40), 8) == []
        text = "Host {}"  # from here on other pairs, and then the same ones the other way round
        assert asked(range(3), 1) == [1, 1, 1]
        turned = ({"text1": f"Host {i} runs.", "text2": f"Host Node {i}"} for i in range(3))
        write_jsonl(tmp_path / "pairs.jsonl", turned)
        for most in (1, 8):
            counts = score(config(tmp_path, server, pairs_per_call=most)).counts
            assert (counts["asked"], counts["kept"]) == (0, 3)


def test_a_call_holds_pairs_from_all_over_the_file(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(200))
    with FakeOpenAI(grader) as server:
        score(config(tmp_path, server, pairs_per_call=10))
    calls = [[int(a.split()[1]) for _, a, _ in shown(seen.body)] for seen in server.seen]
    near = [abs(one - other) == 1 for call in calls for one, other in itertools.pairwise(call)]
    assert sum(near) < len(near) / 10


@pytest.mark.parametrize("fault", ["skips", "cut off", "refused"])
def test_pairs_that_a_call_leaves_without_a_grade_are_asked_alone(tmp_path, fault):
    write_pairs(tmp_path / "pairs.jsonl", range(20, 32))

    def faulty(body):
        pairs = shown(body)
        if len(pairs) == 1 or fault == "refused":
            return grader(body)
        whole = json.dumps({"grades": [{"id": 1, "score": true_grade(*pairs[0][1:])}]})
        return whole if fault == "skips" else whole[:-2] + ', {"id": 2, "sco'

    end = "length" if fault == "cut off" else "stop"
    faults = [Fault(400, message="odd text")] if fault == "refused" else []
    with FakeOpenAI(faulty, faults=faults, finish_reason=end) as server:
        shared = config(tmp_path, server, pairs_per_call=6)
        shared = replace(shared, engine=replace(shared.engine, concurrency=1))
        counts = score(shared).counts
        missing = 6 if fault == "refused" else 10
        assert (counts["kept"], counts["rejected"], counts["asked"]) == (12, {}, 2 + missing)
        assert counts["requests"] == counts["replied"] + counts["refused"] == len(server.seen) == 2 + missing
        assert all(len(shown(seen.body)) == 1 for seen in server.seen[2:])
        assert score(shared).counts["asked"] == plan_score(shared).to_ask == 0
        assert run_json(tmp_path)["finished"] is True
    scores = rows(tmp_path / "run" / "scores.jsonl")
    assert all(row["score"] == pytest.approx(true_grade(row["text1"], row["text2"])) for row in scores)


def test_a_pair_without_a_grade_is_set_aside_after_a_few_attempts(tmp_path):
    """In its call, alone, and alone with its texts exchanged; --retry-rejected asks once more."""
    write_pairs(tmp_path / "pairs.jsonl", range(12))
    odd, silent = "Node 3 is up.", ["Node 3 is up.", "Node 7 is up."]
    cured = []

    def reply(body):
        grades = []
        for n, a, b in shown(body):
            mute = {a, b} & set(silent) and not (cured or (b in silent and b != odd))  # 7 answers exchanged
            grades += [] if mute else [{"id": n, "score": true_grade(a, b)}]
        return json.dumps({"grades": grades}) if grades else "I cannot say."

    with FakeOpenAI(reply) as server:
        shared = config(tmp_path, server, pairs_per_call=4)
        counts = score(shared).counts
        assert (counts["kept"], counts["asked"]) == (11, 3 + 2 + 2)
        assert sum(counts["rejected"].values()) == 1
        ((row),) = rows(tmp_path / "run" / "rejected.jsonl")
        assert (row["text1"], row["raw"]) == (odd, "I cannot say.")
        assert run_json(tmp_path)["finished"] is True
        assert score(shared).counts["asked"] == plan_score(shared).to_ask == 0
        again = replace(shared, retry_rejected=True)
        for kept in (11, 12):
            assert plan_score(again).to_ask == 1
            counts = score(again).counts
            assert (counts["asked"], counts["kept"]) == (1, kept)
            cured.append(True)
        assert plan_score(again).to_ask == 0
        cured.clear()
        fresh = score(replace(again, out=tmp_path / "fresh")).counts
        assert (fresh["kept"], fresh["asked"]) == (11, 3 + 2 + 2)  # set aside in this session


@pytest.mark.parametrize(("per_call", "calls"), [(1, 60), (10, 6)])
def test_a_grader_that_never_gives_a_grade_costs_its_forecast(tmp_path, per_call, calls):
    write_pairs(tmp_path / "pairs.jsonl", range(60))
    asked = {"pairs_per_call": per_call}
    with FakeOpenAI(lambda body: '{"grades": []}') as server:
        hopeless = config(tmp_path, server, **asked)
        hopeless = replace(hopeless, engine=replace(hopeless.engine, max_useless=0))
        assert plan_score(hopeless).to_ask == calls
        for _ in range(2):
            with pytest.raises(AnnotatorError, match="no reply is of use"):
                score(hopeless)
            assert len(server.seen) == calls
    with FakeOpenAI(grader) as server:  # it is mended: what gave nothing is asked once more
        mended = replace(config(tmp_path, server, **asked), retry_rejected=True)
        counts = score(mended).counts
        assert (counts["kept"], counts["asked"]) == (60, calls)


def test_second_questions_are_no_more_than_the_first_ones_however_often_the_run_is_given(tmp_path):
    """One pair of each call of ten gets a grade, and none that is asked alone: 270 would be asked twice."""
    write_pairs(tmp_path / "pairs.jsonl", range(300))

    def one_of_ten(body):
        pairs = shown(body)
        return json.dumps({"grades": [{"id": 1, "score": 3.0}] if len(pairs) > 1 else []})

    with FakeOpenAI(one_of_ten) as server:
        shared = config(tmp_path, server, pairs_per_call=10)
        planned = plan_score(shared)
        assert (planned.to_ask, planned.most_again) == (30, 30)
        assert "at most 30 further requests where replies leave pairs without a grade" in str(planned)
        for _ in range(3):
            counts = score(shared).counts
            assert len(server.seen) == 60 == counts["requests"]
            assert (counts["kept"], sum(counts["rejected"].values()), counts["asked_again"]) == (30, 270, 30)
        assert plan_score(shared).to_ask == 0


@pytest.mark.parametrize("per_call", [1, 4])
def test_a_pilot_grades_a_sample_and_forecasts_the_rest(tmp_path, per_call):
    write_pairs(tmp_path / "pairs.jsonl", range(60))
    with FakeOpenAI(grader) as server:
        whole = config(tmp_path, server, pairs_per_call=per_call)
        done = pilot(replace(whole, pilot=20))
        first = {row["text1"] for row in rows(tmp_path / "run/scores.jsonl")}
        assert len(first) == 20
        assert len(server.seen) == 20 / per_call
        assert run_json(tmp_path)["finished"] is False
        assert done.measured["requests"] == (20 / per_call, 60 / per_call)
        assert done.measured["grades kept"] == (20, 60)
        assert (done.useful, len(done.pairs)) == (1.0, 10)
        assert "all pairs" in str(done)
        counts = score(whole).counts
        assert (counts["kept"], counts["requests"]) == (60, 60 / per_call) == (60, len(server.seen))
        assert run_json(tmp_path)["finished"] is True
    spread = sorted(int(text.split()[1]) for text in first)
    assert spread[0] < 20 < 40 < spread[-1]  # from all over the file


@pytest.mark.parametrize(("count", "warned"), [(40, True), (19, False)])
def test_a_grader_that_always_says_the_same_is_warned_of(tmp_path, caplog, count, warned):
    write_pairs(tmp_path / "pairs.jsonl", range(count))

    def parrot(body):
        grades = [{"id": n, "score": 2 if a == "Node 1 is up." else 3.5} for n, a, _ in shown(body)]
        return json.dumps({"grades": grades})

    with FakeOpenAI(parrot) as server:
        score(config(tmp_path, server))
    said = f"{count - 1} of {count} grades are 3.5: this grader does not judge"
    assert (said in caplog.text) == warned


def test_what_cannot_be_read_is_accounted_for_with_its_reason(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(4))
    replies = {"0": "no idea", "1": '{"score": 9}', "2": "3 or 4", "3": '{"score": 2}'}

    def reply(body):
        ((_, a, b),) = shown(body)
        a = min(a, b, key=lambda text: not text.startswith("Node"))
        return replies[a.split()[1]]

    with FakeOpenAI(reply) as server:
        counts = score(config(tmp_path, server)).counts
    rejected = [(r["text1"][:6], r["reason"], r["raw"]) for r in rows(tmp_path / "run" / "rejected.jsonl")]
    assert rejected == [
        ("Node 0", "no_number", "no idea"),
        ("Node 1", "out_of_range", '{"score": 9}'),
        ("Node 2", "ambiguous", "3 or 4"),
    ]
    assert counts["pairs"] == counts["kept"] + sum(counts["rejected"].values()) == 4
    assert counts["replied"] == counts["requests"] == 4 + 3  # once more the other way round


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


REPLIES = [
    {"text1": "Node 0 is up.", "text2": "Host 0 runs.", "reply": "Score: 4"},
    {"text1": "Host 1 runs.", "text2": "Node 1 is up. ", "reply": '{"score": 2}', "annotator": "judge"},
    {"text1": "Node 2 is up.", "text2": "Host 2 runs.", "reply": "5"},
    {"text1": "Host 2 runs.", "text2": "Node 2 is up.", "reply": "4"},  # the order that is asked counts
    {"text1": "Node 3 is up.", "text2": "Host 3 runs.", "reply": "1", "annotator": "another"},
]
GRADED = [
    {"source_id": "1", "source": "Node 0 is up.", "text": "Host 0 runs.", "grader": "judge", "score": 4},
    {"text1": "host 1 runs", "text2": "Node 1 is up", "kind": "near", "grader": "judge", "score": 2},
    {"text1": "Node 2 is up.", "text2": "Host 2 runs.", "score": 5},
    {"text1": "Node 3 is up.", "text2": "Host 3 runs.", "score": 1, "grader": "another"},
]


@pytest.mark.parametrize("recorded", [REPLIES, GRADED], ids=["replies", "files of graded pairs"])
def test_recorded_grades_need_no_server(tmp_path, recorded):
    """In either order of the texts; pairs count as equal as they do everywhere else."""
    write_pairs(tmp_path / "pairs.jsonl", range(4))
    write_jsonl(tmp_path / "grades.jsonl", recorded)

    def run(*more, out="run"):
        arguments = ["llm-score", "--engine", "recorded", "--replies", str(tmp_path / "grades.jsonl")]
        arguments += ["--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(tmp_path / out), "--json"]
        return CliRunner().invoke(app, [*arguments, "--model", *more])

    done = run("judge")
    assert done.exit_code == 0, done.exception
    counts = json.loads(done.stdout)
    assert (counts["requests"], counts["kept"], counts["not_recorded"]) == (4, 3, 1)
    assert (counts["failed"], counts["rejected"]) == ({}, {"not_recorded": 1})
    assert [row["reason"] for row in rows(tmp_path / "run" / "rejected.jsonl")] == ["not_recorded"]
    assert run_json(tmp_path)["finished"] is True
    found = {row["text1"]: row["score"] for row in rows(tmp_path / "run" / "scores.jsonl")}
    assert found == {"Node 0 is up.": 4, "Node 1 is up.": 2, "Node 2 is up.": 5}
    assert "recorded grades are of single pairs" in str(run("judge", "--pairs-per-call", "2").exception)
    for changed, said in ((7, "from 0 to 5, got 7"), (True, "got True"), ("4", "got '4'")):
        write_jsonl(tmp_path / "grades.jsonl", [{**GRADED[0], "score": changed}])
        assert f"{said}" in str(run("judge").exception)
    write_jsonl(tmp_path / "grades.jsonl", [GRADED[0], GRADED[3]])
    said = str(run("z", out="z").exception)
    assert "annotators found: another, judge (choose with --model)" in said


def test_a_shared_call_that_fails_each_time_is_asked_pair_by_pair(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(12))

    def spoils(prompt):
        quickly = {"retry-after-ms": "1"}
        return Fault(500, quickly) if "Pair 2" in prompt and "Node 3 " in prompt else None

    with FakeOpenAI(grader, spoils=spoils) as server:
        settings = config(tmp_path, server, pairs_per_call=4)
        counts = score(settings).counts
        assert (counts["pairs"], counts["kept"], counts["failed"]) == (12, 12, {})
        assert counts["requests"] == 2 + 4
        assert run_json(tmp_path)["finished"] is True
        assert score(settings).counts["asked"] == 0
