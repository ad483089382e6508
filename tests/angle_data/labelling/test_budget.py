"""The account: limits hold for what is spent and in flight, and expectations follow what replies take."""

import pytest

from angle_data.annotators.base import ChatRequest, Held, Reply, Sampling
from angle_data.annotators.models import Price
from angle_data.labelling.budget import Ledger, Tokens
from angle_data.labelling.journal import Spent

GUESS = Tokens(100.0, 100.0)


def request(number):
    return ChatRequest(f"{number:032x}", "s", "t", "synonym", (), "m", Sampling(0.0, 100))


ONE = request(99)


def reply(number, prompt, completion):
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return Reply(f"{number:032x}", "", usage=usage)


def answer(ledger, number, prompt, completion):
    """Let a reply to a reserved request come in, as a session does."""
    ledger.settle(f"{number:032x}", GUESS, reply(number, prompt, completion))
    ledger.spent.count(prompt, completion, 0.1)


def test_without_limits_everything_is_affordable():
    assert Ledger(Spent(), None, None, None).affords(ONE, Tokens(1e12, 1e12))


def test_what_is_in_flight_counts():
    """Two requests count 1.1 * 100 and 100 each, which is the most a reply can take."""
    ledger = Ledger(Spent(), None, None, 615)
    for number in range(2):
        assert ledger.affords(ONE, GUESS)
        ledger.reserve(request(number), GUESS)
    assert not ledger.affords(ONE, GUESS)
    assert ledger.affords(ONE, Tokens(90.0, 100.0))


def test_until_replies_are_known_each_may_be_as_long_as_allowed():
    """A guess of 1 counts nothing against the bound of 100, for eight replies."""
    ledger = Ledger(Spent(), None, None, 10_000)
    guess = Tokens(0.0, 1.0)
    expected = []
    for number in range(9):
        expected.append(ledger._expected(ONE, guess).completion)
        ledger.reserve(request(number), guess)
        ledger.settle(f"{number:032x}", guess, reply(number, 0, 20))
    assert expected == pytest.approx([100] * 8 + [20])
    assert ledger._expected(ONE, Tokens(0.0, 50.0)).completion == 100


def test_what_earlier_sessions_paid_for_counts_until_it_is_counted_anew():
    ledger = Ledger(Spent(), None, None, 600)
    ledger.hold(Held(4, 250, 150))
    assert ledger.affords(ONE, GUESS)
    assert not ledger.affords(ONE, Tokens(101.0, 0.0))
    ledger.hold(Held())
    assert ledger.affords(ONE, Tokens(500.0, 0.0))


def test_held_replies_teach_as_well():
    ledger = Ledger(Spent(), None, None, 10_000)
    for number in range(8):
        answer(ledger, number, 50, 10)
    assert ledger._expected(ONE, GUESS) == Tokens(50.0, 10.0)
    assert ledger._in_flight == Tokens(0.0, 0.0)


def test_what_the_journal_held_counts():
    spent = Spent()
    spent.count(300, 100, 1.0)
    assert Ledger(spent, None, None, 600).affords(ONE, GUESS)
    assert not Ledger(spent, None, None, 599).affords(ONE, GUESS)
    ledger = Ledger(spent, None, None, 1000)
    assert ledger.of_this_session() == (0, 0, 0)
    spent.count(1, 2, 1.0)
    assert ledger.of_this_session() == (1, 1, 2)


def test_money_weighs_prompt_and_reply_tokens():
    assert Ledger(Spent(), Price(100.0, 200.0), 0.03, None).affords(ONE, GUESS)
    assert not Ledger(Spent(), Price(100.0, 200.0), 0.0299, None).affords(ONE, GUESS)
    assert Ledger(Spent(), Price(0.0, 0.0), 0.01, None).affords(ONE, GUESS)


def test_a_failed_request_gives_its_place_back():
    ledger = Ledger(Spent(), None, None, 210)
    ledger.reserve(request(0), GUESS)
    assert not ledger.affords(ONE, GUESS)
    ledger.settle(request(0).key, GUESS, None)
    assert ledger.affords(ONE, GUESS)


def test_expectations_follow_the_replies():
    """Guessed 100 + 100, taken 10 + 20: after enough replies 30 are expected, and a tenth more in flight."""
    ledger = Ledger(Spent(), None, None, 10_000)
    expected = []
    for number in range(10):
        ledger.reserve(request(number), GUESS)
        expected.append(ledger._in_flight.prompt + ledger._in_flight.completion)
        answer(ledger, number, 10, 20)
    assert expected[:3] == pytest.approx([210, 122, 116.5])
    assert expected[8:] == pytest.approx([33, 33])
    assert ledger._in_flight.prompt == pytest.approx(0)


def test_expectations_are_a_ratio_so_longer_requests_count_more():
    ledger = Ledger(Spent(), None, None, 10_000)
    for number in range(8):
        ledger.reserve(request(number), GUESS)
        answer(ledger, number, 50, 10)
    ledger.reserve(request(9), Tokens(400.0, 200.0))
    assert ledger._in_flight.prompt == pytest.approx(220)
    assert ledger._in_flight.completion == pytest.approx(22)


def test_a_reply_without_usage_teaches_nothing():
    """What it costs is estimated for the journal, see test_collect; the ratio stays that of true counts."""
    ledger = Ledger(Spent(), None, None, 300)
    ledger.reserve(request(0), GUESS)
    ledger.settle(request(0).key, GUESS, Reply(request(0).key, "text"))
    assert not ledger.affords(ONE, Tokens(201.0, 1.0))
    assert ledger.affords(ONE, Tokens(200.0, 1.0))


def test_limits_and_spendings_are_named():
    spent = Spent()
    spent.count(1_000_000, 500_000, 1.0)
    ledger = Ledger(spent, Price(0.15, 0.6), 0.5, 2_000_000)
    assert ledger.limit_text() == "--max-usd 0.5 and --max-tokens-total 2000000"
    assert ledger.spent_text() == "0.4500 USD, 1,500,000 tokens"
    assert Ledger(spent, None, None, 5).spent_text() == "1,500,000 tokens"
