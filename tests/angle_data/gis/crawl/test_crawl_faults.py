"""Faults that strike a share of all requests, and kills: the data set has the same bytes as without them."""

import hashlib
import os
import signal
import subprocess
import sys

import pytest
from fake_github import FAULTS, FakeGitHub, FaultShares, Seen
from fake_github_crawl import config_for, crawl, dump
from fake_github_world import make_world

from angle_data.gis.build.build import build_gis

WORLD = make_world(6, repos=8, issues=60, duplicates=0.3, comments=2.0)
NAMES = [repo.full_name for repo in WORLD.repos.values()]
CRAWLER = """
import sys
from pathlib import Path
from angle_data.gis.collect import crawl_repos
from angle_data.gis.crawl.selection import GisConfig
out, url, strategy = sys.argv[1:]
config = GisConfig(Path(out), Path(out, "list.txt"), strategy, api_url=url)
crawl_repos(config, sleep=lambda seconds: None)
"""


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def built(github, out, strategy):
    """What a build leaves: the files of data set and audit and the report, with digests of their bytes."""
    build_gis(config_for(github, out, *NAMES, strategy=strategy))
    files = [file for folder in ("dataset", "audit") for file in (out / folder).rglob("*") if file.is_file()]
    files.append(out / "report.json")
    digests = {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return {str(file.relative_to(out)): digest for file, digest in digests.items()}


@pytest.fixture(scope="module", params=["both", "comments"])
def plain(request, tmp_path_factory):
    """A strategy; the requests of a crawl without faults, the store and what was built."""
    out = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch, FakeGitHub(WORLD) as github:
        patch.setenv("GITHUB_TOKEN", "ghp_aVerySecretToken")
        patch.setitem(sys.modules, "matplotlib", None)
        crawl(github, out, *NAMES, strategy=request.param)
        return request.param, len(github.seen), dump(out), built(github, out, request.param)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_strikes_a_tenth_of_the_requests_loses_nothing(tmp_path, plain, name):
    strategy, needed, store, _ = plain
    if strategy == "comments" and name.startswith("GraphQL"):
        pytest.skip("this strategy asks GraphQL for former names alone")
    faults = FaultShares(4, **{name: 0.1})
    with FakeGitHub(WORLD, schedule=faults) as github:
        crawl(github, tmp_path, *NAMES, strategy=strategy)
        asked = github.count("graphql") - 1 if name.startswith("GraphQL") else len(github.seen)
        assert faults.fired[name] >= max(1, asked // 10), f"{faults.fired} in {asked} requests"
        assert len(github.seen) > needed, "what failed was asked again"
        assert dump(tmp_path) == store


def test_all_faults_at_once_and_kills_change_no_byte(tmp_path, plain):
    strategy, _, store, files = plain
    usable = [name for name in FAULTS if strategy == "both" or not name.startswith("GraphQL")]
    faults = FaultShares(2, **{name: 0.06 if name.startswith("GraphQL") else 0.03 for name in usable})
    running, killed = [], []

    def kill(seen):
        if len(github.seen) % 9 == 0 and len(killed) < 4:
            killed.append(seen)
            os.kill(running[-1].pid, signal.SIGKILL)

    with FakeGitHub(WORLD, schedule=faults, before=kill) as github:
        config_for(github, tmp_path, *NAMES)
        command = [sys.executable, "-c", CRAWLER, str(tmp_path), github.url, strategy]
        while not running or running[-1].returncode == -9:
            running.append(subprocess.Popen(command, stderr=subprocess.PIPE))
            _, errors = running[-1].communicate(timeout=120)
        assert [process.returncode for process in running] == [-9, -9, -9, -9, 0], errors
        assert faults.fired.keys() == set(usable), "each of them struck"
        assert dump(tmp_path) == store
        assert built(github, tmp_path, strategy) == files


@pytest.mark.parametrize("seed", range(20))
def test_a_fault_of_a_tenth_strikes_within_ten_requests_and_no_more_than_its_share(seed):
    faults = FaultShares(seed, **{"502": 0.1, "reset": 0.25})
    seen = Seen("issues", "/repos/a/b/issues", {}, {})
    struck = [faults(seen) for _ in range(40)]
    assert FAULTS["502"] in struck[:11]
    assert FAULTS["reset"] in struck[:5]
    assert faults.fired["502"] in (4, 5)
    assert faults.fired["reset"] in (10, 11)
