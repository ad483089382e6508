"""The report of an evaluation as one HTML file: several models, on pairs or on tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from angle_train.evaluate.compare import Result
from angle_train.evaluate.scores import Score
from angle_train.evaluate.suite import SuiteReport
from angle_train.evaluate.suite_table import COLUMNS, NUMBERS, cells, seed_notes
from angle_train.evaluate.views import View
from angle_train.report.advice import Compared, advice, seeds_note, tone
from angle_train.report.figures import interval_panel
from angle_train.report.html import results_section, verdict_box
from angle_train.report.markup import Row, figure, section, table, write_page
from angle_train.report.sections import view_section

_TITLE = "Evaluation report"
_TONES = {"better": "good", "worse": "bad"}


def write_eval_html(path: Path, results: Sequence[Result], views: Sequence[View], command: str) -> None:
    """Write the results of an evaluation on pairs.

    Args:
        path: The file.
        results: Of all models on all sets of pairs.
        views: The sets of pairs, under the models.
        command: The command that repeats the evaluation.
    """
    compared: dict[str, list[Compared]] = {}
    baseline = None
    for result in results:
        if result.difference:
            baseline = result.baseline
            found = Compared(result.pairs, f"{result.count:,} pairs", result.difference)
            compared.setdefault(result.model, []).append(found)
    best = {(r.pairs, r.model): r.score.value for r in results}
    body = [
        f"<h1>{_TITLE}</h1>",
        _verdict(compared, baseline, best),
        results_section("All models", results),
        *(view_section(view, compared=_against(view, baseline)) for view in views),
        _repeat(command),
    ]
    write_page(path, _TITLE, body)


def write_suite_html(path: Path, report: SuiteReport, command: str) -> None:
    """Write the results of an evaluation on tasks.

    Args:
        path: The file.
        report: What was found; it should hold the views.
        command: The command that repeats the evaluation.
    """
    scores = [*report.scores, *report.averages]
    compared: dict[str, list[Compared]] = {}
    baseline = None
    for score in report.scores:
        if score.main and score.difference:
            baseline = score.baseline
            found = Compared(score.task, f"{score.count:,} items of {score.task}", score.difference)
            compared.setdefault(score.system, []).append(found)
    best = {(s.task, s.system): s.score.value for s in report.scores if s.main}
    failed = (
        f'<p class="warning">Warning: {escape(task)} was not measured: {escape(reason)}</p>'
        for task, reason in report.failed.items()
    )
    body = [
        f"<h1>{_TITLE}</h1>",
        _verdict(compared, baseline, best),
        *failed,
        _scores(scores),
        _seeds(scores),
        *(view_section(view, compared=_against(view, baseline)) for view in report.views),
        _repeat(command),
    ]
    write_page(path, _TITLE, body)


def _verdict(
    compared: Mapping[str, Sequence[Compared]],
    baseline: str | None,
    best: Mapping[tuple[str, str], float],
) -> str:
    """Return the conclusion on every model, or without a baseline which model scores highest on each set."""
    if baseline is None or not compared:
        sets = dict.fromkeys(name for name, _ in best)
        lines = []
        for name in sets:
            # Rounded as they are shown: what looks equal shares the first place.
            scores = {model: round(100 * v, 1) for (other, model), v in best.items() if other == name}
            top = max(scores.values())
            lines.append(f"{name}: {' and '.join(m for m, v in scores.items() if v == top)}, {top:.1f}")
        return verdict_box("Compared with no baseline. The highest scores:", lines, "")
    everything = [found for of_model in compared.values() for found in of_model]
    if len(compared) == 1:
        ((model, found),) = compared.items()
        return verdict_box(f"{model}: {advice(found, baseline)}", [_line(one) for one in found], tone(found))
    lines = [f"{model}: {advice(found, baseline)}" for model, found in compared.items()]
    return verdict_box(f"Compared with {baseline}:", lines, tone(everything))


def _line(compared: Compared) -> str:
    difference = compared.difference
    size = f"{100 * difference.delta:+.1f} [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    return f"{compared.name}: {difference.verdict}{seeds_note(difference)}, {size}"


def _scores(scores: Sequence[Score]) -> str:
    """Return all figures as a table, and the main ones as a figure."""
    rows: list[Row] = []
    for position, score in enumerate(scores):
        first = position == 0 or scores[position - 1].task != score.task
        kind = _TONES.get(score.difference.verdict, "") if score.difference else ""
        rows.append((" ".join(filter(None, ["first" if first else "", kind])), cells(score)))
    main = [score for score in scores if score.main]
    reach = (min(100 * s.score.low for s in main), max(100 * s.score.high for s in main))
    panels = [
        interval_panel(task, [(s.system, s.score) for s in main if s.task == task], reach, f"{metric} × 100")
        for task, metric in dict.fromkeys((score.task, score.metric) for score in main)
    ]
    note = "95 % bootstrap intervals over items; differences are paired, to the baseline."
    note = " ".join([note, *seed_notes(scores)])
    if any(score.standard is False for score in scores):
        note += " * is not of the published size: not comparable with published figures."
    return section(
        "All tasks",
        table("Figures × 100 with 95 % intervals", COLUMNS, rows, NUMBERS),
        f'<p class="note">{escape(note)}</p>',
        figure(panels, "Dots with 95 % bootstrap intervals over items."),
    )


def _seeds(scores: Sequence[Score]) -> str:
    """Return what the seeds of systems of several models did; nothing if there is none."""
    rows: list[Row] = []
    for score in scores:
        if score.spread is None:
            continue
        test = score.seed_test
        gain = f"{100 * test.mean:+.2f} [{100 * test.low:+.2f}, {100 * test.high:+.2f}]" if test else ""
        rows.append(
            (
                "",
                [
                    score.task,
                    score.metric,
                    score.system,
                    str(len(score.values)),
                    f"{100 * score.score.value:.2f} ± {100 * score.spread:.2f}",
                    ", ".join(f"{100 * value:.2f}" for value in score.values),
                    gain,
                    f"{test.p_value:.3g}" if test and test.p_value is not None else "",
                    test.kind if test else "",
                ],
            )
        )
    if not rows:
        return ""
    columns = ("task", "figure", "model", "seeds", "mean ± sd", "each", "difference", "p", "test")
    note = (
        "Differences to the baseline with 95 % intervals over seeds: by Student's paired t-test, seed by "
        "seed, or by Welch's where the two do not have the same seeds."
    )
    return section("Seeds", table("Figures × 100 over seeds", columns, rows, (3, 4, 6, 7)), f"<p>{note}</p>")


def _against(view: View, baseline: str | None) -> list[tuple[str, str]]:
    """Return the baseline with each other model, as pairs of before and after."""
    if baseline not in view.similarity:
        return []
    return [(str(baseline), model) for model in view.similarity if model != baseline]


def _repeat(command: str) -> str:
    return section("How to reproduce", f"<pre><code>{escape(command)}</code></pre>")
