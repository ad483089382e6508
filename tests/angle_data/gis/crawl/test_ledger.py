"""What was asked, and what became of it: each kind of refusal in card, report, terminal and exit code."""

import json

import pytest
from fake_github import SECONDARY, FakeGitHub, Fault
from fake_github_crawl import FIRST, SECOND, config_for
from fake_github_world import make_world

from angle_data.errors import InputError, StoppedError
from angle_data.gis.build.build import build_gis
from angle_data.gis.collect import crawl_repos
from angle_data.gis.crawl.ledger import OUTCOMES, CrawlLedger, Listed, outcome_of, read_ledger
from angle_data.gis.crawl.store import Store

NO_ACCESS = "Resource not accessible by personal access token"
SAML = (
    "Resource protected by organization SAML enforcement. You must grant your Personal Access token access "
    "to this organization."
)
SCOPES = "Your token has not been granted the required scopes to execute this query."
ADDRESS = (
    "Although you appear to have the correct authorization credentials, the org1 organization has an IP "
)
ADDRESS += "allow list enabled, and your IP address is not permitted to access this resource."
OLD = "old/home"


def about_second(seen):
    """Whether a request is about the second repository, under any of its names."""
    variables = (seen.body or {}).get("variables", {})
    return "/1001" in seen.path or "project1" in seen.path or variables.get("name") == "project1"


def refuse(fault, *routes):
    """A world in which requests about the second repository get `fault`, on these routes."""
    return lambda world: lambda seen: fault if seen.route in routes and about_second(seen) else None


def change(**fields):
    """A world in which the second repository is another."""

    def prepare(world):
        for name, value in fields.items():
            setattr(world.repos[1_001], name, value)

    return prepare


def redirect(status, location):
    """A world in which the second repository's name leads elsewhere."""
    fault = Fault("status", status, "", {"Location": location})
    return lambda world: lambda seen: fault if seen.path.endswith(f"/repos/{SECOND}") else None


def withhold(every):
    def prepare(world):
        listed = [issue for issue in world.repos[1_001].issues.values() if not issue.is_pull]
        for issue in listed if every else listed[:3]:
            issue.withheld = True

    return prepare


def empty(world):
    world.repos[1_001].issues.clear()


REST, GRAPHQL = ("comments",), ("both", "events")
ANY = (*REST, *GRAPHQL)
BLOCKED, NO_ISSUES = "Repository access blocked", "Issues has been disabled in this repository."
# Strategies; what is wrong; what becomes of the repository; what is said of it; the exit code.
REFUSALS = {
    "404": (ANY, change(refuse=404), "not_found", "404 Not Found", 0),
    "404 over GraphQL alone": (
        GRAPHQL, refuse(Fault("errors", message="Could not resolve", type="NOT_FOUND"), "graphql"),
        "not_found", "404 Could not resolve", 0),
    "410": (ANY, change(refuse=410), "gone", "410 Gone", 0),
    "451": (ANY, change(refuse=451), "blocked", f"451 {BLOCKED}", 0),
    "blocked": (ANY, refuse(Fault("status", 403, BLOCKED), "repository"), "blocked", f"403 {BLOCKED}", 0),
    "issues disabled": (ANY, change(has_issues=False), "issues_disabled", "410 issues are disabled", 0),
    "issues disabled meanwhile": (
        REST, refuse(Fault("status", 410, NO_ISSUES), "issues"), "issues_disabled", f"410 {NO_ISSUES}", 0),
    "no permission for Issues over REST": (
        REST, refuse(Fault("status", 403, NO_ACCESS), "issues"), "no_permission", f"403 {NO_ACCESS}", 1),
    "no permission for Issues over GraphQL": (
        GRAPHQL, refuse(Fault("errors", message=NO_ACCESS, type="FORBIDDEN"), "graphql"),
        "no_permission", f"403 {NO_ACCESS}", 1),
    "no permission, said issue by issue": (
        GRAPHQL, withhold(every=True), "no_permission", f"403 {NO_ACCESS}", 1),
    "no scope": (
        GRAPHQL, refuse(Fault("errors", message=SCOPES, type="INSUFFICIENT_SCOPES"), "graphql"),
        "no_permission", f"403 {SCOPES}", 1),
    "single sign-on over REST": (
        ANY, refuse(Fault("status", 403, SAML), "repository"), "sso", f"403 {SAML}", 1),
    "single sign-on over GraphQL": (
        GRAPHQL, refuse(Fault("errors", message=SAML, type="FORBIDDEN"), "graphql"), "sso", f"403 {SAML}", 1),
    "a list of addresses": (
        ANY, refuse(Fault("status", 403, ADDRESS), "repository"), "forbidden", "403 Although you appear", 1),
    "redirected to another server": (
        ANY, redirect(307, "http://elsewhere.example/repositories/1001"), "moved", "to another server", 0),
    "redirected by 301 to another server": (
        ANY, redirect(301, "http://elsewhere.example/repositories/1001"), "moved", "to another server", 0),
    "redirected in a circle": (ANY, redirect(307, f"/repos/{SECOND}"), "refused", "307", 0),
    "no issues": (ANY, empty, "empty", "no issues", 0),
    "an error of GraphQL that lasts": (
        GRAPHQL, refuse(Fault("errors", message="Unexpected nil"), "graphql"),
        "failing", "GitHub keeps failing (GraphQL error: Unexpected nil)", 75),
    "a time-out of GraphQL that lasts": (
        GRAPHQL, refuse(Fault("timeout"), "graphql"),
        "failing", "GitHub keeps failing (GraphQL: Something", 75),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "strategy"), [(name, way) for name, case in REFUSALS.items() for way in case[0]]
)
def test_a_refusal_stands_in_the_card_the_report_the_terminal_and_the_exit_code(tmp_path, name, strategy):
    _, prepare, outcome, said, exit_code = REFUSALS[name]
    world = make_world(1, repos=2, issues=60, duplicates=0.4)
    slept = []
    with FakeGitHub(world, schedule=prepare(world)) as github:
        config = config_for(github, tmp_path, FIRST, SECOND, strategy=strategy)
        crawl_repos(config, sleep=slept.append)
        assert len(github.seen) < 40
    retried = [seconds for seconds in slept if seconds > 1.0]  # a request of GraphQL costs a second as it is
    assert sum(retried) < 70, "nothing is waited for beyond a minute"
    built = build_gis(config)

    first, second = built.ledger.repositories
    assert (first.asked, first.outcome, first.used, first.said) == (FIRST, "read", True, "")
    assert (second.asked, second.outcome, second.used) == (SECOND, outcome, False)
    assert said in second.said
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["ledger"]["outcomes"] == {"read": 1, outcome: 1}
    assert report["ledger"]["repositories"][1]["said"] == second.said
    assert report["left_out"] == {SECOND: second.said}
    assert f"| {SECOND} | {second.said} |" in (built.dataset / "README.md").read_text()
    assert ("left out", f"{SECOND}: {second.said}") in built.ledger.rows()
    problem = built.ledger.problem()
    assert (problem.exit_code if problem else 0) == exit_code
    if problem:
        assert str(problem).startswith(f"1 of 2 repositories could not be read ({SECOND}): {second.said}; ")
        assert OUTCOMES[outcome] in str(problem)


