"""`llm-score`: a language model grades existing pairs from 0 to 5, then the grades are derived.

The scale is that of the STS tasks (https://aclanthology.org/S12-1051), in the words of prompts/score. Each
request is about one pair, so that pairs do not colour each other's grades.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from angle_data.annotators.base import ChatRequest, request_key
from angle_data.annotators.choice import choose_annotator
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.forecast import SessionPlan, plan_all
from angle_data.labelling.journal import Journal, refusal_of
from angle_data.labelling.prompts import list_schema, load_prompt, object_schema
from angle_data.labelling.replies.grades import parse_grade
from angle_data.labelling.session import Job, SessionResult, Tally, ask_all
from angle_data.labelling.texts import Pair, PairFile
from angle_data.resources import packaged_folder
from angle_data.text import content_id, pair_key, whole_characters

log = logging.getLogger("angle.labelling")

_REPLY_CHARS = 30


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


class ScoreJob(Job):
    """The requests of a grading run, one for each pair, and the grades that follow from the replies.

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
        self.total = self.spec.share_of(self.pairs.count)

    def requests(self) -> Iterator[ChatRequest]:
        """Yield the request of every pair."""
        return (request for _, request in self._asked())

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide what is asked, for run.json."""
        config = self.config
        return {
            "pairs": config.pairs,
            "limit": config.limit,
            "prompt": {"name": str(config.prompt or "score/pairs.txt"), "sha256": self._prompt.sha256},
        }

    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return what a journal row of grading holds beside the common fields."""
        return {"task": request.task, "prompt_sha256": self._prompt.sha256}

    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply, which is one grade."""
        return _REPLY_CHARS

    def is_rejected(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Whether the service refused a request."""
        return refusal_of(row) is not None

    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write scores.jsonl and rejected.jsonl in the order of the pairs, and return the counts.

        `requests = replied + refused + failed + unanswered`; of the replied, `kept` have a grade.
        """
        tally = Tally()
        out = self.config.out
        with replace_file(out / "scores.jsonl") as kept, replace_file(out / "rejected.jsonl") as dropped:
            for pair, request in self._asked():
                tally.counts["requests"] += 1
                if (found := self._grade(request, journal, tally)) is None:
                    continue
                row: dict[str, Any] = {"text1": pair.text1, "text2": pair.text2}
                if isinstance(found, float):
                    tally.counts["kept"] += 1
                    row |= {"score": found, "model": self.spec.name, "key": request.key}
                    kept.write(dumps(row) + "\n")
                else:
                    reason, raw = found
                    row |= {"model": self.spec.name, "key": request.key, "reason": reason, "raw": raw}
                    dropped.write(dumps(row) + "\n")
        return {
            "blank_pairs": self.pairs.blank,
            "repeated_pairs": self.pairs.repeated,
            **tally.table("requests", "replied", "failed", "unanswered", "refused", "kept", "rejected"),
        }

    def _asked(self) -> Iterator[tuple[Pair, ChatRequest]]:
        """Yield every pair of this shard and its request."""
        grade = object_schema(id={"type": "integer"}, score={"type": "number"})
        sampling = self.spec.sampling(
            list_schema("grades", grade, 1) if self._prompt.reply == "json" else None
        )
        spec = self.spec
        for pair in self.pairs:
            if not spec.takes("\n".join(pair_key(pair.text1, pair.text2))):
                continue
            shown = f"Pair 1\nA: {pair.text1}\nB: {pair.text2}"
            messages = ({"role": "user", "content": self._prompt.fill({"pairs": shown})},)
            source, key = f"{pair.text1}\n{pair.text2}", request_key(spec.identity, messages, sampling)
            request = ChatRequest(
                key, content_id(source), source, "score", messages, spec.checkpoint, sampling
            )
            yield pair, request

    def _grade(self, request: ChatRequest, journal: Journal, tally: Tally) -> float | tuple[str, str] | None:
        """Return the grade of a pair, or reason and words of what came instead; None while it is open."""
        row = journal.row(request.key)
        refused = None if row is None else refusal_of(row)
        if row is not None and refused is None:
            tally.counts["replied"] += 1
            raw = whole_characters(row["reply"])
            found = parse_grade(raw, finish_reason=row.get("finish_reason"))
            if isinstance(found, str):
                tally.rejected[found] += 1
                return found, raw
            return found
        if (failure := journal.failures.get(request.key)) is not None:
            tally.failed[failure.kind] += 1
            return "request_failed", whole_characters(f"{failure.kind}: {failure.message}")
        if refused is not None:
            tally.counts["refused"] += 1
            tally.rejected["refused_by_server"] += 1
            return "refused_by_server", refused
        tally.counts["unanswered"] += 1
        return None
