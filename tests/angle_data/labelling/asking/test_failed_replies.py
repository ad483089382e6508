"""A reply that the service calls failed was paid for: words and tokens stay, and its text is asked again."""

import pytest
from fake_openai import FakeOpenAI, completion
from labelling_runs import config_of, read_rows, run_json, write_texts

from angle_data.errors import StoppedError
from angle_data.labelling.label import label

HALF = "1. The cluster lost a no"


def half_of(text):
    """Answer in full, but for one text: its reply ends in the middle, and the service says that it failed."""

    def answer(body):
        spoilt = text in body["messages"][-1]["content"]
        return completion(body, HALF, finish_reason="error") if spoilt else "1. It is up.\n2. It runs."

    return answer


@pytest.fixture
def run(tmp_path):
    write_texts(tmp_path, 4, "Node {:04d} has left the cluster.")
    with FakeOpenAI(half_of("Node 0002")) as server:
        config = config_of(tmp_path, server, polarity="synonym", concurrency=1)
        with pytest.raises(StoppedError, match=r"1 request failed, with failed: .*ended the reply early"):
            label(config)
        yield tmp_path, server, config


def journal(folder):
    return read_rows(folder / "run/journal.jsonl")


def test_its_words_are_journalled_and_no_sentence_comes_of_them(run):
    folder, _, _ = run
    (row,) = (row for row in journal(folder) if "failed" in row)
    assert (row["reply"], row["finish_reason"], row["source"][:9]) == (HALF, "error", "Node 0002")
    assert row["failed"].startswith("failed: ")
    assert HALF not in (folder / "run/candidates.jsonl").read_text()


def test_its_tokens_count_in_every_later_session(run):
    folder, server, config = run
    spent = run_json(folder)["tokens"]
    (row,) = (row for row in journal(folder) if "failed" in row)
    assert row["usage"]["prompt_tokens"] == 4 * 10  # four attempts
    server._reply = lambda body: "1. It is up.\n2. It runs."
    assert label(config).counts["replied"] == 4  # the text was open, and asked again
    again = run_json(folder)["tokens"]
    assert again["prompt_tokens"] == spent["prompt_tokens"] + 10
    assert label(config).counts["asked"] == 0
    assert run_json(folder)["tokens"] == again


def test_a_text_that_fails_in_two_sessions_is_set_aside_and_counted_once(run):
    folder, _, config = run
    assert label(config).counts["refused"] == 1
    spent = run_json(folder)["tokens"]["prompt_tokens"]
    assert spent == (3 + 4 + 4) * 10
    assert label(config).counts["asked"] == 0
    assert run_json(folder)["tokens"]["prompt_tokens"] == spent
