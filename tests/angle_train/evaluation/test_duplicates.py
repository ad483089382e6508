"""Duplicate search: ranks, ties and recall on sets counted by hand."""

import numpy as np
import pytest
from train_runs import direction, table

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.evaluation import duplicates
from angle_train.evaluation.duplicates import DuplicateTask, ranks_of
from angle_train.evaluation.similarity import unit_rows
from angle_train.evaluation.task import Source, TaskData

RNG = np.random.default_rng(0)


def circle(degrees):
    return unit_rows(np.array([direction(d) for d in degrees]))


@pytest.mark.parametrize("block", [10_000_000, 9])
def test_ranks_leave_out_the_query_and_count_ties_against_the_model(monkeypatch, block):
    monkeypatch.setattr("angle_train.evaluation.similarity._BLOCK_CELLS", block)
    # From 0°: 5° (rank 1), 10° twice (one relevant: last of the two, rank 3), 40° (4), 80° (5).
    unit = circle([0, 10, 5, 10, 80, 40])
    queries = np.array([0, 4])
    relevant = [np.array([1, 4]), np.array([5, 0])]
    assert [r.tolist() for r in ranks_of(relevant, queries, unit)] == [[3, 5], [1, 5]]
    assert ranks_of([np.array([1])], np.array([0]), circle([0, 120, 100]))[0].tolist() == [2]  # far below 0
    same = np.ones((4, 2)) / np.sqrt(2)
    assert ranks_of([np.array([1, 2])], np.array([0]), same)[0].tolist() == [2, 3]


@pytest.mark.parametrize("block", [10_000_000, 999 * 7, 999])
def test_copies_of_a_report_are_ties_whatever_block_they_are_in(monkeypatch, block):
    monkeypatch.setattr("angle_train.evaluation.similarity._BLOCK_CELLS", block)
    one = unit_rows(RNG.normal(size=(333, 48)))
    unit = np.vstack([one, one, one])
    queries = np.arange(333)
    found = ranks_of([np.array([row + 333]) for row in queries], queries, unit)
    assert np.unique(np.concatenate(found)).tolist() == [2]  # behind the copy that is not relevant


def test_duplicates_are_searched_among_all_reports(tmp_path):
    degrees = [0, 5, 10, 60, 65]
    clusters = ["a", "b", "a", "c", "a"]
    write_jsonl(
        tmp_path / "bugs" / "test.jsonl",
        ({"title": f"{d}", "body": "", "cluster": c} for d, c in zip(degrees, clusters, strict=True)),
    )
    task = DuplicateTask(TaskData("bugs"), None, "test")
    data = task.load(Source(tmp_path))
    assert data[1].tolist() == [0, 2, 4]
    outcome = task.measure(data, table({f"{d}\n": d for d in degrees}))
    # From 0°: 10° at rank 2, 65° at 4. From 10°: 0° at 2, 65° at 4. From 65°: 10° at 2, 0° at 4.
    assert outcome.statistics["map"].value() == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert outcome.statistics["mrr"].value() == pytest.approx(1 / 2)
    assert outcome.statistics["recall@1"].value() == 0
    assert outcome.statistics["recall@5"].value() == 1
    write_jsonl(tmp_path / "bugs" / "test.jsonl", [{"text": "x", "cluster": 1}, {"text": "y", "cluster": 2}])
    with pytest.raises(InputError, match="no two reports are in one cluster"):
        task.load(Source(tmp_path))
    write_jsonl(tmp_path / "bugs" / "test.jsonl", [{"text": "x"}])
    with pytest.raises(InputError, match="no cluster; a report without duplicates needs its own"):
        task.load(Source(tmp_path))


def pool(tmp_path, clusters):
    rows = ({"text": f"t{i}", "cluster": cluster} for i, cluster in enumerate(clusters))
    write_jsonl(tmp_path / "bugs" / "test.jsonl", rows)
    task = DuplicateTask(TaskData("bugs"), None, "test")
    return task, task.load(Source(tmp_path))


def test_what_is_drawn_for_intervals_of_duplicate_search_are_clusters(tmp_path, monkeypatch):
    # Cluster b has three queries that find nothing at rank 1, a has two that do.
    ranks = {0: [1], 2: [2, 3], 3: [3, 4], 4: [2, 3], 5: [1]}
    monkeypatch.setattr(
        duplicates, "ranks_of", lambda relevant, queries, unit: [np.array(ranks[row]) for row in queries]
    )
    task, data = pool(tmp_path, "acbbba")
    assert data[3].tolist() == [0, 1, 1, 1, 0]
    outcome = task.measure(data, table({f"t{i}": i for i in range(6)}))
    recall = outcome.statistics["recall@1"]
    assert (recall.size, recall.value()) == (2, pytest.approx(2 / 5))
    # Only a; only b; a twice and b once: four of seven queries.
    assert recall.resampled(np.array([[2, 0], [0, 2], [2, 1]])) == pytest.approx([1, 0, 4 / 7])
