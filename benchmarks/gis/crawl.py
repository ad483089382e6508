"""What a crawl costs, and whether it survives: requests per positive pair, kills, faults. No network is used.

    python benchmarks/gis/crawl.py                      (5 repositories x 2,000 numbers, about two minutes)
    python benchmarks/gis/crawl.py --issues 200 --json

The world is made up and served by the fake GitHub of tests/ over loopback. Yardsticks read the same world
the plain way: `list everything` pages through all issues and all comments, `one per issue` pages through
the issues and asks for the comments of each. Positive pairs are duplicates that a maintainer marked and
that the requests made visible: by a comment, and for the crawl also by GitHub's own mark. Wall times are
the fake's, not GitHub's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fake_github import FakeGitHub, random_faults  # noqa: E402
from fake_github_world import World, all_comments, make_world  # noqa: E402

from angle_data.gis.crawl.crawl import CrawlConfig, crawl_repos  # noqa: E402
from angle_data.gis.crawl.store import Store  # noqa: E402

CRAWLER = """
import sys
from pathlib import Path
from angle_data.gis.crawl.crawl import CrawlConfig, crawl_repos
crawl_repos(CrawlConfig(Path(sys.argv[1]), Path(sys.argv[2]), api_url=sys.argv[3]))
"""


def main() -> None:
    """Run all parts and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repos", type=int, default=5)
    parser.add_argument("--issues", type=int, default=2_000, help="numbers per repository")
    parser.add_argument("--comments", type=float, default=4.0, help="comments per number, on average")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["GITHUB_TOKEN"] = "made-up"
    world = make_world(options.seed, repos=options.repos, issues=options.issues, comments=options.comments)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(world, Path(folder), options.seed)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:<52} {value:>12,}" if isinstance(value, int | float) else f"{name:<52} {value:>12}")


def measure(world: World, folder: Path, seed: int) -> dict[str, Any]:
    """Return the figures by name."""
    names = [repo.full_name for repo in world.repos.values()]
    (folder / "list.txt").write_text("\n".join(names))
    by_comment = sum(link.how != "event" for link in world.links)
    found: dict[str, Any] = {
        "repositories": len(names),
        "numbers": sum(len(repo.issues) for repo in world.repos.values()),
        "comments": sum(len(list(all_comments(repo))) for repo in world.repos.values()),
        "marked duplicates": len(world.links),
        "marked by a comment": by_comment,
    }
    for strategy in ("both", "events", "comments"):
        requests, seconds = crawl(world, folder, strategy)
        visible = {"both": len(world.links), "comments": by_comment}.get(
            strategy, sum(link.how != "comment" for link in world.links)
        )
        found[f"{strategy}: requests"] = requests
        found[f"{strategy}: requests per 1,000 pairs"] = round(1_000 * requests / visible, 1)
        found[f"{strategy}: seconds"] = round(seconds, 1)
    again, _ = crawl(world, folder, "both")
    found["both, run again: requests"] = again
    for name, naive in (("list everything", list_everything), ("one per issue", one_per_issue)):
        requests = naive(world)
        found[f"{name}: requests"] = requests
        found[f"{name}: requests per 1,000 pairs"] = round(1_000 * requests / by_comment, 1)
    whole = dump(folder / "both")
    found |= killed(world, folder, whole, found["both: requests"], seed)
    found |= faulty(world, folder, whole, seed)
    return found


def crawl(world: World, folder: Path, strategy: Any) -> tuple[int, float]:
    """Crawl into `folder/strategy`; returns the requests that reached the server, and the seconds."""
    with FakeGitHub(world) as github:
        started = time.perf_counter()
        crawl_repos(CrawlConfig(folder / "list.txt", folder / strategy, strategy, api_url=github.url))
        return len(github.seen), time.perf_counter() - started


def killed(world: World, folder: Path, whole: list[str], requests: int, seed: int) -> dict[str, Any]:
    """Kill the crawl with SIGKILL at three random requests, start it again each time, compare the stores."""
    moments = sorted(random.Random(seed).sample(range(2, requests), 3))
    running: list[subprocess.Popen[bytes]] = []

    def kill(seen: object) -> None:
        if len(github.seen) in moments:
            os.kill(running[-1].pid, signal.SIGKILL)

    with FakeGitHub(world, before=kill) as github:
        paths = [str(folder / name) for name in ("list.txt", "killed")]
        command = [sys.executable, "-c", CRAWLER, *paths, github.url]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        for _ in range(4):
            running.append(subprocess.Popen(command, env=environment))
            running[-1].wait()
        sent = len(github.seen)
    codes = [process.returncode for process in running]
    return {
        "killed at requests": "/".join(map(str, moments)),
        "killed: exit codes": "/".join(map(str, codes)),
        "killed: requests in all": sent,
        "killed: store identical": "yes" if dump(folder / "killed") == whole else "NO",
    }


def faulty(world: World, folder: Path, whole: list[str], seed: int) -> dict[str, Any]:
    """Let a quarter of all requests fail in one of GitHub's ways; waits are counted and not sat out."""
    waited: list[float] = []
    with FakeGitHub(world, schedule=random_faults(seed, 0.25)) as github:
        config = CrawlConfig(folder / "list.txt", folder / "faulty", api_url=github.url)
        crawl_repos(config, sleep=waited.append)
        sent = len(github.seen)
    return {
        "a quarter fails: requests": sent,
        "a quarter fails: waits": len(waited),
        "a quarter fails: store identical": "yes" if dump(folder / "faulty") == whole else "NO",
    }


def dump(folder: Path) -> list[str]:
    """The content of a store."""
    with Store.open(folder / "crawl.sqlite", read_only=True) as store:
        return [repr(row) for table in (store.issues, store.comments, store.events) for row in table()]


def list_everything(world: World) -> int:
    """Page through all issues and all comments at 100 a page; returns the requests."""
    return _naive(world, lambda get, base, issues: get(f"{base}/issues/comments?per_page=100"))


def one_per_issue(world: World) -> int:
    """Page through all issues at 100 a page and ask for the comments of each; returns the requests."""

    def threads(get: Callable[[str], list[Any]], base: str, issues: list[Any]) -> None:
        for issue in issues:
            get(f"{base}/issues/{issue['number']}/comments?per_page=100")

    return _naive(world, threads)


def _naive(world: World, rest: Callable[[Callable[[str], list[Any]], str, list[Any]], object]) -> int:
    import requests

    with FakeGitHub(world, limit=10**9) as github, requests.Session() as session:

        def get(address: str) -> list[Any]:
            items: list[Any] = []
            following: str | None = address
            while following:
                answer = session.get(following)
                items += answer.json()
                following = answer.links.get("next", {}).get("url")
            return items

        for repo in world.repos.values():
            base = f"{github.url}/repos/{repo.full_name}"
            rest(get, base, get(f"{base}/issues?state=all&per_page=100"))
        return len(github.seen)


if __name__ == "__main__":
    main()
