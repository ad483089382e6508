"""Which failures are tried again, which are about the account, and for how long to wait before."""

import pytest
from fake_openai import FakeOpenAI, Fault

from angle_data.cli import main
from angle_data.http import ServiceError, is_out_of_quota, is_retryable, retry_after, retry_pause


def refusal(*codes, status=429, said="no"):
    return ServiceError(status, said, frozenset(codes), {})


@pytest.mark.parametrize(
    "codes",
    [
        ("insufficient_quota",),
        ("insufficient_quota", "tokens"),
        ("1113",),
        ("1112",),
        ("billing_not_active",),
    ],
)
def test_an_empty_or_locked_account_is_not_waited_for(codes):
    assert is_out_of_quota(refusal(*codes))
    assert not is_retryable(refusal(*codes))


@pytest.mark.parametrize("codes", [(), ("rate_limit_exceeded", "tokens"), ("1302",), ("1305",)])
def test_a_429_about_the_pace_is_waited_for(codes):
    assert not is_out_of_quota(refusal(*codes))
    assert is_retryable(refusal(*codes))


def test_a_code_of_the_account_with_another_status_is_judged_by_the_status():
    assert not is_out_of_quota(refusal("1113", status=500))
    assert is_retryable(refusal("1113", status=500))


def waited(status, headers, attempt=1):
    return retry_pause(ServiceError(status, "no", frozenset(), headers), attempt)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_error_that_says_how_long_is_waited_for_that_long(status):
    assert waited(status, {"retry-after": "77"}) == 77.0


@pytest.mark.parametrize("headers", [{}, {"retry-after": "0"}, {"retry-after": "soon"}])
def test_without_word_the_wait_is_random_and_bounded(headers):
    assert 0.0 < waited(503, headers, attempt=3) <= 60.0
    assert len({waited(503, headers, attempt=5) for _ in range(5)}) > 1


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


GLM = "余额不足或无可用资源包,请充值。"


@pytest.mark.parametrize(
    ("code", "kind"),
    [("1113", "error"), (1113, "error"), (None, "insufficient_quota")],
    ids=["GLM", "number", "type"],
)
def test_a_run_on_an_empty_account_ends_with_the_services_words(tmp_path, monkeypatch, capfd, code, kind):
    (tmp_path / "texts.txt").write_text("One node left.\nTwo nodes left.\n")
    with FakeOpenAI(always=Fault(429, {}, GLM, code, error_type=kind)) as server:
        options = ["--model", "tiny", "--base-url", server.url, "--concurrency", "1"]
        paths = ["--texts", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "run")]
        monkeypatch.setattr("sys.argv", ["angle-data", "llm-label", *options, *paths])
        with pytest.raises(SystemExit) as stop:
            main()
        assert len(server.seen) == 1
    assert stop.value.code == 1
    assert f"the account has no quota left: {GLM}" in capfd.readouterr().err
