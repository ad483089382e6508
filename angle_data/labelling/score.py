"""`llm-score`: a language model grades existing pairs from 0 to 5, then the grades are derived.

A session (see `session`) with calls of a few pairs each as its requests and scores.jsonl as its result. The
scale is that of the STS tasks (https://aclanthology.org/S12-1051), in the words of prompts/score.

Pairs that share a call are chosen by hash, so that neighbours of a file do not colour each other's grades,
and so that a pair more in the file changes one call, not all that follow.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from angle_data.annotators.base import ChatRequest, KeyMaker, Sampling
from angle_data.errors import InputError
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.answers import Answers
from angle_data.labelling.collect import Rejected
from angle_data.labelling.engine import EngineConfig, model_identity
from angle_data.labelling.forecast import SessionPlan, plan_all
from angle_data.labelling.journal import refusal_of
from angle_data.labelling.pair_file import Pair, PairFile
from angle_data.labelling.prompts import Prompt, load_prompt
from angle_data.labelling.replies.grades import parse_grades
from angle_data.labelling.session import SessionResult, ask_all
from angle_data.resources import packaged_folder
from angle_data.text import content_id, pair_key, whole_characters

log = logging.getLogger("angle.labelling")

_COMMAND = "llm-score"
_MOST_PER_CALL = 50
_CHARS_PER_GRADE = 30

Call = tuple[Pair, ...]
"""The pairs of one request, numbered from 1 in this order."""


@dataclass(frozen=True, slots=True)
class ScoreConfig:
    """Everything a grading run needs; checks itself and holds no secret.

    `engine` says of whom is asked. A call holds at most `pairs_per_call` pairs. With `both_orders` every pair
    is also graded with its texts exchanged, and has the mean. `prompt` None is the toolkit's own.

    With `retry_rejected`, what the service refused is asked once more.

    Raises:
        InputError: A value is out of its range.
    """

    engine: EngineConfig
    pairs: Path
    out: Path
    pairs_per_call: int = 1
    both_orders: bool = False
    prompt: Path | None = None
    limit: int | None = None
    retry_rejected: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.pairs_per_call <= _MOST_PER_CALL:
            raise InputError(
                f"--pairs-per-call must be from 1 to {_MOST_PER_CALL}, got {self.pairs_per_call}"
            )
        if self.limit is not None and self.limit < 1:
            raise InputError(f"--limit must be at least 1, got {self.limit}")

    def settings(self, prompt: Prompt) -> dict[str, Any]:
        """Return what of these settings decides what is asked, for run.json."""
        return {
            "pairs": self.pairs,
            "limit": self.limit,
            "pairs_per_call": self.pairs_per_call,
            "both_orders": self.both_orders,
            "prompt": {"name": str(self.prompt or "score/pairs.txt"), "sha256": prompt.sha256},
        }


@dataclass(slots=True)
class _Counts:
    """What came of the calls and of the pairs: `pairs = scored + rejected + failed + unanswered` pairs.

    `requests = replied + refused + failed + unanswered`.
    """

    requests: int = 0
    replied: int = 0
    refused: int = 0
    unanswered: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    scored: int = 0
    failed_pairs: int = 0
    unanswered_pairs: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    in_both_orders: int = 0
    difference: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for run.json; `order_difference` is the mean one of the grades of both orders."""
        counts: dict[str, Any] = {
            "requests": self.requests,
            "replied": self.replied,
            "failed": dict(sorted(self.failed.items())),
            "unanswered": self.unanswered,
            "refused": self.refused,
            "pairs": self.pairs,
            "kept": self.scored,
            "failed_pairs": self.failed_pairs,
            "unanswered_pairs": self.unanswered_pairs,
            "rejected": dict(sorted(self.rejected.items())),
        }
        if self.in_both_orders:
            counts["order_difference"] = round(self.difference / self.in_both_orders, 3)
        return counts


def plan_score(config: ScoreConfig) -> SessionPlan:
    """Forecast what `score` would ask and cost; reads only, contacts nobody.

    Raises:
        InputError: The settings, pairs, prompt or journal cannot be used.
    """
    calls = _Calls(config, _load_prompt(config), forecast=True)
    return plan_all(
        calls,
        config.engine,
        config.out,
        command=_COMMAND,
        reply_chars=_reply_chars,
        rejected=_rejected(config),
    )


