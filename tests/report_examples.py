"""Reports that are made up, for the tests of the pages: every section has something to show."""

from dataclasses import asdict, replace
from html.parser import HTMLParser

import numpy as np
from train_runs import pair_set

from angle_train.evaluation.compare import Evaluation, Result, View
from angle_train.evaluation.statistics import Difference, Interval
from angle_train.report.result import BESIDE, DataNote, FitReport
from angle_train.report.right_shares import shares_of

BETTER, WORSE, SAME = (0.05, 0.01, 0.09), (-0.05, -0.09, -0.01), (0.01, -0.02, 0.04)
CHOICE = {"chosen": 1, "compared": 5, "confidence": 0.9765, "simplest": 0.5, "best": 0.6}
FOLDS = {
    "sizes": [11, 13], "evaluation": 2, "share": 0.3,
    "progress": [0.3333, 0.6667, 1.0], "curve": [0.6456, 0.6734, 0.6612],
}  # fmt: skip
LONG = "The log of a failed deployment, " + "0123456789abcdef" * 30 + ", <b>&amp; its end"


class Tags(HTMLParser):
    """Collects tags with their attributes, and texts; fails where tags do not match."""

    def __init__(self, html):
        super().__init__()
        self.seen, self.texts, self.open = [], [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.seen if name == tag]


def result(pairs, model, value, difference=None, role="test"):
    found = Difference(*difference) if difference else None
    baseline = "backbone" if difference else None
    return Result(pairs, role, 200, model, Interval(value, value - 0.1, value + 0.1), baseline, found)


def report(*tested, kept="tuned", dev=SAME, details=None, **values):
    """The report of a run with these differences on its test sets."""
    choice = CHOICE if kept == "tuned" else CHOICE | {"chosen": 0, "confidence": 0.6321, "best": 0.45}
    name = "tuned" if kept == "tuned" else BESIDE
    results = [result("picked", name, 0.5, dev, role="dev")]
    for i, difference in enumerate(tested):
        results += [result(f"set{i}", "backbone", 0.6), result(f"set{i}", name, 0.6, difference)]
    plain = FitReport(
        backbone="some/model", device="cpu", precision="fp32", steps=4, planned_steps=8, kept=kept,
        recipe={"objective": {"angle_tau": 1.0}, "training": {"prompt": "<b>"}, "description": ""},
        data=[DataNote("train", "pairs & more", 100, "0-1, detected", "ab" * 32)],
        curve=[{"step": 0, "epoch": 0.0, "dev": 0.5}, {"step": 4, "epoch": 1.0, "dev": 0.625}],
        best_step=4, dev_before=0.5, dev_after=0.625 if kept == "tuned" else 0.45,
        results=results, notes=["3 of 9 dev pairs are training pairs too"],
        details={"choice": choice, **(details or {})},
    )  # fmt: skip
    return replace(plain, **values)


def view(name="set0", count=60, models=("backbone", "tuned")):
    """Pairs whose last model ranks them best."""
    generator = np.random.default_rng(count)
    gold = np.arange(count) % 6 / 5.0
    similarity = {}
    for number, model in enumerate(models, start=1):
        noise = generator.normal(size=count)
        similarity[model] = np.clip(0.6 * gold + 0.3 * noise / number, -1, 0.99)
    texts = [f"text {i} of {count}" for i in range(count)]
    texts[0] = LONG
    return View(pair_set([(text, f"other {text}") for text in texts], gold, name), similarity)


def views():
    """Two sets of pairs."""
    return [view("set0"), view("set1-" + "very-long-name-" * 6, count=700)]


def made_report():
    """A run that has everything a report can hold."""
    shown = views()
    note = DataNote("test", shown[1].pairs.name, 700, "0-5, as stated", "cd" * 32)
    leak = {"role": "test", "name": "set0", "origin": "training", "count": 60, "pairs": 7, "texts": 0.237}
    details = {
        "leaks": [leak],
        "dropped": {"near copies": 1311},
        "lengths": {"max_seq_length": 264, "truncated": 0.0173, "longest": 1893},
        "folds": FOLDS,
        "merge": {"share": 0.3, "shares": [0.0, 0.3], "dev": [0.6511, 0.6622]},
        "comparisons": [asdict(shares_of(v)) for v in shown],
        "command": "angle-train fit --recipe recipe.toml --data 'my <pairs>.jsonl' --out model",
        "processes": 3,
    }  # fmt: skip
    made = report(BETTER, WORSE, details=details)
    results = [replace(r, pairs=shown[1].pairs.name) if r.pairs == "set1" else r for r in made.results]
    return replace(made, results=results, data=[*made.data, note])


def score(task, model, value, difference=None, **more):
    found = Difference(*difference) if difference else None
    baseline = "backbone" if difference else None
    interval = Interval(value, value - 0.02, value + 0.02)
    return Result(task, "test", 1379, model, interval, baseline, found, **more)


def made_suite():
    """Two tasks, two models; a third task failed."""
    scores = [
        score("stsb", "backbone", 0.8203),
        score("stsb", "tuned", 0.8722, BETTER),
        score("sick-r", "backbone", 0.7777, standard_size=False),
        score("sick-r", "tuned", 0.7814, SAME, standard_size=False),
    ]
    shown = [view("stsb"), view("sick-r")]
    return Evaluation(scores, failed={"trec": "data/trec/test.jsonl.gz is missing"}, views=shown)
