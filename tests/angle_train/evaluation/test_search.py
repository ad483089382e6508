"""Search: the figures of pytrec_eval and of sentence-transformers, ties, blocks, and what is left out."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from angle_train.data.search_set import SearchSet
from angle_train.evaluation import search
from angle_train.evaluation.search import DEPTH, figures_of_query, rank_by_words, rank_documents
from angle_train.evaluation.similarity import Embedder

GOLD = Path(__file__).parent / "pytrec_eval.json"


def search_set(texts, queries, qrels):
    """A search set of texts and queries by id, and grades by both."""
    ids = sorted(texts, reverse=True)
    place = {identity: number for number, identity in enumerate(ids)}
    relevant = [{at: grade for at, grade in qrels[query].items() if grade > 0} for query in queries]
    return SearchSet(
        "made",
        ids,
        [texts[identity] for identity in ids],
        list(queries),
        list(queries.values()),
        [{place[at]: grade for at, grade in found.items() if at in place} for found in relevant],
        [[grade for at, grade in found.items() if at not in place] for found in relevant],
        np.array([place.get(query, -1) for query in queries]),
    )


def with_scores(scores, documents, own=False):
    """Embeddings under which each document has these cosines with each query, and a set of their texts."""
    table = np.array(list(scores.values()))  # (Q, N), small enough for unit rows
    last = np.sqrt(1 - (table**2).sum(axis=0))
    vectors = dict(zip(documents, np.vstack([table, last]).T, strict=True))
    vectors |= {f"query {name}": row for name, row in zip(scores, np.eye(len(table) + 1), strict=False)}
    return lambda texts: np.array([vectors[text] for text in texts])


@pytest.fixture
def gold():
    found = json.loads(GOLD.read_text())
    texts = {name: name for name in found["documents"]}
    queries = {name: f"query {name}" for name in found["scores"]}
    encode = with_scores(found["scores"], found["documents"])
    return search_set(texts, queries, found["qrels"]), encode, found


@pytest.mark.parametrize(("texts", "cells"), [(4096, 4_000_000), (7, 40), (64, 1)])
def test_figures_are_those_of_pytrec_eval_with_grades_and_ties_whatever_the_blocks(
    gold, monkeypatch, texts, cells
):
    monkeypatch.setattr(search, "_TEXTS", texts)
    monkeypatch.setattr(search, "_CELLS", cells)
    searched, encode, found = gold
    ranking = rank_documents(searched, encode)
    for name, values in ranking.figures.items():
        expected = [figures[name] for figures in found["figures"].values()]
        assert values.tolist() == pytest.approx(expected, abs=1e-9), name
    tied = [len(scores) - len(set(scores)) for scores in found["scores"].values()]
    assert min(tied) > 100  # of 150 documents: an order that ignores ids would not do


def test_figures_are_those_of_pytrec_eval_itself_where_it_is_installed(gold):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    searched, encode, found = gold
    runs = {q: dict(zip(found["documents"], row, strict=True)) for q, row in found["scores"].items()}
    evaluator = pytrec_eval.RelevanceEvaluator(found["qrels"], {"ndcg_cut.10", "recall.100"})
    theirs = evaluator.evaluate(runs)
    ranking = rank_documents(searched, encode)
    for ours, name in (("ndcg@10", "ndcg_cut_10"), ("recall@100", "recall_100")):
        assert ranking.figures[ours].tolist() == pytest.approx([theirs[q][name] for q in runs], abs=1e-9)


def slow_figures(order, grades):
    """nDCG, MRR and recall of documents in order, from their definitions."""
    ideal = sorted(grades.values(), reverse=True)[:10]
    found = [grades.get(document, 0) for document in order]

    def dcg(gains):
        return sum(gain / math.log(rank + 1, 2) for rank, gain in enumerate(gains, start=1))

    ranks = [rank for rank, gain in enumerate(found, start=1) if gain]
    return {
        "ndcg@10": dcg(found[:10]) / dcg(ideal),
        "mrr@10": 1 / ranks[0] if ranks and ranks[0] <= 10 else 0,
        "recall@10": sum(rank <= 10 for rank in ranks) / len(grades),
        "recall@100": sum(rank <= 100 for rank in ranks) / len(grades),
    }


@pytest.mark.parametrize("seed", range(8))
def test_figures_are_those_of_the_definitions(seed):
    dice = np.random.default_rng(seed)
    count, depth = int(dice.integers(3, 400)), int(dice.integers(2, 6))
    texts = {f"{number}": f"text {number % 37}" for number in range(count)}  # many are equal
    queries = {f"{number * 3}": f"query {number}" for number in range(12)}  # some have ids of documents
    vectors = {text: dice.integers(-2, 3, depth) + 0.25 for text in {*texts.values(), *queries.values()}}
    qrels = {
        query: {f"{at}": int(dice.integers(1, 4)) for at in dice.integers(count + 5, size=9)}
        for query in queries
    }

    def encode(asked):
        return np.array([vectors[text] for text in asked])

    ranking = rank_documents(search_set(texts, queries, qrels), encode)
    for row, (query, text) in enumerate(queries.items()):
        one = vectors[text] / np.linalg.norm(vectors[text])
        scores = {
            at: np.float32(round(float(one @ (vectors[of] / np.linalg.norm(vectors[of]))), 10))
            for at, of in texts.items()
            if at != query
        }
        order = sorted(scores, key=lambda at: (scores[at], at), reverse=True)
        for name, value in slow_figures(order, qrels[query]).items():
            assert ranking.figures[name][row] == pytest.approx(value, abs=1e-9), name


def test_each_distinct_text_is_encoded_once_and_in_small_blocks(monkeypatch):
    monkeypatch.setattr(search, "_TEXTS", 10)
    texts = {f"d{number}": f"text {number % 25}" for number in range(200)}
    calls = []

    def encode(asked):
        calls.append(list(asked))
        return np.array([[len(text), hash(text) % 97 + 1] for text in asked], dtype=np.float32)

    rank_documents(search_set(texts, {"q": "a query"}, {"q": {"d1": 1}}), encode)
    assert calls[0] == ["a query"]
    assert max(map(len, calls)) == 10
    assert sorted(text for call in calls[1:] for text in call) == sorted(set(texts.values()))


def test_a_document_with_the_id_of_the_query_is_no_result():
    texts = {"a": "one", "b": "two", "c": "three"}
    searched = search_set(texts, {"a": "asked"}, {"a": {"b": 1}})
    vectors = {"asked": [1, 0], "one": [1, 0], "two": [1, 1], "three": [0, 1]}
    ranking = rank_documents(
        searched, lambda asked: np.array([vectors[text] for text in asked], dtype=np.float32)
    )
    found = [searched.ids[place] for place in ranking.places[0] if place >= 0]
    assert found == ["b", "c"]
    assert ranking.figures["mrr@10"].tolist() == [1.0]


def test_figures_are_those_of_sentence_transformers(tiny_model, examples):
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    lines = [json.loads(line) for line in (examples / "eval_natural.jsonl").read_text().splitlines()]
    pairs = {row["sentence1"]: row["sentence2"] for row in lines}
    texts = {f"d{number:03}": text for number, text in enumerate(dict.fromkeys(pairs.values()))}
    names = {text: name for name, text in texts.items()}
    queries = {f"q{number:03}": text for number, text in enumerate(pairs)}
    wanted = {name: {names[pairs[text]]: 1, "d005": 1} for name, text in queries.items()}
    tiny_model.prompts["query"] = "what is "
    evaluator = InformationRetrievalEvaluator(
        queries,
        texts,
        {name: set(found) for name, found in wanted.items()},
        mrr_at_k=[10],
        ndcg_at_k=[10],
        precision_recall_at_k=[10, 100],
        write_csv=False,
    )
    theirs = evaluator(tiny_model)
    ours = rank_documents(search_set(texts, queries, wanted), Embedder(tiny_model, "tiny")).figures
    for name in ("ndcg@10", "mrr@10", "recall@10", "recall@100"):
        assert ours[name].mean() == pytest.approx(theirs[f"cosine_{name}"], abs=1e-6)
    assert 0 < ours["ndcg@10"].mean() < 1
    tiny_model.prompts["query"] = ""
    plain = rank_documents(search_set(texts, queries, wanted), Embedder(tiny_model, "tiny")).figures
    assert plain["ndcg@10"].mean() != ours["ndcg@10"].mean()  # the prompt of queries is used


def test_a_model_that_compares_by_dot_product_is_ranked_by_it(tiny_model):
    texts = {"long": "node", "near": "cluster"}
    vectors = {"asked": [1, 0], "node": [3, 3], "cluster": [1, 0]}
    tiny_model.encode = lambda asked, **_: np.array([vectors[text] for text in asked], dtype=np.float32)
    searched = search_set(texts, {"q": "asked"}, {"q": {"near": 1}})
    assert rank_documents(searched, Embedder(tiny_model, "")).figures["mrr@10"].tolist() == [1.0]
    tiny_model.similarity_fn_name = "dot"
    assert rank_documents(searched, Embedder(tiny_model, "")).figures["mrr@10"].tolist() == [0.5]


def test_words_find_what_shares_them():
    texts = {"a": "the replica lags", "b": "the disk is full", "c": "no words in common"}
    searched = search_set(texts, {"q": "disk full"}, {"q": {"b": 1}})
    ranking = rank_by_words(searched)
    assert [searched.ids[place] for place in ranking.places[0] if place >= 0] == ["b"]
    assert ranking.figures["ndcg@10"].tolist() == [1.0]
    assert ranking.places.shape[1] <= DEPTH


def test_grades_are_gains_and_recall_counts_what_is_relevant():
    found = figures_of_query([0, 2, 0, 1], [2, 1, 1])
    assert found["ndcg@10"] == pytest.approx(
        (2 / math.log2(3) + 1 / math.log2(5)) / (2 + 1 / math.log2(3) + 1 / 2)
    )
    assert found["mrr@10"] == 0.5
    assert found["recall@10"] == pytest.approx(2 / 3)
