"""When to stop: what is chosen from what the runs on parts of the graded pairs measured."""

import numpy as np
import pytest

from angle_train.train.choosing import FoldCurve, choose


def curve(backbone, dev):
    return FoldCurve(backbone, dev, [])


def test_a_mean_that_is_clearly_best_over_the_parts_is_chosen():
    curves = [curve(0.1, [[0.2, 0.3], [0.9, 0.1]]), curve(0.3, [[0.4, 0.5], [0.2, 0.2], [9.0, 9.0]])]
    choice = choose(curves)  # the last evaluation is missing in the first part
    assert (choice.evaluation, choice.share) == (2, 0)
    assert choice.scores == [0.9, 0.2]
    assert choice.mean == pytest.approx(0.55)
    assert choice.spread == pytest.approx(np.std([0.9, 0.2], ddof=1))


@pytest.mark.parametrize(
    ("parts", "evaluation", "best"),
    [
        ([[0.6, 0.5], [0.6, 0.5], [0.6, 0.5]], 1, 1),  # worse by 0.1 everywhere
        ([[0.6, 0.5], [0.6, 0.5], [0.6, 0.69]], 2, 1),  # 0.0033 worse, and its error is 0.063
        ([[0.6, 0.5], [0.6, 0.5], [0.6, 0.6]], 1, 1),  # 0.067 worse, and its error is 0.033
        ([[0.6, 0.6], [0.6, 0.6], [0.6, 0.6]], 2, 1),  # the same everywhere
        ([[0.9, 0.2], [0.3, 0.2], [0.3, 0.2]], 1, 1),  # 0.3 worse, error 0.2, though, below the backbone
        ([[0.5, 0.6], [0.5, 0.6], [0.5, 0.6]], 2, 2),
    ],
)
def test_the_last_evaluation_within_an_error_of_the_best_is_chosen(parts, evaluation, best):
    choice = choose([curve(0.25, [[score] for score in part]) for part in parts])
    assert (choice.evaluation, choice.best) == (evaluation, best)
    assert choice.scores == [part[evaluation - 1] for part in parts]


def test_what_is_near_the_best_but_below_the_backbone_is_not_chosen():
    parts = [[0.9, 0.2], [0.3, 0.3], [0.3, 0.3]]  # 0.233 worse, error 0.233
    chosen = [choose([curve(b, [[score] for score in part]) for part in parts]) for b in (0.2, 0.3)]
    assert [choice.evaluation for choice in chosen] == [2, 1]


def test_the_share_is_chosen_too_and_the_backbone_may_win():
    assert choose([curve(0.0, [[0.1, 0.4]]), curve(0.0, [[0.1, 0.2]])]).share == 1
    assert choose([curve(0.5, [[0.5]]), curve(0.4, [[0.4]])]).evaluation == 0
