from collections import Counter
from dataclasses import replace

import pytest
from ensembles import outcome_of
from hypothesis import given
from hypothesis import strategies as st

from angle_data.ensembling.config import STRATEGIES
from angle_data.ensembling.labels import random_pairs
from angle_data.ensembling.read import Source, offers_of
from angle_data.ensembling.screen import REASONS, merge
from angle_data.ensembling.strategies import MARGIN, Choice, Outcome, cap, winner
from angle_data.records import Candidate
from angle_data.text import normalise, pair_key

SOURCE = "The disk of the build host is full."


def candidate(text, polarity="synonym", model="a", source=SOURCE):
    return Candidate("t1", source, polarity, text, model, f"{model}-{polarity}")


def source(text, number=1):
    return Source(normalise(text), f"t{number}", text)


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


LOST = [("duplicate", "b", "no space is left on the build host"), ("placeholder", "c", "Sentence 1")]


def test_concat_keeps_all_that_pass_the_gate_and_each_pair_once():
    outcome = outcome_of("concat", CANDIDATES)
    assert kept(outcome) == [
        ("antonym", "The build host has free space.", ("a",)),
        ("antonym", "The disk of the build host is not full.", ("b",)),
        ("synonym", "No space is left on the build host.", ("a", "b")),
        ("synonym", "The build host has free space", ("c",)),  # the contradiction stays
    ]
    assert dropped(outcome) == LOST
    assert {c.weight for c in outcome.kept} == {1.0}


def test_vote_drops_both_sides_of_a_contradiction_and_weighs_by_reliability_and_support():
    outcome = outcome_of("vote", CANDIDATES)
    assert kept(outcome) == [
        ("antonym", "The disk of the build host is not full.", ("b",)),
        ("synonym", "No space is left on the build host.", ("a", "b")),
    ]
    assert dropped(outcome) == [
        ("conflict", "a", "The build host has free space."),
        ("conflict", "c", "The build host has free space"),
        *LOST,
    ]
    # b: 2 of 2 pass, (2 + 4) / (2 + 5) = 0.8571. a is as reliable: 0.8571 + 0.1 for the second supporter.
    assert {c.candidate.text: c.weight for c in outcome.kept} == {
        "The disk of the build host is not full.": 0.8571,
        "No space is left on the build host.": 0.9571,
    }


def test_vote_follows_the_majority():
    more = candidate("The build host has free space!", "antonym", "b")
    outcome = outcome_of("vote", [*CANDIDATES, more])
    assert ("antonym", "The build host has free space.", ("a", "b")) in kept(outcome)
    assert ("conflict", "c", "The build host has free space") in dropped(outcome)


def test_vote_drops_an_off_topic_reply_and_trusts_its_annotator_less():
    sources = ["The disk is full.", "The queue is empty.", "The node is down."]
    rows = [candidate(f"Update: {s}", "synonym", model, s) for s in sources for model in "ab"]
    rows[-1] = candidate("Pizza tastes better on Fridays.", "synonym", "b", sources[-1])
    outcome = outcome_of("vote", rows)
    assert dropped(outcome)[-1] == ("off_topic", "b", "Pizza tastes better on Fridays.")
    assert len(outcome_of("concat", rows).kept) == len(outcome.kept) + 1
    weights = {c.models: c.weight for c in outcome.kept}
    # a: (3 + 4) / (3 + 5) = 0.875. b: (2 + 4) / (3 + 5) = 0.75. Both: 0.8125 + 0.1.
    assert weights == {("a",): 0.875, ("a", "b"): 0.9125}
    # With another sentence of the same reply the stray one condemns nothing: a reply is judged by its best.
    rows.append(candidate("Down is the node!", "synonym", "b", sources[-1]))
    assert {reason for reason, *_ in dropped(outcome_of("vote", rows))} == {"duplicate"}


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("disk4 p q r", []),  # a quarter of its words is its source's, usual is half
        ("storage4 p q r", []),  # or another annotator's
        ("disk4 p q r u v w x", ["off_topic"]),  # an eighth
    ],
)
def test_a_reply_is_off_topic_far_below_what_is_usual_for_its_annotator(text, lost):
    said = ["full0 disk0", "disk1 p", "disk2 p", "disk3 p", text]
    rows = [candidate(text, "synonym", "b", f"disk{i} full{i}") for i, text in enumerate(said)]
    rows += [candidate(f"storage{i} gone{i}", "synonym", "a", f"disk{i} full{i}") for i in range(5)]
    assert [reason for reason, *_ in dropped(outcome_of("vote", rows))] == lost


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_near_copies_are_flagged_not_dropped(name):
    rows = [
        candidate("The disk of the build host is not full.", "antonym"),
        candidate("Plenty of space remains where we compile.", "antonym"),
        candidate("The disk of our build host is full.", "synonym"),  # as near, but a synonym
    ]
    outcome = outcome_of(name, rows)
    assert {c.candidate.text for c in outcome.kept if c.flags == ("near_copy",)} == {rows[0].text}
    assert len(outcome.kept) == 3


