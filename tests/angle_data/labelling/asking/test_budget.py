"""The account: limits hold for what is spent and in flight, and expectations follow what replies take."""

from types import SimpleNamespace

import pytest

from angle_data.annotators.base import ChatRequest, Sampling
from angle_data.labelling.asking.budget import Ledger, Tokens, is_read_in_part

GUESS = Tokens(100.0, 100.0)


def request(number):
    """A request whose reply may take 100 tokens."""
    return ChatRequest(f"{number:032x}", "s", "t", "synonym", (), "m", Sampling(0.0, 100))


def ledger(limit, spent=Tokens()):
    return Ledger(SimpleNamespace(spent=spent), None, None, limit)


def ask(account, number, guess, taken):
    """Send a request and take in its reply, as a session does."""
    account.reserve(request(number), guess)
    usage = dict(zip(("prompt_tokens", "completion_tokens"), taken, strict=True))
    account.settle(request(number).key, guess, usage)
    account.journal.spent += Tokens(*taken)


@pytest.mark.parametrize(("spent", "limit", "room"), [(0, 615, 2), (99, 298, 0), (99, 299, 1), (99, 719, 3)])
def test_what_is_in_flight_and_what_was_spent_count(spent, limit, room):
    """A request counts 110 and 100 in flight, the most that a reply takes; one that fails, nothing."""
    account, number = ledger(limit, Tokens(spent, 0)), 0
    while account.reserve(request(number), GUESS):
        number += 1
    assert number == room
    if number:
        account.settle(request(0).key, GUESS, {})
        assert account.reserve(request(0), GUESS)


@pytest.mark.parametrize(("replies", "expected"), [(1, 20 + 100), (7, 80 / 7 + 100), (8, 10 + 20)])
def test_expectations_follow_the_replies(replies, expected):
    """Guessed 100 + 100, taken 10 + 20: until eight replies have come, each may be as long as allowed."""
    for spare, affords in ((0.01, True), (-0.01, False)):
        account = ledger(30 * replies + expected + spare)
        for number in range(replies):
            ask(account, number, GUESS, (10, 20))
        # They are a ratio, so longer requests count more.
        assert not account.reserve(request(99), Tokens(200.0, 100.0))
        assert account.reserve(request(99), GUESS) is affords


@pytest.mark.parametrize(
    ("prompt", "counted", "in_part"),
    [
        ("The node has left the cluster. " * 1300, 2048, True),  # 40,000 characters
        ("The node has left the cluster. " * 1300, 8000, False),
        ("Узел покинул кластер. " * 900, 2048, True),  # 20,000 characters, some 6,000 tokens
        ("Узел покинул кластер. " * 900, 4500, False),
        ("-" * 40_000, 700, False),  # what is no word may be few tokens
        ("The node has left. " * 100, 10, False),  # a short prompt, which the server may remember
    ],
)
def test_a_prompt_that_is_read_in_part_is_seen_by_its_tokens(prompt, counted, in_part):
    asked = ChatRequest("k", "s", "t", "synonym", ({"content": prompt},), "m", Sampling(0.0, 100))
    assert is_read_in_part(asked, {"usage": {"prompt_tokens": counted}}) is in_part
    assert not is_read_in_part(asked, {"usage": {"prompt_tokens": counted, "estimated": 1}})
