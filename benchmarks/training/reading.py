"""How reading grows: CPU seconds before the first step of `fit` for 25,000 to 250,000 pairs, in one run.

    python benchmarks/training/reading.py [--pairs 25000 50000 100000 250000]

read       the file: parsed and checked; general texts to keep and guards are found
same run   the digests that say whether a run goes on from an earlier one
leaks      texts that are in training and in dev pairs
length     how many tokens of a text the model should read, from a sample

A pair has two texts of 8 to 20 words of a made-up language, as in `labelling/growth.py`; of each 50 texts
one is another with a word changed. 1,000 other pairs are the dev pairs. Loading the model is not counted.
The ratio is to the row above; what is linear has that of the pairs. Ratios hold on a busy machine, seconds
do not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "labelling")]

from common import minilm, options  # noqa: E402
from growth import Words, cpu  # noqa: E402

from angle_data.console import configure_logging  # noqa: E402
from angle_data.jsonl import write_jsonl  # noqa: E402

PARTS = ("read", "same run", "leaks", "length")
DEV = 1_000


def write_pairs(path: Path, count: int, seed: int) -> Path:
    """Write so many graded pairs; return the path."""
    texts = Words(seed).texts(2 * count)
    rows = ({"text1": text, "text2": next(texts), "score": place % 6} for place, text in enumerate(texts))
    write_jsonl(path, islice(rows, count))
    return path


def measure(count: int, model: Any) -> dict[str, float]:
    """Return the CPU seconds of each part with so many pairs."""
    from angle_train.data.splits import run_leaks
    from angle_train.inputs import load_data
    from angle_train.options import FitOptions
    from angle_train.reading import length_of_texts
    from angle_train.recipe import Recipe
    from angle_train.run import fingerprint

    with tempfile.TemporaryDirectory(prefix="angle-reading-") as name:
        home = Path(name)
        train, dev = write_pairs(home / "train.jsonl", count, 1), write_pairs(home / "dev.jsonl", DEV, 2)
        backbone = str(minilm())
        given = FitOptions(backbone, home / "out", recipe=Recipe(), data=[str(train)], dev=[str(dev)])
        found: dict[str, Any] = {}

        def keep(name: str, work: Callable[[], Any]) -> float:
            return cpu(lambda: found.update({name: work()}))

        seconds = {"read": keep("read", lambda: load_data(given))}
        data, recipe = found["read"]
        seconds["same run"] = keep("same run", lambda: fingerprint(given, data, recipe))
        seconds["leaks"] = keep("leaks", lambda: run_leaks(data))
        seconds["length"] = keep("length", lambda: length_of_texts(model, data.train, recipe.training, 99.0))
    return seconds


def main() -> None:
    """Print seconds, and the ratio to the row before, a line for each size."""
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[25_000, 50_000, 100_000, 250_000])
    given = parser.parse_args()
    configure_logging(quiet=True)
    from angle_train.model.load import load_backbone

    model = load_backbone(str(minilm()), 128)
    measure(1_000, model)  # not kept: imports and first uses
    print(f"| pairs | {' | '.join(PARTS)} | all |\n|{' --- |' * (len(PARTS) + 2)}", flush=True)
    before: dict[str, float] = {}
    for count in given.pairs:
        found = measure(count, model)
        found["all"] = sum(found.values())
        cells = (
            f"{seconds:.2f}" + (f" ({seconds / before[part]:.2f})" if before else "")
            for part, seconds in found.items()
        )
        print(f"| {count:,} | {' | '.join(cells)} |", flush=True)
        before = found


if __name__ == "__main__":
    main()
