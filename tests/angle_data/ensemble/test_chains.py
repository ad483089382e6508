from dataclasses import replace

import pytest

from angle_data.ensemble.principled import principled
from angle_data.ensemble.read import group_by_source
from angle_data.ensemble.strategies import Choice, Outcome, Strategy, concat, drop_chained, synonym_sets, vote
from angle_data.records import Candidate, Polarity

FULL, SPACE, USED = "The disk is full now", "No space is left on the volume", "Storage capacity is used up"
ROOM = "The volume has run out of room"


def offer(source: str, polarity: Polarity, text: str) -> Candidate:
    return Candidate(source[:5], source, polarity, text, "m", f"{polarity} {source}")


CHAIN = [offer(FULL, "synonym", SPACE), offer(FULL, "synonym", USED)]
ANTONYM = offer(SPACE, "antonym", USED)


@pytest.mark.parametrize("strategy", [vote, principled])
def test_an_antonym_within_a_set_of_synonyms_is_a_conflict(strategy: Strategy) -> None:
    """FULL means SPACE and USED, which are then no opposites; ROOM is outside until SPACE means it too."""
    rows = [*CHAIN, ANTONYM, offer(ROOM, "antonym", USED)]
    outcome = strategy(group_by_source(rows), {})
    assert {(c.source.text, c.candidate.polarity) for c in outcome.kept} == {
        (FULL, "synonym"),
        (ROOM, "antonym"),
    }
    assert [(r.source, r.reason) for r in outcome.dropped] == [(SPACE, "chain_conflict")]
    linked = strategy(group_by_source([*rows, offer(SPACE, "synonym", ROOM)]), {})
    assert {(r.source, r.reason) for r in linked.dropped} == {
        (SPACE, "chain_conflict"),
        (ROOM, "chain_conflict"),
    }


def test_concat_keeps_contradictions() -> None:
    assert len(concat(group_by_source([*CHAIN, ANTONYM]), {}).kept) == 3


def test_case_and_final_stop_do_not_hide_a_chain() -> None:
    rows = [*CHAIN, replace(ANTONYM, text=USED.upper() + ".")]
    choices = [Choice(source, row, ("m",)) for source in group_by_source(rows) for row in source.candidates]
    outcome = Outcome(choices, [])
    drop_chained(outcome)
    assert [rejection.reason for rejection in outcome.dropped] == ["chain_conflict"]


def test_antonyms_connect_nothing() -> None:
    choices = [Choice(s, c, ("m",)) for s in group_by_source([ANTONYM, CHAIN[0]]) for c in s.candidates]
    groups = synonym_sets(choices)
    full, space, used = (text.lower() for text in (FULL, SPACE, USED))
    assert groups.leader(full) == groups.leader(space)
    assert groups.leader(used) == used
