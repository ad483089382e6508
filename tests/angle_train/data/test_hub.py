"""What goes wrong on the way to the hub is one line that says what to check."""

from types import SimpleNamespace

import datasets
import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError

from angle_data.errors import InputError
from angle_data.tables import TOKEN_REFUSED, load_hub_dataset
from angle_train.model.load import load_backbone


class OddProtocol(Exception):
    """Stands for an error of an HTTP library, which is none of Python's own."""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OddProtocol("Request URL is missing a protocol."), "Request URL is missing a protocol."),
        (ConnectionError("Couldn't reach the Hub\n(timeout)"), "Couldn't reach the Hub (timeout)"),
        (ConnectionError("Couldn't reach 'a/issues-401'. Try again."), "Couldn't reach 'a/issues-401'"),
        (RuntimeError(), "RuntimeError"),
        (OSError("401 Client Error. Unauthorized for url: https://hub/api"), TOKEN_REFUSED),
    ],
)
def test_what_went_wrong_is_one_line(monkeypatch, error, line):
    def fail(*given, **named):
        raise error

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(InputError) as caught:
        load_hub_dataset("a/b", "test", instead=", or give a folder")
    if line != TOKEN_REFUSED:
        line += "; check the id, the split, HF_ENDPOINT if it is set, and that the hub can be reached"
    assert str(caught.value) == f"hub:a/b (split test) cannot be loaded: {line}, or give a folder"


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (401, "someone/model: the hub refuses the access token (401); check HF_TOKEN"),
        (500, "someone/model is not a local directory and not in the cache, and the hub cannot be reached"),
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
