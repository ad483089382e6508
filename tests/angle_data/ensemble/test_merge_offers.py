import pytest

from angle_data.ensemble.read import group_by_source, offers
from angle_data.ensemble.strategies import MARGIN, join_near, kernel, merge, winner
from angle_data.records import Candidate, Polarity


def candidate(source: str, text: str, polarity: Polarity = "synonym", model: str = "a") -> Candidate:
    return Candidate("t1", source, polarity, text, model, f"{model}-{polarity}")


def merged_texts(candidates: list[Candidate]) -> list[tuple[list[str], list[str]]]:
    """Texts of the synonyms and of the antonyms of every merged pair."""
    return [
        ([o.candidate.text for o in pair.synonyms], [o.candidate.text for o in pair.antonyms])
        for pair in merge(offers(group_by_source(candidates)))
    ]


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


LEAK = "Restart the label service every night, it leaks."


def offered(text: str, polarity: Polarity = "antonym", model: str = "a", source: str = LEAK) -> Candidate:
    return candidate(source, text, polarity, model)


def joined(*candidates: Candidate) -> list[list[str]]:
    pairs = join_near(merge(offers(group_by_source(candidates))))
    return [[offer.candidate.text for offer in pair.offers] for pair in pairs]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "The failover of the payment cluster was resolved by rebooting node 7 of the second rack.",
            "The failover of the payment cluster is resolved by rebooting node 7 of the second rack",
        ),
        (
            "Purging the queue cost us no unsent password-reset emails",
            "Purging the queue cost us no unsent password-reset email",
        ),
        (
            "The alert rule for the nightly export can't page anybody outside office hours",
            "The alert rule for the nightly export cannot page anybody outside office hours",
        ),
    ],
)
def test_near_duplicates_become_one(one: str, other: str) -> None:
    assert kernel(one) == kernel(other)
    assert len(joined(offered(one), offered(other, model="b"))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Raise the batch size if the embedding service answers with quota errors.",
            "Raise the batch size if the embedding service answers without quota errors.",
        ),
        (
            "Replacing gp3 with gp2 gave the build servers less throughput for more money.",
            "Replacing gp2 with gp3 gave the build servers less throughput for more money.",
        ),
        (
            "The FBI has run more than 100 investigations involving visits",
            "The FBI has run more than 10 investigations involving visits",
        ),
        (
            "Sobig spreads when unsuspecting users open file attachments",
            "Sobig doesn't spread when unsuspecting users open file attachments",
        ),
        ("Shut it.", "Shut the it now."),
    ],
)
def test_what_means_another_thing_stays_apart(one: str, other: str) -> None:
    assert len(joined(offered(one), offered(other, model="b"))) == 2


def test_equal_words_are_not_enough_for_short_texts() -> None:
    one, other = "A leak has been the cause", "leak cause"
    assert kernel(one) == kernel(other)
    assert len(joined(offered(one), offered(other, model="b"))) == 2


def test_texts_without_content_words_stay_apart() -> None:
    assert len(joined(offered("that is"), offered("that is a", model="b"))) == 2


def test_other_sources_stay_apart() -> None:
    text = "The automatic failover was resolved by a reboot of node 7."
    assert (
        len(joined(offered(text), offered(text.replace("a reboot", "reboot"), source="Node 7 stays down.")))
        == 2
    )


def test_the_text_of_most_annotators_stands_for_all_and_both_polarities_are_kept() -> None:
    long, short = (
        "The memory leak in the barcode library was fixed by the vendor on Monday",
        "Memory leak in the barcode library was fixed by the vendor on Monday",
    )
    rows = [
        offered(short, model="a"),
        offered(long, model="b"),
        offered(long, model="c"),
        offered(long, "synonym", "d"),
    ]
    (pair,) = join_near(merge(offers(group_by_source(rows))))
    assert [o.candidate.model for o in pair.antonyms] == ["b", "c", "a"]
    assert [o.candidate.model for o in pair.synonyms] == ["d"]
