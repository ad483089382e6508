import errno
import os
from pathlib import Path

import pytest
from datasets import List, Value, load_dataset

from angle_data.errors import InputError
from angle_data.publish.card import Card, render_card, write_dataset
from angle_data.records import LabelledPair

CARD = Card("Title", "Summary.", ("made so", "and so"), ("a limit",))
FULL, COPY = "the disk is full", ["near_copy"]
PAIRS = [
    LabelledPair(FULL, "no space is left", 1, 1.0, 0.9, "synonym", "t1", ["a", "b"], []),
    LabelledPair(FULL, "the disk is not full", 0, 0.5, 1.0, "antonym", "t1", ["a"], COPY),
    LabelledPair("Größe „A“", "尺寸 A", 0, 0.0, 1.0, "random", "t2", [], []),
]


BAD = LabelledPair("a", "b", "x", 0.0, 1.0, "synonym", "t", [], [])  # type: ignore[arg-type]


@pytest.fixture
def kept(tmp_path):
    """A data set that stands there at the end as at the beginning, and nothing else does."""
    write_dataset(tmp_path / "set", {"train": PAIRS}, CARD)
    before = (tmp_path / "set" / "README.md").read_bytes()
    yield tmp_path / "set"
    assert (tmp_path / "set" / "README.md").read_bytes() == before
    assert os.listdir(tmp_path) == ["set"]


def test_data_sets_of_one_name_are_told_apart_in_one_cache(tmp_path):
    for name, pairs in (("one", PAIRS[:1]), ("two", PAIRS[1:])):
        write_dataset(tmp_path / name / "dataset", {"train": pairs, "validation": PAIRS[:1]}, CARD)
    write_dataset(tmp_path / "one" / "dataset", {"train": PAIRS[:2]}, CARD)
    assert os.listdir(tmp_path / "one" / "dataset" / "data") == ["train-00000-of-00001.parquet"]

    def loaded(name):
        return load_dataset(str(tmp_path / name / "dataset"), cache_dir=str(tmp_path / "cache"))["train"]

    for name, pairs in (("one", PAIRS[:2]), ("two", PAIRS[1:])):
        assert loaded(name).to_list() == [pair.to_dict() for pair in pairs]
    write_dataset(tmp_path / "two" / "dataset", {"train": PAIRS[:1]}, CARD)
    again = loaded("two")
    assert again.to_list() == [PAIRS[0].to_dict()]
    kinds = {"label": Value("int64"), "score": Value("float64"), "models": List(Value("string"))}
    assert {name: again.features[name] for name in kinds} == kinds


def test_card_statistics():
    text = render_card({"train": PAIRS[:2], "test": PAIRS[2:]}, CARD)
    # synonym: 1 shared word ("is") of 7; antonym: 4 of 5.
    assert "| train | synonym | 1 | 1 | 4.0 | 4.0 | 0.14 | 0 |" in text
    assert "| train | antonym | 1 | 1 | 4.0 | 5.0 | 0.80 | 1 |" in text
    assert "| test | random | 1 | 1 | 2.0 | 2.0 | 0.33 | 0 |" in text
    assert "| a | 1 | 1 |\n| b | 1 | 0 |\n" in text
    assert "- made so\n- and so\n" in text
    assert "- a limit\n" in text


@pytest.mark.parametrize(("count", "size"), [(999, "n<1K"), (1000, "1K<n<10K"), (10_000, "10K<n<100K")])
def test_card_size_class(count, size):
    assert f"size_categories:\n- {size}\n" in render_card({"train": PAIRS[:1] * count}, CARD)


def test_write_dataset_keeps_the_old_one_when_the_new_fails(kept):
    with pytest.raises(Exception, match="x"):
        write_dataset(kept, {"train": [BAD]}, CARD)


def test_write_dataset_refuses_to_replace_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file is a file, or a link to nothing; give another folder"):
        write_dataset(tmp_path / "file", {"train": PAIRS}, CARD)
    with pytest.raises(InputError, match=r"cannot write to .*file: File exists; choose another folder"):
        write_dataset(tmp_path / "file" / "set", {"train": PAIRS}, CARD)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("error", [OSError(errno.EIO, "the disk is gone"), KeyboardInterrupt()])
def test_the_old_data_set_is_put_back_if_the_new_cannot_take_its_place(kept, monkeypatch, error):
    replace = os.replace

    def fail(source, target):
        if source.name == "new":
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(type(error)):
        write_dataset(kept, {"train": PAIRS[:1]}, CARD)


def test_the_old_data_set_outlasts_a_disk_that_fails_altogether(kept, monkeypatch):
    """What could not be put back at once is put back by the next build."""
    before = (kept / "README.md").read_bytes()
    replace = os.replace

    def fail(source, target):
        if Path(target).name == "set":
            raise OSError(errno.EIO, "the disk is gone")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="the disk is gone"):
            write_dataset(kept, {"train": PAIRS[:1]}, CARD)
    assert [path.read_bytes() for path in kept.parent.glob(".set.writing-*/old/README.md")] == [before]
    with pytest.raises(Exception, match="x"):
        write_dataset(kept, {"train": [BAD]}, CARD)
