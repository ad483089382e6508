"""Real domains, whole MiniLM, human truth: what share of the gain of all human labels do other rows bring?

    ANGLE_BENCH_DATA=DIR python benchmarks/domains/domains.py                  # all domains and rows, 3 seeds
    ANGLE_BENCH_DATA=DIR python benchmarks/domains/domains.py sick --rows degrees human --seeds 1
    ANGLE_BENCH_DATA=DIR python benchmarks/domains/domains.py bug-titles --rows teacher --teacher MODEL
    ANGLE_BENCH_DATA=DIR python benchmarks/domains/domains.py questions --rows judged human --backbone MPNET

Domains: sick (image captions), mrpc (news), questions (of a community), bug-titles, and bug-reports: the same
pairs as whole reports, cut to 2,000 characters, with the grades that a language model gave to their titles;
it has no row of what was written for texts. A row that a domain has not is left out, and said.
Rows, and their recipes:

simcse            a text is its own positive, on the texts of the training pairs; needs no label
polarity          three synonyms and three antonyms of the same texts as `degrees`, in answer to the shipped
                  prompts `structured`, by a model that saw no human label (topics)
degrees           sentences at degrees 5 to 1 of 50 to 240 texts, by a model that saw no human label (topics)
graded            degrees, with 110 to 400 pairs of the domain's texts that a language model graded (topics)
judged            1,000 pairs of the training split, graded by a language model that saw the task and no label
                  (topics)
judged-degrees    judged and degrees (topics)
judged-all        all pairs of the training split, graded so (topics)
judged-all-default    the same pairs and grades (default, which keeps no other text)
judged-all-guarded    the same, with as much of the backbone mixed in as `guard_loss` 0.5 asks for; of mrpc
                  alone, where judged-all-default loses too much of general text
judged-yes-no     the same pairs, but as labels (`fit --threshold`): 1 from a grade of 3.5 on, 0 up to 2.5,
                  and 3 is left out (default); not for sick, whose truth is grades
teacher           pairs mined among 3,000 texts of the training pairs, scored by --teacher MODEL; no label
                  (default)
teacher-degrees   both (topics)
teacher-judged    teacher and judged-all-default (default)
human-50          so many human pairs (default); human-200
human             all human pairs of the training split (default)

The same dev pairs choose the checkpoint of every row, and all test pairs measure. Dev pairs of mrpc are a
tenth of its training pairs: no row of labels or of judged pairs trains on them, but `polarity`, `degrees` and
`graded` have some of their texts and three of the pairs, with the language model's word.

Share: gain of a row / gain of `human`, both over the untouched model, by the weights at the planned end or at
the step that dev pairs chose (`tuned`), in the mean of the seeds that each was run with. The share of
supervision by a language model is that of the row among LLM_ROWS whose mean on the dev pairs is the highest,
of those that lose at most 1.0 of general text by the estimate of `fit`.
NAME.jsonl, NAME-polarity.jsonl, NAME-graded.jsonl and NAME-judged.jsonl beside this file hold what the
language model wrote and graded; they name reports, or rows of the training splits (from 0; `12:2` is the
second text of row 12). No sentence was copied; a few short captions are the same by chance. Finished runs are
not repeated.
"""

from __future__ import annotations

import hashlib
import json
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "papers")]

from baselines import METHODS, train  # noqa: E402
from common import RESULTS, data_folder, minilm, options, plus_minus, save_results  # noqa: E402
from llm_supervised import (  # noqa: E402
    DEGREES,
    GRADER,
    Task,
    bug_split,
    bug_titles,
    build,
    candidates,
    data_sets,
    degrees_reply,
    fit_pairs,
)
from sentence_transformers import SentenceTransformer  # noqa: E402
from stsb_replies import rows_of, with_text  # noqa: E402

from angle_data.console import configure_logging  # noqa: E402
from angle_data.jsonl import write_jsonl  # noqa: E402
from angle_data.labelling.mine import MineConfig, mine  # noqa: E402
from angle_data.text import stable_hash  # noqa: E402
from angle_train import evaluate  # noqa: E402
from angle_train.encode import encode_file  # noqa: E402
from angle_train.evaluation.compare import WORD_OVERLAP  # noqa: E402
from angle_train.options import EncodeConfig  # noqa: E402
from angle_train.recipe import Recipe, find_recipe, parse_settings  # noqa: E402
from angle_train.report.verdict import BACKBONE, TUNED  # noqa: E402

