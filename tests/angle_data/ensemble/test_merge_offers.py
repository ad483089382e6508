import pytest

from angle_data.ensemble.merge import MARGIN, merge, winner
from angle_data.ensemble.read import group_by_source, offers
from angle_data.records import Candidate, Polarity
from angle_data.text import pair_key


def candidate(source: str, text: str, polarity: Polarity = "synonym", model: str = "a") -> Candidate:
    return Candidate("t1", source, polarity, text, model, f"{model}-{polarity}")


def merged_texts(candidates: list[Candidate]) -> list[tuple[list[str], list[str]]]:
    """Texts of the synonyms and of the antonyms of every merged pair."""
    return [
        ([o.candidate.text for o in pair.synonyms], [o.candidate.text for o in pair.antonyms])
        for pair in merge(offers(group_by_source(candidates)))
    ]


def test_pair_key_ignores_order_case_and_end_marks() -> None:
    assert pair_key("The disk is full.", "No space  left") == pair_key("no space left!", "the disk is FULL")


def test_merge_joins_equal_texts_of_one_source() -> None:
    assert merged_texts(
        [
            candidate("Disk full.", "No space left.", model="a"),
            candidate("Disk full.", "no space left", model="b"),
            candidate("Disk full.", "No space is left.", model="b"),
        ]
    ) == [(["No space is left."], []), (["No space left.", "no space left"], [])]


def test_merge_sees_the_same_pair_from_its_other_end() -> None:
    assert merged_texts(
        [candidate("Disk full.", "No space left."), candidate("No space left.", "Disk full.")]
    ) == [(["No space left.", "Disk full."], [])]


def test_merge_does_not_join_opposites_that_differ_by_one_token() -> None:
    sentence = (
        "Multi-factor authentication is {} for every account in the production organisation since Monday."
    )
    pairs = merged_texts(
        [
            candidate("MFA is on.", sentence.format("enabled"), "synonym"),
            candidate("MFA is on.", sentence.format("disabled"), "antonym", "b"),
        ]
    )
    assert pairs == [([], [sentence.format("disabled")]), ([sentence.format("enabled")], [])]


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
def test_winner_needs_a_margin_when_annotators_disagree(
    synonym: str, antonym: str, expected: str | None
) -> None:
    reliability = {"a": 0.9, "b": 0.9, "c": 0.4, "d": 0.3}
    rows = [candidate("Disk full.", "No space left.", "synonym", model) for model in synonym]
    rows += [candidate("Disk full.", "No space left.", "antonym", model) for model in antonym]
    (pair,) = merge(offers(group_by_source(rows)))
    assert MARGIN == 0.5
    assert winner(pair, reliability) == expected
