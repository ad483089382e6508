"""The fake GitHub's GraphQL: GitHub's own types as far as the crawl uses them, over the world.

The types are a part of GitHub's published schema, which test_protocol checks where that schema is at hand.
"""

import base64
from functools import lru_cache

from fake_github_payloads import WEB
from fake_github_world import FakeComment, FakeEvent, FakeIssue, FakeRepo, World
from graphql import DocumentNode, GraphQLError, build_schema, execute_sync, parse, validate

SDL = """
scalar BigInt
scalar DateTime
scalar URI
type Query {
  node(id: ID!): Node
  rateLimit: RateLimit
  repository(owner: String!, name: String!): Repository
}
type RateLimit { cost: Int! limit: Int! remaining: Int! resetAt: DateTime! }
interface Node { id: ID! }
interface Actor { login: String! }
type User implements Actor & Node { id: ID! login: String! }
type Bot implements Actor & Node { id: ID! login: String! }
type PageInfo { endCursor: String hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String }
enum OrderDirection { ASC DESC }
enum IssueOrderField { COMMENTS CREATED_AT UPDATED_AT }
enum IssueState { CLOSED OPEN }
enum PullRequestState { CLOSED MERGED OPEN }
enum IssueStateReason { COMPLETED DUPLICATE NOT_PLANNED REOPENED }
enum CommentAuthorAssociation {
  COLLABORATOR CONTRIBUTOR FIRST_TIMER FIRST_TIME_CONTRIBUTOR MANNEQUIN MEMBER NONE OWNER
}
enum IssueTimelineItemsItemType {
  MARKED_AS_DUPLICATE_EVENT UNMARKED_AS_DUPLICATE_EVENT CLOSED_EVENT REOPENED_EVENT
}
input IssueOrder { direction: OrderDirection! field: IssueOrderField! }
input IssueFilters { since: DateTime states: [IssueState!] }
type Repository implements Node {
  id: ID! databaseId: Int nameWithOwner: String! hasIssuesEnabled: Boolean!
  issueOrPullRequest(number: Int!): IssueOrPullRequest
  issues(after: String, filterBy: IssueFilters, first: Int, orderBy: IssueOrder): IssueConnection!
}
type IssueConnection { nodes: [Issue] pageInfo: PageInfo! totalCount: Int! }
type IssueCommentConnection { nodes: [IssueComment] pageInfo: PageInfo! totalCount: Int! }
type IssueComment implements Node {
  id: ID! fullDatabaseId: BigInt author: Actor authorAssociation: CommentAuthorAssociation! body: String!
  createdAt: DateTime! updatedAt: DateTime! url: URI! isMinimized: Boolean! minimizedReason: String
}
type Label implements Node { id: ID! name: String! }
type LabelConnection { nodes: [Label] }
union IssueOrPullRequest = Issue | PullRequest
type PullRequest implements Node {
  id: ID! fullDatabaseId: BigInt number: Int! title: String! body: String! author: Actor
  authorAssociation: CommentAuthorAssociation! state: PullRequestState! createdAt: DateTime!
  closedAt: DateTime updatedAt: DateTime! locked: Boolean! repository: Repository!
}
type Issue implements Node {
  id: ID! fullDatabaseId: BigInt number: Int! title: String! body: String! author: Actor
  authorAssociation: CommentAuthorAssociation! state: IssueState!
  stateReason(enableDuplicate: Boolean = false): IssueStateReason
  createdAt: DateTime! closedAt: DateTime updatedAt: DateTime! locked: Boolean! repository: Repository!
  labels(first: Int): LabelConnection
  comments(before: String, last: Int): IssueCommentConnection!
  timelineItems(
    before: String, last: Int, itemTypes: [IssueTimelineItemsItemType!]
  ): IssueTimelineItemsConnection!
}
type IssueTimelineItemsConnection {
  nodes: [IssueTimelineItems] pageCount: Int! pageInfo: PageInfo! totalCount: Int!
}
union IssueTimelineItems =
  MarkedAsDuplicateEvent | UnmarkedAsDuplicateEvent | ClosedEvent | ReopenedEvent
type MarkedAsDuplicateEvent implements Node {
  id: ID! actor: Actor createdAt: DateTime! canonical: IssueOrPullRequest duplicate: IssueOrPullRequest
}
type UnmarkedAsDuplicateEvent implements Node {
  id: ID! actor: Actor createdAt: DateTime! canonical: IssueOrPullRequest duplicate: IssueOrPullRequest
}
type ClosedEvent implements Node { id: ID! actor: Actor createdAt: DateTime! }
type ReopenedEvent implements Node { id: ID! actor: Actor createdAt: DateTime! }
"""
_ITEM_TYPES = {
    "MARKED_AS_DUPLICATE_EVENT": "MarkedAsDuplicateEvent",
    "UNMARKED_AS_DUPLICATE_EVENT": "UnmarkedAsDuplicateEvent",
    "CLOSED_EVENT": "ClosedEvent",
    "REOPENED_EVENT": "ReopenedEvent",
}
SCHEMA = build_schema(SDL)
_WITHHELD = GraphQLError("Resource not accessible by personal access token", extensions={"type": "FORBIDDEN"})


