"""The GraphQL queries that the crawl sends, as text.

`stateReason` without `enableDuplicate` never says DUPLICATE. `pageCount` is asked for because a large page
may come back with lists inside it cut short and no error (seen in kubevirt/ci-health#168). Costs in points
are GitHub's rule: connections asked for, divided by 100, rounded.
https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api
"""

from __future__ import annotations

POINTS_PER_PAGE = 2
"""Points of one full page of `ISSUES_QUERY`: (1 + 100 labels + 100 timelines) / 100."""

NUMBERS_A_QUERY = 50
"""How many single numbers `numbers_query` asks for at once."""

_RATE = "rateLimit { cost limit remaining resetAt }"

_END = """__typename
  ... on Issue { number repository { databaseId nameWithOwner } }
  ... on PullRequest { number repository { databaseId nameWithOwner } }"""

_EVENTS = f"""
fragment Ref on IssueOrPullRequest {{
  {_END}
}}
fragment Events on IssueTimelineItemsConnection {{
  pageCount
  pageInfo {{ hasPreviousPage startCursor }}
  nodes {{
    __typename
    ... on MarkedAsDuplicateEvent {{
      id createdAt actor {{ __typename login }} canonical {{ ...Ref }} duplicate {{ ...Ref }}
    }}
    ... on UnmarkedAsDuplicateEvent {{
      id createdAt actor {{ __typename login }} canonical {{ ...Ref }} duplicate {{ ...Ref }}
    }}
    ... on ClosedEvent {{ id createdAt actor {{ __typename login }} }}
    ... on ReopenedEvent {{ id createdAt actor {{ __typename login }} }}
  }}
}}
"""

_ITEM_TYPES = "[MARKED_AS_DUPLICATE_EVENT, UNMARKED_AS_DUPLICATE_EVENT, CLOSED_EVENT, REOPENED_EVENT]"

_PARTS = f"""
fragment Parts on Issue {{
  id fullDatabaseId number title body author {{ __typename login }} authorAssociation
  state stateReason(enableDuplicate: true) createdAt closedAt updatedAt locked
  labels(first: 20) {{ nodes {{ name }} }}
  timelineItems(last: 10, itemTypes: {_ITEM_TYPES}) {{ ...Events }}
}}
{_EVENTS}"""

ISSUES_QUERY = f"""
query IssuesPage(
  $owner: String!, $name: String!, $first: Int!, $after: String, $filter: IssueFilters,
  $texts: Boolean!
) {{
  {_RATE}
  repository(owner: $owner, name: $name) {{
    databaseId
    issues(first: $first, after: $after, filterBy: $filter, orderBy: {{field: UPDATED_AT, direction: ASC}}) {{
      pageInfo {{ hasNextPage endCursor }}
      nodes {{
        number updatedAt
        ...Parts @include(if: $texts)
      }}
    }}
  }}
}}
{_PARTS}"""
"""A page of issues in the order of their last update; without `texts` only their numbers and times."""

TIMELINE_QUERY = f"""
query Timeline($id: ID!, $before: String) {{
  {_RATE}
  node(id: $id) {{
    ... on Issue {{
      timelineItems(last: 100, before: $before, itemTypes: {_ITEM_TYPES}) {{ ...Events }}
    }}
  }}
}}
{_EVENTS}"""
"""Earlier events of one issue, for the few with more of them than a page shows."""


def numbers_query(count: int) -> str:
    """Return a query for `count` single numbers (variables `n0` ...), one point in all.

    Issues come as in `ISSUES_QUERY`; pull requests, which no listing of issues has, with their texts.
    """
    variables = ", ".join(f"$n{i}: Int!" for i in range(count))
    fields = "\n".join(f"    n{i}: issueOrPullRequest(number: $n{i}) {{ ...Found }}" for i in range(count))
    return f"""
query Numbers($owner: String!, $name: String!, {variables}) {{
  {_RATE}
  repository(owner: $owner, name: $name) {{
    databaseId
{fields}
  }}
}}
fragment Found on IssueOrPullRequest {{
  __typename
  ... on Issue {{ ...Parts }}
  ... on PullRequest {{
    id fullDatabaseId number title body author {{ __typename login }} authorAssociation
    prState: state createdAt closedAt updatedAt locked
  }}
}}
{_PARTS}"""
