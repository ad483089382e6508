"""Folders of data sets as other tools write them: which splits they have, and that their rows are read."""

import json

import pyarrow
import pytest
from datasets import Dataset, DatasetDict
from pyarrow import parquet

from angle_data.errors import InputError
from angle_data.folders import split_of, splits_of
from angle_data.tables import read_table

ROWS = [{"text": f"text {number}", "n": number} for number in range(6)]


def shard(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def numbers(folder, split=None):
    return [row["n"] for _, row in read_table(folder, split=split)]


def test_what_save_to_disk_wrote_is_read(tmp_path):
    Dataset.from_list(ROWS).save_to_disk(tmp_path / "one", num_shards=3)
    assert splits_of(tmp_path / "one") == {"": (tmp_path / "one",)}
    found = list(read_table(tmp_path / "one", require=["n"], columns=["n"]))
    assert found[-1] == (f"{tmp_path / 'one'}: row 6", {"n": 5})
    assert numbers(tmp_path / "one", "test") == list(range(6))  # it has no splits: it is used whole
    data = DatasetDict(train=Dataset.from_list(ROWS[:4]), test=Dataset.from_list(ROWS[4:]))
    data.save_to_disk(tmp_path / "two")
    assert list(splits_of(tmp_path / "two")) == ["test", "train"]
    assert (numbers(tmp_path / "two"), numbers(tmp_path / "two", "test")) == ([0, 1, 2, 3], [4, 5])
    [arrow] = (tmp_path / "two" / "test").glob("*.arrow")
    assert numbers(arrow) == [4, 5]


def test_a_damaged_saved_data_set_is_named(tmp_path):
    Dataset.from_list(ROWS).save_to_disk(tmp_path / "one")
    with pytest.raises(InputError, match=r"one: no column 'body'; columns found: text, n"):
        list(read_table(tmp_path / "one", require=["body"]))
    (tmp_path / "one" / "data-00000-of-00001.arrow").write_bytes(b"")
    with pytest.raises(InputError, match=r"one: not a readable arrow file or saved data set"):
        list(read_table(tmp_path / "one"))
    (tmp_path / "one" / "state.json").unlink()
    for damage in ("", "[" * 99_999, '{"splits": 3}', "[]"):
        (tmp_path / "one" / "dataset_dict.json").write_text(damage)
        with pytest.raises(InputError, match=r"dataset_dict.json is damaged; save the data set again"):
            splits_of(tmp_path / "one")


@pytest.mark.parametrize("home", ["", "data", "dataset/data"])
def test_shards_of_one_name_are_a_split_in_order(tmp_path, home):
    for number in range(3):
        shard(tmp_path / home / f"train-0000{number}-of-00003.parquet", ROWS[2 * number : 2 * number + 2])
    shard(tmp_path / home / "validation-00000-of-00001-0f3a.parquet", ROWS[:1])
    assert list(splits_of(tmp_path)) == ["train", "validation"]
    assert (numbers(tmp_path), numbers(tmp_path, "validation")) == (list(range(6)), [0])
    with pytest.raises(InputError, match=r"has no split 'test'; splits found: train, validation"):
        read_table(tmp_path, split="test")


def test_shards_without_names_of_splits_are_one_data_set(tmp_path):
    for number, name in enumerate(["part-00000-a1.snappy.parquet", "part-00001-a1.snappy.parquet"]):
        shard(tmp_path / name, ROWS[3 * number : 3 * number + 3])
    assert list(splits_of(tmp_path)) == [""]
    assert numbers(tmp_path) == numbers(tmp_path, "test") == list(range(6))
    shard(tmp_path / "test.parquet", ROWS[:1])  # now one has a name: the others are not lost among it
    assert list(splits_of(tmp_path)) == ["part-00000-a1.snappy", "part-00001-a1.snappy", "test"]


def test_folders_and_tables_that_are_named_as_splits(tmp_path):
    shard(tmp_path / "hub" / "train" / "0000.parquet", ROWS[:3])
    shard(tmp_path / "hub" / "train" / "0001.parquet", ROWS[3:])
    shard(tmp_path / "hub" / "test" / "0000.parquet", ROWS[:1])
    assert (numbers(tmp_path / "hub"), numbers(tmp_path / "hub", "test")) == (list(range(6)), [0])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "dev.csv").write_text("text,n\nx,7\n")
    (tmp_path / "files" / "train.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "files" / "notes.json").write_text("{}")
    assert list(splits_of(tmp_path / "files")) == ["train", "validation"]
    assert numbers(tmp_path / "files", "validation") == ["7"]


def test_a_folder_without_a_data_set_is_named(tmp_path):
    with pytest.raises(InputError, match=r"is not a dataset directory: it has neither dataset/data nor data"):
        read_table(tmp_path)
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(
        InputError, match=r"is a run that stopped before writing its results; run its command"
    ):
        read_table(tmp_path)
    (tmp_path / "candidates.jsonl").touch()
    with pytest.raises(InputError, match=r"holds sentences of llm-label; `angle-data ensemble"):
        read_table(tmp_path)


def test_of_a_run_of_llm_score_the_graded_pairs_are_read(tmp_path):
    (tmp_path / "journal.jsonl").write_text("{}")
    (tmp_path / "rejected.jsonl").write_text("{}")
    (tmp_path / "scores.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    assert splits_of(tmp_path) == {"": (tmp_path / "scores.jsonl",)}
    assert numbers(tmp_path) == numbers(tmp_path, "validation") == list(range(6))
    shard(tmp_path / "data" / "train.parquet", ROWS[:2])  # a data set, whatever else is in the folder
    assert numbers(tmp_path) == [0, 1]
    (tmp_path / "run.json").write_text("{}")  # it is the run's own folder, whatever was put there
    assert numbers(tmp_path) == list(range(6))
    (tmp_path / "candidates.jsonl").touch()
    assert numbers(tmp_path) == [0, 1]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00001.parquet", "train"),
        ("train_sft-00000-of-00002-8ab0.parquet", "train_sft"),
        ("issues-00000-of-00001.parquet", "issues"),
        ("part-00000-of-00010.parquet", ""),
        ("Dev.CSV.gz", "validation"),
        ("val-0.parquet", "validation"),
        ("test.2024.parquet", "test"),
        ("training.parquet", "train"),
        ("trainer.parquet", ""),
        ("0000.parquet", ""),
    ],
)
def test_names_of_files_say_their_split(tmp_path, name, split):
    assert split_of(tmp_path / name) == split