def score(config: ScoreConfig) -> SessionResult:
    """Run or resume a grading run and return what came of it.

    Writes journal.jsonl, scores.jsonl (`text1, text2, score, model, key`), rejected.jsonl and run.json to
    `config.out`; the last three also when the run ends early.

    Raises:
        InputError: The settings, pairs, prompt or journal cannot be used.
        AnnotatorError: The grader cannot go on, every request failed, or no reply holds a grade; replies so
            far are kept.
        StoppedError: A limit was reached, or some requests failed that may be answered later; the same
            command goes on.
        KeyboardInterrupt: The user stopped the run; replies so far are kept.
    """
    prompt = _load_prompt(config)
    calls = _Calls(config, prompt)
    if calls.pairs.blank:
        log.warning("%d pairs with a blank text skipped", calls.pairs.blank)
    if calls.pairs.repeated:
        log.info("%d repeated pairs skipped", calls.pairs.repeated)
    return ask_all(
        calls,
        config.engine,
        config.out,
        command=_COMMAND,
        settings=config.settings(prompt),
        derive=partial(_derive, config, calls),
        fields=lambda request: {"task": request.task, "prompt_sha256": prompt.sha256},
        reply_chars=_reply_chars,
        rejected=_rejected(config),
    )


def _rejected(config: ScoreConfig) -> Rejected | None:
    """Return what says that a request is asked anew; None when none is."""
    if not config.retry_rejected:
        return None
    return lambda request, rows: all(refusal_of(row) is not None for row in rows)


def group_pairs(pairs: Sequence[Pair], most: int) -> Iterator[Call]:
    """Yield the pairs in groups of at most `most`, in the order of their hashes.

    Where a group ends depends on the hashes in it alone (content-defined chunking), so that groups stay as
    they are when pairs elsewhere come or go. They hold about 0.63 · `most` pairs on average.
    """
    group: list[Pair] = []
    for pair in sorted(pairs, key=lambda pair: pair.rank):
        group.append(pair)
        # The high bits set the order, so the low ones are free to set the ends.
        if len(group) == most or pair.rank % most == 0:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


class _Calls:
    """The requests, in a fixed order; call it for a new pass. With both orders, two for every group."""

    def __init__(self, config: ScoreConfig, prompt: Prompt, *, forecast: bool = False) -> None:
        self.pairs = PairFile(config.pairs, limit=config.limit)
        spec = config.engine.spec(config.out, forecast=forecast)
        self._config, self._prompt = config, prompt
        self._checkpoint, self._identity = spec.checkpoint, model_identity(spec)
        self._samplings: dict[int, tuple[Sampling, KeyMaker]] = {}

    def __call__(self) -> Iterator[ChatRequest]:
        for call in self.groups():
            yield from self.requests(call)

    def groups(self) -> Iterator[Call]:
        """Yield the pairs of every call; one by one they need not be in memory."""
        wanted = (pair for pair in self.pairs if self._takes(pair))
        if self._config.pairs_per_call == 1:
            return ((pair,) for pair in wanted)
        return group_pairs(list(wanted), self._config.pairs_per_call)

    def requests(self, call: Call) -> list[ChatRequest]:
        """Return the request of a call and, if asked for, the one with the texts of each pair exchanged."""
        one = [self._request([(pair.text1, pair.text2) for pair in call])]
        if self._config.both_orders:
            one.append(self._request([(pair.text2, pair.text1) for pair in call]))
        return one

    def _request(self, texts: list[tuple[str, str]]) -> ChatRequest:
        numbered = (f"Pair {n}\nA: {a}\nB: {b}" for n, (a, b) in enumerate(texts, start=1))
        messages = ({"role": "user", "content": self._prompt.fill({"pairs": "\n\n".join(numbered)})},)
        source = "\n\n".join(f"{a}\n{b}" for a, b in texts)
        sampling, key = self._sampling(len(texts))
        return ChatRequest(
            key(messages), content_id(source), source, "score", messages, self._checkpoint, sampling
        )

    def _sampling(self, count: int) -> tuple[Sampling, KeyMaker]:
        if count not in self._samplings:
            schema = _reply_schema(count) if self._prompt.reply == "json" else None
            sampling = self._config.engine.sampling(schema)
            self._samplings[count] = sampling, KeyMaker(self._identity, sampling)
        return self._samplings[count]

    def _takes(self, pair: Pair) -> bool:
        return self._config.engine.takes("\n".join(pair_key(pair.text1, pair.text2)))


