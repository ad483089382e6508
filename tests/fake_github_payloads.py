"""What the fake GitHub sends over REST: the shapes of GitHub's API description, filled from the world.

`web` is the site that the pages are on.
"""

from collections.abc import Iterator

from fake_github_world import FakeComment, FakeIssue, FakeRepo

WEB = "https://github.com"
_USER_LINKS = """
followers following gists starred subscriptions organizations repos events received_events
""".split()  # noqa: SIM905 - a list of one word a line says no more
_REPO_LINKS = """
archive assignees blobs branches collaborators comments commits compare contents contributors
deployments downloads events forks git_commits git_refs git_tags hooks issue_comment issue_events
issues keys labels languages merges milestones notifications pulls releases stargazers statuses
subscribers subscription tags teams trees
""".split()  # noqa: SIM905 - a list of one word a line says no more

_REPO_COUNTS = """
forks forks_count network_count open_issues open_issues_count stargazers_count subscribers_count watchers
watchers_count
""".split()  # noqa: SIM905 - a list of one word a line says no more


def user(login: str | None, api: str, web: str = WEB) -> dict | None:
    """A simple user; None for a deleted account."""
    if login is None:
        return None
    url = f"{api}/users/{login}"
    return {
        "login": login,
        "id": sum(map(ord, login)),
        "node_id": f"U_{login}",
        "avatar_url": f"{api}/avatars/{login}",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{web}/{login}",
        **{f"{name}_url": f"{url}/{name}" for name in _USER_LINKS},
        "type": "Bot" if login.endswith("[bot]") else "User",
        "site_admin": False,
    }


def repository(repo: FakeRepo, api: str, web: str = WEB) -> dict:
    """A full repository."""
    url = f"{api}/repos/{repo.full_name}"
    owner, name = repo.full_name.split("/")
    page = f"{web}/{repo.full_name}"
    return {
        "id": repo.id,
        "node_id": f"R_{repo.id}",
        "name": name,
        "full_name": repo.full_name,
        "owner": user(owner, api, web),
        "private": False,
        "html_url": page,
        "description": "made up",
        "fork": False,
        "url": url,
        **{f"{link}_url": f"{url}/{link}" for link in _REPO_LINKS},
        "clone_url": f"{page}.git",
        "git_url": f"git://github.com/{repo.full_name}.git",
        "ssh_url": f"git@github.com:{repo.full_name}.git",
        "svn_url": page,
        "homepage": None,
        "mirror_url": None,
        "language": None,
        "license": None,
        "default_branch": "main",
        "archived": False,
        "disabled": False,
        "has_issues": repo.has_issues,
        "has_projects": False,
        "has_wiki": False,
        "has_pages": False,
        "has_discussions": False,
        "size": 1,
        **dict.fromkeys(_REPO_COUNTS, 0),
        "pushed_at": "2020-01-01T00:00:00Z",
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2020-01-01T00:00:00Z",
    }


def issue(item: FakeIssue, repo: FakeRepo, api: str, web: str = WEB) -> dict:
    """An issue as the list gives it: without `closed_by`."""
    url = f"{api}/repos/{repo.full_name}/issues/{item.number}"
    kind = "pull" if item.is_pull else "issues"
    page = f"{web}/{repo.full_name}/{kind}/{item.number}"
    pull = {"pull_request": {"url": url, "html_url": page, "diff_url": page, "patch_url": page}}
    return {
        "id": item.id,
        "node_id": f"I_{item.id}",
        "number": item.number,
        "url": url,
        "repository_url": f"{api}/repos/{repo.full_name}",
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": page,
        "title": item.title,
        "body": item.body,
        "user": user(item.author, api, web),
        "author_association": item.association,
        "state": item.state,
        "state_reason": item.state_reason,
        "labels": [label(name, api) for name in item.labels],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "locked": item.locked,
        "comments": len(item.comments),
        "created_at": item.created_at,
        "closed_at": item.closed_at,
        "updated_at": item.updated_at,
        **(pull if item.is_pull else {}),
    }


def label(name: str, api: str) -> dict:
    """A label."""
    return {
        "id": sum(map(ord, name)),
        "node_id": f"L_{name}",
        "url": f"{api}/labels/{name}",
        "name": name,
        "description": None,
        "color": "ededed",
        "default": False,
    }


def comment(item: FakeComment, repo: FakeRepo, api: str, web: str = WEB, *, on_pull: bool) -> dict:
    """A comment on an issue or pull request."""
    url = f"{api}/repos/{repo.full_name}"
    page = f"{web}/{repo.full_name}/{'pull' if on_pull else 'issues'}/{item.number}"
    return {
        "id": item.id,
        "node_id": f"IC_{item.id}",
        "url": f"{url}/issues/comments/{item.id}",
        "issue_url": f"{url}/issues/{item.number}",
        "html_url": f"{page}#issuecomment-{item.id}",
        "user": user(item.author, api, web),
        "author_association": item.association,
        "body": item.body,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "minimized": {"reason": item.minimized} if item.minimized else None,
    }


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
