"""What results show in a notebook, and `show` and `grade` as functions."""

import csv
import json
import re

import pytest
from grading import grader

import angle_data
from angle_data import ensemble, grade, label, show
from angle_data.api import Rows
from angle_data.calling.as_html import table_html
from angle_data.jsonl import write_jsonl


@pytest.fixture
def pairs(tmp_path, examples):
    """A run over twenty of the demo's texts, and the pairs made of it."""
    rows = [json.loads(line) for line in (examples / "texts.jsonl").read_text().splitlines()[:20]]
    replies = examples / "replies" / "annotator-b.jsonl"
    run = label(rows, model="annotator-b", engine="recorded", replies=replies, out=tmp_path / "run")
    return run, ensemble(run, purpose="opposites", out=tmp_path / "pairs")


def test_a_table_escapes_what_it_shows_and_cuts_what_is_long():
    html = table_html(["<b>said</b>"], [{"a": "<script>", "b": ["x", "y"]}, {"a": "z" * 300, "c": 0.12345}])
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<p>&lt;b&gt;said&lt;/b&gt;</p>" in html
    assert "x, y" in html
    assert ">0.123<" in html
    assert "z" * 201 not in html
    assert html.count("<th ") == 3
    assert "<table" not in table_html(["nothing"], [])


def test_results_show_their_first_rows_in_a_notebook(pairs, tmp_path):
    run, made = pairs
    html = made._repr_html_()
    assert "candidates" in html
    first = made.to_dataset()["train"][0]
    assert first["text1"] in html
    assert html.count("<tr>") == 11
    assert "kept 80" in run._repr_html_()
    assert run._repr_html_().count("<tr>") == 11
    write_jsonl(tmp_path / "rows.jsonl", [{"text": f"t{n} <b>"} for n in range(30)])
    html = Rows(tmp_path / "rows.jsonl")._repr_html_()
    assert "10 of 30 rows" in html
    assert "t9 &lt;b&gt;" in html
    assert "t10" not in html


def test_show_is_a_function(pairs):
    _, made = pairs
    found = show(made, n=6)
    assert len(found.items) == 6
    assert found.counts["kept"]["count"] > 50
    assert "kept" in repr(found)
    assert found.items[0]["text1"].split()[0] in found._repr_html_()
    with pytest.raises(TypeError, match="reason"):
        show(made, reasn="echo")


def test_grade_is_a_function(pairs, tmp_path):
    _, made = pairs
    with grader():
        found = grade(made, n=12, out=tmp_path / "my.csv")
    assert found["graded"] == 12
    assert set(found["files"]) == {str(tmp_path / "my-dev.csv"), str(tmp_path / "my-test.csv")}
    again = grade(finish=tmp_path / "my.csv", second=tmp_path / "my.csv")
    assert again["agreement"]["spearman"] == pytest.approx(1)
    with (tmp_path / "my-dev.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == again[str(tmp_path / "my-dev.csv")]
    assert {"grade", "show", "Shown"} <= set(angle_data.__all__)


def test_the_card_of_the_pairs_names_writers_and_prompts(pairs):
    card = (pairs[1].path / "dataset" / "README.md").read_text()
    assert re.search(r"^- annotator-b \(recorded-\w+\), prompts structured: 80 candidates$", card, re.M)