LLM_ROWS = (
    "polarity",
    "degrees",
    "graded",
    "judged",
    "judged-all",
    "judged-all-default",
    "judged-all-guarded",
    "judged-yes-no",
    "judged-degrees",
)
POLARITY = "annotator-p"
"""Who wrote synonyms and antonyms."""
ASKED = 3
"""So many of each for a text."""
JUDGED = 1_000
"""So many of the pairs that a language model graded, the first, are in `judged` and `judged-degrees`."""
PERHAPS = 0.6
"""This score is neither yes nor no: a grade of 3 from 0 to 5."""
GUARDED = 0.5
"""`guard_loss` where no guard is to lose 1.0 by the figure: `fit` refuses by the end of its interval."""
MOST_LOST = 1.0
"""A row of a language model that loses more of general text has no share."""
ROWS = ("simcse", *LLM_ROWS, "human-50", "human-200", "human")
TAUGHT_ROWS = ("teacher", "teacher-degrees", "teacher-judged")
TAUGHT_TEXTS, TAUGHT_PAIRS = 3_000, 4_000
CHARACTERS = 2_000
"""So many of a whole bug report are read: more than the tokens that MiniLM reads hold."""
FOLDERS = {"sick": "sick-r", "mrpc": "mrpc", "questions": "cqa-qatarliving"}


@dataclass(frozen=True)
class Domain:
    """What a domain gives: the task of what a language model wrote, and the file of human training pairs."""

    task: Task
    human: Path

    def judged(self, count: int | None) -> Path:
        """Return a file with the first `count` pairs that a language model graded; None: all of them."""
        whole = self.human.with_name("judged.jsonl")
        if count is None:
            return whole
        part = whole.with_name(f"judged-{count}.jsonl")
        write_jsonl(part, rows_of(whole)[:count])
        return part


def written(name: str, train: list[dict[str, Any]], home: Path) -> tuple[Path, Path, Path]:
    """Write the texts, the replies to them and the graded pairs; return the three files.

    Raises:
        SystemExit: The training split has its rows in another order, or is another edition.
    """
    texts, replies = [], []
    for row in rows_of(HERE / f"{name}.jsonl"):
        text = train[row["row"]]["text1"]
        if not hashlib.sha256(text.encode()).hexdigest().startswith(row["sha256"]):
            sys.exit(f"{name}, row {row['row']}: not the text that the reply answers; another edition?")
        texts.append({"id": f"train-{row['row']}", "text": text})
        replies.append(degrees_reply(text, row["reply"]))
    grades = [
        {
            "text1": text_at(train, row["one"]),
            "text2": text_at(train, row["other"]),
            "grader": GRADER,
            "score": row["score"],
        }
        for row in rows_of(HERE / f"{name}-graded.jsonl")
    ]
    files = {"texts": texts, DEGREES: replies, GRADER: grades}
    for file, rows in files.items():
        write_jsonl(home / f"{file}.jsonl", rows)
    found, degrees, graded = (home / f"{file}.jsonl" for file in files)
    return found, degrees, graded


def write_judged(
    name: str, graded: Sequence[tuple[str, str]], home: Path, whole: Sequence[tuple[str, str]] | None = None
) -> None:
    """Write the pairs of the training split that a language model graded, with scores from 0 to 1.

    Args:
        name: Of the domain whose grades these are.
        graded: The pairs as the language model read them, all of the split.
        home: Where to write.
        whole: The texts to train on, where the language model read titles alone.

    Raises:
        SystemExit: As `written`.
    """
    least = 1 if name == "sick" else 0  # of the scale, which ends at 5
    rows = []
    for row in rows_of(HERE / f"{name}-judged.jsonl"):
        if not hashlib.sha256("\0".join(graded[row["row"]]).encode()).hexdigest().startswith(row["sha256"]):
            sys.exit(f"{name}, row {row['row']}: not the pair that was graded; another edition?")
        one, other = (whole or graded)[row["row"]]
        rows.append({"text1": one, "text2": other, "score": (row["score"] - least) / (5 - least)})
    write_jsonl(home / "judged.jsonl", rows)


def synonyms_and_antonyms(domain: Domain) -> Path:
    """Label the texts with the recorded replies of POLARITY; return the data set built of them.

    Raises:
        SystemExit: As `written`.
    """
    name, task = domain.human.parent.name, domain.task
    texts = {row["id"]: row["text"] for row in rows_of(task.texts)}
    replies = []
    for row in rows_of(HERE / f"{name}-polarity.jsonl"):
        text = texts.get(row["id"], "")
        if not hashlib.sha256(text.encode()).hexdigest().startswith(row["sha256"]):
            sys.exit(f"{name}, {row['id']}: not the text that the reply answers; another edition?")
        replies += [
            {
                "text": text,
                "polarity": polarity,
                "annotator": POLARITY,
                "reply": json.dumps({"sentences": [with_text(said, text) for said in row[polarity]]}),
            }
            for polarity in ("synonym", "antonym")
        ]
    write_jsonl(task.replies / f"{POLARITY}.jsonl", replies)
    runs = candidates(task, (POLARITY,), prompts="structured", size=ASKED)
    out = RESULTS / task.name / "pairs" / "polarity"
    return build(task, out, tuple(runs.values()), strategy="concat", labels="ordinal")


