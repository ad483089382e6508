import pytest

from angle_data.ensemble.agreement import (
    annotator_matrix,
    cohen_kappa,
    grader_table,
    krippendorff_alpha,
    verdict_matrix,
)
from angle_data.ensemble.beliefs import Beliefs
from angle_data.ensemble.graders import Shape
from angle_data.ensemble.network import Claim, Item
from angle_data.records import Polarity


def item(claims: str, **grades: float) -> Item:
    made = []
    for number, text in enumerate(claims.split()):
        polarity: Polarity = "synonym" if text[1] == "+" else "antonym"
        made.append(Claim(text[0], polarity, f"r{number}"))
    return Item("s", tuple(sorted(made)), grades)


def beliefs(*graders: str) -> Beliefs:
    """Graders for whom 3 and more speaks for a synonym, 2 and less for an antonym, and 2.5 for nothing."""
    scores = {0.0: -1.0, 1.0: -0.5, 2.0: -0.2, 2.5: 0.0, 3.0: 0.2, 4.0: 0.5, 5.0: 1.0}
    shapes = {g: Shape(0.6, -0.6, 0.5) for g in graders}
    return Beliefs([], {}, shapes, dict.fromkeys(graders, scores), 0.0, 0.0, 1)


def test_annotator_matrix_counts_shared_pairs() -> None:
    items = [item("a+ b+"), item("a+ b+ c-"), item("a- a+"), item("c-"), item("a+ a+ b+")]
    matrix = annotator_matrix(items)
    assert matrix["a"]["b"] == matrix["b"]["a"] == {"same": 3, "contradicting": 0}
    assert matrix["a"]["c"] == matrix["c"]["b"] == {"same": 0, "contradicting": 1}
    assert matrix["a"]["a"] == {"same": 0, "contradicting": 1}  # both polarities of one pair
    assert matrix["c"]["c"] == {"same": 0, "contradicting": 0}


def test_annotator_matrix_counts_a_pair_once_though_one_side_says_both() -> None:
    assert annotator_matrix([item("a+ b+ b-")])["a"]["b"] == {"same": 0, "contradicting": 1}


def test_grader_table() -> None:
    items = [item("a+", g=5.0), item("a+ b+", g=1.0), item("b-", g=0.0), item("b-", g=2.5), item("b-")]
    assert grader_table(items, beliefs("g")) == {
        "g": {
            # 5 is above 0 and 2.5; 1 (twice, for both annotators) above 0 only: 4 of 6.
            "auc": 0.6667,
            "mean_synonym": 2.3333,
            "mean_antonym": 1.25,
            "accepts": {
                "a": {"graded": 2, "accepted": 1, "rate": 0.5},
                "b": {"graded": 3, "accepted": 1, "rate": 0.3333},  # 2.5 is no verdict
            },
        }
    }


def test_verdict_matrix() -> None:
    rows = [(5, 4), (4, 1), (0, 1), (1, 0)]
    items = [item("a+", g=float(one), h=float(other)) for one, other in rows] + [item("a+", g=5.0)]
    # Verdicts ++, +-, --, --: agreed 3/4, by chance (2/4)(1/4) + (2/4)(3/4) = 1/2, kappa 1/2.
    cell = {"pairs": 4, "kappa": 0.5}
    assert verdict_matrix(items, beliefs("g", "h")) == {"g": {"h": cell}, "h": {"g": cell}}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({("x", "x"): 20, ("x", "y"): 5, ("y", "x"): 10, ("y", "y"): 15}, 0.4),  # a worked textbook example
        ({("x", "x"): 5, ("y", "y"): 5}, 1.0),
        ({("x", "x"): 5}, None),
        ({}, None),
    ],
)
def test_cohen_kappa(counts: dict[tuple[str, str], int], expected: float | None) -> None:
    assert cohen_kappa(counts) == (None if expected is None else pytest.approx(expected))


def test_krippendorff_alpha_of_the_published_example() -> None:
    """Krippendorff 2011, section C, four observers, 12 units, missing values: interval alpha 0.849."""
    rows = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    columns = zip(*(row.split() for row in rows), strict=True)
    units = [[float(value) for value in column if value != "."] for column in columns]
    assert krippendorff_alpha(units) == pytest.approx(0.849, abs=0.0005)


def test_krippendorff_alpha_undefined() -> None:
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([[1.0], [2.0]]) is None
    assert krippendorff_alpha([[2.0, 2.0], [2.0, 2.0]]) is None
