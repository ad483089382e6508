"""Tables, verdicts and the HTML files, from results that are made up."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from report_examples import (
    BETTER,
    LONG,
    SAME,
    WORSE,
    made_report,
    made_suite,
    report,
    result,
    view,
    views,
)

from angle_train.evaluate.compare import WORD_OVERLAP
from angle_train.evaluate.suite import Evaluation
from angle_train.report.eval_html import write_eval_html
from angle_train.report.html import write_fit_html
from angle_train.report.summary import FitReport
from angle_train.report.text import results_table


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


def test_graded_pairs_that_were_held_out_in_turn_chose_the_number_of_steps():
    assert report(dev=BETTER, details={"folds": {}}).verdict()[-1] == (
        "these pairs also chose the number of steps, so the gain is flattered; give --test pairs"
    )


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


@pytest.mark.parametrize(
    ("tested", "sentence"),
    [
        ([BETTER], "Better than the backbone by 5.0 [1.0, 9.0] on 200 pairs: use it."),
        ([WORSE], "Worse than the backbone by 5.0 [1.0, 9.0] on 200 pairs: keep the backbone."),
        (
            [SAME],
            "Not reliably better than the backbone (+1.0 [-2.0, +4.0] on 200 pairs): keep the backbone.",
        ),
        ([BETTER, BETTER], "Better than the backbone on both sets, by 5.0 to 5.0: use it."),
        (
            [BETTER, SAME, SAME],
            "Better than the backbone on 1 of 3 sets, not reliably different on the others: use it.",
        ),
        (
            [BETTER, WORSE],
            "Better than the backbone on 1 of 2 sets, worse on 1: use it only where it is better.",
        ),
        ([WORSE, SAME], "Worse than the backbone on 1 of 2 sets and better on none: keep the backbone."),
        ([SAME, SAME], "Not reliably better than the backbone on any of 2 sets: keep the backbone."),
    ],
)
def test_advice_says_what_to_do(tested, sentence):
    assert report(*tested).advice() == sentence


def test_advice_does_not_send_a_model_out_on_the_pairs_that_chose_it():
    assert report(dev=BETTER).advice() == (
        "Better than the backbone by 5.0 [1.0, 9.0] on 200 pairs: "
        "measure it on other pairs before you use it."
    )
    assert report(BETTER, kept="backbone").advice().endswith("keep the backbone.")


@pytest.mark.parametrize(
    ("role", "name", "shared", "told", "trusted"),
    [
        ("test", "set0", 2, True, True),  # a hundredth of the pairs moves little
        ("test", "set0", 3, True, False),
        ("test", "set0", 0, False, True),
        ("test", "another", 3, False, True),
        ("dev", "set0", 3, False, True),
    ],
)
def test_figures_on_pairs_that_were_learned_from_are_not_trusted(role, name, shared, told, trusted):
    leak = {"role": role, "name": name, "origin": "training", "count": 200, "pairs": shared, "texts": 0.1}
    made = replace(report(BETTER), details={"leaks": [leak]})
    sentence = f"{shared} of 200 test pairs of set0 are training pairs too, which flatters the model"
    assert (sentence in made.verdict()) == told
    assert made.advice().endswith("pairs: use it.") == trusted
    assert made.advice().endswith("measure it on other pairs before you use it.") != trusted


def test_a_model_that_ranks_by_chance_is_not_said_to_be_below_the_backbone():
    made = replace(report(BETTER, kept="backbone"), dev_before=-0.125, dev_after=0.0)
    assert (
        "no checkpoint ranked the dev pairs better than chance (0.0 at best, backbone -12.5)"
        in (made.verdict()[0])
    )


class Page(HTMLParser):
    """Collects tags and the text between them, and fails where they do not match."""

    def __init__(self, path):
        super().__init__()
        self.seen, self.open, self.text = [], [], ""
        self.feed(path.read_text())
        assert not self.open

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

    def all(self, tag):
        return [attrs for name, attrs in self.seen if name == tag]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The three kinds of page, by name."""
    directory = tmp_path_factory.mktemp("pages")
    write_fit_html(directory / "fit", made_report(), views())
    write_eval_html(
        directory / "eval", Evaluation(made_report().results, views=views()), "angle-train eval --pairs 'a b'"
    )
    write_eval_html(directory / "suite", made_suite(), "angle-train eval --task sts")
    return {path.name: Page(path) for path in directory.iterdir()}


@pytest.mark.parametrize("kind", ["fit", "eval", "suite"])
def test_page_needs_nothing_from_outside_and_runs_nothing(pages, kind):
    page = pages[kind]
    names = {name for name, _ in page.seen}
    assert not {"script", "link", "img", "iframe", "object"} & names
    attributes = [(key, value) for _, attrs in page.seen for key, value in attrs.items()]
    assert not [key for key, _ in attributes if key in ("src", "href", "xlink:href") or key.startswith("on")]
    assert "://" not in " ".join(value or "" for _, value in attributes) + page.text


@pytest.mark.parametrize("kind", ["fit", "eval", "suite"])
def test_page_can_be_used_without_seeing_it(pages, kind):
    page = pages[kind]
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attrs["scope"] in ("col", "row") for attrs in page.all("th"))
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in page.all("svg"))
    assert "nan" not in page.text


