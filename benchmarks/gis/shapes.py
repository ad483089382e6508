"""The many ways in which a duplicate is stated, or seems to be, in a made-up world of tests/.

`add_shapes` rewrites some true links of a world, so that `TrueLink.how` names the shape by which they can be
found, takes others back or away, and adds statements that tie nothing.
"""

import random
import re
from dataclasses import replace

from fake_github_world import FakeEvent, FakeIssue, FakeRepo, TrueLink, World, add_comment, stamp

SHAPES = ("body", "label", "guess", "bot", "former", "moved")
"""How a link is stated, beside the plain ways of `make_world`."""

ACROSS = ("comment", "event", "reverse", *SHAPES)
"""How a link between two repositories is stated."""

PLAIN = ("Duplicate of #{n}", "Closing in favor of #{n}.", "Tracked in #{n} already, closing as duplicate.")
REVERSE = ("{here} is a duplicate of this one.", "Marked {here} as a duplicate of this issue.")

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
_SHAPED, _WITHDRAWN, _UNMARKED = 0.4, 0.1, 0.1  # of the true links
_TRAPS, _ACROSS = 0.05, 0.06  # of the other issues


def add_shapes(world: World, seed: int = 0) -> list[TrueLink]:
    """Give shares of the true links one of `SHAPES`, take them back or leave them unmarked, and set traps.

    Some of the other issues become duplicates of issues in other repositories. `World.links` are the marked
    ones then; returns the duplicates that nobody marks.
    """
    for repo in world.repos.values():
        repo.former = (*repo.former, f"old/{repo.full_name.split('/')[1]}")
    kept: list[TrueLink] = []
    unmarked: list[TrueLink] = []
    for link in world.links:
        shaper = _Shaper(world, link, random.Random(f"{seed} {link.repo_id} {link.duplicate}"))
        chance = shaper.rng.random()
        if chance < _WITHDRAWN:
            shaper.withdraw()
        elif chance < _WITHDRAWN + _UNMARKED:
            shaper.wipe()
            shaper.close("maintainer", 0, "completed")
            unmarked.append(link)
        else:
            kept.append(shaper.rewrite() if chance < _WITHDRAWN + _UNMARKED + _SHAPED else link)
    world.links[:] = [*kept, *(_all_across(world, seed) if len(world.repos) > 1 else ())]
    ends = {end for link in world.links for end in link.ends}
    for repo in world.repos.values():
        rng = random.Random(f"{seed} traps {repo.id}")
        for issue in list(repo.issues.values()):
            if (repo.id, issue.number) not in ends and not issue.is_pull and rng.random() < _TRAPS:
                _trap(issue, rng)
    world.touch()
    return unmarked


def _all_across(world: World, seed: int) -> list[TrueLink]:
    ends = {end for link in world.links for end in link.ends}
    found: list[TrueLink] = []
    for repo in world.repos.values():
        rng = random.Random(f"{seed} across {repo.id}")
        for issue in list(repo.issues.values()):
            if (repo.id, issue.number) not in ends and not issue.is_pull and rng.random() < _ACROSS:
                found += _across(world, issue, repo, rng, ends)
    return found


def _across(
    world: World, issue: FakeIssue, repo: FakeRepo, rng: random.Random, ends: set[tuple[int, int]]
) -> list[TrueLink]:
    """Make an issue the duplicate of an older one in another repository, where there is one."""
    there = rng.choice([other for other in world.repos.values() if other is not repo])
    # Neither was ever marked, or its text would speak of others.
    older = [
        n for n, one in there.issues.items() if n < issue.number - 200 and not (one.is_pull or one.events)
    ]
    if not older or issue.events:
        return []
    original = there.issues[rng.choice(older)]
    issue.title = f"{original.title} ({rng.choice(('again', 'with the new client', 'seen today'))})"
    issue.body = re.sub(r"\d+", lambda match: str(rng.randrange(99)), original.body or "") or None
    link = TrueLink(repo.id, issue.number, original.number, "across", there.id)
    ends.update(link.ends)
    return [_Shaper(world, link, rng).rewrite(ACROSS)]


