"""Crawl stores without a crawl: written by hand, or from a made-up world; for tests only."""

from pathlib import Path

from fake_github_crawl import expected_comments, expected_events, expected_issue
from fake_github_world import World

from angle_data.gis.crawl.rows import Comment, Event, Issue, Repo
from angle_data.gis.crawl.store import STORE_NAME, Store


def day(number: int) -> str:
    """A time; later numbers are later."""
    return f"{2020 + number // 336}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}T00:00:00Z"


def make_issue(number: int, title: str = "", body: str = "", *, repo_id: int = 1, **fields) -> Issue:
    """An issue of five words and its number, opened on that day, unless told otherwise."""
    known = {
        "id": repo_id * 1_000_000 + number, "node_id": f"I_{repo_id}_{number}", "repo_id": repo_id,
        "number": number, "title": title or f"Problem with gadget number{number}", "body": body,
        "author": "reporter", "author_association": "NONE", "state": "open", "state_reason": None,
        "labels": (), "is_pull": False, "created_at": day(number), "closed_at": None, "closed_by": None,
        "updated_at": day(number), "locked": False,
    }  # fmt: skip
    return Issue(**{**known, **fields})


def make_comment(
    id: int, number: int, body: str, at: int, *, author="maria", role="MEMBER", repo_id=1, **fields
):
    """A comment of a member on day `at`."""
    url = f"https://github.com/org/one/issues/{number}#issuecomment-{id}"
    return Comment(id, repo_id, number, author, role, body, day(at), day(at), url, **fields)


def make_event(id: str, kind: str, number: int, target: int | None, at: int, *, repo="org/one", repo_id=1):
    """An event on day `at`."""
    return Event(id, kind, repo_id, number, repo if target else None, target, "maria", day(at))


def write_store(folder: Path, *, repos=(Repo(1, "org/one", "org/one"),), issues=(), comments=(), events=()):
    """Write a store to `folder` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    with Store.open(folder / STORE_NAME) as store:
        for repo in repos:
            store.save_repo(repo)
        store.save([*issues, *comments, *events])
    return folder / STORE_NAME


def store_world(world: World, folder: Path) -> Path:
    """Write a world to a store as a complete crawl would have."""
    folder.mkdir(parents=True, exist_ok=True)
    with Store.open(folder / STORE_NAME) as store:
        for repo in world.repos.values():
            store.save_repo(Repo(repo.id, repo.full_name, repo.full_name, repo.former))
            issues = [expected_issue(item, repo.id) for item in repo.issues.values()]
            comments = expected_comments(repo, pulls=True)
            store.save([*issues, *comments, *expected_events(world, repo)])
    return folder / STORE_NAME


class SomeTexts:
    """A text of its own for every issue, but one and the same for those in `same`."""

    def __init__(self, same=()):
        self._same = same

    def get(self, node) -> str:
        n = 0 if node[1] in self._same else node[1]
        return " ".join(f"{n}x{i}" for i in range(40))


class Listed:
    """Given texts, by the number of the issue."""

    def __init__(self, *texts):
        self.texts = texts

    def get(self, node) -> str:
        return self.texts[node[1]]
