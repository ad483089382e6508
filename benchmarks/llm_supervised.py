"""What LLM-written pairs are worth: each annotator alone, all of them, degrees, grades, and everything.

    python benchmarks/llm_supervised.py cloud-ops              # the demo corpus, MiniLM, two test sets
    python benchmarks/llm_supervised.py stsb                   # 300 STS-B sentences, MiniLM's first 3 layers
    python benchmarks/llm_supervised.py stsb-1000              # these and 700 more, degrees of annotator-j
    python benchmarks/llm_supervised.py bug-titles             # 240 titles of bug reports, the same backbone

Data sets: annotator-a, -b, -c (synonyms and antonyms), concat and vote of the three; degrees (annotator-d);
everything (all four, with the grades of grader-e: of candidates on cloud-ops, of mined pairs on stsb).
cloud-ops also has one-of-each (annotator-b, degrees and annotator-f, who was asked by the prompts `contrast`)
and all (everything and annotator-f). stsb also has degrees-mined, and synonyms-degrees-mined, for which
annotators a, b and c were asked for synonyms alone, and written: these, another annotator's degrees
(annotator-j) and 4,500 graded pairs (grader-k): 3,300 of what d and j wrote for one text, 1,200 of a text and
what was written for it (folder stsb/, which holds none of the source texts). bug-titles has degrees
and degrees-mined alone, written and graded by a language model (folder bug-titles/, which holds no title);
pairs of duplicates measure.

Options: --seeds 1 2 3, --only concat vote, --precision bf16 (faster on a CPU that has it), --layers 6 (of
MiniLM), --set epochs=5 (values of the recipe, as `angle-train fit` takes them); --texts 100 takes so many of
the texts, of which fewer lie in more; --general measures STS-B's test pairs too.
`stsb`, `stsb-1000`, `bug-titles` and --general need $ANGLE_BENCH_DATA (README.md). Finished runs are not
repeated.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import RESULTS, ROOT, data_folder, minilm, options, save_results, show
from stsb_replies import STORED, restore, rows_of, with_text

from angle_data.annotators.spec import EngineConfig
from angle_data.console import configure_logging
from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.jsonl import write_jsonl
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import label
from angle_data.labelling.score import score
from angle_data.text import stable_hash
from angle_train.options import FitOptions
from angle_train.recipe import Recipe, find_recipe, parse_settings
from angle_train.run import fit

ANNOTATORS = ("annotator-a", "annotator-b", "annotator-c")
DEGREES, CONTRAST, GRADER = "annotator-d", "annotator-f", "grader-e"
SECOND, READER = "annotator-j", "grader-k"


@dataclass(frozen=True)
class Task:
    """One corpus: its texts and recorded replies, how its labels are made, and what it is measured on.

    `purpose` decides the score of antonyms and names the recipe. `degrees` are annotator-d's replies (of
    stsb-1000 annotator-j's), `grades` those of grader-e: on candidates, or with `mined` on mined pairs.
    `more` says that there are annotator-j and grader-k, too.
    """

    name: str
    purpose: str
    layers: int | None
    texts: Path
    replies: Path
    degrees: Path
    grades: Path | None
    mined: bool
    dev: tuple[Path, ...]
    test: tuple[Path, ...]
    annotators: tuple[str, ...] = ANNOTATORS
    more: bool = False


def cloud_ops() -> Task:
    """The demo corpus; the two evaluation files hold dev and test rows, told apart by their split column."""
    folder = ROOT / "examples" / "cloud-ops"
    graded = (folder / "eval_natural.jsonl", folder / "eval_contrast.jsonl")
    replies, grades = folder / "replies", folder / "grades" / "grader-e.jsonl"
    used = (folder / "texts.jsonl", replies, replies / f"{DEGREES}.jsonl", grades)
    return Task("cloud-ops", "opposites", None, *used, False, graded, graded)


def stsb() -> Task:
    """300 sentences of STS-B train; all 1,500 validation pairs select, all 1,379 test pairs measure."""
    pairs = data_folder() / "data" / "stsb"
    home = restore(pairs / "train.jsonl.gz", RESULTS / "stsb")
    used = (home / "texts.jsonl", home, home / f"{DEGREES}.jsonl", home / f"{GRADER}.jsonl")
    dev, test = pairs / "validation.jsonl.gz", pairs / "test.jsonl.gz"
    return Task("stsb", "topics", 3, *used, True, (dev,), (test,), more=True)


def stsb_1000() -> Task:
    """1,000 sentences of STS-B train, the 300 first, with sentences at each degree alone."""
    train = rows_of(data_folder() / "data" / "stsb" / "train.jsonl.gz")
    texts = {f"train-{number}": row["sentence1"].strip() for number, row in enumerate(train)}
    texts |= {row["id"]: row["text"] for row in rows_of(stsb().texts)}
    home = RESULTS / "stsb-1000"
    replies = rows_of(STORED / f"{SECOND}.jsonl")
    files = home / "texts.jsonl", home, home / f"{DEGREES}.jsonl"
    write_jsonl(files[0], ({"id": row["id"], "text": texts[row["id"]]} for row in replies))
    write_jsonl(files[2], (degrees_reply(texts[row["id"]], row["reply"]) for row in replies))
    whole = stsb()
    return Task("stsb-1000", "topics", 3, *files, None, False, whole.dev, whole.test, ())


def degrees_reply(text: str, reply: dict[str, str], annotator: str = DEGREES) -> dict[str, str]:
    """Return a row of recorded replies to the degrees prompt."""
    reply = {degree: with_text(sentence, text) for degree, sentence in reply.items()}
    return {"text": text, "task": "degrees", "annotator": annotator, "reply": json.dumps(reply)}


def bug_titles() -> Task:
    """Titles of bug reports from five trackers; a third of the validation pairs selects, the rest measure."""
    source, written = data_folder() / "data" / "bug-duplicates", ROOT / "benchmarks" / "bug-titles"
    home = RESULTS / "bug-titles"
    titles = {row["id"]: row["title"].strip() for row in rows_of(source / "issues-train.jsonl.gz")}
    replies = rows_of(written / "annotator-h.jsonl")
    files: dict[str, list[dict[str, Any]]] = {
        "texts": [{"id": row["id"], "text": titles[row["id"]]} for row in replies],
        DEGREES: [degrees_reply(titles[row["id"]], row["reply"]) for row in replies],
        GRADER: [
            {
                "text1": titles[row["id1"]],
                "text2": titles[row["id2"]],
                "grader": GRADER,
                "score": row["score"],
            }
            for row in rows_of(written / "grader-i.jsonl")
        ],
        "dev": [],
        "test": [],
    }
    titles = {row["id"]: row["title"].strip() for row in rows_of(source / "issues-validation.jsonl.gz")}
    for row in rows_of(source / "validation.jsonl.gz"):
        one, other = (titles[f"{row['source']}:{row[name]}"] for name in ("id1", "id2"))
        files[bug_split(row)].append({"text1": one, "text2": other, "label": row["label"]})
    texts, degrees, grades, dev, test = paths = [home / f"{name}.jsonl" for name in files]
    for path, rows in zip(paths, files.values(), strict=True):
        write_jsonl(path, rows)
    return Task("bug-titles", "topics", 3, texts, home, degrees, grades, True, (dev,), (test,), ())


def bug_split(row: dict[str, Any]) -> str:
    """Return whether a labelled pair of bug reports, of the validation split, is dev or test here."""
    return "test" if stable_hash(f"{row['source']}:{row['id1']}") % 3 else "dev"


def part(task: Task, texts: int) -> Task:
    """Return the task with so many of its texts, which a smaller part shares, and the pairs among them."""
    rows = rows_of(task.texts)
    random.Random(0).shuffle(rows)
    home = RESULTS / f"{task.name}-{texts}"
    write_jsonl(home / "texts.jsonl", rows[:texts])
    grades = task.grades
    if task.grades and task.mined:
        kept = {row["text"] for row in rows[:texts]}
        grades = home / grades.name
        write_jsonl(grades, (r for r in rows_of(task.grades) if {r["text1"], r["text2"]} <= kept))
    return replace(task, name=home.name, texts=home / "texts.jsonl", grades=grades, more=False)


def candidates(
    task: Task,
    names: Sequence[str] = ANNOTATORS,
    polarity: str | None = None,
    prompts: str = "paper",
    size: int | None = None,
) -> dict[str, Path]:
    """Label the texts with annotators' recorded replies; return the run folders."""
    runs = {}
    for name in names:
        runs[name] = RESULTS / task.name / "labels" / "-".join(filter(None, (name, polarity)))
        engine = EngineConfig(model=name, engine="recorded", replies=task.replies / f"{name}.jsonl")
        how = {"prompts": prompts, "polarity": polarity, "size": size}
        label(LabelConfig(engine, texts=task.texts, out=runs[name], **how))
    return runs


