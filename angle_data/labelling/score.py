"""`llm-score`: a language model grades existing pairs from 0 to 5, then the grades are derived.

The scale is that of the STS tasks (https://aclanthology.org/S12-1051), in the words of prompts/score. A call
holds one pair or a few. Pairs that share a call are chosen by hash, so that neighbours of a file do not
colour each other's grades, and so that a pair more in the file changes one call, not all that follow.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from angle_data.annotators.base import ChatRequest, KeyMaker, Sampling
from angle_data.annotators.choice import choose_annotator
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.forecast import SessionPlan, plan_all
from angle_data.labelling.journal import Journal, refusal_of
from angle_data.labelling.prompts import list_schema, load_prompt, object_schema
from angle_data.labelling.replies.grades import parse_grades
from angle_data.labelling.session import Job, SessionResult, Tally, ask_all
from angle_data.labelling.texts import Pair, PairFile
from angle_data.resources import packaged_folder
from angle_data.text import content_id, pair_key, whole_characters

log = logging.getLogger("angle.labelling")

_CHARS_PER_GRADE = 30

Call = tuple[Pair, ...]
"""The pairs of one request, numbered from 1 in this order."""


def plan_score(config: ScoreConfig) -> SessionPlan:
    """Forecast what `score` would ask and cost; reads files only.

    Raises:
        InputError: The settings, pairs, prompt or journal cannot be used.
    """
    return plan_all(ScoreJob(config, forecast=True))


def score(config: ScoreConfig) -> SessionResult:
    """Run or resume a grading run and return its counts.

    Writes journal.jsonl, scores.jsonl (`text1, text2, score, model, key`), rejected.jsonl and run.json to
    `config.out`; the last three also when the run ends early.

    Raises:
        InputError: The settings, pairs, prompt or journal cannot be used.
        AnnotatorError, StoppedError, KeyboardInterrupt: See `session.ask_all`; every reply so far is kept.
    """
    job = ScoreJob(config)
    if job.pairs.blank:
        log.warning("%d pairs with a blank text skipped", job.pairs.blank)
    if job.pairs.repeated:
        log.info("%d repeated pairs skipped", job.pairs.repeated)
    return ask_all(job)


def group_pairs(pairs: Sequence[Pair], most: int) -> Iterator[Call]:
    """Yield the pairs in groups of at most `most`, in the order of their hashes.

    Where a group ends depends only on the hashes in it (content-defined chunking), so groups stay as they are
    when pairs elsewhere come or go. They hold about 0.63 · `most` pairs on average.
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


@dataclass(frozen=True, slots=True)
class _Grade:
    """What one request says of one pair: a grade, or a reason code (those of no reply among them)."""

    key: str
    value: float | None
    reason: str
    raw: str


