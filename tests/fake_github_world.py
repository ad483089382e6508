"""A made-up world of repositories, issues, comments and events with known duplicates; for tests only.

`make_world` grows it from a seed; `World.links` are the duplicates a maintainer really marked, whatever way.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)

SUBJECTS = (
    """
dark theme, file watcher, login dialog, search index, unit runner, package cache, map renderer,
tooltip, undo history, clipboard, settings page, network proxy, shader compiler, date picker,
connection pool, migration tool, type checker, source map, image decoder, plugin loader, spell
checker, task queue, symlink handling, token refresh, scroll bar, error page, video export, audio
mixer, csv importer, print preview, keyboard shortcut, schema validator, auto completion, backup
job, session store, font fallback, drag and drop, status bar, retry logic, build script
""".replace("\n", " ")
    .strip()
    .split(", ")
)
SYMPTOMS = (
    ("crashes", "aborts with a segmentation fault", "dies with SIGSEGV"),
    ("freezes", "hangs for minutes", "stops responding"),
    ("leaks memory", "grows until the machine swaps", "never frees its buffers"),
    ("shows the wrong value", "prints a stale number", "displays outdated data"),
    ("is very slow", "takes forever", "has become painfully sluggish"),
    ("ignores the setting", "does not respect the option", "forgets its configuration"),
    ("loses data", "silently drops the last record", "truncates the output"),
    ("cannot be opened", "fails to start", "refuses to launch"),
    ("duplicates every entry", "lists each item twice", "repeats all rows"),
    ("prints garbage", "mixes up the encoding", "turns umlauts into question marks"),
)  # fmt: skip
CONTEXTS = (
    ("on Windows", "under Windows 11", "with a Windows host"),
    ("on macOS", "on a MacBook with Ventura", "under OS X"),
    ("on Linux with Wayland", "in a Wayland session", "with the Wayland compositor"),
    ("in a Docker container", "when run inside Docker", "in a container image"),
    ("behind a proxy", "when the traffic goes through a proxy", "in our company network"),
    ("with large files", "when a file is bigger than 2 GB", "for huge inputs"),
    ("after an upgrade", "since the last release", "after updating yesterday"),
    ("when offline", "without a network connection", "with the cable unplugged"),
    ("with two monitors", "on a second screen", "in a dual-head setup"),
    ("in the nightly build", "with yesterday's nightly", "on the main branch"),
    ("over SSH", "in a remote session", "when connected with ssh"),
    ("with a non-English locale", "in a German locale", "when LANG is not English"),
)  # fmt: skip
MARKERS = (
    "Duplicate of #{n}", "Closing as a duplicate of #{n}.", "Thanks for the report! Closing as dup of #{n}.",
    "Closing in favor of #{n}.", "This is already tracked in #{n}, closing.", "/duplicate of #{n}",
    "This is a duplicate of https://github.com/{repo}/issues/{n}", "dup of #{n}",
    "Closing this as a duplicate of {repo}#{n}. Please follow that one.",
)  # fmt: skip
CHATTER = (
    "I can confirm this on my machine.", "Could you attach a log, please?", "+1",
    "Works for me with the latest build.", "Not a duplicate of #{n}: that one is about something else.",
    "Could this be related to #{n}?", "> Duplicate of #{n}\n\nI do not think that is right.", "Any news?",
    "A minimal example:\n```\nrun --all\n```", "I have bisected it to the commit of last Tuesday.",
)  # fmt: skip
ROLES = {"maintainer": "MEMBER", "owner": "OWNER", "helper": "COLLABORATOR", "triager": "CONTRIBUTOR"}


@dataclass
class FakeComment:
    """One comment; `author` None is a deleted account. GraphQL counts one not `shown` too."""

    id: int
    number: int
    author: str | None
    association: str
    body: str
    created_at: str
    updated_at: str
    minimized: str | None = None
    shown: bool = True


@dataclass
class FakeEvent:
    """One timeline event; `type` is its GraphQL type, ends are (repository id, number)."""

    id: str
    type: str
    actor: str | None
    created_at: str
    duplicate: tuple[int, int] | None = None
    canonical: tuple[int, int] | None = None


@dataclass
class FakeIssue:
    """One issue or pull request; GraphQL times out on the events of one that is `heavy`.

    One that is `withheld` is listed there without its contents, for the token may not see it.
    """

    id: int
    number: int
    title: str
    body: str | None
    author: str | None
    association: str
    created_at: str
    updated_at: str
    state: str = "open"
    state_reason: str | None = None
    labels: list[str] = field(default_factory=list)
    is_pull: bool = False
    closed_at: str | None = None
    closed_by: str | None = None
    locked: bool = False
    heavy: bool = False
    withheld: bool = False
    comments: list[FakeComment] = field(default_factory=list)
    events: list[FakeEvent] = field(default_factory=list)


@dataclass
class FakeRepo:
    """One repository.

    `refuse` is a status that every request gets, `hidden` maps single numbers to theirs; `moved` maps
    transferred numbers.
    """

    id: int
    full_name: str
    former: tuple[str, ...] = ()
    has_issues: bool = True
    refuse: int | None = None
    issues: dict[int, FakeIssue] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    hidden: dict[int, int] = field(default_factory=dict)
    moved: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrueLink:
    """A duplicate that was marked: `how` is event, comment or both; 0 is the duplicate's own repository."""

    repo_id: int
    duplicate: int
    canonical: int
    how: str
    canonical_repo: int = 0

    @property
    def ends(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self.repo_id, self.duplicate), (self.canonical_repo or self.repo_id, self.canonical)


