"""What a crawl costs: requests per positive pair. No network is used.

    python benchmarks/gis/crawl.py                      (5 repositories x 2,000 numbers, about two minutes)
    python benchmarks/gis/crawl.py --issues 200

The world is made up and served by the fake GitHub of tests/ over loopback. The yardstick reads the same world
the plain way: `list everything` pages through all issues and all comments. Positive pairs are duplicates
that a maintainer marked and that the requests made visible: by a comment, and for the crawl also by
GitHub's own mark. Wall times are
the fake's, not GitHub's.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_ABOVE = Path(__file__).resolve().parents
sys.path[:0] = [str(_ABOVE[1]), str(_ABOVE[2] / "tests")]

from common import options  # noqa: E402
from fake_github import FakeGitHub  # noqa: E402
from fake_github_world import World, all_comments, make_world  # noqa: E402
from shapes import add_shapes  # noqa: E402

from angle_data.gis.collect import crawl_repos  # noqa: E402
from angle_data.gis.crawl.forecast import forecast  # noqa: E402
from angle_data.gis.crawl.selection import GisConfig  # noqa: E402


def main() -> None:
    """Run all parts and print the figures."""
    parser = options(__doc__)
    parser.add_argument("--repos", type=int, default=5)
    parser.add_argument("--issues", type=int, default=2_000, help="numbers per repository")
    given = parser.parse_args()
    os.environ["GITHUB_TOKEN"] = "made-up"
    world = make_world(0, repos=given.repos, issues=given.issues, comments=4.0)
    add_shapes(world, 0)
    with tempfile.TemporaryDirectory() as folder:
        for name, value in measure(world, Path(folder)).items():
            print(f"{name:<52} {value:>12,}")


def measure(world: World, folder: Path) -> dict[str, float]:
    """Return the figures by name."""
    names = [repo.full_name for repo in world.repos.values()]
    (folder / "list.txt").write_text("\n".join(names))
    marked = {
        "both": len(world.links),
        "events": sum(link.how != "comment" for link in world.links),
        "comments": sum(link.how != "event" for link in world.links),
    }
    found: dict[str, float] = {
        "repositories": len(names),
        "numbers": sum(len(repo.issues) for repo in world.repos.values()),
        "comments": sum(len(list(all_comments(repo))) for repo in world.repos.values()),
        "marked duplicates": marked["both"],
        "marked by a comment": marked["comments"],
    }
    for strategy, visible in marked.items():
        expected, requests, seconds = crawl(world, folder, strategy)
        found[f"{strategy}: requests"] = requests
        found[f"{strategy}: requests by --dry-run"] = expected
        found[f"{strategy}: requests per 1,000 pairs"] = round(1_000 * requests / visible, 1)
        found[f"{strategy}: seconds"] = round(seconds, 1)
    found["both, run again: requests"] = crawl(world, folder, "both")[1]
    found["list everything: requests"] = requests = list_everything(world)
    found["list everything: requests per 1,000 pairs"] = round(1_000 * requests / marked["comments"], 1)
    return found


def crawl(world: World, folder: Path, strategy: Any) -> tuple[int, int, float]:
    """Crawl into `folder/strategy`; returns the requests: estimated, arrived; the seconds."""
    with FakeGitHub(world) as github:
        config = GisConfig(folder / strategy, folder / "list.txt", strategy, api_url=github.url)
        plan = forecast(config)
        github.seen.clear()
        started = time.perf_counter()
        crawl_repos(config)
        return plan["requests"], len(github.seen), time.perf_counter() - started


def list_everything(world: World) -> int:
    """Page through all issues and all comments at 100 a page; returns the requests."""
    import requests

    with FakeGitHub(world, limit=10**9) as github, requests.Session() as session:
        for repo in world.repos.values():
            for listing in ("issues?state=all&", "issues/comments?"):
                following: str | None = f"{github.url}/repos/{repo.full_name}/{listing}per_page=100"
                while following:
                    following = session.get(following).links.get("next", {}).get("url")
        return len(github.seen)


if __name__ == "__main__":
    main()
