"""What LLM-written pairs are worth: each annotator alone, all of them, degrees, grades, and everything.

    python benchmarks/llm_supervised.py cloud-ops              # the demo corpus, MiniLM, two test sets
    python benchmarks/llm_supervised.py stsb                   # 300 STS-B sentences, MiniLM's first 3 layers
    python benchmarks/llm_supervised.py bug-titles             # 240 titles of bug reports, the same backbone

Data sets: annotator-a, -b, -c (synonyms and antonyms), concat and vote of the three; degrees (annotator-d);
written (the vote of all four); everything (all four, with the grades of grader-e: of candidates on
cloud-ops, of mined pairs on stsb). cloud-ops also has contrast (annotator-f, who was asked by the prompts
`contrast`), one-of-each (annotator-b, degrees and contrast), all (everything and contrast) and all-mined
(with mined pairs that grader-g graded). stsb also has degrees-mined, and synonyms-degrees-mined, for which
annotators a, b and c were asked for synonyms alone. bug-titles has degrees and degrees-mined alone, written
and graded by a language model (folder bug-titles/, which holds no title); pairs of duplicates measure.

Options: --seeds 1 2 3, --only concat vote, --recipe NAME, --precision bf16 (faster on a CPU
that has it), --texts 100 (so many of the texts, drawn once, with the mined pairs among them). `stsb`
needs $ANGLE_BENCH_DATA (README.md). Finished runs are kept in runs/benchmarks and not repeated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import RESULTS, ROOT, data_folder, minilm, save_results, show

from angle_data.annotators.spec import EngineConfig
from angle_data.console import configure_logging
from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.jsonl import read_jsonl, write_jsonl
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import label
from angle_data.labelling.score import score
from angle_data.text import stable_hash
from angle_train.recipe import Recipe, find_recipe
from angle_train.run import FitConfig, fit

ANNOTATORS = ("annotator-a", "annotator-b", "annotator-c")
DEGREES, CONTRAST, GRADER, MINED = "annotator-d", "annotator-f", "grader-e", "grader-g"


@dataclass(frozen=True)
class Task:
    """One corpus: its texts and recorded replies, how its labels are made, and what it is measured on.

    `purpose` decides the score of antonyms and names the recipe. `degrees` are annotator-d's replies,
    `grades` those of grader-e on candidates (None: it graded the mined pairs), `mined` pairs with grades.
    """

    name: str
    texts: Path
    replies: Path
    degrees: Path
    grades: Path | None
    mined: Path
    layers: int | None
    purpose: str
    random_per_source: int
    dev: tuple[Path, ...]
    test: tuple[Path, ...]
    annotators: tuple[str, ...] = ANNOTATORS


def cloud_ops() -> Task:
    """The demo corpus; the two evaluation files hold dev and test rows, told apart by their split column."""
    folder = ROOT / "examples" / "cloud-ops"
    graded = (folder / "eval_natural.jsonl", folder / "eval_contrast.jsonl")
    return Task(
        "cloud-ops",
        folder / "texts.jsonl",
        folder / "replies",
        folder / "replies" / "annotator-d.jsonl",
        folder / "grades" / "grader-e.jsonl",
        folder / "grades" / "grader-g-mined.jsonl",
        None,
        "opposites",
        1,
        graded,
        graded,
    )


def stsb() -> Task:
    """300 sentences of STS-B train; all 1,500 validation pairs select, all 1,379 test pairs measure."""
    folder = data_folder()
    pairs = folder / "data" / "stsb"
    return Task(
        "stsb",
        folder / "llm-stsb" / "texts.jsonl",
        folder / "llm-stsb",
        folder / "llm-stsb" / "annotator-d-graded.jsonl",
        None,
        folder / "llm-stsb" / "grader-e-mined.jsonl",
        3,
        "topics",
        1,
        (pairs / "validation.jsonl.gz",),
        (pairs / "test.jsonl.gz",),
    )


def bug_titles() -> Task:
    """Titles of bug reports from five trackers; a third of the validation pairs selects, the rest measure."""
    source, written = data_folder() / "data" / "bug-duplicates", ROOT / "benchmarks" / "bug-titles"
    home = RESULTS / "bug-titles"
    titles = {row["id"]: row["title"].strip() for row in read_lines(source / "issues-train.jsonl.gz")}
    replies = read_lines(written / "annotator-h.jsonl")
    texts = [{"id": row["id"], "text": titles[row["id"]]} for row in replies]
    asked = [
        {
            "text": titles[row["id"]],
            "task": "degrees",
            "annotator": DEGREES,
            "reply": json.dumps(row["reply"]),
        }
        for row in replies
    ]
    graded = [
        {"text1": titles[row["id1"]], "text2": titles[row["id2"]], "grader": GRADER, "score": row["score"]}
        for row in read_lines(written / "grader-i.jsonl")
    ]
    titles = {row["id"]: row["title"].strip() for row in read_lines(source / "issues-validation.jsonl.gz")}
    pairs: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for row in read_lines(source / "validation.jsonl.gz"):
        found = [titles[f"{row['source']}:{row[name]}"] for name in ("id1", "id2")]
        selects = stable_hash(f"{row['source']}:{row['id1']}") % 3 == 0
        pairs[selects].append({"text1": found[0], "text2": found[1], "label": row["label"]})
    files = {"texts": texts, DEGREES: asked, GRADER: graded, "dev": pairs[True], "test": pairs[False]}
    paths = {name: home / f"{name}.jsonl" for name in files}
    for name, rows in files.items():
        write_lines(paths[name], rows)
    used = (paths["texts"], home, paths[DEGREES], None, paths[GRADER])
    return Task("bug-titles", *used, 3, "topics", 1, (paths["dev"],), (paths["test"],), annotators=())


def part(task: Task, texts: int) -> Task:
    """Return the task with so many of its texts, which a smaller part shares, and the pairs among them."""
    rows = read_lines(task.texts)
    random.Random(0).shuffle(rows)
    kept = {row["text"] for row in rows[:texts]}
    mined = [row for row in read_lines(task.mined) if {row["text1"], row["text2"]} <= kept]
    name = f"{task.name}-{texts}"
    home = RESULTS / name
    write_lines(home / "texts.jsonl", rows[:texts])
    write_lines(home / task.mined.name, mined)
    return replace(task, name=name, texts=home / "texts.jsonl", mined=home / task.mined.name)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [row for _, row in read_jsonl(path)]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows to a JSONL file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_jsonl(path, rows)


def candidates(task: Task, names: Sequence[str] = ANNOTATORS, polarity: str | None = None) -> dict[str, Path]:
    """Label the texts with annotators' recorded replies; return the run folders."""
    runs = {}
    for name in names:
        runs[name] = RESULTS / task.name / "labels" / "-".join(filter(None, (name, polarity)))
        engine = EngineConfig(model=name, engine="recorded", replies=task.replies / f"{name}.jsonl")
        label(LabelConfig(engine, texts=task.texts, out=runs[name], polarity=polarity))
    return runs


