"""Folders and install commands, in a clone and installed."""

import pytest

from angle_data.resources import install_command, packaged_folder


@pytest.mark.parametrize("home", ["prompts", "angle_data/prompts", "angle_train/prompts"])
def test_a_folder_is_found_at_the_root_of_a_clone_or_first_inside_a_package(tmp_path, home):
    for place in ("prompts", home):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    assert packaged_folder("prompts", tmp_path) == tmp_path / home


def test_the_toolkits_own_folders_are_found():
    assert list(packaged_folder("recipes").glob("*.toml"))
    assert list(packaged_folder("prompts").glob("*/*.txt"))
    with pytest.raises(FileNotFoundError, match="'nonsense' is missing from the installed toolkit"):
        packaged_folder("nonsense")


def test_the_install_command_fits_where_the_toolkit_is(tmp_path):
    assert install_command("train", tmp_path) == 'pip install "angle-toolkit[train]"'
    (tmp_path / "pyproject.toml").touch()
    assert install_command("train", tmp_path) == 'pip install -e ".[train]"'
