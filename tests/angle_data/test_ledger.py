"""The account: limits hold for what is spent and in flight, and expectations follow what replies take."""

import pytest

from angle_data.annotators.base import ChatRequest, Reply, Sampling
from angle_data.annotators.models import Price
from angle_data.labelling.journal import Spent
from angle_data.labelling.ledger import Ledger, Tokens

GUESS = Tokens(100.0, 100.0)


def request(number):
    return ChatRequest(f"{number:032x}", "s", "t", "synonym", (), "m", Sampling(0.0, 1))


def answer(ledger, number, prompt, completion):
    """Let a reply to a reserved request come in, as a session does."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    key = f"{number:032x}"
    ledger.settle(key, Reply(key, "", usage=usage))
    ledger.spent.count(prompt, completion, 0.1)


def test_without_limits_everything_is_affordable():
    assert Ledger(Spent(), None, None, None).affords(Tokens(1e12, 1e12))


def test_what_is_in_flight_counts():
    ledger = Ledger(Spent(), None, None, 500)
    for number in range(2):
        assert ledger.affords(GUESS)
        ledger.reserve(request(number), GUESS)
    assert not ledger.affords(GUESS)
    assert ledger.affords(Tokens(50.0, 50.0))


def test_what_the_journal_held_counts():
    spent = Spent()
    spent.count(300, 100, 1.0)
    assert Ledger(spent, None, None, 600).affords(GUESS)
    assert not Ledger(spent, None, None, 599).affords(GUESS)
    ledger = Ledger(spent, None, None, 1000)
    assert ledger.of_this_run() == (0, 0, 0)
    spent.count(1, 2, 1.0)
    assert ledger.of_this_run() == (1, 1, 2)


def test_money_weighs_prompt_and_reply_tokens():
    assert Ledger(Spent(), Price(100.0, 200.0), 0.03, None).affords(GUESS)
    assert not Ledger(Spent(), Price(100.0, 200.0), 0.0299, None).affords(GUESS)
    assert Ledger(Spent(), Price(0.0, 0.0), 0.01, None).affords(GUESS)


def test_a_failed_request_gives_its_place_back():
    ledger = Ledger(Spent(), None, None, 200)
    ledger.reserve(request(0), GUESS)
    assert not ledger.affords(GUESS)
    ledger.settle(request(0).key, None)
    assert ledger.affords(GUESS)


def test_expectations_follow_the_replies():
    """Guessed 100 + 100, taken 10 + 20: after enough replies 30 are expected, before that a little more."""
    ledger = Ledger(Spent(), None, None, 10_000)
    expected = []
    for number in range(10):
        ledger.reserve(request(number), GUESS)
        expected.append(ledger._in_flight.prompt + ledger._in_flight.completion)
        answer(ledger, number, 10, 20)
    assert expected[:3] == pytest.approx([200, 60, 45])
    assert expected[8:] == pytest.approx([30, 30])
    assert ledger._in_flight.prompt == pytest.approx(0)


def test_expectations_are_a_ratio_so_longer_requests_count_more():
    ledger = Ledger(Spent(), None, None, 10_000)
    for number in range(8):
        ledger.reserve(request(number), GUESS)
        answer(ledger, number, 50, 10)
    ledger.reserve(request(9), Tokens(400.0, 200.0))
    assert ledger._in_flight.prompt == pytest.approx(200)
    assert ledger._in_flight.completion == pytest.approx(20)


def test_a_reply_without_usage_teaches_nothing():
    ledger = Ledger(Spent(), None, None, 300)
    ledger.reserve(request(0), GUESS)
    ledger.settle(request(0).key, Reply(request(0).key, "text"))
    assert not ledger.affords(Tokens(200.0, 101.0))
    assert ledger.affords(GUESS)


def test_limits_and_spendings_are_named():
    spent = Spent()
    spent.count(1_000_000, 500_000, 1.0)
    ledger = Ledger(spent, Price(0.15, 0.6), 0.5, 2_000_000)
    assert ledger.limit_text() == "--max-usd 0.5 and --max-tokens-total 2000000"
    assert ledger.spent_text() == "0.4500 USD, 1,500,000 tokens"
    assert Ledger(spent, None, None, 5).spent_text() == "1,500,000 tokens"