def test_every_section_of_a_run_is_there(pages):
    for heading in ("Before and after", "A closer look at set0", "Worst regressions", "Best gains",
                    "Cosines by gold score", "Saturation and the space of vectors", "Learning curve",
                    "Human-graded pairs, held out in turn", "Merged back", "Leaks", "Left out and cut",
                    "How to reproduce", "Recipe as run"):  # fmt: skip
        assert heading in pages["fit"].text, heading
    assert pages["fit"].text.index("Better than the backbone") < pages["fit"].text.index("Before and after")
    assert made_report().details["command"] in pages["fit"].text
    assert "angle-train eval --pairs 'a b'" in pages["eval"].text


def test_every_number_of_the_json_report_is_on_the_page(pages):
    made, text = made_report(), pages["fit"].text
    numbers = []
    for found in made.results:
        numbers += [f"{100 * v:.1f}" for v in (found.score.value, found.score.low, found.score.high)]
        if found.difference:
            gained = (found.difference.delta, found.difference.low, found.difference.high)
            numbers += [f"{100 * v:+.1f}" for v in gained]
    for point in made.curve:
        numbers += [
            str(point["step"]),
            f"{100 * point['dev']:.2f}",
            *(f"{v:.4f}" for v in point["terms"].values()),
        ]
    for note in made.data:
        numbers += [f"{note.pairs:,}", note.sha256[:12], *(f"{k}: {n:,}" for k, n in note.scores.items())]
    folds, merge = made.details["folds"], made.details["merge"]
    numbers += [f"{100 * v:.2f}" for v in (*folds["scores"], folds["mean"], folds["spread"], *folds["means"])]
    numbers += [f"{100 * v:.2f}" for v in (folds["backbone"], *merge["dev"])]
    numbers += ["7 of 60", "23.7 %", "1,311 training pairs left out: near copies", "1.7 %", "264", "1,893"]
    for found in made.details["analysis"]:
        for figures in found["models"].values():
            numbers += [
                f"{100 * v:.1f} %" if name in ("cosine above 0.95", "cosine above 0.8") else f"{v:.3f}"
                for name, v in figures.items()
                if v is not None
            ]
    assert [number for number in numbers if number not in text] == []


def test_warnings_and_the_run_are_told(pages):
    assert "Warning: 3 of 9 dev pairs are training pairs too." in pages["fit"].text
    assert "trec was not measured: data/trec/test.jsonl.gz is missing" in pages["suite"].text


def test_seeds_are_shown_with_mean_spread_and_test(pages):
    for part in ("87.22 ± 1.11", "86.11, 87.22, 88.33", "+5.12 [+2.64, +7.61]", "0.0123"):
        assert part in pages["suite"].text, part
    assert "seeds-*: Better than backbone on 1 of 2 sets" in pages["suite"].text


def test_regressions_come_worst_first_with_their_texts(tmp_path):
    shown = view("set0", count=20)
    after = shown.similarity["tuned"].copy()
    after[5] = -1.0  # gold 1: ranked first before, last after
    changed = replace(shown, similarity={**shown.similarity, "tuned": after})
    write_fit_html(tmp_path / "report.html", report(WORSE), [changed])
    text = (tmp_path / "report.html").read_text()
    worst = text[text.index("<summary>Worst regressions") :]
    assert re.search(r"<td[^>]*><span[^>]*>(.*?)</span>", worst)[1] == "text 5 of 20"


def test_long_texts_are_clipped_and_can_be_unfolded(tmp_path):
    shown = view("set0", count=12)
    first = shown.similarity["tuned"].copy()
    first[0] = 0.999  # the long text's pair has gold 0: the worst regression
    texts = [LONG + "x" * 5000, *shown.text1[1:]]
    write_fit_html(
        tmp_path / "report.html",
        report(WORSE),
        [replace(shown, text1=texts, similarity={**shown.similarity, "tuned": first})],
    )
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;&amp;amp; its end" in page
    assert f"({len(texts[0]) - 4000:,} more characters)" in page
    assert "x" * 4000 not in page


def test_equal_gold_scores_leave_nothing_to_look_at(tmp_path):
    flat = replace(view("set0"), gold=view("set0").gold * 0)
    write_fit_html(tmp_path / "report.html", report(SAME), [flat])
    assert "All gold scores are equal" in Page(tmp_path / "report.html").text


def test_page_stays_small_with_two_thousand_pairs(tmp_path):
    write_fit_html(
        tmp_path / "report.html", report(BETTER), [view("set0", count=2000), view("s1", count=2000)]
    )
    assert (tmp_path / "report.html").stat().st_size < 1_000_000


def test_names_and_texts_are_escaped(tmp_path):
    evil = "<script>alert('$x$')</script>"
    made = replace(report(BETTER), backbone=evil, notes=[evil], details={"command": evil, evil: evil})
    made = replace(made, results=[replace(r, pairs=evil, model=evil) for r in made.results])
    shown = replace(view(evil, models=(evil, evil + "2")), text1=[evil] * 60)
    shown = replace(
        shown, similarity={"backbone": shown.similarity[evil], "tuned": shown.similarity[evil + "2"]}
    )
    write_fit_html(tmp_path / "fit", made, [shown])
    found = Evaluation(made.results, views=[view(evil, models=(evil, evil + "2"))])
    write_eval_html(tmp_path / "eval", found, evil)
    suite = made_suite()
    suite = replace(
        suite, results=[replace(r, pairs=evil, model=evil) for r in suite.results], failed={evil: evil}
    )
    write_eval_html(tmp_path / "suite", suite, evil)
    for name in ("fit", "eval", "suite"):
        page = Page(tmp_path / name)
        assert "script" not in {tag for tag, _ in page.seen}
        assert evil in page.text


def test_page_is_the_same_each_time(tmp_path):
    for name in ("one.html", "two.html"):
        write_fit_html(tmp_path / name, made_report(), views())
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
