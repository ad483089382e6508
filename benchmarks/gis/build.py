"""How right the links and labels of a build are, and how it scales. No network is used.

    python benchmarks/gis/build.py
    python benchmarks/gis/build.py --seeds 0 --events 20000000       (2 GB of temporary files)

Quality: worlds of 5 repositories x 2,000 numbers with known duplicates, served by the fake GitHub of tests/
and crawled. A tenth of the duplicates is left without any mark, as in life, and a tenth is marked and
taken back; neither may become a link. Half of the others are stated in ways that need more than words
(`shapes.py`). A link or a positive pair is right if the world made the one issue from the other,
directly or through others. A negative pair is wrong if it did, marked or not: those are the duplicates that
nobody marked.

Scale: event dumps, made on the fly: 3 % of the lines are about issues and 6 % about comments; half a percent
is of the repository wanted, and the others are a few compressed parts again and again. A process of its own
reads and builds; its peak memory is that of the whole process, with the largest of its processes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

_ABOVE = Path(__file__).resolve().parents
sys.path[:0] = [str(_ABOVE[1]), str(_ABOVE[2] / "tests")]

from common import options  # noqa: E402
from fake_github import FakeGitHub  # noqa: E402
from fake_github_payloads import archived  # noqa: E402
from fake_github_world import FakeIssue, FakeRepo, World, add_comment, make_world, stamp  # noqa: E402
from shapes import add_shapes  # noqa: E402

from angle_data.disjoint import DisjointSets  # noqa: E402
from angle_data.gis.build import build  # noqa: E402
from angle_data.gis.collect import crawl_repos  # noqa: E402
from angle_data.gis.crawl.archive import load_archives  # noqa: E402
from angle_data.gis.crawl.selection import GisConfig  # noqa: E402
from angle_data.gis.crawl.store import STORE_NAME, Store  # noqa: E402
from angle_data.gis.rehydrate import read_dataset  # noqa: E402
from angle_data.jsonl import read_jsonl  # noqa: E402

PART = 5_000  # lines of a part, of which five are in an hour
THREADS = 11  # that are wanted, in an hour
WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def main() -> None:
    """Run both parts and print the figures."""
    parser = options(__doc__)
    parser.add_argument("--repos", type=int, default=5)
    parser.add_argument("--issues", type=int, default=2_000, help="numbers per repository")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--events", type=int, default=2_000_000, help="lines of event dumps; 0: none")
    parser.add_argument("--dumps", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.dumps:
        print(json.dumps(time_build(given.dumps)))
        return
    found: dict[str, Any] = {}
    runs = [quality(seed, given.repos, given.issues) for seed in range(given.seeds)]
    for name in runs[0] if runs else ():
        values = [run[name] for run in runs]
        found[name] = [round(statistics.mean(values), 2), min(values), max(values)]
    if given.events:
        found |= scale(given.events)
    for name, value in found.items():
        shown = (
            f"{value[0]:>12,} ({value[1]:,} to {value[2]:,})" if isinstance(value, list) else f"{value:>12,}"
        )
        print(f"{name:<52} {shown}")


def quality(seed: int, repos: int, issues: int) -> dict[str, float]:
    """Build one world and compare with what is true; shares are in percent."""
    world = make_world(seed, repos=repos, issues=issues, comments=3.0)
    unmarked = add_shapes(world, seed)
    marked = world.links
    standing: DisjointSets[tuple[int, int]] = DisjointSets()
    every: DisjointSets[tuple[int, int]] = DisjointSets()
    for link in (*marked, *unmarked):
        every.join(*link.ends)
    for link in marked:
        standing.join(*link.ends)
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        crawl(world, out)
        started = time.perf_counter()
        summary = build.build_gis(GisConfig(out, seed=seed, cross_repo=True))
        seconds = time.perf_counter() - started
        links = {
            ends(world, row["duplicate"], row["canonical"])
            for _, row in read_jsonl(out / "audit/links.jsonl")
        }
        rows = [row for _, row in read_dataset(summary.dataset)]
    true: dict[frozenset[Any], str] = {frozenset(link.ends): link.how for link in marked}
    found = {frozenset(pair) for pair in links}
    ways = Counter(true.values())
    seen = Counter(how for pair, how in true.items() if pair in found)
    paired = {frozenset(ends(world, row["url1"], row["url2"])) for row in rows if row["label"]}
    right = sum(standing.leader(one) == standing.leader(other) for one, other in links)
    kinds: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for row in rows:
        one, other = ends(world, row["url1"], row["url2"])
        kinds[row["kind"]] += 1
        wrong[row["kind"]] += (every.leader(one) == every.leader(other)) != bool(row["label"])
    return {
        "marked duplicates": len(marked),
        "links: precision": percent(right, len(links)),
        "links: recall": percent(seen.total(), len(true)),
        **{f"links: recall, {how}": percent(seen[how], ways[how]) for how in sorted(ways)},
        "pairs": len(rows),
        "positive pairs: recall of the marked duplicates": percent(len(paired & set(true)), len(true)),
        **{f"{kind}: wrong labels": percent(wrong[kind], kinds[kind]) for kind in sorted(kinds)},
        **{
            f"words alone, duplicates and {kind}: AUC": area
            for kind, area in summary.report["lexical"].items()
        },
        "near-identical texts, issues, clusters in two splits": sum(summary.report["checks"].values()),
        "seconds of the build": round(seconds, 1),
    }


def crawl(world: World, out: Path) -> None:
    """Crawl the world into `out`."""
    os.environ["GITHUB_TOKEN"] = "made-up"
    (out / "list.txt").write_text("\n".join(repo.full_name for repo in world.repos.values()))
    with FakeGitHub(world) as github:
        crawl_repos(GisConfig(out, out / "list.txt", api_url=github.url))


def ends(world: World, url1: str, url2: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The issues of two addresses."""
    found = []
    for url in (url1, url2):
        owner, name, _, number = url.split("/")[-4:]
        repo = world.named(f"{owner}/{name}")
        assert repo is not None
        found.append((repo[0].id, int(number)))
    return found[0], found[1]


