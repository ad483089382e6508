import logging

import pytest
from fake_github import SECONDARY, FakeGitHub, Fault
from fake_github_crawl import TOKEN
from fake_github_world import make_world

from angle_data.errors import CredentialsError, InputError, StoppedError
from angle_data.gis.crawl.github import GitHubClient, Refused, TooHeavy
from angle_data.gis.crawl.listings import ISSUES_QUERY


def client_for(github, **options):
    """A client, and a list of the seconds that it would have slept."""
    slept = []
    return GitHubClient(github.url, **options, sleep=slept.append), slept


@pytest.fixture(scope="module")
def world():
    return make_world(1, repos=1, issues=12)


PATH = "/repos/org0/project0"
ASK = {"owner": "org0", "name": "project0", "first": 10, "texts": True, "comments": True}


def test_an_unchanged_page_costs_nothing_of_the_budget(world):
    with FakeGitHub(world) as github:
        client, _ = client_for(github)
        etag = client.get(PATH).etag
        assert client.get(PATH, etag=etag).data is None
        assert client.budgets["core"].remaining == 4_999


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        *((Fault("status", status, SECONDARY, {"Retry-After": "7"}), 7, 7) for status in (403, 429)),
        (Fault("status", 429, SECONDARY, {"Retry-After": "0"}), 1, 1),
        *((Fault("status", status, SECONDARY), 60, 61) for status in (403, 429)),
        *((Fault("primary", status), 3_599, 3_602) for status in (403, 429)),
        (Fault("status", 503, headers={"Retry-After": "20"}), 20, 20),
        *((Fault("html", status), 1, 2) for status in (502, 504)),
        (Fault("status", 500), 1, 2),
        *((Fault(kind), 1, 2) for kind in ("garbage", "truncated", "reset")),
    ],
    ids=lambda value: f"{value.kind}-{value.status}" if isinstance(value, Fault) else str(value),
)
def test_a_passing_fault_is_waited_out_as_long_as_the_server_asks(world, fault, least, most):
    with FakeGitHub(world, faults=[None, fault]) as github:
        client, slept = client_for(github)
        client.get(PATH)
        assert client.get(PATH).data["id"] == 1_000
        assert least <= slept[0] <= most
        assert len(github.seen) == 3


def test_a_server_that_knows_no_such_request_is_not_asked_again(world):
    with FakeGitHub(world, faults=[Fault("html", 501)]) as github:
        client, slept = client_for(github)
        with pytest.raises(InputError, match="does not answer like GitHub's API; check --api-url"):
            client.get(PATH)
        assert (len(github.seen), slept) == (1, [])


def test_the_wait_for_the_reset_goes_by_the_servers_clock(world):
    """The server's clock is an hour ahead of ours: by ours the reset would be two hours away."""
    with FakeGitHub(world, faults=[Fault("primary", 403)], skew_s=3_600) as github:
        client, slept = client_for(github)
        client.get(PATH)
        assert 3_599 <= slept[0] <= 3_602


def test_waits_without_a_told_length_grow_and_end_in_a_stop(world):
    with FakeGitHub(world, schedule=lambda seen: Fault("status", 429, SECONDARY)) as github:
        client, slept = client_for(github)
        with pytest.raises(StoppedError, match=r"rate limit.*run the same command again later"):
            client.get(PATH)
        assert len(github.seen) == 10
        assert [round(seconds, -1) for seconds in slept[:4]] == [60, 120, 240, 300]


@pytest.mark.parametrize("status", [403, 404, 410, 422, 451])
def test_a_refusal_is_not_asked_twice(world, status):
    with FakeGitHub(world, faults=[Fault("status", status, "No, that is not accessible")]) as github:
        client, slept = client_for(github)
        with pytest.raises(Refused, match="No, that is not accessible") as refused:
            client.get(PATH)
        assert (refused.value.status, len(github.seen), slept) == (status, 1, [])


