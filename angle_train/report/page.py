"""The report of a training run or of an evaluation as one HTML file, which opens without a network.

This module turns results into rows and figures; `page.html` has the words and `style.css` the colours. The
template escapes every text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from scipy.stats import rankdata

from angle_data.jsonl import replace_file
from angle_train.data.kinds import PRESETS
from angle_train.evaluate.compare import SPEARMAN, Result, View, sample
from angle_train.evaluate.suite import Evaluation
from angle_train.recipe import Recipe
from angle_train.report.figures import (
    band_panels,
    bands,
    density_panel,
    histogram_panel,
    interval_panel,
    learning_curve_panel,
    series,
)
from angle_train.report.result import BACKBONE, NAMING_NOTES, TUNED, FitReport, space_figures
from angle_train.report.text import Compared, advice, interval_text, notes_on, seeds_note, table_of, tone

Row = tuple[str, Sequence[str]]
"""Class names of a row of a table, and its cells."""
_TONES = {"better": "good", "worse": "bad"}
_MOST_CHANGES = 10


def write_fit_page(path: Path, report: FitReport, views: Sequence[View]) -> None:
    """Write the page of a training run, atomically.

    Args:
        path: The file.
        report: The findings of the run.
        views: The sets to look at more closely, under the backbone and the tuned weights.
    """
    name, tuned = report.tuned_name, report.kept == TUNED
    lines = report.verdict()
    # What nothing was chosen on says most, so the test sets come first.
    results = sorted(report.shown(), key=lambda result: result.role != "test")
    _write(
        path,
        run=report,
        verdict=(report.advice(), lines[1:] if tuned else lines, tone(report.compared) if tuned else ""),
        warnings=[f"{note}." for note in report.notes if note not in NAMING_NOTES],
        scores=_scores(results, roles=True, coloured=tuned),
        seeds=[],
        looks=[_look(_named(view, name), [(BACKBONE, name)] if name else []) for view in views],
        curve=learning_curve_panel(report.curve, report.best_step),
        tables=_tables(report),
        terms=[name.replace("_", " ") for name in _terms(report)],
        command=report.details.get("command"),
        counts=[histogram_panel(f"{n.name} ({n.role})", n.scores) for n in report.data if n.scores],
    )


def write_eval_page(path: Path, found: Evaluation, command: str) -> None:
    """Write the page of an evaluation, atomically.

    Args:
        path: The file.
        found: The findings.
        command: The command that repeats the evaluation.
    """
    results = [*found.results, *found.averages]
    baseline = next((result.baseline for result in found.results if result.main and result.baseline), "")
    _write(
        path,
        run=None,
        verdict=_verdict([result for result in found.results if result.main], baseline),
        warnings=[f"{name} was not measured: {reason}" for name, reason in found.failed.items()],
        scores=_scores(results),
        seeds=list(_seed_rows(results)),
        looks=[_look(view, _against(view, baseline)) for view in found.views],
        command=command,
    )


def _write(path: Path, **content: Any) -> None:
    environment = Environment(
        loader=PackageLoader("angle_train.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["x100"] = lambda value, digits=1: f"{100 * value:.{digits}f}"
    environment.filters["comma"] = lambda count: f"{count:,}"
    page = environment.get_template("page.html").render(content)
    with replace_file(path) as stream:
        stream.write(page)


def _named(view: View, name: str | None) -> View:
    """Return a view with the tuned weights under `name`, or without them."""
    names = {BACKBONE: BACKBONE} | ({TUNED: name} if name else {})
    similarity = {names[model]: column for model, column in view.similarity.items() if model in names}
    embeddings = {names[model]: rows for model, rows in view.embeddings.items() if model in names}
    return replace(view, similarity=similarity, embeddings=embeddings)


def _against(view: View, baseline: str) -> list[tuple[str, str]]:
    """Return the baseline with each other model, as pairs of before and after."""
    others = [model for model in view.similarity if model != baseline]
    return [(baseline, model) for model in others] if baseline in view.similarity else []


def _verdict(main: Sequence[Result], baseline: str) -> tuple[str, list[str], str]:
    """Return the conclusion of an evaluation, the lines that it rests on, and its tone."""
    if not baseline:
        lines = []
        for name in dict.fromkeys(result.pairs for result in main):
            # Rounded as they are shown: models that look equal share the first place.
            scores = {r.model: round(100 * r.score.value, 1) for r in main if r.pairs == name}
            top = max(scores.values())
            lines.append(f"{name}: {' and '.join(m for m, v in scores.items() if v == top)}, {top:.1f}")
        return "Compared with no baseline. The highest scores:", lines, ""
    compared: dict[str, list[Compared]] = {}
    for result in main:
        if result.difference:
            count = f"{result.count:,} {'pairs' if result.metric == SPEARMAN else 'items'}"
            one = Compared(result.pairs, count, result.difference)
            compared.setdefault(result.model, []).append(one)
    heads = [f"{model}: {advice(found, baseline)}" for model, found in compared.items()]
    everything = [one for found in compared.values() for one in found]
    if len(heads) > 1:
        return f"Compared with {baseline}:", heads, tone(everything)
    lines = [
        f"{one.name}: {one.difference.verdict}{seeds_note(one.difference)}, "
        f"{100 * one.difference.delta:+.1f} {interval_text(one.difference)}"
        for one in everything
    ]
    return heads[0], lines, tone(everything)


def _scores(results: Sequence[Result], *, roles: bool = False, coloured: bool = True) -> dict[str, Any]:
    """Return the scores of all models on all sets, as a table and as intervals.

    Args:
        results: Set by set.
        roles: Whether to say what each set was used for.
        coloured: Whether to colour the verdicts; not where they are about a model that was not saved.
    """
    made = table_of(results, roles=roles)
    rows: list[Row] = []
    before = None
    for result, cells in zip(results, made.rows, strict=True):
        kind = "" if (result.role, result.pairs) == before else "first"
        if result.difference and coloured:
            kind += f" {_TONES.get(result.difference.verdict, '')}"
        rows.append((kind.strip(), cells))
        before = (result.role, result.pairs)
    main = [result for result in results if result.main]
    reach = (min(100 * result.score.low for result in main), max(100 * result.score.high for result in main))
    panels = [
        interval_panel(
            f"{pairs} ({role})" if roles else pairs,
            [(r.model, r.score) for r in main if (r.role, r.pairs) == (role, pairs)],
            reach,
            f"{'Spearman' if metric == SPEARMAN else metric} × 100",
        )
        for role, pairs, metric in dict.fromkeys((r.role, r.pairs, r.metric) for r in main)
    ]
    return {
        "alone": all(result.metric == SPEARMAN for result in results),
        "columns": made.columns,
        "rows": rows,
        "numbers": made.numbers,
        "notes": notes_on(results),
        "panels": panels,
    }


def _seed_rows(results: Sequence[Result]) -> Iterator[Row]:
    """Yield a row for each result of several seeds."""
    for result in results:
        if result.spread is None:
            continue
        test = result.seed_test
        gain = f"{100 * test.mean:+.2f} [{100 * test.low:+.2f}, {100 * test.high:+.2f}]" if test else ""
        p_value = f"{test.p_value:.3g}" if test and test.p_value is not None else ""
        mean = f"{100 * result.score.value:.2f} ± {100 * result.spread:.2f}"
        each = ", ".join(f"{100 * value:.2f}" for value in result.values)
        system = [result.pairs, result.metric, result.model, str(len(result.values))]
        yield "", [*system, mean, each, gain, p_value, test.kind if test else ""]


def _look(view: View, compared: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a closer look at one set of pairs.

    Args:
        view: The pairs, under one model or more.
        compared: Before and after: two models whose biggest changes are listed.
    """
    count = len(view.gold)
    if count < 2 or np.ptp(view.gold) == 0:
        return {"name": view.name, "ranked": False}
    found, figures = bands(view), space_figures(view)
    groups = [(band.name, band.cosines) for band in found] + [("all", view.similarity)]
    names = dict.fromkeys(name for of_model in figures.values() for name in of_model)
    return {
        "name": view.name,
        "ranked": True,
        "count": count,
        "models": [(series(number), model) for number, model in enumerate(view.similarity)],
        "changes": [(before, after, *_changes(view, before, after)) for before, after in compared],
        "bands": [(band.style, f"gold {band.name}") for band in found],
        "band_rows": [
            (
                "first" if name == "all" else "",
                [
                    name,
                    f"{len(next(iter(of_model.values()))):,}",
                    *(f"{cosines.mean():.2f} ± {cosines.std():.2f}" for cosines in of_model.values()),
                ],
            )
            for name, of_model in groups
        ],
        "density": density_panel(view),
        "band_densities": band_panels(view),
        "figures": [
            ("", [name, *(_figure(name, of_model.get(name)) for of_model in figures.values())])
            for name in names
        ],
        "sampled": len(sample(count)),
    }