def percent(part: int, whole: int) -> float:
    """The share in percent."""
    return round(100 * part / whole, 2) if whole else 0.0


def scale(lines: int) -> dict[str, Any]:
    """Write dumps of about so many lines, and read and build them in another process."""
    with tempfile.TemporaryDirectory() as name:
        out, parts = Path(name), [noise(number) for number in range(6)]
        for hour in range(max(lines // (5 * PART), 1)):
            wanted = range(hour * THREADS + 1, (hour + 1) * THREADS + 1)
            here = packed(event for n in wanted for event in archived(thread(n), FakeRepo(1, "org/one")))
            others = b"".join(parts[(hour + place) % 6] for place in range(5))
            (out / f"{hour:06}.json.gz").write_bytes(others + here)
        size = round(sum(path.stat().st_size for path in out.iterdir()) / 1e6)
        command = [sys.executable, *sys.argv, "--dumps", str(out)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return {"dumps: megabytes": size, **json.loads(done.stdout)}


def noise(seed: int) -> bytes:
    """Events of other repositories, compressed: 3 % about issues, 6 % about comments."""
    rng, found = random.Random(f"noise {seed}"), []
    kinds = ["PushEvent"] * 60 + ["CreateEvent"] * 12 + ["WatchEvent"] * 9 + ["PullRequestEvent"] * 10
    while len(found) < PART:
        for _ in range(3):
            issue = thread(rng.randrange(10**6))
            found += islice(archived(issue, FakeRepo(rng.randrange(2, 10**6), "other/one")), 3)
        for kind in kinds:
            payload = {"text": " ".join(words(rng, 400 if kind == "PullRequestEvent" else 60))}
            repo = {"id": rng.randrange(2, 10**6), "name": "other/one"}
            found.append({"id": "1", "type": kind, "repo": repo, "payload": payload, "created_at": "2024"})
    return packed(found)


def packed(found: Iterable[dict[str, Any]]) -> bytes:
    """Events as compressed lines; gzip takes several of these one after the other."""
    return gzip.compress("".join(json.dumps(event) + "\n" for event in found).encode())


def thread(number: int) -> FakeIssue:
    """An issue of about 150 words and ten comments of about 30; an eighth ends as a duplicate."""
    rng, at = random.Random(number), stamp(number * 3_600.0)
    duplicate = number > 100 and rng.random() < 0.125
    original = rng.randrange(1, number) if duplicate else number
    topic = random.Random(f"topic {original}")
    text = " ".join((*words(topic, 60), *words(rng, 60)))
    code = "\n".join(f"  at {' '.join(words(rng, 3))}:{rng.randrange(999)}" for _ in range(10))
    body = f"### What happened\n{text}\n\n### Version\n_No response_\n\n```\n{code}\n```\n"
    issue = FakeIssue(number, number, " ".join(words(topic, 7)), body, "reporter", "NONE", at, at)
    for index in range(10):
        remark = " ".join(words(rng, 30))
        if duplicate and index == 5:
            remark = f"Thanks. Closing as a duplicate of #{original}."
        elif rng.random() < 0.1:
            remark += f" See #{rng.randrange(1, number + 1)}."
        elif rng.random() < 0.01:
            remark = f"This is not a duplicate of #{rng.randrange(1, number + 1)}."
        add_comment(issue, number * 10 + index, f"u{index}", "NONE" if index % 5 else "MEMBER", remark, at)
    return issue


def words(rng: random.Random, count: int) -> Iterator[str]:
    """Made-up words, few of them frequent."""
    return (f"w{int(rng.paretovariate(0.7)):x}" for _ in range(count))


def time_build(out: Path) -> dict[str, Any]:
    """Read dumps and build, and look at the clock and the memory; runs in a process of its own."""

    def read() -> dict[str, Any]:
        with Store.open(out / STORE_NAME) as store:
            return load_archives(store, [out], ["org/one"])

    def make() -> dict[str, Any]:
        report = build.build_gis(GisConfig(out)).report
        pairs = sum(split["pairs"] for split in report["splits"].values())
        return {**report["store"], "statements": report["links"]["statements"], "pairs": pairs}

    found: dict[str, Any] = {}
    for name, step in (("dumps", read), ("build", make)):
        began, used = time.perf_counter(), sum(os.times()[:4])
        counts = step()
        counts["seconds"] = round(time.perf_counter() - began, 1)
        counts["processor seconds"] = round(sum(os.times()[:4]) - used, 1)
        counts["peak megabytes"] = sum(resource.getrusage(who).ru_maxrss for who in WHO) // 1024
        found |= {f"{name}: {key}": value for key, value in counts.items()}
    return found


if __name__ == "__main__":
    main()
