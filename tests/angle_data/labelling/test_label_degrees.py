"""Runs of llm-label that ask for degrees: what is sent, what is written, counted and refused."""

import json

import pytest
from fake_openai import FakeOpenAI
from labelling_runs import config_of, read_rows, run_json, write_texts

from angle_data.errors import InputError
from angle_data.labelling.label import label
from angle_data.labelling.pilot import plan_label
from angle_data.records import Candidate, Rejection


@pytest.fixture
def texts(tmp_path):
    write_texts(tmp_path, 6)
    return tmp_path


def config(folder, server, **changes):
    return config_of(folder, server, **{"prompts": "degrees", "concurrency": 2, **changes})


def node_of(body):
    return int(body["messages"][-1]["content"].rsplit("Node ")[-1].split()[0])


def sentences(node):
    return {
        "5": f"The cluster has lost node {node}.", "4": f"Node {node} is out.",
        "3": "A node has left the cluster.", "2": f"Node {node} has joined the cluster.",
        "1": "The cluster is in Oslo.",
    }  # fmt: skip


def about(body):
    return json.dumps(sentences(node_of(body)))


def rows(folder, name):
    return read_rows(folder / "run" / name)


def test_one_request_a_text_gives_a_candidate_for_each_degree(texts):
    with FakeOpenAI(about) as server:
        assert plan_label(config(texts, server)).to_ask == 6
        counts = label(config(texts, server)).counts
        schema = server.seen[0].body["response_format"]["json_schema"]["schema"]
        candidates, journal = rows(texts, "candidates.jsonl"), rows(texts, "journal.jsonl")
        run = run_json(texts)
        assert len(server.seen) == 6
        assert label(config(texts, server)).counts["asked"] == 0
        again = label(config(texts, server, prompts="structured", limit=1, size=1))
        assert again.counts["asked"] == 2
    assert schema["required"] == ["5", "4", "3", "2", "1"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["4"] == {"type": "string", "maxLength": 256}
    assert [counts[name] for name in ("requests", "replied", "kept", "missing_degrees")] == [6, 6, 30, 0]
    expected = [(f"t{i}", None, int(d), s) for i in range(6) for d, s in sentences(i).items()]
    found = [(row["source_id"], row["polarity"], row["degree"], row["text"]) for row in candidates]
    assert found == expected
    assert list(candidates[0])[-1] == "degree"
    assert Candidate.from_dict(candidates[0], "f").to_dict() == candidates[0]
    assert {row["task"] for row in journal} == {"degrees"}
    assert not any("polarity" in row for row in journal)
    assert run["prompts"] == {"name": "degrees", "degrees_sha256": journal[0]["prompt_sha256"]}
    assert not {"size", "polarity"} & run.keys()


def test_what_is_missing_or_dropped_is_counted_and_can_be_asked_anew(texts):
    refusal = "I'm sorry, but I can't assist with that."
    replies = {
        0: json.dumps({"5": "Node 0 is gone.", "1": "Oslo is far."}),
        1: json.dumps(sentences(1) | {"4": "Node 1 has left the cluster.", "note": "so"}), 2: refusal,
        3: "1. One.\n2. Two.\n3. Three.\n4. Four.\n5. Five.", 4: json.dumps(sentences(4))[:-12],
    }  # fmt: skip
    with FakeOpenAI(lambda body: replies.get(node_of(body)) or about(body)) as server:
        counts = label(config(texts, server)).counts
        assert counts["kept"] == 2 + 4 + 0 + 0 + 4 + 5
        assert counts["missing_degrees"] == 3 + 1 + 1
        assert counts["without_sentence"] == 2
        dropped = rows(texts, "rejected.jsonl")
        assert {(r["source_id"], r["reason"], r.get("degree"), r["text"]) for r in dropped} == {
            ("t1", "echo_source", 4, "Node 1 has left the cluster."),
            ("t1", "other_data", None, "so"),
            ("t2", "refusal", None, refusal),
            ("t3", "unparseable", None, replies[3]),
            ("t4", "truncated", 1, "The cluster i"),
        }
        assert [Rejection(**row).to_dict() for row in dropped] == dropped
        replies.clear()
        counts = label(config(texts, server, retry_rejected=True)).counts
        assert (counts["asked"], counts["without_sentence"], counts["missing_degrees"]) == (2, 0, 5)
        assert len(server.seen) == 8


def test_degrees_that_the_replies_leave_out_are_no_rejections(texts, caplog):
    with FakeOpenAI(lambda body: json.dumps({"5": f"The cluster has lost node {node_of(body)}."})) as server:
        label(config(texts, server))
    assert "only 20 % of what was asked for is of use (6 of 30; the rest is missing); choose" in caplog.text


@pytest.mark.parametrize(("option", "value"), [("polarity", "both"), ("polarity", "synonym"), ("size", 2)])
def test_options_of_synonyms_and_antonyms_are_refused(texts, option, value):
    with FakeOpenAI(about) as server:
        said = f"--{option} is for synonyms and antonyms, not for degrees; leave it out"
        with pytest.raises(InputError, match=said):
            label(config(texts, server, **{option: value}))
        assert not server.seen
    assert not (texts / "run").exists()


def overlapping(high, low):
    """Replies whose sentences share `high` of six words at 5 and 4, and `low` at 3 and 2."""

    def reply(body):
        node = node_of(body)
        known = f"Node {node} has left the cluster".split()
        shares = {5: high, 4: high, 3: low, 2: low, 1: 0}
        return json.dumps({d: " ".join([*known[:n], f"a{d}", f"b{d}"]) for d, n in shares.items()})

    return reply


@pytest.mark.parametrize(
    ("high", "low", "share", "said"),
    [
        (1, 4, 0.0, "in 0% of cases (50% would tell nothing), so a model can learn that shared words mean l"),
        (4, 1, 1.0, "in 100% of cases (50% would tell nothing), so a model can learn to count shared words;"),
        (3, 3, 0.5, None),
    ],
)
def test_shared_words_that_tell_the_degree_are_warned_of(texts, caplog, high, low, share, said):
    write_texts(texts, 60)
    with FakeOpenAI(overlapping(high, low)) as server:
        few = label(config(texts, server, limit=49)).counts["degrees"]
        assert "shared words" not in caplog.text
        degrees = label(config(texts, server)).counts["degrees"]
    assert few["higher_shares_more"] == degrees["higher_shares_more"] == share
    assert degrees["5"] == {"kept": 60, "overlap": pytest.approx(high / 8, abs=0.001)}
    assert degrees["1"]["overlap"] == 0
    assert ("shared words give the degree away" in caplog.text) == (said is not None)
    assert said is None or said in caplog.text
