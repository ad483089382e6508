from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.ensembling.read import NO_GRADES, group_by_source
from angle_data.ensembling.screen import REASONS
from angle_data.ensembling.strategies import STRATEGIES, concat, load_strategy, vote
from angle_data.records import Candidate
from angle_data.text import pair_key

SOURCE = "The disk of the build host is full."


def candidate(text, polarity="synonym", model="a", source=SOURCE):
    return Candidate("t1", source, polarity, text, model, f"{model}-{polarity}")


def kept(outcome):
    return sorted((c.candidate.polarity, c.candidate.text, c.models) for c in outcome.kept)


def dropped(outcome):
    return sorted((r.reason, r.model, r.text) for r in outcome.dropped)


CANDIDATES = [
    candidate("No space is left on the build host.", model="a"),
    candidate("no space is left on the build host", model="b"),
    candidate("The build host has free space.", "antonym", "a"),
    candidate("The disk of the build host is not full.", "antonym", "b"),
    candidate("The build host has free space", "synonym", "c"),  # swapped: a says antonym
    candidate("Sentence 1", "synonym", "c"),
]


def test_concat_keeps_all_that_pass_the_gate_and_each_pair_once():
    outcome = concat(group_by_source(CANDIDATES))
    assert kept(outcome) == [
        ("antonym", "The build host has free space.", ("a",)),
        ("antonym", "The disk of the build host is not full.", ("b",)),
        ("synonym", "No space is left on the build host.", ("a", "b")),
        ("synonym", "The build host has free space", ("c",)),  # the contradiction stays
    ]
    assert dropped(outcome) == [
        ("duplicate", "b", "no space is left on the build host"),
        ("placeholder", "c", "Sentence 1"),
    ]
    assert {c.weight for c in outcome.kept} == {1.0}


def test_vote_drops_both_sides_of_an_undecided_contradiction():
    outcome = vote(group_by_source(CANDIDATES))
    assert kept(outcome) == [
        ("antonym", "The disk of the build host is not full.", ("b",)),
        ("synonym", "No space is left on the build host.", ("a", "b")),
    ]
    assert dropped(outcome) == [
        ("conflict", "a", "The build host has free space."),
        ("conflict", "c", "The build host has free space"),
        ("duplicate", "b", "no space is left on the build host"),
        ("placeholder", "c", "Sentence 1"),
    ]


def test_vote_follows_the_majority():
    outcome = vote(
        group_by_source([*CANDIDATES, candidate("The build host has free space!", "antonym", "b")])
    )
    assert ("antonym", "The build host has free space.", ("a", "b")) in kept(outcome)
    assert ("conflict", "c", "The build host has free space") in dropped(outcome)


def test_vote_weighs_by_reliability_and_support():
    outcome = vote(group_by_source(CANDIDATES))
    weights = {c.candidate.text: c.weight for c in outcome.kept}
    # b: 2 of 2 pass, (2 + 4) / (2 + 5) = 0.8571. a is as reliable: 0.8571 + 0.1 for the second supporter.
    assert weights == {
        "The disk of the build host is not full.": 0.8571,
        "No space is left on the build host.": 0.9571,
    }


def test_vote_drops_an_off_topic_reply_and_trusts_its_annotator_less():
    sources = ["The disk is full.", "The queue is empty.", "The node is down."]
    rows = [candidate(f"Update: {s}", "synonym", model, s) for s in sources for model in "ab"]
    rows[-1] = candidate("Pizza tastes better on Fridays.", "synonym", "b", sources[-1])
    outcome = vote(group_by_source(rows))
    assert dropped(outcome)[-1] == ("off_topic", "b", "Pizza tastes better on Fridays.")
    assert len(concat(group_by_source(rows)).kept) == len(outcome.kept) + 1
    weights = {c.models: c.weight for c in outcome.kept}
    # a: (3 + 4) / (3 + 5) = 0.875. b: (2 + 4) / (3 + 5) = 0.75. Both: 0.8125 + 0.1.
    assert weights == {("a",): 0.875, ("a", "b"): 0.9125}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_near_copies_are_flagged_not_dropped(name):
    rows = [
        candidate("The disk of the build host is not full.", "antonym"),
        candidate("Plenty of space remains where we compile.", "antonym"),
        candidate("The disk of our build host is full.", "synonym"),  # as near, but a synonym
    ]
    outcome = load_strategy(name)(group_by_source(rows), NO_GRADES)
    assert {c.candidate.text for c in outcome.kept if c.flags == ("near_copy",)} == {rows[0].text}
    assert len(outcome.kept) == 3


ODD = ("", "Sentence 1", "Диск полон", "x" * 80)
TEXTS = st.sampled_from(["Disk full.", "disk full", "Queue empty", "No space.", "Disk not full.", *ODD])
ROWS = st.lists(
    st.builds(
        Candidate,
        source_id=st.sampled_from(["1", "2"]),
        source=TEXTS,
        polarity=st.sampled_from(["synonym", "antonym"]),
        text=TEXTS,
        model=st.sampled_from(["a", "b", "c"]),
        key=st.sampled_from(["k1", "k2"]),
    ),
    max_size=30,
)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@given(rows=ROWS, data=st.data())
def test_every_candidate_is_kept_or_dropped_once_in_any_order(name, rows, data):
    keys = sorted({pair_key(row.source, row.text) for row in rows})
    grades = {
        key: {"judge": data.draw(st.floats(0, 5)), "a": 1.0} for key in keys if data.draw(st.booleans())
    }
    outcome = load_strategy(name)(group_by_source(rows), grades)
    accounted = [asked(c) for c in outcome.kept]
    accounted += [Candidate(*list(r.to_dict().values())[:6]) for r in outcome.dropped]
    assert Counter(accounted) == Counter(rows)
    assert {r.reason for r in outcome.dropped} <= REASONS.keys()
    assert all(0 < c.weight <= 1 for c in outcome.kept)
    assert load_strategy(name)(group_by_source(data.draw(st.permutations(rows))), grades) == outcome


def asked(choice):
    """The candidate as it was offered: a flipped one has the other polarity."""
    if "flipped" not in choice.flags:
        return choice.candidate
    return replace(
        choice.candidate, polarity="antonym" if choice.candidate.polarity == "synonym" else "synonym"
    )


@pytest.mark.parametrize("name", ["principled", "vote"])
@given(rows=ROWS)
def test_no_pair_is_kept_twice_or_with_both_polarities(name, rows):
    kept_pairs = load_strategy(name)(group_by_source(rows), NO_GRADES).kept
    pairs = Counter(pair_key(c.source.text, c.candidate.text) for c in kept_pairs)
    assert all(count == 1 for count in pairs.values())
