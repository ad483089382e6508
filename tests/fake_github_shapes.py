"""The many ways in which a duplicate is stated, or seems to be, in a made-up world; for tests only.

`add_shapes` rewrites some true links of a world, so that `TrueLink.how` names the shape by which they can be
found, takes others back, and adds statements that tie nothing.
"""

import random
from dataclasses import replace

from fake_github_world import FakeEvent, FakeIssue, FakeRepo, TrueLink, World, add_comment, stamp

SHAPES = ("body", "label", "guess", "bot", "former", "moved")
"""How a link is stated, beside the plain ways of `make_world`."""

BODIES = (
    "EDIT: this is a duplicate of #{n}",
    "**Update:** Duplicate of #{n}, closing.",
    "Edit: just found #{n}, this one is a duplicate of it.",
)
LABELLED = ("#{n}", "See #{n}.", "https://github.com/{repo}/issues/{n}", "-> #{n}", "Thanks! #{n}")
GUESSES = ("Dup of #{n}?", "Is this a duplicate of #{n}?", "Could this be a duplicate of #{n}?")
YES = ("Yes.", "Yes, it is. Closing.", "Indeed, thanks!", "yep", "Correct, same thing.")
NO = ("No.", "No, that one is about another platform.", "Yes, I saw that one, but it is a different problem.")
BOT = (
    "This issue has been automatically closed as a duplicate of #{n}.",
    "Closing this issue as a duplicate of #{n}. If this is wrong, please reopen it.",
)
FORMER = ("Duplicate of {former}#{n}", "Closing as a duplicate of https://github.com/{former}/issues/{n}")
STILL = "#{n} is fixed and this still happens with the latest release, so it is something else."
TRAPS = (
    "I have seen #{n}, which is not a duplicate.",
    "Is this a duplicate of #{n}?",
    "Similar to #{n}, but with another error.",
    "> Duplicate of #{n}\n\nwas said of my last report, wrongly.",
    "- [x] I have searched, and this is no duplicate of #{n}",
    "Found while looking at #{n}.",
)
_LATER = 9_000 * 3_600.0


def add_shapes(
    world: World, seed: int = 0, *, share: float = 0.4, withdrawn: float = 0.06, traps: float = 0.05
) -> None:
    """Give a `share` of the true links one of `SHAPES`, take `withdrawn` back, and set `traps`."""
    for repo in world.repos.values():
        repo.former = (*repo.former, f"old/{repo.full_name.split('/')[1]}")
    kept: list[TrueLink] = []
    for link in world.links:
        shaper = _Shaper(world, link, random.Random(f"{seed} {link.repo_id} {link.duplicate}"))
        chance = shaper.rng.random()
        if chance < withdrawn:
            shaper.withdraw()
        elif chance < withdrawn + share:
            kept.append(shaper.rewrite())
        else:
            kept.append(link)
    world.links[:] = kept
    ends = {(link.repo_id, n) for link in kept for n in (link.duplicate, link.canonical)}
    for repo in world.repos.values():
        rng = random.Random(f"{seed} traps {repo.id}")
        for issue in list(repo.issues.values()):
            if (repo.id, issue.number) not in ends and not issue.is_pull and rng.random() < traps:
                _trap(issue, rng)
    world.touch()


def _trap(issue: FakeIssue, rng: random.Random) -> None:
    """Something that looks like a duplicate's statement and is none."""
    other = rng.randrange(1, issue.number + 1)
    kind, at = rng.choice(("body", "guess", "label")), stamp(_LATER)
    if kind == "body":
        issue.body = f"{issue.body or ''}\n\n{rng.choice(TRAPS).format(n=other)}"
    elif kind == "guess":
        add_comment(issue, issue.id * 7 + 1, "user1", "NONE", rng.choice(GUESSES).format(n=other), at)
        add_comment(issue, issue.id * 7 + 2, "maintainer", "MEMBER", rng.choice(NO), stamp(_LATER + 60))
    else:
        # Some duplicate, nobody says of what; the number is about something else.
        issue.labels = [*issue.labels, "duplicate"]
        add_comment(
            issue, issue.id * 7 + 2, "maintainer", "MEMBER", f"The fix of this one broke #{other}.", at
        )


