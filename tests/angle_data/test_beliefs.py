import math
import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.ensemble import beliefs as beliefs_module
from angle_data.ensemble.beliefs import Beliefs, infer
from angle_data.ensemble.network import Claim, Item, Network, State, probability, through
from angle_data.records import Polarity

PRIOR = {"a": 0.03, "b": 0.03, "c": 0.03}


def item(source: int, claims: str, grades: Mapping[str, float] | None = None, reply: str = "") -> Item:
    """Claims such as "a+ b-": annotator and polarity; each of its own reply unless `reply` names one."""
    made = []
    for text in claims.split():
        polarity: Polarity = "synonym" if text[1] == "+" else "antonym"
        made.append(Claim(text[0], polarity, reply or f"r{source}"))
    return Item(f"s{source}", tuple(sorted(made)), grades or {})


def world(
    seed: int, errors: Mapping[str, float], graders: int, d: float, sources: int = 250, mates: int = 1
) -> tuple[list[Item], list[bool]]:
    """Items of which `errors[annotator]` have the wrong polarity, reply by reply, and whether each has.

    Every source has `mates` synonyms and antonyms of each annotator; graders see the truth with normal
    noise, `d` standard deviations between the polarities, each on a scale of its own.
    """
    rng = random.Random(seed)
    items, wrong = [], []
    for source in range(sources):
        for annotator, error in errors.items():
            for sign in (1, -1):
                is_wrong = rng.random() < error
                for number in range(mates):
                    truth = -sign if is_wrong else sign
                    grades = {f"g{g}": (g + 1) * (truth * d / 2 + rng.gauss(0, 1)) for g in range(graders)}
                    claim = Claim(annotator, "synonym" if sign > 0 else "antonym", f"r{source}")
                    items.append(Item(f"s{source}-{number}", (claim,), grades))
                    wrong.append(is_wrong)
    return items, wrong


def found(items: list[Item], wrong: list[bool], beliefs: Beliefs) -> tuple[float, float]:
    """Precision and recall of the pairs whose believed polarity is not the one asked for."""
    hits = [
        (odds > 0) != (i.claims[0].polarity == "synonym")
        for i, odds in zip(items, beliefs.log_odds, strict=True)
    ]
    both = sum(h and w for h, w in zip(hits, wrong, strict=True))
    return both / max(1, sum(hits)), both / max(1, sum(wrong))


def reliability(beliefs: Beliefs, annotator: str) -> float:
    kinds = [found.value for (name, _), found in beliefs.reliability.items() if name == annotator]
    return sum(kinds) / len(kinds)


@given(st.floats(-20, 20), st.floats(0.001, 0.5))
def test_through_is_a_noisy_channel(odds: float, error: float) -> None:
    p = probability(odds)
    q = p * (1 - error) + (1 - p) * error
    assert probability(through(odds, error)) == pytest.approx(q, abs=1e-9)


def test_through_stays_finite() -> None:
    assert through(1e9, 0.01) == pytest.approx(math.log(99))
    assert through(-1e9, 0.01) == pytest.approx(-math.log(99))
    assert probability(-1e9) == 0.0


def test_a_lone_claim_keeps_the_prior() -> None:
    beliefs = infer([item(1, "a+"), item(2, "b-")], {"a": 0.03, "b": 0.2})
    # Right in a sound reply or wrong in a swapped one: 0.98 * 0.97 + 0.02 * 0.03; 0.98 * 0.8 + 0.02 * 0.2.
    assert [probability(odds) for odds in beliefs.log_odds] == pytest.approx([0.9512, 1 - 0.788])
    assert {kind: found.checked for kind, found in beliefs.reliability.items()} == {
        ("a", "synonym"): 0,
        ("b", "antonym"): 0,
    }
    assert beliefs.reliability["b", "antonym"].value == pytest.approx(0.788)


def test_claims_that_contradict_each_other_cancel_and_support_adds_up() -> None:
    undecided, supported, outvoted = infer(
        [item(1, "a+ b-"), item(2, "a+ b+"), item(3, "a- b- c+")], PRIOR
    ).log_odds
    assert undecided == pytest.approx(0, abs=0.2)
    assert probability(supported) > 0.96
    assert probability(-outvoted) > 0.6