def _changes(view: View, before: str, after: str) -> tuple[list[Row], list[Row]]:
    """Return the pairs whose rank got most wrong and those whose rank got most right, 10 of each at most.

    A pair's error is how many places its rank by cosine lies from its rank by gold score. Ranks count from
    the lowest, and ties share their mean rank. Pairs whose error did not change are in neither list.
    """
    wanted = rankdata(view.gold)
    old, new = (np.abs(rankdata(view.similarity[model]) - wanted) for model in (before, after))
    growth = new - old
    order = np.argsort(-growth, kind="stable")

    def row(i: int) -> Row:
        cosines = f"{view.similarity[before][i]:.2f} → {view.similarity[after][i]:.2f}"
        places = [f"{old[i]:g} → {new[i]:g}", f"{growth[i]:+g}"]
        return "", [view.text1[i], view.text2[i], f"{view.gold[i]:.2f}", cosines, *places]

    worse = [row(i) for i in order[:_MOST_CHANGES] if growth[i] > 0]
    better = [row(i) for i in order[::-1][:_MOST_CHANGES] if growth[i] < 0]
    return worse, better


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return "no pair"
    return f"{100 * value:.1f} %" if name.startswith("cosine above") else f"{value:.3f}"


def _terms(report: FitReport) -> list[str]:
    """Return the names of the loss terms in the order of their first appearance."""
    return list(dict.fromkeys(name for point in report.curve for name in point["terms"]))


