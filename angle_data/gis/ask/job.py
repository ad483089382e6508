"""The requests about doubtful comments, and the answers that follow from the replies.

answers.jsonl and rejected.jsonl are a pure function of the questions and the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from angle_data.annotators.answers import answer_of, words_of
from angle_data.annotators.base import ChatRequest
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.gis.ask.questions import Question
from angle_data.gis.ask.replies import RELATIONS, Judgement, read_reply
from angle_data.gis.build.answers import Answers, CommentAnswer
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.asking.budget import is_read_in_part
from angle_data.labelling.asking.job import Job, Tally
from angle_data.labelling.asking.journal import Journal, refusal_of
from angle_data.labelling.prompts import load_prompt, object_schema
from angle_data.resources import packaged_folder
from angle_data.text import whole_characters

PROMPT = "gis/duplicate.txt"
_LINK = object_schema(issue={"type": "string"}, relation={"type": "string", "enum": list(RELATIONS)})
SCHEMA = object_schema(links={"type": "array", "items": _LINK})
"""The JSON Schema of a reply."""

_REPLY_CHARS = 60


class AskJob(Job):
    """One request a question; `answers` are there once the session has ended."""

    command = "gis --ask"

    def __init__(
        self,
        spec: AnnotatorSpec,
        run: Path,
        questions: Sequence[Question],
        *,
        guesses: bool = False,
        retry_rejected: bool = False,
    ) -> None:
        self.spec, self.run = spec, run
        self.retry_rejected, self.passed_over = retry_rejected, {}
        self.questions = [one for one in questions if spec.takes(one.source)]
        self.total = len(self.questions)
        self.answers = Answers(spec.model, guesses=guesses)
        self._prompt = load_prompt(packaged_folder("prompts") / PROMPT, {"issue", "named", "comment"})
        self._asked: dict[str, Question] = {}

    def requests(self, journal: Journal) -> Iterator[ChatRequest]:
        """Yield the request of every question, in their order."""
        sampling = self.spec.sampling(SCHEMA)
        for question in self.questions:
            about = (question.url, question.source)
            content = self._prompt.fill(question.values)
            request = self.request(journal, about, "duplicate", content, sampling)
            self._asked[request.key] = question
            yield request

    def settings(self) -> dict[str, Any]:
        """Return the prompt, for run.json."""
        return {"prompt": {"name": PROMPT, "sha256": self._prompt.sha256}}

    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return what a journal row holds beside the common fields."""
        return {"task": request.task, "prompt_sha256": self._prompt.sha256}

    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply: most hold one link."""
        return _REPLY_CHARS

    def is_rejected(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Whether the server refused to answer, or nothing of its reply is of use."""
        return self.why_useless(request, row) is not None

    def why_useless(self, request: ChatRequest, row: dict[str, Any]) -> str | None:
        """Return why nothing of a reply counts; None if something does."""
        judged = self._read(request, row, self._asked[request.key])
        return None if judged.is_useful else judged.refused[0][0]

    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write answers.jsonl and rejected.jsonl in the order of the questions, and return the counts.

        `kept` counts answers of use; among `rejected` are parts of these, too.
        """
        tally = Tally()
        with (
            replace_file(self.run / "answers.jsonl") as kept,
            replace_file(self.run / "rejected.jsonl") as dropped,
        ):
            for request, question in zip(self.requests(journal), self.questions, strict=True):
                state, row = tally.count(request.key, journal), journal.row(request.key)
                about = {"url": question.url, "model": self.spec.model, "key": request.key}
                refused: list[tuple[str, str]] = []
                said = ""
                if (failure := journal.failures.get(request.key)) is not None:
                    said = whole_characters(f"{failure.kind}: {failure.message}")
                    refused = [("request_failed", "")]
                elif row is not None:
                    said = whole_characters(refusal_of(row) or words_of(row))
                    judged = self._read(request, row, question)
                    refused = judged.refused
                    if state == "replied" and judged.is_useful:
                        tally.counts["kept"] += 1
                        answer = self._answer(judged, question, request.key, said)
                        kept.write(dumps({**about, **_shown(answer), "reply": said}) + "\n")
                for reason, what in refused:
                    tally.rejected[reason] += reason != "request_failed"  # which is counted as failed
                    dropped.write(dumps({**about, "reason": reason, "about": what, "raw": said}) + "\n")
        del tally.rejected["request_failed"]
        return tally.table("requests", "replied", "failed", "unanswered", "refused", "kept", "rejected")

    def _answer(self, judged: Judgement, question: Question, key: str, said: str) -> CommentAnswer:
        answer = CommentAnswer(
            tuple(judged.confirmed), tuple(judged.unsure), bool(judged.refused), self.spec.model, key, said
        )
        self.answers.add(question.repo, question.number, question.body, answer)
        return answer

    def _read(self, request: ChatRequest, row: dict[str, Any], question: Question) -> Judgement:
        if refusal_of(row) is not None:
            return Judgement(refused=[("refused_by_server", "")])
        if request.messages and is_read_in_part(request, row):
            return Judgement(refused=[("prompt_cut", "")])
        answer = answer_of(row)
        if answer.refusal and not answer.text.strip():
            return Judgement(refused=[("refusal", "")])
        return read_reply(whole_characters(answer.text), answer.finish, question)


def _shown(answer: CommentAnswer) -> dict[str, Any]:
    """Return an answer as answers.jsonl shows it."""
    return {
        "confirmed": [
            {"repo": repo, "number": number, "direction": direction}
            for repo, number, direction in answer.confirmed
        ],
        "unsure": [{"repo": repo, "number": number} for repo, number in answer.unsure],
    }
