"""How right the links and labels of a build are, and how it scales. No network is used.

    python benchmarks/gis/build.py
    python benchmarks/gis/build.py --seeds 0 --events 20000000       (2 GB of temporary files)

Quality: worlds of 5 repositories x 2,000 numbers with known duplicates, served by the fake GitHub of tests/
and crawled. A tenth of the duplicates is left without any mark, as in life, and a twentieth is marked and
taken back; neither may become a link. Two fifths of the others are stated in ways that need more than words
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

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fake_gis_store import make_comment, make_issue  # noqa: E402
from fake_github import FakeGitHub  # noqa: E402
from fake_github_world import FakeEvent, TrueLink, World, add_comment, make_world, stamp  # noqa: E402
from shapes import add_shapes  # noqa: E402

from angle_data.disjoint import DisjointSets  # noqa: E402
from angle_data.gis.build import build  # noqa: E402
from angle_data.gis.build.dataset import read_dataset  # noqa: E402
from angle_data.gis.crawl.archive import load_archives  # noqa: E402
from angle_data.gis.crawl.crawl import CrawlConfig, crawl_repos  # noqa: E402
from angle_data.gis.crawl.store import STORE_NAME, Store  # noqa: E402
from angle_data.jsonl import read_jsonl  # noqa: E402

UNMARKED, TAKEN_BACK = 0.1, 0.05
PART, THREADS = (
    5_000,
    11,
)  # lines of a part, of which five are in an hour; threads that are wanted, in an hour
WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def main() -> None:
    """Run both parts and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repos", type=int, default=5)
    parser.add_argument("--issues", type=int, default=2_000, help="numbers per repository")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--events", type=int, default=2_000_000, help="lines of event dumps; 0: none")
    parser.add_argument("--dumps", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dumps:
        print(json.dumps(time_build(options.dumps)))
        return
    found: dict[str, Any] = {}
    runs = [quality(seed, options.repos, options.issues) for seed in range(options.seeds)]
    for name in runs[0] if runs else ():
        values = [run[name] for run in runs]
        found[name] = [round(statistics.mean(values), 2), min(values), max(values)]
    if options.events:
        found |= scale(options.events)
    for name, value in found.items():
        shown = (
            f"{value[0]:>12,} ({value[1]:,} to {value[2]:,})" if isinstance(value, list) else f"{value:>12,}"
        )
        print(f"{name:<52} {shown}")


def quality(seed: int, repos: int, issues: int) -> dict[str, float]:
    """Build one world and compare with what is true; shares are in percent."""
    world = make_world(seed, repos=repos, issues=issues, comments=3.0)
    unmarked = disturb(world, seed)
    add_shapes(world, seed)
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
        summary = build.build_gis(build.BuildConfig(out, seed=seed, cross_repo=True))
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
            f"words alone, duplicates and {kind}: AUC": areas["rare"]
            for kind, areas in summary.report["lexical"].items()
        },
        "near-identical texts, issues, clusters in two splits": sum(summary.report["checks"].values()),
        "seconds of the build": round(seconds, 1),
    }


def crawl(world: World, out: Path) -> None:
    """Crawl the world into `out`."""
    os.environ["GITHUB_TOKEN"] = "made-up"
    (out / "list.txt").write_text("\n".join(repo.full_name for repo in world.repos.values()))
    with FakeGitHub(world) as github:
        crawl_repos(CrawlConfig(out / "list.txt", out, api_url=github.url))


