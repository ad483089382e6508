"""What a session would ask and cost, without asking anybody: `--dry-run` of what asks a model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import ChatRequest
from angle_data.labelling.answers import Answers
from angle_data.labelling.collect import Rejected
from angle_data.labelling.engine import EngineConfig, is_paid, model_identity
from angle_data.labelling.journal import Journal, read_journal
from angle_data.labelling.runfile import RunFile
from angle_data.labelling.tokens import estimate, find_counter, guess_tokens, prompt_tokens

# Counting tokens takes longer than all else; this many prompts give the tokens a character.
_SAMPLE = 2000


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What a session would do: its requests, how many of them the journal answers, and what the rest takes.

    `shared` are requests equal to one that is asked: one reply serves them all.
    `counted_by` names where the token counts come from; `usd` is None when no price is known, or nobody is
    `paid`. `spent_tokens` and `spent_usd` are what the journal took so far.
    """

    requests: int
    from_journal: int
    shared: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    counted_by: str
    spent_tokens: int
    spent_usd: float | None
    paid: bool

    @property
    def to_ask(self) -> int:
        """Return how many requests are left."""
        return self.requests - self.from_journal - self.shared


@dataclass(slots=True)
class _Open:
    """What is left to ask: the number, the guessed tokens, and a sample of the prompts."""

    total: int = 0
    shared: int = 0
    requests: int = 0
    prompt: float = 0.0
    completion: float = 0.0
    longest: float = 0.0
    sample: list[ChatRequest] = field(default_factory=list)


@dataclass(slots=True)
class _Known:
    """What the service counted for the same prompts, beside what was guessed for them."""

    replies: int = 0
    guessed: float = 0.0
    prompt: int = 0
    completion: int = 0


def plan_all(
    requests: Callable[[], Iterator[ChatRequest]],
    engine: EngineConfig,
    run: Path,
    *,
    command: str,
    reply_chars: Callable[[ChatRequest], float] = lambda request: len(request.source),
    rejected: Rejected | None = None,
) -> SessionPlan:
    """Forecast what `ask_all` with the same arguments would do; reads only, contacts nobody.

    Tokens are counted by the best of: what the service reported for this run folder so far, the model's own
    tokenizer, tiktoken, the length. Equal requests are asked once, and counted once.

    Raises:
        InputError: The settings, the requests or the journal cannot be used.
    """
    spec = engine.spec(run, forecast=True)
    price = engine.price(spec)
    RunFile(run, command, spec).check()
    with read_journal(run, spec.name) as journal:
        answers = Answers(journal, {}, model_identity(spec))
        left, known = _read(requests, journal, answers, reply_chars, rejected)
        if known.replies:
            rate, source = known.prompt / known.guessed, "the service's own counts in the journal"
            completion = left.requests * known.completion / known.replies
        else:
            rate, source = _rate(spec, left.sample)
            completion = min(left.completion * rate, left.longest)
        spent = journal.spent
    prompt, completion = round(left.prompt * rate), round(completion)
    return SessionPlan(
        requests=left.total,
        from_journal=left.total - left.requests - left.shared,
        shared=left.shared,
        prompt_tokens=prompt,
        completion_tokens=completion,
        usd=None if price is None else price.of(prompt, completion),
        counted_by=source,
        spent_tokens=spent.tokens,
        spent_usd=None if price is None else price.of(spent.prompt_tokens, spent.completion_tokens),
        paid=is_paid(spec),
    )


def _read(
    requests: Callable[[], Iterator[ChatRequest]],
    journal: Journal,
    answers: Answers,
    reply_chars: Callable[[ChatRequest], float],
    rejected: Rejected | None,
) -> tuple[_Open, _Known]:
    """Go over all requests once."""
    left, known = _Open(), _Known()
    chooser = random.Random(0)
    for request in requests():
        left.total += 1
        if not journal.claim(request.key):
            answered = request.key in journal
            if answered and known.replies < _SAMPLE and (row := journal.row(request.key)) is not None:
                _note(known, request, row)
            again = answers.anew(request, rejected) if rejected is not None else None
            if again is None:
                left.shared += not answered
                continue
            if not journal.claim(again.key):
                left.shared += 1
                continue
            request = again
        guess = guess_tokens(request, reply_chars(request))
        left.requests += 1
        left.prompt += guess.prompt
        left.completion += guess.completion
        left.longest += request.sampling.max_tokens
        # A reservoir: every open request is in the sample with the same probability.
        if len(left.sample) < _SAMPLE:
            left.sample.append(request)
        elif (place := chooser.randrange(left.requests)) < _SAMPLE:
            left.sample[place] = request
    return left, known


def _note(known: _Known, request: ChatRequest, row: dict[str, Any]) -> None:
    usage = row.get("usage") or {}
    if usage.get("prompt_tokens") and "completion_tokens" in usage and not usage.get("estimated"):
        known.replies += 1
        known.guessed += prompt_tokens(request, estimate)
        known.prompt += usage["prompt_tokens"]
        known.completion += usage["completion_tokens"]


def _rate(spec: AnnotatorSpec, sample: list[ChatRequest]) -> tuple[float, str]:
    """Return how many tokens stand for one guessed token, and how that is known."""
    counter, source = find_counter(spec)
    guessed = sum(prompt_tokens(request, estimate) for request in sample)
    counted = sum(prompt_tokens(request, counter) for request in sample)
    return (counted / guessed if guessed else 1.0), source
