"""Rows of labelled pairs from files, dataset directories and the Hugging Face hub, each with its place.

A source is a .jsonl[.gz], .csv[.gz], .tsv[.gz] or .parquet file, a dataset directory, or `hub:ID`.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.records import PURPOSES
from angle_data.tables import TABLE_KINDS, Rows, is_table, read_table

log = logging.getLogger("angle.pairs")

HUB_PREFIX = "hub:"
TOKEN_REFUSED = "the hub refuses the access token (401); check HF_TOKEN, or log in with `hf auth login`"


def read_rows(spec: str, split: str) -> Rows:
    """Yield `(place, row)` of every row, where place is `file:line` or `file: row N`.

    Args:
        spec: A file, a dataset directory (`DIR` or `DIR/dataset` holding `data/SPLIT-*.parquet`), or
            `hub:ID` for a dataset on the Hugging Face hub.
        split: Which split of a directory or hub dataset; files have none.

    Raises:
        InputError: The source is missing, damaged, of an unknown kind, or lacks the split.
    """
    check_source(spec)
    path = Path(spec)
    if spec.startswith(HUB_PREFIX):
        log.info("loading %s (split %s) from the hub", spec.removeprefix(HUB_PREFIX), split)
        rows = load_hub_dataset(spec.removeprefix(HUB_PREFIX), split)
        return ((f"{spec}: row {number}", dict(row)) for number, row in enumerate(rows, start=1))
    if not path.is_dir():
        return read_table(path)
    files = sorted(_data_directory(path).glob(f"{split}-*.parquet"))
    if not files:
        found = ", ".join(dataset_splits(spec)) or "none"
        raise InputError(f"{path} has no split {split!r}; splits found: {found}")
    return (item for file in files for item in read_table(file))


def check_source(spec: str) -> None:
    """Raise an InputError unless a source exists and is of a known kind; reads nothing, asks no hub."""
    path = Path(spec)
    if spec.startswith(HUB_PREFIX):
        return
    if path.is_dir():
        _data_directory(path)
    elif not path.exists():
        hub = "" if is_table(path) else ", or write hub:ID for a dataset on the hub"
        raise InputError(f"{path} does not exist; check the path{hub}")
    elif not is_table(path):
        mined = f"`angle-data mine --texts {shlex.quote(spec)} --out pairs.jsonl` makes pairs without scores"
        hint = f"; {mined}, for fit --keep" if spec.endswith((".txt", ".txt.gz")) else ""
        raise InputError(f"{path}: unknown kind of file; give {TABLE_KINDS}{hint}")


def is_dataset(spec: str) -> bool:
    """Return whether a source has splits: whether it is a directory or a hub dataset."""
    return spec.startswith(HUB_PREFIX) or Path(spec).is_dir()


def dataset_splits(spec: str) -> list[str]:
    """Return the names of the splits of a dataset directory or hub dataset, sorted; none for a file."""
    if spec.startswith(HUB_PREFIX):
        return sorted(load_hub_dataset(spec.removeprefix(HUB_PREFIX), None))
    if not Path(spec).is_dir():
        return []
    return sorted({file.name.split("-")[0] for file in _data_directory(Path(spec)).glob("*-*.parquet")})


def stated_purpose(spec: str) -> str | None:
    """Return what a source says its pairs are for, see `records.PURPOSES`; None if it does not.

    `angle-data ensemble --purpose` writes it into every row, and the first one is read: files may be large.
    """
    splits = dataset_splits(spec) or ["train"]
    _, row = next(iter(read_rows(spec, "train" if "train" in splits else splits[0])), ("", {}))
    purpose = row.get("purpose")
    return purpose if purpose in PURPOSES else None


def labels_usd(spec: str) -> float:
    """Return what the labels of a dataset directory cost, by the report beside it; 0 if that is not known.

    That is what annotators' runs and graders' together cost: a part of it would understate them.
    """
    if spec.startswith(HUB_PREFIX) or not Path(spec).is_dir():
        return 0.0
    try:
        text = (_data_directory(Path(spec)).parent.parent / "report.json").read_text(encoding="utf-8")
        report = json.loads(text)
        paid = [*report["runs"], *([report["scores"]] if "scores" in report else [])]
        costs = [run["usd"] for run in paid]
    except (OSError, ValueError, LookupError, TypeError):
        return 0.0
    return float(sum(costs))


def _data_directory(path: Path) -> Path:
    for candidate in (path / "dataset" / "data", path / "data"):
        if candidate.is_dir():
            return candidate
    if (path / "candidates.jsonl").is_file():
        made = f"`angle-data ensemble {shlex.quote(str(path))} --out pairs` makes pairs"
        raise InputError(f"{path} holds sentences of llm-label; {made}")
    raise InputError(f"{path} is no dataset directory: it has neither dataset/data nor data; give a file?")


def load_hub_dataset(
    dataset_id: str,
    split: str | None,
    *,
    config: str | None = None,
    revision: str | None = None,
    instead: str = "",
) -> Any:
    """Return a split of a dataset on the hub, or all splits by name.

    The library downloads every split in any case, once. What cannot be loaded is an InputError: why, as far
    as that is known, and what the user can do `instead`. `config` names a part that has splits of its own,
    `revision` a branch, tag or commit.
    """
    from datasets import load_dataset
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    # It warns of every attempt, and tries for half a minute before the error below.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        return load_dataset(dataset_id, config, split=split, revision=revision)
    except Exception as error:  # noqa: BLE001 - the hub's HTTP library has errors of its own kinds
        part = f" (split {split})" if split else ""
        message = " ".join(str(error).split())
        reason = message.split(". ")[0][:200] or type(error).__name__
        cause = (
            f"{reason}; check the id, the split, HF_ENDPOINT if it is set, and that the hub can be reached"
        )
        if re.search(r"\b401 (Client Error|Unauthorized)", message):
            cause = TOKEN_REFUSED
        raise InputError(f"hub:{dataset_id}{part} cannot be loaded: {cause}{instead}") from None
