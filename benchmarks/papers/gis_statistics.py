"""The statistics of the papers' issue pairs: counts, long texts, overlap of n-grams (AnglE Table 1, AoE B).

    python benchmarks/papers/gis_statistics.py --pairs hub:WhereIsAI/github-issue-similarity \
        --tokenizer google-bert/bert-base-uncased

The overlap is the share of distinct n-grams of both texts that both have; the paper does not define its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import options  # noqa: E402

from angle_data.text import jaccard  # noqa: E402
from angle_train.data.pairs import PairSet, load_pairs  # noqa: E402

LONG = 512
"""Tokens; a longer text is cut by BERT."""


def ngrams(text: str, n: int) -> set[tuple[str, ...]]:
    """Return the distinct n-grams of a text's lower-case words."""
    words = text.lower().split()
    return {tuple(words[start : start + n]) for start in range(len(words) - n + 1)}


def overlap(pairs: PairSet, n: int, *, positive: bool) -> float:
    """Return the mean overlap of n-grams x 100 over the pairs that belong together, or over the others."""
    found = [
        jaccard(ngrams(a, n), ngrams(b, n))
        for a, b, score in zip(pairs.text1, pairs.text2, pairs.score, strict=True)
        if (score == 1) == positive
    ]
    return 100 * float(np.mean(found)) if found else float("nan")


def main() -> None:
    """Print the statistics of every split asked for."""
    parser = options(__doc__)
    parser.add_argument("--pairs", required=True, help="pairs with labels 0 and 1")
    parser.add_argument("--split", action="append", help="of a data set; default train")
    parser.add_argument(
        "--tokenizer", help="counts texts of more than 512 tokens; default they are not counted"
    )
    given = parser.parse_args()
    for split in given.split or ["train"]:
        pairs = load_pairs(given.pairs, split=split)
        together = int((pairs.score == 1).sum())
        print(f"{pairs.name}: {together} positive, {len(pairs) - together} negative, {len(pairs)} in all")
        for name, positive in (("negatives", False), ("positives", True)):
            shown = ", ".join(f"{overlap(pairs, n, positive=positive):.0f}" for n in (1, 2, 3))
            print(f"  1-, 2-, 3-gram overlap of {name}: {shown}")
        if given.tokenizer:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(given.tokenizer)
            texts = list(dict.fromkeys([*pairs.text1, *pairs.text2]))
            lengths = [len(ids) for ids in tokenizer(texts)["input_ids"]]
            print(
                f"  longer than {LONG} tokens: {100 * np.mean(np.array(lengths) > LONG):.2f} % of the texts"
            )


if __name__ == "__main__":
    main()
