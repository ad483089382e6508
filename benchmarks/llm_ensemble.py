"""Ensembles of LLM-written pairs at equal row counts, and how each bears polarities swapped.

    python benchmarks/llm_ensemble.py cloud-ops                            # every data set, three seeds
    python benchmarks/llm_ensemble.py stsb --only concat-ordinal vote-ordinal
    python benchmarks/llm_ensemble.py cloud-ops --flip annotator-b:0.2     # also with a fifth of b swapped
    python benchmarks/llm_ensemble.py cloud-ops --flip annotator-b:0.2 --detect      # only what is found

Data sets are named SET-LABELS: SET is an annotator, concat, vote or principled, LABELS is binary, ordinal or
graded; `everything-graded` adds annotator-d's degrees and grader-e's grades (of mined pairs on stsb). The
grades of principled and graded ones are grader-e's, who graded the candidates of cloud-ops alone: stsb has
neither. All have the same number of random pairs; of other pairs all have as many as the smallest, each
source and polarity giving up its share.

With --flip, sentences drawn by hash get the other polarity (and a request of their own, so that no key gives
them away) before anything is built. With --replace, SmolLM2's replies stand in an annotator's place, graded
like the others (grades/grader-p-smollm2.jsonl). The tables also show what either costs each data set.
Other options: --seeds 1 2 3, --precision bf16 (faster on a CPU that has it), --set epochs=2 (values of the
recipe, as `angle-train fit` takes them). `stsb` needs $ANGLE_BENCH_DATA
(README.md). Finished runs are kept in runs/benchmarks and not repeated.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llm_supervised as llm
from common import RESULTS, options, save_results, show

from angle_data.console import configure_logging
from angle_data.jsonl import write_jsonl
from angle_data.publish.card import Card, write_dataset
from angle_data.records import LabelledPair
from angle_data.text import pair_key, stable_hash
from angle_train.recipe import Recipe, find_recipe, parse_settings

LABELS = ("binary", "ordinal", "graded")
DEFAULT = (
    *(f"{name}-ordinal" for name in llm.ANNOTATORS),
    *(f"{way}-{labels}" for way in ("concat", "vote") for labels in LABELS[:2]),
)
GRADED = tuple(f"principled-{labels}" for labels in LABELS)
EVERYTHING = "everything-graded"
SMALL = "smollm2"
OTHER = {"synonym": "antonym", "antonym": "synonym"}


@dataclass(frozen=True)
class World:
    """One set of candidates: run folders by annotator, their grades, and the pairs flipped of one of them."""

    folder: Path
    runs: dict[str, Path]
    grades: Path
    flipped: frozenset[tuple[str, str]]
    swapped: str = ""  # the annotator whose polarities were flipped


def main() -> None:
    """Build, fit and compare; see the module's docstring."""
    parser = options(__doc__)
    parser.add_argument("task", choices=["cloud-ops", "stsb"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    sets = (*llm.ANNOTATORS, "concat", "vote", "principled")
    choices = [f"{name}-{labels}" for name in sets for labels in LABELS] + [EVERYTHING]
    parser.add_argument("--only", nargs="+", choices=choices, metavar="SET-LABELS")
    flips = [f"{name}:{tenths / 10:g}" for name in llm.ANNOTATORS for tenths in range(1, 11)]
    parser.add_argument("--flip", choices=flips, metavar="ANNOTATOR:SHARE")
    parser.add_argument(
        "--replace", choices=llm.ANNOTATORS, help="put SmolLM2 in this one's place (cloud-ops)"
    )
    parser.add_argument("--detect", action="store_true", help="print what is found and fit no data set")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="values of the recipe")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    task = llm.TASKS[arguments.task]()
    values = {"precision": arguments.precision, **parse_settings(arguments.set)}
    recipe = Recipe.from_toml(find_recipe(task.purpose)).with_overrides(values)
    root = RESULTS / task.name / "ensemble" / "-".join([task.purpose, *arguments.set]).replace("=", "-")
    runs = llm.candidates(task)
    _, grades = llm.degrees_and_grades(task)
    worlds = [make_world(root / "clean", runs, grades)]
    if arguments.flip:
        name, share = arguments.flip.split(":")
        worlds.append(make_world(root / f"flip-{name}-{share}", runs, grades, name, float(share)))
    if arguments.replace:
        others = {name: run for name, run in runs.items() if name != arguments.replace}
        others |= llm.candidates(task, (SMALL,))
        folder = root / f"{SMALL}-for-{arguments.replace}"
        worlds.append(make_world(folder, others, llm.small_grades(task, others)))
    default = DEFAULT if task.mined else (*DEFAULT, *GRADED)
    wanted = arguments.only or default
    names = ["principled-ordinal"] if arguments.detect else sorted({*wanted, *default})
    built = {world.folder.name: build_all(task, world, names) for world in worlds}
    detected = {} if task.mined else {world.folder.name: detect(world) for world in worlds}
    results: list[dict[str, Any]] = []
    if not arguments.detect:
        every = [pairs for sets in built.values() for pairs in sets.values()]
        rows = min(sum(pair.polarity != "random" for pair in pairs) for pairs in every)
        print(f"\neach data set: {rows} pairs besides the random ones")
        for seed, world, data in itertools.product(arguments.seeds, worlds, wanted):
            if data not in built[world.folder.name]:  # its annotator was replaced
                continue
            pairs = subsample(built[world.folder.name][data], rows)
            folder = world.folder / "equal" / f"{data}-{rows}"
            found = run(task, recipe, folder, pairs, seed)
            results += [{"world": world.folder.name, "data": data, **row} for row in found]
        llm.tables(results, lambda row: f"{row['data']} ({row['world']})")
        for world in worlds[1:]:
            print_losses(results, world.folder.name)
    name = "-".join(["llm_ensemble", task.name, root.name, *(world.folder.name for world in worlds[1:])])
    save_results(name, {"detection": detected, "results": results})


# --- candidates ---------------------------------------------------------------------------------------


def make_world(
    folder: Path, runs: dict[str, Path], grades: Path, swapped: str = "", share: float = 0.0
) -> World:
    """Copy the candidates, swapping a share of an annotator's."""
    flipped: set[tuple[str, str]] = set()
    copies = {}
    for annotator, run_folder in runs.items():
        rows = llm.rows_of(run_folder / "candidates.jsonl")
        for number, row in enumerate(rows if annotator == swapped else ()):
            if stable_hash(f"flip\n{row['key']}\n{row['text']}") / 2**64 < share:
                row["polarity"] = OTHER[row["polarity"]]
                flipped.add(pair_key(row["source"], row["text"]))
            row["key"] += f"-{number}"
        copies[annotator] = folder / "labels" / annotator
        write_jsonl(copies[annotator] / "candidates.jsonl", rows)
    return World(folder, copies, grades, frozenset(flipped), swapped)


# --- data sets ----------------------------------------------------------------------------------------


def build_all(task: llm.Task, world: World, names: Sequence[str]) -> dict[str, list[LabelledPair]]:
    """Build the data sets named, all of each for training, and return their pairs."""
    built = {}
    degrees = llm.degrees_and_grades(task)[0]
    for name in names:
        data, _, labels = name.rpartition("-")
        if data in llm.ANNOTATORS and data not in world.runs:
            continue
        strategy = data if data in ("vote", "principled") else "concat"
        runs = (world.runs[data],) if data in world.runs else tuple(world.runs.values())
        how: dict[str, Any] = {"strategy": strategy, "labels": labels}
        if strategy == "principled" or labels == "graded":
            how["scores"] = (world.grades,)
        if labels == "binary":
            how["purpose"] = None
        if name == EVERYTHING:
            runs = (*runs, degrees)
            how |= {"strategy": "principled", "pairs": llm.mined_pairs(task)}
        llm.build(task, world.folder / "pairs" / name, runs, **how)
        built[name] = read_pairs(world.folder / "pairs" / name)
    return built


def read_pairs(folder: Path) -> list[LabelledPair]:
    """Return the training pairs of a data set."""
    from pyarrow import parquet

    file = folder / "dataset" / "data" / "train-00000-of-00001.parquet"
    return [LabelledPair(**row) for row in parquet.read_table(file).to_pylist()]


def subsample(pairs: Sequence[LabelledPair], rows: int) -> list[LabelledPair]:
    """Return `rows` of the pairs that annotators wrote, and all random ones.

    Every source and polarity gives its first pair, in an order drawn by hash, before any gives its second.
    """
    turn: Counter[tuple[str, str]] = Counter()
    drawn = []
    for pair in sorted(pairs, key=lambda p: stable_hash(f"subsample\n{p.text1}\n{p.text2}")):
        if pair.polarity != "random":
            turn[pair.source_id, pair.polarity] += 1
            drawn.append((turn[pair.source_id, pair.polarity], len(drawn), pair))
    chosen = {id(pair) for _, _, pair in sorted(drawn, key=lambda entry: entry[:2])[:rows]}
    return [pair for pair in pairs if pair.polarity == "random" or id(pair) in chosen]


# --- fits and tables ----------------------------------------------------------------------------------


def run(
    task: llm.Task, recipe: Recipe, folder: Path, pairs: list[LabelledPair], seed: int
) -> list[dict[str, Any]]:
    """Fit one data set with one seed; return its results, and the untuned model's."""
    card = Card("Subset", "Drawn for a comparison at equal row counts.", ("drawn by hash",), ("none",))
    write_dataset(folder / "dataset", {"train": pairs}, card)
    print(f"{folder.parent.parent.name} {folder.name} ", end="")
    return llm.fit_pairs(task, recipe, folder / "dataset", folder / f"model-{seed}", seed)


def print_losses(results: Sequence[dict[str, Any]], flipped: str) -> None:
    """Print what the flips cost every data set, seed by seed."""
    values = {
        (row["pairs"], row["role"], row["data"], row["seed"], row["world"]): row["value"]
        for row in results
        if row["model"].startswith("tuned")  # saved or not
    }
    losses: dict[str, dict[str, list[float]]] = {}
    for (*key, world), value in values.items():
        if world == "clean" and (*key, flipped) in values:
            pairs, role, data, _ = key
            lost = value - values[(*key, flipped)]
            losses.setdefault(f"{pairs} ({role})", {}).setdefault(data, []).append(lost)
    for title, rows in losses.items():
        show(f"{title}, lost by {flipped}", rows)


# --- detection ----------------------------------------------------------------------------------------


def detect(world: World) -> dict[str, Any]:
    """Print and return what `principled` made of the candidates: reliability, flips, how right they were."""
    folder = world.folder / "pairs" / "principled-ordinal"
    report = json.loads((folder / "report.json").read_text())
    found: dict[str, Any] = {name: report[name] for name in ("graders", "reliability", "dropped")}
    shown = ", ".join(f"{reason} {count}" for reason, count in found["dropped"].items())
    print(f"\n{world.folder.name}: principled; {report['candidates']} candidates, dropped: {shown}")
    for name, row in found["graders"].items():
        print(f"  {name}: AUC {row['auc']:.3f} against the polarities as they were given")
    turned = [pair for pair in read_pairs(folder) if "flipped" in pair.flags]
    lost = [r for r in llm.rows_of(folder / "rejected.jsonl") if r["reason"] in ("contradicted", "conflict")]
    found["found"] = {}
    for name, sides in found["reliability"].items():
        shown = ", ".join(f"{side} {row['reliability']:.3f}" for side, row in sides.items())
        hits = {pair_key(p.text1, p.text2) for p in turned if name in p.models}
        flips = len(hits)
        hits |= {pair_key(row["source"], row["text"]) for row in lost if row["model"] == name}
        right, every = len(hits & world.flipped), len(world.flipped) if name == world.swapped else 0
        found["found"][name] = {"found": len(hits), "flipped": flips, "right": right, "of": every}
        print(f"  {name}: reliability {shown}; {flips} flipped, {len(hits) - flips} dropped", end="")
        print(f"; found {right / every:.1%}, precision {right / max(len(hits), 1):.1%}" if every else "")
    return found


if __name__ == "__main__":
    main()
