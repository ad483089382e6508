"""What annotation buys: the gain of each way to spend, by number of texts and by money.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/annotation.py stsb    # fits what is missing
    … cloud-ops --seeds 1 2 3 --texts 50 100 360 --test --figure FILE.svg

Prints the gain over the backbone on dev pairs, and with --figure draws it (docs/gains-*.svg) against money
at gpt-4o-mini's price. On cloud-ops it is the mean of the two sets. Texts are drawn once, a smaller part lies
in a larger one. Mined pairs are those of 300 texts as far as both texts are in the part, so there are fewer
a text in smaller parts. Finished fits are kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from common import RESULTS, options, plus_minus
from llm_supervised import TASKS, Task, data_sets, fit_pairs, part

from angle_data import label, score
from angle_data.console import configure_logging
from angle_data.jsonl import read_jsonl
from angle_train.recipe import Recipe, find_recipe


@dataclass(frozen=True)
class Way:
    """A way to spend money on texts.

    Each of `asks` is (models, options of `label`); `graded` pairs a text are graded.
    """

    name: str
    asks: tuple[tuple[int, dict[str, str]], ...]
    graded: float = 0.0


_STRUCTURED, _CONTRAST, _DEGREES = ({"prompts": name} for name in ("structured", "contrast", "degrees"))
_SYNONYMS = {**_STRUCTURED, "polarity": "synonym"}
WAYS = {
    "stsb": {
        "annotator-b": Way("synonyms and opposites", ((1, _STRUCTURED),)),
        "vote": Way("the same of three models", ((3, _STRUCTURED),)),
        "degrees": Way("a sentence for each degree", ((1, _DEGREES),)),
        "degrees-mined": Way("degrees, and mined pairs graded", ((1, _DEGREES),), graded=4.7),
        "synonyms-degrees-mined": Way(
            "degrees, mined pairs, and synonyms of three models", ((1, _DEGREES), (3, _SYNONYMS)), graded=4.7
        ),
    },
    "cloud-ops": {
        "annotator-b": Way("synonyms and opposites", ((1, _STRUCTURED),)),
        "vote": Way("the same of three models", ((3, _STRUCTURED),)),
        "one-of-each": Way(
            "synonyms and opposites, contrast, degrees", ((1, _STRUCTURED), (1, _CONTRAST), (1, _DEGREES))
        ),
        "everything": Way(
            "three models, degrees, all graded", ((3, _STRUCTURED), (1, _DEGREES)), graded=11.6
        ),
        "all": Way(
            "three models, contrast, degrees, all graded",
            ((3, _STRUCTURED), (1, _CONTRAST), (1, _DEGREES)),
            graded=11.6,
        ),
    },
}
"""Corpus -> data set -> the way to spend money that it stands for."""
_PRICED = "gpt-4o-mini"
Gains = dict[str, dict[int, list[float]]]
"""Data set -> texts -> Spearman x 100 gained, of each seed."""


def measure(task: Task, numbers: Sequence[int], seeds: Sequence[int], role: str) -> Gains:
    """Fit every data set on so many texts, or read the finished fit, and return what it gained."""
    recipe = Recipe.from_toml(find_recipe(task.purpose)).with_overrides({"precision": "bf16"})
    found: Gains = {name: {} for name in WAYS[task.name]}
    for number in numbers:
        some = part(task, number)
        folders = data_sets(some)
        for name in found:
            home = RESULTS / some.name / task.purpose
            runs = [fit_pairs(some, recipe, folders[name], home / f"{name}-{seed}", seed) for seed in seeds]
            found[name][number] = [_gain(rows, role) for rows in runs]
    return found


def _gain(rows: Sequence[dict[str, object]], role: str) -> float:
    """Return the mean gain over the sets of pairs of one role."""
    # "tuned" is the first word, whether those weights were saved or not.
    value = {
        (str(row["model"]).split(",")[0], row["pairs"]): row["value"] for row in rows if row["role"] == role
    }
    return fmean(value["tuned", name] - value["backbone", name] for model, name in value if model == "tuned")  # type: ignore[operator]


def print_tables(gains: Gains) -> None:
    """Print mean and spread of the gains."""
    for name, row in gains.items():
        print(f"{name:<24}", "   ".join(f"{number}: {plus_minus(row[number], '5.2f')}" for number in row))


def usd_per_text(way: Way, texts: Path) -> float:
    """Return what a way takes for one text of a file, as `dry_run` forecasts it at the price of `_PRICED`."""
    rows = [row for _, row in read_jsonl(texts)]
    return sum(_costs(way, rows)) / len(rows)


def _costs(way: Way, rows: Sequence[dict[str, str]]) -> Iterator[float]:
    with tempfile.TemporaryDirectory() as folder:
        common = {"model": _PRICED, "out": Path(folder) / "run", "dry_run": True}
        for models, asked in way.asks:
            yield models * label([*rows], **asked, **common).counts["usd"]
        if way.graded:
            # Neighbours in the file, which are as long as any other pairs.
            pairs = [{"text1": one["text"], "text2": other["text"]} for one, other in pairwise(rows)]
            grading = score(pairs=pairs, **common).counts
            yield way.graded * len(rows) * grading["usd"] / grading["requests"]


def draw(gains: Gains, task: Task, path: str) -> None:
    """Draw the gain against USD."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gains"})
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, row in gains.items():
        way = WAYS[task.name][name]
        usd = usd_per_text(way, task.texts)
        cents = [100 * number * usd for number in row]
        means = [fmean(values) for values in row.values()]
        axes.plot(cents, means, marker="o", label=way.name)
        for number, cent, mean in zip(row, cents, means, strict=True):
            axes.annotate(str(number), (cent, mean), textcoords="offset points", xytext=(4, -9), fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel(f"US cents at {_PRICED}'s price; the numbers are texts")
    axes.set_ylabel("Spearman x 100 gained")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, and print or draw."""
    parser = options(__doc__)
    parser.add_argument("task", choices=list(WAYS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--texts", type=int, nargs="+")
    parser.add_argument("--test", action="store_true", help="on test pairs, once nothing is chosen any more")
    parser.add_argument("--figure", help="file to draw to")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    task = TASKS[arguments.task]()
    numbers = arguments.texts or {"stsb": [50, 100, 300], "cloud-ops": [50, 100, 360]}[task.name]
    gains = measure(task, numbers, arguments.seeds, "test" if arguments.test else "dev")
    print_tables(gains)
    if arguments.figure:
        draw(gains, task, arguments.figure)


if __name__ == "__main__":
    main()
