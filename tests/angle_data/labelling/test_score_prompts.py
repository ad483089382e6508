"""What llm-score asks: packaged prompts, prompts of ones own, and the scale of the grades."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI
from labelling_runs import read_rows as rows
from score_runs import config, grader, write_pairs

from angle_data.annotators.spec import EngineConfig
from angle_data.errors import AnnotatorError, InputError
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.score import score
from angle_data.records import MEANINGS, OPPOSITES
from angle_data.resources import packaged_folder


def test_the_prompt_holds_no_grade_that_could_be_copied(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", range(1))

    def copy(body):
        (example,) = re.findall(r"\{.*\}", body["messages"][-1]["content"])
        return example

    with FakeOpenAI(copy) as server, pytest.raises(AnnotatorError, match="no reply is of use"):
        score(config(tmp_path, server))


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
        with pytest.raises(InputError, match=f"{tmp_path} is a directory; give a file"):
            score(config(tmp_path, server, prompt=tmp_path))


def test_the_purpose_chooses_the_prompt_and_all_prompts_have_one_scale(tmp_path):
    """Opposites get the grade that the page for people gives them; nothing stated is asked as before."""
    write_pairs(tmp_path / "pairs.jsonl", range(1))
    said = {}
    with FakeOpenAI(grader) as server:
        for purpose in OPPOSITES:
            out = tmp_path / str(purpose)
            score(replace(config(tmp_path, server, purpose=purpose), out=out))
            said[purpose] = server.seen[-1].prompt
            name = json.loads((out / "run.json").read_text())["prompt"]["name"]
            assert name == f"score/{'opposites' if purpose == 'opposites' else 'pairs'}.txt"
        score(replace(config(tmp_path, server, purpose="search"), out=tmp_path / "search"))
        assert "search query" in server.seen[-1].prompt
    for prompt in said.values():
        for grade, meaning in enumerate(MEANINGS):
            assert f"\n{grade}: {meaning}" in prompt
    line = next(line for line in said["opposites"].splitlines() if line.startswith("1: "))
    assert "denies or reverses" in line
    assert OPPOSITES["opposites"].rstrip(".") in said["opposites"]
    assert said["topics"] == said[None] != said["opposites"]
    assert "2: the same subject, yet a different statement about it; also when one denies" in said["topics"]


def test_only_packaged_prompts_say_on_which_scale_the_grades_are(tmp_path):
    """A prompt of the user's own may use a part of it, such as 1 to 5."""
    write_pairs(tmp_path / "pairs.jsonl", range(1))
    packaged = packaged_folder("prompts") / "score" / "pairs.txt"
    (tmp_path / "own.txt").write_text(packaged.read_text().replace("5:", "5 :"))
    with FakeOpenAI(grader) as server:
        for prompt, scale in ((None, "0-5"), (Path("answers"), "0-5"), (tmp_path / "own.txt", None)):
            out = tmp_path / f"run-{prompt and prompt.stem}"
            score(replace(config(tmp_path, server), prompt=prompt, out=out))
            (row,) = rows(out / "scores.jsonl")
            assert row.get("scale") == scale


def test_what_the_grades_are_for_is_checked(tmp_path):
    with pytest.raises(InputError, match="--purpose must be one of opposites, topics, search, got 'x'"):
        ScoreConfig(EngineConfig("m"), tmp_path, purpose="x")
    with pytest.raises(InputError, match="--purpose and --prompt both choose the prompt"):
        ScoreConfig(EngineConfig("m"), tmp_path, purpose="topics", prompt=Path("answers"))
