"""Models of many kinds through fit, eval and encode: the figures are those of Sentence Transformers."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from tiny_backbones import checkpoint
from train_runs import now, turned

from angle_data.errors import InputError
from angle_train import evaluate, fit
from angle_train.encode import encode_file
from angle_train.options import EncodeConfig

FAST = {"loss": "graded", "epochs": 1, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}
FAST |= {"device": "cpu", "max_seq_length": 48}
KINDS = {
    "bert, mean": ("bert", "mean"),
    "bert, cls": ("bert", "cls"),
    "roberta": ("roberta", "mean"),
    "xlm-roberta": ("xlm-roberta", "mean"),
    "mpnet": ("mpnet", "mean"),
    "distilbert": ("distilbert", "mean"),
    "modernbert": ("modernbert", "cls"),
    "decoder, last token": ("qwen3", "lasttoken"),
    "dense and normalize": ("bert", "mean"),
    "prompts": ("bert", "mean"),
    "router": ("bert", "mean"),
}
"""Kind -> family of its transformer, and pooling; docs/training.md lists them."""


def made(kind, folder):
    """A random model of a kind, saved as Sentence Transformers saves it."""
    family, pooling = KINDS[kind]
    modules = encoder(family, pooling, folder / "checkpoint")
    if kind == "dense and normalize":
        modules += [Dense(32, 16, activation_function=torch.nn.Tanh()), Normalize()]
    if kind == "router":
        other = encoder("distilbert", "mean", folder / "other")
        modules = [Router({"query": modules, "document": other}, default_route="document")]
    model = SentenceTransformer(modules=modules, device="cpu")
    if kind == "prompts":
        model.prompts |= {"query": "query: ", "document": "passage: "}
    model.save_pretrained(str(folder / "model"), create_model_card=False)
    return folder / "model"


def encoder(family, pooling, folder):
    reader = Transformer(str(checkpoint(family, folder)))
    reader.modality_config.pop("message", None)  # of a language model: it is given plain text
    torch.manual_seed(1)
    with torch.no_grad():  # or all texts would be so alike that rounding decides their order
        for weights in reader.parameters():
            weights.copy_(0.3 * torch.randn_like(weights) if weights.ndim == 2 else weights)
    return [reader, Pooling(32, pooling)]


def theirs(directory, rows, roles):
    """Spearman of the model in a folder, by the library's own evaluator."""
    model = SentenceTransformer(str(directory), device="cpu")
    model.max_seq_length = 48
    first, second, score = ([row[name] for row in rows] for name in ("sentence1", "sentence2", "score"))
    if roles:  # the evaluator knows none
        one, other = model.encode_query(first), model.encode_document(second)
        found = {(text, role): row for role, texts, rows in ((0, first, one), (1, second, other))
                 for text, row in zip(texts, rows, strict=True)}  # fmt: skip
        calls = iter((0, 1))
        model.encode = lambda texts, **_: np.stack(
            [found[text, side] for side in [next(calls)] for text in texts]
        )
    evaluator = EmbeddingSimilarityEvaluator(first, second, score, main_similarity="cosine", write_csv=False)
    return evaluator(model)["spearman_cosine"]


def figure(results, name):
    return next(r.score.value for r in results if r.model.split(",")[0] == name and r.role in ("test", None))


@pytest.mark.parametrize("kind", KINDS)
def test_figures_and_embeddings_are_those_of_sentence_transformers(kind, rows, tmp_path):
    backbone, roles = made(kind, tmp_path), kind in ("prompts", "router")
    test = turned(rows)
    asked = {"roles": True} if kind == "prompts" else {}
    found = fit(now(test), dev=now(test), test=test, backbone=backbone, out=tmp_path / "out", **FAST, **asked)
    tuned = tmp_path / "out" if found.report.kept == "tuned" else tmp_path / "out" / "tuned"
    assert figure(found.report.results, "backbone") == pytest.approx(theirs(backbone, test, roles), abs=1e-5)
    assert figure(found.report.results, "tuned") == pytest.approx(theirs(tuned, test, roles), abs=1e-5)
    before, after = (SentenceTransformer(str(path), device="cpu").state_dict() for path in (backbone, tuned))
    assert any(not torch.equal(before[name], after[name]) for name in before)

    measured = evaluate(tuned, pairs=test, device="cpu", **asked).evaluation.results[-1]
    assert measured.score.value == pytest.approx(theirs(tuned, test, roles), abs=1e-5)

    (tmp_path / "x.txt").write_text("\n".join(row["sentence1"] for row in rows))
    encode_file(EncodeConfig(str(tuned), tmp_path / "x.txt", tmp_path / "x.npy", device="cpu"))
    model = SentenceTransformer(str(tuned), device="cpu")
    assert np.load(tmp_path / "x.npy") == pytest.approx(
        model.encode([row["sentence1"] for row in rows]), abs=1e-5
    )


def test_static_embeddings_are_measured_and_encode_but_do_not_train(tiny_model, rows, tmp_path):
    words = StaticEmbedding(tiny_model.tokenizer, embedding_dim=32)
    SentenceTransformer(modules=[words], device="cpu").save_pretrained(
        str(tmp_path / "static"), create_model_card=False
    )
    measured = evaluate(tmp_path / "static", pairs=rows, device="cpu").evaluation.results[-1]
    model = SentenceTransformer(str(tmp_path / "static"), device="cpu")
    texts = [[row[name] for row in rows] for name in ("sentence1", "sentence2", "score")]
    evaluator = EmbeddingSimilarityEvaluator(*texts, main_similarity="cosine", write_csv=False)
    assert measured.score.value == pytest.approx(evaluator(model)["spearman_cosine"], abs=1e-5)
    (tmp_path / "x.txt").write_text("\n".join(texts[0]))
    encode_file(EncodeConfig(str(tmp_path / "static"), tmp_path / "x.txt", tmp_path / "x.npy", device="cpu"))
    assert np.load(tmp_path / "x.npy") == pytest.approx(model.encode(texts[0]), abs=1e-5)
    with pytest.raises(InputError, match=r"is not a transformer .*eval and encode can use it"):
        fit(rows, dev=now(rows), backbone=tmp_path / "static", out=tmp_path / "out", device="cpu")
