"""The grading page from a server: what is posted is in the sheet at once; nobody else may; it goes on."""

import csv
import signal
import threading
import urllib.error

import pytest
from grading import grade_all, grader, page_data, request
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.look.grade import draw_pairs, finish_grading, write_pairs
from angle_data.look.serve import Grading, grade_in_browser


def command(*arguments):
    return CliRunner().invoke(app, ["grade", *map(str, arguments)])


def scores(sheet):
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        return [row["score"] for row in csv.DictReader(stream)]


@pytest.fixture
def sheet(pairs, tmp_path):
    write_pairs(tmp_path / "my.csv", draw_pairs(pairs, n=6)[0])
    return tmp_path / "my.csv"


def test_grades_are_in_the_sheet_as_soon_as_they_are_posted(sheet):
    seen = []

    def work(url):
        request(url, "grade", {"2": 3.5})
        seen.append(scores(sheet))
        request(url, "grade", {"2": 0, "3": 5})
        seen.append(scores(sheet))
        request(url, "done", {})

    with grader(work):
        found = grade_in_browser(sheet, "opposites")
    assert seen == [["", "", "3.5", "", "", ""], ["", "", "0", "5", "", ""]]
    assert (found["graded"], found["pairs"]) == (2, 6)


def test_the_command_draws_serves_and_goes_on_where_it_was(pairs, tmp_path):
    sheet = tmp_path / "my.csv"
    with grader(lambda url: grade_all(url, 4)):
        first = command(pairs, "--n", 10, "--out", sheet)
    assert first.exit_code == 0, first.output
    assert [score for score in scores(sheet) if score] == ["0", "1", "2", "3"]
    before = []

    def rest(url):
        before.append(page_data(url))
        grade_all(url)

    with grader(rest):
        second = command(pairs, "--n", 10, "--out", sheet)
    assert before[0]["grades"] == {"0": 0, "1": 1, "2": 2, "3": 3}
    assert "graded  10 of 10" in second.stdout
    assert sum(len(scores(tmp_path / f"my-{split}.csv")) for split in ("dev", "test")) == 10
    assert "angle-train fit --data DATA --backbone MODEL --out DIR --dev" in second.stdout
    with grader(lambda url: (request(url, "grade", {"0": 4.5}), request(url, "done", {}))):
        command("--out", sheet)  # a changed mind: the sheet decides what the files hold
    assert scores(sheet)[0] == "4.5"
    assert "4.5" in scores(tmp_path / "my-dev.csv") + scores(tmp_path / "my-test.csv")


def test_a_sheet_of_a_judged_run_that_goes_on_by_itself_keeps_the_run(tmp_path):
    run = tmp_path / "judged"
    rows = ({"text1": f"a {n}", "text2": f"b {n}", "score": n % 6, "model": "m"} for n in range(30))
    write_jsonl(run / "scores.jsonl", rows)
    sheet = tmp_path / "my.csv"
    with grader(lambda url: grade_all(url, 2)):
        command(run, "--n", 10, "--out", sheet)
    with grader(grade_all):
        assert f"--judged {run} " in command("--out", sheet).stdout


def test_without_grades_of_both_splits_there_are_no_files_yet(pairs, tmp_path):
    with grader(lambda url: grade_all(url, 0)):
        said = command(pairs, "--n", 6, "--out", tmp_path / "my.csv")
    assert said.exit_code == 0
    assert "the same command" in said.stdout
    assert not (tmp_path / "my-dev.csv").exists()


def test_ctrl_c_keeps_every_grade_and_says_so(sheet):
    def work(url):
        request(url, "grade", {"0": 1})
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.main_thread().ident
    with grader(work), pytest.raises(KeyboardInterrupt, match="1 of 6 graded"):
        grade_in_browser(sheet, None)
    assert scores(sheet)[0] == "1"


def refused(url, *arguments, **headers):
    with pytest.raises(urllib.error.HTTPError) as error:
        request(url, *arguments, **headers)
    error.value.close()
    return error.value.code


def test_nobody_else_reads_or_grades(sheet):
    codes = []

    def work(url):
        bare = url.replace("token=", "token=x")
        codes.append(refused(bare))
        codes.append(refused(bare, "grade", {"0": 1}))
        codes.append(refused(url, "grade", {"0": 1}, Host="evil.example:80"))
        codes.append(refused(url, "other", {}))
        for wrong in ({"9": 1}, {"-1": 1}, {"0": 6}, {"0": 0.3}, {"0": True}, {"0": "5"}, [1], {"0": None}):
            codes.append(refused(url, "grade", wrong))
        codes.append(refused(url, "grade", {"0": "x" * 70_000}))
        request(url, "done", {})

    with grader(work):
        grade_in_browser(sheet, None)
    assert codes == [404, 403, 403, 400, *[400] * 8, 403]
    assert set(scores(sheet)) == {""}


def test_grades_of_elsewhere_are_not_replaced(sheet, tmp_path):
    (tmp_path / "my-dev.csv").write_text("sentence1,sentence2,score\nan old,pair,3\n")
    with pytest.raises(InputError, match="holds grades that"):
        Grading(sheet, None)


def test_a_spreadsheets_commas_and_columns_survive(sheet):
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    rows = [lines[0] + ",note", *(line + ",mine" for line in lines[1:])]
    rows[1] = rows[1].replace(",,", ',"3,5",', 1)
    sheet.write_text("\n".join(rows) + "\n")
    with grader():
        grade_in_browser(sheet, None)
    assert scores(sheet)[0] == "3,5"
    assert sheet.read_text(encoding="utf-8-sig").count(",mine") == 6
    assert sum(finish_grading(sheet).values()) == 6


@pytest.mark.parametrize(
    ("purpose", "said"), [("opposites", "1 at most"), ("topics", "give them 2"), (None, "if they must")]
)
def test_the_page_says_which_grade_opposites_get(sheet, purpose, said):
    page = Grading(sheet, purpose).page()
    assert said in page
    assert "connect-src 'self'" in page
