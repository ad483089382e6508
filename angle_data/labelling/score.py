"""`llm-score`: a language model grades existing pairs from 0 to 5, then the grades are derived.

The scale is that of the STS tasks (https://aclanthology.org/S12-1051), in the words of prompts/score. A call
holds one pair or a few, which are chosen by hash, so that neighbours of a file do not colour each other's
grades. What the journal has calls for stays in them, and the rest fills new ones: a pair that has a grade is
never asked again, whatever comes or goes beside it.

A pair that its call leaves without a grade is asked again in the same session: alone, and then with its texts
exchanged, which is another question even at temperature 0. After that it is set aside with the reason.
Nothing is asked again of a grader that has never given a grade, and all such questions together are no more
than the first ones (`most_again`), so a run costs at most about twice its forecast.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from heapq import nsmallest
from pathlib import Path
from typing import Any, NamedTuple

from angle_data.annotators.answers import answer_of, words_of
from angle_data.annotators.base import NOT_RECORDED, ChatRequest
from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.calling.options import check_named_once
from angle_data.errors import InputError
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.asking.forecast import SessionPlan, plan_all
from angle_data.labelling.asking.job import Job, Tally
from angle_data.labelling.asking.journal import Journal, refusal_of
from angle_data.labelling.asking.session import SessionResult, ask_all
from angle_data.labelling.config import ScoreConfig
from angle_data.labelling.prompts import list_schema, load_prompt, object_schema
from angle_data.labelling.replies.grades import parse_grades
from angle_data.labelling.texts import PairFile, TextPair, make_pair
from angle_data.records import (
    GRADE_SCALE,
    SCALE,
    candidates_file,
    model_behind,
    read_candidates,
    read_run_file,
    same_model,
)
from angle_data.resources import packaged_folder
from angle_data.text import content_id, pair_key, whole_characters

log = logging.getLogger("angle.labelling")

_CHARS_PER_GRADE = 30
_GRADE = object_schema(id={"type": "integer"}, score={"type": "number"})
_REFUSED = "refused_by_server"
_PROMPTS = {None: "pairs.txt", "opposites": "opposites.txt", "topics": "pairs.txt", "search": "answers.txt"}
# What the grades are for -> the packaged prompt; all on the scale of `records.MEANINGS`, but for queries.
_FEWEST_AGAIN = 20  # second questions that even a short run may ask
# From so many grades on, one grade for nearly all of them is no judgement.
_ENOUGH = 20
_ALL_ALIKE = 0.95

Call = tuple[TextPair, ...]  # the pairs of one request, numbered from 1 in this order


class _Found(NamedTuple):
    """What is known of a pair: its grade or the reason why it has none, from which request."""

    key: str
    grade: float | str


def plan_score(config: ScoreConfig) -> SessionPlan:
    """Forecast what `score` would ask and cost; reads files only. Raises what `plan_all` does."""
    return plan_all(ScoreJob(config))


def score(config: ScoreConfig) -> SessionResult:
    """Run or resume a grading run and return its counts.

    Writes journal.jsonl, scores.jsonl (`text1, text2, score, model, key`; with a packaged prompt `scale`,
    too), rejected.jsonl and run.json to `config.out`; the last three also when the run ends early. Raises
    what `session.ask_all` does.
    """
    return ask_all(ScoreJob(config))


def prompt_path(config: ScoreConfig) -> Path:
    """Return the prompt file of a grading run: the one given, or a packaged one by name or purpose."""
    if config.prompt is None:
        return _packaged() / _PROMPTS[config.purpose]
    known = _packaged() / f"{config.prompt}.txt"
    return known if known.is_file() and not config.prompt.exists() else config.prompt


def _packaged() -> Path:
    return packaged_folder("prompts") / "score"


class ScoreJob(Job):
    """The requests of a grading run, one for each call, and the grades that follow from the replies."""

    command = "llm-score"
    asks_again = True

    def __init__(self, config: ScoreConfig) -> None:
        self._prompt = load_prompt(prompt_path(config), {"pairs"})
        self.config = config
        self._files = [*map(candidates_file, config.runs), *config.pairs]
        if not self._files:
            raise InputError("nothing to grade: give run folders of llm-label, or files with --pairs FILE")
        check_named_once(self._files)
        self.pairs = PairFile(*self._files, limit=config.limit)
        self.passed_over = {"blank": self.pairs.blank, "repeated": self.pairs.repeated}
        self.run, self.retry_rejected = config.out, config.retry_rejected
        self.spec = choose_annotator(config.engine, config.out)
        if config.pairs_per_call > 1 and self.spec.engine == "recorded":
            raise InputError("recorded grades are of single pairs; leave out --pairs-per-call")
        _check_authors(config, self.spec)
        if config.pilot is not None:
            self.last_rank = max(nsmallest(config.pilot, (pair.rank for pair in self._wanted())), default=0)
        pairs = min(self.spec.share_of(self.pairs.count), config.pilot or self.pairs.count)
        self.total = math.ceil(pairs / config.pairs_per_call)
        self.most_again = max(self.total, _FEWEST_AGAIN) if self.spec.engine != "recorded" else 0
        self._schema = cache(lambda count: list_schema("grades", _GRADE, count))
        self._shared: dict[str, Call] | None = None  # calls of several pairs, by the key of their request
        self._set_aside = set[str]()  # keys of the last request about a pair without a grade
        self._asked_alone: dict[int, str] = {}  # rank -> key of the journal's first request about a pair
        self._again = set[str]()  # keys of the second questions that this session asks
        self._again_before = 0  # the second questions that the journal holds
        self._has_graded = False  # whether this grader has ever given a grade

    def requests(self, journal: Journal) -> Iterator[ChatRequest]:
        """Yield the request of every call, and those about single pairs: all that are due by the journal."""
        if not self._has_graded:
            grades = (grade for row in journal.rows() for grade in _read(row, len(self._texts_of(row)) or 1))
            self._has_graded = any(isinstance(grade, float) for grade in grades)
        for key, call in self._shared_calls(journal).items():
            if self._gave_nothing(key, call, journal):
                self._set_aside.add(key)
            yield self._request(call, journal)
        shared = self._of_shared(journal)
        for pair in self._wanted():
            due, found = self._follow(pair, shared, journal)
            lacks_grade = found and isinstance(found.grade, str)
            if due and found and lacks_grade and found.key == due[-1].key and journal.held_before(found.key):
                self._set_aside.add(found.key)
            yield from due

    def is_sampled(self, request: ChatRequest) -> bool:
        """Whether the request is asked in this session: `requests` yields no others."""
        return True

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide what is asked, for run.json."""
        config = self.config
        return {
            "pairs": self._files[0] if len(self._files) == 1 else self._files,
            "limit": config.limit,
            "pairs_per_call": config.pairs_per_call,
            "prompt": {
                "name": str(config.prompt or f"score/{_PROMPTS[config.purpose]}"),
                "sha256": self._prompt.sha256,
            },
        }

    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return what a journal row of grading holds beside the common fields.

        Those are the pairs of a call, too, where its `source` does not tell them apart.
        """
        call = (self._shared or {}).get(request.key, ())
        unclear = any("\n" in pair.text1 or "\n" in pair.text2 for pair in call)
        pairs = {"pairs": [[pair.text1, pair.text2] for pair in call]} if unclear else {}
        return {"task": request.task, "prompt_sha256": self._prompt.sha256, **pairs}

    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply from its number of grades."""
        return _CHARS_PER_GRADE * (request.source.count("\n\n") + 1)

    def is_rejected(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Whether this is the last that was asked about a pair, or a call, without a grade."""
        return request.key in self._set_aside and self.why_useless(request, row) is not None

    def why_useless(self, request: ChatRequest, row: dict[str, Any]) -> str | None:
        """Return the commonest reason why the reply to a request holds no grade; None if it holds one."""
        call = (self._shared or {}).get(request.key, ())
        grades = _read(row, len(call) or 1)
        reasons = Counter(grade for grade in grades if isinstance(grade, str))
        return reasons.most_common(1)[0][0] if reasons.total() == len(grades) else None

    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write scores.jsonl and rejected.jsonl in the order of the pairs, and return the counts.

        `requests = replied + refused + failed + not_recorded + unanswered`; of the `pairs` that were replied
        to, `kept` have a grade. `asked_again` of the requests are second questions. What a pilot leaves to a
        later session counts as unanswered.
        """
        tally = Tally()
        grades = Counter[float]()
        out = self.config.out
        for key, call in list(self._shared_calls(journal).items()):
            if key in journal.failures and all(self._alone(pair, journal)[0].key in journal for pair in call):
                del journal.failures[key], self._shared_calls(journal)[key]  # it was asked pair by pair
                continue
            tally.count(key, journal)
        shared = self._of_shared(journal)
        # A prompt of the user's own may use a part of the scale, such as 1 to 5.
        scale = {SCALE: GRADE_SCALE} if prompt_path(self.config).parent == _packaged() else {}
        with replace_file(out / "scores.jsonl") as kept, replace_file(out / "rejected.jsonl") as dropped:
            for pair in self._wanted():
                tally.counts["pairs"] += 1
                due, found = self._follow(pair, shared, journal)
                for request in due:
                    tally.count(request.key, journal)
                tally.counts["asked_again"] += max(len(due) - (pair.rank not in shared), 0)
                if found is None:
                    continue
                row: dict[str, Any] = {"text1": pair.text1, "text2": pair.text2}
                if isinstance(found.grade, float):
                    grades[found.grade] += 1
                    row |= {"score": found.grade, **scale, "model": self.spec.model, "key": found.key}
                    kept.write(dumps(row) + "\n")
                    continue
                if found.grade != "request_failed":
                    tally.rejected[found.grade] += 1
                row |= {"model": self.spec.model, "key": found.key, "reason": found.grade}
                dropped.write(dumps({**row, "raw": _raw(found.key, journal)}) + "\n")
        if self.last_rank is not None:
            later = self.spec.share_of(self.pairs.count) - tally.counts["pairs"]
            calls = math.ceil(max(later, 0) / self.config.pairs_per_call)
            tally.counts.update(requests=calls, unanswered=calls)
        tally.counts["kept"] = grades.total()
        tally.counts[NOT_RECORDED] = tally.failed.pop(NOT_RECORDED, 0)
        _warn_if_alike(grades)
        return {
            "blank_pairs": self.pairs.blank,
            "repeated_pairs": self.pairs.repeated,
            **tally.table("requests", "replied", "failed", "not_recorded", "unanswered", "refused"),
            **tally.table("asked_again", "pairs", "kept", "rejected"),
        }

    def _wanted(self) -> Iterator[TextPair]:
        """Yield the pairs of this shard; of a pilot those of its sample, which have the least ranks."""
        for pair in self.pairs:
            is_sampled = self.last_rank is None or pair.rank <= self.last_rank
            if is_sampled and self.spec.takes("\n".join(pair_key(pair.text1, pair.text2))):
                yield pair

    def _shared_calls(self, journal: Journal) -> dict[str, Call]:
        """Return a session's calls of several pairs: those of the journal, and full new ones for the rest."""
        if self._shared is None:
            calls: list[Call] = []
            alone: dict[int, set[str]] = {}  # rank -> keys of the requests about a single pair
            for row in journal.rows():
                call = tuple(make_pair(*pair) for pair in self._texts_of(row))
                if not call or self._request(call, journal).key != row["key"]:
                    continue  # it was asked with other settings
                if len(call) > 1:
                    calls.append(call)
                    continue
                self._asked_alone.setdefault(call[0].rank, row["key"])
                alone.setdefault(call[0].rank, set()).add(row["key"])
            most = self.config.pairs_per_call
            wanted = {pair.rank: pair for pair in self._wanted()} if calls or most > 1 else {}
            calls = [call for call in calls if any(pair.rank in wanted for pair in call)]
            known = {pair.rank for call in calls for pair in call}
            self._again_before = sum(len(keys) - (rank not in known) for rank, keys in alone.items())
            left = [pair for rank, pair in sorted(wanted.items()) if most > 1 and rank not in known]
            left = [pair for pair in left if self._alone(pair, journal)[0].key not in journal]
            calls += [tuple(left[start : start + most]) for start in range(0, len(left), most)]
            self._shared = {self._request(call, journal).key: call for call in calls if len(call) > 1}
        return self._shared

    @staticmethod
    def _texts_of(row: dict[str, Any]) -> list[list[str]]:
        """Return the texts of the pairs that a journal row is about; none for rows of other commands."""
        texts = row.get("pairs") or [part.split("\n") for part in str(row.get("source")).split("\n\n")]
        return texts if row.get("task") == "score" and all(len(pair) == 2 for pair in texts) else []

    def _alone(self, pair: TextPair, journal: Journal) -> list[ChatRequest]:
        """Return the requests about a single pair in the order in which they are tried.

        That is as it stands (or as the journal spells it) and with its texts exchanged, but first what the
        journal answers already.
        """
        requests = self._both_ways(pair, journal)
        known = self._asked_alone.get(pair.rank)
        if known and known not in [request.key for request in requests] and (row := journal.row(known)):
            requests = self._both_ways(make_pair(*self._texts_of(row)[0]), journal)
        if self.spec.engine == "recorded":  # whose grades are those of either order
            del requests[1:]
        return sorted(requests, key=lambda request: request.key not in journal)

    def _both_ways(self, pair: TextPair, journal: Journal) -> list[ChatRequest]:
        turned = TextPair(pair.text2, pair.text1, pair.rank)
        return [self._request((one,), journal) for one in (pair, turned)]

    def _request(self, call: Call, journal: Journal) -> ChatRequest:
        shown = (f"Pair {n}\nA: {pair.text1}\nB: {pair.text2}" for n, pair in enumerate(call, start=1))
        source = "\n\n".join(f"{pair.text1}\n{pair.text2}" for pair in call)
        content = self._prompt.fill({"pairs": "\n\n".join(shown)})
        schema = self._schema(len(call)) if self._prompt.reply == "json" else None
        about = content_id(source), source
        return self.request(journal, about, "score", content, self.spec.sampling(schema))

    def _of_shared(self, journal: Journal) -> dict[int, _Found | None]:
        """Return what is known of each pair of a shared call, None while nothing is; a grade counts most."""
        found: dict[int, _Found | None] = {}
        for key, call in self._shared_calls(journal).items():
            grades: Sequence[float | str | None] = [None] * len(call)
            if (row := journal.row(key)) is not None:
                grades = _read(row, len(call))
            elif key in journal.failures and len(journal):
                grades = [_REFUSED] * len(call)  # while others are answered: one of its pairs fails it
            for pair, grade in zip(call, grades, strict=True):
                before = found.setdefault(pair.rank, None)
                if grade is not None and (before is None or isinstance(before.grade, str)):
                    found[pair.rank] = _Found(key, grade)
        return found

    def _follow(
        self, pair: TextPair, shared: dict[int, _Found | None], journal: Journal
    ) -> tuple[list[ChatRequest], _Found | None]:
        """Return the requests about a pair alone, up to an open one, and what is known of it in the end."""
        due = list[ChatRequest]()
        known = shared.get(pair.rank)
        if pair.rank in shared and (known is None or isinstance(known.grade, float)):
            return due, known
        for request in self._alone(pair, journal):
            is_first = pair.rank not in shared and not due
            if not is_first and not self._may_ask_again(request.key, journal):
                break
            due.append(request)
            row = journal.row(request.key)
            failure = journal.failures.get(request.key)
            if failure is not None and (row is None or refusal_of(row) is not None):
                reason = NOT_RECORDED if failure.kind == NOT_RECORDED else "request_failed"
                return due, _Found(request.key, reason)
            if row is None:
                break
            known = _Found(request.key, _read(row, 1)[0])
            if isinstance(known.grade, float) or known.grade == _REFUSED:
                break
        return due, known

    def _may_ask_again(self, key: str, journal: Journal) -> bool:
        """Whether a second question about a pair is asked, or was; see `most_again`."""
        if key in journal or key in journal.failures or key in self._again:
            return True
        if self._again_before + len(self._again) >= self.most_again or not self._has_graded:
            return False
        self._again.add(key)
        return True

    def _gave_nothing(self, key: str, call: Call, journal: Journal) -> bool:
        """Whether a call of several pairs is all that was ever asked about them, and gave no grade."""
        if not self.retry_rejected or (row := journal.row(key)) is None:
            return False
        nothing = all(isinstance(grade, str) for grade in _read(row, len(call)))
        return nothing and not any(self._alone(pair, journal)[0].key in journal for pair in call)


def _check_authors(config: ScoreConfig, spec: AnnotatorSpec) -> None:
    """Read all candidates before anything is paid for; say which of their grades would not count."""
    wrote = Counter[bool]()
    names = set[str]()
    grader = model_behind(spec.model, {"checkpoint": spec.checkpoint, "base_urls": spec.base_urls})
    for run in config.runs:
        recorded = read_run_file(run)
        for row in read_candidates(run):
            own = spec.model == row.model or same_model(grader, model_behind(row.model, recorded))
            wrote[own] += 1
            names |= {row.model} - {spec.model} if own else set()
    called = f"{spec.model} ({grader}, as {' and '.join(sorted(names))})" if names else spec.model
    said = (
        f"{called} wrote {wrote[True]} of {wrote.total()} candidates itself, and its grades of them do not "
        "count in `ensemble`; grade with another model"
    )
    if wrote and not wrote[False] and not config.pairs:
        raise InputError(said)
    if wrote[True]:
        log.warning("warning: %s", said)


def _raw(key: str, journal: Journal) -> str:
    """Return the words of the reply to a request, or of its failure or refusal."""
    row = journal.row(key)
    failure = journal.failures.get(key)
    if failure is not None:
        return whole_characters(f"{failure.kind}: {failure.message}")
    return whole_characters(refusal_of(row) or words_of(row)) if row is not None else ""


def _read(row: dict[str, Any], count: int) -> list[float | str]:
    """Return the grade of each pair of a journal row, or the reason why it has none."""
    if refusal_of(row) is not None:
        return [_REFUSED] * count
    answer = answer_of(row)
    if answer.refusal and not answer.text.strip():
        return ["refusal"] * count
    return parse_grades(whole_characters(answer.text), count=count, finish=answer.finish)


def _warn_if_alike(grades: Counter[float]) -> None:
    """Warn of a grader that says the same of nearly all pairs."""
    for grade, times in grades.most_common(1):
        if times >= _ALL_ALIKE * grades.total() and grades.total() >= _ENOUGH:
            said = "%d of %d grades are %g: this grader does not judge; choose another model or prompt"
            log.warning(said, times, grades.total(), grade)
