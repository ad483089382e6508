"""What the training benchmarks share: data sets, backbones, equal settings for everybody, and one cached run.

A way trains a model in place. All ways have the same backbone, pairs, batch size, epochs, learning rate,
schedule and seeds, and keep the best of one evaluation per epoch on the same dev pairs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import RESULTS, data_folder, minilm, options  # noqa: E402

from angle_data.jsonl import read_jsonl, write_jsonl  # noqa: E402
from angle_train.data.hold_out import hold_out  # noqa: E402
from angle_train.data.pairs import PairSet, load_pairs  # noqa: E402
from angle_train.model.load import backbone_identity  # noqa: E402
from angle_train.recipe import BackboneConfig, Recipe  # noqa: E402

BACKBONES: dict[str, tuple[int | None, float]] = {"minilm-3": (3, 1e-4), "minilm": (None, 5e-5)}
"""Name -> layers of MiniLM (none: all six) and learning rate."""

CASES = {"stsb": 2000, "sick-r": 2000, "mrpc": 1000, "bug-duplicates": 600}
"""Data set -> training pairs, so that none takes much longer than the others: their texts differ in
length."""
_GRADED = {"stsb", "sick-r", "stsb-cut", "sick-r-cut"}
_WITHOUT_TEST = {"bug-duplicates", "nli"}
_NOT_IN_STSB = {
    "sts12-rest": ("SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "sts15-rest": ("answers-students", "belief"),
}
"""Graded sets that only choose: the parts of STS12 and STS15 of which STS-B has no pair."""
_DEV = 400
SHARED: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 64,
    "evals_per_epoch": 1,
    "patience": 100,
    "max_seq_length": 128,
    "precision": "fp32",
}
"""The recipe of all ways; what is not named has its default, and the objective is the papers'."""


@dataclass(frozen=True)
class Case:
    """The pairs of one data set: at most 400 select, all test pairs measure; none where values are chosen.

    `more` selects beside `dev`: the score is then the mean of both.
    """

    name: str
    train: PairSet
    dev: PairSet | None
    test: PairSet | None
    more: PairSet | None = None


