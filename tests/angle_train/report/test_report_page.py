"""The pages of runs and of evaluations, read back: what they need, and what they say row by row."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from report_examples import (
    BESIDE,
    BETTER,
    CHOICE,
    FOLDS,
    LONG,
    SAME,
    WORSE,
    Tags,
    made_report,
    made_suite,
    report,
    result,
    view,
    views,
)
from train_runs import pair_set

from angle_train.evaluation.compare import Evaluation, View
from angle_train.evaluation.statistics import Interval, spearman
from angle_train.report.eval_page import write_eval_page
from angle_train.report.page import write_fit_page

RESULTS = "Rank correlation with the gold scores"
EVIL = "<script>alert('$x$')</script> {{ 7 * 7 }} \" onload=\"x"


def plain(html):
    """What is read on a page, with single spaces."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def rows(html, caption):
    """The rows of the table with this caption: class names, and cells as they are read."""
    (found,) = [
        part
        for part in re.findall(r"<table>.*?</table>", html, re.DOTALL)
        if plain(re.search("<caption>(.*?)</caption>", part)[1]).startswith(caption)
    ]
    lines = re.findall(r'<tr(?: class="([^"]*)")?>(.*?)</tr>', found, re.DOTALL)
    return [
        (kind, [plain(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)])
        for kind, line in lines
    ]


def cards(html):
    """The gains and the losses that stand on cards, as they are read."""
    gains, losses = (
        re.findall(r'<div class="card">(.*?)</div>', side, re.DOTALL)
        for side in re.findall(r"<h4>(?:Gains|Losses)</h4>(.*?)\n</div>", html, re.DOTALL)
    )
    return list(map(plain, gains)), list(map(plain, losses))


@pytest.fixture
def fit_page(tmp_path):
    def write(made, shown=()):
        write_fit_page(tmp_path / "fit.html", made, shown)
        return (tmp_path / "fit.html").read_text()

    return write


