"""Cuts of a sorted list: all texts once, in order, no chunk too large, and no cheaper cuts anywhere."""

from itertools import combinations, pairwise
from types import SimpleNamespace

import torch
from hypothesis import given
from hypothesis import strategies as st

from angle_train.objective.chunks import _PASS, _TOKENS_AROUND, adaptive_chunks, fixed_chunks
from angle_train.recipe import Recipe
from angle_train.settings import TrainingConfig
from angle_train.train.trainer import choose_chunking, make_collator

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=9).map(sorted)


def cost(chunks):
    return sum(len(chunk) * (len(chunk[-1]) + _TOKENS_AROUND) + _PASS for chunk in chunks)


@given(LENGTHS, st.integers(1, 9))
def test_no_other_cuts_cost_less(lengths, most):
    texts = ["x" * length for length in lengths]
    chunks = adaptive_chunks(texts, most)
    assert [text for chunk in chunks for text in chunk] == texts
    assert max(map(len, chunks)) <= most
    inner = range(1, len(texts))
    every = [(0, *cuts, len(texts)) for n in range(len(texts)) for cuts in combinations(inner, n)]
    ways = [[texts[a:b] for a, b in pairwise(cuts)] for cuts in every]
    allowed = [way for way in ways if max(map(len, way)) <= most]
    assert cost(chunks) == min(map(cost, allowed))


def test_a_long_text_among_short_ones_stands_alone():
    texts = ["x" * 10] * 20 + ["x" * 500]
    assert list(map(len, adaptive_chunks(texts, 32))) == [20, 1]
    assert list(map(len, fixed_chunks(texts, 32))) == [21]
    assert list(map(len, adaptive_chunks(["x" * 10] * 20, 32))) == [20]


def test_chunking_follows_the_recipe(tiny_model, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    rows = [{"text1": "disk " * n, "text2": "node " * n, "score": 1.0} for n in (1, 2, 3, 60, 61)]

    def chunks(chunking):
        batch = make_collator(tiny_model, Recipe(training=TrainingConfig(chunking=chunking)))(rows)
        return [value.shape[0] for name, value in sorted(batch.items()) if name.endswith("input_ids")]

    assert chunks("fixed") == [10]
    assert chunks("adaptive") == [6, 4]
    assert chunks("auto") == [6, 4]  # one process on a CPU


def test_auto_is_fixed_on_a_gpu_and_with_several_processes(monkeypatch):
    def chosen(device, processes, chunking="auto", threads=1):
        monkeypatch.setattr("angle_train.train.trainer.process_count", lambda: processes)
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
        return choose_chunking(
            SimpleNamespace(device=torch.device(device)), TrainingConfig(chunking=chunking)
        )

    assert [chosen("cpu", 1), chosen("cuda", 1), chosen("cpu", 2)] == ["adaptive", "fixed", "fixed"]
    assert chosen("cpu", 1, threads=2) == "fixed"
    assert [chosen("cuda", 1, "adaptive"), chosen("cpu", 1, "fixed")] == ["adaptive", "fixed"]
