"""The papers' experiments, each from the data source to its score with one command.

    python benchmarks/paper.py                        # what there is, with the published figures
    python benchmarks/paper.py stsb                   # AnglE on STS-B, five seeds
    python benchmarks/paper.py stsb without-angle     # a variant: an objective, a loss, a pooling …
    python benchmarks/paper.py stsb --print           # only the commands

Pairs come from the hub, or from --data-dir (one folder a data set, fields as in the hub's). Steps that are
done are not repeated. --backbone and --set are for trying it at a small scale; what comes out is then another
experiment. paper.md sets the published figures beside what was measured.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.errors import AngleError
from angle_data.jsonl import write_jsonl
from angle_train.evaluate.sources import DataFolder, Hub, Source, TaskData, number_in, pair_in
from angle_train.evaluate.tasks import load_task

ROOT = Path(__file__).resolve().parents[1]
BERT = "google-bert/bert-base-uncased"
SEEDS = (42, 43, 44, 45, 46)


@dataclass(frozen=True)
class Family:
    """Experiments on the same pairs.

    Attributes:
        recipe: Of this toolkit.
        data: What trains, see `write_data`.
        tasks: What `angle-train eval` measures.
        dev: Data set whose validation pairs choose the checkpoint; None is a tenth of the training pairs.
        backbone: Hub id.
        settings: Of the recipe.
        annotators: Models that write the pairs.
    """

    recipe: str
    data: str
    tasks: tuple[str, ...]
    dev: str | None = None
    backbone: str = BERT
    settings: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()


def _llm(*annotators: str) -> Family:
    return Family("paper-llm", "llm", ("stsb",), dev="stsb", annotators=annotators)


_STS = ("sts", "transfer")
_LONG = ("max_seq_length=2048", "chunk_size=4")
FAMILIES = {
    "nli": Family("paper-nli", "nli", (*_STS, "snli", "mnli", "flickr30k"), dev="stsb"),
    "nli-llama-7b": Family("paper-nli-llama", "nli", _STS, "stsb", "NousResearch/Llama-2-7b-hf"),
    "nli-llama-13b": Family("paper-nli-llama", "nli", _STS, "stsb", "NousResearch/Llama-2-13b-hf"),
    "stsb": Family("paper-stsb", "stsb", ("stsb",), dev="stsb"),
    "mrpc": Family("paper-pairs", "mrpc", ("mrpc",), dev="mrpc"),
    "qqp": Family("paper-pairs", "qqp", ("qqp",), settings=("epochs=3",)),
    "qnli": Family("paper-pairs", "qnli", ("qnli",), settings=("epochs=3",)),
    "gis": Family("paper-gis", "gis", ("gis",), dev="gis"),
    "gis-long": Family("paper-gis", "gis", ("gis",), "gis", "answerdotai/ModernBERT-base", _LONG),
    "llm-chatgpt": _llm("chatgpt"),
    "llm-llama": _llm("llama"),
    "llm-chatglm": _llm("chatglm"),
    "llm-ensemble": _llm("chatgpt", "llama", "chatglm"),
}

_ANGLE_ALONE = ("cosine_weight=0", "in_batch_weight=0")
_AOE = ("cosine_weight=0", "angle_tau=0.05")  # AoE Eq. 5 has no cosine term, and one temperature
VARIANTS: dict[str, tuple[str, ...]] = {
    "angle": (),
    "aoe": _AOE,
    "aoe-only-angle": (*_AOE, "in_batch_weight=0"),
    "aoe-only-contrastive": ("cosine_weight=0", "angle_weight=0"),
    "aoe-avg": (*_AOE, "pooling=last-avg"),
    "aoe-max": (*_AOE, "pooling=last-max"),
    "without-in-batch": ("in_batch_weight=0",),
    "without-angle": ("angle_weight=0",),
    "only-cosine": ("in_batch_weight=0", "angle_weight=0"),
    "only-in-batch": ("cosine_weight=0", "angle_weight=0"),
    "only-angle": _ANGLE_ALONE,
    "cls-last-avg": ("pooling=cls-last-avg",),
    "last-avg": ("pooling=last-avg",),
    "last-max": ("pooling=last-max",),
    "first-last-avg": ("pooling=first-last-avg",),
    "without-isp": ("isp=none",),
    "without-near-copies": ("skip_near_copies=true",),
    "windows": ("long_text=windows", "window_memory=32"),
    # Peers on the same pairs; hard negatives in SimCSE need the two pairs of a premise in one batch.
    "cosent": ("loss=cosent",),
    "sbert": ("loss=sbert",),
    "simcse": ("loss=simcse", "source_block=2"),
    "simcse-pairs": ("loss=mnrl",),
}

# Spearman or accuracy x 100 as printed in the papers; an average where there are several tasks.
PUBLISHED: dict[tuple[str, str], str] = {
    ("nli", "angle"): "82.37",
    ("nli", "cosent"): "75.69",
    ("nli", "simcse"): "81.57",
    ("nli", "aoe"): "82.43",
    ("nli", "aoe-only-angle"): "82.36",
    ("nli", "aoe-only-contrastive"): "81.53",
    ("nli", "aoe-avg"): "81.69",
    ("nli", "aoe-max"): "77.96",
    ("nli-llama-7b", "angle"): "85.96",
    ("nli-llama-7b", "simcse"): "85.24",
    ("nli-llama-13b", "aoe"): "86.52",
    ("stsb", "angle"): "86.26",
    ("stsb", "aoe"): "86.28",
    ("stsb", "sbert"): "84.67",
    ("stsb", "simcse-pairs"): "76.27",
    ("stsb", "without-in-batch"): "86.00",
    ("stsb", "without-angle"): "85.30",
    ("stsb", "only-cosine"): "85.28",
    ("stsb", "only-in-batch"): "72.48",
    ("stsb", "only-angle"): "85.15",
    ("stsb", "cls-last-avg"): "85.81",
    ("stsb", "last-avg"): "84.15",
    ("stsb", "last-max"): "79.76",
    ("stsb", "first-last-avg"): "81.99",
    ("stsb", "without-isp"): "-0.18",
    ("mrpc", "angle"): "62.20",
    ("mrpc", "sbert"): "46.19",
    ("mrpc", "simcse-pairs"): "48.13",
    ("qqp", "angle"): "76.54",
    ("qqp", "sbert"): "73.80",
    ("qqp", "simcse-pairs"): "65.84",
    ("qnli", "angle"): "72.19",
    ("qnli", "sbert"): "65.98",
    ("qnli", "simcse-pairs"): "33.00",
    ("gis", "angle"): "70.55",
    ("gis", "aoe"): "70.59",
    ("gis", "sbert"): "69.50",
    ("gis", "simcse-pairs"): "60.38",
    ("gis-long", "angle"): "71.25 (RAN)",
    ("llm-chatgpt", "angle"): "81.52",
    ("llm-llama", "angle"): "79.29",
    ("llm-chatglm", "angle"): "81.11",
    ("llm-ensemble", "angle"): "82.01",
}

# The papers' annotators, where they can be had; nearest to ChatGLM-6B is the GLM that `chatglm` stands for.
_ANNOTATORS = {
    "chatgpt": ("--checkpoint", "gpt-3.5-turbo"),
    "llama": ("--engine", "offline", "--checkpoint", "meta-llama/Llama-2-7b-chat-hf"),
    "chatglm": ("--engine", "offline"),
}
_ENTAILMENT = {"0": 1, "entailment": 1, "2": 0, "contradiction": 0}  # neutral, and -1, are left out
Rows = Iterator[dict[str, Any]]


def write_data(family: Family, source: Source, out: Path) -> None:
    """Write what a family trains on and chooses with, as `out/DATA/SPLIT.jsonl`; what is there stays."""
    wanted = {family.data: "train"} if family.data != "llm" else {}
    for name, split in [*wanted.items(), *([(family.dev, "validation")] if family.dev else [])]:
        path = out / name / f"{split}.jsonl"
        if not path.exists():
            rows = _inference_rows(source) if name == "nli" else _pair_rows(name, source, split)
            print(f"{path}: {write_jsonl(path, rows)} pairs")
    texts = out / "llm" / "texts.jsonl"
    if family.data == "llm" and not texts.exists():
        first = dict.fromkeys(row["text1"] for row in _pair_rows("stsb", source, "train"))
        print(f"{texts}: {write_jsonl(texts, ({'text': text} for text in first))} texts")


def _pair_rows(name: str, source: Source, split: str) -> Rows:
    """Yield `text1, text2` with a `score` 0 to 5, or a `label` 1 where they belong together."""
    task: Any = load_task(name)
    for place, row in source.rows(task.data, split):
        text1, text2 = pair_in(row, place)
        if name == "stsb":
            yield {"text1": text1, "text2": text2, "score": number_in(row, ("score",), place)}
        else:
            label = number_in(row, ("label", "is_duplicate"), place)
            yield {"text1": text1, "text2": text2, "label": int(label == task.positive)}


def _inference_rows(source: Source) -> Rows:
    """Yield the entailments (1) and contradictions (0) of SNLI and MNLI."""
    for name in ("snli", "mnli"):
        data: TaskData = load_task(name).data
        for place, row in source.rows(data, "train"):
            label = _ENTAILMENT.get(str(row.get("label")))
            text1, text2 = pair_in(row, place)
            if label is not None and text1.strip() and text2.strip():
                yield {"text1": text1, "text2": text2, "label": label}


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
    """Return the commands behind a figure, after the pairs are written: labelling, fits, scores."""
    family = FAMILIES[name]
    backbone = backbone or family.backbone
    found, data = [], out / "data" / family.data / "train.jsonl"
    if family.annotators:
        for annotator in family.annotators:
            texts = ["--texts", str(out / "data" / "llm" / "texts.jsonl"), "--out", str(out / annotator)]
            label = ["angle-data", "llm-label", "--model", annotator, *texts, *_ANNOTATORS[annotator]]
            found.append(label)
        runs = [str(out / annotator) for annotator in family.annotators]
        how = ["--strategy", "concat", "--labels", "binary", "--ratios", "1,0"]
        found.append(["angle-data", "ensemble", *runs, "--out", str(out / name / "pairs"), *how])
        data = out / name / "pairs" / "dataset"
    fit = ["angle-train", "fit", "--recipe", family.recipe, "--data", str(data), "--backbone", backbone]
    if family.dev:
        fit += ["--dev", str(out / "data" / family.dev / "validation.jsonl")]
    for setting in (*family.settings, *VARIANTS[variant], *settings):  # of equal keys the last one counts
        fit += ["--set", setting]
    models = out / name / variant
    found += [[*fit, "--seed", str(seed), "--out", str(models / f"seed-{seed}")] for seed in seeds]
    one = ["--model", str(models / f"seed-{seeds[0]}")]
    tuned = one if len(seeds) == 1 else ["--seeds-of", str(models / "seed-*")]
    measure = ["angle-train", "eval", *tuned, "--baseline", backbone]
    for task in family.tasks:
        measure += ["--task", task]
    return [*found, measure + (["--data-dir", str(data_dir)] if data_dir else [])]


def listing() -> str:
    """Return a line for every published figure: the words of its command, the figure."""
    return "\n".join(f"{name:<14} {variant:<22} {value}" for (name, variant), value in PUBLISHED.items())


def main() -> None:
    """Print or run what was asked for."""
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
    parser.add_argument("--prepare", action="store_true", help="only write the pairs")
    parser.add_argument("--print", action="store_true", help="only print the commands")
    given = parser.parse_args()
    if given.family is None:
        print(listing())
        return
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
    source = DataFolder(given.data_dir) if given.data_dir else Hub()
    try:
        write_data(FAMILIES[given.family], source, given.out / "data")
    except AngleError as error:
        sys.exit(f"paper.py: error: {error}")
    for command in [] if given.prepare else todo:
        print(f"$ {shlex.join(command)}", flush=True)
        module = command[0].replace("-", "_")
        code = subprocess.run([sys.executable, "-m", module, *command[1:]], check=False).returncode
        if code:
            sys.exit(code)  # what was done stays, and the same command goes on
    published = PUBLISHED.get((given.family, given.variant))
    if published and not (given.prepare or given.backbone or given.set):
        print(f"published: {published}")


if __name__ == "__main__":
    main()
