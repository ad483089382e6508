"""The data set folder as others load it, and what a rebuild does to one that the user has worked in."""

import logging
import os

import pytest
import yaml
from datasets import List, Value, load_dataset

from angle_data.errors import InputError
from angle_data.publish.card import Card, render_card
from angle_data.publish.dataset import write_dataset
from angle_data.records import LabelledPair

CARD = Card("Title", "Summary.", ("made so", "and so"), ("a limit",))
PAIRS = [
    LabelledPair("the disk is full", "no space is left", 1, 1.0, 0.9, "synonym", "t1", ["a", "b"], []),
    LabelledPair(
        "the disk is full", "the disk is not full", 0, 0.5, 1.0, "antonym", "t1", ["a"], ["near_copy"]
    ),
    LabelledPair("Größe „A“", "尺寸 A", 0, 0.0, 1.0, "random", "t2", [], []),
]


def test_write_dataset_round_trips_through_load_dataset(tmp_path):
    write_dataset(tmp_path / "set", {"train": PAIRS[:2], "test": PAIRS[2:]}, CARD)
    loaded = load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    assert {name: list(split) for name, split in loaded.items()} == {
        "train": [pair.to_dict() for pair in PAIRS[:2]],
        "test": [PAIRS[2].to_dict()],
    }
    features = loaded["train"].features
    assert list(features) == list(PAIRS[0].to_dict())
    assert features["label"] == Value("int64")
    assert features["score"] == Value("float64")
    assert features["models"] == List(Value("string"))
    assert [type(label) for label in loaded["train"]["label"]] == [int, int]


def test_data_sets_of_one_name_are_told_apart_in_one_cache(tmp_path):
    for name, pairs in (("one", PAIRS[:1]), ("two", PAIRS[1:])):
        write_dataset(tmp_path / name / "dataset", {"train": pairs}, CARD)
    write_dataset(tmp_path / "one" / "dataset", {"train": PAIRS[:2]}, CARD)
    found = [
        load_dataset(str(tmp_path / name / "dataset"), cache_dir=str(tmp_path / "cache"))["train"].to_list()
        for name in ("one", "two")
    ]
    assert found == [[pair.to_dict() for pair in pairs] for pairs in (PAIRS[:2], PAIRS[1:])]
    write_dataset(tmp_path / "two" / "dataset", {"train": PAIRS[:1]}, CARD)
    again = load_dataset(str(tmp_path / "two" / "dataset"), cache_dir=str(tmp_path / "cache"))
    assert again["train"].to_list() == [PAIRS[0].to_dict()]


@pytest.mark.parametrize(("count", "size"), [(999, "n<1K"), (1000, "1K<n<10K"), (10_000, "10K<n<100K")])
def test_card_size_class(count, size):
    assert f"size_categories:\n- {size}\n" in render_card({"train": PAIRS[:1] * count}, CARD)


def test_a_build_clears_what_a_killed_one_left_and_keeps_the_old_data_set_when_it_fails(tmp_path):
    bad = LabelledPair("a", "b", "x", 0.0, 1.0, "synonym", "t", [], [])  # type: ignore[arg-type]
    write_dataset(tmp_path / "set", {"train": PAIRS}, CARD)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    half = tmp_path / ".set.writing" / "data"
    half.mkdir(parents=True)
    (half / "test-00000-of-00001.parquet").write_text("half")
    with pytest.raises(Exception, match="x"):
        write_dataset(tmp_path / "set", {"train": PAIRS, "validation": [bad]}, CARD)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    half.mkdir(parents=True)
    (half / "test-00000-of-00001.parquet").write_text("half")
    write_dataset(tmp_path / "set", {"train": PAIRS}, CARD)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert os.listdir(tmp_path) == ["set"]


def test_a_build_that_is_killed_while_files_move_leaves_no_splits_of_two_builds(tmp_path, monkeypatch):
    write_dataset(tmp_path / "set", {"train": PAIRS, "test": PAIRS}, CARD)
    replace, moved = os.replace, []

    def stop(source, target):
        if moved:
            raise KeyboardInterrupt
        moved.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_dataset(tmp_path / "set", {"train": PAIRS[:1], "test": PAIRS[:1]}, CARD)
    monkeypatch.setattr(os, "replace", replace)
    assert moved == list((tmp_path / "set" / "data").iterdir())
    write_dataset(tmp_path / "set", {"train": PAIRS[:1]}, CARD)
    assert [path.name for path in (tmp_path / "set" / "data").iterdir()] == ["train-00000-of-00001.parquet"]


def test_write_dataset_refuses_to_replace_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"file is a file; give another folder"):
        write_dataset(tmp_path / "file", {"train": PAIRS}, CARD)
    with pytest.raises(InputError, match=r"cannot write to .*file: Not a directory; choose another folder"):
        write_dataset(tmp_path / "file" / "set", {"train": PAIRS}, CARD)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def build(tmp_path, monkeypatch, caplog):
    """Write the data set with so many pairs; returns its folder and what was said."""
    monkeypatch.setattr(logging.getLogger("angle"), "propagate", True)

    def call(count=3):
        caplog.clear()
        write_dataset(tmp_path / "set", {"train": [PAIRS[0]] * count}, CARD)
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


def test_fields_of_the_front_matter_that_we_do_not_write_are_kept(build):
    folder, _ = build()
    note = "# No licence is stated"
    assert note in (folder / "README.md").read_text()
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


@pytest.mark.parametrize(
    "change",
    [
        ("Summary.", "Summary. Mine, too."),
        ("- sentence-pairs\n", "- sentence-pairs\n- mine\n"),
        ("---\n", "---\n[no yaml: {\n"),
        ("---\n", ""),
    ],
)
def test_an_edited_card_is_kept_beside_the_new_one_and_said(build, change):
    folder, _ = build()
    new = (folder / "README.md").read_text()
    edited = edit(folder / "README.md", change)
    folder, said = build()
    assert (folder / "README.md").read_text() == new
    assert (folder / "README.md.bak").read_text() == edited
    assert len(said) == 1
    assert f"{folder / 'README.md'} was edited" in said[0]
    assert "README.md.bak" in said[0]
    assert build()[1] == []  # said once


def test_a_card_of_which_it_is_unknown_who_wrote_it_is_kept(build, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "README.md").write_text("# My notes\n")
    folder, said = build()
    assert (folder / "README.md.bak").read_text() == "# My notes\n"
    assert len(said) == 1
