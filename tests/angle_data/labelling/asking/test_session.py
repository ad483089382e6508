"""The session on its own, with requests that are no labelling and an annotator that sends nothing."""

import json
from dataclasses import replace

import pytest

from angle_data.annotators.base import ChatRequest, Failure, Reply, request_key
from angle_data.annotators.choice import ANNOTATORS, choose_annotator
from angle_data.annotators.spec import EngineConfig
from angle_data.errors import AnnotatorError, InputError, StoppedError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.asking.forecast import plan_all
from angle_data.labelling.asking.session import Job, ask_all


class Echo:
    """Repeats the question. `behaviour` of the class is set by each test."""

    pulled = 0
    streams = 0
    fail_on: frozenset = frozenset()
    stops_after: int | None = None
    seconds = 0.0
    kind = "broken"
    at_start = staticmethod(lambda: None)

    def __init__(self, spec):
        self.spec = spec

    async def stream(self, requests):
        Echo.streams += 1
        Echo.at_start()
        for request in requests:
            Echo.pulled += 1
            if Echo.stops_after is not None and Echo.pulled > Echo.stops_after:
                raise StoppedError("batches are worked on; run the same command again to fetch")
            if request.source in Echo.fail_on:
                yield Failure(request.key, Echo.kind, "as told")
            else:
                yield Reply(request.key, request.messages[0]["content"], "stop", seconds=Echo.seconds)


@pytest.fixture(autouse=True)
def _echo(monkeypatch):
    monkeypatch.setitem(ANNOTATORS, "echo", f"{__name__}:Echo")
    Echo.pulled = Echo.streams = 0
    Echo.fail_on, Echo.stops_after, Echo.seconds = frozenset(), None, 0.0
    Echo.kind, Echo.at_start = "broken", lambda: None


ENGINE = EngineConfig("grader", engine="echo", base_urls=("http://h/v1",), temperature=0.0)


class Questions(Job):
    """One question per name; `wanted` replaces what `derive` returns, `again` the sources to ask anew."""

    command = "llm-score"

    def __init__(self, folder, names, *, command="llm-score", again=None, wanted=None):
        self.run, self.spec, self.names = folder, choose_annotator(ENGINE, folder), names
        self.command, self.again, self.wanted = command, again, wanted
        self.retry_rejected = again is not None

    def requests(self, journal):
        sampling = self.spec.sampling()
        for name in self.names:
            messages = ({"role": "user", "content": f"grade {name}"},)
            key = request_key(self.spec.identity, messages, sampling)
            yield ChatRequest(key, name, name, "score", messages, self.spec.checkpoint, sampling)

    def settings(self):
        return {"rubric": "sts"}

    def fields(self, request):
        return super().fields(request) | {"pairs": [request.source]}

    def reply_chars(self, request):
        return 8

    def is_rejected(self, request, row):
        return request.source in self.again

    def derive(self, journal):
        if self.wanted is not None:
            return self.wanted
        rows = [journal.row(request.key) for request in self.requests(journal)]
        failures = [journal.failures.get(request.key) for request in self.requests(journal)]
        (self.run / "scores.txt").write_text("\n".join(row["reply"] for row in rows if row))
        failed = [failure.kind for failure in failures if failure]
        return {
            "requests": len(rows),
            "replied": sum(map(bool, rows)),
            "kept": sum(map(bool, rows)),
            "rejected": {},
            "failed": {kind: failed.count(kind) for kind in failed},
            "unanswered": len(rows) - sum(map(bool, rows)) - len(failed),
        }


def run(folder, names, **options):
    return ask_all(Questions(folder, names, **options))


