"""What a teacher is to score: pairs without labels, or texts among which pairs are drawn.

A teacher is a stronger embedding model, whose cosines train the model. `training.teacher` has it score these.
Imports no torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from angle_data.errors import InputError
from angle_data.text import counted, normalise, pair_key, stable_hash
from angle_train.data.pairs import PairSet, name_of
from angle_train.data.sources import names_of, read_rows, text_columns, text_in

MOST_TEXTS = 2_000
"""Pairs are drawn among so many texts at most, taken by hash: `angle-data mine` draws more."""
FEWEST_TEXTS = 8


@dataclass(frozen=True, slots=True)
class Unscored:
    """Distinct pairs, and distinct texts among which more are to be drawn; `name` is for reports."""

    name: str
    pairs: Sequence[tuple[str, str]]
    texts: Sequence[str]

    def sha256(self) -> str:
        """Return a fingerprint of pairs and texts in their order."""
        parts = ["\0".join(pair) for pair in self.pairs]
        return hashlib.sha256("\n".join([*parts, "", *self.texts]).encode()).hexdigest()


def load_unscored(specs: Sequence[str], labelled: Sequence[PairSet], measured: Sequence[PairSet]) -> Unscored:
    """Return what a teacher is to score: no pair that measures, and nothing drawn from a text that does.

    Args:
        specs: What to read, see `sources.read_rows`. Scores are left alone.
        labelled: Training pairs: they have labels, so those among the pairs of `specs` are left out. Without
            `specs`, pairs are drawn among their first texts.
        measured: Dev and test pairs.

    Raises:
        InputError: A row has no text, or there is too little to score.
    """
    pairs, texts = _read(specs) if specs else ([], [text for own in labelled for text in own.text1])
    names = " + ".join(map(name_of, specs)) if specs else "your own texts"
    sets = [*labelled, *measured]
    known = {pair_key(a, b) for own in sets for a, b in zip(own.text1, own.text2, strict=True)}
    taken = {normalise(text) for own in measured for text in (*own.text1, *own.text2)}
    distinct_pairs = {pair_key(*pair): pair for pair in pairs if pair_key(*pair) not in known}
    distinct = {key: text for text in texts if (key := normalise(text)) not in taken}
    order = sorted(distinct, key=lambda key: (stable_hash(key), key))[:MOST_TEXTS]
    if len(distinct_pairs) < 2 and len(order) < FEWEST_TEXTS:
        said = f"--teacher-pairs {' '.join(specs)}: " if specs else ""
        raise InputError(
            f"{said}the teacher has too little to score: {counted(len(distinct_pairs), 'pair')} and "
            f"{counted(len(order), 'text')} that neither have labels nor measure; give at least 2 pairs "
            f"or {FEWEST_TEXTS} texts with --teacher-pairs (angle-data mine makes pairs)"
        )
    return Unscored(names, list(distinct_pairs.values()), [distinct[key] for key in order])


def _read(specs: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    pairs: list[tuple[str, str]] = []
    texts: list[str] = []
    for place, row in (item for spec in specs for item in read_rows(spec, "train", texts=True)):
        names = text_columns(row)
        if names is not None:
            first, second = (text_in(row, name, place, blank=False) for name in names)
            pairs.append((first, second))
        elif "text" in row:
            texts.append(text_in(row, "text", place, blank=False))
        else:
            raise InputError(
                f"{place}: --teacher-pairs needs pairs, such as text1 and text2, or texts (text); found: "
                f"{names_of(row)}"
            )
    return pairs, texts
