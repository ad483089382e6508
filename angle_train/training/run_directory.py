"""The output directory of a run: is it new, interrupted, or finished; and its checkpoints.

What a run notes for itself lies in a hidden folder, since users publish the rest of the directory.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter

from angle_data.errors import InputError
from angle_data.jsonl import loads, write_json
from angle_data.locking import LOCK_NAME, hold
from angle_train.dropped import parts_that_count
from angle_train.training.processes import rank_zero

Stored = TypeVar("Stored")
RunStatus = Literal["new", "interrupted", "finished"]
log = logging.getLogger("angle.fit")

HIDDEN = ".angle"
"""The folder in an output directory that holds the run's state and the lock."""

_STATE_NAME = "fit_state.json"
_MADE = f"{HIDDEN}/made"  # a model that is being saved
_WHOLE = f"{HIDDEN}/whole"  # the same once it is saved, while its files move into place
_EARLIER = f"{HIDDEN}/earlier"  # the model that stood there, until the other is in place
# Not every model has these files. If the new one has not, those of the earlier one must go too: loading the
# new model would read them.
_OPTIONAL = (
    "model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json",
    "adapter_model.safetensors", "adapter_config.json", "chat_template.jinja",
    "tokenizer.json", "added_tokens.json", "*processor_config.json", "tuned",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _State:
    """How far a run is, and what decides it."""

    status: RunStatus
    fingerprint: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Where one run writes.

    Attributes:
        path: The directory.
        fingerprint: What decides the run (settings, data, backbone), as texts by part.
    """

    path: Path
    fingerprint: Mapping[str, str]

    @property
    def checkpoints(self) -> Path:
        """Directory of the checkpoints; gone when the run is finished."""
        return self.path / "checkpoints"

    @property
    def folds(self) -> Path:
        """Directory of the runs that leave a part of the pairs out; gone when the run is finished."""
        return self.path / "folds"

    @rank_zero
    def status(self, *, overwrite: bool) -> RunStatus:
        """Return how far an earlier run with the same fingerprint got; changes nothing.

        With `overwrite` a run that differs or is finished counts for nothing; this very run goes on. One
        that differs and has left nothing yet counts for nothing, either.

        Raises:
            InputError: The directory holds something else, or a run that differs.
        """
        check_out(self.path)
        state = self._state()
        if not state:
            return "new"
        before, now = parts_that_count(state.fingerprint), self.fingerprint
        changed = [part for part in {**now, **before} if before.get(part) != now.get(part)]
        if overwrite and (changed or state.status == "finished"):
            return "new"
        if changed and all(item.name == HIDDEN for item in self.path.iterdir()):
            return "new"
        if changed:
            words = [_difference(part, before.get(part, "none"), now.get(part, "none")) for part in changed]
            raise InputError(
                f"--out {self.path} holds a run with different {', '.join(words)}; "
                "give another directory, or --overwrite to replace that run"
            )
        return state.status

    @rank_zero
    def claim(self, status: RunStatus) -> Path | None:
        """Take the directory for a run of that status; return the checkpoint to go on from, if any.

        A new run deletes what another needed to go on, but not what that made; cut off while it does so, it
        is still new. An exchange of models that was cut off is settled.
        """
        if status == "new":
            self._write("new")
            for name in ("checkpoints", "folds", "tensorboard"):
                _delete(self.path / name)
        self._settle()
        self._write("interrupted")
        found = {}
        for path in self.checkpoints.glob("checkpoint-*"):
            if _is_complete(path):
                found[int(path.name.removeprefix("checkpoint-"))] = path
            else:  # cut off while being written: the trainer must not find it
                shutil.rmtree(path)
        return found[max(found)] if found else None

    @contextmanager
    def replacing(self) -> Iterator[Path]:
        """Yield an empty folder, whose content takes the place of an earlier model if the block ends well.

        What is no part of a model stays. Cut off at any point, one of the two models is whole, see `_settle`.
        """
        made, earlier = self.path / _MADE, self.path / _EARLIER
        made.mkdir()
        try:
            yield made
            earlier.mkdir()
            for path in list(self.path.iterdir()):
                if (made / path.name).exists() or any(path.match(pattern) for pattern in _OPTIONAL):
                    path.replace(earlier / path.name)
            made.replace(self.path / _WHOLE)
            self._settle()
        finally:  # Ctrl-C may have cut off even that
            self._settle()
        for export in (self.path / "onnx", self.path / "openvino"):
            if export.is_dir():
                log.warning("warning: %s was exported from the earlier model: export the new one", export)

    def _settle(self) -> None:
        """End an exchange of models: with the new one if it was saved and the other aside, else as before."""
        whole, earlier = self.path / _WHOLE, self.path / _EARLIER
        source = whole if whole.is_dir() else earlier
        for item in list(source.iterdir()) if source.is_dir() else ():
            item.replace(self.path / item.name)
        for folder in (earlier, whole, self.path / _MADE):  # `whole` says what `earlier` is, so it goes later
            _delete(folder)

    def finish(self) -> None:
        """Mark the run as finished and delete its checkpoints."""
        self._write("finished")
        self.tidy()

    @rank_zero
    def tidy(self) -> None:
        """Delete what a finished run has no use for, also where it was cut off doing so."""
        for folder in (self.checkpoints, self.folds):
            shutil.rmtree(folder, ignore_errors=True)

    def _state(self) -> _State | None:
        """Return what `_write` wrote, atomically; None if there is no run."""
        file = self.path / HIDDEN / _STATE_NAME
        fix = f"give another --out; a model in {self.path} may still be good"
        return read_own(file, _State, fix) if file.is_file() else None

    def _write(self, status: RunStatus) -> None:
        state = _State(status, dict(self.fingerprint))
        write_json(self.path / HIDDEN / _STATE_NAME, asdict(state), indent=1)


def _difference(part: str, before: str, now: str) -> str:
    """Return what differs in words: of pairs, texts and searches only hashes are known, which tell nobody."""
    hashed = "pairs" in part or any(re.fullmatch("[0-9a-f]{64}", value) for value in (before, now))
    return part if hashed else f"{part} ({before} -> {now})"


def read_own(path: Path, kind: type[Stored], fix: str) -> Stored:
    """Return what a run wrote as JSON, which `kind` describes; else raise an InputError with the `fix`."""
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except ValueError:
        raise InputError(f"{path} is damaged; {fix}") from None


def check_out(path: Path) -> None:
    """Raise an InputError unless there is nothing at `path` yet, or an earlier run."""
    if file := next((place for place in (path, *path.parents) if place.is_file()), None):
        said = "is a file" if file == path else f"cannot be made: {file} is a file"
        raise InputError(f"--out {path} {said}; give a directory")
    if not path.is_dir() or (path / HIDDEN / _STATE_NAME).is_file():
        return
    if any(item.name != HIDDEN for item in path.iterdir()):
        raise InputError(f"--out {path} is not empty and holds no run to resume; give another directory")


@rank_zero
def check_free(path: Path) -> None:
    """Raise an InputError if another process works there; takes the lock of a run there for a moment."""
    if (path / HIDDEN / LOCK_NAME).is_file():
        with suppress(OSError), hold(path / HIDDEN, path):  # what may be read only holds a finished run
            pass


def _delete(folder: Path) -> None:
    """Delete a folder, if it is there; of one that is a link, the link."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.is_dir():
        shutil.rmtree(folder)


def _is_complete(checkpoint: Path) -> bool:
    """Return whether a checkpoint was written to its end, which is the trainer's own state."""
    try:
        return isinstance(loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False
