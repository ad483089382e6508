"""Plans for a budget: what is affordable, what is recommended, and that the commands are ready to run."""

import json
import shlex

import pytest
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.labelling import plan as planning

PRICE = "--price 1,2"


@pytest.fixture
def llm_label(tmp_path, monkeypatch):
    """Run `llm-label --plan` on 400 texts with further arguments."""
    monkeypatch.chdir(tmp_path)
    rows = [
        json.dumps({"text": f"Node {i} lost its lease and came back after a restart."}) for i in range(400)
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))

    def run(arguments):
        words = ["llm-label", "--plan", "--texts", "texts.jsonl", *shlex.split(arguments)]
        done = CliRunner().invoke(app, words)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.jsonl"]  # nothing is written
        return done

    return run


def offers(done):
    assert done.exit_code == 0, done.exception
    return {offer["what"]: offer for offer in json.loads(done.stdout)["offers"]}


def test_a_large_budget_asks_for_everything_and_a_small_one_for_what_is_measured(llm_label):
    rich = offers(llm_label(f"--model m --budget-usd 100 --json {PRICE}"))
    assert list(rich) == ["all", "degrees+grades", "degrees", "polarity"]
    assert {offer["texts"] for offer in rich.values()} == {400}
    assert (rich["degrees"]["requests"], rich["degrees"]["pairs"]) == (400, 0)
    assert (rich["degrees+grades"]["requests"], rich["degrees+grades"]["pairs"]) == (400 + 200, 2000)
    assert rich["polarity"]["requests"] == 2 * 3 * 400
    assert rich["all"]["usd"] == pytest.approx(rich["degrees+grades"]["usd"] + rich["polarity"]["usd"])
    budget = rich["degrees"]["usd"]
    poor = offers(llm_label(f"--model m --budget-usd {budget} --json {PRICE}"))
    assert next(iter(poor)) == "degrees"
    assert all(offer["usd"] <= budget for offer in poor.values())
    assert all(
        offer["texts"] < 300 and offer["share"] is None for name, offer in poor.items() if name != "degrees"
    )


def test_the_table_ends_with_commands_that_the_program_understands(llm_label):
    done = llm_label(f"--model org/m --budget-usd 100 {PRICE}")
    lines = done.stdout.splitlines()
    assert lines[0].split()[-1] == "gain"
    commands = [shlex.split(line) for line in lines if line.startswith("  angle-data ")]
    assert [words[1] for words in commands] == ["llm-label"] * 4 + ["mine", "llm-score", "ensemble"]
    for _, command, *words in commands:
        known = CliRunner().invoke(app, [command, "--help"]).stdout
        assert all(word in known for word in words if word.startswith("--") and word != "--pairs")
    assert "runs/org-m-degrees" in commands[-1]
    spent = [float(words[words.index("--max-usd") + 1]) for words in commands if "--max-usd" in words]
    assert 0 < sum(spent) < 100


def test_shares_lie_between_the_measured_ones(llm_label, monkeypatch):
    monkeypatch.setattr(planning, "GAINS", ((100, "degrees", 0.4), (1600, "degrees", 0.8)))
    assert offers(llm_label(f"--model m --budget-usd 100 --json {PRICE}"))["degrees"][
        "share"
    ] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--model chatgpt", "--plan needs --budget-usd, more than 0, got None"),
        ("--model chatgpt --budget-usd 0", "--plan needs --budget-usd, more than 0, got 0.0"),
        ("--model llama --budget-usd 5", "--plan needs a price, and that of 'meta-llama/"),
        (
            f"--model m --budget-usd 0.00001 {PRICE}",
            "--budget-usd 1e-05 pays for no text; one costs at least 0.0",
        ),
    ],
)
def test_what_cannot_be_planned_is_one_line(llm_label, arguments, message):
    assert message in str(llm_label(arguments).exception)


def test_a_run_still_needs_its_folder():
    done = CliRunner().invoke(app, ["llm-label", "--model", "chatgpt", "--texts", "t.jsonl"])
    assert (done.exit_code, "--out" in done.output) == (2, True)
