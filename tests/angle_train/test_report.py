"""Tables, verdicts and the HTML files, from results that are made up."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from angle_train.evaluate.bootstrap import Difference, Interval
from angle_train.evaluate.compare import WORD_OVERLAP, Result
from angle_train.pairs import PairSet
from angle_train.report.html import write_eval_html, write_fit_html
from angle_train.report.summary import DataNote, FitReport
from angle_train.report.table import results_table

BETTER, WORSE, SAME = (0.05, 0.01, 0.09), (-0.05, -0.09, -0.01), (0.01, -0.02, 0.04)


def result(pairs, model, value, difference=None, role="test"):
    found = Difference(*difference, p_not_better=0.1) if difference else None
    baseline = "backbone" if difference else None
    return Result(pairs, role, 200, model, Interval(value, value - 0.1, value + 0.1), baseline, found)


def report(*tested, kept="tuned", dev=SAME):
    results = [
        result("picked", "tuned", 0.5, dev, role="dev"),
        *(
            r
            for i, d in enumerate(tested)
            for r in (result(f"set{i}", "backbone", 0.6), result(f"set{i}", "tuned", 0.6, d))
        ),
    ]
    return FitReport(
        backbone="some/model",
        recipe={"objective": {"angle_tau": 1.0}, "training": {"prompt": "<b>"}, "description": ""},
        device="cpu",
        precision="fp32",
        data=[DataNote("train", "pairs & more", 100, "0-1, detected", "ab" * 32)],
        curve=[
            {"step": 0, "epoch": 0.0, "dev": 0.5, "terms": {}},
            {"step": 4, "epoch": 1.0, "dev": 0.625, "terms": {"loss": 2.0}},
        ],
        steps=4,
        planned_steps=8,
        best_step=4,
        kept=kept,
        dev_before=0.5,
        dev_after=0.625 if kept == "tuned" else 0.45,
        results=results,
        notes=["3 of 9 dev pairs are training pairs too"],
    )  # fmt: skip


def test_table_is_aligned_and_multiplied_by_a_hundred():
    rows = [
        result("news", WORD_OVERLAP, -0.236),
        result("news", "backbone", 0.67),
        result("news", "tuned", 0.782, BETTER),
    ]
    assert results_table(rows).splitlines() == [
        "pairs    n  model         Spearman            95 %  difference          95 %  verdict",
        "-----  ---  ------------  --------  --------------  ----------  ------------  -------",
        "news   200  word overlap     -23.6  [-33.6, -13.6]",
        "news   200  backbone          67.0    [57.0, 77.0]",
        "news   200  tuned             78.2    [68.2, 88.2]        +5.0  [+1.0, +9.0]  better",
        "Spearman x 100, 95 % bootstrap intervals over pairs; differences to backbone, paired.",
    ]


@pytest.mark.parametrize(
    ("tested", "head"),
    [
        ([BETTER], "Tuning helped."),
        ([BETTER, BETTER], "Tuning helped."),
        ([BETTER, SAME], "Tuning helped on some pairs and made no reliable difference on others."),
        ([BETTER, WORSE], "Tuning helped on some pairs and hurt on others."),
        ([SAME], "Tuning did not help: the tuned model is not reliably better on any set of pairs."),
        (
            [WORSE, SAME],
            "Tuning did not help: the tuned model is reliably worse on some pairs and better on none.",
        ),
    ],
)
def test_verdict_weighs_all_test_sets(tested, head):
    assert report(*tested).verdict()[0] == head


def test_verdict_lists_each_test_set_with_its_interval():
    assert report(BETTER, WORSE, SAME).verdict()[1:] == [
        "tuning helped on set0: +5.0 [+1.0, +9.0]",
        "tuning hurt on set1: -5.0 [-9.0, -1.0]",
        "no reliable difference on set2: +1.0 [-2.0, +4.0]",
    ]


def test_verdict_without_test_sets_rests_on_dev_and_says_so():
    assert report(dev=BETTER).verdict() == [
        "Tuning helped.",
        "tuning helped on picked: +5.0 [+1.0, +9.0]",
        "these pairs also chose the checkpoint, so the gain is flattered; give --test pairs",
    ]


def test_verdict_says_when_the_backbone_was_kept():
    assert report(BETTER, kept="backbone").verdict()[0] == (
        "Tuning did not help: no checkpoint ranked the dev pairs better than the backbone "
        "(45.0 at best, backbone 50.0), so the untouched backbone was saved."
    )


def test_json_report_holds_the_verdict_and_reads_back(tmp_path):
    made = report(BETTER, WORSE)
    made.write(tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["format"] == 1
    assert content["verdict"] == made.verdict()
    assert [row.get("verdict") for row in content["results"]].count("worse") == 1
    assert FitReport.read(tmp_path / "report.json") == made


class Tags(HTMLParser):
    """Collects tags and the text between them, and fails where they do not match."""

    def __init__(self):
        super().__init__()
        self.seen, self.open, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in {"meta"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def parsed(path):
    tags = Tags()
    tags.feed(path.read_text())
    assert not tags.open
    return tags


def similarities(name):
    gold = np.linspace(0, 1, 20)
    return PairSet(name, ["a"] * 20, ["b"] * 20, gold, np.ones(20)), gold**2, gold


def test_html_report_is_whole_and_needs_nothing_from_outside(tmp_path):
    made = report(BETTER, WORSE)
    write_fit_html(tmp_path / "report.html", made, [similarities("set0"), similarities("set1")])
    tags = parsed(tmp_path / "report.html")
    names = [name for name, _ in tags.seen]
    assert names.count("svg") == 4  # intervals, learning curve, two clouds
    assert not {"script", "link", "img", "iframe"} & set(names)
    links = [
        value
        for _, attrs in tags.seen
        for key, value in attrs.items()
        if key in ("src", "href", "xlink:href")
    ]
    assert all(value.startswith("#") for value in links)
    assert "url(http" not in (tmp_path / "report.html").read_text()
    for line in (*made.verdict(), *made.notes, "4 steps, stopped early of 8; best at step 4"):
        assert line in tags.text
    assert ("td", {"class": "bad"}) in tags.seen
    assert ("td", {"class": "good"}) in tags.seen


def test_names_are_escaped(tmp_path):
    evil = "<script>alert('$x$')</script>"
    made = replace(report(BETTER), backbone=evil, notes=[evil])
    made = replace(made, results=[replace(r, pairs=evil, model=evil) for r in made.results])
    write_fit_html(tmp_path / "report.html", made, [similarities(evil)])
    write_eval_html(tmp_path / "eval.html", made.results)
    for name in ("report.html", "eval.html"):
        tags = parsed(tmp_path / name)
        assert "script" not in {tag for tag, _ in tags.seen}
        assert evil in tags.text


def test_html_report_is_the_same_each_time(tmp_path):
    for name in ("one.html", "two.html"):
        write_fit_html(tmp_path / name, report(BETTER), [similarities("set0")])
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


@pytest.mark.parametrize(
    ("tested", "kept", "tone"),
    [
        ([BETTER], "tuned", "good"),
        ([SAME], "tuned", ""),
        ([BETTER, WORSE], "tuned", "bad"),
        ([BETTER], "backbone", ""),
    ],
)
def test_colour_of_the_verdict(tmp_path, tested, kept, tone):
    write_fit_html(tmp_path / "report.html", report(*tested, kept=kept), [])
    (box,) = re.findall(r'<div class="verdict ([a-z]*)">', (tmp_path / "report.html").read_text())
    assert box == tone
