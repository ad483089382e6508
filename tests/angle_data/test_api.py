"""The functions of `import angle_data`, as a notebook calls them: lists in, data sets out, a loop running."""

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas
import pytest
from datasets import Dataset, DatasetDict
from fake_openai import FakeOpenAI
from labelling_runs import read_rows
from programs import journalled, python, started

from angle_data import ensemble, label, mine, score
from angle_data.calling.rows import sources
from angle_data.errors import InputError, StoppedError
from angle_data.jsonl import write_jsonl
from angle_data.labelling import mine as submodule  # must not take the function's place
from angle_data.labelling.command import llm_label
from angle_data.tables import read_table


@pytest.fixture
def rows(examples):
    """Twenty of the demo's texts."""
    return [json.loads(line) for line in (examples / "texts.jsonl").read_text().splitlines()[:20]]


@pytest.fixture
def recorded(examples):
    """The options of an annotator of the demo."""
    replies = examples / "replies"
    return lambda name: {"model": name, "engine": "recorded", "replies": str(replies / f"{name}.jsonl")}


def in_a_loop(function):
    """What a function returns in a cell: called while a loop runs in this thread."""

    async def cell():
        return function()

    return asyncio.run(cell())


@pytest.mark.parametrize("given", ["strings", "dictionaries", "dataset", "path", "frame"])
def test_texts_of_any_kind_become_the_same_candidates(given, rows, recorded, tmp_path):
    path = tmp_path / "texts.jsonl"
    write_jsonl(path, rows)
    texts = {
        "strings": lambda: [row["text"] for row in rows], "dictionaries": lambda: rows,
        "dataset": lambda: Dataset.from_list(rows), "path": lambda: path,
        "frame": lambda: Dataset.from_list(rows).to_pandas(),
    }[given]()  # fmt: skip
    run = in_a_loop(lambda: label(texts, **recorded("annotator-a"), out=str(tmp_path / "run")))
    assert run.path == tmp_path / "run"
    found = list(run.candidates())
    assert len(found) == run.counts["kept"] == len(run.to_dataset()) == 80
    assert [row["source"] for row in found[::4]] == [row["text"] for row in rows]
    if given != "strings":
        assert [row["source_id"] for row in found[::4]] == [row["id"] for row in rows]
    assert list(run.rejected) == []
    assert "80" in repr(run)
    assert "annotator-a" in repr(run)


def test_the_whole_way_from_lists_to_splits(rows, recorded, tmp_path):
    def cell():
        runs = [label(rows, **recorded(f"annotator-{n}"), out=tmp_path / n) for n in "ab"]
        assert len(mine(out=tmp_path / "written.jsonl", runs=runs[0], n=9)) == 9
        return ensemble(runs, labels="ordinal", ratios=(0.5, 0.5), out=str(tmp_path / "pairs"))

    pairs = in_a_loop(cell)
    data = pairs.to_dataset()
    assert isinstance(data, DatasetDict)
    counts = {split: sum(kinds.values()) for split, kinds in pairs.summary.pairs.items()}
    assert {split: len(part) for split, part in data.items()} == counts
    assert {"text1", "text2", "score"} <= set(data["train"].column_names)
    assert set(data["train"]["score"]) > {0.0, 1.0}  # ordinal: antonyms between random pairs and synonyms
    assert len(list(pairs.rejected)) == sum(pairs.summary.dropped.values())
    report = json.loads((pairs.path / "report.json").read_text())
    assert report["settings"]["labels"] == "ordinal"
    assert f"train {counts['train']}" in repr(pairs)


def test_mined_pairs_and_lists_of_pairs_are_graded(rows, tmp_path):
    mined = mine(rows, out=tmp_path / "mined.jsonl", n=12)
    assert len(mined) == len(mined.to_dataset()) == 12
    replies = tmp_path / "grades.jsonl"
    own = [{"text1": "one", "text2": "two"}]
    reply = json.dumps({"grades": [{"id": 1, "score": 2}]})
    pairs = [(row["text1"], row["text2"]) for row in [*mined, *own]]
    write_jsonl(replies, ({"text1": one, "text2": other, "reply": reply} for one, other in pairs))
    options = {"model": "grader", "engine": "recorded", "replies": replies}
    graded = in_a_loop(lambda: score(pairs=mined, out=tmp_path / "graded", **options))
    assert [row["score"] for row in graded.grades()] == [2.0] * 12
    assert len(graded.to_dataset()) == 12
    assert score(pairs=own, out=tmp_path / "own", **options).counts["kept"] == 1


def test_the_same_call_goes_on_and_asks_nothing_twice(rows, recorded, tmp_path):
    out = tmp_path / "run"
    texts = [row["text"] for row in rows]
    first = label(texts, **recorded("annotator-a"), out=out)
    again = label(texts, **recorded("annotator-a"), out=out)
    assert (first.counts["asked"], again.counts["asked"]) == (40, 0)
    assert len(list((out / ".angle").rglob("*.jsonl"))) == 1
    fewer = label(texts[:5], **recorded("annotator-a"), out=out)
    assert (fewer.counts["asked"], fewer.counts["kept"]) == (0, 20)


def test_options_reach_the_server_as_those_of_the_command_do(tmp_path):
    options = {"temperature": None, "param": {"reasoning_effort": "low"}, "polarity": "synonym"}
    with FakeOpenAI(extra=["reasoning_effort"]) as server:
        where = {"base_url": server.url, "out": tmp_path / "run"}
        run = in_a_loop(lambda: label(["One node left."], model="some-model", **options, **where))
    [request] = [seen.body for seen in server.seen]
    assert request["reasoning_effort"] == "low"
    assert "temperature" not in request
    assert run.counts["requests"] == 1


