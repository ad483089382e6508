"""The papers' experiments, each from the data source to its score with one command.

    python benchmarks/paper.py                        # what there is, with the published figures
    python benchmarks/paper.py stsb                   # AnglE on STS-B, five seeds
    python benchmarks/paper.py stsb without-angle     # a variant: an objective, a loss, a pooling …
    python benchmarks/paper.py stsb --print           # only the commands

Pairs come from the hub, or from --data-dir (one folder a data set, fields as in the hub's). Files of pairs
and models that --out holds are used again: another source, --backbone or --set (for trying it at a small
scale, which is another experiment) needs another --out. paper.toml has the rows, and paper.md sets the
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

from common import ROOT, options

from angle_data.errors import AngleError
from angle_data.jsonl import write_jsonl
from angle_train.data.columns import number_in, pair_in
from angle_train.evaluation.task import Source, load_task

SEEDS = (42, 43, 44, 45, 46)
_ENTAILMENT = {"0": 1, "entailment": 1, "2": 0, "contradiction": 0}  # neutral, and -1, are left out
_MEMBERS = {"nli": ("snli", "mnli"), "llm": ("stsb",)}


@dataclass(frozen=True)
class Family:
    """Experiments on the same pairs, see paper.toml."""

    recipe: str
    data: str
    tasks: str
    dev: str | None = None
    backbone: str = "google-bert/bert-base-uncased"
    settings: str = ""
    own: dict[str, str] = field(default_factory=dict)
    annotators: str = ""


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FAMILIES = {name: Family(**row) for name, row in _TABLE["family"].items()}
VARIANTS: dict[str, str] = _TABLE["variant"]
PUBLISHED: dict[str, str] = _TABLE["published"]
"""Family and variant -> the published scores in words."""


def settings_of(name: str, variant: str) -> list[str]:
    """Return the settings of a row beyond its recipe; of equal keys the last one counts."""
    family = FAMILIES[name]
    return f"{family.settings} {VARIANTS[variant]} {family.own.get(variant, '')}".split()


def write_data(family: Family, source: Source, out: Path) -> None:
    """Write what a family trains on and chooses with, as `out/DATA/SPLIT.jsonl`, unless it is there."""
    for name, split in [(family.data, "train"), *([(family.dev, "validation")] if family.dev else [])]:
        path = out / name / ("texts.jsonl" if name == "llm" else f"{split}.jsonl")
        if not path.exists():
            rows = (row for one in _MEMBERS.get(name, (name,)) for row in _pairs(name, one, split, source))
            if name == "llm":
                rows = ({"text": text} for text in dict.fromkeys(row["text1"] for row in rows))
            print(f"{path}: {write_jsonl(path, rows)} rows")


def _pairs(name: str, member: str, split: str, source: Source) -> Iterator[dict[str, Any]]:
    """Yield `text1, text2` with a `score` 0 to 5, or a `label` 1 where they belong together."""
    task: Any = load_task(member)
    for place, row in source.rows(task.data, split):
        text1, text2 = pair_in(row, place)
        texts = {"text1": text1, "text2": text2}
        if name == "nli":
            label = _ENTAILMENT.get(str(row.get("label")))
            if label is not None and text1.strip() and text2.strip():
                yield {**texts, "label": label}
        elif member == "stsb":
            yield {**texts, "score": number_in(row, ("score",), place)}
        else:
            yield {**texts, "label": int(number_in(row, ("label", "is_duplicate"), place) == task.positive)}


def commands(given: argparse.Namespace) -> list[list[str]]:
    """Return the commands behind a figure, after the pairs are written: labelling, fits, scores.

    The models of all seeds are scored beside each other; a row's figure is the mean of theirs.
    """
    family, out = FAMILIES[given.family], given.out
    data, backbone = out / "data" / family.data / "train.jsonl", given.backbone or family.backbone
    found, runs = [], [str(out / annotator) for annotator in family.annotators.split()]
    for annotator, run in zip(family.annotators.split(), runs, strict=True):
        texts = ["--texts", str(out / "data" / "llm" / "texts.jsonl"), "--out", run]
        how = _TABLE["annotator"][annotator].split()
        found.append(["angle-data", "llm-label", "--model", annotator, *texts, *how])
    if runs:
        data = out / given.family / "pairs" / "dataset"
        how = ["--strategy", "concat", "--labels", "binary", "--ratios", "1,0"]
        found.append(["angle-data", "ensemble", *runs, "--out", str(data.parent), *how])
    fit = ["angle-train", "fit", "--recipe", family.recipe, "--data", str(data), "--backbone", backbone]
    if family.dev:
        fit += ["--dev", str(out / "data" / family.dev / "validation.jsonl")]
    for setting in (*settings_of(given.family, given.variant), *given.set):
        fit += ["--set", setting]
    measure = ["angle-train", "eval", "--baseline", backbone]
    for seed in dict.fromkeys(given.seeds):
        tuned = str(out / given.family / given.variant / f"seed-{seed}")
        found.append([*fit, "--seed", str(seed), "--out", tuned])
        measure += ["--model", tuned]
    for task in family.tasks.split():
        measure += ["--task", task]
    return [*found, measure + (["--data-dir", str(given.data_dir)] if given.data_dir else [])]


def run(todo: Sequence[Sequence[str]]) -> None:
    """Run commands one after the other; the first that fails ends the program with its exit code."""
    for command in todo:
        print(f"$ {shlex.join(command)}", flush=True)
        program = [sys.executable, "-m", command[0].replace("-", "_"), *command[1:]]
        if code := subprocess.run(program, check=False).returncode:
            sys.exit(code)  # what was done stays, and the same command goes on


def parser() -> argparse.ArgumentParser:
    """Return the options of a row."""
    found = options(__doc__)
    found.add_argument("family", nargs="?", choices=FAMILIES)
    found.add_argument("variant", nargs="?", choices=VARIANTS, default="angle")
    found.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    found.add_argument("--out", type=Path, default=ROOT / "runs" / "paper")
    found.add_argument("--data-dir", type=Path, help="folder with the data sets; default the hub")
    found.add_argument("--backbone", help="another backbone")
    found.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the recipe")
    found.add_argument("--print", action="store_true", help="only print the commands that follow the pairs")
    return found


def main() -> None:
    """Print or run what was asked for."""
    given = parser().parse_args()
    if given.family is None:
        for words, figures in PUBLISHED.items():
            print("{:<14} {:<22}".format(*words.split()), figures)
        return
    if given.print:
        print("\n".join(map(shlex.join, commands(given))))
        return
    try:
        write_data(FAMILIES[given.family], Source(given.data_dir), given.out / "data")
    except AngleError as error:
        sys.exit(f"paper.py: error: {error}")
    run(commands(given))
    figures = PUBLISHED.get(f"{given.family} {given.variant}")
    if figures and not (given.backbone or given.set):
        print(f"published, on the whole data sets: {figures}")


if __name__ == "__main__":
    main()
