"""A teacher scores pairs without labels: its cosines are labels of their own kind, see `pairs.TEACHER`.

It scores once: the scores stay in the run's directory, so a run that goes on, or is opened again, does not
load the teacher. Scores on its own scale are compared with each other alone, by rank.

Source: similarities of examples as what is distilled, Park et al. 2019, https://arxiv.org/abs/1904.05068.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl, write_jsonl
from angle_data.text import counted
from angle_train.data.guards import near_and_far
from angle_train.data.pairs import TEACHER, PairSet
from angle_train.data.splits import LoadedPairs
from angle_train.data.teacher import Unscored, load_unscored
from angle_train.data.vectors import StoredVectors, is_vectors, vectors_identity
from angle_train.evaluation.similarity import cosine_blocks, cosine_rows, encoder_of, unit_rows
from angle_train.model.load import backbone_identity
from angle_train.options import FitOptions
from angle_train.training.processes import rank_zero
from angle_train.training.run_directory import HIDDEN
from angle_train.training.watch import disk_errors_in_one_line

log = logging.getLogger("angle.fit")

_NEAR = (0, 3, 20)  # ranks of the neighbours that a text stands with, and it stands with one anywhere


def with_teacher(given: LoadedPairs, options: FitOptions, searched: Sequence[PairSet] = ()) -> LoadedPairs:
    """Return the pairs of a run with those that its teacher scores, if it has one.

    It scores no dev or test pair, nor one of the `searched` pairs of searches, and pairs are drawn among none
    of their texts. Pairs that the user gives may hold such a text beside another.

    Raises:
        InputError: There is nothing to score, the teacher cannot be used, or has no vector for a text.
    """
    if options.teacher is None:
        return given
    labelled = [pairs for pairs in (given.others, given.human) if pairs is not None]
    unscored = load_unscored(options.teacher_pairs or (), labelled, [*given.dev, *given.test, *searched])
    if not (labelled or given.dev or options.dev_search):
        log.warning(
            "warning: no dev pairs: of the pairs that the teacher scores, a tenth chooses the checkpoint; "
            "figures on them say how near the model comes to the teacher, not what people would say; give "
            "--dev"
        )
    folder = options.out / HIDDEN / "teacher"
    return given._replace(taught=taught_pairs(unscored, options.teacher, folder, options.device))


def teacher_identity(teacher: str) -> str:
    """Return a name for a teacher that is the same on every machine, see `backbone_identity`."""
    return vectors_identity(teacher) if is_vectors(teacher) else backbone_identity(teacher)


@rank_zero
def taught_pairs(unscored: Unscored, teacher: str, folder: Path, device: str | None = None) -> PairSet:
    """Return pairs with the teacher's cosines, brought to 0..1, as scores; `folder` keeps them."""
    identity = teacher_identity(teacher)
    key = hashlib.sha256(f"{identity}\0{unscored.sha256()}".encode()).hexdigest()[:16]
    file = folder / f"{key}.jsonl"
    if not file.is_file():
        with disk_errors_in_one_line(folder):
            write_jsonl(file, _scored(unscored, teacher, device))
    rows = [row for _, row in read_jsonl(file)]
    name = identity.split("@")[0].rsplit("/", 1)[-1]
    score = np.array([row["score"] for row in rows])
    if np.ptp(score) == 0:
        raise InputError(f"--teacher {teacher} gives all {len(rows)} pairs one score: it tells nothing apart")
    return PairSet(
        name=f"{unscored.name} by {name}",
        text1=[row["text1"] for row in rows],
        text2=[row["text2"] for row in rows],
        score=score,
        weight=np.ones(len(rows)),
        scale=f"cosines of {name}",
        supervision=[TEACHER] * len(rows),
    )


def _scored(unscored: Unscored, teacher: str, device: str | None) -> list[dict[str, Any]]:
    """Have the teacher score the pairs, and those that are drawn among the texts."""
    encode = encoder_of(teacher, device)
    if isinstance(encode, StoredVectors):
        encode = replace(encode, instead="give --teacher-pairs whose texts it has")
    pairs = list(unscored.pairs)
    texts = list(unscored.texts)
    log.info("the teacher %s scores %s", teacher, _what(pairs, texts))
    if len(texts) > 1:
        pairs += pairs_among(texts, encode(texts))
    first, second = map(list, zip(*pairs, strict=True))
    cosines = cosine_rows(*np.split(encode([*first, *second]), 2))
    return [
        {"text1": one, "text2": other, "score": float((1 + cosine) / 2)}
        for one, other, cosine in zip(first, second, cosines, strict=True)
    ]


def _what(pairs: Sequence[tuple[str, str]], texts: Sequence[str]) -> str:
    found = [counted(len(pairs), "pair")] if pairs else []
    return " and ".join([*found, *([f"pairs drawn among {counted(len(texts), 'text')}"] if texts else [])])


def pairs_among(texts: Sequence[str], embeddings: NDArray[np.float32]) -> list[tuple[str, str]]:
    """Return pairs among N texts, none twice: of each with a few of its neighbours, and with any other.

    Args:
        texts: In an order that says nothing, as by hash.
        embeddings: The teacher's (N, D), which say what is near.
    """
    unit = unit_rows(embeddings)

    def others() -> Iterator[list[int]]:
        for rows, cosines in cosine_blocks(unit, unit):
            places = np.arange(len(cosines))
            cosines[places, rows.start + places] = -np.inf  # a text is no neighbour of its own: it comes last
            yield from np.argsort(-cosines, axis=1, kind="stable")[:, :-1].tolist()

    return [(texts[one], texts[other]) for one, other in near_and_far(others(), _NEAR)]
