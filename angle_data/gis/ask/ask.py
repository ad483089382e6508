"""Asks an annotator what doubtful comments state, or forecasts what that would take."""

from __future__ import annotations

from dataclasses import dataclass

from angle_data.annotators.choice import choose_annotator
from angle_data.gis.ask.config import GisCommandConfig
from angle_data.gis.ask.job import AskJob
from angle_data.gis.ask.questions import find_questions
from angle_data.gis.build.answers import Answers
from angle_data.gis.comments.readings import Readings
from angle_data.gis.crawl.store import STORE_NAME, Store
from angle_data.labelling.asking.forecast import SessionPlan, plan_all
from angle_data.labelling.asking.session import SessionResult, ask_all, prepare


@dataclass(frozen=True, slots=True)
class AskResult:
    """What a session of asking gave: all answers, and how it ended, None where there was no question."""

    answers: Answers
    session: SessionResult | None


def check_annotator(config: GisCommandConfig) -> None:
    """Raise what would keep the annotator from being asked: before the crawl, which may take hours.

    A key is needed only once something is asked; a model that is loaded here is not loaded for this.
    """
    spec = choose_annotator(config.ask, config.run)
    if not spec.loads and not (config.gis.dry_run or config.gis.no_crawl):
        prepare(spec, needed=True)


def ask_doubtful(config: GisCommandConfig) -> AskResult:
    """Ask about every doubtful comment of the store that was not asked about, and return all answers.

    Raises what `session.ask_all` does; the replies so far are kept, and the same command goes on.
    """
    job = _job(config)
    if not job.questions:
        return AskResult(job.answers, None)
    return AskResult(job.answers, ask_all(job))


def plan_asking(config: GisCommandConfig) -> SessionPlan:
    """Forecast what `ask_doubtful` would ask and cost, by what is in the store; sends nothing."""
    return plan_all(_job(config))


def _job(config: GisCommandConfig) -> AskJob:
    gis = config.gis
    spec = choose_annotator(config.ask, config.run)
    with Store.open(gis.out / STORE_NAME, read_only=True) as store, Readings(gis.out) as readings:
        guesses = config.ask.ask_guesses
        questions = list(find_questions(store, gis, readings.read, guesses=guesses))
    again = config.ask.retry_rejected
    return AskJob(spec, config.run, questions, guesses=guesses, retry_rejected=again)
