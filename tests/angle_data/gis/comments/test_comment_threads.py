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


@pytest.mark.parametrize(
    "body",
    [
        "Sorry, not a dup after all.",
        "Reopening, this is a separate issue.",
        "Not a duplicate of #5.",
        "Oops, wrong issue.",
        "Actually this isn't a duplicate, reopening",
        "Unmarking as duplicate",
        "Unmarking as duplicate of #5",
        "Undoing the duplicate mark (#5).",
    ],
)
def test_the_writer_takes_a_marker_back(body):
    read = thread(MARK, said(body))
    assert [(link.comment, link.retracted_by) for link in read.links] == [(0, 1)]
    assert read.standing == []


@pytest.mark.parametrize(
    "body",
    [
        "Please reopen if this is not a duplicate.",
        "Thanks, closing.",
        "Is this not a duplicate?",
        "Not a duplicate of #6.",
        "Let me know if it turns out to be a separate issue.",
    ],
)
def test_what_takes_nothing_back(body):
    assert standing(MARK, said(body)) == [5]


def test_a_correction_moves_the_link():
    assert standing(MARK, said("Not a duplicate of #5 but of #6.")) == [6]


def test_a_stranger_disputes_and_a_maintainer_retracts():
    (disputed,) = thread(MARK, *[said("This is not a duplicate of #5!", author="jon")] * 2).links
    assert (disputed.retracted_by, disputed.disputed_by) == (None, 1)
    (retracted,) = thread(MARK, said("This is not a duplicate of #5!", "jon", "MEMBER")).links
    assert retracted.retracted_by == 1


def test_deleted_accounts_are_not_the_same_writer():
    (link,) = thread(said("Duplicate of #5", None), said("Sorry, not a dup after all.", None)).links
    assert link.retracted_by is None


def test_marking_again_links_again():
    assert standing(MARK, said("Sorry, not a dup after all."), said("No, it is: duplicate of #5")) == [5]


def test_targets_compare_without_case():
    assert standing(said("Duplicate of Acme/Engine#5"), said("not a duplicate of acme/engine#5")) == []


def test_denials_are_kept_for_explicit_non_duplicates():
    read = thread(said("This is not a duplicate of #7."))
    assert [(denial.link.number, denial.comment) for denial in read.denials] == [(7, 0)]


def test_an_issue_that_is_fixed_while_this_one_still_happens_is_denied_as_outlived():
    read = thread(MARK, said("#5 is fixed in 2.0 and I still see this."))
    assert (read.standing, [denial.link.kind for denial in read.denials]) == ([], ["outlived"])


def test_a_withdrawal_with_a_target_cancels_that_one_only():
    marks = said("Duplicate of #5 and #6")
    assert standing(marks, said("Unmarking as duplicate of #5.")) == [6]
    assert standing(marks, said("Duplicate mark removed again: scratch what I said about #6.")) == [5]
    assert standing(marks, said("Unmarking as duplicate.")) == []
