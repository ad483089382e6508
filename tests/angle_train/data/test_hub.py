"""What goes wrong on the way to the hub is one line that says what to check."""

from types import SimpleNamespace

import datasets
import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError

from angle_data.errors import InputError
from angle_train.data.sources import load_hub_dataset
from angle_train.model.load import load_backbone


class OddProtocol(Exception):
    """Stands for an error of an HTTP library, which is none of Python's own."""


@pytest.mark.parametrize(
    ("error", "endpoint", "line"),
    [
        (
            OddProtocol("Request URL is missing a protocol."),
            "nonsense",
            "Request URL is missing a protocol.; check the id, the split, and HF_ENDPOINT, which is nonsense",
        ),
        (
            ConnectionError("Couldn't reach the Hub\n(timeout)"),
            None,
            "Couldn't reach the Hub (timeout); check the id and the split, or that the hub can be reached",
        ),
        (
            OSError("401 Client Error. Unauthorized for url: https://hub/api"),
            None,
            "the hub refuses the access token (401); check HF_TOKEN, or log in with `hf auth login`",
        ),
        (
            FileNotFoundError("Couldn't find any data file at /here/a/b. Couldn't find 'a/b' on the Hub"),
            None,
            "the hub has no such data set, or gave no answer that can be used; check the id and the split, "
            "or that the hub can be reached",
        ),
        (
            ConnectionError("Couldn't reach 'a/issues-401' on the Hub"),
            None,
            "Couldn't reach 'a/issues-401' on the Hub; check the id and the split, "
            "or that the hub can be reached",
        ),
        (RuntimeError(), None, "RuntimeError; check the id and the split, or that the hub can be reached"),
    ],
)
def test_what_went_wrong_is_one_line(monkeypatch, error, endpoint, line):
    def fail(*given, **named):
        raise error

    monkeypatch.setattr(datasets, "load_dataset", fail)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    if endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(InputError) as caught:
        load_hub_dataset("a/b", "test", instead=", or give a folder")
    assert str(caught.value) == f"hub:a/b (split test) cannot be loaded: {line}, or give a folder"


def test_part_and_revision_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *given, **named: asked.append((given, named)))
    load_hub_dataset("a/b", None, config="part", revision="abc")
    assert asked == [(("a/b", "part"), {"split": None, "revision": "abc"})]


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (401, "someone/model: the hub refuses the access token (401); check HF_TOKEN"),
        (500, "someone/model is no local directory and not in the cache, and the hub cannot be reached"),
    ],
)
def test_a_refused_token_is_told_apart_from_a_hub_that_is_away(monkeypatch, status, line):
    def refuse(*given, **named):
        error = HfHubHTTPError.__new__(HfHubHTTPError)
        error.response = SimpleNamespace(status_code=status)
        raise error

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    with pytest.raises(InputError) as caught:
        load_backbone("someone/model")
    assert line in str(caught.value)