def degrees_and_grades(task: Task) -> tuple[Path, Path]:
    """Return the run folders of annotator-d and of grader-e, from their recorded replies."""
    home = RESULTS / task.name / "labels"
    engine = EngineConfig(model=DEGREES, engine="recorded", replies=task.degrees)
    label(LabelConfig(engine, texts=task.texts, out=home / DEGREES, prompts="degrees"))
    graded = () if task.grades else (task.mined,)
    runs = tuple(home / name for name in ANNOTATORS) if task.grades else ()
    engine = EngineConfig(model=GRADER, engine="recorded", replies=task.grades or task.mined)
    score(ScoreConfig(engine, out=home / GRADER, runs=runs, pairs=graded))
    return home / DEGREES, home / GRADER


def data_sets(task: Task) -> dict[str, Path]:
    """Build every data set, see the module's docstring."""
    runs = candidates(task, task.annotators)
    three = tuple(runs.values())
    degrees, grades = degrees_and_grades(task)
    evidence: dict[str, Any] = {"scores": (grades,), "pairs": () if task.grades else (task.mined,)}
    choices: dict[str, tuple[tuple[Path, ...], dict[str, Any]]] = {
        name: ((run,), {"strategy": "concat", "labels": "ordinal"}) for name, run in runs.items()
    }
    choices["degrees"] = (degrees,), {"labels": "ordinal"}
    if runs:
        choices |= {way: (three, {"strategy": way, "labels": "ordinal"}) for way in ("concat", "vote")}
        choices["written"] = (*three, degrees), {"strategy": "vote", "labels": "ordinal"}
        choices["everything"] = (*three, degrees), evidence
    if task.grades is None:
        choices["degrees-mined"] = (degrees,), evidence
    if task.grades is None and runs:
        synonyms = candidates(task, polarity="synonym").values()
        choices["synonyms-degrees-mined"] = (*synonyms, degrees), evidence
    elif runs:
        written = candidates(task, (CONTRAST,))[CONTRAST]
        mined = RESULTS / task.name / "labels" / MINED
        engine = EngineConfig(model=MINED, engine="recorded", replies=task.mined)
        score(ScoreConfig(engine, out=mined, pairs=(task.mined,)))
        choices["contrast"] = (written,), {"strategy": "concat", "labels": "ordinal"}
        choices["one-of-each"] = (runs["annotator-b"], degrees, written), {"strategy": "concat"}
        choices["all"] = (*three, degrees, written), evidence
        choices["all-mined"] = choices["all"][0], {"scores": (grades, mined), "pairs": (task.mined,)}
    folders = {}
    for name, (used, how) in choices.items():
        out = RESULTS / task.name / "pairs" / name
        build_ensemble(
            EnsembleConfig(
                runs=used,
                out=out,
                **how,
                purpose=task.purpose,
                random_per_source=task.random_per_source,
                ratios=(1.0, 0.0),
            )
        )
        folders[name] = out / "dataset"
    return folders


