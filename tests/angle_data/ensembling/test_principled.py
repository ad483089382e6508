import random
from collections import Counter
from dataclasses import replace

import pytest
from ensembles import outcome_of

from angle_data.records import Candidate
from angle_data.text import pair_key

OTHER = {"synonym": "antonym", "antonym": "synonym"}


@pytest.fixture
def half(corpus):
    """Half of the demo corpus."""
    return [row for row in corpus if int(row.source_id[1:]) <= 180]


def normal(is_synonym, rng):
    """AUC 0.9: normal grades, 1.81 standard deviations apart, squeezed into 0..5."""
    return min(5.0, max(0.0, 2.5 + 0.7 * ((1.81 if is_synonym else -1.81) / 2 + rng.gauss(0, 1))))


def whole_numbers(is_synonym, rng):
    """AUC 0.93: as an LLM answers, mostly 5 or 0, now and then far off."""
    grade = rng.choices(range(6), (0.03, 0.05, 0.04, 0.08, 0.25, 0.55))[0]
    return float(grade if is_synonym else 5 - grade)


def flip(rows, annotator, share, *, replies):
    """Flip a share of one annotator's polarities; return the rows and the flipped texts.

    Sentence by sentence, each gets a request of its own: nothing tells which were flipped together.
    """
    rng = random.Random(7)
    coins = {}
    out, turned = [], set()
    for row in rows:
        key = row.key if replies else f"{row.key}-{row.text}"
        if coins.setdefault(key, rng.random()) < share and row.model == annotator:
            turned.add(row.text)
            row = replace(row, polarity=OTHER[row.polarity])
        out.append(replace(row, key=key))
    return out, turned


def grade(rows, graders):
    """Grade the corpus as it was before anything was flipped: what was asked for is the truth."""
    rng = random.Random(11)
    truth = {pair_key(row.source, row.text): row.polarity == "synonym" for row in rows}
    return {
        key: {name: judge(is_synonym, rng) for name, judge in graders.items()}
        for key, is_synonym in sorted(truth.items())
    }


def reliability(outcome):
    rates = outcome.details["reliability"].items()
    return {name: sum(s["reliability"] for s in sides.values()) / len(sides) for name, sides in rates}


def flipped(outcome):
    """Texts of annotator b that were flipped."""
    rows = (choice.candidate for choice in outcome.kept if "flipped" in choice.flags)
    return {row.text for row in rows if row.model == "annotator-b"}


def found(outcome):
    """Its texts that were flipped, or dropped because of their polarity."""
    dropped = (r for r in outcome.dropped if (r.reason, r.model) == ("contradicted", "annotator-b"))
    return flipped(outcome) | {row.text for row in dropped}


@pytest.mark.parametrize(
    ("graders", "replies", "precision", "recall"),
    [
        ({"x": normal, "y": normal, "z": normal}, False, 0.9, 0.7),
        ({"annotator-a": whole_numbers, "annotator-c": whole_numbers}, False, 0.85, 0.7),
        ({"x": normal}, True, 0.8, 0.6),
    ],
    ids=["three graders", "two peers", "one grader, whole replies"],
)
def test_flipped_polarities_are_found(half, graders, replies, precision, recall):
    rows, turned = flip(half, "annotator-b", 0.2, replies=replies)
    outcome = outcome_of("principled", rows, grade(half, graders))
    offered = {row.text for row in rows if row.model == "annotator-b"}
    hits = found(outcome)
    assert len(hits & turned) >= precision * len(hits)
    assert len(hits & turned) >= recall * len(turned & offered)
    assert len(flipped(outcome) & turned) >= 0.95 * len(flipped(outcome))
    rates = reliability(outcome)
    assert rates["annotator-b"] < min(rates["annotator-a"], rates["annotator-c"]) - 0.1


@pytest.mark.parametrize("judge", [normal, whole_numbers])
def test_clean_data_are_hardly_touched(half, judge):
    outcome = outcome_of("principled", half, grade(half, {"x": judge}))
    assert sum("flipped" in c.flags for c in outcome.kept) < 0.005 * len(half)
    assert Counter(r.reason for r in outcome.dropped)["contradicted"] < 0.04 * len(half)
    assert min(reliability(outcome).values()) > 0.94


def polarities(outcome):
    return {pair_key(c.source.text, c.candidate.text): c.candidate.polarity for c in outcome.kept}


def test_a_wholly_swapped_annotator_is_turned_round(half):
    rows, _ = flip(half, "annotator-b", 1.0, replies=True)
    outcome = outcome_of("principled", rows, grade(half, {"x": normal, "y": normal, "z": normal}))
    truth = {pair_key(row.source, row.text): row.polarity for row in half}
    wrong = [pair for pair, polarity in polarities(outcome).items() if polarity != truth[pair]]
    assert len(wrong) < 0.01 * len(half)
    assert reliability(outcome)["annotator-b"] < 0.15 < 0.97 < reliability(outcome)["annotator-a"]


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_without_grades_it_keeps_what_the_vote_keeps(half, share):
    rows = flip(half, "annotator-b", share, replies=False)[0]
    outcome = outcome_of("principled", rows)
    assert polarities(outcome) == polarities(outcome_of("vote", rows))
    assert not any("flipped" in choice.flags for choice in outcome.kept)


