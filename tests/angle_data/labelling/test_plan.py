"""`llm-label --plan`: what a budget pays for, what that brought elsewhere, and commands that carry it out."""

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from programs import run_here

from angle_data import label
from angle_data.cli import main
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
    assert {offer["texts"] for offer in planned(texts, budget_usd=1e6)["offers"]} == {200}
    gains = [offer["gain"] for offer in offers]
    assert gains == sorted(gains, reverse=True)
    one_text_more = [offer["usd"] * (1 + 1 / offer["texts"]) for offer in offers if offer["texts"] < 200]
    assert min(one_text_more) > 0.2
    assert {offer["texts"] for offer in planned(texts)["offers"]} == {200}


@pytest.mark.parametrize(
    ("way", "prompts"),
    [("a sentence for each degree", "degrees"), ("synonyms and opposites", "structured")],
)
def test_costs_are_those_of_the_dry_run(texts, way, prompts):
    offer = next(offer for offer in planned(texts)["offers"] if offer["way"] == way)
    dry = label(texts, model="gpt-4o", out=texts.parent / "dry", dry_run=True, prompts=prompts).counts
    assert offer["usd"] == pytest.approx(dry["usd"], rel=1e-3)
    assert offer["tokens"] == pytest.approx(dry["prompt_tokens"] + dry["completion_tokens"], rel=1e-3)


def test_of_ways_that_are_nearly_as_good_the_cheapest_is_proposed(texts):
    counts = planned(texts)
    best = counts["offers"][0]
    proposed = next(offer for offer in counts["offers"] if offer["way"] == counts["proposed"])
    assert proposed != best
    assert proposed["gain"] >= best["gain"] - 0.05
    cheaper = [offer for offer in counts["offers"] if offer["usd"] < proposed["usd"]]
    assert cheaper
    assert all(offer["gain"] < best["gain"] - 0.05 for offer in cheaper)


def test_little_money_is_not_spent_on_a_third_of_the_gain(texts):
    counts = planned(texts, purpose="opposites", budget_usd=0.01)
    gains = {offer["way"]: offer["gain"] for offer in counts["offers"]}
    assert min(gains.values()) < max(gains.values()) - 0.02 < 0.05
    assert gains[counts["proposed"]] >= 0.9 * max(gains.values())


def test_commands_carry_the_options_that_were_given(texts):
    options = {"base_url": "http://localhost:8000/v1", "price": "1,2", "temperature": "none", "seed": 3}
    options |= {"param": {"reasoning_effort": "low"}, "text_field": "text", "id_field": "key", "limit": 150}
    options |= {"max_tokens": 300, "engine_option": {"timeout_s": 5}, "budget_usd": 0.2}
    given = ["--base-url", "http://localhost:8000/v1", "--price", "1.0,2.0", "--seed", "3"]
    given += ["--param", 'reasoning_effort="low"', "--engine-option", "timeout_s=5"]
    counts = planned(texts, **options)
    number = next(o["texts"] for o in counts["offers"] if o["way"] == counts["proposed"])
    asking = [line for line in counts["commands"] if line.split()[1] in ("llm-label", "llm-score", "mine")]
    for line in asking:
        words = shlex.split(line)
        if words[1] != "mine":
            assert all(word in words for word in given), line
        # llm-score has a temperature and a length of its own.
        assert (words[1] == "llm-label") == ("--max-tokens" in words)
        if words[1] != "llm-score":
            assert words[words.index("--limit") + 1] == f"{number}"
        assert ("--id-field" in words) == (words[1] == "llm-label")


def test_nothing_is_written_and_text_in_memory_will_do(tmp_path):
    run = label(["Node 4 is down."] * 2, model="x", out=tmp_path / "runs", plan=True, purpose="opposites")
    assert run.counts["texts"] == 1
    assert "--texts texts.jsonl " in run.counts["commands"][0]
    assert "unknown" in repr(run)
    assert f"Grade {tmp_path / 'runs' / 'my.csv'} before the last command." in repr(run)
    assert not (tmp_path / "runs").exists()


def test_the_commands_do_what_they_say(texts, monkeypatch):
    """With recorded replies to the structured prompts, and a price at which nothing richer is affordable."""
    monkeypatch.chdir(texts.parent)
    command = ["llm-label", "--plan", "--purpose", "opposites", "--budget-usd", "0.02", "--json"]
    command += ["--model", "annotator-b", "--engine", "recorded", "--price", "1,1"]
    command += ["--replies", DEMO / "replies" / "annotator-b.jsonl", "--texts", texts, "--out", "my runs"]
    counts = json.loads(run_here(main, *command).stdout)
    assert counts["proposed"] == "synonyms and opposites"
    for line in counts["commands"]:
        program, *words = shlex.split(line)
        if program == "angle-train":
            continue
        assert program == "angle-data"
        done = run_here(main, *words)
        assert done.returncode == 0, (line, done.stderr)
    run = json.loads(Path("my runs/structured/run.json").read_text())
    assert run["counts"]["replied"] == 2 * counts["offers"][0]["texts"]
    assert Path("my runs/my.csv").exists()


def test_a_way_with_grades_is_spelt_out(texts):
    """With what each command takes from those before it."""
    lines = [shlex.split(line)[1:] for line in planned(texts)["commands"]]
    assert [line[0] for line in lines] == ["llm-label", "mine", "llm-score", "ensemble", "grade", "fit"]
    written, mined, graded, merged, drawn, fitted = (dict(pairwise(line)) for line in lines)
    assert written["--model"] == graded["--model"] == "gpt-4o"
    assert lines[3][1] == written["--out"]
    assert mined["--out"] == graded["--pairs"] == merged["--pairs"]
    assert mined["--n"] == f"{round(4.7 * 200)}"
    assert graded["--out"] == merged["--scores"]
    assert merged["--purpose"] == "topics"
    assert fitted["--data"] == merged["--out"] == lines[4][1]
    assert fitted["--dev"] == drawn["--out"].replace("my.csv", "my-dev.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"purpose": None}, "--plan needs --purpose, opposites or topics: .*"),
        ({"plan": False}, "--budget-usd and --purpose are for --plan; .*"),
        ({"budget_usd": 0}, "--budget-usd must be above 0 and finite, got 0"),
        ({"budget_usd": float("inf")}, "--budget-usd must be above 0 and finite, got inf"),
        ({"max_tokens_total": 9}, "--plan decides what to ask for: leave out --max-tokens-total"),
        ({"shard": "1/2"}, "--plan decides what to ask for: leave out --shard"),
        ({"budget_usd": 1e-6}, "--budget-usd 1e-06 does not pay for a single text; raise it"),
        ({"prompts": "degrees"}, "--plan decides what to ask for: leave out --prompts"),
        ({"polarity": "synonym"}, "--plan decides what to ask for: leave out --polarity"),
        ({"model": "new", "budget_usd": 5}, "--budget-usd needs a price, .* for new: give --price IN,OUT.*"),
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
