"""The output directory of a run: is it new, interrupted, or finished; and its checkpoints.

What a run notes for itself lies in a hidden folder, since users publish the rest of the directory.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_data.locking import LOCK_NAME
from angle_train.recipe import changed_parts

Status = Literal["new", "interrupted", "finished"]
log = logging.getLogger("angle.fit")

HIDDEN = ".angle"
"""The folder in an output directory that holds the run's state and the lock."""

_STATE_NAME = "fit_state.json"  # earlier releases had it in the directory itself
_STEP = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Where one run writes.

    Attributes:
        path: The directory.
        fingerprint: What decides the run (recipe, data, backbone), as texts by part, see
            `recipe.changed_parts`.
    """

    path: Path
    fingerprint: Mapping[str, str]

    @property
    def checkpoints(self) -> Path:
        """Directory of the checkpoints; gone when the run is finished."""
        return self.path / "checkpoints"

    def status(self, *, overwrite: bool) -> Status:
        """Return how far an earlier run with the same fingerprint got; changes nothing.

        Args:
            overwrite: Whether `claim` may delete an earlier run: then there is none to go on with, unless
                that began with `overwrite` too and is this very run, cut off.

        Raises:
            InputError: The directory holds something else, or a run that differs.
        """
        check_out(self.path)
        if not self._state_file.is_file():
            if (self.path / _STATE_NAME).is_file() and not overwrite:
                raise InputError(
                    f"--out {self.path} holds a run of an earlier release; "
                    "give another directory, or --overwrite to replace it"
                )
            return "new"
        if overwrite and not self._goes_on():
            return "new"
        state = self._state()
        if state is None:
            raise InputError(f"{self._state_file} is damaged; run again with --overwrite")
        finished, changed = (
            state["status"] == "finished",
            changed_parts(state["fingerprint"], self.fingerprint),
        )
        if not finished and self._complete_checkpoint() is None:
            return "new"
        if changed:
            raise InputError(
                f"--out {self.path} holds a run with different {', '.join(changed)}; "
                "give another directory, or --overwrite to replace that run"
            )
        return "finished" if finished else "interrupted"

    def claim(self, status: Status, *, overwrite: bool) -> Path | None:
        """Take the directory for a run of that status; return the checkpoint to go on from, if any.

        Only with `overwrite` is anything but checkpoints deleted.
        """
        goes_on, there = self._goes_on(), _holds_run(self.path)
        if goes_on or not overwrite:
            self._tell_damaged()
        if status == "new":
            shutil.rmtree(self.checkpoints, ignore_errors=True)
        if overwrite and not goes_on:
            # First what could be taken for this run's own, then the note that it is under way, then the rest.
            shutil.rmtree(self.folds, ignore_errors=True)
        self._write("interrupted", overwrite=overwrite or goes_on)
        if overwrite and there and not goes_on:
            for item in self.path.iterdir():
                if item.name == HIDDEN:  # the caller holds the lock
                    continue
                if item.is_dir():
                    shutil.rmtree(item)
                else:
                    item.unlink()
        last = self._complete_checkpoint()
        for path in self.checkpoints.glob("checkpoint-*"):
            # Cut off while being written, or damaged: the trainer must not find it.
            if not _is_usable(path):
                shutil.rmtree(path)
        return last

    def finish(self) -> None:
        """Mark the run as finished and delete its checkpoints."""
        self._write("finished", overwrite=False)
        self.tidy()

    def tidy(self) -> None:
        """Delete what a finished run has no use for, also where it was cut off doing so."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        shutil.rmtree(self.folds, ignore_errors=True)

    @property
    def folds(self) -> Path:
        """Directory of the runs that leave a part of the pairs out; gone when the run is finished."""
        return self.path / "folds"

    @property
    def _state_file(self) -> Path:
        return self.path / HIDDEN / _STATE_NAME

    def _complete_checkpoint(self) -> Path | None:
        """Return the newest checkpoint that was written to its end and is not damaged."""
        return next((path for path in self._checkpoints() if _is_usable(path)), None)

    def _checkpoints(self) -> list[Path]:
        """Return the directories of all checkpoints, the newest first."""
        found = [(int(m[1]), p) for p in self.checkpoints.glob("*") if (m := _STEP.fullmatch(p.name))]
        return [path for _, path in sorted(found, reverse=True)]

    def _tell_damaged(self) -> None:
        """Warn of checkpoints that were written to their end and cannot be gone on from all the same."""
        damaged = [path for path in self._checkpoints() if _trainer_state(path) and not _is_usable(path)]
        if damaged:
            last = self._complete_checkpoint()
            names = ", ".join(path.name for path in damaged)
            onwards = f"going on from {last.name}" if last else "the training starts again"
            log.warning("warning: %s: damaged, not used; %s", names, onwards)

    def _state(self) -> dict[str, Any] | None:
        """Return what `_write` wrote; None if that is damaged or not there."""
        try:
            state: dict[str, Any] = json.loads(self._state_file.read_text(encoding="utf-8"))
            whole = isinstance(state["status"], str) and isinstance(state["fingerprint"], dict)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return state if whole else None

    def _goes_on(self) -> bool:
        """Return whether the directory holds this very run, begun with `overwrite` and cut off."""
        state = self._state()
        return (
            state is not None
            and state["status"] == "interrupted"
            and state.get("overwrite", False)
            and not changed_parts(state["fingerprint"], self.fingerprint)
        )

    def _write(self, status: Status, *, overwrite: bool) -> None:
        state = {"status": status, "fingerprint": dict(self.fingerprint), "overwrite": overwrite}
        with replace_file(self._state_file) as stream:
            json.dump(state, stream, indent=1)


def check_out(path: Path) -> None:
    """Check that a run may be written to `path`: there is nothing yet, or an earlier run.

    Raises:
        InputError: It is a file, or holds something else.
    """
    if path.is_file():
        raise InputError(f"--out {path} is a file; give a directory")
    if _holds_run(path) or not path.is_dir():
        return
    if any(item.name not in (HIDDEN, LOCK_NAME) for item in path.iterdir()):  # an earlier release locked here
        raise InputError(f"--out {path} is not empty and holds no earlier run; give another one")


def _holds_run(path: Path) -> bool:
    return (path / HIDDEN / _STATE_NAME).is_file() or (path / _STATE_NAME).is_file()


def _is_usable(checkpoint: Path) -> bool:
    """Return whether a run can go on from a checkpoint: it and the best one until then are whole."""
    state = _trainer_state(checkpoint)
    if state is None or not _is_whole(checkpoint):
        return False
    best = state.get("best_global_step")
    return best in (None, state.get("global_step")) or _is_whole(checkpoint.with_name(f"checkpoint-{best}"))


def _trainer_state(checkpoint: Path) -> dict[str, Any] | None:
    """Return what the trainer notes in the last file of a checkpoint; None if it did not get there."""
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return state if isinstance(state, dict) else None


def _is_whole(checkpoint: Path) -> bool:
    """Return whether a checkpoint is there and none of its large files is cut off.

    Quickly: a safetensors file begins with how long it is, and torch's own are zip files, which end with a
    list of what they hold.
    """
    from safetensors import SafetensorError, safe_open

    try:
        for path in checkpoint.rglob("*.safetensors"):
            with safe_open(path, framework="numpy"):
                pass
        for path in [*checkpoint.glob("*.pt"), *checkpoint.glob("*.pth")]:
            zipfile.ZipFile(path).close()
    except (SafetensorError, zipfile.BadZipFile, OSError):
        return False
    return checkpoint.is_dir()
