"""Pairs of general texts that are to keep the similarity that the backbone gives them.

Imports no torch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.text import counted, normalise, pair_key
from angle_train.data.leaks import without_pairs_of
from angle_train.data.pairs import KEPT, PairSet, name_of
from angle_train.data.sources import names_of, read_rows, text_columns, text_in
from angle_train.data.splits import RunData, together
from angle_train.recipe import ObjectiveConfig

log = logging.getLogger("angle.fit")


def load_to_keep(specs: Sequence[str], scored: Sequence[PairSet]) -> PairSet:
    """Load pairs to keep; their scores are 0 until the backbone gives them some (`run.score_pairs_to_keep`).

    What is learned of one domain changes all embeddings. Pairs of general text, which nobody has to label,
    are ranked among themselves, beside the labelled ones, and are no positives of anything: rehearsal with
    the model's own answers, as in Learning without Forgetting (https://arxiv.org/abs/1606.09282). Any scores
    in the files are left alone: `angle-data mine` writes pairs without. A pair counts once.

    Args:
        specs: What to read, see `sources.read_rows`.
        scored: Pairs that train or measure; of those that occur here too, their own scores count.

    Raises:
        InputError: A row has no two texts, or fewer than two pairs are left.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    total = 0
    for spec in specs:
        for place, row in read_rows(spec, "train"):
            names = text_columns(row)
            if names is None:
                raise InputError(
                    f"{place}: --keep needs pairs of texts, such as text1 and text2; found: {names_of(row)}; "
                    f"`angle-data mine --texts {spec} --out pairs.jsonl` makes pairs of single texts"
                )
            one, other = (text_in(row, name, place, blank=False) for name in names)
            found.setdefault(pair_key(one, other), (one, other))
            total += 1
    first, second = ([pair[end] for pair in found.values()] for end in (0, 1))
    pairs = PairSet(
        name=" + ".join(map(name_of, specs)),
        text1=first,
        text2=second,
        score=np.zeros(len(first)),
        weight=np.ones(len(first)),
        source_ids=[normalise(text) for text in first],
        scale="0-1, the backbone's cosines",
        supervision=[KEPT] * len(first),
    )
    pairs = without_pairs_of(pairs, scored)
    others = "; the others are training, dev or test pairs, or repeats" if len(pairs) < total else ""
    kept = f"{len(pairs):,} of {counted(total, 'pair')}"
    if len(pairs) < 2:
        raise InputError(f"--keep {' '.join(specs)}: only {kept} can be kept{others}; give at least two")
    log.info("%s: %s keep the similarity that the backbone gives them%s", pairs.name, kept, others)
    return pairs


def with_kept(
    data: RunData, kept: PairSet, similarity: NDArray[np.float64], objective: ObjectiveConfig
) -> RunData:
    """Return the data with the pairs to keep among what trains, scored by the backbone's `similarity`."""
    kept = replace(kept, score=similarity.clip(0.0, 1.0))
    others = together(data.others, kept, objective)
    return replace(data, kept=kept, others=others, train=together(others, data.human, objective))
