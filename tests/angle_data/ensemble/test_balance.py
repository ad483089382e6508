import pytest

from angle_data.ensemble.balance import Limits, balance
from angle_data.ensemble.read import Source
from angle_data.ensemble.strategies import Choice
from angle_data.errors import InputError
from angle_data.records import Candidate, Polarity

SOURCE = Source("the disk is full", "t1", "The disk is full.", ())
OTHER = Source("the queue is empty", "t2", "The queue is empty.", ())


def choice(
    text: str,
    models: str,
    polarity: Polarity = "synonym",
    source: Source = SOURCE,
    weight: float = 1.0,
    flags: tuple[str, ...] = (),
) -> Choice:
    candidate = Candidate(source.id, source.text, polarity, text, models[0], "k")
    return Choice(source, candidate, tuple(models), weight, flags)


def copy(text: str, source: Source = SOURCE, weight: float = 1.0) -> Choice:
    return choice(text, "a", "antonym", source, weight, ("near_copy",))


def texts(choices: list[Choice]) -> list[str]:
    return [c.candidate.text for c in choices]


def test_balance_caps_each_source_and_polarity_apart() -> None:
    kept = [
        choice("s1", "a"),
        choice("s2", "a"),
        choice("a1", "a", "antonym"),
        choice("o1", "a", source=OTHER),
    ]
    outcome = balance(kept, Limits(per_source=1), seed=0)
    assert len(outcome.kept) == 3
    assert [r.reason for r in outcome.dropped] == ["capped"]
    assert outcome.dropped[0].text in {"s1", "s2"}
    assert texts(outcome.kept)[1:] == ["a1", "o1"]  # in the order given


def test_balance_prefers_support_then_spreads_over_annotators() -> None:
    kept = [choice(f"a{i}", "a") for i in range(5)] + [choice("b", "b"), choice("c", "c"), choice("ab", "ab")]
    for seed in range(5):
        chosen = texts(balance(kept, Limits(per_source=3), seed=seed).kept)
        # "ab" has two supporters; then c has no pick yet while a and b have one; then a or b, one pick each.
        assert {"ab", "c"} < set(chosen)
        assert len(chosen) == 3
    assert set(texts(balance(kept, Limits(per_source=4), seed=0).kept)) >= {"ab", "b", "c"}


def test_balance_depends_on_the_seed_but_not_on_the_order() -> None:
    kept = [choice(f"s{i}", "a") for i in range(8)]
    picks = {seed: set(texts(balance(kept, Limits(per_source=2), seed=seed).kept)) for seed in range(6)}
    assert len({frozenset(p) for p in picks.values()}) > 1
    for seed, expected in picks.items():
        assert set(texts(balance(kept[::-1], Limits(per_source=2), seed=seed).kept)) == expected


def test_balance_takes_the_weightier_of_equals() -> None:
    kept = [choice(f"s{i}", "a", weight=0.5 + i / 10) for i in range(5)]
    assert texts(balance(kept, Limits(per_source=2), seed=0).kept) == ["s3", "s4"]


def test_no_limits_change_nothing() -> None:
    kept = [copy("c1"), copy("c2"), choice("s1", "a"), choice("s2", "a")]
    assert balance(kept, Limits(), seed=0).kept == kept


def sources(count: int) -> list[Source]:
    return [Source(f"source {i}", f"t{i}", f"Source {i}.", ()) for i in range(count)]


def test_near_copies_are_capped_as_a_share_of_the_antonyms() -> None:
    kept = []
    for i, source in enumerate(sources(7)):
        kept += [choice(f"a{i}", "a", "antonym", source), copy(f"c{i}", source, weight=0.3 + i / 10)]
    outcome = balance(kept, Limits(near_copies=0.3), seed=0)
    # Seven others allow three copies: 3 of 10. The weightiest stay.
    assert [text for text in texts(outcome.kept) if text[0] == "c"] == ["c4", "c5", "c6"]
    assert {r.reason for r in outcome.dropped} == {"near_copies"}
    assert len(outcome.dropped) == 4
    none = balance(kept, Limits(near_copies=0.0), seed=0)
    assert not any("near_copy" in c.flags for c in none.kept)


def test_a_source_keeps_its_only_antonym_though_it_is_a_near_copy() -> None:
    one, two, three = sources(3)
    kept = [choice("a", "a", "antonym", one), copy("c1", one), copy("c2", two, 0.4), copy("c3", two, 0.6)]
    assert texts(balance(kept, Limits(near_copies=0.0), seed=0).kept) == ["a", "c3"]
    # Its only antonym counts: one other antonym allows one copy in all, and source two needs it.
    assert texts(balance(kept, Limits(near_copies=0.5), seed=0).kept) == ["a", "c3"]
    synonym = choice("s", "a", source=three)
    assert texts(balance([synonym, copy("c", three)], Limits(near_copies=0.0), seed=0).kept) == ["s", "c"]


@pytest.mark.parametrize(
    ("synonyms", "antonyms", "left"),
    [(4, 3, (3, 3)), (2, 5, (2, 3)), (6, 1, (3, 1)), (3, 0, (3, 0)), (2, 2, (2, 2))],
    ids=str,
)
def test_equal_polarities_cut_the_larger_side_by_half_at_most(
    synonyms: int, antonyms: int, left: tuple[int, int]
) -> None:
    kept = [choice(f"s{i}", "a", weight=0.9 - i / 10) for i in range(synonyms)]
    kept += [choice(f"a{i}", "a", "antonym", weight=0.9 - i / 10) for i in range(antonyms)]
    outcome = balance(kept, Limits(equal=True), seed=0)
    found = texts(outcome.kept)
    assert found == [f"s{i}" for i in range(left[0])] + [f"a{i}" for i in range(left[1])]
    assert {r.reason for r in outcome.dropped} <= {"unequal"}


def test_equal_polarities_look_at_each_source() -> None:
    kept = [choice("s1", "a"), choice("s2", "a"), choice("a1", "a", "antonym", OTHER)]
    assert balance(kept, Limits(equal=True), seed=0).dropped == []


def test_share_limits_what_one_annotator_supplies() -> None:
    kept = [choice(f"a{i}", "a", weight=0.3 + i / 100) for i in range(16)]
    kept += [choice("b1", "b"), choice("b2", "b"), choice("ab", "ab")]
    outcome = balance(kept, Limits(share=0.6), seed=0)
    # b alone has two pairs, both together one; a alone may have 4 of 7, but 5 of 8 are more than 0.6.
    assert texts(outcome.kept) == ["a12", "a13", "a14", "a15", "b1", "b2", "ab"]
    assert {r.reason for r in outcome.dropped} == {"annotator_share"}


def test_share_that_cannot_hold_is_refused() -> None:
    kept = [choice("a", "a"), choice("b", "b"), choice("c", "c")]
    with pytest.raises(InputError, match=r"max share 0.3 cannot hold for 3 annotators; give at least 0.34"):
        balance(kept, Limits(share=0.3), seed=0)
    assert len(balance(kept, Limits(share=0.34), seed=0).kept) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_source": 0}, "max per source must be 1 or more, got 0"),
        ({"near_copies": 1.2}, "max near copies must lie in 0..1, got 1.2"),
        ({"share": 0.0}, "max share must lie above 0 and up to 1, got 0"),
    ],
)
def test_limits_refuse(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Limits(**options)  # type: ignore[arg-type]