@lru_cache(maxsize=32)
def parsed(query: str) -> tuple[DocumentNode, list[GraphQLError]]:
    """The query and what is wrong with it."""
    document = parse(query)
    return document, validate(SCHEMA, document)


def run_query(
    world: World, query: str, variables: dict, rate: dict, *, cut: bool = False, web: str = WEB
) -> tuple[dict, int]:
    """Execute a query; returns the answer's body and its price in points. `cut` empties its inner lists."""
    document, errors = parsed(query)
    if errors:
        problems = [{"message": e.message, "extensions": {"code": "undefinedField"}} for e in errors]
        return {"errors": problems}, 0
    answerer = _Answerer(world, rate, cut, web)
    result = execute_sync(SCHEMA, document, root_value=answerer.root(), variable_values=variables)
    points = max(1, round(answerer.connections / 100))
    body: dict = {"data": result.data}
    if result.data and result.data.get("rateLimit"):
        result.data["rateLimit"]["cost"] = points
    if result.errors:
        types = [(error.extensions or {}).get("type", "UNKNOWN") for error in result.errors]
        named = zip(result.errors, types, strict=True)
        body["errors"] = [{"message": e.message, "path": e.path, "type": kind} for e, kind in named]
    return body, points


class _Answerer:
    """Builds the answer's objects: dictionaries whose functions are called by the executor with arguments."""

    def __init__(self, world: World, rate: dict, cut: bool, web: str) -> None:
        self._world, self._rate, self._cut, self._web = world, rate, cut, web
        self.connections = 0

    def root(self) -> dict:
        fields = {"repository": self._repository_named, "node": self._node}
        return {**fields, "rateLimit": lambda info: {"cost": 1, **self._rate}}

    def _repository_named(self, info: object, owner: str, name: str) -> dict | None:
        found = self._world.named(f"{owner}/{name}")
        if found is None or found[0].refuse:
            message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
            raise GraphQLError(message, extensions={"type": "NOT_FOUND"})
        return self._repository(found[0])

    def _node(self, info: object, id: str) -> dict | None:
        for repo in self._world.repos.values():
            for issue in repo.issues.values():
                if f"I_{issue.id}" == id:
                    return self._issue(repo, issue)
        raise GraphQLError("Could not resolve to a node", extensions={"type": "NOT_FOUND"})

    def _repository(self, repo: FakeRepo) -> dict:
        return {
            "id": f"R_{repo.id}", "databaseId": repo.id, "nameWithOwner": repo.full_name,
            "hasIssuesEnabled": repo.has_issues,
            "issues": lambda info, **options: self._issues(repo, **options),
            "issueOrPullRequest": lambda info, number: self._numbered(repo, number),
        }  # fmt: skip

    def _numbered(self, repo: FakeRepo, number: int) -> dict:
        # Transferred issues are followed; the answer has another number, in another repository.
        found = self._end(repo.moved.get(number, (repo.id, number)))
        if found is None:
            message = f"Could not resolve to an issue or pull request with the number of {number}."
            raise GraphQLError(message, extensions={"type": "NOT_FOUND"})
        return found

    def _issues(self, repo: FakeRepo, orderBy: dict | None = None, **options: object) -> dict:
        first, after, filters = options.get("first"), options.get("after"), options.get("filterBy")
        if first is None or not 1 <= first <= 100:
            message = "You must provide a `first` or `last` value between 1 and 100"
            raise GraphQLError(message, extensions={"type": "MISSING_PAGINATION_BOUNDARIES"})
        known = orderBy in (None, {"field": "UPDATED_AT", "direction": "ASC"})
        assert known, "the fake knows one order"
        self.connections += 1
        since = (filters or {}).get("since") or ""
        position = _decode(after) if after else ("", 0)
        items = sorted(
            (issue for issue in repo.issues.values() if not issue.is_pull and issue.updated_at >= since),
            key=lambda issue: (issue.updated_at, issue.id),
        )
        rest = [issue for issue in items if (issue.updated_at, issue.id) > position]
        page = rest[:first]
        end = _encode(page[-1].updated_at, page[-1].id) if page else None
        info = {"hasNextPage": len(rest) > first, "endCursor": end}
        nodes = [_WITHHELD if issue.withheld else self._issue(repo, issue) for issue in page]
        return {"nodes": nodes, "pageInfo": info, "totalCount": len(items)}

    def _issue(self, repo: FakeRepo, issue: FakeIssue) -> dict:
        reason = issue.state_reason.upper() if issue.state_reason else None
        return {
            "__typename": "Issue", "id": f"I_{issue.id}", "fullDatabaseId": str(issue.id),
            "number": issue.number, "title": issue.title, "body": issue.body or "",
            "author": _actor(issue.author), "authorAssociation": issue.association,
            "state": issue.state.upper(),
            "stateReason": lambda info, enableDuplicate: (
                reason if reason != "DUPLICATE" or enableDuplicate else "NOT_PLANNED"
            ),
            "createdAt": issue.created_at, "closedAt": issue.closed_at, "updatedAt": issue.updated_at,
            "locked": issue.locked, "repository": lambda info: self._repository(repo),
            "labels": lambda info, **_: self._labels(issue),
            "timelineItems": lambda info, **options: self._timeline(issue, **options),
            "comments": lambda info, **options: self._comments(repo, issue, **options),
        }  # fmt: skip

    def _labels(self, issue: FakeIssue) -> dict:
        self.connections += 1
        return {"nodes": [{"id": name, "name": name} for name in issue.labels]}

    def _timeline(
        self, issue: FakeIssue, last: int, itemTypes: list[str], before: str | None = None, **_: object
    ) -> dict:
        self.connections += 1
        if issue.heavy:
            raise GraphQLError("Something went wrong while executing your query: timeout")
        wanted = {_ITEM_TYPES[name] for name in itemTypes}
        events = (event for event in issue.events if event.type in wanted)
        items = sorted(events, key=lambda event: (event.created_at, event.id))
        page, info = self._last_of(items, last, before)
        return {**info, "nodes": [self._event(event) for event in page]}

    def _last_of(self, items: list, last: int, before: str | None) -> tuple[list, dict]:
        """The last items before a cursor, and what the connection says of them; none of them when cut."""
        end = int(_decode(before)[0]) if before else len(items)
        start = max(0, end - last)
        info = {"hasPreviousPage": start > 0, "startCursor": _encode(str(start), 0)}
        said = {"pageCount": end - start, "totalCount": len(items), "pageInfo": info}
        return [] if self._cut else items[start:end], said

    def _comments(
        self, repo: FakeRepo, issue: FakeIssue, last: int, before: str | None = None, **_: object
    ) -> dict:
        self.connections += 1
        items = sorted(issue.comments, key=lambda comment: (comment.created_at, comment.id))
        page, info = self._last_of(items, last, before)
        return {**info, "nodes": [self._comment(repo, issue, comment) for comment in page if comment.shown]}

    def _comment(self, repo: FakeRepo, issue: FakeIssue, comment: FakeComment) -> dict:
        return {
            "id": f"IC_{comment.id}", "fullDatabaseId": str(comment.id), "author": _actor(comment.author),
            "authorAssociation": comment.association, "body": comment.body, "createdAt": comment.created_at,
            "updatedAt": comment.updated_at,
            "url": f"{self._web}/{repo.full_name}/issues/{issue.number}#issuecomment-{comment.id}",
            "isMinimized": comment.minimized is not None, "minimizedReason": comment.minimized,
        }  # fmt: skip

    def _event(self, event: FakeEvent) -> dict:
        return {
            "__typename": event.type, "id": event.id, "actor": _actor(event.actor),
            "createdAt": event.created_at, "canonical": self._end(event.canonical),
            "duplicate": self._end(event.duplicate),
        }  # fmt: skip

    def _end(self, end: tuple[int, int] | None) -> dict | None:
        if end is None:
            return None
        repo = self._world.repos[end[0]]
        issue = repo.issues.get(end[1])
        if issue is None:
            return None
        kind = "PullRequest" if issue.is_pull else "Issue"
        return {**self._issue(repo, issue), "__typename": kind}


def _actor(login: str | None) -> dict | None:
    """GraphQL writes bots without the suffix that REST has."""
    if login is None:
        return None
    bot = login.endswith("[bot]")
    return {"__typename": "Bot" if bot else "User", "login": login.removesuffix("[bot]"), "id": f"U_{login}"}


def _encode(key: str, id: int) -> str:
    return base64.b64encode(f"{key}|{id}".encode()).decode()


def _decode(cursor: str) -> tuple[str, int]:
    key, _, id = base64.b64decode(cursor, validate=True).decode().rpartition("|")
    return key, int(id)
