"""What reports call a model whose folder is called `model`."""

from pathlib import Path

import pytest

from angle_train.model.load import telling_name


@pytest.fixture
def folder(tmp_path):
    def made(*parts, card=None):
        path = tmp_path.joinpath(*parts)
        path.mkdir(parents=True)
        if card is not None:
            (path / "README.md").write_text(card)
        return str(path)

    return made


def test_a_name_that_says_something_stays(folder):
    assert telling_name(folder("minilm", card="# other")) is None
    assert telling_name("sentence-transformers/all-MiniLM-L6-v2") is None


def test_the_card_or_the_folder_above_names_what_is_called_model(folder):
    card = "---\nlanguage: en\n---\n\n# all-MiniLM-L6-v2\nThis is a model."
    assert telling_name(folder("some_package", "model", card=card)) == "all-MiniLM-L6-v2"
    assert telling_name(folder("notes", "model")) == "notes"
    assert telling_name(folder("veterinary", "runs", "model")) is None
    assert telling_name(folder("titles", "model", card="# A model <b>with a long title</b>")) == "titles"


def test_a_users_own_name_is_not_told(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home" / "jane")
    place = tmp_path / "home" / "jane" / "model"
    place.mkdir(parents=True)
    assert telling_name(str(place)) is None
