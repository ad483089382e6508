"""Pairs for people to grade: which are drawn, the sheet and what becomes of it when it is filled."""

import csv
import json
import re

import pytest
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.look.grade import draw_pairs, finish_grading, page_words, purpose_of, write_grading
from angle_data.resources import packaged_folder
from angle_train.cli import app as fit_app
from angle_train.data.pairs import load_pairs


def table(path):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def fill(path, *scores, mark=","):
    """Write scores into the sheet as a spreadsheet would, the rest with 0 to 4.5 in turn."""
    rows = table(path)
    for number, row in enumerate(rows):
        row["score"] = scores[number] if number < len(scores) else str(number % 10 / 2)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=mark)
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_pairs_come_in_equal_shares_from_the_range_and_share_no_text(pairs):
    drawn, scores = draw_pairs(pairs, n=30)
    assert scores == {"0 to 0.2": 10, "0.4 to 0.6": 10, "0.8 to 1": 10}
    texts = [text for one, other, _ in drawn for text in (one, other)]
    assert len(set(texts)) == 60
    for split in ("dev", "test"):
        mine = [other.split()[0] for _, other, its in drawn if its == split]
        assert {mine.count(polarity) for polarity in ("synonym", "antonym", "random")} == {5}
    assert not any("dropped" in text for text in texts)
    for part in (drawn[:10], drawn[10:20], drawn[20:]):  # the order tells nothing of score or split
        assert len({other.split()[0] for _, other, _ in part}) == 3
        assert len({split for *_, split in part}) == 2


def test_shares_seeds_and_more_pairs_than_there_are(pairs):
    assert [split for *_, split in draw_pairs(pairs, n=40, dev_share=0.25)[0]].count("dev") == 10
    assert draw_pairs(pairs, n=20)[0] == draw_pairs(pairs, n=20)[0]
    assert set(draw_pairs(pairs, n=20)[0]) != set(draw_pairs(pairs, n=20, seed=1)[0])
    assert len(draw_pairs(pairs, n=500)[0]) == 60  # each text once


def test_a_pair_of_equal_or_blank_texts_is_never_drawn(tmp_path):
    others = [(f"A {n}!", "...", f"b {n}")[n % 3] for n in range(30)]
    rows = [{"text1": f"a {n}", "text2": text, "kind": "near"} for n, text in enumerate(others)]
    write_jsonl(tmp_path / "mined.jsonl", rows)
    drawn, scores = draw_pairs(tmp_path / "mined.jsonl", n=30)
    assert len(drawn) == 10
    assert scores == {"without score": 10}
    assert all(other.startswith("b ") for _, other, _ in drawn)


def test_grades_and_issues_can_be_graded_too(grades, issues):
    assert draw_pairs(grades, n=6)[1] == {
        "0 to 1": 1, "1 to 2": 1, "2 to 3": 1, "3 to 4": 1, "4 to 5": 2,
    }  # fmt: skip
    assert draw_pairs(issues, n=4)[1] == {"0 to 0.2": 2, "0.8 to 1": 2}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 1}, "^--n must be at least 2, got 1$"),
        ({"n": -1}, "^--n must be at least 2, got -1$"),
        ({"n": 9, "dev_share": 1.0}, r"^--dev-share must be more than 0 and less than 1, got 1\.0$"),
        ({"n": 9, "dev_share": float("nan")}, "^--dev-share must be more than 0 and less than 1, got nan$"),
        ({"n": 2, "dev_share": 0.1}, "leave none for dev; provide more pairs, or change --dev-share$"),
    ],
)
def test_numbers_that_leave_a_split_empty_are_refused(pairs, options, said):
    with pytest.raises(InputError, match=said):
        draw_pairs(pairs, **options)


@pytest.mark.parametrize("mark", [",", ";"])
def test_a_filled_sheet_becomes_dev_and_test_pairs_that_training_reads(pairs, tmp_path, mark):
    sheet = tmp_path / "my.csv"
    write_grading(sheet, draw_pairs(pairs, n=30)[0])
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = table(sheet)
    assert list(rows[0]) == ["sentence1", "sentence2", "score", "split"]
    assert {row["score"] for row in rows} == {""}
    filled = fill(sheet, "", "3,5", " 2. ", mark=mark)
    assert finish_grading(sheet) == {
        str(tmp_path / "my-dev.csv"): sum(row["split"] == "dev" for row in filled if row["score"]),
        str(tmp_path / "my-test.csv"): sum(row["split"] == "test" for row in filled if row["score"]),
    }
    loaded = [load_pairs(str(tmp_path / f"my-{split}.csv")) for split in ("dev", "test")]
    columns = [(found.text1, found.text2, found.score.tolist()) for found in loaded]
    scores = {(one, other): score * 5 for each in columns for one, other, score in zip(*each, strict=True)}
    wanted = [float(row["score"].replace(",", ".")) for row in filled if row["score"]]
    assert [scores[row["sentence1"], row["sentence2"]] for row in filled if row["score"]] == wanted
    assert all(found.scale.startswith("0-5") for found in loaded)
    assert list(table(tmp_path / "my-dev.csv")[0]) == ["sentence1", "sentence2", "score", "scale"]


