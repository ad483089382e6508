from angle_data.ensemble.balance import balance
from angle_data.ensemble.sources import Choice, Source
from angle_data.records import Candidate, Polarity

SOURCE = Source("the disk is full", "t1", "The disk is full.", ())
OTHER = Source("the queue is empty", "t2", "The queue is empty.", ())


def choice(text: str, models: str, polarity: Polarity = "synonym", source: Source = SOURCE) -> Choice:
    return Choice(source, Candidate(source.id, source.text, polarity, text, models[0], "k"), tuple(models))


def texts(choices: list[Choice]) -> list[str]:
    return [c.candidate.text for c in choices]


def test_balance_caps_each_source_and_polarity_apart() -> None:
    kept = [
        choice("s1", "a"),
        choice("s2", "a"),
        choice("a1", "a", "antonym"),
        choice("o1", "a", source=OTHER),
    ]
    outcome = balance(kept, max_per_source=1, seed=0)
    assert len(outcome.kept) == 3
    assert [r.reason for r in outcome.dropped] == ["capped"]
    assert outcome.dropped[0].text in {"s1", "s2"}
    assert texts(outcome.kept)[1:] == ["a1", "o1"]  # in the order given


def test_balance_prefers_support_then_spreads_over_annotators() -> None:
    kept = [choice(f"a{i}", "a") for i in range(5)] + [choice("b", "b"), choice("c", "c"), choice("ab", "ab")]
    for seed in range(5):
        chosen = texts(balance(kept, max_per_source=3, seed=seed).kept)
        # "ab" has two supporters; then c has no pick yet while a and b have one; then a or b, one pick each.
        assert {"ab", "c"} < set(chosen)
        assert len(chosen) == 3
    assert set(texts(balance(kept, max_per_source=4, seed=0).kept)) >= {"ab", "b", "c"}


def test_balance_depends_on_the_seed_but_not_on_the_order() -> None:
    kept = [choice(f"s{i}", "a") for i in range(8)]
    picks = {seed: set(texts(balance(kept, max_per_source=2, seed=seed).kept)) for seed in range(6)}
    assert len({frozenset(p) for p in picks.values()}) > 1
    for seed, expected in picks.items():
        assert set(texts(balance(kept[::-1], max_per_source=2, seed=seed).kept)) == expected


def test_balance_below_the_cap_changes_nothing() -> None:
    kept = [choice("s1", "a"), choice("s2", "b")]
    outcome = balance(kept, max_per_source=2, seed=0)
    assert (outcome.kept, outcome.dropped) == (kept, [])
