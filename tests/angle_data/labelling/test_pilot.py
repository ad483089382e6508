"""A pilot asks about a sample of the texts, forecasts all of them, and is part of the run."""

import pytest
from fake_openai import FakeOpenAI, Fault
from labelling_runs import config_of, read_rows, run_json, write_texts

from angle_data.errors import StoppedError
from angle_data.labelling.label import label
from angle_data.labelling.pilot import pilot, plan_label

COUNT = 300


def many_texts(tmp_path, count=COUNT):
    write_texts(tmp_path, count, "Node {:04d} has left the cluster.")


def config(tmp_path, server, size=20, **engine):
    return config_of(tmp_path, server, pilot=size, **{"price": (1.0, 2.0), "concurrency": 64, **engine})


def without_pilot(tmp_path, server):
    return config(tmp_path, server, size=None)


def reply(body):
    """Of every sixth prompt a refusal."""
    number = int(body["messages"][-1]["content"].split("Node ")[1][:4])
    return "I'm sorry, but I can't help with that." if number % 6 == 0 else "1. It is gone.\n2. It went away."


def sources(tmp_path):
    return {row["source"] for row in read_rows(tmp_path / "run/journal.jsonl")}


def test_a_pilot_forecasts_what_the_whole_run_takes_and_gives(tmp_path):
    many_texts(tmp_path)

    def usage(body):
        return 100 + len(body["messages"][-1]["content"]) // 100, 20

    with FakeOpenAI(reply, usage=usage) as server:
        assert plan_label(config(tmp_path, server, size=100)).requests == 200
        first = pilot(config(tmp_path, server, size=100))
        assert len(server.seen) == 200
        forecast = first.measured
        counts = label(without_pilot(tmp_path, server)).counts
        assert len(server.seen) == counts["replied"] == 2 * COUNT
    account = run_json(tmp_path)
    assert forecast["requests"] == (200, 600)
    assert forecast["tokens"][1] == pytest.approx(account["tokens"]["total_tokens"], rel=0.01)
    assert forecast["USD"][1] == pytest.approx(account["usd"], rel=0.01)
    assert forecast["sentences kept"][1] == pytest.approx(counts["kept"], rel=0.1)
    assert forecast["rejected: refusal"][1] == pytest.approx(counts["rejected"]["refusal"], rel=0.5)
    assert abs(first.useful - counts["kept"] / 1200) < 2 * first.error
    assert forecast["time"][1] == pytest.approx(3 * forecast["time"][0])
    assert len(first.pairs) == 10
    assert {pair[2] for pair in first.pairs} <= {"It is gone.", "It went away."}
    kept = first.counts["kept"]
    line = f"but only 2 of the {kept} sentences are different: look at the prompt"
    assert f"\n{line}\n\n" in str(first)
    assert first.counts["pilot"]["distinct"] == 2


def test_the_sample_comes_from_all_over_the_file_and_a_larger_one_holds_it(tmp_path):
    many_texts(tmp_path)
    with FakeOpenAI() as server:
        pilot(config(tmp_path, server))
        small, unfinished = sources(tmp_path), run_json(tmp_path)
        assert len(small) == 20
        assert min(small) < "Node 0060" < "Node 0240" < max(small)
        assert unfinished["finished"] is False
        again = pilot(config(tmp_path, server, size=20))  # asks nothing, and so knows no time
        assert again.counts["asked"] == 0
        assert "time" not in again.measured
        pilot(config(tmp_path, server, size=40))
        assert small < sources(tmp_path)
        assert len(server.seen) == 80
        assert pilot(config(tmp_path, server, size=1000)).measured["requests"] == (600, 600)


def answered(number):
    return f"1. Machine {number} is gone.\n2. The cluster lost {number}."


@pytest.mark.parametrize(
    ("answer", "distinct", "says"),
    [
        (lambda number, again: answered(number), 40, False),  # half of them: both polarities get the same
        (lambda number, again: answered(number // 20), range(24, 32), True),
        (lambda number, again: answered(number).upper() if again else answered(number), 40, False),
    ],
)
def test_a_pilot_says_when_fewer_than_half_of_its_sentences_differ(tmp_path, answer, distinct, says):
    many_texts(tmp_path)
    asked = set()

    def reply(body):
        number = int(body["messages"][-1]["content"].split("Node ")[1][:4])
        again = number in asked
        asked.add(number)
        return answer(number, again)

    with FakeOpenAI(reply) as server:
        done = pilot(config(tmp_path, server))
    assert done.distinct in ([distinct] if isinstance(distinct, int) else distinct)
    assert done.counts["kept"] == 80
    assert ("are different" in str(done)) == says


def test_a_pilot_keeps_to_the_shard(tmp_path):
    many_texts(tmp_path)
    with FakeOpenAI() as server:
        done = pilot(config(tmp_path, server, shard=(1, 3)))
        whole = plan_label(without_pilot(tmp_path, server)).requests
    assert len(sources(tmp_path)) == 20
    assert done.measured["requests"][1] < whole


def test_what_fails_in_a_pilot_is_asked_again(tmp_path):
    many_texts(tmp_path, 30)
    with FakeOpenAI(faults=[None] * 8 + [Fault(500, {"retry-after-ms": "1"})] * 6) as server:
        with pytest.raises(StoppedError, match=r"^1 request failed"):
            pilot(config(tmp_path, server, concurrency=1))
        assert pilot(config(tmp_path, server)).measured["requests"] == (40, 60)


def test_a_shard_without_a_text_of_the_sample_is_no_error(tmp_path):
    many_texts(tmp_path, 1)
    with FakeOpenAI() as server:
        shards = [pilot(config(tmp_path, server, size=1, shard=(i, 2))) for i in (1, 2)]
    assert [bool(found.pairs) for found in shards] in ([True, False], [False, True])
