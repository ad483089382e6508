"""What the demo's training gains, and what it loses where people labelled other text.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/no_harm.py --set epochs=2 average_with_backbone=0
    … --seeds 1 2 3 --part test                 # the sets that nothing was chosen on; default dev
    … --part test --model runs/cloud-ops/model  # measure this model, with intervals; train none
    … --part train --model runs/cloud-ops/model --has 0.1 --shares 0.1 0.2 0.3  # more of MiniLM mixed in
    … --only forum-answers headlines            # these guards alone

Trains on the demo's pairs by the recipe `opposites`, with values of the recipe as `angle-train fit` takes
them, and measures without a guard refusing anything (guard_loss=100): the demo's pairs of that part, and
labelled guards (../log/no-harm.md). Finished runs are not repeated. The part `train` has the demo's dev
pairs, whole training splits, thousands of pairs, which tell a loss of a point from none, and what STS 2012,
2013 and 2015 have of other kinds of text (../log/demo-passes.md). The part `further` chose nothing
(../log/answers-kept.md).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import RESULTS, data_folder, minilm, options, save_results, show  # noqa: E402
from llm_supervised import cloud_ops, data_sets, rows_of  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

from angle_data.console import configure_logging  # noqa: E402
from angle_data.jsonl import write_jsonl  # noqa: E402
from angle_train import evaluate  # noqa: E402
from angle_train.data.pairs import PairSet, load_pairs  # noqa: E402
from angle_train.evaluation.similarity import measure  # noqa: E402
from angle_train.evaluation.statistics import spearman  # noqa: E402
from angle_train.options import FitOptions  # noqa: E402
from angle_train.recipe import Recipe, find_recipe, parse_settings  # noqa: E402
from angle_train.run import fit  # noqa: E402
from angle_train.training.merging import blended, snapshot  # noqa: E402

OUT = RESULTS / "training" / "no-harm"
PARTS: dict[str, dict[str, tuple[str, str, int | None]]] = {
    "dev": {
        "bug-titles": ("bug-duplicates", "train", 400),
        "community-questions": ("cqa-qatarliving", "validation", 200),
        "mrpc": ("mrpc", "train", 250),
        "sick": ("sick-r", "train", 250),
        "stsb": ("stsb", "validation", 200),
    },
    "train": {
        "bug-titles": ("bug-duplicates", "train", None),
        "bug-reports": ("bug-duplicates", "train", 1000),
        "community-questions": ("cqa-qatarliving", "train", None),
        "mrpc": ("mrpc", "train", None),
        "sick": ("sick-r", "train", None),
        "stsb": ("stsb", "validation", None),
        "definitions-2012": ("sts12/surprise.OnWN", "test", None),
        "definitions-2013": ("sts13/OnWN", "test", None),
        "parliament": ("sts12/SMTeuroparl", "test", None),
        "news-translated": ("sts12/surprise.SMTnews", "test", None),
        "headlines": ("sts15/headlines", "test", None),
        "forum-answers": ("sts15/answers-forums", "test", None),
        "student-answers": ("sts15/answers-students", "test", None),
        "beliefs": ("sts15/belief", "test", None),
    },
    "test": {
        "bug-titles": ("bug-duplicates", "validation", None),
        "bug-reports": ("bug-duplicates", "validation", 300),
        "community-questions": ("cqa-qatarliving", "test", None),
        "mrpc": ("mrpc", "test", None),
        "sick": ("sick-r", "test", 1500),
        "stsb": ("stsb", "test", None),
    },
    "further": {"definitions-of-two-dictionaries": ("sts13/FNWN", "test", None)},
}
"""Part -> guard -> data set, or a part of one, split, and how many pairs, drawn once; none for all."""
_CHARACTERS = 2_000  # of a whole report


def guards(part: str, only: Sequence[str] | None = None) -> list[str]:
    """Write the guards of a part, or only those named, as files of pairs, and return these.

    Of a bug report the title is taken, or for `bug-reports` as much as a model may read.
    """
    files = []
    for name in only or PARTS[part]:
        data, split, most = PARTS[part][name]
        found: list[dict[str, Any]] = []
        data, _, subset = data.partition("/")
        for row in rows_of(data_folder() / "data" / data / f"{split}.jsonl.gz"):
            if subset and row["subset"] != subset:
                continue
            one, other = (
                row[field] for field in row if field in ("sentence1", "sentence2", "text1", "text2")
            )
            if name == "bug-titles":
                one, other = (text.split("\n")[0].strip() for text in (one, other))
            elif name == "bug-reports":
                one, other = (text[:_CHARACTERS] for text in (one, other))
            found.append({"text1": one, "text2": other, "score": row.get("score", row.get("label"))})
        if not found:
            sys.exit(f"{name}: no pairs in {data}, {split}, {subset}")
        random.Random(0).shuffle(found)
        files.append(str(OUT / part / f"{name}.jsonl"))
        write_jsonl(Path(files[-1]), found[:most])
    return files


def split_of(part: str) -> str:
    """Return the split of the demo's own graded pairs that goes with a part."""
    return "test" if part == "test" else "dev"


