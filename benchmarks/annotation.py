"""What annotation buys: the gain of each way to ask, by the number of texts and by money.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/annotation.py stsb    # fits what is missing
    … cloud-ops --seeds 1 2 3 --texts 50 100 360 --test --figure FILE.svg

Prints the gain over the backbone; on cloud-ops it is the mean of its two sets. With --figure, a picture of
gain against money at gpt-4o-mini's price. Texts are drawn once, a smaller part lies in a larger one. Mined
pairs are those of 300 texts as far as both texts are in the part, so there are fewer a text in smaller parts.
--set epochs=2: values of the recipe. Finished fits are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from common import RESULTS, options, plus_minus
from llm_supervised import TASKS, Task, data_sets, fit_pairs, part

from angle_data.console import configure_logging
from angle_train.recipe import Recipe, find_recipe, parse_settings

WAYS = {
    "stsb": {
        "annotator-b": ("synonyms and opposites", 0.0098),
        "vote": ("the same of three models", 0.0294),
        "degrees": ("a sentence for each degree", 0.0113),
        "degrees-mined": ("degrees, and mined pairs graded", 0.0326),
        "synonyms-degrees-mined": ("degrees, mined pairs, and synonyms of three models", 0.0474),
    },
    "cloud-ops": {
        "annotator-b": ("synonyms and opposites", 0.0118),
        "vote": ("the same of three models", 0.0355),
        "one-of-each": ("synonyms and opposites, contrast, degrees", 0.0392),
        "everything": ("three models, degrees, all graded", 0.1038),
        "all": ("three models, contrast, degrees, all graded", 0.1174),
    },
}
"""Corpus -> data set -> what is asked for, and US cents a text at gpt-4o-mini's price.

The cents were estimated by characters, at commit 7f1b4a91, with `llm-label --plan`, which is no more.
"""
Gains = dict[str, dict[int, list[float]]]
"""Data set -> texts -> Spearman x 100 gained, of each seed."""


def measure(
    task: Task, numbers: Sequence[int], seeds: Sequence[int], role: str, settings: Sequence[str]
) -> Gains:
    """Fit every data set on so many texts, or read the finished fit, and return what it gained."""
    values = {"precision": "bf16", **parse_settings(settings)}
    recipe = Recipe.from_toml(find_recipe(task.purpose)).with_overrides(values)
    kept = "".join(f"-{setting.replace('=', '-')}" for setting in settings)
    found: Gains = {name: {} for name in WAYS[task.name]}
    for number in numbers:
        some = part(task, number)
        folders = data_sets(some)
        for name in found:
            home = RESULTS / some.name / task.purpose
            runs = [
                fit_pairs(some, recipe, folders[name], home / f"{name}{kept}-{seed}", seed) for seed in seeds
            ]
            found[name][number] = [_gain(rows, role) for rows in runs]
    return found


def _gain(rows: Sequence[dict[str, object]], role: str) -> float:
    """Return the mean gain over the sets of pairs of one role."""
    # "tuned" is the first word, whether those weights were saved or not.
    value = {
        (str(row["model"]).split(",")[0], row["pairs"]): row["value"] for row in rows if row["role"] == role
    }
    return fmean(value["tuned", name] - value["backbone", name] for model, name in value if model == "tuned")  # type: ignore[operator]


def print_table(gains: Gains) -> None:
    """Print mean and spread of the gains."""
    for name, row in gains.items():
        print(f"{name:<24}", "   ".join(f"{number}: {plus_minus(row[number], '5.2f')}" for number in row))


def draw(gains: Gains, task: Task, path: str) -> None:
    """Draw the gain against US cents."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gains"})
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, row in gains.items():
        label, price = WAYS[task.name][name]
        cents = [number * price for number in row]
        means = [fmean(values) for values in row.values()]
        axes.plot(cents, means, marker="o", label=label)
        for number, cent, mean in zip(row, cents, means, strict=True):
            axes.annotate(str(number), (cent, mean), textcoords="offset points", xytext=(4, -9), fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("US cents at gpt-4o-mini's price; the numbers are texts")
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
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="values of the recipe")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    task = TASKS[arguments.task]()
    numbers = arguments.texts or {"stsb": [50, 100, 300], "cloud-ops": [50, 100, 360]}[task.name]
    role = "test" if arguments.test else "dev"
    gains = measure(task, numbers, arguments.seeds, role, arguments.set)
    print_table(gains)
    if arguments.figure:
        draw(gains, task, arguments.figure)


if __name__ == "__main__":
    main()
