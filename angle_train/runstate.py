"""The output directory of a run: is it new, ours to go on with, or finished; and its checkpoints.

Knows what a checkpoint looks like from outside, not what is in it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_data.locking import LOCK_NAME

__all__ = ["RunDirectory", "Status"]

Status = Literal["new", "interrupted", "finished"]
_STEP = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Where one run writes.

    Attributes:
        path: The directory.
        fingerprint: What decides the run (recipe, data, backbone), as texts by part.
        read: Turns an earlier run's fingerprint into what this version would have written.
    """

    path: Path
    fingerprint: Mapping[str, str]
    read: Callable[[dict[str, str]], dict[str, str]] = dict

    @property
    def checkpoints(self) -> Path:
        """Directory of the checkpoints; gone when the run is finished."""
        return self.path / "checkpoints"

    def status(self, *, overwrite: bool) -> Status:
        """Return how far an earlier run with the same fingerprint came; changes nothing.

        Args:
            overwrite: Whether `claim` may delete an earlier run: then there is none to go on with.

        Raises:
            InputError: The directory holds something else, or a run that differs.
        """
        if self.path.is_file():
            raise InputError(f"--out {self.path} is a file; give a directory")
        if not self._state_file.is_file():
            if self.path.is_dir() and any(item.name != LOCK_NAME for item in self.path.iterdir()):
                raise InputError(f"--out {self.path} is not empty and holds no earlier run; give another one")
            return "new"
        if overwrite:
            return "new"
        try:
            state = json.loads(self._state_file.read_text(encoding="utf-8"))
        except json.JSONDecodeError:
            raise InputError(f"{self._state_file} is damaged; run again with --overwrite") from None
        finished, earlier = state["status"] == "finished", self.read(state["fingerprint"])
        changed = [part for part in self.fingerprint if earlier.get(part) != self.fingerprint[part]]
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
        if status == "new":
            shutil.rmtree(self.checkpoints, ignore_errors=True)
        if overwrite and self._state_file.is_file():
            for item in self.path.iterdir():
                if item.is_dir():
                    shutil.rmtree(item)
                elif item.name != LOCK_NAME:  # the caller holds it
                    item.unlink()
        self._write("interrupted")
        last = self._complete_checkpoint()
        for path in self.checkpoints.glob("checkpoint-*"):
            # Cut off while being written: the trainer must not find it.
            if not _is_complete(path):
                shutil.rmtree(path)
        return last

    def finish(self) -> None:
        """Mark the run as finished and delete its checkpoints."""
        self._write("finished")
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        shutil.rmtree(self.folds, ignore_errors=True)

    @property
    def folds(self) -> Path:
        """Directory of the runs that leave a part of the pairs out; gone when the run is finished."""
        return self.path / "folds"

    @property
    def _state_file(self) -> Path:
        return self.path / "fit_state.json"

    def _complete_checkpoint(self) -> Path | None:
        """Return the newest checkpoint that was written to its end."""
        found = [(int(m[1]), p) for p in self.checkpoints.glob("*") if (m := _STEP.fullmatch(p.name))]
        return next((path for _, path in sorted(found, reverse=True) if _is_complete(path)), None)

    def _write(self, status: Status) -> None:
        with replace_file(self._state_file) as stream:
            json.dump({"status": status, "fingerprint": dict(self.fingerprint)}, stream, indent=1)


def _is_complete(checkpoint: Path) -> bool:
    # The trainer writes this file last.
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return True
