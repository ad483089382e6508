"""Folders that hold a data set: the names of its splits, and the files of each. Reads names alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from angle_data.errors import InputError
from angle_data.jsonl import loads

_SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?")
_NAMED = re.compile(r"(train|training|validation|valid|val|dev|test|testing)(?![a-z])")
_USUAL = {
    "training": "train",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "testing": "test",
}
_TABLES = (".jsonl", ".json", ".csv", ".tsv")
_SAVED, _SAVED_SPLITS = "state.json", "dataset_dict.json"  # what `datasets` writes beside its arrow files


def splits_of(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Return the splits of a data set folder, sorted by name, and what holds the rows of each, in order.

    Known are, in this order: a run of `llm-score`, whose graded pairs are all; a folder that `save_to_disk`
    of `datasets` wrote, where folders hold the rows; parquet files in `dataset/data`, `data` or the folder
    itself; tables of other kinds there that are named as splits (`train.csv`); parquet files in folders below
    that are named as splits. The names of files say their split (`train-00000-of-00001.parquet`,
    `test.parquet`). If none does, all are one data set, whose split is "".

    Raises:
        InputError: The folder holds none of these; says what it is, if that is known.
    """
    if graded := file_of_grades(folder):
        return {"": (graded,)}
    if found := find_splits(folder):
        return found
    if (folder / "candidates.jsonl").is_file():
        made = f"`angle-data ensemble {shlex.quote(str(folder))} --out pairs` makes pairs"
        raise InputError(f"{folder} holds sentences of llm-label; {made}")
    refuse_stopped(folder)
    raise InputError(
        f"{folder} is not a dataset directory: it has neither dataset/data nor data, no parquet files and "
        "nothing that `save_to_disk` wrote; give a file?"
    )


def file_of_grades(folder: Path) -> Path | None:
    """Return the file of the graded pairs of a run of `llm-score`; None where a folder is no such run.

    Other files in a run, such as a sheet `dev.csv` that was drawn from it, make it no data set.
    """
    file = folder / "scores.jsonl"
    if not file.is_file() or (folder / "candidates.jsonl").is_file():
        return None
    return file if (folder / "run.json").is_file() or not find_splits(folder) else None


def refuse_stopped(folder: Path) -> None:
    """Raise an InputError if a folder is a run that has a journal and no results."""
    if (folder / "journal.jsonl").is_file():
        raise InputError(f"{folder} is a run that stopped before writing its results; run its command again")


def split_files(folder: Path, split: str | None) -> tuple[Path, ...]:
    """Return what holds the rows of one split; of a folder without named splits, of all.

    None is for those who want texts or pairs of any kind: the only split, or else `train`.
    """
    found = splits_of(folder)
    if "" in found:
        return found[""]
    wanted = split or (next(iter(found)) if len(found) == 1 else "train")
    if wanted not in found:
        raise InputError(
            f"{folder} has no split {wanted!r}; splits found: {', '.join(found)}; "
            "to use another one, give its file in place of the folder"
        )
    return found[wanted]


def find_splits(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Return what `splits_of` does, but nothing where a folder holds no data set."""
    if saved := _saved(folder):
        return saved
    homes = (folder / "dataset" / "data", folder / "data", folder)
    return next((found for home in homes if (found := _by_split(home))), {})


def split_of(file: Path) -> str:
    """Return the split that the name of a file or folder says, or "" if it says none."""
    name = file.name.removesuffix(".gz")
    stem = name.removesuffix(Path(name).suffix)
    shard = _SHARD.fullmatch(stem)
    if shard and shard[1] not in ("part", "data"):
        return shard[1]
    named = _NAMED.match(stem.lower())
    return _USUAL.get(named[1], named[1]) if named else ""


def _saved(folder: Path) -> dict[str, tuple[Path, ...]]:
    if (folder / _SAVED).is_file():
        return {"": (folder,)}
    try:
        content = loads((folder / _SAVED_SPLITS).read_text(encoding="utf-8"))
        return {name: (folder / name,) for name in sorted(content["splits"])}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(f"{folder / _SAVED_SPLITS} is damaged; save the data set again") from None


def _by_split(home: Path) -> dict[str, tuple[Path, ...]]:
    shards = sorted(home.glob("*.parquet"))
    tables = [file for file in sorted(home.glob("*")) if _is_table(file) and split_of(file)]
    below = sorted(home.glob("*/*.parquet"))
    if shards or tables:
        return _grouped((split_of(file), file) for file in shards or tables)
    return _grouped((split_of(file.parent), file) for file in below if split_of(file.parent))


def _is_table(file: Path) -> bool:
    return file.name.removesuffix(".gz").endswith(_TABLES) and file.is_file()


def _grouped(files: Iterable[tuple[str, Path]]) -> dict[str, tuple[Path, ...]]:
    found: dict[str, list[Path]] = {}
    for split, file in files:
        found.setdefault(split, []).append(file)
    if len(found) > 1 and (rest := found.pop("", None)):
        for file in rest:  # beside named splits a file is a split of its own: nothing is left out
            found.setdefault(file.stem, []).append(file)
    return {split: tuple(found[split]) for split in sorted(found)}