@pytest.mark.parametrize("name", [name for name, case in REFUSALS.items() if case[4]])
def test_where_all_are_refused_the_crawl_ends_with_the_same_exit_code_and_the_fix(tmp_path, name):
    strategies, prepare, outcome, said, exit_code = REFUSALS[name]
    world = make_world(1, repos=2, issues=60)
    with FakeGitHub(world, schedule=prepare(world)) as github:
        config = config_for(github, tmp_path, SECOND, strategy=strategies[0])
        with pytest.raises((InputError, StoppedError)) as error:
            crawl_repos(config, sleep=lambda seconds: None)
    assert error.value.exit_code == exit_code
    assert said in str(error.value)
    assert str(error.value).endswith(OUTCOMES[outcome])


@pytest.mark.parametrize("strategy", ANY)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_repository_that_moved_is_followed_and_stands_under_both_names(tmp_path, strategy, status):
    world = make_world(1, repos=2, issues=60, duplicates=0.4)

    def move(seen):
        location = {"Location": f"{github.url}/repositories/1001"}
        return Fault("status", status, "Moved", location) if seen.path.endswith(OLD) else None

    with FakeGitHub(world, schedule=move) as github:
        config = config_for(github, tmp_path, FIRST, OLD, strategy=strategy)
        crawl_repos(config)
    second = build_gis(config).ledger.repositories[1]
    assert (second.asked, second.name, second.id, second.outcome) == (OLD, SECOND, 1_001, "read")
    assert second.issues > 30


def test_what_a_redirection_asks_for_is_kept(tmp_path):
    """A listing that is redirected keeps its parameters, and the token goes to no other host."""
    world = make_world(1, repos=2, issues=60, duplicates=0.4)

    def move(seen):
        if seen.route == "issues" and "/repos/" not in seen.path and not seen.query.get("hop"):
            query = "&".join(f"{name}={value}" for name, value in seen.query.items())
            return Fault("status", 307, "", {"Location": f"{github.url}{seen.path}?{query}&hop=1"})
        return None

    with FakeGitHub(world, schedule=move) as github:
        config = config_for(github, tmp_path, FIRST, strategy="comments")
        summary = crawl_repos(config)
        assert [seen.query["state"] for seen in github.seen if seen.query.get("hop")] == ["all"]
        assert summary.requests == len(github.seen), "each hop is a request"


