import pytest

from angle_data.ensembling.read import Source, group_by_source, offers
from angle_data.ensembling.strategies import MARGIN, Choice, Outcome, cap, merge, winner
from angle_data.records import Candidate


def candidate(source, text, polarity="synonym", model="a"):
    return Candidate("t1", source, polarity, text, model, f"{model}-{polarity}")


def test_merge_does_not_join_opposites_that_differ_by_one_token():
    sentence = (
        "Multi-factor authentication is {} for every account in the production organisation since Monday."
    )
    on = candidate("MFA is on.", sentence.format("enabled"), "synonym")
    off = candidate("MFA is on.", sentence.format("disabled"), "antonym", "b")
    pairs = merge(offers(group_by_source([on, off])))
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
    rows = [candidate("Disk full.", "No space left.", "synonym", model) for model in synonym]
    rows += [candidate("Disk full.", "No space left.", "antonym", model) for model in antonym]
    (pair,) = merge(offers(group_by_source(rows)))
    assert MARGIN == 0.5
    assert winner(pair, reliability) == expected


def choice(text, models, polarity="synonym", source="Disk full.", weight=1.0):
    return Choice(
        Source(source, "t1", source, ()), candidate(source, text, polarity, models[0]), tuple(models), weight
    )


def test_a_cap_prefers_support_then_weight():
    kept = [*(choice(f"a{i}", "a", weight=0.5 + i / 10) for i in range(5)), choice("ab", "ab", weight=0.4)]
    outcome = Outcome(list(kept))
    cap(outcome, 3, seed=0)
    assert [c.candidate.text for c in outcome.kept] == ["a3", "a4", "ab"]
    assert [rejection.reason for rejection in outcome.dropped] == ["capped"] * 3