def test_a_session_asks_derives_and_accounts(tmp_path):
    result = run(tmp_path, ["a", "b", "a"])
    assert (result.model, result.run) == ("grader", tmp_path)
    assert result.counts == {
        "requests": 3, "replied": 3, "kept": 3, "rejected": {}, "failed": {}, "unanswered": 0,
        "asked": 2,
    }  # fmt: skip
    assert (tmp_path / "scores.txt").read_text() == "grade a\ngrade b\ngrade a"
    settings = json.loads((tmp_path / "run.json").read_text())
    assert [settings[name] for name in ("command", "rubric", "replies")] == ["llm-score", "sts", 2]
    (first, _) = [row for _, row in read_jsonl(tmp_path / "journal.jsonl")]
    assert (first["task"], first["pairs"], first["reply"]) == ("score", ["a"], "grade a")
    assert list(first)[-3:] == ["usage", "seconds", "time"]
    assert run(tmp_path, ["a", "b", "c"]).counts["asked"] == 1
    assert Echo.pulled == 3


def test_an_annotator_that_cannot_be_built_leaves_a_run_as_it_was(tmp_path, monkeypatch, caplog):
    run(tmp_path, ["a"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    caplog.clear()

    def refuse(self, spec):
        raise InputError("no such file")

    monkeypatch.setattr(Echo, "__init__", refuse)
    monkeypatch.setattr(Questions, "settings", lambda self: {"rubric": "other"})
    with pytest.raises(InputError, match="no such file"):
        run(tmp_path, ["a", "b"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert not caplog.records


def test_a_folder_without_a_reply_is_free_for_another_annotator(tmp_path):
    Echo.fail_on = frozenset("a")
    with pytest.raises(AnnotatorError, match="every request failed"):
        run(tmp_path, ["a"])
    other = Questions(tmp_path, ["b"])
    other.spec = replace(other.spec, model="other")
    assert ask_all(other).model == "other"
    assert json.loads((tmp_path / "run.json").read_text())["failures"] == {}
    with pytest.raises(InputError, match="holds a run of 'other'; give another --out for 'grader'"):
        run(tmp_path, ["a"])


def test_an_annotator_that_stops_keeps_what_came_and_its_exit_code(tmp_path):
    Echo.stops_after = 1
    with pytest.raises(StoppedError, match="run the same command again to fetch") as stopped:
        run(tmp_path, ["a", "b", "c"])
    assert stopped.value.exit_code == 75
    settings = json.loads((tmp_path / "run.json").read_text())
    assert (settings["finished"], settings["counts"]["unanswered"]) == (False, 2)
    assert (tmp_path / "scores.txt").read_text() == "grade a"


def test_some_failures_stop_and_only_failures_are_an_error(tmp_path):
    Echo.fail_on = frozenset("b")
    with pytest.raises(
        StoppedError,
        match=r"^1 request failed, with broken: as told; run the same command again to ask it again$",
    ):
        run(tmp_path, ["a", "b"])
    # Nothing but failures, and yet not every request of the run.
    with pytest.raises(StoppedError, match=r"^1 request failed, with broken"):
        run(tmp_path, ["a", "b"])
    assert json.loads((tmp_path / "run.json").read_text())["failures"] == {"broken": 2}
    Echo.fail_on = frozenset("bc")
    with pytest.raises(StoppedError, match=r"^2 requests failed, most with .* to ask them again$"):
        run(tmp_path, ["a", "b", "c"])
    with pytest.raises(AnnotatorError, match=r"^every request failed \(2\), most with broken: as told$"):
        run(tmp_path / "other", ["b", "c"])
    Echo.fail_on = frozenset()
    assert run(tmp_path, ["a", "b"]).counts["replied"] == 2


def test_a_run_is_unfinished_from_its_first_request_on(tmp_path):
    """So a kill at any later moment leaves no old run.json that calls the run finished."""
    found = []
    Echo.at_start = lambda: found.append(json.loads((tmp_path / "run.json").read_text()))
    run(tmp_path, ["a"])
    run(tmp_path, ["a", "b"])
    assert [before["finished"] for before in found] == [False, False]
    assert [before.get("counts", {}).get("requests") for before in found] == [None, 1]
    assert (found[0]["model"], found[0]["command"], found[0]["rubric"]) == ("grader", "llm-score", "sts")
    assert json.loads((tmp_path / "run.json").read_text())["finished"] is True
    run(tmp_path, ["a", "b"])  # asks nothing
    assert len(found) == 2


def test_what_is_refused_is_final_once_others_are_answered(tmp_path, caplog):
    Echo.kind, Echo.fail_on = "http_422", frozenset("b")
    with pytest.raises(AnnotatorError, match=r"^every request failed \(1\), most with http_422: as told$"):
        run(tmp_path, ["b"])
    assert (tmp_path / "journal.jsonl").read_text() == ""
    counts = run(tmp_path, ["a", "b"]).counts
    assert counts["asked"] == 2
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings[-1].startswith(
        "1 request set aside as refused or failing again and again, most with http_422: "
    )
    assert run(tmp_path, ["a", "b"]).counts["asked"] == 0
    Echo.fail_on = frozenset("bc")  # and nothing else is asked
    assert [run(tmp_path, ["a", "b", "c"]).counts["asked"] for _ in range(2)] == [1, 0]
    account = json.loads((tmp_path / "run.json").read_text())
    assert (account["finished"], account["replies"], account["failures"]) == (True, 1, {"http_422": 1})


def test_equal_refusals_of_all_that_is_left_are_an_error_and_not_final(tmp_path):
    """A server that was set up anew, say; five texts of one kind are not likely."""
    run(tmp_path, ["a"])
    Echo.kind, Echo.fail_on = "http_400", frozenset("bcdef")
    with pytest.raises(
        AnnotatorError, match=r"^every request that was left is refused alike \(5\), with http_4"
    ):
        run(tmp_path, list("abcdef"))
    Echo.fail_on = frozenset()
    assert run(tmp_path, list("abcdef")).counts["asked"] == 5


def test_an_error_that_ends_the_session_makes_nothing_final(tmp_path, monkeypatch):
    async def stream(self, requests):
        first, second, *_ = requests
        yield Reply(first.key, "fine")
        yield Failure(second.key, "http_400", "as told")
        raise AnnotatorError("the server rejects every request")

    with monkeypatch.context() as patch:
        patch.setattr(Echo, "stream", stream)
        with pytest.raises(AnnotatorError, match="rejects every"):
            run(tmp_path, ["a", "b", "c"])
    stopped_by = json.loads((tmp_path / "run.json").read_text())["stopped_by"]
    assert stopped_by == "the server rejects every request"
    assert run(tmp_path, ["a", "b", "c"]).counts["asked"] == 2


def test_replies_that_are_cut_off_want_more_tokens(tmp_path):
    counts = {"requests": 2, "replied": 2, "kept": 0, "rejected": {"truncated": 2, "empty": 1}, "failed": {}}
    message = (
        r"^no reply is of use \(2 replies, most: truncated 2, empty 1\); .* raise --max-tokens \(now 512\)$"
    )
    with pytest.raises(AnnotatorError, match=message):
        run(tmp_path, ["a", "b"], wanted={**counts, "unanswered": 0})


def test_an_annotator_that_pulls_nothing_does_not_go_round_forever(tmp_path, monkeypatch):
    async def stream(self, requests):
        Echo.streams += 1
        return
        yield

    monkeypatch.setattr(Echo, "stream", stream)
    with pytest.raises(StoppedError, match="1 request was not answered; run the same command again to go on"):
        run(tmp_path, ["a"])
    assert Echo.streams == 1


def test_a_folder_of_another_command_is_refused(tmp_path):
    run(tmp_path, ["a"])
    with pytest.raises(InputError, match="holds a run of llm-score; give another --out for llm-label"):
        run(tmp_path, ["a"], command="llm-label")
    with pytest.raises(InputError, match="holds a run of llm-score"):
        plan_all(Questions(tmp_path, ["a"], command="llm-label"))
