"""Labels checked by people: the sample, the sheet and the error rate."""

import csv
import json
import re

import pytest
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.gis.build.dataset import COLUMNS
from angle_data.jsonl import write_jsonl
from angle_data.look.grade import write_grading
from angle_data.look.verdict import draw_labelled, error_rates, wilson
from angle_data.publish.dataset import write_rows


def row(number):
    kinds = ("duplicate", "hard", "random")
    known = dict.fromkeys(COLUMNS, "") | {"label": int(number % 3 == 0), "kind": kinds[number % 3]}
    text = f"=1+{number}" if number > 90 else f'Text {number},\n"quoted"'
    return {**known, "text1": text, "text2": f"Other {number}", "number1": number, "number2": 999}


@pytest.fixture
def labelled(tmp_path):
    """A data set of a hundred pairs; every third is a duplicate."""
    splits = {"train": [row(n) for n in range(80)], "test": [row(n) for n in range(80, 100)]}
    write_rows(tmp_path / "gis" / "dataset", splits, COLUMNS, lambda _: "card")
    return tmp_path / "gis"


def judge(sheet, verdict):
    """Fill the sheet with what `verdict` says of the number of a pair."""
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for each in rows:
        both = each["sentence1"] + each["sentence2"]
        each["verdict"] = verdict(int(re.search(r"Other (\d+)", both)[1]))
    with sheet.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def drawn(labelled, n=100, **options):
    sheet = labelled.parent / "check.csv"
    write_grading(sheet, draw_labelled(labelled, n=n, **options), verdict=True)
    return sheet


def test_the_sample_is_random_and_tells_no_label(labelled):
    pairs = draw_labelled(labelled, n=40)
    assert len({other for _, other, _ in pairs}) == 40
    assert pairs == draw_labelled(labelled, n=40) != draw_labelled(labelled, n=40, seed=1)
    assert any(int(other.split()[1]) >= 80 for _, other, _ in pairs), "from every split"
    sheet = drawn(labelled, n=40)
    page = sheet.with_suffix(".html").read_text()
    for text in (sheet.read_text(), page.partition('type="application/json">')[2].partition("</script>")[0]):
        assert not re.search("hard|random|label", text)
    assert not any(line.startswith("=") for line in sheet.read_text().splitlines())


def test_verdicts_against_the_label_are_the_error_rate_of_each_kind(labelled):
    sheet = drawn(labelled)
    # Every hard pair is called a duplicate, and of one random pair the reader is unsure.
    judge(sheet, lambda n: "U" if n == 2 else "not" if n % 3 == 2 else " Duplicate ")
    found = {rate["kind"]: rate for rate in error_rates(labelled, sheet)}
    assert list(found) == ["all", "duplicate", "hard", "random"]
    assert [found[kind]["wrong"] for kind in found] == [33, 0, 33, 0]
    assert (found["all"]["read"], found["all"]["unsure"], found["random"]["unsure"]) == (100, 1, 1)
    assert found["all"]["rate"] == pytest.approx(1 / 3)
    assert (found["all"]["low"], found["all"]["high"]) == wilson(33, 99)


@pytest.mark.parametrize(
    ("hits", "total", "interval"),
    [(0, 10, (0, 0.2775)), (10, 10, (0.7225, 1)), (0, 0, (0, 1)), (10, 100, (0.0552, 0.1744))],
)
def test_the_wilson_interval(hits, total, interval):
    assert wilson(hits, total) == pytest.approx(interval, abs=1e-4)


def test_a_bad_verdict_a_foreign_pair_and_an_empty_sheet_are_named(labelled, tmp_path):
    sheet = drawn(labelled, n=5)
    with pytest.raises(InputError, match="no verdicts yet"):
        error_rates(labelled, sheet)
    judge(sheet, lambda _: "rihgt")
    with pytest.raises(
        InputError, match=r"check\.csv:\d+: verdict must be duplicate, not or unsure, got 'rihgt'"
    ):
        error_rates(labelled, sheet)
    sheet.write_text("sentence1,sentence2,verdict\na,b,not\n")
    with pytest.raises(InputError, match=r"check\.csv:2: no pair of .*gis has these texts"):
        error_rates(labelled, sheet)
    write_jsonl(tmp_path / "graded.jsonl", [{"text1": "a", "text2": "b", "score": 0.5}])
    with pytest.raises(InputError, match="needs a label of 0 or 1"):
        draw_labelled(tmp_path / "graded.jsonl", n=1)


def test_nothing_that_may_hold_verdicts_is_written_over(labelled):
    drawn(labelled, n=5)
    with pytest.raises(InputError, match="may hold verdicts"):
        drawn(labelled, n=5)


def command(*arguments):
    return CliRunner().invoke(app, ["grade", *map(str, arguments)])


def test_the_command_draws_and_counts(labelled, tmp_path):
    sheet = tmp_path / "check.csv"
    said = command(labelled, "--verdict", "--n", 30, "--out", sheet).stdout
    assert said.startswith("pairs   30\n")
    assert f"then    angle-data grade {labelled} --verdict --finish {tmp_path / 'check-verdicts.csv'}" in said
    judge(sheet, lambda n: "unsure" if n % 3 else "d")
    said = command(labelled, "--verdict", "--finish", sheet).stdout
    assert said.splitlines()[0].split() == ["pairs", "read", "wrong", "unsure", "error", "rate", "(95", "%)"]
    assert "unknown: all unsure" in said
    rates = json.loads(command(labelled, "--verdict", "--finish", sheet, "--json").stdout)
    assert [rate["wrong"] for rate in rates] == [0, 0, 0, 0]
    for wrong in ([labelled, "--verdict"], ["--verdict", "--finish", sheet]):
        assert "give DATASET --verdict with" in str(command(*wrong).exception)
