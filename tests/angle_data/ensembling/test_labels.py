from angle_data.ensembling.labels import random_pairs
from angle_data.ensembling.read import Source
from angle_data.text import normalise, pair_key


def source(text, number=1):
    return Source(normalise(text), f"t{number}", text, ())


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


def test_random_pairs_are_found_beyond_a_long_row_of_texts_that_are_alike():
    alike = [source(f"The disk of host {i} is full again.", i) for i in range(400)]
    others = [source(f"under{i} vault{i} water{i}", i) for i in range(400)]
    pairs = random_pairs(alike + others, per_source=1, seed=0, taken=())
    assert len(pairs) == 800
