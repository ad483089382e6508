"""What the fake GitHub sends over REST: the shapes of GitHub's API description, filled from the world.

`web` is the site that the pages are on.
"""

from collections.abc import Iterator

from fake_github_world import FakeComment, FakeIssue, FakeRepo

WEB = "https://github.com"
_USER_LINKS = """
followers following gists starred subscriptions organizations repos events received_events
""".split()  # noqa: SIM905 - a list of one word a line says no more


def user(login: str | None, api: str, web: str = WEB) -> dict | None:
    """A simple user; None for a deleted account."""
    if login is None:
        return None
    url = f"{api}/users/{login}"
    return {
        "login": login, "id": sum(map(ord, login)), "node_id": f"U_{login}",
        "avatar_url": f"{api}/avatars/{login}", "gravatar_id": "", "url": url, "html_url": f"{web}/{login}",
        **{f"{name}_url": f"{url}/{name}" for name in _USER_LINKS},
        "type": "Bot" if login.endswith("[bot]") else "User", "site_admin": False,
    }  # fmt: skip


def repository(repo: FakeRepo, api: str, web: str = WEB) -> dict:
    """A repository, as far as anybody could want it for a crawl of issues."""
    owner, name = repo.full_name.split("/")
    return {
        "id": repo.id, "node_id": f"R_{repo.id}", "name": name, "full_name": repo.full_name,
        "owner": user(owner, api, web), "html_url": f"{web}/{repo.full_name}", "has_issues": repo.has_issues,
        "size": 1,
    }  # fmt: skip


def issue(item: FakeIssue, repo: FakeRepo, api: str, web: str = WEB) -> dict:
    """An issue as the list gives it: without `closed_by`."""
    url = f"{api}/repos/{repo.full_name}/issues/{item.number}"
    kind = "pull" if item.is_pull else "issues"
    page = f"{web}/{repo.full_name}/{kind}/{item.number}"
    pull = {"pull_request": {"url": url, "html_url": page, "diff_url": page, "patch_url": page}}
    return {
        "id": item.id, "node_id": f"I_{item.id}", "number": item.number, "url": url,
        "repository_url": f"{api}/repos/{repo.full_name}", "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments", "events_url": f"{url}/events", "html_url": page,
        "title": item.title, "body": item.body, "user": user(item.author, api, web),
        "author_association": item.association, "state": item.state, "state_reason": item.state_reason,
        "labels": [label(name, api) for name in item.labels], "assignee": None, "assignees": [],
        "milestone": None, "locked": item.locked, "comments": len(item.comments),
        "created_at": item.created_at, "closed_at": item.closed_at, "updated_at": item.updated_at,
        **(pull if item.is_pull else {}),
    }  # fmt: skip


def label(name: str, api: str) -> dict:
    """A label."""
    return {
        "id": sum(map(ord, name)), "node_id": f"L_{name}", "url": f"{api}/labels/{name}", "name": name,
        "description": None, "color": "ededed", "default": False,
    }  # fmt: skip


def comment(item: FakeComment, repo: FakeRepo, api: str, web: str = WEB, *, on_pull: bool) -> dict:
    """A comment on an issue or pull request."""
    url = f"{api}/repos/{repo.full_name}"
    page = f"{web}/{repo.full_name}/{'pull' if on_pull else 'issues'}/{item.number}"
    return {
        "id": item.id, "node_id": f"IC_{item.id}", "url": f"{url}/issues/comments/{item.id}",
        "issue_url": f"{url}/issues/{item.number}", "html_url": f"{page}#issuecomment-{item.id}",
        "user": user(item.author, api, web), "author_association": item.association, "body": item.body,
        "created_at": item.created_at, "updated_at": item.updated_at,
        "minimized": {"reason": item.minimized} if item.minimized else None,
    }  # fmt: skip


def archived(item: FakeIssue, repo: FakeRepo, api: str = "https://api.github.com") -> Iterator[dict]:
    """The events of GH Archive of an issue: it is opened, and each comment."""
    about = issue(item, repo, api)
    common = {"repo": {"id": repo.id, "name": repo.full_name}, "actor": user(item.author, api)}
    opened = {"action": "opened", "issue": about}
    yield {**common, "type": "IssuesEvent", "created_at": item.created_at, "payload": opened}
    for said in item.comments:
        written = comment(said, repo, api, on_pull=item.is_pull)
        payload = {"action": "created", "issue": about, "comment": written}
        yield {**common, "type": "IssueCommentEvent", "created_at": said.created_at, "payload": payload}
