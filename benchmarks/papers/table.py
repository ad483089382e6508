"""Writes README.md from rows.toml: every row of the papers, what it needs, its command, our figure.

`python benchmarks/papers/table.py` writes it; with `--check` it exits with 1 if the page is out of date.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NEEDS = {"here": "runs here", "hub": "needs the hub", "gpu": "needs the hub and a GPU", "no": "cannot be run"}
HEAD = """# The papers' rows and ours

AnglE: Li and Li, [arXiv 2309.12871](https://arxiv.org/abs/2309.12871), in four versions. AoE: Li and Li,
ACL 2024. Generated from `rows.toml` by `python benchmarks/papers/table.py`.

**No published figure has been repeated.** That needs BERT-base or LLaMA2 from the Hugging Face hub, and
mostly a GPU; this toolkit was built without either. The column *scaled* has what did run: **another,
much smaller backbone** (all-MiniLM-L6-v2 cut to three layers), one epoch of STS-B, **one seed (42)**, 64
tokens. It shows that a row runs; it confirms and refutes nothing. Each is the row's command with
`--seeds 42 --backbone MINILM --data-dir DATA --out runs/papers-scaled --set epochs=1 --set
max_seq_length=64`, where MINILM is what `minilm(3)` of `benchmarks/common.py` makes (for rows that train
nothing, without `--set`).

One command a row: `nli aoe` means `python benchmarks/papers/paper.py nli aoe` (data from the hub, seeds
42 to 46, scores with 95 % intervals, mean ± standard deviation over the seeds). `--print` shows what it
consists of, `--against ROW` adds a paired t-test over the data sets, `--data-dir` reads files instead of
the hub. A command that starts with `measure`, `figures`, `times` or `gis_statistics` is that script in
`benchmarks/papers`. What the papers do not publish (weights, epochs, what chose the checkpoint) is
chosen in `recipes/paper-*.toml`, with the reason beside it. The in-batch term is this toolkit's, not the
authors'. Other methods are trained by Sentence Transformers' losses with their authors' settings
(`baselines.py`).
"""


def tables() -> list[dict[str, Any]]:
    """Return the tables of rows.toml."""
    found: list[dict[str, Any]] = tomllib.loads((HERE / "rows.toml").read_text(encoding="utf-8"))["table"]
    return found


def page() -> str:
    """Return README.md."""
    rows = [row for table in tables() for row in table["row"]]
    counts = Counter(row["needs"] for row in rows)
    said = "; ".join(f"{words}: {counts[need]}" for need, words in NEEDS.items())
    scaled = sum("scaled" in row for row in rows)
    parts = [HEAD, f"{len(rows)} rows ({said}). {scaled} have run at a small scale.\n"]
    for table in tables():
        parts.append(f"## {table['title']}\n\n{table['text']}\n")
        lines = ["| row | published | | command | scaled |", "| --- | --- | --- | --- | --- |"]
        for row in table["row"]:
            command = f"`{row['command']}`" if "command" in row else ""
            cells = (row["name"], row["paper"], NEEDS[row["needs"]], command, row.get("scaled", ""))
            lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page, or check it."""
    path = HERE / "README.md"
    if "--check" in sys.argv[1:]:
        if path.read_text(encoding="utf-8") != page():
            sys.exit("benchmarks/papers/README.md is out of date; run python benchmarks/papers/table.py")
        return
    path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
