"""A tuned model to the Hugging Face hub, with its card and without the reports, which quote pairs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public, but loaded late

from angle_data.errors import InputError
from angle_train.training.processes import rank_zero

log = logging.getLogger("angle.fit")

# Everything of `fit --out` that quotes the user's texts, or is for resuming.
_STAYS = [".angle/*", "checkpoints/*", "folds/*", "tensorboard/*", "report.html", "report.json"]


@rank_zero
def check_repository(name: str) -> None:
    """Check that a model can be pushed: before a long run, not after it. Makes nothing.

    Raises:
        InputError: The name is none, nobody is logged in, or the hub cannot be reached or refuses.
    """
    owner, slash, rest = name.partition("/")
    with _one_line(name):
        validate_repo_id(name)
        user = HfApi().whoami()
    mine = [str(user.get("name")), *(str(one.get("name")) for one in user.get("orgs", ()))]
    if not slash or not rest:
        raise InputError(f"--push-to-hub {name}: no name of a repository; give NAME/MODEL")
    if owner not in mine:
        raise InputError(
            f"--push-to-hub {name}: you are logged in as {mine[0]}, who may write as {', '.join(mine)}; "
            "give one of these in place of NAME"
        )


@rank_zero
def push(folder: Path, name: str, kept: str) -> None:
    """Upload a tuned model to its repository, a private one unless it is there.

    Where the run kept the backbone there is nothing to upload, and no repository is made.

    Raises:
        InputError: The hub cannot be reached or refuses it; the model stays in `folder`.
    """
    if kept == "backbone":
        log.warning("warning: the run kept the backbone: nothing is pushed to %s", name)
        return
    with _one_line(name, f"; the model is in {folder}: the same command pushes it again"):
        HfApi().create_repo(name, private=True, exist_ok=True)
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
