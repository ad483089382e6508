"""From results to the table: one line a row, its figures with their units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FIGURES = {
    "steps": "{:.0f} steps",
    "steps_per_s": "{:.3g} steps/s",
    "tokens_per_s": "{:,.0f} tokens/s",
    "texts_per_s": "{:,.0f} texts/s",
    "seconds": "{:.3g} s",
    "milliseconds": "{:.3g} ms",
    "flop_per_s": "{:.3g} FLOP/s",
    "share": "{:.1%} of the bf16 rate",
    "bytes_per_s": "{:.3g} B/s",
    "peak_gib": "{:.2f} GiB peak",
    "loss_error": "loss off by {:.1e}",
    "gradient_error": "gradient off by {:.1e}",
    "gradient_cosine": "its cosine {:.6f}",
    "curves_differ": "dev scores differ by up to {:.1e}",
    "points": "at {} evaluations",
    "weights_differ": "weights differ by up to {:.1e}",
    "score": "{:.2f} Spearman",
    "before": "before {:.2f}",
    "off": "saved differs from measured by {:.1e}",
    "padding": "{:.0%} of the tokens are padding",
    "said": "{}",
    "failed": "FAILED: {}",
}
"""Figure of a row -> how the table shows it, in this order."""

RATE = "bf16_rate"
"""The figure that the share is of: the machine's rate of multiplying large matrices."""


def with_shares(results: Sequence[dict[str, Any]]) -> None:
    """Add to each row with a `flop_per_s` its share of the device's rate, measured in the same run."""
    rates = [row[RATE] for result in results for row in result["rows"] if RATE in row]
    for result in results if rates else ():
        for row in result["rows"]:
            if "flop_per_s" in row and result["name"] != "machine":
                row["share"] = row["flop_per_s"] / rates[0]


def written(results: Sequence[dict[str, Any]]) -> str:
    """Return the table: a line for every row, and one for each part that brought none or ended early."""
    lines = ["| part | what | result |", "| --- | --- | --- |"]
    for result in results:
        for row in result["rows"]:
            shown = [form.format(row[name]) for name, form in FIGURES.items() if name in row]
            lines.append(f"| {result['name']} | {row['what']} | {', '.join(shown)} |")
        if result["state"] != "done":
            lines.append(f"| {result['name']} | {result['state'].upper()} | {result['said']} |")
    taken = sum(result["seconds"] for result in results)
    return "\n".join([*lines, "", f"{taken:.0f} s in all"])
