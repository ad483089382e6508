"""`llm-label --plan`: what a budget pays for, what that brought elsewhere, and commands that carry it out."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from programs import angle_data

from angle_data import label
from angle_data.errors import InputError
from angle_data.labelling.plan import Way, ways_of
from angle_data.records import PURPOSES

DEMO = Path(__file__).parents[3] / "examples" / "cloud-ops"


@pytest.fixture
def texts(tmp_path):
    lines = (DEMO / "texts.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(lines[:200]))
    return path


def planned(texts, **options):
    given = {"purpose": "topics", "model": "gpt-4o", "out": texts.parent / "runs", "plan": True} | options
    return label(texts, **given).counts


def test_every_offer_keeps_to_the_budget_and_the_best_comes_first(texts):
    counts = planned(texts, budget_usd=0.2)
    offers = counts["offers"]
    assert {offer["texts"] for offer in offers} != {200}
    assert all(0 < offer["usd"] <= 0.2 for offer in offers)
    gains = [offer["gain"] for offer in offers]
    assert gains == sorted(gains, reverse=True)
    one_text_more = [offer["usd"] * (1 + 1 / offer["texts"]) for offer in offers if offer["texts"] < 200]
    assert min(one_text_more) > 0.2
    assert {offer["texts"] for offer in planned(texts)["offers"]} == {200}


@pytest.mark.parametrize(
    ("way", "options"),
    [
        ("a sentence for each degree", {"prompts": "degrees"}),
        ("synonyms and opposites", {"prompts": "structured"}),
    ],
)
def test_costs_are_those_of_the_dry_run(texts, way, options):
    offer = next(offer for offer in planned(texts)["offers"] if offer["way"] == way)
    dry = label(texts, model="gpt-4o", out=texts.parent / "dry", dry_run=True, **options).counts
    assert offer["usd"] == pytest.approx(dry["usd"], rel=1e-3)
    assert offer["tokens"] == pytest.approx(dry["prompt_tokens"] + dry["completion_tokens"], rel=1e-3)


def test_nothing_is_written_and_text_in_memory_will_do(tmp_path):
    run = label(["Node 4 is down."] * 2, model="x", out=tmp_path / "runs", plan=True, purpose="opposites")
    assert run.counts["texts"] == 1
    assert "unknown" in repr(run)
    assert not (tmp_path / "runs").exists()


def test_the_commands_do_what_they_say(texts, monkeypatch):
    """With recorded replies to the structured prompts, and a price at which nothing richer is affordable."""
    monkeypatch.chdir(texts.parent)
    command = [
        "llm-label",
        "--plan",
        "--purpose",
        "opposites",
        "--budget-usd",
        "0.02",
        "--price",
        "1,1",
        "--json",
    ]
    command += ["--model", "annotator-b", "--engine", "recorded"]
    command += ["--replies", DEMO / "replies" / "annotator-b.jsonl", "--texts", texts, "--out", "my runs"]
    done = subprocess.run(angle_data(*command), capture_output=True, text=True, check=True)
    counts = json.loads(done.stdout)
    assert counts["offers"][0]["way"] == "synonyms and opposites"
    for line in counts["commands"]:
        program, *words = shlex.split(line)
        assert program == "angle-data"
        done = subprocess.run(angle_data(*words), capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)
    run = json.loads(Path("my runs/structured/run.json").read_text())
    assert run["counts"]["replied"] == 2 * counts["offers"][0]["texts"]
    assert Path("my runs/my.csv").exists()


def test_the_richest_way_is_spelt_out(texts):
    """Where money is no matter, with what each command takes from those before it."""
    lines = [shlex.split(line)[1:] for line in planned(texts)["commands"]]
    assert [line[0] for line in lines] == [*["llm-label"] * 4, "mine", "llm-score", "ensemble", "grade"]
    options = [dict(zip(line[-2::-2], line[-1::-2], strict=False)) for line in lines]
    runs = [option["--out"] for option in options[:4]]
    assert [option["--model"] for option in options[:4]] == ["gpt-4o", "gpt-4o", "MODEL-2", "MODEL-3"]
    assert lines[6][1:5] == runs
    assert options[4]["--out"] == options[5]["--pairs"] == options[6]["--pairs"]
    assert options[5]["--out"] == options[6]["--scores"]
    assert options[6]["--purpose"] == "topics"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"purpose": None}, "--plan needs --purpose, opposites or topics: .*"),
        ({"plan": False}, "--budget-usd and --purpose are for --plan; .*"),
        ({"budget_usd": 0}, "--budget-usd must be above 0, got 0"),
        ({"budget_usd": 1e-6}, "--budget-usd 1e-06 does not pay for a single text; raise it"),
        ({"polarity": "synonym"}, "--plan decides what to ask for: leave out --polarity"),
        (
            {"model": "unknown", "budget_usd": 5},
            "--budget-usd needs a price, .* unknown: give --price IN,OUT.*",
        ),
    ],
)
def test_what_cannot_be_planned_is_one_line(texts, options, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        planned(texts, **options)


WAY = Way("", (), 0, False, {50: 0.4, 100: 0.7, 400: 0.9})


@pytest.mark.parametrize(
    ("texts", "gain"),
    [(0, 0), (25, 0.2), (50, 0.4), (100, 0.7), (200, 0.8), (400, 0.9), (800, 1.0), (80_000, 1.0)],
)
def test_gains_between_and_beyond_what_was_measured(texts, gain):
    assert WAY.gain(texts) == pytest.approx(gain)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_what_was_measured_is_a_share_of_the_best(purpose):
    gains = [gain for way in ways_of(purpose) for gain in way.gains.values()]
    assert max(gains) == 1
    assert min(gains) > 0
