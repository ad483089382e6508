"""The whole build: from a store to a data set that other tools open."""

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from fake_gis_store import make_comment, make_issue, store_world, write_store
from fake_github_world import make_world
from labelling_runs import read_rows

from angle_data.errors import InputError
from angle_data.gis.build.build import build_gis
from angle_data.gis.build.dataset import COLUMNS, IDS_COLUMNS
from angle_data.gis.build.links import REASONS
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import STORE_NAME, Store
from angle_data.gis.rehydrate import read_dataset

WORLD = make_world(5, repos=3, issues=150, duplicates=0.3, comments=2.0)


def content(folder: Path) -> dict[str, bytes]:
    """All files but the store and the lock."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".", "crawl"))
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A built world: the folder and the summary."""
    out = tmp_path_factory.mktemp("gis")
    store_world(WORLD, out)
    return out, build_gis(GisConfig(out))


@pytest.fixture
def plain(monkeypatch):
    """No figures, which take most of the time of a small build."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def crawled(tmp_path):
    """A folder with the store of the world."""
    store_world(WORLD, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def rows(built):
    return list(read_dataset(built[1].dataset))


def test_other_tools_open_the_data_set(built, tmp_path):
    import datasets

    loaded = datasets.load_dataset(str(built[1].dataset), cache_dir=str(tmp_path))
    assert list(loaded) == ["train", "validation", "test"]
    assert loaded["train"].column_names == list(COLUMNS)
    assert all(len(split) == built[1].counts[name] for name, split in loaded.items())
    assert set(loaded["train"]["label"]) == {0, 1}


def test_the_positive_pairs_are_the_true_duplicates(rows):
    true = {}
    for link in WORLD.links:
        name = WORLD.repos[link.repo_id].full_name
        one, other = ((name, link.duplicate), (name, link.canonical))
        group = true.get(one, {one}) | true.get(other, {other})
        true.update(dict.fromkeys(group, group))
    for _, row in rows:
        together = (row["repo"], row["number2"]) in true.get((row["repo"], row["number1"]), ())
        assert together == (row["label"] == 1), row["url1"]


def test_rows_are_what_the_world_holds(rows):
    repos = {repo.full_name: repo for repo in WORLD.repos.values()}
    for _, row in rows:
        for side in "12":
            issue = repos[row["repo"]].issues[row[f"number{side}"]]
            assert row[f"created{side}"] == issue.created_at
            assert row[f"url{side}"] == f"https://github.com/{row['repo']}/issues/{issue.number}"
            assert row[f"text{side}"].startswith(issue.title)
            assert not issue.is_pull
        assert (row["kind"] == "duplicate") == (row["label"] == 1)
        assert bool(row["evidence_url"]) == (row["kind"] in ("duplicate", "explicit_non_duplicate"))


def test_nothing_is_in_two_splits(built, rows):
    places, clusters = {}, {}
    for split, row in rows:
        for side in "12":
            assert places.setdefault((row["repo"], row[f"number{side}"]), split) == split
        if row["label"]:
            assert clusters.setdefault(row["cluster"], split) == split
    assert built[1].report["checks"] == {"shared_issues": 0, "shared_clusters": 0, "near_identical_texts": 0}


def test_half_of_the_pairs_are_negative_in_every_split_and_none_is_there_twice(rows):
    labels = Counter((split, row["label"]) for split, row in rows)
    for split in ("train", "validation", "test"):
        assert labels[split, 0] == labels[split, 1] > 0
    assert len({frozenset((row["url1"], row["url2"])) for _, row in rows}) == len(rows)


def test_counts_in_are_kept_and_dropped(built):
    out, summary = built
    links = summary.report["links"]
    files = ("links", "tentative", "rejected")
    accepted, tentative, rejected = (read_rows(out / "audit" / f"{name}.jsonl") for name in files)
    refused = sum(row["source"] != "pair" for row in rejected)
    assert links["accepted"] == len(accepted) == sum(links["by_evidence"].values())
    assert sum(links["tentative"].values()) == len(tentative)
    assert sum(links["rejected"].values()) == refused
    assert links["statements"] == len(accepted) + len(tentative) + refused
    pairs = summary.report["pairs"]
    assert pairs["possible"] == pairs["kept"] + sum(pairs["dropped"].values())
    assert sum(row["source"] == "pair" for row in rejected) == sum(pairs["dropped"].values())
    assert pairs["kept"] == summary.counts["positives"]
    assert {row["reason"] for row in rejected if row["source"] != "pair"} <= REASONS.keys()


BUILD = """
import sys
from pathlib import Path
from angle_data.gis.build.build import build_gis
from angle_data.gis.crawl.selection import GisConfig
build_gis(GisConfig(Path(sys.argv[1])))
"""


def test_same_store_same_bytes_in_another_process(built, crawled):
    """The order of Python's sets changes from process to process."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", BUILD, str(crawled)], env=environment, check=True, timeout=120)
    assert content(crawled) == content(built[0])