def _tables(report: FitReport) -> dict[str, list[Row]]:
    """Return the rows of the tables about a run, by the name of the table."""
    details = report.details
    folds, merge = details.get("folds"), details.get("merge", {"shares": (), "dev": ()})
    rows: dict[str, list[Row]] = {
        "data": [("", [n.role, n.name, f"{n.pairs:,}", n.scale, n.sha256[:12]]) for n in report.data],
        "counts": [
            ("", [f"{n.name} ({n.role})", "; ".join(f"{score}: {c:,}" for score, c in n.scores.items())])
            for n in report.data
            if n.scores
        ],
        "shares": [
            ("changed" if share == merge["share"] else "", [f"{100 * share:g} %", f"{100 * score:.2f}"])
            for share, score in zip(merge["shares"], merge["dev"], strict=False)
        ],
        "settings": list(_setting_rows(report)),
        "curve": [],
        "leaks": [],
        "folds": [],
    }
    for point in report.curve:
        losses = [f"{point['terms'][name]:.4f}" if name in point["terms"] else "" for name in _terms(report)]
        cells = [str(point["step"]), f"{point['epoch']:.2f}", f"{100 * point['dev']:.2f}", *losses]
        rows["curve"].append(("changed" if point["step"] == report.best_step else "", cells))
    for leak in details.get("leaks", ()):
        pairs, texts = f"{leak['pairs']:,} of {leak['count']:,}", f"{100 * leak['texts']:.1f} %"
        cells = [f"{leak['name']} ({leak['role']})", leak["origin"], pairs, texts]
        rows["leaks"].append(("bad" if leak["pairs"] else "", cells))
    if folds:
        for number, (size, score) in enumerate(zip(folds["sizes"], folds["scores"], strict=True), start=1):
            rows["folds"].append(("", [f"part {number}", str(size), f"{100 * score:.2f}"]))
        total, spread = str(sum(folds["sizes"])), f"{100 * folds['mean']:.2f} ± {100 * folds['spread']:.2f}"
        rows["folds"].append(("first", ["mean ± standard deviation", total, spread]))
        rows["folds"].append(("", ["backbone", total, f"{100 * folds['backbone']:.2f}"]))
    return rows


def _setting_rows(report: FitReport) -> Iterator[Row]:
    """Yield a row for each setting of a run, with its default where that is different."""
    kind = report.recipe.get("objective", {}).get("loss")
    preset = Recipe().with_overrides({**PRESETS.get(kind, {}), "loss": kind})
    defaults = json.loads(json.dumps(asdict(preset)))
    for section, values in report.recipe.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            usual = defaults.get(section, {}).get(key)
            changed = value != usual
            cells = [f"{section}.{key}", _plain(value), _plain(usual) if changed else ""]
            yield "changed" if changed else "", cells
    yield "", ["computed on", f"{report.device}, {report.precision}", ""]
    yield "", ["processes", str(report.details.get("processes", 1)), ""]


def _plain(value: object) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value) or "(none)"
