"""The output directory of a run or a grid: is it new, interrupted, or finished; and its checkpoints.

What a run notes for itself lies in a hidden folder, since users publish the rest of the directory.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.jsonl import write_json
from angle_train.recipe import changed_parts

Status = Literal["new", "interrupted", "finished"]
log = logging.getLogger("angle.fit")

HIDDEN = ".angle"
"""The folder in an output directory that holds the run's state and the lock."""

_STATE_NAME = "fit_state.json"
_STEP = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Where one run writes.

    Attributes:
        path: The directory.
        fingerprint: What decides the run (recipe, data, backbone), as texts by part, see
            `recipe.changed_parts`.
        files: Names of all that a grid writes here, and so may replace; a run of `fit`, with none named,
            takes the whole directory.
    """

    path: Path
    fingerprint: Mapping[str, str]
    files: Sequence[str] = ()

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
        state = self._state()
        if state and state.get("grid", self.trials.is_dir()) != bool(self.files):
            found, other = ("a run of fit", "the grid") if self.files else ("a grid", "the run")
            raise InputError(f"--out {self.path} holds {found}; give another directory to {other}")
        if not state or (overwrite and not self._goes_on()):
            return "new"
        finished = state["status"] == "finished"
        begun = finished or self._complete_checkpoint() is not None
        if not (begun or self.folds.is_dir() or self.trials.is_dir()):
            return "new"
        if changed := changed_parts(state["fingerprint"], self.fingerprint):
            raise InputError(
                f"--out {self.path} holds a run with different {', '.join(changed)}; "
                "give another directory, or --overwrite to replace that run"
            )
        return "finished" if finished else "interrupted" if begun else "new"

    def claim(self, status: Status, *, overwrite: bool) -> Path | None:
        """Take the directory for a run of that status; return the checkpoint to go on from, if any.

        Only with `overwrite` is anything but checkpoints deleted.
        """
        there, goes_on = bool(self._state()), self._goes_on()
        if status == "new":
            self._delete(self.checkpoints)
        if overwrite and not goes_on:
            # First what could be taken for this run's own, then the note that it is under way, then the rest.
            self._delete(self.folds)
            self._delete(self.trials)
        self._write("interrupted", overwrite=overwrite or goes_on)
        if overwrite and there and not goes_on:
            for item in self.path.iterdir():
                if item.name == HIDDEN or (self.files and item.name not in self.files):  # the lock is held
                    continue
                if item.is_dir():
                    shutil.rmtree(item)
                else:
                    item.unlink()
        for path in () if self.files else self.checkpoints.glob("checkpoint-*"):
            if not _is_complete(path):  # cut off while being written: the trainer must not find it
                shutil.rmtree(path)
        return self._complete_checkpoint()

    def finish(self) -> None:
        """Mark the run as finished and delete its checkpoints."""
        self._write("finished", overwrite=False)
        self.tidy()

    def tidy(self) -> None:
        """Delete what a finished run has no use for, also where it was cut off doing so."""
        self._delete(self.checkpoints)
        self._delete(self.folds)

    def _delete(self, folder: Path) -> None:
        """Delete a folder of the run's own, if it is there; beside a grid others may have that name."""
        if not self.files or folder.name in self.files:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def folds(self) -> Path:
        """Directory of the runs that leave a part of the pairs out; gone when the run is finished."""
        return self.path / "folds"

    @property
    def trials(self) -> Path:
        """Directory of the runs of a grid, kept when that is finished: more trials go on with them."""
        return self.path / "trials"

    @property
    def _state_file(self) -> Path:
        return self.path / HIDDEN / _STATE_NAME

    def _complete_checkpoint(self) -> Path | None:
        """Return the newest checkpoint that was written to its end; a grid has none of its own."""
        if self.files:
            return None
        found = [(int(m[1]), p) for p in self.checkpoints.glob("*") if (m := _STEP.fullmatch(p.name))]
        return next((path for _, path in sorted(found, reverse=True) if _is_complete(path)), None)

    def _state(self) -> dict[str, Any]:
        """Return what `_write` wrote, atomically; nothing if there is no run."""
        if not self._state_file.is_file():
            return {}
        state: dict[str, Any] = json.loads(self._state_file.read_text(encoding="utf-8"))
        return state

    def _goes_on(self) -> bool:
        """Return whether the directory holds this very run, begun with `overwrite` and cut off."""
        state = self._state()
        return bool(
            state.get("status") == "interrupted"
            and state.get("overwrite")
            and not changed_parts(state["fingerprint"], self.fingerprint)
        )

    def _write(self, status: Status, *, overwrite: bool) -> None:
        state = {"status": status, "fingerprint": dict(self.fingerprint), "overwrite": overwrite}
        state |= {"grid": True} if self.files else {}
        write_json(self._state_file, state, indent=1)


def check_out(path: Path) -> None:
    """Check that a run may be written to `path`: there is nothing yet, or an earlier run.

    Raises:
        InputError: It is a file, or holds something else.
    """
    if path.is_file():
        raise InputError(f"--out {path} is a file; give a directory")
    if not path.is_dir() or (path / HIDDEN / _STATE_NAME).is_file():
        return
    if any(item.name != HIDDEN for item in path.iterdir()):
        raise InputError(
            f"--out {path} is not empty and holds no earlier run to go on with; give another one"
        )


def _is_complete(checkpoint: Path) -> bool:
    """Return whether a checkpoint was written to its end, which is the trainer's own state."""
    try:
        return isinstance(json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False