def measured(model: str, part: str, files: list[str]) -> str:
    """Return the tables of `eval` on the demo's pairs and the guards of a part, beside untouched MiniLM."""
    against = {"baseline": str(minilm(6))}
    own = evaluate(model, pairs=[*map(str, cloud_ops().test)], split=split_of(part), **against)
    return f"{own}\n{evaluate(model, pairs=files, **against)}"


def scores(model: Any, sets: Sequence[PairSet]) -> dict[str, float]:
    """Return Spearman x 100 by the name of each set."""
    found = zip(sets, measure(model, list(sets)), strict=True)
    return {pairs.name: 100 * spearman(pairs.score, column) for pairs, column in found}


def show_shares(
    folder: str,
    has: float,
    shares: Sequence[float],
    part: str,
    files: Sequence[str],
) -> None:
    """Print what a model scores with shares of MiniLM's weights in all, of which it `has` one already.

    Args:
        folder: The model.
        has: Its own share.
        shares: Those to measure.
        part: Which of the demo's pairs are measured, too (`split_of`).
        files: Pairs to measure.
    """
    sets = [load_pairs(str(file), rows=split_of(part)) for file in cloud_ops().test]
    sets += [load_pairs(file) for file in files]
    backbone = SentenceTransformer(str(minilm(6)), device="cpu")
    before, untouched = scores(backbone, sets), snapshot(backbone)
    print("MiniLM: " + "; ".join(f"{name} {value:.1f}" for name, value in before.items()), flush=True)
    model = SentenceTransformer(folder, device="cpu")
    for share in shares:
        with blended(model, untouched, (share - has) / (1 - has)):
            after = scores(model, sets)
        changes = (f"{name} {after[name] - before[name]:+.1f}" for name in before)
        print(f"share {share:g}: {'; '.join(changes)}", flush=True)


def main() -> None:
    """Train with every seed and print gains and losses."""
    parser = options(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--part", choices=list(PARTS), default="dev")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="values of the recipe")
    parser.add_argument("--model", metavar="DIR", help="measure this one in place of training")
    parser.add_argument("--has", type=float, default=0.0, help="share of MiniLM that --model has already")
    parser.add_argument("--shares", type=float, nargs="+", help="of MiniLM in all, mixed into --model")
    parser.add_argument("--only", nargs="+", metavar="GUARD", help="these guards of the part")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    if unknown := {*(arguments.only or [])} - {*PARTS[arguments.part]}:
        parser.error(f"--only: the part {arguments.part} has no {', '.join(sorted(unknown))}")
    files = guards(arguments.part, arguments.only)
    if arguments.model and arguments.shares:
        show_shares(arguments.model, arguments.has, arguments.shares, arguments.part, files)
        return
    if arguments.model:
        print(measured(arguments.model, arguments.part, files))
        return
    task = cloud_ops()
    data = data_sets(task)["all"]
    recipe = Recipe.from_toml(find_recipe(task.purpose)).with_overrides(parse_settings(arguments.set))
    given = {"dev": [*map(str, task.dev)], "test": [*map(str, task.test)], "guard": files}
    name = "-".join([arguments.part, *(setting.replace("=", "-") for setting in arguments.set)])
    rows: dict[str, list[float]] = {}
    for seed in arguments.seeds:
        asked = recipe.with_overrides({"seed": seed, "guard_loss": 100.0})
        report = fit(
            FitOptions(str(minilm(6)), OUT / f"{name}-{seed}", [str(data)], recipe=asked, **given)
        ).report
        for row in report.results:
            if row.role == split_of(arguments.part) and row.difference is not None:
                rows.setdefault(row.pairs, []).append(100 * row.score.value)
        for loss in report.details["guards"]["losses"]:
            rows.setdefault(f"{loss['name']}, change", []).append(100 * (loss["after"] - loss["before"]))
    show(f"{name}, Spearman x 100", rows)
    save_results(f"no-harm-{name}", rows)


if __name__ == "__main__":
    main()
