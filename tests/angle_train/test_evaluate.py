"""Similarities of pairs, Spearman's correlation, and the comparison of several models."""

import numpy as np
import pytest

from angle_data.errors import InputError
from angle_train.evaluate.compare import WORD_OVERLAP, Result, compare
from angle_train.evaluate.run import evaluate
from angle_train.evaluate.sts import evaluate_model, spearman, word_overlap
from angle_train.pairs import PairSet, load_pairs


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
    results = evaluate([str(checkpoint)], sources, baseline=str(tiny_model_dir), split="test", device="cpu")
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
        evaluate(["unused"], [str(tmp_path)], scale="0-5")


def test_models_with_equal_names_are_told_apart(tiny_model_dir, tmp_path, examples):
    copy = tmp_path / "model"
    copy.symlink_to(tiny_model_dir)
    source = str(examples / "eval_natural.jsonl")
    results = evaluate([str(copy)], [source], baseline=str(tiny_model_dir), split="dev", device="cpu")
    assert [r.model for r in results] == [WORD_OVERLAP, str(tiny_model_dir), str(copy)]
    with pytest.raises(InputError, match="no rows with split train"):
        evaluate([str(copy)], [source], split="train")
