"""What counts as the writer's own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.gis.comments.markdown import own_words

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


def bodies(table):
    cells = [cell for line in table.strip().splitlines() for cell in line.strip().split(" | ")]
    return [cell.replace("\\n", "\n").replace("\\t", "\t") for cell in cells]


@pytest.mark.parametrize("body", bodies(OTHERS))
def test_what_others_say_is_blanked(body):
    masked = own_words(body)
    assert "X" not in masked
    assert len(masked) == len(body)


@pytest.mark.parametrize("body", bodies(OWN))
def test_what_the_writer_says_stays(body):
    assert "X" in own_words(body)


@given(st.text(alphabet='X`>~<!-\n\r \t"[]()*abdetils/:#\ue000', max_size=200))
def test_offsets_stay(body):
    masked = own_words(body)
    assert len(masked) == len(body)
    assert [sign == "\n" for sign in masked] == [sign == "\n" for sign in body]