def test_reliability_falls_for_an_annotator_that_others_contradict() -> None:
    items = [item(n, "a+ b+ c-") for n in range(30)] + [item(100 + n, "a- b- c-") for n in range(30)]
    beliefs = infer(items, PRIOR)
    assert beliefs.reliability["c", "antonym"].value < 0.75 < 0.97 < beliefs.reliability["a", "synonym"].value
    assert beliefs.reliability["c", "antonym"].checked == 60


@pytest.mark.parametrize(("graders", "precision", "recall"), [(3, 0.9, 0.7), (1, 0.65, 0.3)])
def test_wrong_sentences_are_found(graders: int, precision: float, recall: float) -> None:
    """d = 1.81 is an AUC of 0.9: three such graders find most; one alone cannot, whatever the method."""
    items, wrong = world(1, {"a": 0.0, "b": 0.2, "c": 0.0}, graders, 1.81)
    beliefs = infer(items, PRIOR)
    measured = found(items, wrong, beliefs)
    assert measured[0] >= precision
    assert measured[1] >= recall
    assert reliability(beliefs, "b") < min(reliability(beliefs, "a"), reliability(beliefs, "c")) - 0.08


def test_one_grader_does_nearly_as_well_as_one_whose_shape_is_known() -> None:
    items, wrong = world(2, {"a": 0.0, "b": 0.2, "c": 0.0}, 1, 1.81, sources=350)
    beliefs = infer(items, PRIOR)
    errors = exact = 0
    for i, odds, is_wrong in zip(items, beliefs.log_odds, wrong, strict=True):
        if i.claims[0].annotator != "b":
            continue
        sign = 1 if i.claims[0].polarity == "synonym" else -1
        errors += (sign * odds < 0) != is_wrong
        # With everything known, the log-odds of the claim are ln(0.8 / 0.2) plus d times the grade.
        exact += (math.log(4) + sign * 1.81 * i.grades["g0"] < 0) != is_wrong
    assert errors <= 1.1 * exact


def test_a_swapped_reply_is_found_by_its_sentences_together() -> None:
    """With two sentences a reply, one grader of AUC 0.9 finds what it cannot find with one."""
    items, wrong = world(3, {"a": 0.0, "b": 0.1}, 1, 1.81, mates=2)
    together = infer(items, PRIOR)
    alone = infer(
        [
            Item(i.source, (Claim(i.claims[0].annotator, i.claims[0].polarity, i.source),), i.grades)
            for i in items
        ],
        PRIOR,
    )
    assert found(items, wrong, together)[1] > found(items, wrong, alone)[1] + 0.2
    assert found(items, wrong, together)[0] > 0.8
    assert together.reliability["b", "synonym"].swapped > 3 * together.reliability["b", "synonym"].wrong


def test_clean_data_stay_as_they_are() -> None:
    items, _ = world(4, {"a": 0.0, "b": 0.0, "c": 0.0}, 1, 1.81)
    beliefs = infer(items, PRIOR)
    hits = sum(
        (odds > 0) != (i.claims[0].polarity == "synonym")
        for i, odds in zip(items, beliefs.log_odds, strict=True)
    )
    assert hits < 0.01 * len(items)
    assert all(r.value > 0.97 for r in beliefs.reliability.values())


def test_scale_and_habits_of_a_grader_do_not_matter() -> None:
    items, _ = world(5, {"a": 0.0, "b": 0.2}, 1, 2.0, sources=60)
    squeezed = [Item(i.source, i.claims, {"g0": 4 + 0.1 * math.tanh(i.grades["g0"])}) for i in items]
    assert infer(squeezed, PRIOR).log_odds == pytest.approx(infer(items, PRIOR).log_odds)


@pytest.mark.parametrize("d", [0.0, -2.0], ids=["useless", "reversed"])
def test_a_grader_that_tells_nothing_changes_nothing(d: float) -> None:
    items, _ = world(6, {"a": 0.0, "b": 0.0}, 1, d, sources=60)
    beliefs = infer(items, PRIOR)
    assert all(
        (odds > 0) == (i.claims[0].polarity == "synonym")
        for i, odds in zip(items, beliefs.log_odds, strict=True)
    )