def test_grades_without_a_0_are_on_the_scale_of_the_page_and_nothing_is_assumed(pairs, tmp_path, caplog):
    sheet = tmp_path / "my.csv"
    write_grading(sheet, draw_pairs(pairs, n=20)[0])
    fill(sheet, *["2", "3", "4"] * 7)
    finish_grading(sheet)
    for split in ("dev", "test"):
        found = load_pairs(str(tmp_path / f"my-{split}.csv"))
        assert found.scale == "0-5, as the file says"
        assert {round(score, 9) for score in found.score.tolist()} <= {0.4, 0.6, 0.8}
    assert "WARNING" not in caplog.text


def test_a_spreadsheet_runs_no_text_and_none_is_changed(tmp_path):
    odd = [
        "=1+1",
        "- a list",
        "+49 30",
        "@all",
        "'quoted'",
        "plain, with comma",
        'with "quotes"\nand lines',
        "a\rb",
    ]
    write_jsonl(tmp_path / "p.jsonl", [{"text1": text, "text2": f"other {n}"} for n, text in enumerate(odd)])
    sheet = tmp_path / "my.csv"
    write_grading(sheet, draw_pairs(tmp_path / "p.jsonl", n=8)[0])
    assert not any(row["sentence1"].startswith(("=", "+", "-", "@")) for row in table(sheet))
    fill(sheet)
    finish_grading(sheet)
    found = [row["sentence1"] for split in ("dev", "test") for row in table(tmp_path / f"my-{split}.csv")]
    assert sorted(found) == sorted([*odd[:-1], "a\nb"])  # at a lone return a row would end


def test_a_query_and_its_passages_are_graded_as_pairs_by_what_a_model_is_told_too(tmp_path):
    """What `mine --negatives` writes: each query comes with one passage, the half of them with its answer."""
    found = [
        {"query": f"query {n}", "positive": f"answer {n}", "negatives": [f"no {n}", f"nor {n}"]}
        for n in range(20)
    ]
    found = [row | {"purpose": "search"} for row in found]
    write_jsonl(tmp_path / "negatives.jsonl", found)
    drawn, scores = draw_pairs(tmp_path / "negatives.jsonl", n=20)
    assert scores == {"0 to 0.2": 10, "0.8 to 1": 10}
    assert {one for one, _, _ in drawn} == {row["query"] for row in found}
    assert sum(other.startswith("answer") for _, other, _ in drawn) == 10
    assert purpose_of(tmp_path / "negatives.jsonl") == "search"
    words = page_words("search")
    told = (packaged_folder("prompts") / "score" / "answers.txt").read_text()
    assert [f"{grade}: {meaning}\n" in told for grade, meaning in enumerate(words["meanings"])] == [True] * 6
    assert words["hint"] in told
    page = write_grading(tmp_path / "my.csv", drawn, purpose="search").read_text()
    assert words["question"] in page
    assert "alike is the meaning" not in page


@pytest.mark.parametrize("score", ["6", "-1", "5.5", "good", "nan", "3/5"])
def test_a_bad_score_is_named_by_its_line(pairs, tmp_path, score):
    sheet = tmp_path / "my.csv"
    write_grading(sheet, draw_pairs(pairs, n=6)[0])
    fill(sheet, "1", score)
    with pytest.raises(InputError, match=rf"my\.csv:3: score must be a number from 0 to 5, got '{score}'"):
        finish_grading(sheet)
    assert not (tmp_path / "my-dev.csv").exists()


def test_a_sheet_with_nothing_graded_or_without_its_columns(pairs, tmp_path):
    sheet = tmp_path / "my.csv"
    write_grading(sheet, draw_pairs(pairs, n=6)[0])
    with pytest.raises(InputError, match="no pair of dev and test has a score"):
        finish_grading(sheet)
    sheet.write_text("sentence1,sentence2,score,split\na,b,3,train\n")
    with pytest.raises(InputError, match=r"my\.csv:2: split must be dev or test, got 'train'"):
        finish_grading(sheet)
    sheet.write_text("sentence1,sentence2,score\na,b,3\n")
    with pytest.raises(InputError, match="no column 'split'"):
        finish_grading(sheet)


def test_nothing_that_may_hold_grades_is_written_over(pairs, tmp_path):
    drawn, _ = draw_pairs(pairs, n=6)
    write_grading(tmp_path / "my.csv", drawn)
    (tmp_path / "my.csv").unlink()
    with pytest.raises(InputError, match=r"my\.html exists and may hold grades"):
        write_grading(tmp_path / "my.csv", drawn)
    with pytest.raises(InputError, match=r"ends in \.csv"):
        write_grading(tmp_path / "my.txt", drawn)


def test_the_page_holds_texts_and_splits_and_no_score_of_a_machine(pairs, tmp_path):
    page = write_grading(tmp_path / "my.csv", draw_pairs(pairs, n=6)[0]).read_text()
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert data["title"] == "my"
    assert [row["sentence1"] for row in table(tmp_path / "my.csv")] == [row[0] for row in data["pairs"]]
    assert {len(row) for row in data["pairs"]} == {3}
    assert not re.search(r'(src|href)="|https?://|url\(|@import', page)


