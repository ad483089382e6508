"""Crawling the fake GitHub into a folder, and what the store should hold then; for the tests of the crawl."""

import dataclasses
import json

from fake_github import FakeGitHub
from fake_github_world import add_comment, all_comments, stamp

from angle_data.gis.collect import crawl_repos
from angle_data.gis.crawl.rows import Comment, Event, Issue
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import Store

TOKEN = "ghp_aVerySecretToken"
FIRST, SECOND = "org0/project0", "org1/project1"


def crawl(github, out, *names, **options):
    config = config_for(github, out, *names, **options)
    return crawl_repos(config, sleep=lambda seconds: None)


def config_for(github, out, *names, **options):
    out.mkdir(parents=True, exist_ok=True)
    path = out / "list.txt"
    path.write_text("\n".join(names or (FIRST, SECOND)))
    return GisConfig(out, path, **{"api_url": github.url, **options})


def dump(out):
    """Everything found, a line of JSON a row; where a crawl stood is left out."""
    with Store.open(out / "crawl.sqlite", read_only=True) as store:
        found = [("repos", dataclasses.replace(repo, etag=None)) for repo in store.repos()]
        found += [(name, row) for name in ("issues", "comments", "events") for row in getattr(store, name)()]
        return [json.dumps([name, *dataclasses.astuple(row)]) for name, row in found]


def rows(out, table, repo_id=None):
    with Store.open(out / "crawl.sqlite", read_only=True) as store:
        return list(getattr(store, table)(repo_id))


def say(repo, *said):
    """A maintainer comments on the issue of each number; (number, text) pairs."""
    for number, text in said:
        repo.issues[number].is_pull = False
        add_comment(repo.issues[number], 10_000 + number, "ann", "MEMBER", text, stamp(9_000_000))


def shared(kind, item):
    """What a row of this kind and the item of the fake call by the same name."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in vars(item).items() if name in names}


def expected_issue(item, repo_id):
    known = {"node_id": f"I_{item.id}", "repo_id": repo_id, "author_association": item.association}
    known |= {"body": item.body or "", "labels": tuple(sorted(item.labels))}
    return Issue(**{**shared(Issue, item), **known})


def expected_comments(repo, pulls=False):
    """The comments on issues; on pull requests too, which REST alone gives, with `pulls`."""
    found = []
    for one in (one for one in all_comments(repo) if pulls or not repo.issues[one.number].is_pull):
        kind = "pull" if repo.issues[one.number].is_pull else "issues"
        url = f"https://github.com/{repo.full_name}/{kind}/{one.number}#issuecomment-{one.id}"
        known = {"repo_id": repo.id, "author_association": one.association, "url": url}
        found.append(Comment(**shared(Comment, one), **known))
    return sorted(found, key=lambda c: (c.number, c.created_at, c.id))


KINDS = {"MarkedAsDuplicateEvent": "marked", "UnmarkedAsDuplicateEvent": "unmarked", "ClosedEvent": "closed"}


def expected_events(world, repo):
    found = {}
    for issue in repo.issues.values():
        for one in issue.events:
            target = one.canonical or (None, None)
            name = world.repos[target[0]].full_name if one.canonical else None
            owner = one.duplicate or (repo.id, issue.number)
            row = Event(one.id, KINDS[one.type], *owner, name, target[1], one.actor, one.created_at)
            found[one.id] = row
    return sorted(found.values(), key=lambda e: (e.number, e.created_at, e.id))


def reference(tmp_path, world, *names, **options):
    with FakeGitHub(world) as github:
        crawl(github, tmp_path / "reference", *names, **options)
    return dump(tmp_path / "reference")
