"""Later comments correct earlier ones."""

import pytest

from angle_data.gis.comments.reading import read_thread


def said(body, author="maria", association="NONE"):
    return author, association, body


def thread(*comments):
    return read_thread(comments, "lumen/editor", 9000)


def standing(*comments):
    return [link.link.number for link in thread(*comments).standing]


MARK = said("Duplicate of #5")
BACK = said("Sorry, not a dup after all.")


TAKES_BACK = [
    "Sorry, not a dup after all.", "Reopening, this is a separate issue.", "Not a duplicate of #5.",
    "Oops, wrong issue.", "Unmarking as duplicate", "Thanks. Never mind.", "Undoing the duplicate mark (#5).",
    "#5 is fixed in 2.0 and I still see this.",
]  # fmt: skip


@pytest.mark.parametrize("body", TAKES_BACK)
def test_the_writer_takes_a_marker_back(body):
    read = thread(MARK, said(body))
    assert [(link.comment, link.retracted_by) for link in read.links] == [(0, 1)]
    assert read.standing == []
    assert [denial.link.kind for denial in read.denials] in ([], ["duplicate"], ["outlived"])


TAKES_NOTHING_BACK = [
    "Please reopen if this is not a duplicate.", "Thanks, closing.", "Is this not a duplicate?",
    "Not a duplicate of #6.", "Let me know if it turns out to be a separate issue.",
]  # fmt: skip


@pytest.mark.parametrize("body", TAKES_NOTHING_BACK)
def test_what_takes_nothing_back(body):
    assert standing(MARK, said(body)) == [5]


@pytest.mark.parametrize(
    ("comments", "left"),
    [
        ((MARK, said("Not a duplicate of #5 but of #6.")), [6]),
        ((MARK, BACK, said("No, it is: duplicate of #5")), [5]),
        ((said("Duplicate of Acme/Engine#5"), said("not a duplicate of acme/engine#5")), []),
        ((said("Duplicate of #5 and #6"), said("Unmarking as duplicate of #5.")), [6]),
        ((said("Duplicate of #5 and #6"), said("Unmarking as duplicate.")), []),
        ((said("Duplicate of #5", None), said("Sorry, not a dup after all.", None)), [5]),
    ],
)
def test_what_stands_at_the_end(comments, left):
    assert standing(*comments) == left
