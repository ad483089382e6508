"""What the pages say, read back: tables row by row, colours and legends, a run that kept its backbone."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from report_examples import BETTER, SAME, WORSE, made_report, made_suite, report, result, score, view, views

from angle_train.evaluate.bootstrap import Interval
from angle_train.evaluate.similarity import spearman
from angle_train.evaluate.suite import Evaluation
from angle_train.report.eval_html import write_eval_html
from angle_train.report.html import results_section, write_fit_html
from angle_train.report.summary import NAMING_NOTES, FitReport
from angle_train.report.text import results_table

NOT_SAVED = "best checkpoint, not saved"
FOLDS = {
    "sizes": [11, 13], "evaluation": 2, "share": 0.3, "scores": [0.61, 0.73], "mean": 0.67, "spread": 0.08,
    "backbone": 0.59, "means": [0.64, 0.67, 0.66], "shared_texts": [0, 48],
}  # fmt: skip


def plain(html):
    return unescape(re.sub(r"<[^>]+>", "", html))


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


def legends(html):
    return [
        re.findall(r'<li class="([^"]*)">([^<]*)</li>', part)
        for part in re.findall(r'<ul class="legend">(.*?)</ul>', html)
    ]


def fit_page(tmp_path, made, shown=()):
    write_fit_html(tmp_path / "fit.html", made, shown)
    return (tmp_path / "fit.html").read_text()


RESULTS = "Rank correlation with the gold scores"


def test_results_stand_set_by_set_tests_first_and_in_colour(tmp_path):
    html = fit_page(tmp_path, report(BETTER, WORSE, SAME))
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
    assert '<td class="verdict-cell">better</td>' in html
    assert '<td>test</td><td class="number">200</td><td>tuned</td>' in html
    assert '<td class="number">+5.0</td><td class="number">[+1.0, +9.0]</td>' in html
    assert "an interval that does not hold 0 is reliable" in plain(html)


def test_sets_of_one_name_are_told_apart_by_their_role():
    same = [
        result("x", "backbone", 0.5, role="test"),
        result("x", "tuned", 0.9, BETTER, role="test"),
        result("x", "backbone", 0.2, role="dev"),
        result("x", "tuned", 0.3, SAME, role="dev"),
    ]
    html = results_section("title", same, roles=True)
    assert [kind for kind, _ in rows(html, RESULTS)[1:]] == ["first", "good", "first", ""]
    told = re.findall(r'aria-label="Spearman × 100 on ([^"]*)"', html)
    assert told == ["x (test): backbone 50.0; tuned 90.0", "x (dev): backbone 20.0; tuned 30.0"]
    assert [line.split("  ")[0] for line in results_table(same).splitlines()[2:-1]] == [
        "x (test)", "x (test)", "x (dev)", "x (dev)",
    ]  # fmt: skip
    assert [line.split()[0] for line in results_table(same[:2]).splitlines()[2:-1]] == ["x", "x"]


def test_intervals_of_all_sets_fit_their_common_axis():
    one, other = result("a", "m", 0.5), result("b", "m", 0.8)
    html = results_section("title", [one, replace(other, score=Interval(0.8, 0.75, 0.95))])
    drawn = re.findall(r'class="line s1" d="M([\d.]+) [\d.]+H([\d.]+)"', html)
    # From 40 to 95 over 320: the ends of the lowest and of the highest interval.
    assert [[float(n) for n in pair] for pair in drawn] == [[10, 126.4], [213.6, 330]]


def test_a_perfect_order_of_labels_is_worth_what_the_page_says(tmp_path):
    gold = np.repeat([0.0, 1.0], 100)
    best = 100 * spearman(gold, gold + np.linspace(0, 0.1, 200))
    assert f"as many of each, the best order has {best:.1f}." in plain(fit_page(tmp_path, report(BETTER)))


def test_course_of_a_run(tmp_path):
    whole = replace(report(BETTER), planned_steps=4)
    html = fit_page(tmp_path, whole)
    assert "4 steps; best at step 4; its best checkpoint was saved." in plain(html)
    assert [kind for kind, _ in rows(html, "Evaluations on the dev pairs, and losses")[1:]] == ["", "changed"]
    assert [("s1 dashed", "backbone"), ("s2", "during tuning"), ("ink", "best checkpoint (ring)")] in (
        legends(html)
    )
    stopped = plain(fit_page(tmp_path, replace(whole, planned_steps=8)))
    assert "4 steps, stopped early of 8; best at step 4" in stopped


def test_what_was_mixed_in_is_told(tmp_path):
    merge = {"share": 0.3, "shares": [0.0, 0.3], "dev": [0.6, 0.7]}
    html = fit_page(tmp_path, report(BETTER, details={"merge": merge}))
    assert "its best checkpoint, mixed with 30 % of the backbone, was saved (dev 62.5)." in plain(html)
    assert "The saved weights are 30 % backbone and 70 % tuned." in plain(html)
    assert rows(html, "Dev Spearman × 100 by share")[1:] == [
        ("", ["0 %", "60.00"]),
        ("changed", ["30 %", "70.00"]),
    ]


def test_leaks_and_changed_settings_stand_out(tmp_path):
    leak = {"role": "test", "name": "a", "origin": "training", "count": 60, "pairs": 7, "texts": 0.2}
    details = {"leaks": [leak, leak | {"name": "b", "pairs": 0}]}
    recipe = {"training": {"batch_size": 7, "prompt": ""}}
    html = fit_page(tmp_path, report(BETTER, details=details, recipe=recipe))
    assert [kind for kind, _ in rows(html, "What is measured on")[1:]] == ["bad", ""]
    changed, same, *_ = rows(html, "Settings;")[1:]
    assert (changed[0], changed[1][:2]) == ("changed", ["training.batch_size", "7"])
    assert changed[1][2] not in ("", "7")
    assert same == ("", ["training.prompt", "(none)", ""])


@pytest.mark.parametrize(
    ("backbone", "told"),
    [
        ({}, "1.7 % of the training texts are longer than the 264 tokens that were read at once: these"),
        ({"long_text": "cut"}, "at once: these were cut; the longest has 1,893."),
        ({"long_text": "head_tail"}, "of these the start and the end were read; the longest has 1,893."),
    ],
)  # fmt: skip
def test_what_became_of_long_texts(tmp_path, backbone, told):
    lengths = {"max_seq_length": 264, "truncated": 0.0173, "longest": 1893}
    made = report(BETTER, details={"lengths": lengths}, recipe={"backbone": backbone})
    assert told in plain(fit_page(tmp_path, made))
    short = replace(made, details={"lengths": lengths | {"truncated": 0.0, "longest": 40}})
    assert "that were read at once; the longest has 40." in plain(fit_page(tmp_path, short))


def test_changes_and_legends_of_a_closer_look(tmp_path):
    shown = view("set0", count=20, saturated=6)
    after = shown.similarity["tuned"].copy()
    after[5] = -1.0  # gold 1: among the highest by gold, the lowest now
    html = fit_page(
        tmp_path, report(WORSE), [replace(shown, similarity={**shown.similarity, "tuned": after})]
    )
    assert "Where “tuned” ranks pairs worse, and better, than “backbone”" in plain(html)
    worst = rows(html, "Worst regressions")[1][1]
    assert (worst[0], worst[2]) == ("text 5 of 20", "1.00")
    assert worst[3].endswith("→ -1.00")
    # Gold 1 three times in 20: places 18 to 20, each counted as the 19th.
    before, now = worst[4].split(" → ")
    assert (float(now), float(worst[5])) == (18, 18 - float(before))
    models = [("s1", "backbone"), ("s2", "tuned")]
    assert [("s0 dashed", "gold scores"), *models] in legends(html)
    assert models in legends(html)
    bands = next(legend for legend in legends(html) if legend[0][0].startswith("b"))
    assert (bands[0], bands[-1]) == (("b0", "gold 0 to 0.2"), ("b4", "gold 0.8 to 1"))


def test_pages_say_how_many_dots(tmp_path):
    bare = replace(view("set0", count=1500, saturated=9), embeddings={})
    html = plain(fit_page(tmp_path, report(BETTER), [bare]))
    assert "A dot for each of 1,000 of the 1,500 pairs: better models lift" in html


def test_seven_models_can_be_told_apart(tmp_path):
    models = [f"m{i}" for i in range(7)]
    found = [result("x", model, 0.5 + i / 100) for i, model in enumerate(models)]
    write_eval_html(tmp_path / "page", Evaluation(found, views=[view("x", models=models)]), "command")
    html = (tmp_path / "page").read_text()
    assert not re.findall(r'class="[^"]*\bs[6-9]\b', html)
    whole = next(legend for legend in legends(html) if legend[0][1] == "gold scores")
    assert len(set(kind for kind, _ in whole)) == 8


def test_kept_backbone_is_the_only_saved_model_of_the_page(tmp_path):
    merge = {"share": 0.3, "shares": [0.0, 0.3], "dev": [0.4, 0.45]}
    # On the test pairs the checkpoint that was not saved is better: that is told, not praised.
    analysis = made_report().details["analysis"]
    made = report(BETTER, kept="backbone", dev=WORSE, details={"merge": merge, "analysis": analysis})
    made = replace(made, notes=[*made.notes, NAMING_NOTES[0]])
    html = fit_page(tmp_path, made, views()[:1])
    text = plain(html)
    assert "No checkpoint ranked the dev pairs better: keep the backbone." in text
    assert (
        "no checkpoint ranked the dev pairs better than the backbone (45.0 at best with 30 % of it mixed in, "
        "backbone 50.0), so the untouched backbone was saved." in text
    )
    assert '<div class="verdict ">' in html
    assert [(kind, cells[3]) for kind, cells in rows(html, RESULTS)[1:]] == [
        ("first", "backbone"),
        ("", NOT_SAVED),
        ("first", NOT_SAVED),
    ]
    assert "tuning helped" not in text
    assert "Warning: 3 of 9 dev pairs" in text
    assert text.count("Warning") == 1
    assert "best at step 4; the backbone was saved." in text
    assert "A mix of 30 % backbone and 70 % tuned ranked the dev pairs no better than the backbone" in text
    assert "saved weights" not in text
    assert f"Where “{NOT_SAVED}” ranks pairs worse, and better, than “backbone”" in text
    columns = next(cells for _, cells in rows(html, "Cosines by gold score"))
    assert columns == ["gold score", "pairs", "backbone", NOT_SAVED]
    assert next(cells for _, cells in rows(html, "Saturation")) == ["figure", "backbone", NOT_SAVED]
    # Of what was tuned only the mix is spoken of, and no row, title or legend is called that.
    assert not re.findall(r">(?:tuned|tuned, [^<]*)<", html)
    assert "tuned" not in " ".join(re.findall(r'aria-label="([^"]*)"', html))
    assert [row.model for row in made.shown()] == [NOT_SAVED, "backbone", NOT_SAVED]


def test_kept_backbone_says_so_without_a_share_too():
    made = report(BETTER, kept="backbone")
    assert made.advice() == "No checkpoint ranked the dev pairs better: keep the backbone."
    (line,) = made.verdict()
    assert line.endswith("(45.0 at best, backbone 50.0), so the untouched backbone was saved.")
    assert report(BETTER).shown() == report(BETTER).results


def untrained(share=0.0, setting=0.0):
    """A run whose parts advised against training."""
    folds = FOLDS | {"evaluation": 0, "share": share, "mean": 0.59, "means": [0.31, 0.33, 0.32]}
    curve = [
        {"step": 2 * i, "epoch": i / 3, "dev": dev, "terms": {}} for i, dev in enumerate((0.59, 0.31, 0.33))
    ]
    return replace(
        report(SAME, kept="backbone", details={"folds": folds}),
        steps=0, planned_steps=6, best_step=0, dev_before=0.59, dev_after=0.59, curve=curve,
        recipe={"training": {"average_with_backbone": setting}}, notes=[NAMING_NOTES[1]],
    )  # fmt: skip


def test_parts_that_advise_against_training_leave_the_backbone_alone(tmp_path):
    html = fit_page(tmp_path, untrained(), views()[:1])
    text = plain(html)
    assert "No checkpoint ranked the pairs held out in turn better: keep the backbone." in text
    assert "the held-out parts better than the backbone (33.0 at best, backbone 59.0)" in text
    assert "Nothing was better than the backbone there: no run on all pairs was made." in text
    assert "was never better than the backbone’s; after each evaluation it was 31.00, 33.00, 32.00." in text
    assert "stopped early" not in text
    assert "Warning" not in text
    # The figures called tuned are those of no tuned model.
    assert "tuned" not in text
    assert NOT_SAVED not in text
    assert [cells[3] for _, cells in rows(html, RESULTS)[1:]] == ["backbone"]
    assert next(cells for _, cells in rows(html, "Saturation")) == ["figure", "backbone"]
    assert [("s1 dashed", "backbone"), ("s2", "mean of the parts"), ("ink", "chosen (ring)")] in legends(html)


def test_share_behind_the_best_that_was_reached_is_told():
    assert "(33.0 at best with 40 % of it mixed in, backbone 59.0)" in untrained(0.4, 0.4).verdict()[0]
    assert "(33.0 at best with nothing mixed in, backbone 59.0)" in untrained(0.0, "auto").verdict()[0]


def test_parts_that_chose_a_length_are_told(tmp_path):
    html = fit_page(tmp_path, report(BETTER, details={"folds": FOLDS}))
    text = plain(html)
    assert (
        "The run on all pairs took 4 of 8 steps, as was best there; its weights, mixed with 30 % of the "
        "backbone, were saved." in text
    )
    assert "so 2 parts of the human-graded pairs were held out in turn" in text
    assert (
        "was best after evaluation 2 of 3; after each evaluation, with 30 % of the backbone mixed in, it was"
        in text
    )
    later = fit_page(tmp_path, report(BETTER, details={"folds": FOLDS | {"evaluation": 3, "best": 2}}))
    assert (
        "was best after evaluation 2 of 3, and evaluation 3, the last within one standard error of that, was "
        "taken; after each evaluation" in plain(later)
    )
    assert rows(html, "Evaluations, as means over the parts held out in turn")
    assert "None of their 48 texts is in two parts." in text
    assert [cells[0] for _, cells in rows(html, "Dev Spearman × 100 of each part")[1:]] == [
        "part 1", "part 2", "mean ± standard deviation", "backbone",
    ]  # fmt: skip
    several = plain(fit_page(tmp_path, report(BETTER, details={"folds": FOLDS | {"shared_texts": [3, 48]}})))
    assert "3 of their 48 texts are in two parts or more, which flatters the scores." in several
    earlier = {key: value for key, value in FOLDS.items() if key != "shared_texts"}
    assert "two parts" not in plain(fit_page(tmp_path, report(BETTER, details={"folds": earlier})))


def test_highest_scores_name_all_that_share_them(tmp_path):
    found = [result("x", "a", 0.5), result("x", "b", 0.8), result("x", "c", 0.80004), result("y", "a", 0.1)]
    write_eval_html(tmp_path / "page", Evaluation(found), "command")
    text = plain((tmp_path / "page").read_text())
    assert "x: b and c, 80.0" in text
    assert "y: a, 10.0" in text


def test_suite_page_compares_main_figures_with_the_baseline(tmp_path):
    made = made_suite()
    side = replace(score("stsb", "seeds-*", [0.1], WORSE), metric="pearson", main=False)
    write_eval_html(tmp_path / "page", replace(made, results=[*made.results, side]), "command")
    text = plain((tmp_path / "page").read_text())
    assert (
        "seeds-*: Better than backbone on 1 of 2 sets, not reliably different on the others: use it." in text
    )
    assert "Where “seeds-*” ranks pairs worse, and better, than “backbone”" in text
    assert "to the baseline. ± standard deviation over seeds. p: over seeds, paired t-test." in text
    assert rows((tmp_path / "page").read_text(), "Figures × 100 over seeds")[1][1][-1] == "paired"
    assert "* not of the published size: not comparable with published figures." in text
    alone = [replace(s, values=(), standard_size=True) for s in made.results]
    write_eval_html(tmp_path / "page", replace(made, results=alone), "command")
    text = plain((tmp_path / "page").read_text())
    assert "deviation over seeds" not in text
    assert "published size" not in text


def test_seeds_that_do_not_agree_with_the_items_are_named(tmp_path):
    made = made_suite()
    shaky = [
        replace(s, difference=replace(s.difference, seeds_agree=False)) if s.difference else s
        for s in made.results
    ]
    write_eval_html(tmp_path / "page", replace(made, results=shaky[:2]), "command")
    text = plain((tmp_path / "page").read_text())
    assert "Not reliably better than backbone over seeds (+5.0 [+1.0, +9.0] on 1,379 pairs)" in text
    assert "stsb: no reliable difference over seeds, +5.0 [+1.0, +9.0]" in text
    write_eval_html(tmp_path / "page", replace(made, results=shaky), "command")
    # On sick-r the items do not decide either: seeds are not what it fails at.
    assert "sick-r: no reliable difference, +1.0" in plain((tmp_path / "page").read_text())


def test_reports_of_earlier_runs_can_be_read(tmp_path):
    made = made_report()
    details = {
        name: value for name, value in made.details.items() if name not in ("folds", "merge", "analysis")
    }
    earlier = replace(made, kept="backbone", details=details, notes=[NAMING_NOTES[0]])
    earlier.write(tmp_path / "report.json")
    again = FitReport.read(tmp_path / "report.json")
    assert again == earlier
    assert "Warning" not in plain(fit_page(tmp_path, again))
