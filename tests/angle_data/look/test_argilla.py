"""Pairs that several people grade in Argilla: the records that it takes, and what it exports.

The exports are in the two layouts of argilla 2.8 (`to_json`, and `to_list(flatten=True)`), made by its code.
"""

import csv
import json

import pytest
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.look.argilla import finish_records, graded_records, write_records
from angle_data.look.grade import draw_pairs
from angle_train.data.pairs import load_pairs


def nested(record, grades):
    """One record as `to_json` writes it."""
    answers = [{"value": grade, "user_id": f"user-{at}"} for at, grade in enumerate(grades)]
    return {
        "id": record["id"],
        "fields": {name: record[name] for name in ("sentence1", "sentence2")},
        "metadata": {"split": record["split"]},
        "suggestions": {},
        "responses": {"score": answers} if answers else {},
        "vectors": {},
        "status": "pending",
        "_server_id": None,
    }


def flat(record, grades, state="submitted"):
    """One record of `to_list(flatten=True)`; without any answer all of its columns are null."""
    columns = {"": grades, ".users": [f"user-{at}" for at in range(len(grades))]}
    columns[".status"] = [state] * len(grades)
    answers = {f"score.responses{name}": values or None for name, values in columns.items()}
    return {**record, "status": "pending", "_server_id": None, **answers}


def command(*arguments):
    return CliRunner().invoke(app, ["grade", *map(str, arguments)])


def table(path):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def records(pairs, tmp_path):
    write_records(tmp_path / "my.jsonl", draw_pairs(pairs, n=12)[0])
    return [row for _, row in read_jsonl(tmp_path / "my.jsonl")]


def test_a_record_has_the_fields_and_the_split_and_no_score_of_a_machine(records, pairs):
    assert [tuple(row.values())[1:] for row in records] == list(draw_pairs(pairs, n=12)[0])
    assert {tuple(row) for row in records} == {("id", "sentence1", "sentence2", "split")}
    assert len({row["id"] for row in records}) == 12


@pytest.mark.parametrize("layout", [nested, flat])
def test_grades_come_back_as_dev_and_test_pairs_that_training_reads(records, tmp_path, layout):
    export = tmp_path / "my.json"
    given = [[], [0], [5], [4, 3], [1, 2, 2], *([at % 6] for at in range(7))]
    export.write_text(json.dumps([layout(row, grades) for row, grades in zip(records, given, strict=True)]))
    means = {row["sentence1"]: sum(g) / len(g) for row, g in zip(records, given, strict=True) if g}
    written = finish_records(export)
    assert sum(written.values()) == 11
    found = {}
    for split in ("dev", "test"):
        rows = load_pairs(str(tmp_path / f"my-{split}.csv"))
        assert len(rows) == written[str(tmp_path / f"my-{split}.csv")]
        assert {row["split"] for row in records if row["sentence1"] in rows.text1} == {split}
        found |= dict(zip(rows.text1, (5 * rows.score).tolist(), strict=True))
    assert found == pytest.approx(means, abs=1e-3)


def test_only_submitted_answers_count_where_the_export_says_which(records, tmp_path):
    rows = [flat(row, [3]) for row in records[:-1]]
    mixed = flat(records[-1], [0, 5, 1])
    mixed["score.responses.status"] = ["discarded", "submitted", "draft"]
    (tmp_path / "my.json").write_text(json.dumps([*rows, mixed]))
    graded = graded_records(tmp_path / "my.json")[records[-1]["split"]]
    assert graded[-1] == (records[-1]["sentence1"], records[-1]["sentence2"], "5")


def test_the_command_there_and_back(pairs, tmp_path):
    said = command(pairs, "--n", 10, "--out", tmp_path / "my.jsonl").stdout
    assert "pairs   10" in said
    assert f"angle-data grade --finish {tmp_path / 'my.json'}" in said
    rows = [flat(row, [at % 6]) for at, (_, row) in enumerate(read_jsonl(tmp_path / "my.jsonl"))]
    (tmp_path / "my.json").write_text(json.dumps(rows))
    said = command("--finish", tmp_path / "my.json").stdout
    assert f"5 pairs in {tmp_path / 'my-dev.csv'}" in said
    assert f"--dev {tmp_path / 'my-dev.csv'} --test {tmp_path / 'my-test.csv'}" in said
    again = command(pairs, "--n", 10, "--out", tmp_path / "my.jsonl")
    assert "exists; move it away" in str(again.exception)


def test_grades_that_another_export_wrote_are_not_replaced(records, tmp_path):
    export = tmp_path / "my.json"
    export.write_text(json.dumps([flat(row, [3]) for row in records]))
    finish_records(export)
    export.write_text(json.dumps([flat(row, [4]) for row in records]))
    with pytest.raises(InputError, match="holds grades that"):
        finish_records(export)
    assert {row["score"] for row in table(tmp_path / "my-dev.csv")} == {"3"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON; export"),
        ('{"fields": 1}', "holds no list of records"),
        ("[3]", "record 1: is no object"),
        ('[{"fields": {"text": "a"}}]', "record 1: no sentence1, sentence2 and split"),
        ('[{"fields": null, "metadata": null}]', "record 1: no sentence1, sentence2 and split"),
        ('[{"sentence1": "a", "sentence2": "b", "split": "train"}]', "got split 'train'"),
        ('[{"sentence1": "a", "sentence2": null, "split": "dev"}]', "needs two texts"),
        ('[{"sentence1": "a", "sentence2": "b", "split": "dev", "score.responses": [6]}]', "0 to 5, got 6"),
        ('[{"sentence1": "a", "sentence2": "b", "split": "dev", "score.responses": ["x"]}]', "got 'x'"),
        ('[{"sentence1": "a", "sentence2": "b", "split": "dev", "score.responses": 4}]', "not as Argilla"),
        (json.dumps([nested({"id": 1, "sentence1": "a", "sentence2": "b", "split": "dev"}, [7])]), "got 7"),
        ('[{"sentence1": "a", "sentence2": "b", "split": "dev"}]', "has a score; grade some"),
    ],
)
def test_what_is_no_export_is_named(tmp_path, content, message):
    (tmp_path / "my.json").write_text(content)
    with pytest.raises(InputError, match=message):
        finish_records(tmp_path / "my.json")


def test_a_missing_export(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        finish_records(tmp_path / "my.json")