@dataclass(frozen=True)
class Way:
    """A way to train.

    Attributes:
        train: Trains the model that it is given; returns what is to be kept: at least `dev`, the best
            Spearman there (None without dev pairs), and `similarity` of the test pairs where the model
            cannot be asked afterwards.
        settings: What a kept result must have been made with to be still valid.
    """

    train: Callable[[Any, Case, Recipe, Path], dict[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def load_case(name: str, size: int | None = None) -> Case:
    """Return the pairs of a data set, at most `size` for training; the same ones for every seed.

    MRPC has no validation split and bug-duplicates no test split: a tenth of their training pairs (whole
    groups of pairs that share texts) selects, and the validation split of bug-duplicates measures. Of nli
    entailment and contradiction count. `NAME-cut` has two scores: 1 from 0.8 on, and 0 from 0.3 to 0.6.
    """
    if name in _NOT_IN_STSB:
        whole, dev = hold_out(_not_in_stsb(name), 0.3, seed=7)
        return Case(name, sample(whole, size or len(whole)), sample(dev, _DEV), None)
    folder = data_folder() / "data" / name.removesuffix("-cut")
    whole = load_pairs(str(folder / "train.jsonl.gz"))
    if name == "nli":
        whole = sample(whole.take(np.flatnonzero(whole.score != 0.5).tolist(), name), 4000)
    if name in _GRADED:
        dev = load_pairs(str(folder / "validation.jsonl.gz"))
    else:
        whole, dev = hold_out(whole, 0.1, seed=7)
    if name.endswith("-cut"):
        whole, dev = two_scores(whole), two_scores(dev)
    test = load_pairs(str(folder / ("validation" if name in _WITHOUT_TEST else "test")) + ".jsonl.gz")
    return Case(name, sample(whole, size or CASES[name]), sample(dev, _DEV), test)


def _not_in_stsb(name: str) -> PairSet:
    """Return the graded pairs of some parts of a SemEval set."""
    source = data_folder() / "data" / name.removesuffix("-rest") / "test.jsonl.gz"
    kept = RESULTS / f"{name}.jsonl"
    write_jsonl(kept, (row for _, row in read_jsonl(source) if row["subset"] in _NOT_IN_STSB[name]))
    return load_pairs(str(kept))


def two_scores(pairs: PairSet) -> PairSet:
    """Return graded pairs as binary ones whose negatives are near misses."""
    good, near = pairs.score >= 0.8, (pairs.score >= 0.3) & (pairs.score <= 0.6)
    chosen = np.flatnonzero(good | near).tolist()
    return replace(pairs.take(chosen, pairs.name), score=good[chosen].astype(float))


def sample(pairs: PairSet, size: int) -> PairSet:
    """Return at most `size` pairs, drawn once and for all."""
    if len(pairs) <= size:
        return pairs
    chosen = np.random.default_rng(7).choice(len(pairs), size, replace=False)
    return pairs.take(sorted(chosen.tolist()), pairs.name)


def backbone_path(name: str) -> Path:
    """Return the directory of a backbone."""
    return minilm(BACKBONES[name][0])


@cache
def _identity(backbone: str) -> str:
    return backbone_identity(str(backbone_path(backbone)))


def _unit(
    name: str, way: Way, case: Case, backbone: str, seed: int, out: Path
) -> tuple[Recipe, dict[str, Any], Path]:
    """Return a unit's recipe, all that its result depends on, and its file; other settings have another."""
    shared = SHARED | {"learning_rate": BACKBONES[backbone][1]}
    recipe = Recipe().with_overrides({"loss": "papers"} | shared | {"seed": seed})
    sets = {"train": case.train, "dev": case.dev, "test": case.test, "more": case.more}
    parts = {part: pairs.sha256() for part, pairs in sets.items() if pairs is not None}
    settings = {**parts, "backbone": _identity(backbone), "shared": shared, **way.settings}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    file = f"{case.name}-{backbone}-{name.replace(' ', '_')}-{seed}-{digest}.json"
    return recipe, settings, out / file


def kept_result(
    name: str, way: Way, case: Case, backbone: str, seed: int, out: Path
) -> dict[str, Any] | None:
    """Return the result of one training if `out` has it with these settings."""
    path = _unit(name, way, case, backbone, seed, out)[-1]
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def run_unit(name: str, way: Way, case: Case, backbone: str, seed: int, out: Path) -> dict[str, Any]:
    """Return the result of one training, from its file in `out` if it has been run with these settings."""
    kept = kept_result(name, way, case, backbone, seed, out)
    if kept is not None:
        return kept
    recipe, settings, path = _unit(name, way, case, backbone, seed, out)
    from angle_train.evaluation.similarity import measure
    from angle_train.evaluation.statistics import spearman
    from angle_train.model.load import load_for_training

    model = load_for_training(str(backbone_path(backbone)), BackboneConfig(), "", SHARED["max_seq_length"])
    started = time.process_time()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        notes = way.train(model, case, recipe, Path(scratch))
    notes.setdefault("cpu_seconds", time.process_time() - started)
    similarity = notes.pop("similarity", None)
    result = {
        "case": case.name,
        "backbone": backbone,
        "way": name,
        "seed": seed,
        "settings": settings,
        **notes,
    }
    if case.test is not None:
        similarity = np.asarray(similarity or measure(model, [case.test])[0])
        result["spearman"] = spearman(case.test.score, similarity)
        result["similarity"] = similarity.round(6).tolist()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result) + "\n", encoding="utf-8")
    took = f"dev {100 * result['dev']:.2f}, {result['cpu_seconds']:.0f} CPU s"
    print(f"{case.name} {backbone} {name}, seed {seed}: {took}", flush=True)
    return result


def parser_of(description: str | None, ways: Sequence[str]) -> argparse.ArgumentParser:
    """Return the options that the quality benchmarks share."""
    parser = options(description)
    parser.add_argument("--backbones", nargs="+", choices=list(BACKBONES), default=list(BACKBONES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=list(ways), default=list(ways), metavar="WAY")
    parser.add_argument("--table", action="store_true", help="print what there is, run nothing")
    return parser