def degrees_and_grades(task: Task) -> tuple[Path, Path]:
    """Return the run folders of annotator-d and of grader-e, from their recorded replies."""
    home = RESULTS / task.name / "labels"
    engine = EngineConfig(model=DEGREES, engine="recorded", replies=task.degrees)
    label(LabelConfig(engine, texts=task.texts, out=home / DEGREES, prompts="degrees"))
    runs = () if task.mined else tuple(home / name for name in ANNOTATORS)
    if task.grades:
        engine = EngineConfig(model=GRADER, engine="recorded", replies=task.grades)
        score(ScoreConfig(engine, out=home / GRADER, runs=runs, pairs=mined_pairs(task)))
    return home / DEGREES, home / GRADER


def small_grades(task: Task, runs: Mapping[str, Path]) -> Path:
    """Return the folder of the grades of these annotators' candidates; grader-p's count as grader-e's."""
    home, replies = RESULTS / task.name / "labels", task.texts.parent / "grades" / "grader-p-smollm2.jsonl"
    rows = [*rows_of(task.grades or replies), *(row | {"grader": GRADER} for row in rows_of(replies))]
    out = home / f"{GRADER}-{'-'.join(runs)}"
    write_jsonl(home / f"{out.name}.jsonl", rows)
    engine = EngineConfig(model=GRADER, engine="recorded", replies=home / f"{out.name}.jsonl")
    score(ScoreConfig(engine, out=out, runs=tuple(runs.values())))
    return out


