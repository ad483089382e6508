"""`llm-label`: asks an annotator for sentences about every text, then derives the candidates.

A session (see `session`) with the requests of the texts and the candidates as its result.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from angle_data.annotators.base import ChatRequest
from angle_data.labelling.answers import Answers
from angle_data.labelling.collect import Rejected
from angle_data.labelling.derive import derive, gave_nothing
from angle_data.labelling.engine import model_identity
from angle_data.labelling.forecast import SessionPlan, plan_all
from angle_data.labelling.prompts import PromptSet, load_prompts
from angle_data.labelling.requests import LabelConfig, Requests, polarity_of
from angle_data.labelling.session import SessionResult, ask_all

log = logging.getLogger("angle.labelling")

_COMMAND = "llm-label"


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """What a run would do, and how many rows of the texts it passes over as blank or repeated."""

    session: SessionPlan
    blank: int
    repeated: int


def plan_label(config: LabelConfig) -> LabelPlan:
    """Forecast what `label` would ask and cost; reads only, contacts nobody.

    Raises:
        InputError: The settings, texts, prompts or journal cannot be used.
    """
    requests, _ = _requests(config, forecast=True)
    plan = plan_all(
        requests,
        config.engine,
        config.out,
        command=_COMMAND,
        reply_chars=config.reply_chars,
        rejected=_rejected(config),
    )
    return LabelPlan(plan, requests.texts.blank, requests.texts.repeated)


def label(config: LabelConfig) -> SessionResult:
    """Run or resume a labelling run and return what came of it.

    Writes journal.jsonl, candidates.jsonl, rejected.jsonl and run.json to `config.out`; the last three also
    when the run ends early.

    Raises:
        InputError: The settings, texts, prompts or journal cannot be used.
        AnnotatorError: The annotator cannot go on, every request failed, or no reply holds a sentence; every
            reply so far is kept.
        StoppedError: A limit was reached, or some requests failed that may be answered later; the same
            command goes on.
        KeyboardInterrupt: The user stopped the run; every reply so far is kept.
    """
    requests, prompts = _requests(config)
    texts = requests.texts
    if config.retry_rejected and config.engine.temperature == 0:
        log.warning("--retry-rejected at temperature 0 is likely to get the same replies again")
    if texts.blank:
        log.warning("%d blank texts skipped", texts.blank)
    if texts.repeated:
        log.info("%d repeated rows skipped", texts.repeated)

    def derive_candidates(answers: Answers) -> dict[str, Any]:
        derived = derive(config.out, requests(), answers, model=config.engine.model, size=config.size)
        return {"blank_texts": texts.blank, "repeated_rows": texts.repeated, **derived.counts()}

    def fields(request: ChatRequest) -> dict[str, Any]:
        polarity = polarity_of(request)
        return {"prompt_sha256": prompts.of(polarity).sha256, "polarity": polarity}

    return ask_all(
        requests,
        config.engine,
        config.out,
        command=_COMMAND,
        settings=config.settings(prompts),
        derive=derive_candidates,
        fields=fields,
        reply_chars=config.reply_chars,
        rejected=_rejected(config),
        total=len(requests),
        advice="choose another model or prompt, or ask anew with --retry-rejected",
    )


def _rejected(config: LabelConfig) -> Rejected | None:
    """Return what says that a request is asked anew; None when none is."""
    if not config.retry_rejected:
        return None
    return lambda request, rows: gave_nothing(request, rows, config.size)


def _requests(config: LabelConfig, *, forecast: bool = False) -> tuple[Requests, PromptSet]:
    spec = config.engine.spec(config.out, forecast=forecast)
    prompts = load_prompts(config.prompts)
    return Requests(config, prompts, checkpoint=spec.checkpoint, identity=model_identity(spec)), prompts
