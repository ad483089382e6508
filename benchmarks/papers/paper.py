"""The papers' experiments, each from the data source to its score with one command.

    python benchmarks/papers/paper.py                        # what there is, with the published figures
    python benchmarks/papers/paper.py stsb                   # AnglE on STS-B, five seeds
    python benchmarks/papers/paper.py stsb without-angle     # a variant: an objective, a loss, a pooling …
    python benchmarks/papers/paper.py stsb sbert             # another method on the same pairs
    python benchmarks/papers/paper.py nli aoe --against simcse-supervised    # both rows, and a paired t-test
    python benchmarks/papers/paper.py stsb --print           # only the commands

Pairs come from the hub, or from --data-dir (one folder a data set, fields as in the hub's). Files of pairs
and models that --out holds are used again: another source, --backbone or --set (for trying it at a small
scale, which is another experiment) needs another --out. experiments.toml has the rows, and README.md sets the
published figures beside ours.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from baselines import CLASSES  # noqa: E402
from common import ROOT, options  # noqa: E402
from tasks import TASKS  # noqa: E402

from angle_data.errors import AngleError  # noqa: E402
from angle_data.jsonl import write_jsonl  # noqa: E402
from angle_train.data.sources import number_in, pair_in  # noqa: E402
from angle_train.evaluation.task import Source  # noqa: E402

SEEDS = (42, 43, 44, 45, 46)
_NUMBERED = {"0": "entailment", "1": "neutral", "2": "contradiction"}
_LABELS = {"entailment": 1, "contradiction": 0}  # AnglE trains on these; neutral, and -1, are left out
_MEMBERS = {"nli": ("snli", "mnli"), "nli-classes": ("snli", "mnli"), "llm": ("stsb",)}
_HERE = "benchmarks/papers"


@dataclass(frozen=True)
class Family:
    """Experiments on the same pairs, see experiments.toml."""

    recipe: str
    data: str
    tasks: str
    dev: str | None = None
    backbone: str = "google-bert/bert-base-uncased"
    settings: str = ""
    own: dict[str, str] = field(default_factory=dict)
    annotators: str = ""
    method: str = ""


_TABLE = tomllib.loads(Path(__file__).with_name("experiments.toml").read_text(encoding="utf-8"))
FAMILIES = {name: Family(**row) for name, row in _TABLE["family"].items()}
VARIANTS: dict[str, str] = _TABLE["variant"]
"""Variant of AnglE -> settings of the recipe."""
METHODS_OF: dict[str, str] = _TABLE["method"]
"""Another method or pooling -> the script that trains it, with its options."""


def published() -> dict[str, str]:
    """Return the published figure of every row of rows.toml that this script runs, by `FAMILY VARIANT`."""
    rows = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))["table"]
    found: dict[str, str] = {}
    for row in (row for table in rows for row in table["row"]):
        words = row.get("command", "").split()
        if words and words[0] in FAMILIES:
            name = f"{words[0]} {words[1] if len(words) > 1 and words[1][0] != '-' else 'angle'}"
            found[name] = "; ".join(filter(None, [found.get(name), f"{row['name']}: {row['paper']}"]))
    return found


def settings_of(name: str, variant: str) -> list[str]:
    """Return the settings of a row beyond its recipe; of equal keys the last one counts."""
    family = FAMILIES[name]
    return f"{family.settings} {VARIANTS.get(variant, '')} {family.own.get(variant, '')}".split()


def data_of(family: Family, variant: str) -> str:
    """Return what a row trains on: other methods than AnglE take the classes of inference, three of them."""
    others = METHODS_OF.get(variant, "")
    return "nli-classes" if family.data == "nli" and others.startswith("baselines.py") else family.data


def write_data(family: Family, variant: str, source: Source, out: Path) -> None:
    """Write what a row trains on and chooses with, as `out/DATA/SPLIT.jsonl`, unless it is there."""
    wanted = [(data_of(family, variant), "train"), *([(family.dev, "validation")] if family.dev else [])]
    for name, split in wanted:
        path = out / name / ("texts.jsonl" if name == "llm" else f"{split}.jsonl")
        if not path.exists():
            rows = (row for one in _MEMBERS.get(name, (name,)) for row in _pairs(name, one, split, source))
            if name == "llm":
                rows = ({"text": text} for text in dict.fromkeys(row["text1"] for row in rows))
            print(f"{path}: {write_jsonl(path, rows)} rows")


def _pairs(name: str, member: str, split: str, source: Source) -> Iterator[dict[str, Any]]:
    """Yield `text1, text2` with a `score` 0 to 5, a class, or a `label` 1 where they belong together."""
    task: Any = TASKS[member]
    for place, row in source.rows(task.data, split):
        text1, text2 = pair_in(row, place)
        texts = {"text1": text1, "text2": text2}
        if name.startswith("nli"):
            written = str(row.get("label"))
            label = _NUMBERED.get(written, written)
            if label not in CLASSES or not text1.strip() or not text2.strip():
                continue
            if name == "nli-classes":
                yield {**texts, "label": label}
            elif label in _LABELS:
                yield {**texts, "label": _LABELS[label]}
        elif member == "stsb":
            yield {**texts, "score": number_in(row, ("score",), place)}
        else:
            yield {**texts, "label": int(number_in(row, ("label", "is_duplicate"), place) == task.positive)}


def commands(given: argparse.Namespace) -> list[list[str]]:
    """Return the commands behind a figure, after the pairs are written: labelling, trainings, scores.

    The models of all seeds are scored beside each other; a row's figure is the mean of theirs.
    """
    family, out = FAMILIES[given.family], given.out
    found = _labelling(family, given)
    measure = ["python", f"{_HERE}/measure.py"]
    for option, variant in (("--model", given.variant), ("--against", given.against)):
        for seed in dict.fromkeys(given.seeds) if variant else ():
            tuned = str(out / given.family / variant / f"seed-{seed}")
            found.append([*_training(given, family, variant), "--seed", str(seed), "--out", tuned])
            measure += [option, tuned]
    for task in family.tasks.split():
        measure += ["--task", task]
    return [*found, measure + (["--data-dir", str(given.data_dir)] if given.data_dir else [])]


def _labelling(family: Family, given: argparse.Namespace) -> list[list[str]]:
    """Return the commands that have language models write pairs, for the families that train on such."""
    found, runs = [], [str(given.out / annotator) for annotator in family.annotators.split()]
    for annotator, run in zip(family.annotators.split(), runs, strict=True):
        texts = ["--texts", str(given.out / "data" / "llm" / "texts.jsonl"), "--out", run]
        how = _TABLE["annotator"][annotator].split()
        found.append(["angle-data", "llm-label", "--prompts", "paper", "--model", annotator, *texts, *how])
    if runs:
        how = ["--strategy", "concat", "--labels", "binary", "--ratios", "1,0"]
        pairs = str(given.out / given.family / "pairs")
        found.append(["angle-data", "ensemble", *runs, "--out", pairs, *how])
    return found


def _training(given: argparse.Namespace, family: Family, variant: str) -> list[str]:
    """Return the command that trains one model of a row, but for its seed and folder."""
    data = given.out / "data" / data_of(family, variant) / "train.jsonl"
    if family.annotators:
        data = given.out / given.family / "pairs" / "dataset"
    common = ["--data", str(data), "--backbone", given.backbone or family.backbone]
    if family.dev:
        common += ["--dev", str(given.out / "data" / family.dev / "validation.jsonl")]
    if variant in VARIANTS:
        command = ["angle-train", "fit", "--recipe", family.recipe, *common]
        settings = [*settings_of(given.family, variant), *given.set]
    else:
        script, *how = METHODS_OF[variant].split()
        command = ["python", f"{_HERE}/{script}", *how, *common]
        settings = [*(family.method.split() if script == "baselines.py" else []), *given.set]
        if script == "poolings.py":
            command += ["--recipe", family.recipe]
            settings = [*settings_of(given.family, variant), *given.set]
        elif script == "baselines.py" and family.method:
            command += ["--recipe", family.recipe]
            for setting in settings_of(given.family, variant):
                command += ["--recipe-set", setting]
        elif script == "whitening.py":
            settings = []
    for setting in settings:
        command += ["--set", setting]
    return command


def run(todo: Sequence[Sequence[str]]) -> None:
    """Run commands one after the other; the first that fails ends the program with its exit code."""
    for command in todo:
        print(f"$ {shlex.join(command)}", flush=True)
        if command[0] == "python":
            program = [sys.executable, str(ROOT / command[1]), *command[2:]]
        else:
            program = [sys.executable, "-m", command[0].replace("-", "_"), *command[1:]]
        if code := subprocess.run(program, check=False).returncode:
            sys.exit(code)  # what was done stays, and the same command goes on


def parser() -> argparse.ArgumentParser:
    """Return the options of a row."""
    found = options(__doc__)
    found.add_argument("family", nargs="?", choices=FAMILIES)
    found.add_argument("variant", nargs="?", choices=[*VARIANTS, *METHODS_OF], default="angle")
    found.add_argument("--against", choices=[*VARIANTS, *METHODS_OF], help="a row to compare with")
    found.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    found.add_argument("--out", type=Path, default=ROOT / "runs" / "paper")
    found.add_argument("--data-dir", type=Path, help="folder with the data sets; default the hub")
    found.add_argument("--backbone", help="another backbone")
    found.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the method")
    found.add_argument("--print", action="store_true", help="only print the commands that follow the pairs")
    return found


def main() -> None:
    """Print or run what was asked for."""
    given = parser().parse_args()
    if given.family is None:
        for words, figures in published().items():
            print("{:<14} {:<22}".format(*words.split()), figures)
        return
    if given.print:
        print("\n".join(map(shlex.join, commands(given))))
        return
    try:
        for variant in (given.variant, *([given.against] if given.against else [])):
            write_data(FAMILIES[given.family], variant, Source(given.data_dir), given.out / "data")
    except AngleError as error:
        sys.exit(f"paper.py: error: {error}")
    run(commands(given))
    figures = published().get(f"{given.family} {given.variant}")
    if figures and not (given.backbone or given.set):
        print(f"published, on the whole data sets: {figures}")


if __name__ == "__main__":
    main()
