"""`llm-score`: a language model grades existing pairs from 0 to 5, then the grades are derived.

The scale is that of the STS tasks (https://aclanthology.org/S12-1051), in the words of prompts/score. A call
holds one pair or a few. Pairs that share a call are chosen by hash, so that neighbours of a file do not
colour each other's grades, and so that a pair more in the file changes one call, not all that follow.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from angle_data.annotators.base import ChatRequest, Sampling, request_key
from angle_data.annotators.choice import choose_annotator
from angle_data.errors import InputError
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

_Found = tuple[str, float | str, str]  # key of a request, grade or reason, and words of the reply or failure


def plan_score(config: ScoreConfig) -> SessionPlan:
    """Forecast what `score` would ask and cost; reads files only.

    Raises:
        InputError: The settings, pairs, prompt or journal cannot be used.
    """
    return plan_all(ScoreJob(config))


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


class ScoreJob(Job):
    """The requests of a grading run, one for each call, and the grades that follow from the replies.

    Pairs that a call of several leaves without a grade are asked about once more, each alone.

    Raises:
        InputError: The settings, the pairs or the prompt cannot be used.
    """

    command = "llm-score"

    def __init__(self, config: ScoreConfig) -> None:
        path = config.prompt or packaged_folder("prompts") / "score" / "pairs.txt"
        self._prompt = load_prompt(path, known=("pairs",), required=("pairs",))
        self.config = config
        self.pairs = PairFile(config.pairs, limit=config.limit)
        self.run, self.retry_rejected = config.out, config.retry_rejected
        self.spec = choose_annotator(config.engine, config.out)
        if config.pairs_per_call > 1 and self.spec.engine == "recorded":
            raise InputError("recorded grades are of single pairs; leave out --pairs-per-call")
        self.total = self.spec.share_of(self.pairs.count) if config.pairs_per_call == 1 else None
        self._sampling = cache(self._make_sampling)
        self._shared = set[str]()  # keys of requests about several pairs

    def requests(self, journal: Journal) -> Iterator[ChatRequest]:
        """Yield the request of every call; with `retry_rejected`, also those of pairs to be asked alone."""
        for call in self._calls():
            request = self._request(call)
            row = journal.row(request.key) if self.retry_rejected and len(call) > 1 else None
            yield request
            if row is not None:
                grades = zip(call, _read(row, len(call)), strict=True)
                yield from (self._request((pair,)) for pair, grade in grades if isinstance(grade, str))

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide what is asked, for run.json."""
        config = self.config
        return {
            "pairs": config.pairs,
            "limit": config.limit,
            "pairs_per_call": config.pairs_per_call,
            "prompt": {"name": str(config.prompt or "score/pairs.txt"), "sha256": self._prompt.sha256},
        }

    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return what a journal row of grading holds beside the common fields."""
        return {"task": request.task, "prompt_sha256": self._prompt.sha256}

    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply from its number of grades."""
        return _CHARS_PER_GRADE * (request.source.count("\n\n") + 1)

    def is_rejected(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Whether a pair that was asked about alone has no grade."""
        return request.key not in self._shared and isinstance(_read(row, 1)[0], str)

    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write scores.jsonl and rejected.jsonl in the order of the calls, and return the counts.

        `requests = replied + refused + failed + unanswered`; of the `pairs` that were replied to, `kept` have
        a grade.
        """
        tally = Tally()
        out = self.config.out
        with replace_file(out / "scores.jsonl") as kept, replace_file(out / "rejected.jsonl") as dropped:
            for call in self._calls():
                tally.counts["pairs"] += len(call)
                for pair, (key, found, raw) in self._graded(call, journal, tally):
                    row = {"text1": pair.text1, "text2": pair.text2}
                    if isinstance(found, float):
                        tally.counts["kept"] += 1
                        kept.write(dumps({**row, "score": found, "model": self.spec.name, "key": key}) + "\n")
                        continue
                    if found != "request_failed":
                        tally.rejected[found] += 1
                    row |= {"model": self.spec.name, "key": key, "reason": found, "raw": raw}
                    dropped.write(dumps(row) + "\n")
        return {
            "blank_pairs": self.pairs.blank,
            "repeated_pairs": self.pairs.repeated,
            **tally.table("requests", "replied", "failed", "unanswered", "refused"),
            **tally.table("pairs", "kept", "rejected"),
        }

    def _calls(self) -> Iterator[Call]:
        """Yield the pairs of every call of this shard; calls of one pair are streamed."""
        wanted = (pair for pair in self.pairs if self.spec.takes("\n".join(pair_key(pair.text1, pair.text2))))
        if self.config.pairs_per_call == 1:
            return ((pair,) for pair in wanted)
        return group_pairs(list(wanted), self.config.pairs_per_call)

    def _request(self, call: Call) -> ChatRequest:
        shown = (f"Pair {n}\nA: {pair.text1}\nB: {pair.text2}" for n, pair in enumerate(call, start=1))
        messages = ({"role": "user", "content": self._prompt.fill({"pairs": "\n\n".join(shown)})},)
        source = "\n\n".join(f"{pair.text1}\n{pair.text2}" for pair in call)
        sampling = self._sampling(len(call))
        key = request_key(self.spec.identity, messages, sampling)
        if len(call) > 1:
            self._shared.add(key)
        return ChatRequest(key, content_id(source), source, "score", messages, self.spec.checkpoint, sampling)

    def _make_sampling(self, count: int) -> Sampling:
        grade = object_schema(id={"type": "integer"}, score={"type": "number"})
        return self.spec.sampling(
            list_schema("grades", grade, count) if self._prompt.reply == "json" else None
        )

    def _graded(self, call: Call, journal: Journal, tally: Tally) -> Iterator[tuple[Pair, _Found]]:
        """Yield the pairs of a call with what was found; of a pair that was asked alone, too, that counts."""
        for pair, found in zip(call, self._found(call, journal, tally), strict=False):
            if len(call) > 1 and isinstance(found[1], str):
                alone = self._request((pair,)).key
                if alone in journal or alone in journal.failures:
                    (found,) = self._found((pair,), journal, tally)
            yield pair, found

    def _found(self, call: Call, journal: Journal, tally: Tally) -> list[_Found]:
        """Return what a request says of each of its pairs, and count it; nothing while it is open."""
        key = self._request(call).key
        row, failure = journal.row(key), journal.failures.get(key)
        refused = None if row is None else refusal_of(row)
        tally.counts["requests"] += 1
        if failure is not None:
            tally.failed[failure.kind] += 1
        else:
            state = "unanswered" if row is None else "replied" if refused is None else "refused"
            tally.counts[state] += 1
        if failure is not None and (row is None or refused is not None):
            raw = whole_characters(f"{failure.kind}: {failure.message}")
            return [(key, "request_failed", raw)] * len(call)
        if row is None:
            return []
        raw = whole_characters(row["reply"]) if refused is None else refused
        return [(key, grade, raw) for grade in _read(row, len(call))]


def _read(row: dict[str, Any], count: int) -> list[float | str]:
    """Return the grade of each pair of a journal row, or the reason why it has none."""
    if refusal_of(row) is not None:
        return ["refused_by_server"] * count
    return parse_grades(whole_characters(row["reply"]), count=count, finish_reason=row.get("finish_reason"))
