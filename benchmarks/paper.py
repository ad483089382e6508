"""The papers' experiments, each from the data source to its score with one command.

    python benchmarks/paper.py                        # what there is, with the published figures
    python benchmarks/paper.py stsb                   # AnglE on STS-B, five seeds
    python benchmarks/paper.py stsb without-angle     # a variant: an objective, a loss, a pooling …
    python benchmarks/paper.py stsb --print           # only the commands

Pairs come from the hub, or from --data-dir (one folder a data set, fields as in the hub's), and one --out
holds those of one source. Steps that are done are not repeated. --backbone and --set are for trying it at a
small scale; what comes out is another experiment, in a folder of its own. paper.md sets the published
figures beside ours.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from paper_data import write_data
from paper_rows import FAMILIES, PUBLISHED, SEEDS, VARIANTS, settings_of

from angle_data.errors import AngleError
from angle_train.evaluation.tasks.sources import Source

ROOT = Path(__file__).resolve().parents[1]

# The papers' annotators, where they can be had; nearest to ChatGLM-6B is the GLM that `chatglm` stands for.
_ANNOTATORS = {
    "chatgpt": ("--checkpoint", "gpt-3.5-turbo"),
    "llama": ("--engine", "offline", "--checkpoint", "meta-llama/Llama-2-7b-chat-hf"),
    "chatglm": ("--engine", "offline"),
}


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
    family = FAMILIES[name]
    found = _labelling(name, out)
    data = out / name / "pairs" / "dataset" if family.annotators else _train_file(name, out)
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
    for task in family.tasks:
        measure += ["--task", task]
    return [*found, measure + (["--data-dir", str(data_dir)] if data_dir else [])]


def _labelling(name: str, out: Path) -> list[list[str]]:
    """Return the commands that have the pairs of a family written by its annotators, if it has some."""
    annotators = FAMILIES[name].annotators
    found = []
    for annotator in annotators:
        texts = ["--texts", str(out / "data" / "llm" / "texts.jsonl"), "--out", str(out / annotator)]
        label = ["angle-data", "llm-label", "--model", annotator, *texts, *_ANNOTATORS[annotator]]
        found.append(label)
    if annotators:
        runs = [str(out / annotator) for annotator in annotators]
        how = ["--strategy", "concat", "--labels", "binary", "--ratios", "1,0"]
        found.append(["angle-data", "ensemble", *runs, "--out", str(out / name / "pairs"), *how])
    return found


def _train_file(name: str, out: Path) -> Path:
    return out / "data" / FAMILIES[name].data / "train.jsonl"


def listing() -> str:
    """Return a line for every row: the words of its command, the published figures."""
    lines = []
    for name, variant in PUBLISHED:
        lines.append(f"{name:<14} {variant:<22} {published(name, variant)}")
    return "\n".join(lines)


def published(name: str, variant: str) -> str:
    """Return the published scores of a row in words; empty if it has none."""
    return ", ".join(f"{what} {figure}" for what, figure in PUBLISHED.get((name, variant), {}).items())


def run(todo: Sequence[Sequence[str]]) -> None:
    """Run commands one after the other; the first that fails ends the program with its exit code."""
    for command in todo:
        print(f"$ {shlex.join(command)}", flush=True)
        ours = command[0].startswith("angle-")
        program = [sys.executable, "-m", command[0].replace("-", "_")] if ours else [command[0]]
        code = subprocess.run([*program, *command[1:]], check=False).returncode
        if code:
            sys.exit(code)  # what was done stays, and the same command goes on


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    parser = _options()
    given = parser.parse_args()
    if given.family is None:
        print(listing())
        return
    family = FAMILIES[given.family]
    given.seeds = list(dict.fromkeys(given.seeds))
    todo = commands(
        given.family,
        given.variant,
        given.out,
        seeds=given.seeds,
        backbone=given.backbone,
        settings=given.set,
        data_dir=given.data_dir,
    )
    if given.print:
        where = ["--out", str(given.out), *(["--data-dir", str(given.data_dir)] if given.data_dir else [])]
        todo.insert(0, ["python", "benchmarks/paper.py", given.family, "--prepare", *where])
        print("\n".join(map(shlex.join, todo)))
        return
    try:
        write_data(family, Source(given.data_dir), given.out / "data")
        if given.prepare:
            return
        run(todo)
    except AngleError as error:
        sys.exit(f"paper.py: error: {error}")
    figures = published(given.family, given.variant)
    if figures and not (given.backbone or given.set):
        print(f"published, on the whole data sets: {figures}")


if __name__ == "__main__":
    main()
