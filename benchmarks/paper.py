"""The papers' experiments, each from the data source to its score with one command.

    python benchmarks/paper.py                        # what there is, with the published figures
    python benchmarks/paper.py stsb                   # AnglE on STS-B, five seeds
    python benchmarks/paper.py stsb without-angle     # a variant: an objective, a loss, a pooling …
    python benchmarks/paper.py stsb --print           # only the commands

Pairs come from the hub, or from --data-dir (one folder a data set, fields as in the hub's), and one --out
holds those of one source. Steps that are done are not repeated. --backbone and --set are for trying it at a
small scale; what comes out is another experiment, in a folder of its own. paper.toml has the rows, and
paper.md sets the published figures beside ours.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import ROOT, options

from angle_data.errors import AngleError, InputError
from angle_data.jsonl import write_jsonl
from angle_train.data.columns import number_in, pair_in
from angle_train.evaluation.task import load_task
from angle_train.evaluation.tasks.sources import Source

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
    """Write what a family trains on and chooses with, as `out/DATA/SPLIT.jsonl`, each with a note beside it.

    A file that is there is used again only if its note names the same source.

    Raises:
        InputError: A file there was made from something else, or the data cannot be read.
    """
    for name, split in [(family.data, "train"), *([(family.dev, "validation")] if family.dev else [])]:
        path = out / name / ("texts.jsonl" if name == "llm" else f"{split}.jsonl")
        members = _MEMBERS.get(name, (name,))
        note, origin = path.with_suffix(".source.json"), ", ".join(_origin(m, split, source) for m in members)
        if path.exists():
            made = json.loads(note.read_text(encoding="utf-8"))["from"] if note.exists() else "something else"
            if made != origin:
                raise InputError(f"{path} was made from {made}, not from {origin}; give another --out")
            continue
        rows = (row for member in members for row in _pairs(name, member, split, source))
        if name == "llm":
            rows = ({"text": text} for text in dict.fromkeys(row["text1"] for row in rows))
        count = write_jsonl(path, rows)
        write_jsonl(note, [{"from": origin}])
        print(f"{path}: {count} rows")


def _origin(name: str, split: str, source: Source) -> str:
    """Return where the rows come from, in words."""
    if source.root:
        return f"{source.root / name}/{split}"
    at = load_task(name).data
    parts = (f"hub:{at.hub}", at.config, at.splits[split], at.revision) if at.hub else (name,)
    return " ".join(part for part in parts if part)


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


def commands(
    name: str,
    variant: str,
    out: Path,
    *,
    seeds: Sequence[int] = SEEDS,
    backbone: str | None = None,
    settings: Sequence[str] = (),
    data_dir: Path | None = None,
) -> list[list[str]]:
    """Return the commands behind a figure, after the pairs are written: labelling, fits, scores.

    The models of all seeds are scored beside each other; a row's figure is the mean of theirs.
    """
    family, found = FAMILIES[name], []
    data = out / "data" / family.data / "train.jsonl"
    annotators = family.annotators.split()
    for annotator in annotators:
        texts = ["--texts", str(out / "data" / "llm" / "texts.jsonl"), "--out", str(out / annotator)]
        how = _TABLE["annotator"][annotator].split()
        found.append(["angle-data", "llm-label", "--model", annotator, *texts, *how])
    if annotators:
        runs, data = [str(out / annotator) for annotator in annotators], out / name / "pairs" / "dataset"
        how = ["--strategy", "concat", "--labels", "binary", "--ratios", "1,0"]
        found.append(["angle-data", "ensemble", *runs, "--out", str(data.parent), *how])
    chosen = backbone or family.backbone
    fit = ["angle-train", "fit", "--recipe", family.recipe, "--data", str(data), "--backbone", chosen]
    if family.dev:
        fit += ["--dev", str(out / "data" / family.dev / "validation.jsonl")]
    for setting in (*settings_of(name, variant), *settings):  # of equal keys the last one counts
        fit += ["--set", setting]
    models = out / name / variant
    if backbone or settings:
        trial = hashlib.sha256(json.dumps([chosen, *settings]).encode()).hexdigest()[:8]
        models /= f"trial-{trial}"
    measure = ["angle-train", "eval", "--baseline", chosen]
    for seed in seeds:
        tuned = str(models / f"seed-{seed}")
        found.append([*fit, "--seed", str(seed), "--out", tuned])
        measure += ["--model", tuned]
    for task in family.tasks.split():
        measure += ["--task", task]
    return [*found, measure + (["--data-dir", str(data_dir)] if data_dir else [])]


def run(todo: Sequence[Sequence[str]]) -> None:
    """Run commands one after the other; the first that fails ends the program with its exit code."""
    for command in todo:
        print(f"$ {shlex.join(command)}", flush=True)
        program = [sys.executable, "-m", command[0].replace("-", "_"), *command[1:]]
        code = subprocess.run(program, check=False).returncode
        if code:
            sys.exit(code)  # what was done stays, and the same command goes on


def _options() -> argparse.ArgumentParser:
    parser = options(__doc__)
    parser.add_argument("family", nargs="?", choices=FAMILIES)
    parser.add_argument("variant", nargs="?", choices=VARIANTS, default="angle")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "paper")
    parser.add_argument("--data-dir", type=Path, help="folder with the data sets; default the hub")
    parser.add_argument("--backbone", help="another backbone")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the recipe")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prepare", action="store_true", help="only write the pairs")
    what.add_argument("--print", action="store_true", help="only print the commands")
    return parser


def main() -> None:
    """Print or run what was asked for."""
    given = _options().parse_args()
    if given.family is None:
        for words, figures in PUBLISHED.items():
            print("{:<14} {:<22}".format(*words.split()), figures)
        return
    how = {"backbone": given.backbone, "settings": given.set, "data_dir": given.data_dir}
    todo = commands(given.family, given.variant, given.out, seeds=list(dict.fromkeys(given.seeds)), **how)
    if given.print:
        where = ["--out", str(given.out), *(["--data-dir", str(given.data_dir)] if given.data_dir else [])]
        todo.insert(0, ["python", "benchmarks/paper.py", given.family, "--prepare", *where])
        print("\n".join(map(shlex.join, todo)))
        return
    try:
        write_data(FAMILIES[given.family], Source(given.data_dir), given.out / "data")
    except AngleError as error:
        sys.exit(f"paper.py: error: {error}")
    if given.prepare:
        return
    run(todo)
    figures = PUBLISHED.get(f"{given.family} {given.variant}")
    if figures and not (given.backbone or given.set):
        print(f"published, on the whole data sets: {figures}")


if __name__ == "__main__":
    main()