def fit_pairs(task: Task, recipe: Recipe, data: Path, out: Path, seed: int) -> list[dict[str, Any]]:
    """Fit one data set with one seed, or read the finished run in `out`; return all results."""
    result = fit(
        FitConfig(
            data=[str(data)],
            backbone=str(minilm(task.layers)),
            out=out,
            recipe=recipe.with_overrides({"seed": seed}),
            dev=[str(path) for path in task.dev],
            test=[str(path) for path in task.test],
        )
    )
    print(f"{out.name}: step {result.report.best_step} of {result.report.steps}", flush=True)
    return [{"seed": seed, "value": 100 * row.score.value} | row.to_dict() for row in result.report.results]


def tables(raw: Iterable[Mapping[str, Any]], names: Callable[[Mapping[str, Any]], str]) -> None:
    """Print a table for each set of pairs; `names` gives the name of a tuned row."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in raw:
        tuned = row["model"] == "tuned"
        rows = found.setdefault(f"{row['pairs']} ({row['role']})", {})
        column = rows.setdefault(names(row) if tuned else row["model"], [])
        if tuned or not column:  # word overlap and backbone come with every run and do not depend on the seed
            column.append(row["value"])
    for title, rows in found.items():
        show(f"{title}, Spearman x 100", rows)


TASKS = {"cloud-ops": cloud_ops, "stsb": stsb, "bug-titles": bug_titles}
"""Name on the command line -> the corpus."""


def main() -> None:
    """Fit every data set with every seed and print the test Spearman of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", help="data sets to fit; default all")
    parser.add_argument("--recipe", help="another recipe than the task's")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--texts", type=int, help="use so many of the texts; default all")
    parser.add_argument("--layers", type=int, help="of MiniLM, 1 to 6; default the task's")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    task = TASKS[arguments.task]()
    if arguments.texts:
        task = part(task, arguments.texts)
    if arguments.layers:
        task = replace(task, layers=arguments.layers)
    name = arguments.recipe or task.purpose
    recipe = Recipe.from_toml(find_recipe(name)).with_overrides({"precision": arguments.precision})
    folders = {data: folder for data, folder in data_sets(task).items() if data in (arguments.only or [data])}
    layers = f"-{arguments.layers}-layers" if arguments.layers else ""
    home = RESULTS / task.name / f"{Path(name).stem}{layers}"
    raw = []
    for seed, data in itertools.product(arguments.seeds, folders):
        for row in fit_pairs(task, recipe, folders[data], home / f"{data}-{seed}", seed):
            raw.append({"data": data, **row})
    tables(raw, lambda row: row["data"])
    save_results(f"llm_supervised-{task.name}-{home.name}", raw)


if __name__ == "__main__":
    main()