@dataclass
class World:
    """All repositories by id. Call `touch` after a change, so that the server's listings follow."""

    repos: dict[int, FakeRepo]
    links: list[TrueLink] = field(default_factory=list)
    version: int = 0

    def touch(self) -> None:
        self.version += 1

    def named(self, name: str) -> tuple[FakeRepo, bool] | None:
        """The repository of this name and whether the name is a former one."""
        now = {repo.full_name.lower(): (repo, False) for repo in self.repos.values()}
        former = {old.lower(): (repo, True) for repo in self.repos.values() for old in repo.former}
        return now.get(name.lower()) or former.get(name.lower())


def stamp(seconds: float) -> str:
    """The time so many seconds after the world's beginning."""
    return (EPOCH + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_world(
    seed: int = 0, *, repos: int = 2, issues: int = 60, duplicates: float = 0.15, comments: float = 2.0
) -> World:
    """Grow a world: `issues` numbers a repository, a share `duplicates`, `comments` each on average."""
    world = World({})
    for index in range(repos):
        rng = random.Random(f"{seed}-{index}")
        repo = FakeRepo(1_000 + index, f"org{index}/project{index}")
        world.repos[repo.id] = repo
        _Grower(world, repo, rng).grow(issues, duplicates, comments)
    return world


class _Grower:
    """Fills one repository; ids grow with time, as GitHub's do."""

    def __init__(self, world: World, repo: FakeRepo, rng: random.Random) -> None:
        self._world, self._repo, self._rng = world, repo, rng
        self._id = repo.id * 10_000_000
        self._problems: dict[int, tuple[str, int, int]] = {}

    def grow(self, issues: int, duplicates: float, comments: float) -> None:
        rng, repo = self._rng, self._repo
        for number in range(1, issues + 1):
            when = number * 3_600.0
            plain = [n for n in self._problems if n in repo.issues and not repo.issues[n].is_pull]
            if rng.random() < duplicates and plain:
                # A few originals attract many duplicates, as they do in life.
                original = plain[0] if rng.random() < 0.15 else rng.choice(plain)
                issue = self._issue(number, when, self._problems[original])
                self._mark(issue, original, when + rng.randrange(600, 200_000))
            else:
                subject, symptom = rng.choice(SUBJECTS), rng.randrange(len(SYMPTOMS))
                problem = (subject, symptom, rng.randrange(len(CONTEXTS)))
                issue = self._issue(number, when, problem)
                issue.is_pull = rng.random() < 0.2
                if not issue.is_pull:
                    self._problems[number] = problem
            for _ in range(int(rng.expovariate(1 / comments)) if comments else 0):
                self._chat(issue, when + rng.randrange(60, 400_000))

    def _next_id(self) -> int:
        self._id += 1
        return self._id

    def _issue(self, number: int, when: float, problem: tuple[str, int, int]) -> FakeIssue:
        rng = self._rng
        subject, symptom, context = problem
        does, where = rng.choice(SYMPTOMS[symptom]), rng.choice(CONTEXTS[context])
        forms = ("{s} {d} {w}", "{w}: {s} {d}", "[Bug] {s} {d} {w}")
        title = rng.choice(forms).format(s=subject, d=does, w=where)
        body: str | None = (
            f"### What happened\nThe {subject} {rng.choice(SYMPTOMS[symptom])} "
            f"{rng.choice(CONTEXTS[context])}.\n\n### Steps\n"
            f"1. Start version {rng.randrange(1, 9)}.{rng.randrange(20)}.\n2. Use the {subject}.\n\n"
            f"```\nError 0x{rng.getrandbits(32):08x} at line {rng.randrange(9_999)}\n```\n"
        )
        if rng.random() < 0.03:
            body = None
        author = rng.choice([None, "dependabot[bot]", *(f"user{rng.randrange(400)}" for _ in range(18))])
        at = stamp(when)
        issue = FakeIssue(self._next_id(), number, title, body, author, "NONE", at, at)
        issue.labels = rng.sample(("bug", "question", "needs info", "performance"), rng.randrange(3))
        self._repo.issues[number] = issue
        return issue

    def _mark(self, issue: FakeIssue, original: int, when: float) -> None:
        rng, at = self._rng, stamp(when)
        login, role = rng.choice(tuple(ROLES.items()))
        how = rng.choice(("event", "comment", "both"))
        if how != "event":
            body = rng.choice(MARKERS).format(n=original, repo=self._repo.full_name)
            add_comment(issue, self._next_id(), login, role, body, at)
        if how != "comment":
            ends = {"duplicate": (self._repo.id, issue.number), "canonical": (self._repo.id, original)}
            mark = FakeEvent(f"E_{self._next_id()}", "MarkedAsDuplicateEvent", login, at, **ends)
            # The mark stands in both timelines.
            issue.events.append(mark)
            self._repo.issues[original].events.append(mark)
        issue.events.append(FakeEvent(f"E_{self._next_id()}", "ClosedEvent", login, at))
        issue.updated_at = max(issue.updated_at, at)
        issue.state, issue.closed_at, issue.closed_by = "closed", at, login
        issue.state_reason = rng.choice(("duplicate", "not_planned", "completed"))
        if rng.random() < 0.3:
            issue.labels.append("duplicate")
        self._world.links.append(TrueLink(self._repo.id, issue.number, original, how))

    def _chat(self, issue: FakeIssue, when: float) -> None:
        rng = self._rng
        author = rng.choice([None, issue.author, f"user{rng.randrange(400)}"])
        other = rng.randrange(1, issue.number + 1)
        add_comment(issue, self._next_id(), author, "NONE", rng.choice(CHATTER).format(n=other), stamp(when))


def add_comment(issue: FakeIssue, id: int, author: str | None, role: str, body: str, at: str) -> FakeComment:
    """Write a comment, which counts as an update of its issue."""
    comment = FakeComment(id, issue.number, author, role, body, at, at)
    issue.comments.append(comment)
    issue.updated_at = max(issue.updated_at, at)
    return comment


def all_comments(repo: FakeRepo) -> Iterable[FakeComment]:
    """Every comment of the repository."""
    return (comment for issue in repo.issues.values() for comment in issue.comments)
