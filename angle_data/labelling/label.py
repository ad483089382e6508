"""`llm-label`: asks an annotator for sentences about every text, and derives the candidates from its replies.

One request per text and polarity, or one per text for all degrees or queries, in the order of the texts.
`candidates.jsonl` and `rejected.jsonl` are a pure function of the requests and the journal, so a better
parser reaches old replies without another call.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from heapq import nsmallest
from typing import Any, Literal

from angle_data.annotators.answers import answer_of, words_of
from angle_data.annotators.base import ChatRequest
from angle_data.annotators.choice import choose_annotator
from angle_data.calling.rows import IN_MEMORY
from angle_data.errors import InputError
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.arriving import as_file
from angle_data.labelling.asking.budget import READ_IN_PART, is_read_in_part
from angle_data.labelling.asking.job import Job, Tally
from angle_data.labelling.asking.journal import Journal, refusal_of
from angle_data.labelling.asking.session import SessionResult, ask_all
from angle_data.labelling.config import POLARITIES, LabelConfig
from angle_data.labelling.prompts import Asked, list_schema, load_prompts, object_schema
from angle_data.labelling.replies.degrees import parse_degrees
from angle_data.labelling.replies.overlap import AnswerCounts, DegreeReport
from angle_data.labelling.replies.parse import Part, parse_reply
from angle_data.labelling.texts import TextFile
from angle_data.records import DEGREES, Candidate, Polarity, Rejection
from angle_data.text import counted, stable_hash, whole_characters

log = logging.getLogger("angle.labelling")

# Paraphrases run a little longer than what they paraphrase; used before any reply is known.
_REPLY_STRETCH = 1.3
_KEY_CHARS = 8  # of JSON around each sentence
_SIZE = 2  # without --size
_QUERIES = 3  # the same for queries: one of each kind
_QUERY_CHARS = 60  # of a query; used before any reply is known
_POLARITY = "both"  # without --polarity


def label(config: LabelConfig) -> SessionResult:
    """Run or resume a labelling run and return its counts.

    Writes journal.jsonl, candidates.jsonl, rejected.jsonl and run.json to `config.out`; the last three also
    when the run ends early. Raises what `session.ask_all` does.
    """
    job = LabelJob(config)
    if config.retry_rejected and (config.engine.temperature == 0 or config.engine.seed is not None):
        log.warning("--retry-rejected with --temperature 0 or --seed is likely to get the same replies again")
    return ask_all(job)


class LabelJob(Job):
    """The requests of a labelling run, and the candidates that follow from the replies."""

    command = "llm-label"

    def __init__(self, config: LabelConfig) -> None:
        self.config = config
        self.run, self.retry_rejected = config.out, config.retry_rejected
        self.spec = choose_annotator(config.engine, config.out)
        self._prompts = load_prompts(config.prompts)
        self._of_degrees = "degrees" in self._prompts
        self._of_queries = "query" in self._prompts
        fixed = ("polarity", "size") if self._of_degrees else ("polarity",) if self._of_queries else ()
        for name in fixed:
            if getattr(config, name) is not None:
                other = "degrees" if self._of_degrees else "queries"
                raise InputError(f"--{name} is for synonyms and antonyms, not for {other}; leave it out")
        self._asked: tuple[Asked, ...] = POLARITIES[config.polarity or _POLARITY]
        self._size = config.size or (_QUERIES if self._of_queries else _SIZE)
        if self._of_degrees:
            self._asked, self._size = ("degrees",), len(DEGREES)
        elif self._of_queries:
            self._asked = ("query",)
        self.texts = TextFile(
            as_file(config.texts, config.out / IN_MEMORY),
            text_field=config.text_field,
            id_field=config.id_field,
            limit=config.limit,
        )
        if config.pilot is not None:
            ranks = (stable_hash(text.text) for text in self.texts if self.spec.takes(text.text))
            self.last_rank = max(nsmallest(config.pilot, ranks), default=0)
        self.passed_over = {"blank": self.texts.blank, "repeated": self.texts.repeated}
        texts = min(self.spec.share_of(self.texts.count), config.pilot or self.texts.count)
        self.total = texts * len(self._asked)

    def requests(self, journal: Journal) -> Iterator[ChatRequest]:
        """Yield one request per text and prompt."""
        size = self._size
        sentence = {"type": "string"}
        schema = list_schema("queries" if self._of_queries else "sentences", sentence, size)
        if self._of_degrees:
            schema = object_schema(**{str(degree): sentence for degree in DEGREES})
        parts = []
        for asked in self._asked:
            prompt = self._prompts[asked]
            parts.append((asked, prompt, self.spec.sampling(schema if prompt.reply == "json" else None)))
        for text in self.texts:
            if self.spec.takes(text.text):
                for asked, prompt, sampling in parts:
                    content = prompt.fill({"size": str(size), "text": text.text})
                    yield self.request(journal, (text.id, text.text), asked, content, sampling)

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide what is asked, for run.json."""
        config = self.config
        prompts = {f"{asked}_sha256": prompt.sha256 for asked, prompt in self._prompts.items()}
        sentences: dict[str, Any] = {"size": self._size}
        if not self._of_queries:
            sentences["polarity"] = config.polarity or _POLARITY
        return {
            "texts": config.texts,
            "limit": config.limit,
            **({} if self._of_degrees else sentences),
            "prompts": {"name": config.prompts, **prompts},
        }

    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return what a journal row of labelling holds beside the common fields."""
        name = "polarity" if request.task in POLARITIES else "task"
        return {"prompt_sha256": self._prompts[_asked(request)].sha256, name: request.task}

    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply."""
        if self._of_queries:
            return self._size * (_QUERY_CHARS + _KEY_CHARS)
        return self._size * (len(request.source) * _REPLY_STRETCH + self._of_degrees * _KEY_CHARS)

    def asked_for(self, counts: Mapping[str, Any]) -> int:
        """Return the number of sentences that were asked for where there was an answer."""
        return int(self._size * (counts["replied"] + counts["refused"]))

    def is_rejected(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Whether the reply to a request holds no sentence."""
        return self.why_useless(request, row) is not None

    def why_useless(self, request: ChatRequest, row: dict[str, Any]) -> str | None:
        """Return the commonest reason why a reply holds no sentence; None if it holds one."""
        reasons = [part.reason for part in self._parse(request, row)]
        return None if None in reasons else Counter(reasons).most_common(1)[0][0] if reasons else "empty"

    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write candidates.jsonl and rejected.jsonl in the order of the requests, and return the counts.

        `requests = replied + refused + failed + unanswered`. `from_journal` of the replied ones were answered
        before this session, `without_sentence` of them gave no sentence. `kept` and `rejected` count the
        parts of replies. A request that was asked anew and failed counts as failed. `missing_degrees` counts
        the degrees without a sentence in replies that have some; `degrees` is what `DegreeReport` tells.
        """
        tally = Tally()
        report = DegreeReport()
        answers = AnswerCounts()
        out = self.config.out
        with replace_file(out / "candidates.jsonl") as kept, replace_file(out / "rejected.jsonl") as dropped:
            for request in self.requests(journal):
                state = tally.count(request.key, journal)
                candidates, rejections = self._records(request, journal)
                kept.writelines(dumps(record.to_dict()) + "\n" for record in candidates)
                dropped.writelines(dumps(record.to_dict()) + "\n" for record in rejections)
                tally.counts["kept"] += len(candidates)
                tally.rejected.update(record.reason for record in rejections)
                if state == "replied":
                    tally.counts["from_journal"] += journal.held_before(request.key)
                    tally.counts["without_sentence"] += not candidates
                for candidate in candidates:
                    answers.add(candidate)
                if degrees := {one.degree: one.text for one in candidates if one.degree is not None}:
                    report.add(request.source, degrees)
                    tally.counts["missing_degrees"] += len(DEGREES) - len(degrees)
        del tally.rejected["request_failed"]  # which are counted as failed
        if cut := tally.rejected["prompt_cut"]:
            log.warning(READ_IN_PART, counted(cut, "reply", "replies"))
        for said in filter(None, (report.warning(), answers.warning())):
            log.warning(said)
        return {
            "blank_texts": self.texts.blank,
            "repeated_rows": self.texts.repeated,
            **tally.table("requests", "from_journal", "replied", "failed", "unanswered", "refused"),
            **tally.table("without_sentence", "kept", "rejected"),
            **({**tally.table("missing_degrees"), "degrees": report.counts()} if self._of_degrees else {}),
        }

    def _records(self, request: ChatRequest, journal: Journal) -> tuple[list[Candidate], list[Rejection]]:
        """Return what the last reply to a request gives."""
        source = (request.source_id, request.source, _polarity(request))
        by = (self.spec.model, request.key)
        kind: Literal["query"] | None = "query" if request.task == "query" else None
        kept = list[Candidate]()
        dropped = list[Rejection]()
        row = journal.row(request.key)
        failure = journal.failures.get(request.key)
        if row is not None and (why := refusal_of(row)) is not None:
            dropped.append(Rejection(*source, "", *by, "refused_by_server", why))
        elif row is not None:
            raw = whole_characters(words_of(row))
            for text, reason, degree in self._parse(request, row):
                if reason is None:
                    kept.append(Candidate(*source, text, *by, degree, kind))
                else:
                    dropped.append(Rejection(*source, text, *by, reason, raw, degree, kind))
        if failure is not None:
            why = f"{failure.kind}: {whole_characters(failure.message)}"
            dropped.append(Rejection(*source, "", *by, "request_failed", why))
        return kept, dropped

    def _parse(self, request: ChatRequest, row: dict[str, Any]) -> list[Part]:
        if is_read_in_part(request, row):
            return [Part(answer_of(row).text, "prompt_cut")]
        answer = answer_of(row)
        prompt = self._prompts[_asked(request)].template
        if answer.refusal and not answer.text.strip():
            return [Part(answer.refusal, "refusal")]
        about: dict[str, Any] = {"source": request.source, "finish": answer.finish, "prompt": prompt}
        if request.task == "degrees":
            return parse_degrees(answer.text, **about)
        polarity = None if request.task == "query" else _polarity(request)
        return parse_reply(answer.text, **about, size=self._size, polarity=polarity)


def _asked(request: ChatRequest) -> Asked:
    """Return what a request asks for, which is never a grade."""
    assert request.task != "score", "labelling asks for sentences only"
    assert request.task != "duplicate", "labelling asks for sentences only"
    return request.task


def _polarity(request: ChatRequest) -> Polarity | None:
    """Return the polarity of what a request asks for, None for degrees; a query goes with its passage."""
    asked = _asked(request)
    return None if asked == "degrees" else "synonym" if asked == "query" else asked
