"""Reading by hand: the sample and the error rate."""

import csv
import json

import pytest
import typer
from fake_gis_store import store_world
from fake_github_world import make_world
from typer.testing import CliRunner

from angle_data.errors import InputError
from angle_data.gis.build.build import build_gis
from angle_data.gis.build.dataset import COLUMNS
from angle_data.gis.command import sample
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.sample import FIELDS, read_verdicts, wilson, write_sample
from angle_data.publish.dataset import write_rows

APP = typer.Typer()
APP.command()(sample)


def row(number, **fields):
    kinds = ("duplicate", "hard", "random")
    known = dict.fromkeys(COLUMNS, "") | {
        "text1": f'Text {number},\n"quoted"', "label": int(number % 3 == 0), "kind": kinds[number % 3],
        "url1": f"https://github.com/o/r/issues/{number}", "url2": "https://github.com/o/r/issues/999",
    }  # fmt: skip
    return {**known, "number1": number, "number2": 999, **fields}


@pytest.fixture
def out(tmp_path):
    splits = {"train": [row(n) for n in range(80)], "test": [row(n, text1="=1+1") for n in range(80, 100)]}
    write_rows(tmp_path / "dataset", splits, COLUMNS, lambda _: "card")
    return tmp_path


def drawn(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_sample_is_drawn_from_all_splits_and_can_be_read(out):
    target = out / "sample.csv"
    assert write_sample(out / "dataset", target, count=40) == 40
    rows = drawn(target)
    assert tuple(rows[0]) == FIELDS
    assert len({row["url1"] for row in rows}) == 40
    assert {row["split"] for row in rows} == {"train", "test"}
    assert {row["verdict"] for row in rows} == {""}
    for row in rows:
        number = row["url1"].rsplit("/", 1)[1]
        # A spreadsheet must not run what a stranger wrote.
        assert row["text1"] == (f'Text {number},\n"quoted"' if row["split"] == "train" else "'=1+1")


def test_another_seed_draws_others(out):
    for number, seed in enumerate((0, 0, 1)):
        write_sample(out / "dataset", out / f"{number}.csv", count=20, seed=seed)
    first, same, other = ((out / f"{number}.csv").read_bytes() for number in range(3))
    assert first == same != other
    assert write_sample(out / "dataset", out / "all.csv", count=1_000) == 100


def test_work_is_not_overwritten(out):
    with pytest.raises(InputError, match="holds no data set"):
        write_sample(out, out / "sample.csv", count=5)
    (out / "sample.csv").write_text("verdict\nright\n")
    with pytest.raises(InputError, match="may hold verdicts"):
        write_sample(out / "dataset", out / "sample.csv", count=5)
    assert (out / "sample.csv").read_text() == "verdict\nright\n"


def test_verdicts_come_back_by_kind_and_a_bad_one_is_named_with_its_line(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("verdict,kind\nright,hard\n W ,hard\n,random\nu,duplicate\n")
    assert list(read_verdicts(path)) == [("hard", "right"), ("hard", "wrong"), ("duplicate", "unclear")]
    path.write_text("verdict,kind\nright,hard\nrihgt,hard\n")
    with pytest.raises(InputError, match=r"v\.csv:3: .* got 'rihgt'"):
        list(read_verdicts(path))
    path.write_text("verdict,kind\nu,hard\n")
    table = CliRunner().invoke(APP, ["--verdicts", str(path)]).output
    assert "unknown: all unclear" in table
    assert " 0.0%" not in table


@pytest.mark.parametrize(
    ("hits", "total", "interval"),
    [(0, 10, (0, 0.2775)), (10, 10, (0.7225, 1)), (0, 0, (0, 1)), (10, 100, (0.0552, 0.1744))],
)
def test_the_wilson_interval(hits, total, interval):
    assert wilson(hits, total) == pytest.approx(interval, abs=1e-4)


def test_the_command_draws_and_counts(out):
    runner = CliRunner()
    done = runner.invoke(APP, ["--out", str(out), "--n", "30"])
    assert done.exit_code == 0, done.output
    assert done.output == f"30 pairs in {out / 'sample.csv'}\n"
    rows = drawn(out / "sample.csv")
    with (out / "sample.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        writer.writerows({**row, "verdict": "wrong" if row["kind"] == "hard" else "right"} for row in rows)
    hard = sum(row["kind"] == "hard" for row in rows)
    found = json.loads(runner.invoke(APP, ["--verdicts", str(out / "sample.csv"), "--json"]).output)
    assert [(rate["kind"], rate["wrong"]) for rate in found] == [
        ("all", hard), ("duplicate", 0), ("hard", hard), ("random", 0),
    ]  # fmt: skip
    table = runner.invoke(APP, ["--verdicts", str(out / "sample.csv")]).output
    assert f"| hard | {hard} | {hard} | 0 | 100.0% (" in table


def test_verdicts_reach_the_top_of_the_card(tmp_path):
    store_world(make_world(4, repos=1, issues=90, duplicates=0.4), tmp_path)
    build_gis(GisConfig(tmp_path, tokenizer="estimate"))
    card, runner = tmp_path / "dataset" / "README.md", CliRunner()
    before = card.read_text()
    assert "Nobody has read a sample" in before
    other = tmp_path / "other.csv"
    other.write_text("verdict,kind,url1,url2\nright,hard,https://x/o/r/issues/1,https://x/o/r/issues/2\n")
    found = runner.invoke(APP, ["--verdicts", str(other), "--out", str(tmp_path)])
    assert "no pair of" in str(found.exception)
    assert card.read_text() == before

    runner.invoke(APP, ["--out", str(tmp_path), "--n", "20"])
    (tmp_path / "sample.csv").write_text((tmp_path / "sample.csv").read_text().replace("\n,", "\nr,"))
    done = runner.invoke(APP, ["--verdicts", str(tmp_path / "sample.csv"), "--out", str(tmp_path)])
    assert done.output.startswith("| pairs read |")
    above, _, below = card.read_text().partition("## Columns")
    assert done.output.strip() in above
    same = before.partition("## Columns")[2].rpartition("<!--")[0]
    assert below.rpartition("<!--")[0] == same, "the rest is as it was"
    assert not list(tmp_path.rglob("*.bak")), "the card is not taken for an edited one"
    assert json.loads((tmp_path / "report.json").read_text())["error_rates"][0]["kind"] == "all"
