"""What llm-score grades: runs and files of pairs, each pair once, and what it cannot use."""

import json

import pytest
from fake_openai import FakeOpenAI
from labelling_runs import read_rows as rows
from labelling_runs import run_json
from score_runs import config, grader, write_pairs
from typer.testing import CliRunner

from angle_data.annotators.spec import EngineConfig
from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.score import plan_score, score
from angle_data.labelling.texts import PairFile


def test_several_runs_and_files_are_graded_together_and_each_pair_once(tmp_path):
    for name, polarity, texts in (
        ("a", "synonym", ["It runs.", "All good."]),
        ("b", "antonym", ["it runs!", "It fell."]),
        ("c", "synonym", ["It is there."]),
    ):
        known = {"source_id": "1", "source": "It is up.", "polarity": polarity, "model": name, "key": "00"}
        write_jsonl(tmp_path / name / "candidates.jsonl", ({**known, "text": text} for text in texts))
    mined = [("It fell.", "It is up."), ("One.", "Two.")]
    mined = ({"text1": one, "text2": other, "kind": "near"} for one, other in mined)
    write_jsonl(tmp_path / "mined.jsonl", mined)
    with FakeOpenAI(grader) as server:
        arguments = ["llm-score", str(tmp_path / "a"), str(tmp_path / "b"), "--model", "judge", "--json"]
        arguments += ["--pairs", str(tmp_path / "mined.jsonl"), "--base-url", server.url]
        arguments += ["--pairs", str(tmp_path / "c" / "candidates.jsonl")]
        arguments += ["--out", str(tmp_path / "run"), "--pairs-per-call", "10"]
        planned = CliRunner().invoke(app, [*arguments, "--dry-run"])
        assert (json.loads(planned.stdout)["to_ask"], server.seen) == (1, [])
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception
    counts = json.loads(done.stdout)
    assert (counts["requests"], counts["kept"], counts["repeated_pairs"]) == (1, 5, 2)
    graded = {row["text2"] for row in rows(tmp_path / "run" / "scores.jsonl")}
    assert graded == {"It runs.", "All good.", "It fell.", "Two.", "It is there."}
    assert len(run_json(tmp_path)["pairs"]) == 4


@pytest.mark.parametrize(
    ("runs", "files", "message"),
    [
        ([], [], "nothing to grade: give run folders of llm-label, or files with --pairs FILE"),
        (["none"], [], r"none holds no candidates\.jsonl; give the folder"),
        (["pairs.jsonl"], [], r"pairs\.jsonl holds no candidates\.jsonl; give the folder"),
        ([], ["pairs.jsonl", "pairs.jsonl"], "is given twice"),
        (["odd"], [], r"odd/candidates\.jsonl:1: .* a degree from 1 to 5, one of the two"),
    ],
)
def test_unusable_inputs_are_named(tmp_path, runs, files, message):
    write_pairs(tmp_path / "pairs.jsonl", range(2))
    odd = {"source_id": "a", "source": "One.", "polarity": None, "text": "1.", "model": "m", "key": "k"}
    write_jsonl(tmp_path / "odd/candidates.jsonl", [odd | {"degree": 9}])
    engine = EngineConfig(model="judge", base_urls=("http://localhost:1",))
    inputs = {"runs": tuple(map(tmp_path.joinpath, runs)), "pairs": tuple(map(tmp_path.joinpath, files))}
    with pytest.raises(InputError, match=message):
        score(ScoreConfig(engine, tmp_path / "run", **inputs))
    assert not (tmp_path / "run").exists()


def test_nobody_pays_for_grades_of_ones_own_sentences_unknowing(tmp_path, caplog):
    for name, texts in (("judge", ["It runs.", "It is on."]), ("other", ["It is up, too."])):
        known = {"source_id": "1", "source": "It is up.", "polarity": "synonym", "model": name, "key": "00"}
        write_jsonl(tmp_path / name / "candidates.jsonl", ({**known, "text": text} for text in texts))
    write_pairs(tmp_path / "pairs.jsonl", range(2))
    with FakeOpenAI(grader) as server:
        alone = config(tmp_path, server, runs=(tmp_path / "judge",), pairs=())
        for grade in (plan_score, score):
            with pytest.raises(InputError, match="judge wrote 2 of 2 candidates itself, and its grades of"):
                grade(alone)
        for more in ({"runs": (tmp_path / "judge", tmp_path / "other"), "pairs": ()}, {"runs": alone.runs}):
            caplog.clear()
            plan_score(config(tmp_path, server, **more))
            all_of = 2 + ("other" in str(more))
            assert f"judge wrote 2 of {all_of} candidates itself, and its grades of them" in caplog.text
        caplog.clear()
        plan_score(config(tmp_path, server, runs=(tmp_path / "other",)))
        assert "itself" not in caplog.text
        ours = {"checkpoint": "judge", "base_urls": alone.engine.base_urls}
        (tmp_path / "other/run.json").write_text(json.dumps(ours))
        said = r"judge \(judge at http.*, as other\) wrote 1 of 1 candidates "
        with pytest.raises(InputError, match=said):
            plan_score(config(tmp_path, server, runs=(tmp_path / "other",), pairs=()))
        assert server.seen == []


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
        ("", "holds no pairs"),
    ],
)
def test_a_bad_row_is_named_before_anything_is_asked(tmp_path, content, message):
    (tmp_path / "pairs.jsonl").write_text(content)
    with FakeOpenAI(grader) as server:
        with pytest.raises(InputError, match=message):
            score(config(tmp_path, server))
        assert not server.seen


def test_a_pair_that_another_file_spells_otherwise_is_not_graded_anew(tmp_path):
    def write(name, change):
        rows = ({"text1": change(f"Node {n} is up."), "text2": f"Host {n} runs."} for n in range(5))
        write_jsonl(tmp_path / name, rows)
        return tmp_path / name

    first, second = write("pairs.jsonl", str), write("other.jsonl", lambda each: each.upper().strip("."))
    with FakeOpenAI(lambda body: '{"grades": [{"id": 1, "score": 2.5}]}') as server:
        assert score(config(tmp_path, server, pairs=(first,))).counts["asked"] == 5
        both = config(tmp_path, server, pairs=(second, first))
        assert plan_score(both).to_ask == 0
        counts = score(both).counts
    assert (counts["asked"], counts["pairs"], counts["kept"]) == (0, 5, 5)
    found = {row["text1"] for row in rows(tmp_path / "run" / "scores.jsonl")}
    assert found == {f"NODE {n} IS UP" for n in range(5)}
