import pytest
from ensembles import write_grades

from angle_data.ensembling.read import read_scores
from angle_data.errors import InputError
from angle_data.text import pair_key

ROW = {"text1": "Disk full.", "text2": "No space left.", "score": 4, "model": "judge", "key": "k"}


def test_grades_of_several_runs_and_graders(tmp_path):
    turned = ROW | {"text1": "no space LEFT", "text2": "disk full", "score": 3.0}
    others = [ROW | {"model": "other", "score": 0}, ROW | {"text2": "Disk empty.", "score": 1.5}]
    one, two = write_grades(tmp_path / "one", [ROW, turned]), write_grades(tmp_path / "two", others)
    graded = read_scores([one, two])
    key = pair_key("Disk full.", "No space left.")
    assert graded.grades == {
        key: {"judge": 3.5, "other": 0.0},  # graded twice by one: the mean
        pair_key("Disk full.", "Disk empty."): {"judge": 1.5},
    }
    assert graded.rows == {"judge": 3, "other": 1}
    assert read_scores([two, one]) == graded


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": 5.5}, r"scores.jsonl:2: score must be a number from 0 to 5, got 5.5"),
        ({"score": -1}, r":2: score must be a number from 0 to 5, got -1"),
        ({"score": "4"}, r":2: score must be a number from 0 to 5, got '4'"),
        ({"score": True}, r":2: score must be a number from 0 to 5, got True"),
        ({"score": None}, r":2: score must be a number from 0 to 5, got None"),
        ({"score": float("nan")}, r":2: score must be a number from 0 to 5, got nan"),
        ({"text2": ""}, r":2: text2 must be a non-empty string, got ''"),
        ({"text1": 7}, r":2: text1 must be a non-empty string, got 7"),
        ({"model": None}, r":2: model must be a non-empty string, got None"),
    ],
)
def test_malformed_rows_are_named(tmp_path, change, message):
    run = write_grades(tmp_path / "run", [ROW, ROW | change])
    with pytest.raises(InputError, match=message):
        read_scores([run])


def test_a_folder_without_grades_or_given_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no scores.jsonl; grade pairs with `angle-data llm-score"):
        read_scores([tmp_path])
    run = write_grades(tmp_path / "run", [ROW])
    with pytest.raises(InputError, match=r"--scores .*run is given twice"):
        read_scores([run, tmp_path / "." / "run"])