def test_a_forecast_sends_and_leaves_nothing(rows, tmp_path):
    run = label(rows, model="gpt-4o-mini", out=tmp_path / "run", dry_run=True)
    assert run.counts["requests"] == run.forecast.requests == 40
    assert not run.path.exists()
    with pytest.raises(TypeError, match="argument: 'out'"):
        label(rows, model="gpt-4o-mini")


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"temprature": 0.2}, TypeError, "no option 'temprature'; did you mean temperature?"),
        ({"concurrency": 1.5}, InputError, "--concurrency must be of type int, got 1.5"),
        ({"concurrency": "64"}, InputError, "concurrency must be of type int, got '64'"),
        ({"retry_rejected": "yes"}, InputError, "--retry-rejected must be of type bool, got 'yes'"),
        ({"size": 0}, InputError, "--size must be at least 1, got 0"),
        ({"texts": []}, InputError, "an empty list"),
        ({"texts": [3]}, InputError, "item 1 is of type int; give strings or dictionaries"),
        ({"texts": {"train": []}}, InputError, "got a dict; give one part of it"),
        ({"texts": None}, InputError, "texts: got None"),
        ({"texts": 7}, InputError, "got 7"),
        ({"texts": [{"body": "x"}]}, InputError, "no field 'text'"),
        ({"texts": "no-such.jsonl"}, InputError, "no-such.jsonl does not exist"),
    ],
)
def test_what_is_wrong_is_named_and_leaves_nothing_but_texts(given, kind, said, rows, recorded, tmp_path):
    with pytest.raises(kind, match=said.replace("?", r"\?")):
        label(**{"texts": rows, "out": tmp_path / "new" / "run", **recorded("annotator-a"), **given})
    assert {path.name for path in tmp_path.glob("new/run/*")} <= {".angle"}


def test_a_limit_is_an_error_that_can_be_caught_and_keeps_the_replies(rows, tmp_path):
    limits = {"max_tokens_total": 450, "max_tokens": 100, "concurrency": 1}
    with FakeOpenAI() as server, pytest.raises(StoppedError, match="stopped at"):
        in_a_loop(lambda: label(rows, model="m", base_url=server.url, out=tmp_path / "r", **limits))
    assert read_rows(tmp_path / "r" / "journal.jsonl")


def test_the_names_stay_functions_whatever_is_imported():
    import angle_data.ensembling.build
    import angle_data.labelling.label
    import angle_data.labelling.score

    assert submodule.mine is not angle_data.mine
    for name in ("label", "score", "ensemble", "mine"):
        assert callable(getattr(angle_data, name)), name
    assert {"label", "ensemble", "Run"} <= set(dir(angle_data))
    with pytest.raises(AttributeError, match="no attribute 'labels'"):
        angle_data.labels  # noqa: B018


def test_every_option_of_the_command_is_one_of_the_function(rows, tmp_path):
    import inspect

    with pytest.raises(TypeError, match="it has") as error:
        label(rows, model="m", out=tmp_path, zzz=1)
    known = set(str(error.value).split("it has ")[1].split(", "))
    assert known == set(inspect.signature(llm_label).parameters) - {"context", "quiet", "verbose", "as_json"}


def test_nothing_is_printed_and_logging_is_left_alone(rows, recorded, tmp_path):
    program = textwrap.dedent(
        f"""
        import logging
        from angle_data import label
        texts = {[row["text"] for row in rows]!r}
        run = label(texts, out={str(tmp_path / "run")!r}, **{recorded("annotator-a")!r})
        assert not logging.getLogger("angle").handlers
        assert logging.getLogger("angle").propagate
        """
    )
    done = python("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_stop_button_ends_a_cell_and_keeps_the_replies(tmp_path):
    """A kernel's loop leaves Ctrl-C to Python, unlike `asyncio.run`, which holds the first one back."""
    with FakeOpenAI(latency_s=0.3) as server:
        program = textwrap.dedent(
            f"""
            import asyncio
            from angle_data import label
            async def cell():
                try:
                    label([f"Node {{n}} left." for n in range(400)], model="m", out={str(tmp_path / "run")!r},
                          base_url={server.url!r}, concurrency=2)
                except KeyboardInterrupt as stop:
                    return f"stopped: {{stop}}"
            print(asyncio.new_event_loop().run_until_complete(cell()))
            """
        )
        with started([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
            while not journalled(tmp_path / "run"):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    assert out == "stopped: all is kept, the same command goes on\n", err
    assert "waiting for" in err
    replies = read_rows(tmp_path / "run" / "journal.jsonl")
    assert 0 < len(replies) < 100
    assert json.loads((tmp_path / "run" / "run.json").read_text())["counts"]["replied"] == len(replies)


def test_lists_of_texts_in_a_data_frame_are_kept_as_lists(tmp_path):
    frame = pandas.DataFrame({"query": ["a"], "pos": [np.array(["b", "c"], object)], "n": [np.float64(2)]})
    [path] = sources(frame, tmp_path, "data")
    assert [row for _, row in read_table(Path(path))] == [{"query": "a", "pos": ["b", "c"], "n": 2.0}]


def test_an_error_about_rows_in_memory_names_the_row_and_no_file(tmp_path):
    with pytest.raises(InputError, match=r"^texts, row 2: .*'text'"):
        label(["one", {"txt": "two"}], model="m", base_url="http://localhost:1", out=tmp_path / "run")