def test_a_rejected_token_is_named_by_its_variable_and_never_shown(world, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    with FakeGitHub(world, token="another") as github:
        client, _ = client_for(github, token_env="MY_TOKEN")
        with pytest.raises(CredentialsError, match=r"wants a valid token \(401\); set MY_TOKEN") as rejected:
            client.get(PATH)
    assert len(github.seen) == 1
    assert TOKEN not in str(rejected.value) + caplog.text + repr(vars(client))


def test_a_token_that_a_refusal_repeats_is_not_shown(world, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    faults = [Fault("status", 403, f"{TOKEN} may not see this")]
    with FakeGitHub(world, faults=faults, token=TOKEN) as github:
        client, _ = client_for(github, token_env="MY_TOKEN")
        with pytest.raises(Refused, match=r"\[token\] may not see this") as refused:
            client.get(PATH)
    assert TOKEN not in str(refused.value)


def test_max_requests_counts_repeated_ones(world):
    with FakeGitHub(world, faults=[None, Fault("html", 502)]) as github:
        client, _ = client_for(github, max_requests=3)
        assert client.get(PATH).data == client.get(PATH).data
        with pytest.raises(StoppedError, match="--max-requests 3 reached"):
            client.get(PATH)
    assert len(github.seen) == 3


def test_an_address_without_an_api_is_named_after_a_few_tries(world):
    with FakeGitHub(world, schedule=lambda seen: Fault("garbage")) as github:
        for url in ("http://127.0.0.1:9", github.url):
            slept = []
            with pytest.raises(InputError, match=rf"cannot reach {url} .*--api-url .*https://HOST/api"):
                GitHubClient(url, sleep=slept.append).get(PATH)
            assert len(slept) == 2


def test_a_redirection_is_followed_on_the_same_host_only(world):
    with FakeGitHub(world) as github:
        there, away = f"{github.url}/repositories/1000", "http://other.example/repositories/1000"
        client, _ = client_for(github)
        github.faults = [to and Fault("status", 301, "", {"Location": to}) for to in (there, None, away)]
        assert client.get("/repos/a/b").data["id"] == 1_000
        with pytest.raises(Refused, match="another server"):
            client.get("/repos/a/b")


def test_the_next_page_is_never_asked_of_another_host(world):
    """A `Link` header that points elsewhere must not carry the token there."""
    with FakeGitHub(world) as github:
        assert client_for(github)[0].get("http://evil.example/repos/org0/project0").data["id"] == 1_000
        assert len(github.seen) == 1


def test_the_client_waits_before_the_limit_is_hit(world):
    with FakeGitHub(world, limit=20) as github:
        client, slept = client_for(github)
        for _ in range(20):
            client.get(PATH)
        assert slept == []
        with pytest.raises(StoppedError):
            client.get(PATH)
        assert slept[0] == pytest.approx(3_600, abs=2)
        assert all(seen.route == "repository" for seen in github.seen)


# GraphQL


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [(Fault("limited"), 3_599, 3_602), (Fault("primary", 403), 3_599, 3_602),
     (Fault("status", 403, SECONDARY), 60, 61)],
    ids=["in-a-200", "403", "secondary"],
)  # fmt: skip
def test_graphql_limits_are_waited_out_even_inside_a_success(world, fault, least, most):
    with FakeGitHub(world, faults=[fault]) as github:
        client, slept = client_for(github)
        assert client.graphql(ISSUES_QUERY, ASK, smaller=True)["repository"]["databaseId"] == 1_000
        assert least <= slept[0] <= most


@pytest.mark.parametrize("fault", [Fault("timeout"), Fault("html", 502), Fault("html", 504)])
def test_a_heavy_query_goes_back_to_the_caller_at_once_or_is_repeated(world, fault):
    with FakeGitHub(world, faults=[None, fault, None, fault]) as github:
        client, slept = client_for(github)
        client.graphql(ISSUES_QUERY, ASK)
        with pytest.raises(TooHeavy):
            client.graphql(ISSUES_QUERY, ASK, smaller=True)
        assert slept == []
        client.graphql(ISSUES_QUERY, ASK)
        assert client.graphql(ISSUES_QUERY, ASK)["repository"]["databaseId"] == 1_000
        assert len(slept) == 1