ODD = ("", "Sentence 1", "Диск полон", "x" * 80)
TEXTS = st.sampled_from(["Disk full.", "disk full", "Queue empty", "No space.", "Disk not full.", *ODD])
NAMES = {"source_id": "12", "model": "abc", "key": ["k1", "k2"], "polarity": ["synonym", "antonym"]}
FIELDS = {name: st.sampled_from(values) for name, values in NAMES.items()} | {"source": TEXTS, "text": TEXTS}
ROWS = st.lists(st.builds(Candidate, **FIELDS), max_size=30)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@given(rows=ROWS, data=st.data())
def test_every_candidate_is_kept_or_dropped_once_in_any_order(name, rows, data):
    keys = sorted({pair_key(row.source, row.text) for row in rows})
    judged = [key for key in keys if data.draw(st.booleans())]
    grades = {key: {"judge": data.draw(st.floats(0, 5)), "a": 1.0} for key in judged}
    outcome = outcome_of(name, rows, grades)
    accounted = [asked(c) for c in outcome.kept]
    accounted += [Candidate(*list(r.to_dict().values())[:6]) for r in outcome.dropped]
    assert Counter(accounted) == Counter(rows)
    assert {r.reason for r in outcome.dropped} <= REASONS.keys()
    assert all(0 < c.weight <= 1 for c in outcome.kept)
    assert outcome_of(name, data.draw(st.permutations(rows)), grades) == outcome


def asked(choice):
    """The candidate as it was offered: a flipped one has the other polarity."""
    if "flipped" not in choice.flags:
        return choice.candidate
    other = {"synonym": "antonym", "antonym": "synonym"}
    return replace(choice.candidate, polarity=other[choice.candidate.polarity])


@pytest.mark.parametrize("name", ["principled", "vote"])
@given(rows=ROWS)
def test_no_pair_is_kept_twice_or_with_both_polarities(name, rows):
    kept_pairs = outcome_of(name, rows).kept
    pairs = Counter(pair_key(c.source.text, c.candidate.text) for c in kept_pairs)
    assert all(count == 1 for count in pairs.values())


def test_merge_does_not_join_opposites_that_differ_by_one_token():
    sentence = "Multi-factor authentication is {} for every account in the production system since Monday."
    on = candidate(sentence.format("enabled"), "synonym", source="MFA is on.")
    off = candidate(sentence.format("disabled"), "antonym", "b", "MFA is on.")
    pairs = merge(offers_of([on, off]))
    assert [(len(pair.synonyms), len(pair.antonyms)) for pair in pairs] == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("synonym", "antonym", "expected"),
    [
        ("a", "", "synonym"),
        ("", "a", "antonym"),
        ("a", "b", None),  # 0.9 against 0.9
        ("ab", "c", "synonym"),  # 1.8 against 0.4
        ("c", "a", None),  # 0.4 against 0.9: a lead of exactly the margin does not win
        ("d", "a", "antonym"),  # 0.3 against 0.9
        ("a", "a", None),  # contradicts itself
        ("ab", "bc", None),  # b on both sides: 0.9 against 0.4
        ("d", "", "synonym"),  # undisputed, however unreliable
        ("dd", "d", None),  # saying it twice is no second vote
        ("ccc", "a", None),  # nor a third: 0.4 against 0.9
    ],
)
def test_winner_needs_a_margin_when_annotators_disagree(synonym, antonym, expected):
    reliability = {"a": 0.9, "b": 0.9, "c": 0.4, "d": 0.3}
    rows = [candidate("No space left.", "synonym", model) for model in synonym]
    rows += [candidate("No space left.", "antonym", model) for model in antonym]
    (pair,) = merge(offers_of(rows))
    assert MARGIN == 0.5
    assert winner(pair, reliability) == expected


def choice(text, models, weight):
    return Choice(source(SOURCE), candidate(text, model=models[0]), tuple(models), weight)


def test_a_cap_prefers_support_then_weight():
    kept = [*(choice(f"a{i}", "a", 0.5 + i / 10) for i in range(5)), choice("ab", "ab", 0.4)]
    outcome = Outcome(list(kept))
    cap(outcome, 3, seed=0)
    assert [c.candidate.text for c in outcome.kept] == ["a3", "a4", "ab"]
    assert [rejection.reason for rejection in outcome.dropped] == ["capped"] * 3


SOURCES = [
    source("The disk of the build host is full.", 0),
    source("The disk of the test host is full.", 1),  # shares 6 of 8 words with the first
    source("Queue depth passed two million.", 2),
    source("Failover took eleven minutes.", 3),
]


def test_random_pairs_label_and_skip_what_is_alike():
    pairs = random_pairs(SOURCES, per_source=3, seed=0, taken=())
    found = {(p.label, p.score, p.weight, p.polarity, p.supervision) for p in pairs}
    assert found == {(0, 0.0, 1.0, "random", "random")}
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