@pytest.fixture
def eval_page(tmp_path):
    def write(found, command="command"):
        write_eval_page(tmp_path / "eval.html", found, command)
        return (tmp_path / "eval.html").read_text()

    return write


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The three kinds of page, by name."""
    directory = tmp_path_factory.mktemp("pages")
    write_fit_page(directory / "fit", made_report(), views())
    write_eval_page(
        directory / "eval", Evaluation(made_report().results, views=views()), "angle-train eval --pairs 'a b'"
    )
    write_eval_page(directory / "suite", made_suite(), "angle-train eval --task sts")
    return {path.name: path.read_text() for path in directory.iterdir()}


@pytest.mark.parametrize("kind", ["fit", "eval", "suite"])
def test_page_needs_nothing_from_outside_and_can_be_used_without_seeing_it(pages, kind):
    html = pages[kind]
    tags = Tags(html)
    assert html.startswith("<!DOCTYPE html>\n")
    assert not {"script", "link", "img", "iframe", "object"} & {name for name, _ in tags.seen}
    attributes = [(key, value) for _, attrs in tags.seen for key, value in attrs.items()]
    assert not [key for key, _ in attributes if key in ("src", "href", "xlink:href") or key.startswith("on")]
    assert "://" not in html
    assert tags.all("html") == [{"lang": "en"}]
    assert len(tags.all("h1")) == 1
    assert len(tags.all("caption")) == len(tags.all("table"))
    assert all(attrs["scope"] in ("col", "row") for attrs in tags.all("th"))
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in tags.all("svg"))
    assert not re.search(r"\bnan\b", html)


def test_names_and_texts_are_escaped(fit_page, eval_page):
    details = made_report().details
    leak, lengths = details["leaks"][0] | {"name": EVIL}, details["lengths"]
    details = {"command": EVIL, "dropped": {EVIL: 2}, "leaks": [leak], "lengths": lengths, "choice": CHOICE}
    made = replace(
        made_report(),
        backbone=EVIL,
        notes=[EVIL],
        details=details,
        recipe={EVIL: {EVIL: EVIL}},
        data=[replace(note, name=EVIL, scale=EVIL, sha256=EVIL) for note in made_report().data],
        results=[replace(r, pairs=EVIL, model=EVIL) for r in made_report().results],
    )
    seen = view(EVIL)
    both = View(replace(seen.pairs, text1=[EVIL] * 59 + [EVIL * 100], text2=[EVIL] * 60), seen.similarity)
    many = view(EVIL, models=(EVIL, EVIL + "2"))
    suite = made_suite()
    suite = replace(
        suite, results=[replace(r, pairs=EVIL, model=EVIL) for r in suite.results], failed={EVIL: EVIL}
    )
    for html in (
        fit_page(made, [both]),
        eval_page(Evaluation(made.results, views=[many]), EVIL),
        eval_page(replace(suite, views=[many]), EVIL),
    ):
        tags = Tags(html)
        assert "script" not in {tag for tag, _ in tags.seen}
        assert not [attrs for _, attrs in tags.seen if "onload" in attrs]
        assert plain(EVIL) not in plain(html)
        assert html.count("&lt;script&gt;alert(&#39;$x$&#39;)") > 5
        assert "{{ 7 * 7 }}" in html


def test_names_are_short_and_the_day_stands_at_the_end(tmp_path):
    write_fit_page(
        tmp_path / "fit", replace(made_report(), backbone="owner/some-model"), [], "Made on a day."
    )
    html = (tmp_path / "fit").read_text()
    assert '<p class="sub">Backbone some-model, tuned on 100 pairs of pairs &amp; more.</p>' in html
    assert "owner/" not in html
    assert "ab" * 6 not in html
    assert '<footer class="note">Made on a day.</footer>\n</main>' in html


def test_what_stands_behind_the_headline_is_below_it(fit_page):
    leak = {"role": "test", "name": "set0", "origin": "training", "count": 200, "pairs": 0, "texts": 0.237}
    level = {
        "pairs": "set0",
        "right": {"backbone": 0.74, "tuned": 0.824},
        "misled": {"backbone": 0.4, "tuned": 0.53},
    }
    made = report((0.07, 0.01, 0.13), details={"leaks": [leak], "comparisons": [level]})
    html = fit_page(made)
    box = plain(re.search(r'<div class="verdict good">(.*?)</div>', html, re.DOTALL)[1])
    assert box == (
        "Better: of 100 comparisons 82 come out right, 74 before. "
        "Better than the backbone by 7.0 [1.0, 13.0] on 200 pairs: use it. "
        "Where shared words mislead, as with opposites, 53 of 100 come out right (nearly a coin flip), "
        "40 before"
        "24 % of the texts of set0 are in training pairs too, with other partners"
        "set0: better, +7.0 [+1.0, +13.0]"
    )
    kept = fit_page(replace(made, kept="backbone", details=made.details | {"choice": CHOICE | {"chosen": 0}}))
    assert "so the backbone stays: of 100 comparisons 74 come out right, 82 with the tuned weights." in plain(
        kept
    )


def test_the_numbers_of_the_json_report_are_on_the_page(pages):
    made, text = made_report(), plain(pages["fit"])
    numbers = []
    for found in made.results:
        numbers += [f"{100 * v:.1f}" for v in (found.score.value, found.score.low, found.score.high)]
        if found.difference:
            gained = (found.difference.delta, found.difference.low, found.difference.high)
            numbers += [f"{100 * v:+.1f}" for v in gained]
    for note in made.data:
        numbers.append(f"{note.pairs:,}")
    folds, choice = made.details["folds"], made.details["choice"]
    numbers += [f"({', '.join(map(str, folds['sizes']))} pairs)"]
    numbers += [f"{choice['compared']} candidates", f"{choice['confidence']:.2f}"]
    numbers += ["7 of 60", "23.7 %", "1,311 training pairs left out: near copies", "1.7 %", "264", "1,893"]
    numbers += ["Computed on cpu, fp32; processes: 3"]
    assert [number for number in numbers if number not in text] == []


def test_results_stand_set_by_set_tests_first_and_in_colour(fit_page):
    html = fit_page(report(BETTER, WORSE, SAME))
    head, *found = rows(html, RESULTS)
    assert head[1][:4] == ["pairs", "role", "n", "model"]
    assert [(kind, cells[0], cells[1], cells[3]) for kind, cells in found] == [
        ("first", "set0", "test", "backbone"),
        ("good", "set0", "test", "tuned"),
        ("first", "set1", "test", "backbone"),
        ("bad", "set1", "test", "tuned"),
        ("first", "set2", "test", "backbone"),
        ("", "set2", "test", "tuned"),
        ("first", "picked", "dev", "tuned"),
    ]
    assert found[1][1][4:] == ["60.0", "[50.0, 70.0]", "+5.0", "[+1.0, +9.0]", "better"]
    assert '<td class="number" data-label="difference">+5.0</td>' in html
    assert '<td class="verdict-cell" data-label="verdict">better</td>' in html


@pytest.mark.parametrize(
    ("tested", "kept", "tone"),
    [
        ([BETTER], "tuned", "good"),
        ([SAME], "tuned", ""),
        ([BETTER, WORSE], "tuned", "bad"),
        ([BETTER], "backbone", ""),
    ],
)
def test_colour_of_the_verdict(fit_page, tested, kept, tone):
    assert re.findall(r'<div class="verdict ([a-z]*)">', fit_page(report(*tested, kept=kept))) == [tone]


def test_intervals_have_a_panel_for_each_set_that_decides_and_one_axis(fit_page):
    same = [
        result("x", "tuned", 0.5, role="test"),
        result("y/test", "tuned", 0.8, role="test"),
        result("x", "tuned", 0.8, role="dev"),
    ]
    same[1] = replace(same[1], score=Interval(0.8, 0.75, 0.95))
    html = fit_page(replace(report(), results=same))
    described = re.findall(r'aria-label="Spearman × 100 on ([^"]*)"', html)
    assert described == ["x (test): tuned 50.0", "y/test: tuned 80.0"]
    drawn = re.findall(r'class="line s1" d="M([\d.]+) [\d.]+H([\d.]+)"', html)
    # From 40 to 100 over 304: tens around the lowest and the highest end.
    assert [[float(n) for n in pair] for pair in drawn] == [[18, 119.3], [195.3, 296.7]]
    only_dev = fit_page(replace(report(), results=same[2:]))
    assert re.findall(r'aria-label="Spearman × 100 on ([^"]*)"', only_dev) == ["x (dev): tuned 80.0"]


def test_a_perfect_order_of_labels_is_worth_what_the_page_says(fit_page):
    gold = np.repeat([0.0, 1.0], 100)
    best = 100 * spearman(gold, gold + np.linspace(0, 0.1, 200))
    assert f"as many of each, the best order has {best:.1f}." in plain(fit_page(report(BETTER)))


MERGE = {"share": 0.3}
ONE = CHOICE | {"compared": 1}


@pytest.mark.parametrize(
    ("made", "sentences"),
    [
        (replace(report(BETTER), planned_steps=4),
         ["4 steps; the weights of step 4 were saved.",
          "Chosen on dev pairs 5 candidates were compared with the backbone: the weights after every "
          "evaluation. The tuned weights are better on these pairs by more than chance explains, "
          "with all that were compared taken into account; the confidence in that is 0.98."]),
        (report(BETTER), ["4 steps, stopped early of 8; the weights of step 4 were saved."]),
        (report(BETTER, kept="backbone"),
         ["4 steps, stopped early of 8; the weights of step 4 are in tuned/, the backbone stays.",
          "On these pairs the tuned weights would have to be better by more than chance explains",
          "the confidence in that is 0.63."]),
        (report(BETTER, details={"merge": MERGE}),
         ["the weights of step 4, mixed with 30 % of the backbone, were saved (dev 62.5).",
          "the weights after every evaluation. The tuned",
          "The tuned weights are 30 % backbone and 70 % tuned."]),
        (report(BETTER, details={"folds": FOLDS}),
         ["The run on all pairs took 4 of 8 steps, as was chosen there; its weights, mixed with 30 % of the "
          "backbone, were saved.",
          "so 2 parts of the human-graded pairs (11, 13 pairs) were held out in turn: a run on all other "
          "pairs was measured on each, and the pairs of all parts are ranked together.",
          "the weights after every evaluation. The tuned weights are better on these pairs"]),
        (report(BETTER, details={"folds": FOLDS, "choice": ONE}),
         ["1 candidate was compared with the backbone: the weights at the planned end. The tuned"]),
        (report(BETTER, kept="backbone", details={"choice": ONE | {"chosen": 0, "confidence": None}}),
         ["These pairs are of too few sources to choose by."]),
    ],
)  # fmt: skip
def test_course_of_a_run(fit_page, made, sentences):
    text = plain(fit_page(made))
    assert [sentence for sentence in sentences if sentence not in text] == []


def test_leaks_stand_out(fit_page):
    leak = {"role": "test", "name": "a", "origin": "training", "count": 60, "pairs": 7, "texts": 0.2}
    details = {"leaks": [leak, leak | {"name": "b", "pairs": 0}]}
    html = fit_page(report(BETTER, details=details))
    assert [kind for kind, _ in rows(html, "Pairs and texts that a model was measured on")[1:]] == ["bad", ""]


def small(gold, before, after):
    texts = [f"pair {i}" for i in range(len(gold))]
    columns = {"backbone": np.array(before), "tuned": np.array(after)}
    return View(pair_set([*zip(texts, texts, strict=True)], gold, "set"), columns)


def test_changes_are_counted_in_places_worst_first(fit_page):
    # Gold places 1 2 3 4; before 1 2 3 4; after 4 2 3 1: the first and the last pair are 3 places off.
    html = fit_page(report(WORSE), [small([0.0, 0.2, 0.6, 1.0], [0.1, 0.2, 0.3, 0.4], [0.9, 0.2, 0.3, 0.1])])
    assert "Three gains and three losses: “tuned” against “backbone”" in plain(html)
    assert cards(html) == (
        [],
        [
            "pair 0pair 0 gold 0.00, cosine 0.10 → 0.90, places off 0 → 3",
            "pair 3pair 3 gold 1.00, cosine 0.40 → 0.10, places off 0 → 3",
        ],
    )
    # Equal gold scores share their place, so swaps among them change nothing.
    html = fit_page(report(SAME), [small([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.4, 0.3])])
    assert cards(html) == ([], [])


def test_long_texts_are_clipped_and_can_be_unfolded(fit_page):
    shown = view("set0", count=12)
    after = shown.similarity["tuned"].copy()
    after[0] = 0.999  # the long text's pair has gold 0: the worst regression
    texts = [LONG + "x" * 5000, *shown.pairs.text1[1:]]
    seen = View(replace(shown.pairs, text1=texts), {**shown.similarity, "tuned": after})
    html = fit_page(report(WORSE), [seen])
    assert "&lt;b&gt;&amp;amp; its end" in html
    assert f"({len(texts[0]) - 4000:,} more characters)" in html
    assert "x" * 4000 not in html


def test_the_page_says_what_of_the_backbone_is_in_the_weights(fit_page):
    html = fit_page(report(WORSE, details={"merge": MERGE}), [view()])
    assert "Merged back The tuned weights are 30 % backbone and 70 % tuned." in plain(html)


def test_the_page_says_that_a_fresh_backbone_learned_from_the_tuned_one(fit_page):
    html = fit_page(report(WORSE, details={"distillation": {"own": 1_200, "others": 80}}), [view()])
    assert "embeds 1,200 texts of them" in plain(html)
    assert "kept its own embeddings of 80 others" in plain(html)
    assert "Distilled" not in plain(fit_page(report(WORSE), [view()]))


def test_where_the_backbone_stays_the_page_says_where_the_tuned_weights_are(fit_page):
    made = report(SAME, kept="backbone", dev=WORSE, details={"merge": MERGE})
    html = fit_page(made, [view(models=("backbone", BESIDE))])
    text = plain(html)
    assert made.verdict.advice in text
    assert [(kind, cells[3]) for kind, cells in rows(html, RESULTS)[1:]] == [
        ("first", "backbone"),
        ("", BESIDE),
        ("first", BESIDE),
    ]
    assert "set0: no reliable difference" in text
    assert "Warning: 3 of 9 dev pairs" in text
    assert text.count("Warning") == 1
    assert "are in tuned/, the backbone stays." in text
    assert "Merged back The tuned weights are 30 % backbone" in text
    assert f"“{BESIDE}” against “backbone”" in text
    # Of the tuned weights only the mix is named: no row or title has them.
    assert not re.findall(r">(?:tuned|tuned, (?!in tuned/)[^<]*)<", html)
    labels = " ".join(re.findall(r'aria-label="([^"]*)"', html))
    assert "tuned" not in labels.replace(BESIDE, "")