@pytest.mark.parametrize("high", [0.0, 5.0], ids=["useless", "upside down"])
def test_a_grader_that_tells_nothing_changes_nothing(half, high):
    def poor(is_synonym, rng):
        return rng.uniform(0, 5) if high == 0 else (0.0 if is_synonym else high)

    rows = [row for row in half if row.source_id < "t0060"]
    graded = outcome_of("principled", rows, grade(rows, {"x": poor}))
    assert polarities(graded) == polarities(outcome_of("principled", rows))


def test_copies_of_a_grader_count_for_hardly_more_than_one(half):
    rows, turned = flip(half, "annotator-b", 0.2, replies=False)
    one, apart = (grade(half, dict.fromkeys(names, normal)) for names in ("x", "wxyz"))
    copies = {pair: dict.fromkeys("wxyz", given["x"]) for pair, given in one.items()}
    outcomes = (outcome_of("principled", rows, grades) for grades in (one, copies, apart))
    right = [len(found(outcome) & turned) for outcome in outcomes]
    assert right[1] < 1.05 * right[0] < 0.8 * right[2]


NOUNS = ["disk", "fan", "node", "link", "probe"] * 8
SOURCES = [f"The {noun} of rack {i} is down." for i, noun in enumerate(NOUNS)]


def pairs(*offers):
    """Offers (annotator, polarity, text), "{}" being the source's subject, for every one of the sources."""
    return [
        Candidate(f"t{i}", source, polarity, text.format(source[4:-9]), model, f"{model}-{i}-{polarity}")
        for i, source in enumerate(SOURCES)
        for model, polarity, text in offers
    ]


HONEST = pairs(
    ("a", "synonym", "We lost the {} again."),
    ("a", "antonym", "The {} works as it should."),
    ("b", "synonym", "An outage hit the {} today."),
    ("b", "antonym", "All is well with the {} today."),
)


def judged(rows, odd, seed=1):
    """Two judges that give synonyms 4 or 5 and antonyms 0 or 1; `odd` overrides."""
    rng, usual = random.Random(seed), {"synonym": (4.0, 5.0), "antonym": (0.0, 1.0)}
    return {
        key: {name: odd.get(key, rng.choice(usual[polarity])) for name in ("judge", "jury")}
        for key, polarity in sorted({(pair_key(r.source, r.text), r.polarity) for r in rows})
    }


def test_a_swapped_reply_is_turned_round_and_flagged():
    swapped = replace(HONEST[1], polarity="synonym", key="swapped")  # "works as it should", as a synonym
    other = replace(swapped, text="The disk of rack 0 has never been better.")
    rows = [row for row in HONEST if row != HONEST[1]] + [swapped, other]
    grades = judged(HONEST, {}) | {pair_key(other.source, other.text): {"judge": 0.0, "jury": 0.0}}
    outcome = outcome_of("principled", rows, grades)
    turned = [c for c in outcome.kept if "flipped" in c.flags]
    assert {(c.candidate.text, c.candidate.polarity, c.models) for c in turned} == {
        (swapped.text, "antonym", ("a",)),
        (other.text, "antonym", ("a",)),
    }
    assert outcome.details["flipped"]["a"] == {"synonym_to_antonym": 2, "antonym_to_synonym": 0}
    assert len(outcome.kept) == len(rows)


@pytest.mark.parametrize(("topic", "flipped"), [("March", False), ("the disk", True)])
def test_a_poor_synonym_becomes_an_antonym_only_if_it_is_on_topic(topic, flipped):
    """Its reply is on topic thanks to the other sentence; all judges give it 0."""
    text = f"Invoices for {topic} were paid by wire."
    poor = replace(HONEST[0], text=text)
    grades = judged(HONEST, {}) | {pair_key(poor.source, text): {"judge": 0.0, "jury": 0.0}}
    for number, more in enumerate(("third", "fourth")):
        third = judged(HONEST, {}, number)
        grades = {key: found | {more: third.get(key, found)["judge"]} for key, found in grades.items()}
    outcome = outcome_of("principled", [*HONEST, poor], grades)
    assert [c.candidate.text for c in outcome.kept if "flipped" in c.flags] == [text] * flipped
    assert [(r.reason, r.text) for r in outcome.dropped] == [("contradicted", text)] * (not flipped)


def test_grades_decide_where_annotators_contradict_each_other():
    text = HONEST[1].text
    rows = [*HONEST, replace(HONEST[2], text=text)]  # b calls it a synonym, a an antonym
    assert {r.reason for r in outcome_of("principled", rows).dropped} == {"conflict"}
    assert len(outcome_of("principled", rows).dropped) == 2
    outcome = outcome_of("principled", rows, judged(HONEST, {}))
    assert [(r.reason, r.model, r.text) for r in outcome.dropped] == [("conflict", "b", text)]
    (kept,) = [c for c in outcome.kept if c.candidate.text == text]
    assert (kept.candidate.polarity, kept.models) == ("antonym", ("a",))