def text_at(train: list[dict[str, Any]], place: str) -> str:
    """Return the text at a place such as `12:2`, the second text of row 12."""
    row, end = place.split(":")
    return str(train[int(row)][f"text{end}"])


def pairs_of(path: Path) -> list[dict[str, Any]]:
    """Return text1, text2 and a score or label of each row."""
    rows = []
    for row in rows_of(path):
        one, other = (row.get(f"sentence{end}") or row[f"text{end}"] for end in (1, 2))
        truth = "score" if "score" in row else "label"
        rows.append({"text1": one.strip(), "text2": other.strip(), truth: row[truth]})
    return rows


def public_domain(name: str) -> Domain:
    """Return a domain whose pairs are files with train, perhaps validation, and test."""
    source, home = data_folder() / "data" / FOLDERS[name], RESULTS / "domains" / name
    train = pairs_of(source / "train.jsonl.gz")
    texts, degrees, grades = written(name, train, home)
    write_judged(name, [(row["text1"], row["text2"]) for row in train], home)
    if (source / "validation.jsonl.gz").exists():
        human, dev = train, pairs_of(source / "validation.jsonl.gz")
    else:
        human = [row for row in train if stable_hash(row["text1"]) % 10]
        dev = [row for row in train if not stable_hash(row["text1"]) % 10]
    files = {"human": human, "dev": dev, "test": pairs_of(source / "test.jsonl.gz")}
    for file, rows in files.items():
        write_jsonl(home / f"{file}.jsonl", rows)
    dev_file, test_file = (home / "dev.jsonl",), (home / "test.jsonl",)
    task = Task(
        f"domains-{name}", "topics", None, texts, home, degrees, grades, True, dev_file, test_file, ()
    )
    return Domain(task, home / "human.jsonl")


def bugs() -> Domain:
    """Return the titles of bug reports, with the duplicates of the training split as human pairs."""
    titles = [(title_of(row["text1"]), title_of(row["text2"])) for row in bug_rows("train")]
    human = RESULTS / "domains" / "bug-titles" / "human.jsonl"
    write_jsonl(human, with_labels(titles, "train"))
    write_judged("bug-titles", titles, human.parent)
    return Domain(replace(bug_titles(), layers=None), human)


def reports() -> Domain:
    """Return the pairs of `bugs` as whole reports: the same train, choose and measure."""
    home = RESULTS / "domains" / "bug-reports"
    whole = {
        split: [(row["text1"][:CHARACTERS], row["text2"][:CHARACTERS]) for row in bug_rows(split)]
        for split in ("train", "validation")
    }
    files = {"human": with_labels(whole["train"], "train"), "dev": [], "test": []}
    for pair, row in zip(with_labels(whole["validation"], "validation"), bug_rows("validation"), strict=True):
        files[bug_split(row)].append(pair)
    for name, rows in files.items():
        write_jsonl(home / f"{name}.jsonl", rows)
    titles = [(title_of(row["text1"]), title_of(row["text2"])) for row in bug_rows("train")]
    write_judged("bug-titles", titles, home, whole["train"])
    dev, test = (home / "dev.jsonl",), (home / "test.jsonl",)
    task = replace(bug_titles(), name="domains-bug-reports", layers=None, dev=dev, test=test)
    return Domain(task, home / "human.jsonl")


def title_of(report: str) -> str:
    """Return the title of a bug report, which is its first line."""
    return report.split("\n")[0].strip()


def bug_rows(split: str) -> list[dict[str, Any]]:
    """Return the labelled pairs of bug reports of a split."""
    return rows_of(data_folder() / "data" / "bug-duplicates" / f"{split}.jsonl.gz")


def with_labels(pairs: Sequence[tuple[str, str]], split: str) -> list[dict[str, Any]]:
    """Return pairs of texts, those of a split in its order, with what people said of its reports."""
    return [
        {"text1": one, "text2": other, "label": row["label"]}
        for (one, other), row in zip(pairs, bug_rows(split), strict=True)
    ]


