"""Which forms are references, and which only look like one; what counts as the writer's own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.gis.comments.markdown import own_words
from angle_data.gis.comments.references import (
    FILL,
    OTHER,
    REF,
    SELF,
    find_references,
    mark_references,
    may_refer,
)

REPO = "lumen/editor"
FORMS = r"""
    #26 | (#26) | #26. | GH-26 | gh-26 | of#26 | issue#26 | ＃26 | 与#26重复 | #26과 | lumen/editor#26
    /dup 26 | https://github.com/lumen/editor/issues/26 | http://www.github.com/lumen/editor/issues/26/
    https://github.com/lumen/editor/issues/26#issuecomment-1 | <https://github.com/lumen/editor/issues/26>
    github.com/lumen/editor/issues/26 | [x](https://github.com/lumen/editor/issues/26) | [#26](../issues/26)
    <a href="https://github.com/lumen/editor/issues/26">it</a> | duplicate of 26
    https://redirect.github.com/lumen/editor/issues/26
    [it][1]\n\n[1]: https://github.com/lumen/editor/issues/26
"""
LOOKALIKES = """
    C#26 | #26px | #1.2 | #026 | &#39; | foo#26bar | bpo-26 | CL 26 | our #1 priority | step #2 | option #3
    26 | the color #333 | JIRA-26 | https://github.com/lumen/editor/discussions/26 | discussion #26
    https://github.com/lumen/editor/commit/26 | https://gitlab.com/group/tool/issues/26
    https://github.com/lumen/editor/issues?q=26 | [#26](https://bugs.example.org/26) | a duplicate of 2 others
"""


OTHERS = r"""
    > X | >> X\n> X | ```\nX\n``` | ~~~\nX | ````\n```\nX\n```` | `X` | `` X ` X `` | <!-- X --> | <!-- X
    ok\n\n    X | ok\n\n\tX | <blockquote>X</blockquote> | <details><details>X</details>X</details>
    <pre>X</pre> | ~~X~~ | - [x] X | * [ ] X | ### Is it X? | "dup X #5" | “closing X #5” | - > X
    On Monday Jon wrote:\nX | On Fri, Aug 9, Jon <\nreply@example.org> wrote:\n\nX | Am 3.2. schrieb Jon:\nX
    -----Original Message-----\nX | From: Jon\nSent: Monday\nX | Le 4 mai, Luc a écrit :\nX | ```\nX\n\nX
"""
OWN = r"""
    X | a > X | > quoted\n\nX | `code` X | - item\n\n    X | <b>X</b> | ~X~ | - [X](https://example.org)
    the `tick X | On Monday we wrote X | "X" | <!-- a --> X | <details>a</details> X | ```\na\n```\nX
    On Monday Jon wrote:\n> quoted\n\nX | `a\n\nX` b
"""


def cells(table):
    found = [cell for line in table.strip().splitlines() for cell in line.strip().split(" | ")]
    return [cell.replace("\\n", "\n").replace("\\t", "\t") for cell in found]


def targets(text, **options):
    return [(ref.repo, ref.number) for ref in find_references(text, REPO, **options) if ref.number]


@pytest.mark.parametrize("text", cells(FORMS) + cells(LOOKALIKES))
def test_every_form_of_a_reference_is_found_and_what_only_looks_like_one_is_none(text):
    is_one = text in cells(FORMS)
    assert not is_one or may_refer(text) or "[1]:" in text
    assert targets(text) == [(REPO, 26)] * is_one


def test_pull_requests_are_told_apart():
    text = "PR #1, #2, https://github.com/lumen/editor/pull/3, a/b/issues/4, a/b/pull/5"
    assert [ref.pull for ref in find_references(text, REPO)] == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("text", "hosts", "found"),
    [
        ("https://git.example.com/core/app/issues/5", None, []),
        ("https://git.example.com/core/app/issues/5", {"git.example.com"}, [("core/app", 5)]),
        ("https://github.com/core/app/issues/5", {"git.example.com"}, []),
        ("https://git.example.com:8443/core/app/issues/5", {"git.example.com:8443"}, [("core/app", 5)]),
        ("https://git.example.com/core/app/issues/5", {"git.example.com:8443"}, []),
        ("https://git.example.com:8443/core/app/issues/5", {"git.example.com"}, []),
        ("[it](https://github.com/core/app/issues/5)", {"git.example.com"}, []),
        ("core/app/issues/5 and Core/App/pull/6", {"git.example.com"}, [("core/app", 5), ("Core/App", 6)]),
    ],
)
def test_an_issue_on_another_server_is_something_else(text, hosts, found):
    assert targets(text, **({"hosts": frozenset(hosts)} if hosts else {})) == found


def test_marked_text_keeps_length_and_names_the_own_issue_without_case():
    text = "Lumen/Editor#7 and #8 at https://example.org/x end"
    marked = mark_references(text, find_references(text, REPO), REPO, 7)
    assert len(marked) == len(text)
    assert marked.replace(FILL, "") == f"{SELF} and {REF} at {OTHER} end"


def test_a_link_whose_text_is_the_marker_keeps_the_text():
    text = "[Duplicate of #5](https://github.com/lumen/editor/issues/5)"
    (ref,) = find_references(text, REPO)
    assert text[: ref.start] == "[Duplicate of #5]"


@pytest.mark.parametrize("body", cells(OTHERS) + cells(OWN))
def test_what_others_say_is_blanked_and_what_the_writer_says_stays(body):
    assert ("X" in own_words(body)) == (body in cells(OWN))


@given(st.text(alphabet='X`>~<!-\n\r \t"[]()*abdetils/:#\ue000', max_size=200))
def test_offsets_stay(body):
    masked = own_words(body)
    assert len(masked) == len(body)
    assert [sign == "\n" for sign in masked] == [sign == "\n" for sign in body]
