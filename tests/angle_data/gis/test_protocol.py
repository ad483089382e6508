"""The fake GitHub and our queries against what GitHub publishes: OpenAPI description and GraphQL schema.

Needs the npm packages @octokit/openapi and @octokit/graphql-schema in $ANGLE_PROTOCOL/node_modules (see `make
protocol`); skipped, with that reason, where they are not.
"""

import json
import os
from pathlib import Path

import pytest
import requests
from fake_github import SECONDARY, FakeGitHub, Fault
from fake_github_graphql import SCHEMA
from fake_github_world import add_comment, make_world
from graphql import (
    build_schema,
    is_enum_type,
    is_input_object_type,
    is_object_type,
    is_union_type,
    parse,
    validate,
)

from angle_data.gis.crawl import queries

ROOT = Path(os.environ.get("ANGLE_PROTOCOL", ".protocol")) / "node_modules" / "@octokit"


def published(*parts):
    path = ROOT.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"{path} is not there; run `make protocol`, which fetches it with npm")
    return path.read_text()


@pytest.fixture(scope="module")
def github_schema():
    return build_schema(published("graphql-schema", "schema.graphql"), assume_valid=True)


@pytest.fixture(scope="module")
def openapi():
    return json.loads(published("openapi", "generated", "api.github.com.json"))


@pytest.fixture(scope="module")
def fake():
    world = make_world(2, repos=1, issues=40)
    repo = world.repos[1_000]
    repo.former = ("old/name",)
    said = add_comment(repo.issues[1], 5, "ann", "MEMBER", "hello", "2024-01-01T00:00:00Z")
    said.minimized = "spam"
    repo.deleted = {99}
    repo.moved = {98: (1_000, 1)}
    with FakeGitHub(world) as github:
        yield github


# GraphQL

QUERIES = (
    queries.ISSUES_QUERY,
    queries.EARLIER_QUERY,
    queries.numbers_query([1, 2]),
    queries.names_query(["a/b", "c/d"]),
)


@pytest.mark.parametrize("query", QUERIES, ids=["issues", "earlier", "numbers", "names"])
def test_queries_are_valid_in_githubs_schema(github_schema, query):
    assert [error.message for error in validate(github_schema, parse(query))] == []


def own_types():
    return [t for name, t in SCHEMA.type_map.items() if not name.startswith("__")]


@pytest.mark.parametrize("kind", own_types(), ids=str)
def test_the_fakes_types_are_a_part_of_githubs(github_schema, kind):
    """Each type, field, argument, enum value and union member of the fake exists and has the same type."""
    theirs = github_schema.type_map.get(kind.name)
    assert theirs is not None
    assert type(theirs) is type(kind)
    if is_object_type(kind) or is_input_object_type(kind):
        for name, field in kind.fields.items():
            assert str(theirs.fields[name].type) == str(field.type), name
            for argument, ours in getattr(field, "args", {}).items():
                assert str(theirs.fields[name].args[argument].type) == str(ours.type), f"{name}({argument})"
    if is_enum_type(kind):
        assert set(kind.values) <= set(theirs.values)
    if is_union_type(kind):
        assert {one.name for one in kind.types} <= {one.name for one in theirs.types}


# REST


def violations(openapi, schema, data):
    from openapi_schema_validator import OAS30Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT4

    registry = Registry().with_resource("urn:github", Resource(contents=openapi, specification=DRAFT4))
    absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:github#/'))
    found = []
    for error in OAS30Validator(absolute, registry=registry).iter_errors(data):
        # The description calls `state_reason` nullable and leaves null out of its values; GitHub sends it.
        null = error.validator == "enum" and error.instance is None and error.schema.get("nullable")
        if not null and error.validator != "required":  # a fake may leave fields out
            found.append(f"{list(error.absolute_path)}: {error.message[:200]}")
    return found


def described(openapi, path, status):
    answer = openapi["paths"][path]["get"]["responses"][str(status)]
    if "$ref" in answer:
        answer = openapi["components"]["responses"][answer["$ref"].rsplit("/", 1)[-1]]
    return answer["content"]["application/json"]["schema"]


ISSUES, COMMENTS = "/repos/{owner}/{repo}/issues", "/repos/{owner}/{repo}/issues/comments"
ONE, REPO = "/repos/{owner}/{repo}/issues/{issue_number}", "/repos/{owner}/{repo}"
NUMBERS, NAMES = {1: 200, 98: 301, 99: 410, 4000: 404}, {"old/name": 301, "no/such": 404}


@pytest.mark.parametrize(
    ("path", "address", "status"),
    [
        (ISSUES, "/repos/org0/project0/issues?state=all&sort=updated&direction=asc&per_page=100", 200),
        (COMMENTS, "/repos/org0/project0/issues/comments?sort=updated&direction=asc&per_page=100", 200),
        *((ONE, f"/repos/org0/project0/issues/{n}", status) for n, status in NUMBERS.items()),
        *((ISSUES, f"/repos/{name}/issues", status) for name, status in NAMES.items()),
        *((REPO, f"/repos/{name}", status) for name, status in {"org0/project0": 200, **NAMES}.items()),
    ],
)
def test_the_fakes_answers_are_as_github_describes_them(openapi, fake, path, address, status):
    answer = requests.get(fake.url + address, allow_redirects=False, timeout=10)
    assert answer.status_code == status
    data = answer.json()
    assert data
    assert violations(openapi, described(openapi, path, status), data) == []


@pytest.mark.parametrize(("path", "names"), [(ISSUES, {"state", "sort"}), (COMMENTS, {"direction"})])
def test_the_parameters_we_send_are_described(openapi, path, names):
    references = {"sort", "direction", "since", "per-page"}
    parameters = openapi["paths"][path]["get"]["parameters"]
    named = {one["name"] for one in parameters if "name" in one}
    shared = {one["$ref"].rsplit("/", 1)[-1] for one in parameters if "$ref" in one}
    assert names <= named
    assert references <= named | shared


def test_faults_speak_as_github_does(openapi):
    faults = [Fault("status", 403, SECONDARY), Fault("primary", 429)]
    with FakeGitHub(make_world(2, repos=1, issues=3), faults=faults) as github:
        for status in (403, 429):
            answer = requests.get(f"{github.url}/repos/org0/project0", timeout=10)
            assert answer.status_code == status
            assert violations(openapi, {"$ref": "#/components/schemas/basic-error"}, answer.json()) == []
