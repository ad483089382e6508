"""What `angle-data` writes and prints: journal -> candidates, runs -> data set, store -> data set."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from ensembles import write_grades
from fake_gis_store import make_comment, make_event, make_issue, store_world, write_store
from fake_github_world import make_world
from labelling_runs import read_rows

from angle_data.annotators.thinking import split_thinking
from angle_data.gis.crawl.rows import Repo
from angle_data.jsonl import write_jsonl
from angle_data.labelling.replies.degrees import parse_degrees
from angle_data.labelling.replies.parse import parse_reply

REPO = Path(__file__).resolve().parents[2]
FIXTURES = "tests/fixtures/gis"
WHOLE_CARDS = ("vote-ordinal", "principled-graded", "gis-world-cluster", "gis-written-both")
ROLES = ("MEMBER", "NONE", "CONTRIBUTOR", "OWNER", "COLLABORATOR")
WORDS = ("sync", "cursor", "export", "login", "theme", "cache", "panel", "socket", "backup", "filter", "menu")


def run_folder(run, folder, said):
    """What a labelling run left."""
    out, err = said
    return {
        "files": sorted(path.name for path in folder.iterdir()),
        "candidates": run.jsonl(folder / "candidates.jsonl"),
        "rejected": run.jsonl(folder / "rejected.jsonl"),
        "journal": run.jsonl(folder / "journal.jsonl", 0, drop=("seconds", "time")),
        "run": run.json(folder / "run.json"), "stdout": out.splitlines(), "stderr": err.splitlines(),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["annotator-a", "annotator-b", "annotator-c"])
def test_recorded_replies_become_candidates(check, run, labelled, name):
    check(f"label-{name}", run_folder(run, *labelled[name]))


@pytest.mark.parametrize("prompts", ["paper", "structured"])
def test_odd_replies_are_parsed_the_same(check, run, prompts):
    rows = json.loads((Path(__file__).parent / "odd_replies.json").read_text(encoding="utf-8"))
    replies = run.tmp / "odd.jsonl"
    write_jsonl(replies, rows)
    folder = run.tmp / f"odd-{prompts}"
    said = run(
        "angle_data", "llm-label", "--model", "odd", "--engine", "recorded", "--replies", replies,
        "--texts", replies, "--out", folder, "--prompts", prompts,
    )  # fmt: skip
    found = run_folder(run, folder, said)
    if prompts == "structured":
        return check(f"label-odd-{prompts}", found)
    # All of it: which reply gave which sentence is what matters here.
    for name in ("candidates", "rejected"):
        found[name] = read_rows(folder / f"{name}.jsonl")
    found["candidates"] = ["{source_id} {polarity}: {text}".format(**row) for row in found["candidates"]]
    found["rejected"] = [
        " | ".join(f"{k}={v}" for k, v in row.items() if k not in ("source", "key", "model"))
        for row in found["rejected"]
    ]
    return check(f"label-odd-{prompts}", found)


def test_every_recorded_reply_is_read_the_same(check):
    """The sentences and the reasons of each file of replies, for each way in which a reply may end."""
    files = (*REPO.glob("examples/*/replies/*.jsonl"), *REPO.glob("benchmarks/*/annotator-*.jsonl"))
    found = {}
    for path in sorted(files):
        rows = read_rows(path)
        said = {}
        for finish in ("unknown", "done", "cut"):
            parts = [part for row in rows for part in read_reply(row, finish)]
            sentences = [[part.text, part.degree] for part in parts if part.reason is None]
            reasons = Counter(part.reason for part in parts if part.reason is not None)
            said[finish] = {
                "sentences": len(sentences),
                "sha256": hashlib.sha256(json.dumps(sentences).encode()).hexdigest(),
                "reasons": dict(sorted(reasons.items())),
            }
        found[path.relative_to(REPO).as_posix()] = {"replies": len(rows), **said}
    check("replies", found)


def read_reply(row, finish):
    """The parts of a recorded reply; where a file holds no sources, they are unknown."""
    reply = row["reply"] if isinstance(row["reply"], str) else json.dumps(row["reply"])
    about = {"source": row.get("text", "").strip(), "finish": finish}
    answer, _ = split_thinking(reply)
    if polarity := row.get("polarity"):
        return parse_reply(answer, **about, size=2, polarity=polarity)
    return parse_degrees(answer, **about)


def pairs_folder(run, folder, said):
    """What the ensemble left."""
    out, err = said
    return {
        "stdout": out.splitlines(), "stderr": err.splitlines(),
        "rejected": run.jsonl(folder / "rejected.jsonl", 2), "report": run.json(folder / "report.json"),
        "dataset": run.dataset(folder / "dataset", card=folder.name in WHOLE_CARDS),
    }  # fmt: skip


@pytest.fixture(scope="session")
def graders(run, labelled):
    """Three graders of all candidates, who differ a little and err now and then: scores runs made by hand."""
    pairs = []
    for folder, _ in labelled.values():
        rows = read_rows(folder / "candidates.jsonl")
        pairs += [(row["source"], row["text"], row["polarity"]) for row in rows]
    folders = []
    for grader in ("x", "y", "z"):
        rows = []
        for source, text, polarity in dict.fromkeys(pairs):
            chance = int(hashlib.sha256(f"{grader}{source}{text}".encode()).hexdigest()[:8], 16) / 16**8
            high = (polarity == "synonym") != (chance < 0.05)
            score = round((4.2 if high else 0.8) + 0.7 * (chance * 7 % 1), 1)
            rows.append({"text1": source, "text2": text, "score": score, "model": grader})
        folders.append(write_grades(run.tmp / "grades" / grader, rows))
    return folders


ENSEMBLES = {
    "concat-binary": ("--strategy", "concat", "--labels", "binary"),
    "concat-ordinal-capped": (
        "--strategy", "concat", "--labels", "ordinal", "--max-per-source", 2,
        "--ratios", "0.8,0.1,0.1", "--seed", 3,
    ),
    "vote-binary": ("--strategy", "vote", "--labels", "binary"),
    "vote-graded": ("--strategy", "vote", "--labels", "graded"),
    "principled-binary": ("--strategy", "principled", "--labels", "binary"),
    "principled-ordinal": ("--strategy", "principled", "--labels", "ordinal"),
    "principled-graded": ("--strategy", "principled", "--labels", "graded"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENSEMBLES)
def test_runs_become_pairs(check, run, labelled, graders, name):
    folders = [folder for folder, _ in labelled.values()]
    scores = [part for folder in graders for part in ("--scores", folder)] if "graded" in name else []
    out = run.tmp / "pairs" / name
    said = run("angle_data", "ensemble", *folders, *scores, "--out", out, *ENSEMBLES[name])
    check(f"pairs-{name}", pairs_folder(run, out, said))


def test_voted_pairs_of_the_demo(check, run, voted):
    check("pairs-vote-ordinal", pairs_folder(run, *voted))


def gis_folder(run, folder, said):
    """What the build left."""
    out, err = said
    return {
        "stdout": out.splitlines(),
        "stderr": err.splitlines(),
        "audit": {path.stem: run.jsonl(path, 1) for path in sorted((folder / "audit").glob("*.jsonl"))},
        "report": run.json(folder / "report.json"),
        "figures": sorted(path.name for path in (folder / "figures").iterdir()),
        "dataset": run.dataset(folder / "dataset", card=folder.name in WHOLE_CARDS),
    }


@pytest.fixture(scope="session")
def world(run):
    """A store of three made-up repositories."""
    folder = run.tmp / "world"
    store_world(make_world(5, repos=3, issues=110, duplicates=0.3, comments=2.0), folder)
    return folder


@pytest.fixture(scope="session")
def written(run):
    """A store of the comments that the grammar is developed on, by people of every role, and some events."""
    rows = read_rows(Path(__file__).parents[2] / FIXTURES / "comments-dev.jsonl")
    names = sorted({row["repo"] for row in rows} | {link["repo"] for row in rows for link in row["links"]})
    ids = {name: number for number, name in enumerate(names, start=1)}
    wanted = {(row["repo"], row["number"]) for row in rows}
    wanted |= {(link["repo"], link["number"]) for row in rows for link in row["links"]}
    issues = [
        make_issue(
            number,
            f"{WORDS[number % 11].title()} of the {WORDS[number // 11 % 11]} fails in build {number % 97}",
            f"Steps: open the {WORDS[number // 7 % 11]}, then the {WORDS[number // 3 % 11]}. It stops.",
            repo_id=ids[repo], created_at=f"2021-{number % 12 + 1:02}-{number % 28 + 1:02}T00:00:00Z",
        )
        for repo, number in sorted(wanted)
    ]  # fmt: skip
    comments = [
        make_comment(
            5_000 + place, row["number"], row["body"], 900 + place, author=row["author"],
            role=ROLES[place % len(ROLES)], repo_id=ids[row["repo"]],
        )
        for place, row in enumerate(rows)
    ]  # fmt: skip
    events = [
        make_event(f"e{place}", kind, row["number"], row["links"][0]["number"], 1900 + place,
                   repo=row["links"][0]["repo"], repo_id=ids[row["repo"]])
        for place, row in enumerate(rows)
        if row["links"] and place % 5 == 0
        for kind in (("marked", "unmarked") if place % 15 == 0 else ("marked",))
    ]  # fmt: skip
    folder = run.tmp / "written"
    repos = [Repo(number, name, name) for name, number in ids.items()]
    write_store(folder, repos=repos, issues=issues, comments=comments, events=events)
    return folder


BUILDS = {
    "world-cluster": ("--split-by", "cluster"),
    "world-time": ("--split-by", "time", "--ratios", "0.7,0.15,0.15"),
    "world-repo": ("--split-by", "repo", "--seed", 2, "--negatives", 2, "--max-pairs-per-cluster", 4),
    "world-comments": ("--strategy", "comments", "--ids-only", "--since", "2020-01-02"),
    "written-both": (),
    "written-cross": ("--cross-repo", "--strategy", "comments", "--ratios", "0.6,0.2,0.2"),
}


@pytest.mark.parametrize("name", BUILDS)
def test_a_store_becomes_pairs(check, run, request, name):
    out = run.tmp / f"gis-{name}"
    shutil.copytree(request.getfixturevalue(name.split("-")[0]), out)
    said = run("angle_data", "gis", "--no-crawl", "--tokenizer", "estimate", "--out", out, *BUILDS[name])
    check(f"gis-{name}", gis_folder(run, out, said))


@pytest.mark.parametrize("options", [(), ("--why",)], ids=["plain", "why"])
def test_comments_are_explained(check, run, options):
    found = {}
    for name in ("dev", "heldout"):
        path = f"{FIXTURES}/comments-{name}.jsonl"
        found[name] = run.text_rows(run("angle_data", "gis", "explain", "--comments", path, *options)[0])
    check(f"explain-{options[0][2:] if options else 'plain'}", found)