@pytest.mark.usefixtures("plain")
def test_another_seed_gives_other_rows_and_a_rebuild_keeps_what_the_user_added(crawled, rows):
    assert list(read_dataset(build_gis(GisConfig(crawled, seed=1)).dataset)) != rows
    for name in (".DS_Store", "thesis.txt", "data/._train-00000-of-00001.parquet"):
        (crawled / "dataset" / name).write_text("mine")
    assert list(read_dataset(build_gis(GisConfig(crawled)).dataset)) == rows
    assert (crawled / "dataset" / "thesis.txt").read_text() == "mine"


def test_the_report_and_the_figures_are_written(built):
    out, summary = built
    assert json.loads((out / "report.json").read_text()) == summary.report
    drawn = (out / "figures" / "token-lengths.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert (summary.dataset / "figures" / "token-lengths.png").read_bytes() == drawn
    assert "](figures/token-lengths.png)" in (summary.dataset / "README.md").read_text()


@pytest.mark.usefixtures("plain")
def test_ids_only(crawled, built):
    summary = build_gis(GisConfig(crawled, ids_only=True))
    found = list(read_dataset(summary.dataset))
    assert list(found[0][1]) == list(IDS_COLUMNS)
    titles = {issue.title for repo in WORLD.repos.values() for issue in repo.issues.values()}
    files = b"".join(data for name, data in content(crawled).items() if "dataset" in name)
    assert not any(title.encode() in files for title in titles)
    keep, rows = list(COLUMNS)[2:], read_dataset(built[1].dataset)
    whole = [{name: row[name] for name in keep} for _, row in rows]
    assert [{name: row[name] for name in keep} for _, row in found] == whole
    assert summary.report["tokens"] == built[1].report["tokens"]
    ids_card, card = ((found.dataset / "README.md").read_text() for found in (summary, built[1]))
    # A block that two data sets share makes `datasets` take the one for the other.
    assert "configs:" not in ids_card + card
    assert ("`text1`" in ids_card, "The texts are not included." in ids_card) == (False, True)
    assert ("`text1`" in card, "The texts are not included." in card) == (True, False)


@pytest.mark.usefixtures("plain")
def test_by_time(crawled):
    summary = build_gis(GisConfig(crawled, split_by="time", ratios=(0.6, 0.2, 0.2)))
    times = {}
    for split, row in read_dataset(summary.dataset):
        times.setdefault(split, set()).update((row["created1"], row["created2"]))
    assert max(times["train"]) < min(times["validation"])
    assert max(times["validation"]) < min(times["test"])
    border, other = (summary.report["periods"][split] for split in ("train", "validation"))
    assert max(times["train"]) <= border < min(times["validation"])
    said = f"opened in its period: train until {border}, validation until {other}, then the rest."
    assert said in (summary.dataset / "README.md").read_text()
    pairs = summary.report["pairs"]
    crossing = pairs["dropped"]["crosses_time_border"]
    rejected = (crawled / "audit" / "rejected.jsonl").read_text()
    assert rejected.count('"reason": "crosses_time_border"') == crossing > 0
    assert pairs["possible"] == pairs["kept"] + sum(pairs["dropped"].values())


def pairs_of_issues(count: int) -> tuple[list, list]:
    """Issues of which each odd one is marked as a duplicate of the even one before."""
    issues = [make_issue(n, body=" ".join(f"w{n}x{i}" for i in range(30))) for n in range(2, 2 * count + 2)]
    comments = [make_comment(500 + n, n + 1, f"Duplicate of #{n}", 300) for n in range(2, 2 * count + 2, 2)]
    return issues, comments


@pytest.mark.usefixtures("plain")
def test_clusters_with_copies_of_a_text_stay_together(tmp_path):
    issues, comments = pairs_of_issues(30)
    issues[10] = make_issue(12, issues[0].title, issues[0].body)  # of 2, in another cluster
    write_store(tmp_path, issues=issues, comments=comments)
    for seed in range(5):
        summary = build_gis(GisConfig(tmp_path, seed=seed, ratios=(0.4, 0.3, 0.3), negatives=0))
        places = {row["number2"]: split for split, row in read_dataset(summary.dataset)}
        assert places[2] == places[12]


def rows_of(out, repos=None, **chosen):
    """The rows that a build of part of the store gives."""
    path = None
    if repos:
        path = out / "list.txt"
        path.write_text("\n".join(repos))
    summary = build_gis(GisConfig(out, path, ratios=(0.6, 0.4), **chosen))
    return [row for _, row in read_dataset(summary.dataset)], summary


@pytest.mark.usefixtures("plain")
def test_only_the_listed_repositories_count_under_any_of_their_names(tmp_path):
    store_world(WORLD, tmp_path / "all")
    names = [repo.full_name for repo in WORLD.repos.values()]
    with Store.open(tmp_path / "all" / STORE_NAME) as store:
        repo = next(store.repos())
        store.save_repo(replace(repo, name="moved/away"))
    rows, summary = rows_of(tmp_path / "all", repos=(names[0], "never/crawled"))
    assert {row["repo"] for row in rows} == {"moved/away"}
    assert summary.report["left_out"] == {"never/crawled": "not crawled"}
    alone = make_world(5, repos=3, issues=150, duplicates=0.3, comments=2.0)
    alone.repos = {id: repo for id, repo in alone.repos.items() if repo.full_name == names[0]}
    store_world(alone, tmp_path / "one")
    there, _ = rows_of(tmp_path / "one")
    here, there = ([(row["number1"], row["number2"]) for row in found] for found in (rows, there))
    assert here == there


@pytest.mark.usefixtures("plain")
def test_dates_bound_when_issues_were_opened(crawled):
    rows, summary = rows_of(crawled, since="2020-01-02", until="2020-01-05")
    times = {row[f"created{n}"][:10] for row in rows for n in "12"}
    assert times == {"2020-01-02", "2020-01-03", "2020-01-04", "2020-01-05"}
    assert summary.report["links"]["rejected"]["outside"] > 0
    whole, _ = rows_of(crawled)
    assert {row[f"created{n}"][:10] for row in whole for n in "12"} > times


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("strategy", "evidence"), [("events", {"event"}), ("comments", {"comment"})])
def test_the_strategy_says_what_counts_as_evidence(crawled, strategy, evidence):
    rows, _ = rows_of(crawled, strategy=strategy)
    found = {row["evidence"].partition(":")[0] for row in rows if row["label"]}
    assert found - {"transitive"} == evidence


