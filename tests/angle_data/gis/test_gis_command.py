import gzip
import json
import os
import re
import signal
import sys
import time

import pytest
import typer
from fake_gis_store import store_world
from fake_github import FakeGitHub, Fault
from fake_github_crawl import TOKEN
from fake_github_payloads import archived
from fake_github_world import make_world
from programs import angle_data, run_here, started

from angle_data.calling.program import run_app
from angle_data.gis.command import gis
from angle_data.gis.crawl.store import Store


@pytest.fixture
def run():
    """Run the command in this process; returns the exit code, stdout and stderr."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(gis)
    app.command("other")(lambda: print("another command"))
    return lambda *arguments: run_here(lambda: run_app(app, "angle-data"), *arguments)


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("org0/project0\nno/such\n")
    return path


def test_the_estimate_is_printed_and_nothing_is_written(run, listed, tmp_path):
    out, world = tmp_path / "out", make_world(1, repos=3, issues=210)
    world.repos[1_001].refuse, world.repos[1_002].has_issues = 451, False
    listed.write_text("org0/project0\norg1/project1\norg2/project2\nno/such\n")
    with FakeGitHub(world) as github:
        arguments = ("--repos", listed, "--out", out, "--api-url", github.url, "--dry-run")
        code, text, errors = run(*arguments)
        assert code == 0
        assert text == "about 4 requests for 1 repository\n"
        assert errors.count("is skipped: not found, or its issues are disabled\n") == 3
        assert run(*arguments, "--quiet")[:2] == (0, "")
        code, text, _ = run(*arguments, "--json", "--quiet")
    assert json.loads(text) == {"repositories": 1, "items": 172, "requests": 4, "spent": 1}
    assert not out.exists()


def test_a_limit_ends_with_75_and_what_is_unfinished_is_named(run, listed, tmp_path):
    out = tmp_path / "o"
    with FakeGitHub(make_world(1, repos=1, issues=210)) as github:
        crawl = ("--repos", listed, "--out", out, "--api-url", github.url)
        code, _, errors = run(*crawl, "--max-requests", 2)
        assert code == 75
        assert "angle-data: --max-requests 2 reached; everything so far is kept; run the same" in errors
        code, _, errors = run("--out", out, "--no-crawl")
        assert code == 0
        assert "not read to the end: org0/project0; run without --no-crawl to continue" in errors
        assert "| unfinished |" in (out / "dataset" / "README.md").read_text()
        assert run(*crawl)[0] == 0
    assert re.search(r"\| complete \d{4}-\d\d-\d\d \|", (out / "dataset" / "README.md").read_text())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--repos", "nothing.txt"), "nothing.txt does not exist"),
        ((), "give --repos"),
        (("--repos", "nothing.txt", "--strategy", "all"), "--strategy must be"),
        (("--repos", "nothing.txt", "--ratios", "a,b"), "--ratios 'a,b': give numbers"),
        (("--repos", "nothing.txt", "--api-url", "github.com"), "--api-url must be the address of an API"),
        (("--repos", "nothing.txt", "--api-url", "ftp://host"), "--api-url must be the address of an API"),
        (("--repos", "nothing.txt", "--api-url", "https://github.com"), "--api-url must be the address of"),
        (("--repos", "nothing.txt", "--max-requests", "0"), "--max-requests must be at least 1"),
        (("--no-crawl", "--dry-run"), "give only one of them"),
        (("--no-crawl", "--strategy", "foo"), "--strategy must be events, comments or both, got 'foo'"),
        (("--no-crawl", "--since", "2024-02-02", "--until", "2024-02-01"), "is before --since"),
        (("--no-crawl", "--until", "soon"), "--until 'soon' is not a date"),
        (("--no-crawl", "--since", "2024-02-31"), "--since '2024-02-31' is not a date"),
        (("--no-crawl", "--ratios", "nan,0.5,0.5"), "--ratios nan,0.5,0.5"),
        (("--no-crawl", "--split-by", "moon"), "--split-by must be one of cluster, time, repo, got 'moon'"),
        (("--no-crawl", "--negatives", "-1"), "--negatives must be between 0 and 100, got -1"),
        (("--no-crawl", "--max-pairs-per-cluster", "0"), "--max-pairs-per-cluster must be at least 1"),
        (("--repos", "nothing.txt", "--tokenizer", "nowhere"), "--tokenizer nowhere: cannot read a token"),
        (("--repos", "nothing.txt", "--token-env", "ghp_abc"), "name of a variable, not the token itself"),
        (("--repos", "nothing.txt", "--token-env", "a-b"), "name of a variable, not the token itself"),
        (("--repos", "nothing.txt", "--api-url", "http://me:pw@127.0.0.1:1/"), "without a user name"),
        (("--archive", "hour.json.gz", "--dry-run"), "give only one of them"),
    ],
)
def test_mistakes_are_one_line_with_status_1(run, tmp_path, listed, arguments, message):
    arguments = [str(listed) if a == "nothing.txt" and "does not" not in message else a for a in arguments]
    code, _, errors = run("--out", tmp_path / "o", *arguments)
    assert code == 1
    assert message in errors
    assert len(errors.strip().splitlines()) == 1
    assert not any(secret in errors for secret in ("ghp_abc", "a-b", "pw@"))


def test_a_data_set_of_another_command_is_not_replaced(run, listed, tmp_path):
    (tmp_path / "dataset" / "data").mkdir(parents=True)
    (tmp_path / "dataset" / "data" / "train-00000-of-00001.parquet").write_text("of ensemble")
    with FakeGitHub(make_world(1, repos=1, issues=70)) as github:
        code, _, errors = run("--repos", listed, "--out", tmp_path, "--api-url", github.url)
        assert github.seen == []
    said = f"--out {tmp_path} holds a data set and no crawl.sqlite; give another, or delete it"
    assert (code, errors) == (1, f"angle-data: error: {said}\n")


def test_a_labelling_run_gets_no_crawl(run, listed, tmp_path):
    (tmp_path / "run.json").write_text("{}")
    code, _, errors = run("--repos", listed, "--out", tmp_path, "--api-url", "http://127.0.0.1:1")
    said = f"--out {tmp_path} holds a labelling run; give another directory"
    assert (code, errors) == (1, f"angle-data: error: {said}\n")


def test_a_folder_or_a_list_is_needed_but_not_by_the_commands_beside_this_one(run):
    code, _, errors = run()
    assert (code, "Missing option '--out'." in errors) == (2, True)
    assert run("other") == (0, "another command\n", "")
    assert "[default: 0.86,0.07,0.07]" in run("--help")[1]


def test_an_interrupt_ends_with_130_and_keeps_what_was_read(listed, tmp_path):
    interrupted = []

    def interrupt(seen):
        if github.count("graphql") == 2 and not interrupted:
            interrupted.append(seen)
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)

    with FakeGitHub(make_world(1, repos=1, issues=210), before=interrupt) as github:
        command = angle_data("gis", "--repos", listed, "--out", tmp_path / "o", "--api-url", github.url)
        with started(command) as process:
            _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1] == "angle-data: interrupted; run the same command again to go on"
    assert "Traceback" not in errors
    assert TOKEN not in errors
    with Store.open(tmp_path / "o" / "crawl.sqlite", read_only=True) as store:
        assert store.count("issues") >= 100


def test_the_options_of_the_build_reach_it(run, tmp_path):
    """`report.json` names what a build was made with."""
    world = make_world(1, repos=2, issues=60, duplicates=0.4)
    store_world(world, tmp_path)
    listed = tmp_path / "list.txt"
    listed.write_text("\n".join(repo.full_name for repo in world.repos.values()))
    options = ["--negatives", "0.5", "--split-by", "time", "--ratios", "0.7,0.2,0.1", "--seed", "7"]
    options += ["--max-pairs-per-cluster", "3", "--cross-repo", "--ids-only", "--strategy", "comments"]
    options += ["--since", "2020-01-01", "--until", "2020-02-01", "--repos", listed]
    code, _, errors = run("--out", tmp_path, "--no-crawl", *options)
    assert code == 0, errors
    assert json.loads((tmp_path / "report.json").read_text())["options"] == {
        "seed": 7, "negatives": 0.5, "split_by": "time", "max_pairs_per_cluster": 3, "cross_repo": True,
        "ids_only": True, "ratios": [0.7, 0.2, 0.1], "repos": ["org0/project0", "org1/project1"],
        "since": "2020-01-01", "until": "2020-02-01", "strategy": "comments",
        "command": "angle-data gis --no-crawl --out FOLDER --seed 7 --negatives 0.5 --split-by time "
        "--max-pairs-per-cluster 3 --cross-repo --ids-only --ratios 0.7,0.2,0.1 --repos LIST "
        "--since 2020-01-01 --until 2020-02-01 --strategy comments",
    }  # fmt: skip


def test_the_list_may_be_a_pipe(run, tmp_path):
    with FakeGitHub(make_world(1, repos=2, issues=80, duplicates=0.4)) as github:
        for options in (("--api-url", github.url), ("--no-crawl",)):
            end, start = os.pipe()
            os.write(start, b"org0/project0\nnonsense\n")
            os.close(start)
            code, _, errors = run("--repos", f"/dev/fd/{end}", "--out", tmp_path, "--ratios", "1,0", *options)
            os.close(end)
            assert code == 0, errors
            assert errors.count(":2: 'nonsense' is not a repository; skipped") == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["options"]["repos"] == ["org0/project0"]


@pytest.mark.parametrize("token", ["ghp_one\nghp_two", "ghp_größe", "ghp one"])
def test_a_token_that_is_none_is_refused_before_it_is_sent(run, listed, tmp_path, monkeypatch, token):
    monkeypatch.setenv("GITHUB_TOKEN", token)
    code, _, errors = run("--repos", listed, "--out", tmp_path / "o")
    assert code == 1
    assert "the token in GITHUB_TOKEN contains a space, a line break or a non-ASCII character" in errors
    assert "ghp" not in errors


def test_a_dry_run_reports_the_list_as_the_crawl_does(run, tmp_path, monkeypatch):
    path = tmp_path / "list.txt"
    path.write_text("org0/project0\nnonsense\nold/name\n")
    monkeypatch.delenv("GITHUB_TOKEN")
    with FakeGitHub(make_world(1, repos=1, issues=210), prefix="/api/v3") as github:
        arguments = ("--repos", path, "--out", tmp_path / "o", "--dry-run", "--api-url")
        code, text, errors = run(*arguments, github.url, "--json")
        assert (code, json.loads(text)["repositories"]) == (0, 1)
        assert f"{path}:2: 'nonsense' is not a repository" in errors
        assert "no token in GITHUB_TOKEN" in errors
        github.faults = [Fault("status", 200)]
        assert "not answer like GitHub's API; check --api-url" in run(*arguments, github.url)[2]
        code, _, errors = run(*arguments, github.url.removesuffix("/api/v3"))
    assert code == 1
    assert "none of 2 repositories can be read; org0/project0: error:404" in errors
    assert "https://HOST/api/v3 for GitHub Enterprise" in errors


def test_the_table_says_what_was_left_out_and_what_it_cost(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    world = make_world(1, repos=2, issues=80, duplicates=0.4)
    path = tmp_path / "list.txt"
    path.write_text("org0/project0\norg1/project1\nno/such\n")
    arguments = ("--repos", path, "--out", tmp_path / "o", "--ratios", "0.5,0.5")
    with FakeGitHub(world) as github:
        assert run(*arguments, "--api-url", github.url)[0] == 0
        world.repos[1_001].refuse = 451
        code, text, _ = run(*arguments, "--api-url", github.url)
    assert code == 0
    lines = [line.split(maxsplit=2) for line in text.splitlines()]
    assert ["left", "out", "no/such: 404 Not Found"] in lines
    assert ["left", "out", "org1/project1: 451 Repository access blocked"] in lines
    assert any(line[:2] == ["pull", "requests"] for line in lines)
    assert next(line for line in lines if line[0] == "requests")[2].endswith(" points)")
    assert run(*arguments, "--no-crawl", "--quiet")[:2] == (0, "")
    _, text, _ = run(*arguments, "--no-crawl", "--json", "--quiet")
    assert json.loads(text)["left_out"]["org1/project1"] == "451 Repository access blocked"


def test_a_repository_that_the_token_may_not_read_ends_with_1_and_the_data_set_of_the_others(run, tmp_path):
    world = make_world(1, repos=2, issues=80, duplicates=0.4)
    path = tmp_path / "list.txt"
    path.write_text("org0/project0\norg1/project1\n")
    message = "Resource not accessible by personal access token"
    fault = Fault("errors", message=message, type="FORBIDDEN")

    def schedule(seen):
        return fault if (seen.body or {}).get("variables", {}).get("name") == "project1" else None

    out = tmp_path / "o"
    with FakeGitHub(world, schedule=schedule) as github:
        code, text, errors = run("--repos", path, "--out", out, "--api-url", github.url)
    assert code == 1
    assert ["left", "out", f"org1/project1: 403 {message}"] in [
        line.split(maxsplit=2) for line in text.splitlines()
    ]
    told = (
        f"1 of 2 repositories could not be read (org1/project1): 403 {message}; the token lacks a permission"
    )
    assert told in errors
    assert (out / "dataset" / "README.md").exists()
    assert run("--out", out, "--no-crawl")[0] == 0, "what was crawled before is no fault of this run"


def test_lines_hours_and_damage_of_dumps_stand_on_the_terminal_and_in_the_report(run, tmp_path):
    world = make_world(1, repos=1, issues=80, duplicates=0.4)
    repo = world.repos[1_000]
    events = [json.dumps(event) for issue in repo.issues.values() for event in archived(issue, repo)]
    dumps = tmp_path / "dumps" / "2024"
    dumps.mkdir(parents=True)
    (dumps / "2024-01-01-0.json").write_text("\n".join(events))
    (dumps / "2024-01-01-3.json").write_text("{no json\n" + events[0])
    (dumps / "2024-01-01-4.json.gz").write_bytes(gzip.compress(events[0].encode())[:-9])
    code, text, errors = run(
        "--archive", tmp_path / "dumps", "--out", tmp_path / "o", "--strategy", "comments"
    )
    assert code == 0, errors
    shown = dict(line.split("  ", 1) for line in text.splitlines())
    shown = {name: value.strip() for name, value in shown.items()}
    assert shown["event dumps"] == "3"
    assert shown["lines, not json"] == "1"
    assert shown["hours missing"] == "2: 2024-01-01-1 to 2024-01-01-2"
    assert shown["damaged"].startswith("2024-01-01-4.json.gz: Compressed file ended")
    report = json.loads((tmp_path / "o" / "report.json").read_text())["ledger"]
    assert report["dumps"]["lines"]["used"] == int(shown["lines, used"].replace(",", ""))
    assert report["dumps"]["hours"]["gaps"] == ["2024-01-01-1 to 2024-01-01-2"]
    assert report["outcomes"] == {"archive": 1}
    card = (tmp_path / "o" / "dataset" / "README.md").read_text()
    assert "| hours missing | 2: 2024-01-01-1 to 2024-01-01-2 |" in card
