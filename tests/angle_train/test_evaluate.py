"""Similarities of pairs, Spearman's correlation, and the comparison of several models."""

import numpy as np
import pytest

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet, load_pairs
from angle_train.evaluate import compare as comparison
from angle_train.evaluate.bootstrap import draw, interval_around, paired_bootstrap
from angle_train.evaluate.compare import WORD_OVERLAP, Result, compare
from angle_train.evaluate.run import evaluate_closely
from angle_train.evaluate.similarity import evaluate_model, spearman, word_overlap
from angle_train.evaluate.statistics import SpearmanOf


def make(pairs, scores):
    score = np.array(scores, dtype=np.float64)
    return PairSet("made", [a for a, _ in pairs], [b for _, b in pairs], score, np.ones(len(pairs)))


@pytest.mark.parametrize(
    ("gold", "similarity", "expected"),
    [
        ([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),  # 1 - 6·(0+1+1+0)/(4·15)
        ([0, 0, 1, 1], [1, 2, 3, 4], 0.894427),  # ranks 1.5 1.5 3.5 3.5: 4 / √(4·5)
        ([1, 1, 1], [1, 2, 3], 0.0),
        ([1, 2, 3], [5, 5, 5], 0.0),
        ([1, 2, 3], [1, float("nan"), 3], 0.0),
    ],
)
def test_spearman(gold, similarity, expected):
    assert spearman(np.array(gold, dtype=float), np.array(similarity, dtype=float)) == pytest.approx(expected)


def test_word_overlap_is_the_jaccard_index_of_words():
    pairs = make([("Disk full!", "disk FULL"), ("disk full", "disk empty"), ("a b", "c d")], [1, 0.5, 0])
    assert word_overlap(pairs).tolist() == pytest.approx([1, 1 / 3, 0])


def test_similarity_is_the_cosine_of_each_pair(tiny_model):
    pairs = make(
        [("the node failed", "a node is down"), ("the node failed", "backup done at noon"), ("x", "x")],
        [1, 0, 1],
    )
    expected = [
        np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))
        for a, b in (
            (tiny_model.encode(first), tiny_model.encode(second))
            for first, second in zip(pairs.text1, pairs.text2, strict=True)
        )
    ]
    similarity = evaluate_model(tiny_model, pairs)
    assert similarity == pytest.approx(expected, abs=1e-5)
    assert similarity[2] == pytest.approx(1)


def test_zero_embeddings_have_similarity_zero(tiny_model):
    for parameter in tiny_model.parameters():
        parameter.data.zero_()
    assert evaluate_model(tiny_model, make([("a", "b"), ("c", "d")], [0, 1])).tolist() == [0, 0]


def test_comparison_lists_overlap_baseline_and_models():
    pairs = make([(f"a{i}", f"b{i}") for i in range(30)], np.linspace(0, 1, 30))
    reverse, right = pairs.score[::-1], pairs.score
    results = compare(pairs, {"old": reverse, "new": right}, baseline="old", role="dev")
    assert [(r.model, r.baseline, r.score.value) for r in results] == [
        (WORD_OVERLAP, None, 0.0),
        ("old", None, pytest.approx(-1)),
        ("new", "old", pytest.approx(1)),
    ]
    assert {(r.pairs, r.role, r.count) for r in results} == {("made", "dev", 30)}
    assert results[2].difference.delta == pytest.approx(2)
    assert all(r.difference is None for r in compare(pairs, {"old": reverse}))
    assert [Result.from_dict(r.to_dict()) for r in results] == results


def test_all_models_are_measured_on_one_drawing_of_resamples(monkeypatch):
    pairs = make([(f"a b{i % 3}", f"a b{i}") for i in range(30)], np.linspace(0, 1, 30))
    noise = np.random.default_rng(0).normal(size=(2, 30))
    old, new = pairs.score + noise[0], pairs.score + 0.5 * noise[1]
    drawings = []
    monkeypatch.setattr(
        comparison, "draw", lambda columns, n: drawings.append((len(columns), n)) or draw(columns, n)
    )
    overlap, before, after = compare(pairs, {"old": old, "new": new}, baseline="old")
    assert drawings == [(3, 10_000)]
    for result, column in ((overlap, word_overlap(pairs)), (before, old), (after, new)):
        statistic = SpearmanOf(pairs.score, column)
        assert result.score == interval_around(statistic.value(), *draw([statistic], 10_000, 0))
    assert after.difference == paired_bootstrap(pairs.score, old, new, 10_000, 0)


def test_large_sets_get_fewer_resamples_and_say_so(monkeypatch, caplog):
    monkeypatch.setattr(comparison, "resamples_for", lambda count: 40 if count == 30 else 10_000)
    pairs = make([(f"a{i}", f"b{i}") for i in range(30)], np.linspace(0, 1, 30))
    with caplog.at_level("INFO", logger="angle"):
        (_, one) = compare(pairs, {"one": pairs.score + np.sin(np.arange(30))})
    statistic = SpearmanOf(pairs.score, pairs.score + np.sin(np.arange(30)))
    assert one.score == interval_around(statistic.value(), *draw([statistic], 40, 0))
    assert caplog.messages == ["made: 30 pairs, so intervals are from 40 resamples"]


