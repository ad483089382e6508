"""What annotation buys: the gain of each way to spend, by number of texts and by money.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/annotation.py stsb    # fits what is missing
    … cloud-ops --seeds 1 2 3 --texts 50 100 360 --test --figure FILE.svg

Makes the figures of angle_data/labelling/gains.toml, from dev pairs, and with --figure a picture of gain
against money at gpt-4o-mini's price. The gain is over the backbone, as a share of the largest mean of all
ways and numbers of texts; on cloud-ops it is the mean of its two sets. Texts are drawn once, a smaller part
lies in a larger one. Mined pairs are those of 300 texts as far as both texts are in the part, so there are
fewer a text in smaller parts. Finished fits are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from common import RESULTS, options, plus_minus
from llm_supervised import TASKS, Task, data_sets, fit_pairs, part
from sklearn.isotonic import isotonic_regression

from angle_data.annotators.spec import EngineConfig
from angle_data.console import configure_logging
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.plan import plan_spending, ways_of
from angle_train.recipe import Recipe, find_recipe

WAYS = {
    "stsb": ("annotator-b", "vote", "degrees", "degrees-mined", "synonyms-degrees-mined"),
    "cloud-ops": ("annotator-b", "vote", "one-of-each", "everything", "all"),
}
"""Corpus -> data sets, in the order of the ways in gains.toml."""
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


def print_tables(gains: Gains, task: Task) -> None:
    """Print mean and spread of the gains, and their shares as gains.toml has them: more texts never less."""
    best = max(fmean(values) for row in gains.values() for values in row.values())
    for name, row in gains.items():
        print(f"{name:<24}", "   ".join(f"{number}: {plus_minus(row[number], '5.2f')}" for number in row))
    for way, row in zip(ways_of(task.purpose), gains.values(), strict=True):
        rising = isotonic_regression([fmean(values) / best for values in row.values()])
        shares = ", ".join(f"{number} = {share:.2f}" for number, share in zip(row, rising, strict=True))
        print(f"{way.name}: gains = {{ {shares} }}")


def draw(gains: Gains, task: Task, path: str) -> None:
    """Draw the gain against USD; the cost is that of `llm-label --plan` for the corpus."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gains"})
    engine, texts = EngineConfig(_PRICED), task.texts
    config = LabelConfig(engine, texts=texts, out=texts, plan=True, purpose=task.purpose)
    offers = {offer.way.name: offer for offer in plan_spending(config).offers}
    figure, axes = plt.subplots(figsize=(7, 4))
    for way, row in zip(ways_of(task.purpose), gains.values(), strict=True):
        offer = offers[way.name]
        cents = [100 * number * (offer.usd or 0.0) / offer.texts for number in row]
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
    print_tables(gains, task)
    if arguments.figure:
        draw(gains, task, arguments.figure)


if __name__ == "__main__":
    main()