def second_and_written(task: Task) -> tuple[Path, Path, Path]:
    """Return annotator-j's run folder, the pairs of what d and j wrote for one text, and their grades."""
    home, texts = RESULTS / task.name / "labels", {row["id"]: row["text"] for row in rows_of(task.texts)}
    said = {row["id"]: row["reply"] for row in rows_of(STORED / f"{SECOND}.jsonl") if row["id"] in texts}
    replies, pairs = home / f"{SECOND}.jsonl", home / f"{READER}.jsonl"
    write_jsonl(replies, (degrees_reply(texts[name], reply, SECOND) for name, reply in said.items()))
    sentences = {name: {"text": text} for name, text in texts.items()}
    for mark, found in (
        ("d", {row["id"]: json.loads(row["reply"]) for row in rows_of(task.degrees)}),
        ("j", said),
    ):
        for name, reply in found.items():
            sentences[name] |= {
                f"{mark}{degree}": with_text(sentence, texts[name]) for degree, sentence in reply.items()
            }
    rows = [(sentences[row["id"]], row) for row in rows_of(STORED / f"{READER}.jsonl")]
    write_jsonl(
        pairs,
        (
            {"text1": of[row["one"]], "text2": of[row["other"]], "grader": READER, "score": row["score"]}
            for of, row in rows
        ),
    )
    engine = EngineConfig(model=SECOND, engine="recorded", replies=replies)
    label(LabelConfig(engine, texts=task.texts, out=home / SECOND, prompts="degrees"))
    engine = EngineConfig(model=READER, engine="recorded", replies=pairs)
    score(ScoreConfig(engine, out=home / READER, pairs=(pairs,)))
    return home / SECOND, pairs, home / READER


def mined_pairs(task: Task) -> tuple[Path, ...]:
    """Return the file of the mined pairs, if there is one."""
    return (task.grades,) if task.grades and task.mined else ()


def build(task: Task, out: Path, runs: Sequence[Path], **how: Any) -> Path:
    """Build a data set, all of it for training, and return its folder; a random pair for each source."""
    purpose = how.pop("purpose", task.purpose)
    how |= {"random_per_source": 1, "ratios": (1.0, 0.0)}
    build_ensemble(EnsembleConfig(runs=tuple(runs), out=out, purpose=purpose, **how))
    return out / "dataset"