def test_a_model_does_not_take_the_place_of_word_overlap():
    pairs = make([(f"a{i}", f"b{i}") for i in range(30)], np.linspace(0, 1, 30))
    with pytest.raises(InputError, match="a model cannot be called 'word overlap': rename its directory"):
        compare(pairs, {WORD_OVERLAP: pairs.score})


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_model_that_gives_no_numbers_is_named_not_compared(broken):
    pairs = make([(f"a{i}", f"b{i}") for i in range(30)], np.linspace(0, 1, 30))
    column = pairs.score.copy()
    column[[3, 7]] = broken
    with pytest.raises(InputError, match="new: 2 of 30 similarities of made are not numbers; its weights"):
        compare(pairs, {"old": pairs.score, "new": column}, baseline="old")


def test_every_model_is_measured_on_every_source(tiny_model_dir, tiny_model, examples):
    checkpoint = tiny_model_dir.parent / "checkpoint"
    sources = [str(examples / "eval_natural.jsonl"), str(examples / "eval_contrast.jsonl")]
    results = evaluate_closely(
        [str(checkpoint)], sources, baseline=str(tiny_model_dir), split="test", device="cpu"
    ).results
    assert [(r.pairs, r.model) for r in results] == [
        (name, model)
        for name in ("eval_natural/test", "eval_contrast/test")
        for model in (WORD_OVERLAP, "model", "checkpoint")
    ]
    contrast = load_pairs(sources[1], rows="test")
    assert results[4].score.value == pytest.approx(
        spearman(contrast.score, evaluate_model(tiny_model, contrast))
    )
    assert results[5].difference.delta == pytest.approx(0)
    assert [r.score.value for r in results if r.model == WORD_OVERLAP] == pytest.approx(
        [0.516, -0.236], abs=5e-4
    )


def test_a_scale_that_no_source_is_on_is_refused(tmp_path):
    from datasets import Dataset

    (tmp_path / "data").mkdir()
    rows = [{"text1": f"a{i}", "text2": f"b{i}", "score": i / 3} for i in range(4)]
    Dataset.from_list(rows).to_parquet(tmp_path / "data" / "train-00000-of-00001.parquet")
    with pytest.raises(InputError, match="--scale 0-5 fits none of the pairs"):
        evaluate_closely(["unused"], [str(tmp_path)], scale="0-5")


def test_models_with_equal_names_are_told_apart(tiny_model_dir, tmp_path, examples):
    copy = tmp_path / "model"
    copy.symlink_to(tiny_model_dir)
    source = str(examples / "eval_natural.jsonl")
    found = evaluate_closely([str(copy)], [source], baseline=str(tiny_model_dir), split="dev", device="cpu")
    assert [r.model for r in found.results] == [WORD_OVERLAP, str(tiny_model_dir), str(copy)]
    with pytest.raises(InputError, match="no rows with split train"):
        evaluate_closely([str(copy)], [source], split="train")


@pytest.fixture
def data_set(tmp_path):
    """Add splits of so many pairs to a data set and return its directory."""
    from datasets import Dataset

    def add(**counts):
        (tmp_path / "data").mkdir(exist_ok=True)
        for split, count in counts.items():
            rows = [{"text1": f"a{i}", "text2": f"b{i % 3}", "score": i / 8} for i in range(count)]
            Dataset.from_list(rows).to_parquet(tmp_path / "data" / f"{split}-00000-of-00001.parquet")
        return str(tmp_path)

    return add


@pytest.mark.parametrize(("count", "told"), [(19, True), (20, False)])
def test_very_few_pairs_are_told(tiny_model_dir, data_set, caplog, count, told):
    evaluate_closely([str(tiny_model_dir)], [data_set(test=count)], device="cpu")
    assert (f"has {count} pairs only: its figures and intervals say little" in caplog.text) == told


def test_pairs_to_train_on_are_not_measured_on_unasked(tiny_model_dir, data_set):
    def counts(**asked):
        found = evaluate_closely([str(tiny_model_dir)], [source], device="cpu", **asked)
        return {result.count for result in found.results}

    source = data_set(train=9)
    assert counts() == {9}  # there is nothing else
    data_set(validation=7)
    with pytest.raises(InputError, match=r"has the splits train, validation; choose one with --split"):
        counts()
    data_set(test=5)
    assert counts() == {5}
    assert counts(split="train") == {9}


def test_dev_is_the_validation_split_of_a_data_set(tiny_model_dir, tmp_path, data_set):
    data_set(train=9, validation=7)
    found = evaluate_closely([str(tiny_model_dir)], [str(tmp_path)], split="dev", device="cpu")
    assert {result.count for result in found.results} == {7}