@pytest.mark.parametrize("strategy", GRAPHQL)
def test_issues_that_are_listed_and_not_shown_are_counted(tmp_path, strategy):
    world = make_world(1, repos=2, issues=60, duplicates=0.4)
    withhold(every=False)(world)
    with FakeGitHub(world) as github:
        config = config_for(github, tmp_path, FIRST, SECOND, strategy=strategy)
        crawl_repos(config)
    built = build_gis(config)
    assert [one.hidden for one in built.ledger.repositories] == [0, 3]
    assert ("hidden", f"{SECOND}: 3 issues") in built.ledger.rows()
    assert f"| {SECOND} | 3 |" in (built.dataset / "README.md").read_text()


def test_single_issues_that_github_refuses_are_listed_until_it_shows_them(tmp_path):
    world = make_world(17, repos=1, issues=30, duplicates=0.4)
    here = world.repos[1_000]
    here.issues[25].body, here.issues[25].is_pull = "Duplicate of #5", False
    original = here.issues.pop(5)
    here.hidden = {5: 403}
    with FakeGitHub(world) as github:
        config = config_for(github, tmp_path, FIRST)
        crawl_repos(config)
        assert build_gis(config).ledger.issues == {f"{FIRST}#5": "403 Not for you"}
        assert "| 403 Not for you | 1 |" in (tmp_path / "dataset" / "README.md").read_text()
        here.hidden, here.issues[5] = {}, original
        original.updated_at = "2031-01-01T00:00:00Z"
        world.touch()
        crawl_repos(config)
        assert build_gis(config).ledger.issues == {}


def test_a_limit_that_does_not_end_is_told_of_and_so_is_what_was_not_reached(tmp_path):
    world = make_world(1, repos=3, issues=60, duplicates=0.4)
    names = [repo.full_name for repo in world.repos.values()]
    limited = refuse(Fault("status", 429, SECONDARY), "graphql")(world)
    with FakeGitHub(world, schedule=limited) as github:
        config = config_for(github, tmp_path, *names)
        with pytest.raises(StoppedError, match="rate limit"):
            crawl_repos(config, sleep=lambda seconds: None)
    ledger = build_gis(config).ledger
    assert [one.outcome for one in ledger.repositories] == ["read", "rate_limited", "not_asked"]
    assert ledger.problem().exit_code == 75
    with FakeGitHub(world) as github:
        crawl_repos(config_for(github, tmp_path, *names))
    assert build_gis(config).ledger.problem() is None


def test_two_repositories_in_a_row_that_keep_failing_end_the_crawl(tmp_path):
    world = make_world(1, repos=4, issues=20)
    names = [repo.full_name for repo in world.repos.values()]
    fault = Fault("errors", message="Unexpected nil")
    slept = []
    schedule = lambda seen: fault if seen.route == "graphql" else None  # noqa: E731
    stopped = pytest.raises(StoppedError, match=r"keeps failing \(GraphQL error: Unexpected nil\)")
    with FakeGitHub(world, schedule=schedule) as github, stopped:
        crawl_repos(config_for(github, tmp_path, *names), sleep=slept.append)
    assert sum(slept) < 2 * 75
    with Store.open(tmp_path / "crawl.sqlite", read_only=True) as store:
        outcomes = [one.outcome for one in read_ledger(store, names).repositories]
    assert outcomes == ["failing", "failing", "not_asked", "not_asked"]


def test_what_was_read_before_a_refusal_counts_and_the_refusal_is_told(tmp_path):
    world = make_world(1, repos=2, issues=60, duplicates=0.4)
    with FakeGitHub(world) as github:
        config = config_for(github, tmp_path, FIRST, SECOND)
        crawl_repos(config)
        before = build_gis(config)
        github.schedule = refuse(Fault("status", 403, NO_ACCESS), "repository")(world)
        crawl_repos(config)
    built = build_gis(config)
    assert built.counts == before.counts
    assert built.ledger.outdated() == {SECOND: f"403 {NO_ACCESS}"}
    assert built.ledger.left_out() == {}
    assert ("refused now", f"{SECOND}: 403 {NO_ACCESS}") in built.ledger.rows()
    assert "Refused when last asked; what was read before counts" in (built.dataset / "README.md").read_text()
    assert built.ledger.problem().exit_code == 1


def test_the_user_is_told_first_what_only_the_user_can_change():
    told = CrawlLedger((
        Listed("a/b", "a/b", "failing", said="stopped: GitHub keeps failing"),
        *(Listed(f"c/{n}", f"c/{n}", "sso", said="403 SAML") for n in range(4)),
    ))  # fmt: skip
    assert str(told.problem()).startswith(
        "4 of 5 repositories could not be read (c/0, c/1, c/2 ...): 403 SAML; "
    )
    assert told.problem().exit_code == 1


@pytest.mark.parametrize("status", ["ok", "error:418 I am a teapot", "error:", "error:200 odd"])
def test_every_status_has_an_outcome(status):
    assert outcome_of(status) == ("read" if status == "ok" else "refused")
