"""Data sets of the Hugging Face hub, with one line for all that can go wrong on the way there."""

from __future__ import annotations

import logging
import os
import re
from typing import Any

from angle_data.errors import InputError

TOKEN_REFUSED = "the hub refuses the access token (401); check HF_TOKEN, or log in with `hf auth login`"


def load_hub_dataset(
    dataset_id: str,
    split: str | None,
    *,
    config: str | None = None,
    revision: str | None = None,
    instead: str = "",
) -> Any:
    """Return a split of a data set on the hub, or all of them by name.

    Every split is downloaded in any case, once.

    Args:
        dataset_id: As `owner/name`.
        split: Which; none for all.
        config: Name of a part of it that has splits of its own.
        revision: Branch, tag or commit; default the newest.
        instead: What else the user can do, for the error.

    Raises:
        InputError: It cannot be loaded; says why, as far as that is known.
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
        raise InputError(f"hub:{dataset_id}{part} cannot be loaded: {_cause(error)}{instead}") from None


def _cause(error: Exception) -> str:
    """Return what went wrong in a few words, and what to check."""
    said = " ".join(str(error).split())
    reason = said.split(". ")[0][:200] or type(error).__name__
    if re.search(r"\b401 (Client Error|Unauthorized)", said):
        return TOKEN_REFUSED
    if isinstance(error, FileNotFoundError) and "data file" in reason:
        # The library looks for a folder of that name once the hub gave nothing that it can use.
        reason = "the hub has no such data set, or gave no answer that can be used"
    endpoint = os.environ.get("HF_ENDPOINT")
    if endpoint:
        return f"{reason}; check the id, the split, and HF_ENDPOINT, which is {endpoint}"
    return f"{reason}; check the id and the split, or that the hub can be reached"