def command(*arguments):
    return CliRunner().invoke(app, ["grade", *map(str, arguments)])


def test_the_command_says_what_to_do_next(pairs, tmp_path):
    sheet = tmp_path / "my.csv"
    said = command(pairs, "--out", sheet, "--csv").stdout
    assert "pairs   60, not 150: no text may be in two" in said
    assert f"page    {tmp_path / 'my.html'}" in said
    fit = next(line for line in said.splitlines() if line.startswith("then"))
    assert fit.endswith(f"--dev {tmp_path / 'my-dev.csv'} --test {tmp_path / 'my-test.csv'} --drop-leaks")
    assert "--drop-leaks leaves them out of the training pairs" in said
    assert "--drop-leaks" in CliRunner().invoke(fit_app, ["fit", "--help"]).stdout
    fill(sheet)
    assert f"30 pairs in {tmp_path / 'my-dev.csv'}" in command("--finish", sheet).stdout
    assert json.loads(command("--finish", sheet, "--json").stdout) == {
        str(tmp_path / "my-dev.csv"): 30, str(tmp_path / "my-test.csv"): 30,
    }  # fmt: skip
    for wrong in ([pairs], ["--out", tmp_path / "none.csv"], [pairs, "--finish", sheet], []):
        assert "only --finish my.csv" in str(command(*wrong).exception)


@pytest.fixture
def judged(tmp_path):
    """A run of llm-score: a hub with most low grades, and some high ones."""
    rows = [
        {
            "text1": "the hub" if n % 3 else f"one {n}",
            "text2": f"other {n}",
            "score": 5 * (n % 10 == 0),
            "model": "g",
        }
        for n in range(400)
    ]
    write_jsonl(tmp_path / "judged" / "scores.jsonl", rows)
    return tmp_path / "judged"


def test_pairs_that_a_language_model_graded_are_drawn_at_random(judged, pairs):
    drawn, scores = draw_pairs(judged, n=200)
    assert len(drawn) == 200
    assert 10 <= scores["4 to 5"] <= 30  # a tenth, not half
    assert 100 <= sum(one == "the hub" for one, *_ in drawn) <= 160  # two thirds, not one pair
    assert [split for *_, split in drawn].count("dev") == 100
    assert draw_pairs(pairs, n=30)[1]["0.8 to 1"] == 10  # of anything else, over the range


def test_the_next_pairs_go_on_with_the_same_random_sample(judged, tmp_path):
    first, both = ({row[:2] for row in draw_pairs(judged, n=n)[0]} for n in (40, 70))
    write_jsonl(tmp_path / "my.jsonl", [{"text1": b, "text2": f"{a}.", "score": 1} for a, b in first])
    more = {row[:2] for row in draw_pairs(judged, n=30, graded=[tmp_path / "my.jsonl"])[0]}
    assert not first & more
    assert first | more == both


def test_the_command_hands_the_judged_run_on_to_fit(judged, tmp_path):
    said = command(judged, "--n", 20, "--out", tmp_path / "a.csv", "--csv").stdout
    assert "pairs   20, drawn at random" in said
    assert f"--judged {judged} --drop-leaks" in said
    fill(tmp_path / "a.csv")
    command("--finish", tmp_path / "a.csv")
    graded = [part for split in ("dev", "test") for part in ("--graded", tmp_path / f"a-{split}.csv")]
    command(judged, "--n", 20, "--out", tmp_path / "b.csv", "--csv", *graded)
    texts = [
        {(row["sentence1"], row["sentence2"]) for row in table(tmp_path / f"{name}.csv")} for name in "ab"
    ]
    assert [len(found) for found in texts] == [20, 20]
    assert not texts[0] & texts[1]


@pytest.mark.parametrize("mark", [",", ";"])
def test_the_next_command_is_the_same_when_the_sheet_is_drawn_and_when_it_is_filled(
    judged, tmp_path, monkeypatch, mark
):
    sheet = tmp_path / "a.csv"
    drawn = command(judged, "--n", 20, "--out", sheet, "--csv").stdout
    fill(sheet, mark=mark)
    filled = command("--finish", sheet).stdout
    both = [[line for line in said.splitlines() if "angle-train fit" in line] for said in (drawn, filled)]
    assert f"--judged {judged} --drop-leaks" in both[0][0]
    assert both[0] == both[1]
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert f"--judged ../{judged.name} " in command("--finish", "../a.csv").stdout
    (judged / "scores.jsonl").unlink()
    gone = command("--finish", sheet)
    assert "--judged" not in gone.stdout
    assert f"the run that graded its pairs, {judged}, is not there; give it to `angle-train`" in gone.stderr


def test_a_run_without_grades_leads_to_the_reasons(tmp_path, grades):
    (grades / "scores.jsonl").write_text("")
    with pytest.raises(InputError, match=r"grades holds no grades; see rejected.jsonl in it for the reasons"):
        draw_pairs(grades, n=10)
