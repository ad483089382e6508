"""A tuned model to the Hugging Face hub, with its card and without the reports, which quote pairs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError

from angle_data.errors import InputError
from angle_train.training.processes import rank_zero

log = logging.getLogger("angle.fit")

# Everything of `fit --out` that quotes the user's texts, or is for resuming.
_STAYS = [".angle/*", "checkpoints/*", "folds/*", "tensorboard/*", "report.html", "report.json"]


@rank_zero
def make_repository(name: str) -> None:
    """Make a private repository for a model unless there is one: before a long run, not after it.

    Raises:
        InputError: The name is none, or the hub cannot be reached or refuses it.
    """
    with _one_line(name):
        HfApi().create_repo(name, private=True, exist_ok=True)


@rank_zero
def push(folder: Path, name: str, kept: str) -> None:
    """Upload a tuned model; where the run kept the backbone, there is nothing to upload.

    Raises:
        InputError: The hub cannot be reached or refuses it; the model stays in `folder`.
    """
    if kept == "backbone":
        log.warning("warning: the run kept the backbone: nothing is pushed to %s", name)
        return
    with _one_line(name, f"; the model is in {folder}: the same command pushes it again"):
        HfApi().upload_folder(repo_id=name, folder_path=folder, ignore_patterns=_STAYS)
    log.info("pushed to %s", name)


@contextmanager
def _one_line(name: str, more: str = "") -> Iterator[None]:
    """Turn what the hub raises into an InputError."""
    try:
        yield
    except HFValidationError:
        raise InputError(f"--push-to-hub {name}: no name of a repository; give NAME/MODEL{more}") from None
    except Exception as error:  # noqa: BLE001 - the hub's HTTP library, and so its errors, differ
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"--push-to-hub {name}: {reason}; log in with `hf auth login`, or check the name{more}"
        ) from None
