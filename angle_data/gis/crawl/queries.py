"""What is asked of GitHub's GraphQL: pages of issues, the rest of a long thread, single numbers, names.

Fields have REST's names where REST has them, so that `rows` reads both alike. `stateReason` without
`enableDuplicate` never says DUPLICATE. `pageCount` and `totalCount` are asked for because a large page may
come back with lists inside it cut short and no error (seen in kubevirt/ci-health#168). Costs in points are
GitHub's rule: connections asked for, divided by 100, rounded; a page of issues stays far below the 500,000
nodes that a query may reach.
https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api
"""

from __future__ import annotations

import json
from collections.abc import Sequence

PER_PAGE = 100
"""Issues a page, and comments of an issue within it."""

NUMBERS_A_QUERY = NAMES_A_QUERY = 50
"""How many single numbers, or repositories, one query asks for."""

_ACTOR = "{ __typename login }"
_MARK = f"{{ id createdAt actor {_ACTOR} canonical {{ ...Ref }} duplicate {{ ...Ref }} }}"
_ITEM_TYPES = "[MARKED_AS_DUPLICATE_EVENT, UNMARKED_AS_DUPLICATE_EVENT, CLOSED_EVENT, REOPENED_EVENT]"

_LISTS = f"""
fragment Ref on IssueOrPullRequest {{
  __typename
  ... on Issue {{ number repository {{ databaseId nameWithOwner }} }}
  ... on PullRequest {{ number repository {{ databaseId nameWithOwner }} }}
}}
fragment Events on IssueTimelineItemsConnection {{
  pageCount
  pageInfo {{ hasPreviousPage startCursor }}
  nodes {{
    __typename
    ... on MarkedAsDuplicateEvent {_MARK}
    ... on UnmarkedAsDuplicateEvent {_MARK}
    ... on ClosedEvent {{ id createdAt actor {_ACTOR} }}
    ... on ReopenedEvent {{ id createdAt actor {_ACTOR} }}
  }}
}}
fragment Comments on IssueCommentConnection {{
  totalCount
  pageInfo {{ hasPreviousPage startCursor }}
  nodes {{
    id: fullDatabaseId user: author {_ACTOR} author_association: authorAssociation body
    created_at: createdAt updated_at: updatedAt html_url: url isMinimized minimizedReason
  }}
}}
"""

_TEXTS = f"""
    node_id: id id: fullDatabaseId number title body user: author {_ACTOR}
    author_association: authorAssociation locked
    created_at: createdAt closed_at: closedAt updated_at: updatedAt
"""

_PARTS = f"""
fragment Parts on Issue {{
  {_TEXTS} state state_reason: stateReason(enableDuplicate: true)
  labels(first: 20) {{ nodes {{ name }} }}
  timelineItems(last: 10, itemTypes: {_ITEM_TYPES}) {{ ...Events }}
  comments(last: {PER_PAGE}) @include(if: $comments) {{ ...Comments }}
}}
{_LISTS}"""

ISSUES_QUERY = f"""
query IssuesPage(
  $owner: String!, $name: String!, $first: Int!, $after: String, $filter: IssueFilters,
  $texts: Boolean!, $comments: Boolean!
) {{
  rateLimit {{ cost }}
  repository(owner: $owner, name: $name) {{
    databaseId
    issues(first: $first, after: $after, filterBy: $filter, orderBy: {{field: UPDATED_AT, direction: ASC}}) {{
      totalCount
      pageInfo {{ hasNextPage endCursor }}
      nodes {{
        number updated_at: updatedAt
        ...Parts @include(if: $texts)
      }}
    }}
  }}
}}
{_PARTS}"""
"""A page of issues in the order of their last update; without `texts` only their numbers and times."""

EARLIER_QUERY = f"""
query Earlier($id: ID!, $before: String, $comments: Boolean!) {{
  rateLimit {{ cost }}
  node(id: $id) {{
    ... on Issue {{
      timelineItems(last: 100, before: $before, itemTypes: {_ITEM_TYPES}) @skip(if: $comments) {{ ...Events }}
      comments(last: 100, before: $before) @include(if: $comments) {{ ...Comments }}
    }}
  }}
}}
{_LISTS}"""
"""Earlier events, or comments, of one issue, for the few with more of them than a page shows."""


def numbers_query(numbers: Sequence[int]) -> str:
    """Return a query for single numbers (fields `n1` ...), one or two points in all.

    Issues come as in `ISSUES_QUERY`, pull requests with their texts; what was transferred from where it is.
    """
    fields = "\n".join(f"    n{n}: issueOrPullRequest(number: {n}) {{ ...Found }}" for n in numbers)
    return f"""
query Numbers($owner: String!, $name: String!, $comments: Boolean!) {{
  rateLimit {{ cost }}
  repository(owner: $owner, name: $name) {{
    databaseId
{fields}
  }}
}}
fragment Found on IssueOrPullRequest {{
  ...Ref
  ... on Issue {{ ...Parts }}
  ... on PullRequest {{ {_TEXTS} prState: state }}
}}
{_PARTS}"""


def names_query(names: Sequence[str]) -> str:
    """Return a query for repositories (fields `r0` ...) by their names, former ones too, and their issues."""
    fields = ""
    for i, name in enumerate(names):
        owner, repo = map(json.dumps, name.split("/"))
        fields += f"  r{i}: repository(owner: {owner}, name: {repo}) {{ ...Total }}\n"
    return f"""
query Names($filter: IssueFilters) {{
  rateLimit {{ cost }}
{fields}
}}
fragment Total on Repository {{
  databaseId hasIssuesEnabled issues(first: 1, filterBy: $filter) {{ totalCount }}
}}"""