class ScoreJob(Job):
    """The requests of a grading run, in a fixed order, and the grades that follow from the replies.

    With both orders, there are two requests for every group of pairs.

    Raises:
        InputError: The settings, the pairs or the prompt cannot be used.
    """

    command = "llm-score"

    def __init__(self, config: ScoreConfig, *, forecast: bool = False) -> None:
        path = config.prompt or packaged_folder("prompts") / "score" / "pairs.txt"
        self._prompt = load_prompt(path, known=("pairs",), required=("pairs",))
        self.config = config
        self.pairs = PairFile(config.pairs, limit=config.limit)
        self.run, self.retry_rejected = config.out, config.retry_rejected
        self.spec = choose_annotator(config.engine, config.out, forecast=forecast)
        self._sampling = cache(self._make_sampling)

    def requests(self) -> Iterator[ChatRequest]:
        """Yield the requests of every call."""
        for call in self._calls():
            yield from self._requests_of(call)

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide what is asked, for run.json."""
        config = self.config
        return {
            "pairs": config.pairs,
            "limit": config.limit,
            "pairs_per_call": config.pairs_per_call,
            "both_orders": config.both_orders,
            "prompt": {"name": str(config.prompt or "score/pairs.txt"), "sha256": self._prompt.sha256},
        }

    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return what a journal row of grading holds beside the common fields."""
        return {"task": request.task, "prompt_sha256": self._prompt.sha256}

    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply from its number of grades."""
        return _CHARS_PER_GRADE * (request.source.count("\n\n") + 1)

    def is_rejected(self, request: ChatRequest, rows: list[dict[str, Any]]) -> bool:
        """Whether the service refused a request every time."""
        return all(refusal_of(row) is not None for row in rows)

    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write scores.jsonl and rejected.jsonl in the order of the calls, and return the counts.

        `requests = replied + refused + failed + unanswered`, and `pairs = kept + rejected + failed_pairs +
        unanswered_pairs`. `order_difference` is the mean difference of the grades of both orders.
        """
        tally = Tally()
        differences: list[float] = []
        out = self.config.out
        with replace_file(out / "scores.jsonl") as kept, replace_file(out / "rejected.jsonl") as dropped:
            for call in self._calls():
                requests = self._requests_of(call)
                graded = [self._grades(request, journal, len(call), tally) for request in requests]
                for number, pair in enumerate(call):
                    row = self._row(pair, [one[number] for one in graded if one], tally, differences)
                    if row is not None:
                        (kept if "score" in row else dropped).write(dumps(row) + "\n")
        counts = {
            "blank_pairs": self.pairs.blank,
            "repeated_pairs": self.pairs.repeated,
            **tally.table("requests", "replied", "failed", "unanswered", "refused"),
            **tally.table("pairs", "kept", "failed_pairs", "unanswered_pairs", "rejected"),
        }
        if differences:
            counts["order_difference"] = round(sum(differences) / len(differences), 3)
        return counts

    def _calls(self) -> Iterator[Call]:
        """Yield the pairs of every call; calls of one pair are streamed."""
        wanted = (pair for pair in self.pairs if self.spec.takes("\n".join(pair_key(pair.text1, pair.text2))))
        if self.config.pairs_per_call == 1:
            return ((pair,) for pair in wanted)
        return group_pairs(list(wanted), self.config.pairs_per_call)

    def _requests_of(self, call: Call) -> list[ChatRequest]:
        """Return the request of a call and, if asked for, the one with the texts of each pair exchanged."""
        requests = [self._request([(pair.text1, pair.text2) for pair in call])]
        if self.config.both_orders:
            requests.append(self._request([(pair.text2, pair.text1) for pair in call]))
        return requests

    def _request(self, texts: list[tuple[str, str]]) -> ChatRequest:
        numbered = (f"Pair {n}\nA: {a}\nB: {b}" for n, (a, b) in enumerate(texts, start=1))
        messages = ({"role": "user", "content": self._prompt.fill({"pairs": "\n\n".join(numbered)})},)
        source = "\n\n".join(f"{a}\n{b}" for a, b in texts)
        sampling, key = self._sampling(len(texts))
        return ChatRequest(
            key(messages), content_id(source), source, "score", messages, self.spec.checkpoint, sampling
        )

    def _make_sampling(self, count: int) -> tuple[Sampling, KeyMaker]:
        grade = object_schema(id={"type": "integer"}, score={"type": "number"})
        schema = list_schema("grades", grade, count) if self._prompt.reply == "json" else None
        sampling = self.spec.sampling(schema)
        return sampling, KeyMaker(self.spec.identity, sampling)

    def _grades(self, request: ChatRequest, journal: Journal, count: int, tally: Tally) -> list[_Grade]:
        """Return what a request says of each of its pairs; nothing when it was not asked yet."""
        tally.counts["requests"] += 1
        rows = list(journal.samples(request))
        row = next((row for row in rows if refusal_of(row) is None), None)
        if row is not None:
            tally.counts["replied"] += 1
            raw = whole_characters(row["reply"])
            parsed = parse_grades(raw, count=count, finish_reason=row.get("finish_reason"))
            found = [(parsed.grades.get(n), parsed.rejected.get(n, "")) for n in range(1, count + 1)]
            return [_Grade(request.key, grade, reason, raw) for grade, reason in found]
        failure = journal.failure(request)
        if failure is not None:
            tally.failed[failure.kind] += 1
            reason, raw = "request_failed", whole_characters(f"{failure.kind}: {failure.message}")
        elif rows:
            tally.counts["refused"] += 1
            reason, raw = "refused_by_server", refusal_of(rows[-1]) or ""
        else:
            tally.counts["unanswered"] += 1
            return []
        return [_Grade(request.key, None, reason, raw)] * count

    def _row(
        self, pair: Pair, grades: list[_Grade], tally: Tally, differences: list[float]
    ) -> dict[str, Any] | None:
        """Return the row of a pair for scores.jsonl or rejected.jsonl; None when it is still open."""
        tally.counts["pairs"] += 1
        if not grades:
            tally.counts["unanswered_pairs"] += 1
            return None
        row: dict[str, Any] = {"text1": pair.text1, "text2": pair.text2}
        model = self.spec.name
        if given := [(grade.value, grade.key) for grade in grades if grade.value is not None]:
            values, keys = zip(*given, strict=True)
            tally.counts["kept"] += 1
            if len(values) == 2:
                differences.append(abs(values[0] - values[1]))
            return {**row, "score": sum(values) / len(values), "model": model, "key": keys[0]}
        first = grades[0]
        if first.reason == "request_failed":
            tally.counts["failed_pairs"] += 1
        else:
            tally.rejected[first.reason] += 1
        return {**row, "model": model, "key": first.key, "reason": first.reason, "raw": first.raw}
