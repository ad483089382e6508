"""Which kind of labels training pairs have."""

import random

import numpy as np
import pytest
from train_runs import pair_set, write

from angle_train.data.kinds import kind_of, nearness_of_negatives
from angle_train.data.pairs import join, load_pairs


def pairs_of(scores, supervision=None):
    texts = [f"text {i}" for i in range(len(scores))]
    return pair_set(list(zip(texts, texts[::-1], strict=True)), scores, supervision=supervision)


def many(**counts):
    """Pairs with so many of each kind of supervision, and a score of its own for each pair."""
    names = [name for name, count in counts.items() for _ in range(count)]
    return pairs_of(np.linspace(0, 1, len(names)), names)


LLM = ["polarity", "polarity", "random"]


@pytest.mark.parametrize(
    ("pairs", "kind", "why"),
    [
        (pairs_of([1.0, 0.5, 0.0], LLM), "polarity", "2 polarity, 1 random"),
        (pairs_of([1.0, 0.0, 0.0], LLM), "polarity", "2 polarity, 1 random"),
        (
            pairs_of([1.0, 0.8, 0.4, 0.2], [*LLM, "polarity"]),
            "degrees",
            "3 polarity, 1 random, with 4 scores",
        ),
        (many(degrees=1500, random=300), "degrees", "1,500 degrees, 300 random"),
        (many(grades=9, random=2), "graded", "9 grades, 2 random"),
        (many(degrees=1500, grades=1424, random=300), "mixed", "1,500 degrees, 1,424 grades, 300 random"),
        (many(degrees=900, polarity=99), "degrees", "900 degrees, 99 polarity"),
        (many(polarity=90, degrees=11), "mixed", "90 polarity, 11 degrees"),
        (many(degrees=5, human=4), "degrees", "5 degrees, 4 human"),
        (many(weak=5, strong=4), "graded", "9 pairs have 9 scores"),  # of which nothing is known
        (pairs_of([1.0, 0.0, 1.0]), "binary", "3 pairs have two scores"),
        (pairs_of([0.2, 0.8, 1.0]), "graded", "3 pairs have 3 scores"),
        (pairs_of([1.0, 1.0]), "positives", "all 2 pairs have one score"),
        # The majority decides: few graded pairs beside an LLM's, few of an LLM beside graded ones.
        (pairs_of([1.0, 0.5, 0.0, 0.3, 0.7], [*LLM, "", ""]), "polarity", "2 that do not say, 1 random"),
        (pairs_of([1.0, 0.5, 0.0, 0.3, 0.7, 0.1], [*LLM, "", "", ""]), "graded", "6 pairs have 6 scores"),
    ],
)
def test_pairs_tell_the_kind_of_their_labels(pairs, kind, why):
    found, reason = kind_of(pairs)
    assert found == kind
    assert why in reason


PAIRS = [
    ("the pump lost power on monday", "power failed at the pump on monday"),
    ("a new mayor was elected in spring", "in spring the town elected a mayor"),
    ("red lorry blocks the northern road", "the northern road is blocked by a red lorry"),
    ("cheap flights to rome sold out", "flights to rome that are cheap sold out"),
]


@pytest.mark.parametrize(
    ("negatives", "kind"),
    [
        # Nearly the words of the positives, as in MRPC or PAWS.
        ([(a, a.replace(a.split()[1], "other")) for a, _ in PAIRS], "near_misses"),
        # Another pair's text.
        ([(a, PAIRS[i - 1][1]) for i, (a, _) in enumerate(PAIRS)], "binary"),
    ],
)
@pytest.mark.parametrize("copies", [10, 500])
def test_binary_labels_whose_negatives_are_near_misses_take_the_cosine_term_alone(negatives, kind, copies):
    rows = [*PAIRS, *negatives] * copies
    pairs = pair_set(rows, ([1] * len(PAIRS) + [0] * len(negatives)) * copies)
    assert kind_of(pairs)[0] == kind
    said = f"beyond chance, the lower share {nearness_of_negatives(pairs):.0%} as many words as the higher"
    assert (said in kind_of(pairs)[1]) == (kind == "near_misses")


def test_a_handful_of_near_misses_decides_nothing():
    near = [(a, a.replace(a.split()[1], "other")) for a, _ in PAIRS] * 8
    for few, kind in ((28, "binary"), (30, "near_misses")):
        assert kind_of(pair_set(PAIRS * 100 + near[:few], [1] * (100 * len(PAIRS)) + [0] * few))[0] == kind


def test_words_that_say_nothing_leave_binary_labels_binary():
    dice = random.Random(0)
    for size in (60, 200, 2000):
        texts = [[" ".join(dice.choices("abcdefghij", k=6)) for _ in range(2)] for _ in range(size)]
        pairs = pair_set(texts, [dice.randrange(2) for _ in range(size)])
        assert nearness_of_negatives(pairs) == 0
        assert kind_of(pairs)[0] == "binary"


@pytest.mark.parametrize("column", ["supervision", "polarity"])
def test_supervision_is_read_with_the_pairs_and_kept(tmp_path, column):
    values = {"supervision": LLM, "polarity": ["synonym", "antonym", "random"]}[column]
    rows = [
        {"text1": f"a{i}", "text2": f"b{i}", "score": score, column: value}
        for i, (score, value) in enumerate(zip([1.0, 0.5, 0.0, 1.0], [*values, None], strict=True))
    ]
    pairs = load_pairs(write(tmp_path / "llm.jsonl", rows))
    assert pairs.supervision == [*LLM, ""]
    assert pairs.take([2, 0], "two").supervision == ["random", "polarity"]
    others = pairs_of([0.0, 1.0])
    assert join([others, pairs]).supervision == ["", "", *LLM, ""]
    assert join([others, others]).supervision is None


def test_people_and_llms_have_a_scale_each_and_random_pairs_are_the_low_end_of_both():
    pairs = pairs_of([1.0, 0.5, 0.0, 0.3], ["degrees", "human", "random", "grades"])
    one, two, low, again = pairs.scales()
    assert low == 0
    assert 0 not in (one, two)
    assert one == again != two
    # With one kind all are compared, and the run is that of the same pairs without the column.
    for supervision in (
        None,
        ["grades"] * 3,
        ["random"] * 3,
        LLM,
        ["grades", "degrees", "polarity"],
        ["", "random", ""],
    ):
        same = pairs_of([1.0, 0.5, 0.0], supervision)
        assert same.scales() == [1, 1, 1]
        assert same.sha256() == pairs_of([1.0, 0.5, 0.0]).sha256()
    two = pairs_of([1.0, 0.5, 0.0], ["degrees", "human", "random"])
    assert two.sha256() != pairs_of([1.0, 0.5, 0.0]).sha256()
