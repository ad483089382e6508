from angle_data.ensemble.read import Offer, group_by_source, offers
from angle_data.ensemble.screen import content_words, off_topic
from angle_data.records import Candidate, Polarity

SOURCES = [
    "The write path slowed down after fsync was enabled.",
    "Burst credits on the log disk ran dry at noon.",
    "Kernel update brought back the old scheduler bug.",
]


def offer_all(rows: list[tuple[int, Polarity, str, str]]) -> list[Offer]:
    candidates = [
        Candidate(f"t{source}", SOURCES[source], polarity, text, model, f"{model}{source}{polarity}")
        for source, polarity, model, text in rows
    ]
    return list(offers(group_by_source(candidates)))


def rewordings(model: str) -> list[tuple[int, Polarity, str, str]]:
    return [(i, "synonym", model, source) for i, source in enumerate(SOURCES)]


def lost(rows: list[tuple[int, Polarity, str, str]]) -> list[str]:
    return [offer.candidate.text for offer in off_topic(offer_all(rows))]


def test_content_words_drop_function_words_and_inflection() -> None:
    assert content_words("The nodes were slowed down, and WALKING on 3 disks!") == {
        "nod",
        "slow",
        "walk",
        "3",
        "disk",
    }


def test_off_topic_reply_is_found_by_what_its_annotator_usually_does() -> None:
    rows = [*rewordings("a"), *rewordings("b"), (2, "synonym", "b", "The movie was great fun for everybody.")]
    # Shares of b: 1, 1, 1 and 0: the reply's best is 1, so the stray sentence alone condemns nothing.
    assert lost(rows) == []
    rows = [*rewordings("a"), *rewordings("b")[:2], (2, "synonym", "b", "The movie was great fun.")]
    # Shares of b: 1, 1, 0; the median is 1 and 0 < 0.36.
    assert lost(rows) == ["The movie was great fun."]


def test_off_topic_tolerates_a_free_annotator() -> None:
    free: list[tuple[int, Polarity, str, str]] = [
        (0, "synonym", "b", "commits crawl now, thank fsync"),  # shares fsync: 1 of 4
        (1, "synonym", "b", "disk throttled around 12"),  # shares disk: 1 of 4
        (2, "synonym", "b", "kernel regression hits latency"),  # shares kernel: 1 of 4
    ]
    assert lost([*rewordings("a"), *free]) == []


def test_off_topic_counts_words_of_other_annotators() -> None:
    rows: list[tuple[int, Polarity, str, str]] = [
        *rewordings("a"),
        *rewordings("b")[:2],
        (2, "synonym", "b", "Linux patch reintroduced regression"),
    ]
    assert lost(rows) == ["Linux patch reintroduced regression"]
    assert lost([*rows, (2, "antonym", "a", "A Linux patch cured the regression")]) == []


def test_off_topic_does_not_judge_a_lone_annotator() -> None:
    rows = [*rewordings("b")[:2], (2, "synonym", "b", "The movie was great fun.")]
    assert lost([(i, p, "b", t) for i, p, _, t in rows]) == []  # type: ignore[misc]


def test_off_topic_judges_polarities_apart() -> None:
    antonyms: list[tuple[int, Polarity, str, str]] = [
        (0, "antonym", "b", "fsync never hurt anybody here, trust me folks"),  # low shares are usual here
        (1, "antonym", "b", "plenty credit remains whenever anybody looks"),
    ]
    assert lost([*rewordings("a"), *rewordings("b"), *antonyms]) == []