def _derive(config: ScoreConfig, calls: _Calls, answers: Answers) -> dict[str, Any]:
    """Write scores.jsonl and rejected.jsonl anew and return the counts; pure in the calls and the journal."""
    counts = _Counts()
    out = config.out
    with replace_file(out / "scores.jsonl") as kept, replace_file(out / "rejected.jsonl") as dropped:
        for call in calls.groups():
            graded = [_ask_journal(request, answers, len(call), counts) for request in calls.requests(call)]
            for number, pair in enumerate(call, start=1):
                row = _row(pair, [one.get(number) for one in graded], config.engine.model, counts)
                if row is not None:
                    (kept if "score" in row else dropped).write(dumps(row) + "\n")
    return {
        "blank_pairs": calls.pairs.blank,
        "repeated_pairs": calls.pairs.repeated,
        **counts.to_dict(),
    }


@dataclass(frozen=True, slots=True)
class _Grade:
    """What one request says of one pair: a grade, or a reason code (those of no reply among them)."""

    key: str
    value: float | None
    reason: str
    raw: str


def _ask_journal(request: ChatRequest, answers: Answers, count: int, counts: _Counts) -> dict[int, _Grade]:
    """Return what a request says of its pairs by number; nothing when it was not asked yet."""
    counts.requests += 1
    rows = answers.rows(request)
    row = next((row for row in rows if refusal_of(row) is None), None)
    if row is not None:
        counts.replied += 1
        raw = whole_characters(row["reply"])
        parsed = parse_grades(raw, count=count, finish_reason=row.get("finish_reason"))
        return {
            number: _Grade(request.key, parsed.grades.get(number), parsed.rejected.get(number, ""), raw)
            for number in range(1, count + 1)
        }
    failure = answers.failure(request)
    if failure is not None:
        counts.failed[failure.kind] += 1
        reason, raw = "request_failed", whole_characters(f"{failure.kind}: {failure.message}")
    elif rows:
        counts.refused += 1
        reason, raw = "refused_by_server", refusal_of(rows[-1]) or ""
    else:
        counts.unanswered += 1
        return {}
    return {number: _Grade(request.key, None, reason, raw) for number in range(1, count + 1)}


def _row(pair: Pair, grades: list[_Grade | None], model: str, counts: _Counts) -> dict[str, Any] | None:
    """Return the row of a pair for scores.jsonl or rejected.jsonl; None when it is still open."""
    counts.pairs += 1
    values = [grade.value for grade in grades if grade is not None and grade.value is not None]
    first = next((g for g in grades if g is not None and (g.value is not None) == bool(values)), None)
    if first is None:
        counts.unanswered_pairs += 1
        return None
    row: dict[str, Any] = {"text1": pair.text1, "text2": pair.text2}
    if values:
        counts.scored += 1
        if len(values) == 2:
            counts.in_both_orders += 1
            counts.difference += abs(values[0] - values[1])
        return {**row, "score": sum(values) / len(values), "model": model, "key": first.key}
    if first.reason == "request_failed":
        counts.failed_pairs += 1
    else:
        counts.rejected[first.reason] += 1
    return {**row, "model": model, "key": first.key, "reason": first.reason, "raw": first.raw}


def _load_prompt(config: ScoreConfig) -> Prompt:
    path = config.prompt or packaged_folder("prompts") / "score" / "pairs.txt"
    return load_prompt(path, known=("pairs",), required=("pairs",))


def _reply_chars(request: ChatRequest) -> float:
    return _CHARS_PER_GRADE * (request.source.count("\n\n") + 1)


def _reply_schema(count: int) -> dict[str, Any]:
    grade = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "score": {"type": "number"}},
        "required": ["id", "score"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"grades": {"type": "array", "items": grade, "minItems": count, "maxItems": count}},
        "required": ["grades"],
        "additionalProperties": False,
    }