@pytest.mark.usefixtures("plain")
def test_repositories_that_github_no_longer_shows_are_left_out(crawled):
    with Store.open(crawled / STORE_NAME) as store:
        gone, forbidden, _ = store.repos()
        store.save_repo(replace(gone, status="error:451 Repository access blocked"))
        store.save_repo(replace(forbidden, status="error:403 Forbidden"))
        store.save_failure("no/such", "error:404 Not Found")
    rows, summary = rows_of(crawled)
    assert gone.name not in {row["repo"] for row in rows}
    assert forbidden.name in {row["repo"] for row in rows}
    reasons = {"no/such": "404 Not Found", gone.name: "451 Repository access blocked"}
    assert summary.report["left_out"] == reasons
    card = (summary.dataset / "README.md").read_text()
    assert all(f"| {name} | {why} |" in card for name, why in reasons.items())


def test_nothing_to_build(tmp_path):
    store_world(make_world(1, repos=2, issues=60, duplicates=0.4), tmp_path / "two")
    with pytest.raises(InputError, match="needs duplicates in at least 3 repositories, found 2"):
        build_gis(GisConfig(tmp_path / "two", split_by="repo"))
    write_store(tmp_path, issues=[])
    with pytest.raises(InputError, match="no duplicates among 0 issues with 0 comments; see audit/"):
        build_gis(GisConfig(tmp_path))
    comments = [make_comment(5, 2, "dup of #77", 9)]
    write_store(tmp_path, issues=[make_issue(1), make_issue(2)], comments=comments)
    with pytest.raises(InputError, match="no duplicates among 2 issues with 1 comments; see audit/"):
        build_gis(GisConfig(tmp_path))
    assert '"reason": "missing"' in (tmp_path / "audit" / "rejected.jsonl").read_text()


def test_a_data_set_without_negatives_is_told(tmp_path, caplog):
    write_store(
        tmp_path, issues=[make_issue(1), make_issue(2)], comments=[make_comment(5, 2, "dup of #1", 9)]
    )
    assert build_gis(GisConfig(tmp_path)).counts["negatives"] == 0
    assert "no non-duplicates: no issue was found to pair with a duplicate (no_" in caplog.text
    caplog.clear()
    build_gis(GisConfig(tmp_path, negatives=0.0))
    assert "no non-duplicates" not in caplog.text


@pytest.mark.usefixtures("plain")
def test_too_few_clusters_leave_splits_out_and_no_matplotlib_the_figures(tmp_path, monkeypatch, caplog):
    comment = make_comment(5, 2, "Duplicate of #1", 9)
    write_store(tmp_path, issues=[make_issue(1), make_issue(2)], comments=[comment])
    monkeypatch.setattr(logging.getLogger("angle"), "propagate", True)
    summary = build_gis(GisConfig(tmp_path))
    assert 'figures are left out: drawing them needs the "figures" extra' in caplog.text
    assert not (tmp_path / "figures").exists()
    assert "](figures/" not in (summary.dataset / "README.md").read_text()
    assert (tmp_path / "report.json").exists()
    assert summary.counts["train"] == summary.counts["positives"] == 1
    assert "test" not in summary.counts
    assert summary.report["negatives"]["dropped"] == {"no_hard_partner": 1, "no_partner": 1}
