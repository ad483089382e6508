"""run.json: the settings of a run folder without secrets, its counts, and the account of tokens and money.

A session writes it at its end, and marks it as unfinished before its first request. The next session reads
it, to refuse a folder of another command or annotator and to say which settings have changed.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from angle_data.annotators.batch_state import open_requests
from angle_data.annotators.transport import PROBE_FILE
from angle_data.calling.rows import IN_MEMORY
from angle_data.errors import InputError
from angle_data.jsonl import loads, write_json
from angle_data.labelling.asking.budget import Ledger, usd_of
from angle_data.labelling.asking.job import Job
from angle_data.locking import LOCK_NAME
from angle_data.text import counted

log = logging.getLogger("angle.labelling")

_NAME = "run.json"
# A change of these changes no reply; a limit only leaves texts out.
_NOT_ASKED = {"finished", "engine", "base_urls", "limit"}


def read_run(job: Job) -> dict[str, Any]:
    """Return the run.json of an earlier session of this job, empty without one.

    Raises:
        InputError: The folder is another annotator's or command's, no run folder at all or one without its
            journal, or its requests are in batches that another engine would not fetch.
    """
    run, model = job.run, job.spec.model
    path = run / _NAME
    if job.spec.engine != "batch" and (rows := open_requests(run)):
        raise InputError(
            f"{run} has {counted(rows, 'request')} in batches that are not fetched; finish it with --engine "
            "batch, or give another --out"
        )
    if not path.is_file():
        # What a run writes before this file, and what a call puts there before the run begins.
        ours = ("journal.jsonl", "batches.jsonl", LOCK_NAME, IN_MEMORY, PROBE_FILE)
        names = {item.name for item in run.iterdir()} if run.is_dir() else set()
        if names.isdisjoint(ours[:2]) and names.difference(ours):
            raise InputError(f"--out {run} is not empty and holds no labelling run; give another directory")
        return {}
    try:
        before: dict[str, Any] = loads(path.read_text(encoding="utf-8"))
        owner, command = before["model"], before["command"]
    except (ValueError, KeyError, TypeError):
        paid = "delete it to go on with the replies in the journal, or " if _holds_replies(run) else ""
        raise InputError(f"{path} is not the run.json of a labelling run; {paid}give another --out") from None
    if command != job.command:
        raise InputError(f"{run} holds a run of {command}; give another --out for {job.command}")
    if before.get("replies") and not _holds_replies(run):
        raise InputError(
            f"{run} has lost the replies in its journal.jsonl; put the file back, or give another --out"
        )
    if owner == model:
        return before
    if open_requests(run) or _holds_replies(run):
        raise InputError(f"{run} holds a run of {owner!r}; give another --out for {model!r}")
    return {}


def warn_of_changes(job: Job, before: Mapping[str, Any]) -> None:
    """Say which settings differ from the last session's, and what becomes of the results of these."""
    if _only_more_tokens(before.get("sampling"), _settings(job)["sampling"]):
        log.info("--max-tokens has grown: only what was cut is asked again")
        before = {**before, "sampling": _settings(job)["sampling"]}
    compared = [(name, now) for name, now in _settings(job).items() if name in before.keys() - _NOT_ASKED]
    if changed := [_named(name, before[name], now) for name, now in compared if _differs(before[name], now)]:
        said = (
            "warning: %s was run with other settings (%s): its results will be those of the new ones only; "
            "another --out keeps both. The earlier replies stay in the journal, and the earlier settings "
            "bring their results back without asking again"
        )
        log.warning(said, job.run, ", ".join(changed))


def begin_run(job: Job, before: Mapping[str, Any]) -> None:
    """Note that a session asks: the run is unfinished until `write_run`, also if that is never reached.

    What an earlier session wrote stays, as its files do.
    """
    write_json(job.run / _NAME, {**(before or _settings(job)), "finished": False})


def write_run(
    job: Job, before: Mapping[str, Any], ledger: Ledger, counts: Mapping[str, Any], **ended: Any
) -> None:
    """Write the file at the end of a session.

    `ended` are `finished`: nothing is left to ask, but for what some recorded replies lack; and `stopped_by`:
    the line that it ended with, None if all went well.
    """
    failures = Counter(before.get("failures") or {})
    failures.update(counts["failed"])
    spent, price = ledger.journal.spent, ledger.price
    content = {
        **_settings(job),
        "counts": counts,
        "replies": len(ledger.journal),
        "tokens": {
            "prompt_tokens": spent.prompt,
            "completion_tokens": spent.completion,
            "total_tokens": spent.total,
        },
        "usd": usd_of(price, spent),
        "usd_per_million": None if price is None else {"input": price.input, "output": price.output},
        "failures": dict(sorted(failures.items())),
        **ended,
    }
    write_json(job.run / _NAME, content)


def _settings(job: Job) -> dict[str, Any]:
    """Return the entries that are known before anything is asked."""
    spec = job.spec
    sampling = {name: getattr(spec, name) for name in ("temperature", "seed", "max_tokens")}
    return {
        "command": job.command,
        "finished": False,
        "model": spec.model,
        "engine": spec.engine,
        "base_urls": list(spec.base_urls),
        "checkpoint": spec.checkpoint,
        "revision": spec.revision,
        "shard": None if spec.shard is None else "/".join(map(str, spec.shard)),
        **job.settings(),
        "sampling": sampling | ({"params": dict(spec.params)} if spec.params else {}),
    }


def _holds_replies(run: Path) -> bool:
    """Whether anybody ever answered: a start that failed keeps no folder for its annotator."""
    journal = run / "journal.jsonl"
    return journal.is_file() and journal.stat().st_size > 0


def _named(name: str, before: Any, now: Any) -> str:
    """Return the name of a changed setting, of a choice by name with the option that brings it back."""
    earlier = before.get("name") if isinstance(before, dict) else None
    return name if earlier is None or earlier == now["name"] else f"{name} (was --{name} {earlier})"


def _only_more_tokens(before: Any, now: Mapping[str, Any]) -> bool:
    """Whether the longest reply has grown, and nothing else of the sampling has changed."""
    if not isinstance(before, dict) or not isinstance(most := before.get("max_tokens"), int):
        return False
    return most < now["max_tokens"] and before | {"max_tokens": now["max_tokens"]} == now


def _differs(before: Any, now: Any) -> bool:
    """Whether a setting has changed; a file is the same under an absolute and a relative path."""
    if isinstance(now, list):
        parts = before if isinstance(before, list) else [before]
        return len(parts) != len(now) or any(map(_differs, parts, now))
    if isinstance(now, Path):
        return Path(str(before)).resolve() != now.resolve()
    return bool(before != json.loads(json.dumps(now)))