DOMAINS = {
    **{name: partial(public_domain, name) for name in FOLDERS},
    "bug-titles": bugs,
    "bug-reports": reports,
}
"""Name on the command line -> what makes the domain."""


_OF_ONE = {"judged-all-guarded"}  # of mrpc, where the row without a guard loses too much of general text
LACKS = {
    "sick": _OF_ONE | {"judged-yes-no"},
    "questions": _OF_ONE,
    "bug-titles": _OF_ONE,
    "bug-reports": _OF_ONE | {"polarity", "degrees", "graded", "judged-degrees", "teacher-degrees"},
}
"""Domain -> the rows that it has not."""


def few(path: Path, count: int, seed: int) -> Path:
    """Return a file with so many of the pairs, others for each seed."""
    rows = rows_of(path)
    out = path.with_name(f"human-{count}-{seed}.jsonl")
    write_jsonl(out, random.Random(seed).sample(rows, count))
    return out


def simcse(domain: Domain, backbone: Path, out: Path, seed: int) -> Path:
    """Train unsupervised SimCSE on the texts of the training pairs; return the model's folder."""
    if not (out / "modules.json").exists():
        model = SentenceTransformer(str(backbone), device="cpu")
        whole = model.max_seq_length
        model.max_seq_length = METHODS["simcse"].max_seq_length
        train(model, "simcse", METHODS["simcse"], rows_of(domain.human), out / "checkpoints", seed=seed)
        model.max_seq_length = whole
        model.save(str(out), create_model_card=False)
    return out


def taught(domain: Domain, teacher: str) -> dict[str, Any]:
    """Return the options of `fit` for a teacher: pairs among the domain's texts, its vectors; made once."""
    home = domain.human.parent
    texts, pairs = home / "teacher-texts.jsonl", home / "teacher-pairs.jsonl"
    vectors = home / f"{Path(teacher).name}.parquet"
    if not vectors.exists():
        distinct = sorted({row[f"text{end}"] for row in rows_of(domain.human) for end in (1, 2)})
        drawn = random.Random(0).sample(distinct, min(TAUGHT_TEXTS, len(distinct)))
        write_jsonl(texts, ({"text": text} for text in drawn))
        mine(MineConfig(out=pairs, texts=texts, n=TAUGHT_PAIRS))
        encode_file(EncodeConfig(model=teacher, texts=texts, out=vectors))
    return {"teacher": str(vectors), "teacher_pairs": [str(pairs)]}


def measured(model: Path, domain: Domain) -> float:
    """Return Spearman x 100 of a model on the test pairs."""
    figures = evaluate(model, pairs=domain.task.test[0]).figures
    return float(next(row["score"] for row in figures if row["model"] != WORD_OVERLAP))


def data_and_recipe(domain: Domain, row: str, seed: int) -> tuple[Path | Sequence[Path] | None, str]:
    """Return what a row trains on, and the name of its recipe; not of simcse."""
    purpose = domain.task.purpose
    match row:
        case "polarity":
            return synonyms_and_antonyms(domain), purpose
        case "judged":
            return domain.judged(JUDGED), purpose
        case "judged-degrees":
            return (domain.judged(JUDGED), data_sets(domain.task)["degrees"]), purpose
        case "judged-all":
            return domain.judged(None), purpose
        case "judged-all-default" | "judged-all-guarded" | "judged-yes-no" | "teacher-judged":
            return domain.judged(None), "default"
        case "human":
            return domain.human, "default"
        case "human-50" | "human-200":
            return few(domain.human, int(row.removeprefix("human-")), seed), "default"
        case "teacher":
            return None, "default"
    made = {"graded": "degrees-mined", "teacher-degrees": "degrees"}.get(row, row)
    return data_sets(domain.task)[made], purpose


