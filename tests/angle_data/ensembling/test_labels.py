import pytest

from angle_data.ensembling.given import GivenPair
from angle_data.ensembling.labels import label_choice, label_given, random_pairs
from angle_data.ensembling.read import Source
from angle_data.ensembling.scale import Scale
from angle_data.ensembling.strategies import Choice
from angle_data.records import Candidate, LabelledPair
from angle_data.text import normalise, pair_key


def source(text, number=1):
    return Source(normalise(text), f"t{number}", text, ())


def test_a_row_has_text_and_id_of_the_source_and_the_weight_of_the_choice():
    """What labels and scores are made of degrees and polarities, whole builds show."""
    candidate = Candidate("t9", "the Disk is full", "antonym", "No space left.", "b", "k")
    choice = Choice(source("The disk is full."), candidate, ("a", "b"), 0.7, ("near_copy",))
    assert label_choice(choice, labels="ordinal", antonym_score=0.3) == LabelledPair(
        "The disk is full.", "No space left.", 0, 0.3, 0.7, "antonym", "t1",
        ["a", "b"], ["near_copy"], "polarity",
    )  # fmt: skip


@pytest.mark.parametrize(("grade", "label"), [(5.0, 1), (4.0, 1), (3.5, 0)])
def test_a_given_pair_has_the_score_of_its_grade(grade, label):
    pair = GivenPair("The disk is full.", "No space left.", "near")
    scale = Scale([], [pair], {pair.key: {"x": grade}}, antonym_score=0.5)
    found = label_given(pair, "t1", labels="graded", scale=scale)
    assert 0.8 < found.weight < 1
    assert found == LabelledPair(
        pair.text1, pair.text2, label, grade / 5, found.weight, "", "t1", [], ["near"], "grades"
    )
    assert label_given(pair, "t1", labels="binary", scale=scale).score == label


SOURCES = [
    source(text, number)
    for number, text in enumerate(
        [
            "The disk of the build host is full.",
            "The disk of the test host is full.",  # shares 6 of 8 words with the first
            "Queue depth passed two million.",
            "Failover took eleven minutes.",
        ]
    )
]


def test_random_pairs_label_and_skip_what_is_alike():
    pairs = random_pairs(SOURCES, per_source=3, seed=0, taken=())
    assert {(p.label, p.score, p.weight, p.polarity, p.supervision) for p in pairs} == {
        (0, 0.0, 1.0, "random", "random")
    }
    keys = [pair_key(p.text1, p.text2) for p in pairs]
    # Of the six unordered pairs of four texts, one is too much alike; none is drawn twice.
    assert len(keys) == len(set(keys)) == 5
    assert pair_key(SOURCES[0].text, SOURCES[1].text) not in keys
    assert all(p.source_id == next(s.id for s in SOURCES if s.text == p.text1) for p in pairs)


def test_random_pairs_leave_out_pairs_that_are_taken():
    two = [SOURCES[2], SOURCES[3]]
    assert len(random_pairs(two, per_source=1, seed=0, taken=())) == 1
    taken = {pair_key("failover took ELEVEN minutes", "Queue depth passed two million")}
    assert random_pairs(two, per_source=1, seed=0, taken=taken) == []


def test_random_pairs_depend_on_the_seed_but_not_on_the_order():
    many = [source(f"alpha{i} beta{i} gamma{i}", i) for i in range(12)]
    drawn = {seed: random_pairs(many, per_source=1, seed=seed, taken=()) for seed in range(4)}
    assert len({tuple(p.text2 for p in pairs) for pairs in drawn.values()}) == 4
    assert random_pairs(many[::-1], per_source=1, seed=2, taken=()) == drawn[2]


def test_random_pairs_are_found_beyond_a_long_row_of_texts_that_are_alike():
    alike = [source(f"The disk of host {i} is full again.", i) for i in range(400)]
    others = [source(f"under{i} vault{i} water{i}", i) for i in range(400)]
    pairs = random_pairs(alike + others, per_source=1, seed=0, taken=())
    assert len(pairs) == 800
