"""The account: limits hold for what is spent and in flight, and expectations follow what replies take."""

import pytest

from angle_data.annotators.base import ChatRequest, Held, Reply, Sampling
from angle_data.annotators.models import Price
from angle_data.labelling.asking.budget import Ledger, Tokens
from angle_data.labelling.asking.journal import Spent

GUESS = Tokens(100.0, 100.0)


def request(number):
    """A request whose reply may take 100 tokens."""
    return ChatRequest(f"{number:032x}", "s", "t", "synonym", (), "m", Sampling(0.0, 100))


def ledger(limit=None, *, price=None, max_usd=None, spent=None):
    return Ledger(spent or Spent(), price, max_usd, limit)


def ask(account, number, guess, taken=None):
    """Send a request and take in its reply, as a session does; without `taken` its tokens are not known."""
    account.reserve(request(number), guess)
    usage = {"prompt_tokens": taken[0], "completion_tokens": taken[1]} if taken else {}
    account.settle(request(number).key, guess, Reply(request(number).key, "", usage=usage))
    account.spent.add({"usage": usage, "seconds": 0.1})


def room(account, guess=GUESS):
    """The number of equal requests that the account affords at once."""
    number = 0
    while account.affords(request(1000 + number), guess):
        account.reserve(request(1000 + number), guess)
        number += 1
    return number


def test_what_is_in_flight_and_what_was_spent_count():
    """A request counts 110 and 100 in flight, the most that a reply can take."""
    assert room(ledger(615)) == 2
    spent = Spent(1, 300, 100)
    assert [room(ledger(limit, spent=spent)) for limit in (599, 600, 1020)] == [0, 1, 3]
    assert ledger().affords(request(0), Tokens(1e12, 1e12))


def test_what_earlier_sessions_paid_for_counts_until_it_is_counted_anew():
    account = ledger(600)
    account.hold(Held(4, 250, 150))
    assert account.affords(request(0), GUESS)
    assert not account.affords(request(0), Tokens(101.0, 0.0))
    account.hold(Held())
    assert account.affords(request(0), Tokens(500.0, 0.0))


def test_money_weighs_prompt_and_reply_tokens():
    for usd, price, affords in ((0.03, 200.0, True), (0.0299, 200.0, False), (0.01, 0.0, True)):
        account = ledger(price=Price(price / 2, price), max_usd=usd)
        assert account.affords(request(0), GUESS) is affords


def test_a_failed_request_gives_its_place_back():
    account = ledger(210)
    account.reserve(request(0), GUESS)
    assert not account.affords(request(1), GUESS)
    account.settle(request(0).key, GUESS, None)
    assert account.affords(request(1), GUESS)


@pytest.mark.parametrize(("replies", "expected"), [(1, 20 + 100), (7, 80 / 7 + 100), (8, 10 + 20)])
def test_expectations_follow_the_replies(replies, expected):
    """Guessed 100 + 100, taken 10 + 20: until eight replies have come, each may be as long as allowed."""
    spent = 30 * replies
    for spare, affords in ((0.01, True), (-0.01, False)):
        account = ledger(spent + expected + spare)
        for number in range(replies):
            ask(account, number, GUESS, (10, 20))
        assert account.affords(request(99), GUESS) is affords


def test_expectations_are_a_ratio_so_longer_requests_count_more():
    account = ledger(8 * 60 + 220)
    for number in range(8):
        ask(account, number, GUESS, (50, 10))
    assert account.affords(request(9), Tokens(400.0, 200.0))
    assert not account.affords(request(9), Tokens(401.0, 200.0))


def test_limits_and_spendings_are_named():
    spent = Spent(1, 1_000_000, 500_000)
    account = ledger(2_000_000, price=Price(0.15, 0.6), max_usd=0.5, spent=spent)
    assert account.limit_text() == "--max-usd 0.5 and --max-tokens-total 2000000"
    assert account.spent_text() == "0.4500 USD, 1,500,000 tokens"
    assert ledger(5, spent=spent).spent_text() == "1,500,000 tokens"
