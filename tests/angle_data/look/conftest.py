"""Folders to look at: a run of llm-label, one of llm-score, an ensemble, a data set of issues."""

import pytest

from angle_data.gis.build.dataset import COLUMNS
from angle_data.jsonl import write_jsonl
from angle_data.publish.card import Card, write_dataset
from angle_data.publish.dataset import write_rows
from angle_data.records import Candidate, LabelledPair, Rejection

NASTY = '</script><script>document.title = "run"</script> <b>עברית</b> \x1b[31m\u202e, "quoted"\nsecond line'


def pair(number, score, polarity, **fields):
    texts = (f"source text {number}", f"{polarity} sentence {number}")
    known = (int(score > 0.5), score, 0.9, polarity, f"s{number}", ["ann", "ben"])
    return LabelledPair(*texts, *known, **fields)


@pytest.fixture
def nasty():
    """A text with HTML, a script, controls, two directions and two lines."""
    return NASTY


@pytest.fixture
def run(tmp_path):
    """Twelve texts: a synonym and an antonym of each are kept, one part in three was rejected."""
    path = tmp_path / "run"
    texts = [f"source text {number}" for number in range(11)] + [NASTY]
    kept = [
        Candidate(f"s{n}", text, polarity, f"{polarity} of {n}", "ann", "k")
        for n, text in enumerate(texts)
        for polarity in ("synonym", "antonym")
    ]
    dropped = [
        Rejection(f"s{n}", texts[n], "synonym", "", "ann", "k", reason, f"reply {n} " + "z" * 900)
        for n, reason in ((2, "echo"), (5, "refusal"), (8, "echo"), (11, "refusal"))
    ]
    write_jsonl(path / "candidates.jsonl", (row.to_dict() for row in kept))
    write_jsonl(path / "rejected.jsonl", (row.to_dict() for row in dropped))
    (path / "run.json").write_text('{"command": "llm-label", "finished": false}')
    return path


@pytest.fixture
def grades(tmp_path):
    """Six graded pairs and one without grade."""
    path = tmp_path / "grades"
    rows = [{"text1": f"one {n}", "text2": f"other {n}", "score": n, "model": "gus"} for n in range(6)]
    write_jsonl(path / "scores.jsonl", rows)
    no = {"text1": "one 9", "text2": "other 9", "model": "gus", "reason": "no_grade", "raw": "Sure!"}
    write_jsonl(path / "rejected.jsonl", [no])
    return path


@pytest.fixture
def pairs(tmp_path):
    """An ensemble of 60 texts: pairs that share them, five flipped ones, two that were dropped."""
    path = tmp_path / "pairs"
    rows = [
        pair(number, score, polarity, flags=["flipped"] if number < 5 and score == 1 else [])
        for number in range(60)
        for score, polarity in ((1.0, "synonym"), (0.5, "antonym"), (0.0, "random"))
    ]
    write_dataset(path / "dataset", {"train": rows[30:], "validation": rows[:30]}, Card("t", "s", (), ()))
    dropped = [
        Rejection("s1", "source text 1", "antonym", f"dropped {n}", "cem", "k", "off_topic", f"dropped {n}")
        for n in range(2)
    ]
    write_jsonl(path / "rejected.jsonl", (row.to_dict() for row in dropped))
    return path


@pytest.fixture
def issues(tmp_path):
    """A data set of four pairs of issues."""
    known = dict.fromkeys(COLUMNS, "") | {"number1": 1, "number2": 2}
    kinds = [{"label": n % 2, "kind": ("random", "duplicate")[n % 2]} for n in range(4)]
    rows = [known | {"text1": f"issue {n}", "text2": f"other {n}"} | kind for n, kind in enumerate(kinds)]
    write_rows(tmp_path / "gis" / "dataset", {"train": rows}, COLUMNS, lambda _: "card")
    return tmp_path / "gis"
