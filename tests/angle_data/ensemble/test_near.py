import pytest

from angle_data.ensemble.merge import join_near, kernel, merge
from angle_data.ensemble.read import group_by_source, offers
from angle_data.records import Candidate, Polarity

SOURCE = "Restart the label service every night, it leaks."


def candidate(text: str, polarity: Polarity = "antonym", model: str = "a", source: str = SOURCE) -> Candidate:
    return Candidate("t1", source, polarity, text, model, f"{model}-{polarity}")


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
    assert len(joined(candidate(one), candidate(other, model="b"))) == 1


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
    assert len(joined(candidate(one), candidate(other, model="b"))) == 2


def test_equal_words_are_not_enough_for_short_texts() -> None:
    one, other = "A leak has been the cause", "leak cause"
    assert kernel(one) == kernel(other)
    assert len(joined(candidate(one), candidate(other, model="b"))) == 2


def test_texts_without_content_words_stay_apart() -> None:
    assert len(joined(candidate("that is"), candidate("that is a", model="b"))) == 2


def test_other_sources_stay_apart() -> None:
    text = "The automatic failover was resolved by a reboot of node 7."
    assert (
        len(
            joined(
                candidate(text), candidate(text.replace("a reboot", "reboot"), source="Node 7 stays down.")
            )
        )
        == 2
    )


def test_the_text_of_most_annotators_stands_for_all_and_both_polarities_are_kept() -> None:
    long, short = (
        "The memory leak in the barcode library was fixed by the vendor on Monday",
        "Memory leak in the barcode library was fixed by the vendor on Monday",
    )
    rows = [
        candidate(short, model="a"),
        candidate(long, model="b"),
        candidate(long, model="c"),
        candidate(long, "synonym", "d"),
    ]
    (pair,) = join_near(merge(offers(group_by_source(rows))))
    assert [o.candidate.model for o in pair.antonyms] == ["b", "c", "a"]
    assert [o.candidate.model for o in pair.synonyms] == ["d"]
