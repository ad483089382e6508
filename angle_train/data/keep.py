"""Texts among which the similarities stay as the backbone has them, while pairs are learned.

They need no labels. Some of general text come with the toolkit, and the user's own texts are among them.
Imports no torch.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.resources import packaged_folder
from angle_data.text import counted, normalise, stable_hash
from angle_train.data.pairs import PairSet, name_of
from angle_train.data.sources import names_of, read_rows, text_columns, text_in

MOST = 5_000
"""At most so many texts of `--keep` are kept, drawn by hash: every text is compared with all others."""
FEWEST = 8
_OWN = 2_000  # of the user's texts at most, so that general text is not lost among them
_GENERAL = ("texts.jsonl", "genres.jsonl", "long.jsonl", "answers.jsonl")
# For distillation alone: kept beside pairs, they cost other text more than they bring (benchmarks/log).
_FURTHER = ("specialist.jsonl", "names.jsonl")

log = logging.getLogger("angle.fit")


@dataclass(frozen=True, slots=True)
class KeptTexts:
    """Distinct texts, whose order is by hash, and what they are called.

    Attributes:
        name: What reports call them.
        texts: Those that keep their similarities while pairs are learned.
        further: Those that only a distillation keeps, see `training.distillation`.
        given: Those of `texts` that `--keep` names.
    """

    name: str
    texts: Sequence[str]
    further: Sequence[str] = ()
    given: Sequence[str] = ()

    @property
    def scale(self) -> str:
        """What reports say of their scores."""
        return "unlabelled"

    def __len__(self) -> int:
        return len(self.texts)

    def sha256(self) -> str:
        """Return a fingerprint of the texts."""
        return hashlib.sha256("\0".join([*self.texts, *self.further]).encode()).hexdigest()


def load_to_keep(
    specs: Sequence[str],
    general: bool,
    own: Sequence[str],
    measured: Sequence[PairSet],
    *,
    further: bool = False,
) -> KeptTexts | None:
    """Return the texts whose similarities are to stay; None where there are none.

    Args:
        specs: What to read, see `sources.read_rows`: at most `MOST` texts are kept, and scores
            are left alone.
        general: Whether the general texts that come with the toolkit and the `own` ones are kept too.
        own: Of the user, in the order in which they are taken.
        measured: Pairs whose texts are not kept: what measures is not to be learned.
        further: Whether more general texts come with them, for a distillation.

    Raises:
        InputError: A row has no text, a file has none, or fewer than `FEWEST` texts are left.
    """
    if not (specs or general):
        return None
    measuring = {normalise(text) for pairs in measured for text in (*pairs.text1, *pairs.text2)}
    given = {key: text for spec in specs for key, text in _given(spec, measuring).items()}
    kept = {key: given[key] for key in _by_hash(given)[:MOST]}
    if len(kept) < len(given):
        log.warning("--keep: %s of %s distinct texts are kept, drawn by hash", f"{MOST:,}", f"{len(given):,}")
    counts = [f"{len(kept):,} of --keep"] if specs else []
    names = [*map(name_of, specs)]
    for name, texts in (("general text", general_texts()), ("your own texts", own[:_OWN])) if general else ():
        before = len(kept)
        kept |= _distinct(texts, measuring)
        counts.append(f"{len(kept) - before:,} of {name}")
        names.append(name)
    if len(kept) < FEWEST:
        raise InputError(
            f"--keep {' '.join(specs)}: {counted(len(kept), 'distinct text')} outside dev, test and guards, "
            f"too few to keep; give at least {FEWEST}"
        )
    log.info("texts whose similarities are kept: %s", ", ".join(counts))
    more = _distinct(_packaged(_FURTHER), measuring | kept.keys()) if general and further else {}
    return KeptTexts(
        " + ".join(names),
        texts=[kept[key] for key in _by_hash(kept)],
        further=[more[key] for key in _by_hash(more)],
        given=[kept[key] for key in _by_hash(given)[:MOST]],
    )


def _given(spec: str, measuring: Set[str]) -> dict[str, str]:
    """Return the distinct texts of a file that may be kept."""
    found = _distinct(_read(spec), ())
    if not found:
        raise InputError(f"--keep {spec} holds no texts; check the file, or leave it out")
    if left_out := len(found.keys() & measuring):
        said = counted(left_out, "text")
        log.warning("--keep %s: %s left out: in data that measures (dev, test, guards)", spec, said)
    return _distinct(found.values(), measuring)


def _distinct(texts: Iterable[str], but: Collection[str]) -> dict[str, str]:
    return {key: text for text in texts if (key := normalise(text)) not in but}


def _by_hash(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: (stable_hash(key), key))


def _read(spec: str) -> Iterable[str]:
    for place, row in read_rows(spec, "train", texts=True):
        names = ("text",) if "text" in row else text_columns(row)
        if names is None:
            raise InputError(
                f"{place}: --keep needs texts (text) or pairs of them, such as text1 and text2; found: "
                f"{names_of(row)}"
            )
        yield from (text_in(row, name, place, blank=False) for name in names)


def general_texts() -> list[str]:
    """Return the texts of many genres that come with the toolkit, written by a language model."""
    return _packaged(_GENERAL)


def _packaged(names: Iterable[str]) -> list[str]:
    """Return the texts of files that come with the toolkit."""
    folder: Path = packaged_folder("general")
    return [row["text"] for name in names for _, row in read_jsonl(folder / name)]
