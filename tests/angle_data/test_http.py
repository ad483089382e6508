"""Which failures are tried again, which are about the account, and for how long to wait before."""

import pytest

from angle_data.http import ServiceError, is_out_of_quota, is_retryable, retry_after, retry_pause


@pytest.mark.parametrize(
    ("codes", "status", "final"),
    [
        (("insufficient_quota", "tokens"), 429, True),
        (("1113",), 429, True),
        (("billing_not_active",), 429, True),
        ((), 429, False),
        (("rate_limit_exceeded", "tokens"), 429, False),
        (("1302",), 429, False),
        (("1113",), 500, False),
    ],
)
def test_a_429_about_the_account_is_not_waited_for_one_about_the_pace_is(codes, status, final):
    error = ServiceError(status, "no", frozenset(codes), {})
    assert (is_out_of_quota(error), is_retryable(error)) == (final, not final)


def waited(status, headers, attempt=1):
    return retry_pause(ServiceError(status, "no", frozenset(), headers), attempt)


@pytest.mark.parametrize("headers", [{}, {"retry-after": "0"}, {"retry-after": "soon"}])
def test_without_word_the_wait_is_random_and_bounded(headers):
    assert 0.0 < waited(503, headers, attempt=3) <= 60.0
    assert len({waited(503, headers, attempt=5) for _ in range(5)}) > 1
    assert waited(503, {"retry-after": "77"}) == 77.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after_reads_every_form(headers, seconds):
    assert retry_after(headers) == seconds
