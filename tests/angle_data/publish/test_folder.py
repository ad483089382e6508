"""What a rebuild does to a data set folder that the user has worked in."""

import logging
import os

import pytest
import yaml

from angle_data.errors import InputError
from angle_data.publish.card import Card, write_dataset
from angle_data.records import LabelledPair

CARD = Card("Title", "Summary.", ("made so",), ("a limit",))
PAIRS = [LabelledPair("the disk is full", f"no space {n}", 1, 1.0, 0.9, "synonym", "t") for n in range(3)]


@pytest.fixture
def build(tmp_path, monkeypatch, caplog):
    """Write the data set with so many pairs; returns its folder and what was said."""
    monkeypatch.setattr(logging.getLogger("angle"), "propagate", True)

    def call(count=3):
        caplog.clear()
        write_dataset(tmp_path / "set", {"train": PAIRS[:count]}, CARD)
        return tmp_path / "set", [record.getMessage() for record in caplog.records]

    return call


def edit(path, *changes):
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)
    return text


@pytest.mark.parametrize(
    "name",
    [".DS_Store", "data/.DS_Store", "thesis.txt", ".git/x/ab", "figures/mine.png", "data/more.parquet"],
)
def test_other_files_stay_where_they_are(build, name):
    folder, _ = build()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine")
    (folder / "data" / "link").symlink_to("nowhere")
    (folder / "data" / "test-00000-of-00001.parquet").write_text("of an earlier build")
    folder, said = build()
    assert (folder / name).read_text() == "mine"
    assert os.readlink(folder / "data" / "link") == "nowhere"
    assert not (folder / "data" / "test-00000-of-00001.parquet").exists()
    assert said == []


def test_a_link_stays_and_the_folder_that_it_leads_to_is_replaced(build, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "set").symlink_to("disk/big")
    with pytest.raises(InputError, match="set is a file, or a link to nothing; give another folder"):
        build()
    # As a process that was killed between its two moves leaves it: the data set is put back.
    (tmp_path / "disk" / ".bigger").mkdir()
    (tmp_path / "disk" / ".big.writing-1" / "old").mkdir(parents=True)
    (tmp_path / "disk" / ".big.writing-1" / "old" / "thesis.txt").write_text("mine")
    folder, _ = build()
    assert os.readlink(folder) == "disk/big"
    assert sorted(os.listdir(tmp_path / "disk")) == [".bigger", "big"]
    assert sorted(os.listdir(folder)) == ["README.md", "data", "thesis.txt"]


def test_fields_of_the_front_matter_that_we_do_not_write_are_kept(build):
    folder, _ = build()
    note = "# No licence is stated"
    card = (folder / "README.md").read_text()
    assert note in card
    assert "license" not in yaml.safe_load(card.split("---\n")[1])
    edit(folder / "README.md", ("---\n", "---\nlicense: cc-by-4.0\npretty_name: Größe\nlanguage: [en, de]\n"))
    for count in (3, 2, 1):
        folder, said = build(count)
        text = (folder / "README.md").read_text()
        front = yaml.safe_load(text.split("---\n")[1])
        assert (front["license"], front["pretty_name"]) == ("cc-by-4.0", "Größe")
        assert front["language"] == ["en", "de"]
        assert front["task_categories"] == ["sentence-similarity"]
        assert f"| train | synonym | {count} |" in text
        assert note not in text
        assert said == []
    assert sorted(os.listdir(folder)) == ["README.md", "data"]


SUMMARY, TAGS = ("Summary.", "Summary. Mine, too."), ("- sentence-pairs\n", "- sentence-pairs\n- mine\n")


@pytest.mark.parametrize("change", [SUMMARY, TAGS, ("---\n", "---\n[no yaml: {\n"), ("---\n", "")])
def test_an_edited_card_is_kept_beside_the_new_one_and_said(build, change):
    folder, _ = build()
    new = (folder / "README.md").read_text()
    edited = edit(folder / "README.md", change)
    folder, said = build()
    assert (folder / "README.md").read_text() == new
    assert (folder / "README.md.bak").read_text() == edited
    (line,) = said
    assert f"{folder / 'README.md'} was edited" in line
    assert "README.md.bak" in line
    # Said once; a second edit does not overwrite the first.
    assert build()[1] == []
    again = edit(folder / "README.md", ("Summary.", "Another summary."))
    build()
    assert (folder / "README.md.bak").read_text() == edited
    assert (folder / "README.md.bak2").read_text() == again


def test_a_card_of_which_it_is_unknown_who_wrote_it_is_kept(build, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "README.md").write_text("# My notes\n")
    folder, said = build()
    assert (folder / "README.md.bak").read_text() == "# My notes\n"
    assert len(said) == 1
