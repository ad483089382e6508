"""What tuning changed, written into the card that is published with the model.

The library's own card has the figures on the pairs that chose the weights; a reader wants to know what the
backbone scores on the same pairs, and on others.
"""

from __future__ import annotations

from pathlib import Path

from angle_data.jsonl import replace_file
from angle_train.report.summary import FitReport
from angle_train.report.text import results_table

_NEXT = "\n## Model Details\n"


def add_results(card: Path, report: FitReport) -> None:
    """Put the conclusion and the table of results of a run into a model's card, if there is one."""
    if not card.is_file():
        return
    text = card.read_text(encoding="utf-8")
    lines = [
        "\n## What tuning changed\n",
        report.advice(),
        f"\n```text\n{results_table(report.shown())}\n```\n",
        *(f"* {line}" for line in [*report.verdict()[1:], *report.notes]),
    ]
    before, heading, after = text.partition(_NEXT)
    with replace_file(card) as stream:
        stream.write(before + "\n".join(lines).rstrip("\n") + "\n" + heading + after)
