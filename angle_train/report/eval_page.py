"""The report of an evaluation as one HTML file; `page` has the parts, `page.html` the words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from angle_data.jsonl import write_text
from angle_train.evaluation.compare import Evaluation, Result
from angle_train.report.page import look_at, render, scores_of
from angle_train.report.right_shares import misled_sentence, power_sentences, shares_of, shares_sentence
from angle_train.report.search_look import look_at_search
from angle_train.report.text import advice, compared_line, tone


def write_eval_page(path: Path, found: Evaluation, command: str, made: str = "") -> None:
    """Write the page of an evaluation, atomically; `command` repeats it, and `made` is `text.made_line`."""
    main = [result for result in found.results if result.main]
    baseline = next((result.baseline for result in main if result.baseline), "")
    advice, lines, mood = _verdict(main, baseline)
    shares = [shares_of(view) for view in found.views]
    models = [model for model in shares[0].right if model != baseline] if shares else []
    told = [(model, baseline, f"with {baseline}") for model in models or [baseline] if shares]
    headline = "".join(f"{one[0]}: {shares_sentence(shares, *one)}. " for one in told)
    misled = [
        f"{text} ({one[0]})" if len(told) > 1 else text
        for one in told
        if (text := misled_sentence(shares, *one))
    ]
    scores = scores_of(found.results)
    page = render(
        "page.html",
        run=None,
        title="Evaluation report",
        sub="",
        headline=headline.rstrip(),
        advice=advice,
        lines=[*misled, *power_sentences(main), *lines],
        tone=mood,
        warnings=[f"{name} was not measured: {reason}" for name, reason in found.failed.items()],
        scores=scores | {"notes": [*scores["notes"], *found.notes]},
        looks=[look_at(view, baseline) for view in found.views],
        searches=[look_at_search(view, baseline) for view in found.searches],
        curve=None,
        command=command,
        made=made,
    )
    write_text(path, page)


def _verdict(main: Sequence[Result], baseline: str) -> tuple[str, list[str], str]:
    """Return the conclusion of an evaluation, the lines that it rests on, and its tone."""
    if not baseline:
        return "Compared with no baseline.", [], ""
    everything = [result for result in main if result.difference]
    compared: dict[str, list[Result]] = {}
    for result in everything:
        compared.setdefault(result.model, []).append(result)
    heads = [f"{model}: {advice(found, baseline)}" for model, found in compared.items()]
    if len(heads) > 1:
        return f"Compared with {baseline}:", heads, tone(everything)
    return heads[0], list(map(compared_line, everything)), tone(everything)
