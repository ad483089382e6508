"""Reading tasks' rows from a folder or the hub, and what is said when something is missing."""

from angle_train.evaluation.sts import SICK_R
from angle_train.evaluation.task import Source


def test_a_task_asks_the_hub_for_its_own_split_and_columns(hub):
    row = {"sentence_A": "a", "sentence_B": "b", "relatedness_score": 3.5, "entailment_judgment": "x"}
    asked = hub([row, row | {"relatedness_score": 1.0}])
    pairs = SICK_R.load(Source())
    assert (pairs.text1, pairs.text2, pairs.score.tolist()) == (["a", "a"], ["b", "b"], [3.5, 1.0])
    assert asked == [("RobZamp/sick", None, "test", "refs/convert/parquet")]