def _trap(issue: FakeIssue, rng: random.Random) -> None:
    """Something that looks like a duplicate's statement and is none."""
    other = rng.randrange(1, issue.number + 1)
    kind, at = rng.choice(("body", "guess", "label")), stamp(_LATER)
    if kind == "body":
        issue.body = f"{issue.body or ''}\n\n{rng.choice(TRAPS).format(n=other)}"
    elif kind == "guess":
        add_comment(issue, issue.id * 7 + 1, "user1", "NONE", rng.choice(GUESSES).format(n=other), at)
        add_comment(issue, issue.id * 7 + 2, "maintainer", "MEMBER", rng.choice(NO), stamp(_LATER + 60))
    elif not issue.events:
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
        self.there: FakeRepo = world.repos[link.ends[1][0]]
        self.writer = self.issue.closed_by or "maintainer"

    def say(self, body: str, seconds: float, login: str | None, role: str) -> None:
        self._say(self.issue, self.named(body), seconds, login, role)

    def _say(self, issue: FakeIssue, body: str, seconds: float, login: str | None, role: str) -> None:
        issue.comments.sort(key=lambda comment: comment.created_at)
        id = self.issue.id * 7 + int(seconds) % 10_000_000
        add_comment(issue, id, login, role, body, stamp(_LATER + seconds))

    def named(self, text: str) -> str:
        """A text with the original named in it, from another repository in full."""
        name = self.there.full_name
        if self.there is not self.repo:
            url = f"https://github.com/{name}/issues/{{n}}"
            text = re.sub(r"(?<![}\w])#\{n\}", self.rng.choice((name + "#{n}", url)), text)
        return text.format(n=self.link.canonical, repo=name, former=self.there.former[-1])

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
        for end in (self.issue, self.there.issues[self.link.canonical]):
            end.events = [event for event in end.events if event.duplicate != here]
        self.issue.events = [event for event in self.issue.events if event.type != "ClosedEvent"]
        self.issue.labels = [label for label in self.issue.labels if label != "duplicate"]
        self.issue.state_reason = "completed"

    def withdraw(self) -> None:
        """Reopened and solved for itself, taken back by the writer, or said to be another problem."""
        way = self.rng.choice(("reopened", "back", "still"))
        if way == "reopened":
            self.happen("ReopenedEvent", "maintainer", 0)
            self.close("maintainer", 90_000, "completed")
            self.issue.labels = [label for label in self.issue.labels if label != "duplicate"]
        elif way == "back":
            self.say("Sorry, not a dup after all.", 0, self.writer, "MEMBER")
            mark = FakeEvent(f"U_{self.issue.id}", "UnmarkedAsDuplicateEvent", self.writer, stamp(_LATER))
            mark.duplicate, mark.canonical = self.link.ends
            self.issue.events += [mark] if self.link.how != "comment" else []
        else:
            self.say(STILL, 0, "maintainer", "MEMBER")
            self.issue.events = [event for event in self.issue.events if event.duplicate is None]

    def rewrite(self, shapes: tuple[str, ...] = SHAPES) -> TrueLink:
        shape = self.rng.choice(shapes)
        if shape in ("guess", "body") and (self.issue.author or "x[bot]").endswith("[bot]"):
            shape = "former"
        self.wipe()
        getattr(self, f"_{shape}")()
        return replace(self.link, how=f"{self.link.how}: {shape}" if shapes is ACROSS else shape)

    def _comment(self) -> None:
        self.say(self.rng.choice(PLAIN), 0, "maintainer", "MEMBER")
        self.close("maintainer", 5, "not_planned")

    def _event(self) -> None:
        mark = FakeEvent(f"X_{self.issue.id}", "MarkedAsDuplicateEvent", "maintainer", stamp(_LATER))
        mark.duplicate, mark.canonical = self.link.ends
        self.issue.events.append(mark)
        self.there.issues[self.link.canonical].events.append(mark)
        self.close("maintainer", 0, "duplicate")

    def _reverse(self) -> None:
        """The original's thread says it."""
        here = self.rng.choice(("{}#{}", "https://github.com/{}/issues/{}"))
        text = self.rng.choice(REVERSE).format(here=here.format(self.repo.full_name, self.issue.number))
        self._say(self.there.issues[self.link.canonical], text, 0, "maintainer", "MEMBER")
        self.close("maintainer", 5, "completed")

    def _body(self) -> None:
        text = self.named(self.rng.choice(BODIES))
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
        """The original came from another repository, or this one, and is called by its number there."""
        homes = [repo for repo in self.world.repos.values() if repo is not self.there]
        old = self.rng.choice(homes or [self.repo])
        free = [n for n, issue in old.issues.items() if issue.is_pull and n < len(old.issues) - 50]
        if old is self.there or not free:
            return self._former()
        number = self.rng.choice(free)
        del old.issues[number]
        old.moved[number] = self.link.ends[1]
        name = "" if old is self.repo else old.full_name
        self._say(self.issue, f"Duplicate of {name}#{number}", 0, "maintainer", "MEMBER")
        self.close("maintainer", 5, "completed")
        return None