def data_sets(task: Task) -> dict[str, Path]:
    """Build every data set, see the module's docstring."""
    runs = candidates(task, task.annotators)
    three = tuple(runs.values())
    degrees, grades = degrees_and_grades(task)
    ordinal, evidence = {"labels": "ordinal"}, {"scores": (grades,), "pairs": mined_pairs(task)}
    alone = {"strategy": "concat", **ordinal}
    choices: dict[str, tuple[tuple[Path, ...], dict[str, Any]]] = {
        **{name: ((run,), alone) for name, run in runs.items()},
        "degrees": ((degrees,), ordinal),
    }
    if runs:
        choices |= {way: (three, {"strategy": way, **ordinal}) for way in ("concat", "vote")}
        choices["everything"] = (*three, degrees), evidence
    if task.mined:
        choices["degrees-mined"] = (degrees,), evidence
    if task.mined and runs:
        synonyms = candidates(task, polarity="synonym").values()
        choices["synonyms-degrees-mined"] = (*synonyms, degrees), evidence
        if task.more:
            second, written, read = second_and_written(task)
            both = {"scores": (grades, read), "pairs": (*mined_pairs(task), written)}
            choices["written"] = (*synonyms, degrees, second), both
    elif runs:
        written = candidates(task, (CONTRAST,))[CONTRAST]
        choices["one-of-each"] = (runs["annotator-b"], degrees, written), {"strategy": "concat"}
        choices["all"] = (*three, degrees, written), evidence
    home = RESULTS / task.name / "pairs"
    return {name: build(task, home / name, used, **how) for name, (used, how) in choices.items()}


def fit_pairs(
    task: Task,
    recipe: Recipe,
    data: Path | Sequence[Path] | None,
    out: Path,
    seed: int,
    backbone: Path | None = None,
    **more: Any,
) -> list[dict[str, Any]]:
    """Fit one data set with one seed, or read the finished run in `out`; return all results.

    The backbone is MiniLM with the task's layers where none is given. `more` are further options of `fit`,
    such as a `teacher`.
    """
    files = {"dev": [str(path) for path in task.dev], "test": [str(path) for path in task.test]}
    recipe = recipe.with_overrides({"seed": seed})
    paths = [data] if isinstance(data, Path) else data or ()
    sources = [str(path) for path in paths] or None
    model = str(backbone or minilm(task.layers))
    report = fit(FitOptions(model, out, sources, recipe=recipe, **files, **more)).report
    print(f"{out.name}: step {report.best_step} of {report.steps}", flush=True)
    return [{"seed": seed, "value": 100 * row.score.value} | row.to_dict() for row in report.results]


def tables(raw: Iterable[Mapping[str, Any]], names: Callable[[Mapping[str, Any]], str]) -> None:
    """Print a table for each set of pairs; `names` gives the name of a tuned row."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in raw:
        tuned = row["model"].startswith("tuned")  # saved or not
        rows = found.setdefault(f"{row['pairs']} ({row['role']})", {})
        column = rows.setdefault(names(row) if tuned else row["model"], [])
        if tuned or not column:  # word overlap and backbone come with every run and do not depend on the seed
            column.append(row["value"])
    for title, rows in found.items():
        show(f"{title}, Spearman x 100", rows)


TASKS = {"cloud-ops": cloud_ops, "stsb": stsb, "stsb-1000": stsb_1000, "bug-titles": bug_titles}
"""Name on the command line -> the corpus."""


def main() -> None:
    """Fit every data set with every seed and print the test Spearman of each."""
    parser = options(__doc__)
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", help="data sets to fit; default all")
    parser.add_argument("--texts", type=int, help="so many of them; default all")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--layers", type=int, help="of MiniLM, 1 to 6; default the task's")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="values of the recipe")
    parser.add_argument("--general", action="store_true", help="measure STS-B's test pairs too")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    task = TASKS[arguments.task]()
    task = part(task, arguments.texts) if arguments.texts else task
    home = RESULTS / task.name / task.purpose
    if arguments.layers:
        task = replace(task, layers=arguments.layers)
        home = home.with_name(f"{task.purpose}-{arguments.layers}-layers")
    values = {"precision": arguments.precision, **parse_settings(arguments.set)}
    recipe = Recipe.from_toml(find_recipe(task.purpose)).with_overrides(values)
    kept = "".join(f"-{setting.replace('=', '-')}" for setting in arguments.set)
    kept += "-general" if arguments.general else ""
    if arguments.general:
        task = replace(task, test=(*task.test, *stsb().test))
    found = data_sets(task)
    if unknown := set(arguments.only or ()) - set(found):
        parser.error(f"--only {' '.join(sorted(unknown))}: {task.name} has {', '.join(found)}")
    folders = {data: folder for data, folder in found.items() if data in (arguments.only or [data])}
    raw = [
        {"data": data, **row}
        for seed, data in itertools.product(arguments.seeds, folders)
        for row in fit_pairs(task, recipe, folders[data], home / f"{data}{kept}-{seed}", seed)
    ]
    tables(raw, lambda row: row["data"])
    save_results(f"llm_supervised-{task.name}-{home.name}{kept}", raw)


if __name__ == "__main__":
    main()
