"""The report of an evaluation as one HTML file: several models, on pairs or on tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from angle_train.evaluate.compare import SPEARMAN, Result, View
from angle_train.evaluate.suite import Evaluation
from angle_train.report.advice import Compared, advice, tone
from angle_train.report.html import results_section, verdict_box
from angle_train.report.markup import Row, section, table, write_page
from angle_train.report.sections import view_section
from angle_train.report.text import seeds_note

_TITLE = "Evaluation report"


def write_eval_html(path: Path, found: Evaluation, command: str) -> None:
    """Write the results of an evaluation.

    Args:
        path: The file.
        found: What was found.
        command: The command that repeats the evaluation.
    """
    main = [result for result in found.results if result.main]
    compared: dict[str, list[Compared]] = {}
    for result in main:
        if result.difference:
            count = f"{result.count:,} {'pairs' if result.metric == SPEARMAN else 'items'}"
            one = Compared(result.pairs, count, result.difference)
            compared.setdefault(result.model, []).append(one)
    baseline = next((result.baseline for result in main if result.baseline), None)
    failed = (
        f'<p class="warning">Warning: {escape(name)} was not measured: {escape(reason)}</p>'
        for name, reason in found.failed.items()
    )
    everything = [*found.results, *found.averages]
    body = [
        f"<h1>{_TITLE}</h1>",
        _verdict(compared, baseline, {(r.pairs, r.model): r.score.value for r in main}),
        *failed,
        results_section("All results", everything),
        _seeds(everything),
        *(view_section(view, compared=_against(view, baseline)) for view in found.views),
        section("How to reproduce", f"<pre><code>{escape(command)}</code></pre>"),
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


def _seeds(results: Sequence[Result]) -> str:
    """Return what the seeds of systems of several models did; nothing if there is none."""
    rows: list[Row] = []
    for result in results:
        if result.spread is None:
            continue
        test = result.seed_test
        gain = f"{100 * test.mean:+.2f} [{100 * test.low:+.2f}, {100 * test.high:+.2f}]" if test else ""
        rows.append(
            (
                "",
                [
                    result.pairs,
                    result.metric,
                    result.model,
                    str(len(result.values)),
                    f"{100 * result.score.value:.2f} ± {100 * result.spread:.2f}",
                    ", ".join(f"{100 * value:.2f}" for value in result.values),
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
