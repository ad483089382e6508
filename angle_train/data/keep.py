"""Texts that stay as the backbone has them, while or after pairs are learned.

They need no labels. Some of general text come with the toolkit. While pairs are learned the similarities
stay, and those among the user's own texts too; a distillation keeps the embeddings of others alone.
Imports no torch.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.resources import packaged_folder
from angle_data.text import counted, normalise, stable_hash, words
from angle_train.data.pairs import PairSet, name_of
from angle_train.data.sources import names_of, read_rows, text_columns, text_in

MOST = 5_000
"""So many texts of `--keep` at most, drawn by hash: beside pairs every text is compared with all others."""
FEWEST = 8
LEAST = 2_000
"""So many of the toolkit's texts stay in a distillation of few pairs; of more pairs as many as these have."""
_FOREIGN = 0.5  # of the words of English texts of many domains the toolkit's have 0.7 to 0.9, of German 0.3
_OWN = 2_000  # of the user's texts at most, so that general text is not lost among them
_GENERAL = ("texts.jsonl", "genres.jsonl", "long.jsonl", "answers.jsonl")
# For a distillation alone: kept beside pairs, they cost other text more than they bring (benchmarks/log).
_FURTHER = ("specialist.jsonl", "names.jsonl")

log = logging.getLogger("angle.fit")


@dataclass(frozen=True, slots=True)
class KeptTexts:
    """Distinct texts, whose order is by hash, and what they are called.

    Attributes:
        name: What reports call them.
        texts: The texts.
    """

    name: str
    texts: Sequence[str]

    @property
    def scale(self) -> str:
        """What reports say of their scores."""
        return "unlabelled"

    def __len__(self) -> int:
        return len(self.texts)

    def sha256(self) -> str:
        """Return a fingerprint of the texts."""
        return hashlib.sha256("\0".join(self.texts).encode()).hexdigest()


def load_to_keep(
    specs: Sequence[str],
    general: bool,
    own: Sequence[str],
    measured: Sequence[PairSet],
) -> KeptTexts | None:
    """Return the texts whose similarities are to stay; None where there are none.

    Args:
        specs: What to read, see `sources.read_rows`: at most `MOST` texts are kept, and scores
            are left alone.
        general: Whether the general texts that come with the toolkit and the `own` ones are kept too.
        own: Of the user, in the order in which they are taken.
        measured: Pairs whose texts are not kept: what measures is not to be learned.

    Raises:
        InputError: A row has no text, a file has none, or fewer than `FEWEST` texts are left.
    """
    if not (specs or general):
        return None
    measuring = _keys_of(measured)
    kept = _given(specs, measuring, "in data that measures (dev, test, guards)")
    counts = [f"{len(kept):,} of --keep"] if specs else []
    names = [*map(name_of, specs)]
    for name, texts in (("general text", general_texts()), ("your own texts", own[:_OWN])) if general else ():
        before = len(kept)
        kept |= _distinct(texts, measuring)
        counts.append(f"{len(kept) - before:,} of {name}")
        names.append(name)
    _refuse_too_few(kept, specs, "dev, test and guards")
    log.info("texts whose similarities are kept: %s", ", ".join(counts))
    return KeptTexts(" + ".join(names), [kept[key] for key in _by_hash(kept)])


def load_to_stay(
    specs: Sequence[str], general: bool, own: Collection[str], measured: Sequence[PairSet]
) -> KeptTexts | None:
    """Return the texts that a distillation lets stay as they are; None where there are none.

    Args:
        specs: As `load_to_keep`.
        general: Whether general texts that come with the toolkit stay too: as many as `own` has, drawn by
            hash, but at least `LEAST`. So few pairs do not cost the time of many.
        own: Those of the user's pairs, which are learned and so do not stay.
        measured: As `load_to_keep`.

    Raises:
        InputError: As `load_to_keep`.
    """
    if not (specs or general):
        return None
    learned = {normalise(text) for text in own}
    but = learned | _keys_of(measured)
    kept = _given(specs, but, "in data that trains or measures (pairs, dev, test, guards)")
    counts = [f"{len(kept):,} of --keep"] if specs else []
    if general:
        every = [*_distinct(_packaged((*_GENERAL, *_FURTHER)), but | kept.keys()).values()]
        drawn = sorted(every, key=stable_hash)[: max(len(learned), LEAST)]
        of_how_many = f" of {len(every):,}" if len(drawn) < len(every) else ""
        counts.append(f"{len(drawn):,}{of_how_many} of general text")
        kept |= _distinct(drawn, ())
    _refuse_too_few(kept, specs, "the pairs, dev, test and guards")
    log.info("texts that stay as the backbone embeds them: %s", ", ".join(counts))
    if general and _share_known(islice(own, _OWN), kept.values()) < _FOREIGN:
        log.warning(
            "warning: most words of your texts occur in none of those that stay as the backbone embeds them "
            "(the toolkit's are English); if yours are in another language, other text in it may get worse: "
            "--keep some"
        )
    names = [*map(name_of, specs), *(["general text"] if general else [])]
    return KeptTexts(" + ".join(names), sorted(kept.values(), key=stable_hash))


def _share_known(texts: Iterable[str], others: Iterable[str]) -> float:
    """Return which share of the words of a text occurs in others, too, in the mean of the texts."""
    known = frozenset[str]().union(*map(words, others))
    shares = [len(own & known) / len(own) for text in texts if (own := words(text))]
    return fmean(shares) if shares else 0.0


def _keys_of(sets: Iterable[PairSet]) -> set[str]:
    return {normalise(text) for pairs in sets for text in (*pairs.text1, *pairs.text2)}


def _given(specs: Sequence[str], but: Set[str], where: str) -> dict[str, str]:
    """Return the distinct texts of files that may be kept; those of `but` are left out, which are `where`."""
    given = {key: text for spec in specs for key, text in _of_file(spec, but, where).items()}
    if len(given) > MOST:
        log.warning("--keep: %s of %s distinct texts are kept, drawn by hash", f"{MOST:,}", f"{len(given):,}")
    return {key: given[key] for key in _by_hash(given)[:MOST]}


def _of_file(spec: str, but: Set[str], where: str) -> dict[str, str]:
    found = _distinct(_read(spec), ())
    if not found:
        raise InputError(f"--keep {spec} holds no texts; check the file, or leave it out")
    if left_out := len(found.keys() & but):
        log.warning("--keep %s: %s left out: %s", spec, counted(left_out, "text"), where)
    return _distinct(found.values(), but)


def _refuse_too_few(kept: Collection[str], specs: Sequence[str], outside: str) -> None:
    if len(kept) < FEWEST:
        raise InputError(
            f"--keep {' '.join(specs)}: {counted(len(kept), 'distinct text')} outside {outside}, "
            f"too few to keep; give at least {FEWEST}"
        )


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
