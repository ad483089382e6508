"""Data sets of the Hugging Face hub, named `hub:ID`; `datasets` downloads and keeps them."""

from __future__ import annotations

import logging
import re
from typing import Any

from angle_data.errors import InputError

HUB_PREFIX = "hub:"
TOKEN_REFUSED = "the hub refuses the access token (401); check HF_TOKEN, or log in with `hf auth login`"


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