class _Shaper:
    """One duplicate, whose mark is taken away or written in another way."""

    def __init__(self, world: World, link: TrueLink, rng: random.Random) -> None:
        self.world, self.link, self.rng = world, link, rng
        self.repo: FakeRepo = world.repos[link.repo_id]
        self.issue = self.repo.issues[link.duplicate]
        self.writer = self.issue.closed_by or "maintainer"

    def say(self, body: str, seconds: float, login: str | None, role: str) -> None:
        self.issue.comments.sort(key=lambda comment: comment.created_at)
        id = self.issue.id * 7 + int(seconds) % 10_000_000
        text = body.format(n=self.link.canonical, repo=self.repo.full_name, former=self.repo.former[-1])
        add_comment(self.issue, id, login, role, text, stamp(_LATER + seconds))

    def happen(self, kind: str, login: str, seconds: float) -> None:
        at = stamp(_LATER + seconds)
        self.issue.events.append(FakeEvent(f"S_{self.issue.id}_{int(seconds)}", kind, login, at))
        self.issue.updated_at = max(self.issue.updated_at, at)

    def close(self, login: str, seconds: float, reason: str) -> None:
        self.happen("ClosedEvent", login, seconds)
        at = self.issue.events[-1].created_at
        self.issue.state, self.issue.state_reason = "closed", reason
        self.issue.closed_by, self.issue.closed_at = login, at

    def wipe(self) -> None:
        """Take every trace of the mark away."""
        here = (self.repo.id, self.issue.number)
        self.issue.comments = [c for c in self.issue.comments if c.author != self.writer]
        for end in (self.issue, self.repo.issues[self.link.canonical]):
            end.events = [event for event in end.events if event.duplicate != here]
        self.issue.events = [event for event in self.issue.events if event.type != "ClosedEvent"]
        self.issue.labels = [label for label in self.issue.labels if label != "duplicate"]
        self.issue.state_reason = "completed"

    def withdraw(self) -> None:
        """Reopened and solved for itself, or said to go on after the other was solved."""
        if self.rng.random() < 0.5:
            self.happen("ReopenedEvent", "maintainer", 0)
            self.close("maintainer", 90_000, "completed")
            self.issue.labels = [label for label in self.issue.labels if label != "duplicate"]
        else:
            self.say(STILL, 0, "maintainer", "MEMBER")
            self.issue.events = [event for event in self.issue.events if event.duplicate is None]

    def rewrite(self) -> TrueLink:
        shape = self.rng.choice(SHAPES)
        if shape in ("guess", "body") and (self.issue.author or "x[bot]").endswith("[bot]"):
            shape = "former"
        self.wipe()
        getattr(self, f"_{shape}")()
        return replace(self.link, how=shape)

    def _body(self) -> None:
        text = self.rng.choice(BODIES).format(n=self.link.canonical)
        self.issue.body = f"{self.issue.body or ''}\n\n{text}"
        self.close(self.issue.author or "maintainer", 0, "completed")

    def _label(self) -> None:
        self.issue.labels.append("duplicate")
        self.say(self.rng.choice(LABELLED), 0, "maintainer", "MEMBER")
        self.close("maintainer", 5, "not_planned")

    def _guess(self) -> None:
        self.say(self.rng.choice(GUESSES), 0, "user1", "NONE")
        login, role = self.rng.choice(((self.issue.author, "NONE"), ("maintainer", "MEMBER")))
        self.say(self.rng.choice(YES), 7_200, login, role)
        self.close(login or "maintainer", 7_210, "completed")

    def _bot(self) -> None:
        self.say(self.rng.choice(BOT), 0, "triage[bot]", "NONE")
        self.close("triage[bot]", 2, "completed")

    def _former(self) -> None:
        self.say(self.rng.choice(FORMER), 0, "maintainer", "MEMBER")
        self.close("maintainer", 5, "completed")

    def _moved(self) -> None:
        """The original came from another repository, and is called by its number there."""
        others = [repo for repo in self.world.repos.values() if repo is not self.repo]
        there = self.rng.choice(others or [self.repo])
        free = [n for n, issue in there.issues.items() if issue.is_pull and n < len(there.issues) - 50]
        if there is self.repo or not free:
            return self._former()
        number = self.rng.choice(free)
        del there.issues[number]
        there.moved[number] = (self.repo.id, self.link.canonical)
        self.say(f"Duplicate of {there.full_name}#{number}", 0, "maintainer", "MEMBER")
        self.close("maintainer", 5, "completed")
        return None
