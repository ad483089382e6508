"""What `status`, `pilot` and `run` say of a section `[fit]`: no slip in it ends in a traceback."""

from dataclasses import fields

import pytest

from angle_data.errors import AngleError
from angle_train.given import look_at_section
from angle_train.options import FitOptions

ODD = (
    *("", "my model", "~nouser/x", "\0", "a\0/b", "hub:"),
    *(-1, 1e999, float("nan"), True, {}),
    *([], [""], [3], ["~nouser/x"], ["\0"], [[]]),
    *("./none", "none/none", "a/b/c.toml", "file/x.toml", "folder"),
)
OPTIONS = [item.metadata["option"].flag or item.name for item in fields(FitOptions)]


@pytest.fixture(params=[True, False], ids=["offline", "online"])
def hub(request, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", request.param)


@pytest.mark.parametrize("option", OPTIONS)
def test_an_odd_value_is_an_error_of_one_line_or_none(hub, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    section = {"data": ["runs/pairs"], "backbone": "org/model", "out": "model"}
    for value in ODD:
        try:
            errors, files = look_at_section(section | {option: value}, "[fit]")
        except Exception as error:  # noqa: BLE001 - a traceback is what must not come
            pytest.fail(f"{option} = {value!r}: {error!r}")
        assert all(isinstance(error, AngleError) for error in errors), (value, errors)
        assert all(str(error).startswith("[fit] ") and "\n" not in str(error) for error in errors), errors
        assert all(isinstance(file, str) for _, file in files), (value, files)


@pytest.mark.parametrize("option", ["backbone", "teacher"])
def test_a_name_that_is_no_hub_id_is_refused_as_fit_does(hub, option):
    section = {"data": ["runs/pairs"], "backbone": "org/model", "out": "model", option: "my model"}
    (error,), _ = look_at_section(section, "[fit]")
    assert str(error) == "[fit] 'my model' is neither a local directory nor a hub id"