def run(
    home: Path,
    domain: Domain,
    row: str,
    seed: int,
    values: dict[str, Any],
    teacher: str | None = None,
    backbone: Path | None = None,
) -> dict[str, float]:
    """Train one row with one seed; return Spearman x 100 of `tuned`, and of `saved`: what `fit` gives.

    `dev` is that of `tuned` on the dev pairs, `lost` what it lost of general text, estimated by `fit`; SimCSE
    has neither.
    """
    options = taught(domain, teacher) if row in TAUGHT_ROWS and teacher else {}
    if row == "judged-yes-no":
        options["threshold"] = PERHAPS
    if row == "simcse":
        value = measured(simcse(domain, backbone or minilm(), home / f"simcse-{seed}", seed), domain)
        return {"tuned": value, "saved": value}
    data, used = data_and_recipe(domain, row, seed)
    guarded = {"guard_loss": GUARDED} if row == "judged-all-guarded" else {}
    recipe = Recipe.from_toml(find_recipe(used)).with_overrides(values | guarded)
    out = home / f"{row}-{seed}"
    found = fit_pairs(domain.task, recipe, data, out, seed, backbone, **options)
    guards = json.loads((out / "report.json").read_text(encoding="utf-8"))["details"]["guards"]["losses"]
    lost = next(100 * guard["loss"] for guard in guards if guard["kind"] == "general")
    by_model = {(result["role"], result["model"]): result["value"] for result in found}

    def tuned(role: str) -> float:
        return next(
            value for (of, model), value in by_model.items() if of == role and model.startswith(TUNED)
        )

    saved = by_model.get(("test", TUNED), by_model["test", BACKBONE])
    return {"tuned": tuned("test"), "saved": saved, "dev": tuned("dev"), "lost": lost}


def shown(name: str, untouched: float, rows: dict[str, list[dict[str, float]]]) -> str:
    """Return the table of a domain as Markdown, and the share of supervision by a language model."""

    def mean(row: str, kind: str) -> float:
        return statistics.mean(found[kind] for found in rows[row])

    def share(row: str, kind: str) -> str:
        if "human" not in rows or mean("human", kind) <= untouched:
            return "-"
        return f"{100 * (mean(row, kind) - untouched) / (mean('human', kind) - untouched):.0f} %"

    head = "| row | dev | tuned | gain | share of human | saved | gain | share of human | general text lost |"
    lines = [f"### {name}", "", head, "|---" * 9 + "|", f"| untouched | | {untouched:.1f} | | | | | | |"]
    for row, found in rows.items():
        columns = [plus_minus([values["dev"] for values in found], ".1f") if "dev" in found[0] else ""]
        for kind in ("tuned", "saved"):
            scores = plus_minus([values[kind] for values in found], ".1f")
            columns += [scores, f"{mean(row, kind) - untouched:+.1f}", share(row, kind)]
        columns.append(f"{mean(row, 'lost'):.1f}" if "lost" in found[0] else "")
        lines.append(f"| {row} | {' | '.join(columns)} |")
    asked = [row for row in LLM_ROWS if row in rows and mean(row, "lost") <= MOST_LOST]
    if asked:
        best = max(asked, key=lambda row: mean(row, "dev"))
        shares = f"{share(best, 'tuned')} of the human gain, {share(best, 'saved')} as saved"
        lines += ["", f"Best on dev of what a language model gave: {best}, {shares}."]
    return "\n".join([*lines, ""])


def main() -> None:
    """Train every row of every domain with every seed, and print a table for each domain."""
    parser = options(__doc__)
    parser.add_argument("domains", nargs="*", metavar="DOMAIN", help=f"of {', '.join(DOMAINS)}; default all")
    parser.add_argument("--rows", nargs="+", choices=[*ROWS, *TAUGHT_ROWS], default=list(ROWS))
    parser.add_argument("--teacher", metavar="MODEL", help="of the rows with a teacher; measured itself too")
    parser.add_argument("--backbone", type=Path, metavar="MODEL", help="in place of six-layer MiniLM")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="values of every recipe")
    given = parser.parse_args()
    if unknown := set(given.domains) - set(DOMAINS):
        parser.error(f"no such domain: {', '.join(sorted(unknown))}")
    if set(given.rows) & set(TAUGHT_ROWS) and not given.teacher:
        parser.error(f"the rows {', '.join(TAUGHT_ROWS)} need --teacher MODEL")
    configure_logging(quiet=True)
    raw = []
    for name in given.domains or DOMAINS:
        domain = DOMAINS[name]()
        untouched = measured(given.backbone or minilm(), domain)
        home = RESULTS / "domains" / name / (given.backbone.name if given.backbone else "")
        rows: dict[str, list[dict[str, float]]] = {}
        for row in given.rows:
            if row in LACKS.get(name, ()):
                print(f"{name} has no row {row}", file=sys.stderr)
                continue
            for seed in given.seeds:
                values = parse_settings(given.set)
                found = run(home, domain, row, seed, values, given.teacher, given.backbone)
                rows.setdefault(row, []).append(found)
                raw.append({"domain": name, "row": row, "seed": seed, "untouched": untouched, **found})
        print(shown(name, untouched, rows), flush=True)
        if given.teacher:
            print(f"The teacher itself, untouched: {measured(Path(given.teacher), domain):.1f}\n", flush=True)
    save_results("domains", raw)


if __name__ == "__main__":
    main()