def test_correlated_graders_count_for_less() -> None:
    items, _ = world(7, {"a": 0.0, "b": 0.1}, 1, 1.5, sources=80)
    copies = [Item(i.source, i.claims, {f"g{k}": i.grades["g0"] for k in range(4)}) for i in items]
    one, four = infer(items, PRIOR), infer(copies, PRIOR)
    assert four.correlation > 0.9
    sizes = [sum(map(abs, beliefs.log_odds)) for beliefs in (one, four)]
    assert sizes[1] < 1.25 * sizes[0]
    apart, _ = world(7, {"a": 0.0, "b": 0.1}, 3, 1.5, sources=80)
    assert infer(apart, PRIOR).correlation < 0.1


def test_graders_of_one_annotator_each_share_a_shape() -> None:
    """Otherwise the grader of b's pairs would take b's errors for its own blindness."""
    items, _ = world(8, {"a": 0.0, "b": 0.2, "c": 0.0}, 1, 1.81)
    crossed = [Item(i.source, i.claims, {f"without-{i.claims[0].annotator}": i.grades["g0"]}) for i in items]
    beliefs = infer(crossed, PRIOR)
    assert len({shape.synonym for shape in beliefs.shapes.values()}) == 1
    assert set(beliefs.shapes) == {"without-a", "without-b", "without-c"}
    assert reliability(beliefs, "b") < 0.9 < min(reliability(beliefs, "a"), reliability(beliefs, "c"))


def test_learning_from_a_sample_gives_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    items, wrong = world(9, {"a": 0.0, "b": 0.2, "c": 0.0}, 2, 2.0, sources=200)
    whole = infer(items, PRIOR)
    monkeypatch.setattr(beliefs_module, "_SAMPLE", 600)
    part = infer(items, PRIOR)
    assert part.log_odds != whole.log_odds
    assert reliability(part, "b") == pytest.approx(reliability(whole, "b"), abs=0.06)
    assert found(items, wrong, part)[1] == pytest.approx(found(items, wrong, whole)[1], abs=0.15)


def test_a_grader_outside_the_sample_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    items, _ = world(10, {"a": 0.0, "b": 0.2}, 2, 2.0, sources=50)
    monkeypatch.setattr(beliefs_module, "_SAMPLE", 150)
    sampled = {i.source for i in beliefs_module._sample(items)}
    odd = next(n for n, i in enumerate(items) if i.source not in sampled)
    more = [*items]
    more[odd] = Item(items[odd].source, items[odd].claims, {"rare": 5.0})
    less = [*items]
    less[odd] = Item(items[odd].source, items[odd].claims, {})
    with_rare, without = infer(more, PRIOR), infer(less, PRIOR)
    assert with_rare.log_odds == without.log_odds
    assert with_rare.shapes["rare"].log_odds(3.0) == 0
    assert with_rare.shapes["g0"] == without.shapes["g0"]


def test_graders_are_taken_to_err_together_until_many_pairs_show_otherwise() -> None:
    """The grades of a few pairs cannot show it; until then two graders count as 2 / 1.3."""
    assert infer([item(n, "a+", {"x": n}) for n in range(9)], PRIOR).correlation == pytest.approx(0.3)
    few, _ = world(7, {"a": 0.0, "b": 0.1}, 2, 1.5, sources=1)  # four pairs
    many, _ = world(7, {"a": 0.0, "b": 0.1}, 2, 1.5, sources=200)
    assert infer(many, PRIOR).correlation < 0.1 < 0.2 < infer(few, PRIOR).correlation < 0.45


def test_nothing_to_infer() -> None:
    assert infer([], {}).log_odds == []


def test_two_claims_count_for_less_than_twice_one() -> None:
    one, two = item(1, "a+"), item(2, "a+ b+")
    network = Network([one, two], {}, {}, State({"a": 0.03, "b": 0.03}))
    alone, both = network.beliefs()
    assert alone == pytest.approx(math.log(0.9512 / 0.0488))  # see test_a_lone_claim_keeps_the_prior
    assert both == pytest.approx(2 * alone / 1.5)


def test_annotators_that_contradict_each_other_both_lose_trust() -> None:
    beliefs = infer([item(n, "a+ b-") for n in range(40)], PRIOR)
    assert all(found.value < 0.75 for found in beliefs.reliability.values())