def disturb(world: World, seed: int) -> list[TrueLink]:
    """Take the marks of some duplicates away, or let their writers take them back.

    `World.links` are the others then; returns the duplicates that nobody marks.
    """
    rng = random.Random(f"disturb {seed}")
    kept, unmarked = [], []
    for link in world.links:
        issue = world.repos[link.repo_id].issues[link.duplicate]
        chance, login = rng.random(), issue.closed_by or "maintainer"
        if chance < UNMARKED:
            issue.comments = [comment for comment in issue.comments if comment.author != login]
            for end in (issue, world.repos[link.repo_id].issues[link.canonical]):
                end.events = [
                    event for event in end.events if event.duplicate != (link.repo_id, issue.number)
                ]
            issue.state_reason = "completed"
            issue.labels = [label for label in issue.labels if label != "duplicate"]
            unmarked.append(link)
        elif chance < UNMARKED + TAKEN_BACK:
            later = stamp(10_000 * 3_600.0)
            here, there = (link.repo_id, link.duplicate), (link.repo_id, link.canonical)
            add_comment(issue, -issue.id, login, "MEMBER", "Sorry, not a dup after all.", later)
            mark = FakeEvent(f"U_{issue.id}", "UnmarkedAsDuplicateEvent", login, later, here, there)
            issue.events += [mark] if link.how != "comment" else []
        else:
            kept.append(link)
    world.links[:] = kept
    return unmarked


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
            wanted = (thread(number) for number in range(hour * THREADS + 1, (hour + 1) * THREADS + 1))
            here = packed(event for found in wanted for event in events(*found, {"id": 1, "name": "org/one"}))
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
            issue, said = thread(rng.randrange(10**6))
            found += islice(events(issue, said, {"id": rng.randrange(2, 10**6), "name": "other/one"}), 3)
        for kind in kinds:
            payload = {"text": " ".join(words(rng, 400 if kind == "PullRequestEvent" else 60))}
            repo = {"id": rng.randrange(2, 10**6), "name": "other/one"}
            found.append({"id": "1", "type": kind, "repo": repo, "payload": payload, "created_at": "2024"})
    return packed(found)


def packed(found: Iterable[dict[str, Any]]) -> bytes:
    """Events as compressed lines; gzip takes several of these one after the other."""
    return gzip.compress("".join(json.dumps(event) + "\n" for event in found).encode())


def events(issue: Any, said: list[Any], repo: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of GH Archive of a thread."""
    page = f"https://github.com/org/one/issues/{issue.number}"
    times = {"created_at": issue.created_at, "updated_at": issue.updated_at, "closed_at": None}
    raw = {
        "id": issue.id, "node_id": issue.node_id, "number": issue.number, "title": issue.title,
        "body": issue.body, "state": "open", "labels": [], "user": {"login": issue.author},
        "author_association": "NONE", "html_url": page, "locked": False, **times,
    }  # fmt: skip
    common = {"repo": repo, "actor": {"login": "ann"}, "created_at": issue.created_at}
    yield {
        **common, "id": str(issue.id), "type": "IssuesEvent", "payload": {"action": "opened", "issue": raw},
    }  # fmt: skip
    for one in said:
        comment = {
            "id": one.id, "user": {"login": one.author}, "author_association": one.author_association,
            "body": one.body, "created_at": one.created_at, "updated_at": one.updated_at, "html_url": one.url,
            "issue_url": f"https://api.github.com/repos/org/one/issues/{one.number}",
        }  # fmt: skip
        payload = {"action": "created", "issue": raw, "comment": comment}
        yield {**common, "id": f"c{one.id}", "type": "IssueCommentEvent", "payload": payload}


def thread(number: int) -> tuple[Any, list[Any]]:
    """An issue of about 150 words and ten comments of about 30; an eighth ends as a duplicate."""
    rng = random.Random(number)
    duplicate = number > 100 and rng.random() < 0.125
    original = rng.randrange(1, number) if duplicate else number
    topic = random.Random(f"topic {original if duplicate else number}")
    text = " ".join((*words(topic, 60), *words(rng, 60)))
    code = "\n".join(f"  at {' '.join(words(rng, 3))}:{rng.randrange(999)}" for _ in range(10))
    body = f"### What happened\n{text}\n\n### Version\n_No response_\n\n```\n{code}\n```\n"
    issue = make_issue(number, " ".join(words(topic, 7)), body)
    said = []
    for index in range(10):
        remark = " ".join(words(rng, 30))
        if duplicate and index == 5:
            remark = f"Thanks. Closing as a duplicate of #{original}."
        elif rng.random() < 0.1:
            remark += f" See #{rng.randrange(1, number + 1)}."
        elif rng.random() < 0.01:
            remark = f"This is not a duplicate of #{rng.randrange(1, number + 1)}."
        role = "MEMBER" if index % 5 == 0 else "NONE"
        said.append(make_comment(number * 10 + index, number, remark, number, author=f"u{index}", role=role))
    return issue, said


def words(rng: random.Random, count: int) -> Iterator[str]:
    """Made-up words, few of them frequent."""
    return (f"w{int(rng.paretovariate(0.7)):x}" for _ in range(count))


def time_build(out: Path) -> dict[str, Any]:
    """Read dumps and build, and look at the clock and the memory; runs in a process of its own."""

    def read() -> dict[str, Any]:
        with Store.open(out / STORE_NAME) as store:
            return load_archives(store, [out], ["org/one"])

    def make() -> dict[str, Any]:
        report = build.build_gis(build.BuildConfig(out)).report
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
