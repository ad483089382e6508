"""One labelling run: asks an annotator what the journal does not answer yet, then derives the candidates.

Every reply is journalled the moment it arrives; an interrupt, a kill or a failing service costs no reply.
"""

from __future__ import annotations

import asyncio
import json
import logging
import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from angle_data.annotators import AnnotatorSpec, choose_annotator, load_annotator
from angle_data.errors import AngleError, InputError
from angle_data.jsonl import replace_file
from angle_data.labelling.collect import Collector
from angle_data.labelling.derive import Derived, derive
from angle_data.labelling.journal import Journal, finished_keys, open_journal
from angle_data.labelling.prompts import PromptSet, load_prompts
from angle_data.labelling.requests import LabelConfig, build_requests
from angle_data.labelling.texts import Skipped
from angle_data.locking import LOCK_NAME

__all__ = ["LabelPlan", "LabelSummary", "label", "plan_label"]

log = logging.getLogger("angle.labelling")


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """What a run would do: its texts and requests, and how many of these the journal answers already."""

    requests: int
    from_journal: int
    blank: int
    repeated: int

    @property
    def to_ask(self) -> int:
        """Return how many requests are left."""
        return self.requests - self.from_journal


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """What a run did; `counts` is the section of the same name in run.json."""

    out: Path
    model: str
    counts: dict[str, Any]


def plan_label(config: LabelConfig) -> LabelPlan:
    """Count what `label` would ask; reads only, contacts nobody.

    Raises:
        InputError: The settings, texts, prompts or journal cannot be used.
    """
    spec, prompts = _spec(config), load_prompts(config.prompts)
    _check_run(config.out, spec.name)
    return _plan(config, spec, prompts, finished_keys(config.out, spec.name))


def label(config: LabelConfig) -> LabelSummary:
    """Run or resume a labelling run and return what came of it.

    Writes journal.jsonl, candidates.jsonl, rejected.jsonl and run.json to `config.out`; the last three also
    when the run ends early.

    Raises:
        InputError: The settings, texts, prompts or journal cannot be used.
        AnnotatorError: The annotator cannot go on; every reply so far is kept.
        KeyboardInterrupt: The user stopped the run; every reply so far is kept.
    """
    spec, prompts = _spec(config), load_prompts(config.prompts)
    _check_run(config.out, spec.name)
    started = time.monotonic()
    with open_journal(config.out, spec.name) as journal:
        plan = _plan(config, spec, prompts, journal)
        _log_plan(plan, spec)
        collector = Collector(config, spec, prompts, journal)
        error: BaseException | None = None
        # With nothing to ask, the candidates can be made anew without a key and without the replies' file.
        annotator = load_annotator(spec) if plan.to_ask else None
        try:
            if annotator is not None:
                asyncio.run(collector.collect(annotator, plan.to_ask))
            if collector.stopped:
                error = KeyboardInterrupt()
        except (AngleError, KeyboardInterrupt) as stopped:
            error = stopped
        derived = derive(
            config.out,
            build_requests(config, spec.checkpoint, prompts),
            journal,
            model=spec.name,
            failures=collector.failures,
            size=config.size,
        )
        counts = _counts(plan, derived, collector.asked)
        _write_settings(config, spec, prompts, counts, derived, time.monotonic() - started)
    if error is not None:
        raise error
    if plan.requests and not counts["kept"] and not derived.failed:
        log.warning("no sentence could be kept; rejected.jsonl says why, and --out elsewhere asks again")
    if derived.failed:
        log.warning(
            "%d requests failed; run the same command again to ask them again", derived.failed.total()
        )
    return LabelSummary(config.out, spec.name, counts)


def _spec(config: LabelConfig) -> AnnotatorSpec:
    return choose_annotator(
        config.model,
        engine=config.engine,
        checkpoint=config.checkpoint,
        base_url=config.base_url,
        api_key_env=config.api_key_env,
        replies=config.replies,
        concurrency=config.concurrency,
    )


def _plan(
    config: LabelConfig, spec: AnnotatorSpec, prompts: PromptSet, finished: Journal | set[str]
) -> LabelPlan:
    """Read all texts once, so that a bad line near the end is found before anything is paid for."""
    skipped = Skipped()
    requests = answered = 0
    for request in build_requests(config, spec.checkpoint, prompts, skipped):
        requests += 1
        answered += request.key in finished
    return LabelPlan(requests, answered, skipped.blank, skipped.repeated)


def _log_plan(plan: LabelPlan, spec: AnnotatorSpec) -> None:
    if plan.blank:
        log.warning("%d blank texts skipped", plan.blank)
    if plan.repeated:
        log.info("%d repeated rows skipped", plan.repeated)
    log.info(
        "%s (%s): %d requests, %d in the journal, %d to ask",
        spec.name,
        spec.checkpoint,
        plan.requests,
        plan.from_journal,
        plan.to_ask,
    )


def _check_run(run: Path, model: str) -> None:
    """Refuse a directory whose run.json names another annotator (its journal is checked when opened)."""
    path = run / "run.json"
    if not path.is_file():
        ours = (run / "journal.jsonl").is_file()
        if not ours and run.is_dir() and any(item.name != LOCK_NAME for item in run.iterdir()):
            raise InputError(f"--out {run} is not empty and holds no labelling run; give another directory")
        return
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))["model"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not the run.json of a labelling run; give another --out") from None
    if owner != model:
        raise InputError(f"{run} holds a run of {owner!r}; give another --out for {model!r}")


def _counts(plan: LabelPlan, derived: Derived, asked: int) -> dict[str, Any]:
    return {
        "blank_texts": plan.blank,
        "repeated_rows": plan.repeated,
        "requests": derived.requests,
        "from_journal": plan.from_journal,
        "asked": asked,
        "replied": derived.replied,
        "failed": dict(sorted(derived.failed.items())),
        "unanswered": derived.unanswered,
        "kept": derived.kept,
        "rejected": dict(sorted(derived.rejected.items())),
    }


def _write_settings(
    config: LabelConfig,
    spec: AnnotatorSpec,
    prompts: PromptSet,
    counts: dict[str, Any],
    derived: Derived,
    seconds: float,
) -> None:
    settings = {
        "model": spec.name,
        "engine": spec.engine,
        "checkpoint": spec.checkpoint,
        "base_url": spec.base_url,
        "texts": str(config.texts),
        "size": config.size,
        "polarity": config.polarity,
        "limit": config.limit,
        "prompts": {
            "name": prompts.name,
            "synonym_sha256": prompts.synonym.sha256,
            "antonym_sha256": prompts.antonym.sha256,
        },
        "sampling": {
            "temperature": config.temperature,
            "seed": config.seed,
            "max_tokens": config.max_tokens,
        },
        "counts": counts,
        "tokens": dict(sorted(derived.tokens.items())),
        "seconds": round(seconds, 3),
        "versions": _versions(),
    }
    with replace_file(config.out / "run.json") as stream:
        json.dump(settings, stream, ensure_ascii=False, indent=2)
        stream.write("\n")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in ("angle-toolkit", "openai"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
