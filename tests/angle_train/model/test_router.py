"""Asymmetric models (Router): queries and documents have encoders of their own, trained and measured so."""

import pytest
import torch
from cut_runs import cut_off, interrupt
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from tokenizers.normalizers import BertNormalizer
from train_runs import now, turned, write

from angle_data.errors import InputError
from angle_train import evaluate, fit, train
from angle_train.model.load import load_backbone
from angle_train.model.routes import tie_equal_routes

FAST = {"loss": "graded", "epochs": 3, "batch_size": 16, "learning_rate": 3e-3, "evals_per_epoch": 1}
FAST |= {"device": "cpu"}
TEXTS = ["the disk is full", "a node rebooted"]


def routed(directory, query, document, **options):
    """A model with a route for queries and one for documents, saved."""
    router = Router({"query": query, "document": document}, **options)
    SentenceTransformer(modules=[router], device="cpu").save_pretrained(
        str(directory), create_model_card=False
    )
    return directory


def encoder(directory, seed=None):
    """A tiny encoder as the modules of a route, with other weights where a seed is given."""
    reader = Transformer(str(directory))
    if seed is not None:
        torch.manual_seed(seed)
        with torch.no_grad():
            for weights in reader.parameters():
                weights.add_(0.02 * torch.randn_like(weights))
    return [reader, Pooling(32, "mean")]


@pytest.fixture(scope="module")
def router_dir(tiny_model_dir, tmp_path_factory):
    """Two encoders that are no longer the same."""
    directory = tmp_path_factory.mktemp("models") / "router"
    return routed(directory, encoder(tiny_model_dir, 1), encoder(tiny_model_dir), default_route="document")


def figure(model, rows):
    first = model.encode_query([row["sentence1"] for row in rows], normalize_embeddings=True)
    second = model.encode_document([row["sentence2"] for row in rows], normalize_embeddings=True)
    return spearmanr((first.astype(float) * second).sum(axis=1), [row["score"] for row in rows]).statistic


def score_of(report, model):
    return next(r.score.value for r in report.results if (r.model.split(",")[0], r.role) == (model, "test"))


def opened(directory):
    return SentenceTransformer(str(directory), device="cpu")


def moved_by(before, after, route):
    """How far the weights of a route moved, in all."""
    old, new = (model.state_dict() for model in (before, after))
    names = [name for name in old if f"sub_modules.{route}." in name]
    assert names
    return sum(float((old[name] - new[name]).abs().sum()) for name in names)


def test_both_routes_train_and_queries_are_measured_against_documents(router_dir, rows, tmp_path):
    test = turned(rows)
    found = fit(now(test), dev=now(test), test=test, backbone=router_dir, out=tmp_path / "out", **FAST)
    assert found.report.kept == "tuned"
    before, after = opened(router_dir), opened(tmp_path / "out")
    assert score_of(found.report, "backbone") == pytest.approx(figure(before, test), abs=1e-5)
    assert score_of(found.report, "tuned") == pytest.approx(figure(after, test), abs=1e-5)
    assert figure(after, test) > figure(before, test) + 0.1
    assert moved_by(before, after, "query") > 1
    assert moved_by(before, after, "document") > 1
    measured = evaluate(tmp_path / "out", pairs=test, device="cpu").evaluation.results
    assert measured[-1].score.value == pytest.approx(figure(after, test), abs=1e-5)  # without --roles too


def test_texts_through_one_shared_route_stay_the_same(tiny_model_dir, rows, tmp_path):
    shared = encoder(tiny_model_dir)
    directory = routed(tmp_path / "shared", shared, shared, default_route="document")
    result = train(str(directory), rows, dev=rows, **FAST)
    first, second = result.model.encode_query(TEXTS), result.model.encode_document(TEXTS)
    cosines = result.model.similarity(first, second).diagonal()
    assert cosines.tolist() == pytest.approx([1.0, 1.0], abs=0.01)
    assert moved_by(opened(directory), result.model, "document") > 1


@pytest.fixture(scope="module")
def twins_dir(tiny_model_dir, tmp_path_factory):
    """Two copies of one encoder."""
    directory = tmp_path_factory.mktemp("models") / "twins"
    return routed(directory, encoder(tiny_model_dir), encoder(tiny_model_dir), default_route="document")


def same_text(model):
    return model.similarity(model.encode_query(TEXTS), model.encode_document(TEXTS)).diagonal().tolist()


def test_routes_that_begin_equal_stay_equal_and_are_saved_as_one(twins_dir, rows, tmp_path, caplog):
    with caplog.at_level("INFO"):
        found = fit(
            now(turned(rows)), dev=now(turned(rows)), backbone=twins_dir, out=tmp_path / "out", **FAST
        )
    assert "its routes are equal and are trained as one" in caplog.text
    after = opened(tmp_path / "out" if found.report.kept == "tuned" else tmp_path / "out" / "tuned")
    assert moved_by(opened(twins_dir), after, "query") > 1
    assert moved_by(opened(twins_dir), after, "query") == moved_by(opened(twins_dir), after, "document")
    assert same_text(after) == pytest.approx([1.0, 1.0], abs=1e-6)
    query, document = after[0].sub_modules["query"], after[0].sub_modules["document"]
    assert query[0] is document[0]  # so a further training needs to find no twins


def test_a_model_in_memory_trains_equal_routes_as_one(twins_dir, rows):
    model = opened(twins_dir)
    assert model[0].sub_modules["query"][0] is not model[0].sub_modules["document"][0]
    assert same_text(train(model, rows, **FAST).model) == pytest.approx([1.0, 1.0], abs=1e-6)


def test_routes_of_other_weights_pooling_or_length_are_left_apart(tiny_model_dir):
    def tied(first, second):
        return tie_equal_routes(
            SentenceTransformer(modules=[Router({"query": first, "document": second})], device="cpu")
        )

    short = encoder(tiny_model_dir)
    short[0].max_seq_length = 5
    assert tied(encoder(tiny_model_dir), encoder(tiny_model_dir))
    assert not tied(encoder(tiny_model_dir), encoder(tiny_model_dir, 1))
    assert not tied(encoder(tiny_model_dir), [Transformer(str(tiny_model_dir)), Pooling(32, "cls")])
    assert not tied(encoder(tiny_model_dir), short)
    assert not tied(shared := encoder(tiny_model_dir), shared)  # nothing to do
    cased, left, frozen = (encoder(tiny_model_dir) for _ in range(3))
    cased[0].tokenizer.backend_tokenizer.normalizer = BertNormalizer(lowercase=False)
    left[0].tokenizer.padding_side = "left"
    frozen[0].requires_grad_(False)
    assert not any(tied(encoder(tiny_model_dir), other) for other in (cased, left, frozen))
    used = encoder(tiny_model_dir)
    SentenceTransformer(modules=used, device="cpu").encode(TEXTS)  # a tokenizer remembers how it was called
    assert tied(encoder(tiny_model_dir), used)


def test_a_run_that_trained_equal_routes_apart_is_not_gone_on_with(twins_dir, rows, tmp_path, monkeypatch):
    def run():
        fit(now(turned(rows)), dev=now(turned(rows)), backbone=twins_dir, out=tmp_path / "out", **FAST)

    with monkeypatch.context() as earlier:
        earlier.setattr("angle_train.model.routes.tie_equal_routes", lambda _: False)
        with cut_off("on_step_end", 1, interrupt), pytest.raises(KeyboardInterrupt):
            run()
    with pytest.raises(InputError, match=r"shared other routes than this one .*; start anew"):
        run()


def test_a_static_route_for_queries_trains_beside_a_transformer(tiny_model_dir, rows, tmp_path):
    words = StaticEmbedding(Transformer(str(tiny_model_dir)).tokenizer, embedding_dim=32)
    directory = routed(tmp_path / "mixed", [words], encoder(tiny_model_dir), default_route="document")
    test = turned(rows)
    found = fit(
        now(test),
        dev=now(test),
        test=test,
        backbone=directory,
        out=tmp_path / "out",
        max_seq_length="auto",
        **FAST,
    )
    saved = tmp_path / "out" if found.report.kept == "tuned" else tmp_path / "out" / "tuned"
    assert score_of(found.report, "tuned") == pytest.approx(figure(opened(saved), test), abs=1e-5)
    assert moved_by(opened(directory), opened(saved), "query") > 0.1


def test_texts_to_keep_are_read_as_documents(router_dir, rows, tmp_path):
    kept = write(
        tmp_path / "keep.jsonl",
        [{"text": f"note {number} of {text}"} for number in range(8) for text in TEXTS],
    )
    free, held = (
        train_kept(router_dir, rows, tmp_path / name, kept if name == "held" else None)
        for name in ("free", "held")
    )
    texts = [f"note {number} of {text}" for number in range(8) for text in TEXTS]
    wanted = opened(router_dir).similarity(*[opened(router_dir).encode_document(texts)] * 2)

    def apart(model):
        embeddings = model.encode_document(texts)
        return float((model.similarity(embeddings, embeddings) - wanted).abs().mean())

    assert apart(held) < 0.7 * apart(free)


def train_kept(router_dir, rows, out, kept):
    test = turned(rows)
    options = {"keep": kept} if kept else {}
    found = fit(now(test), dev=now(test), backbone=router_dir, out=out, **FAST, **options)
    return opened(out if found.report.kept == "tuned" else out / "tuned")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"lora_rank": 2},
            r"asymmetric \(Router\): lora_rank is for models with one encoder; set lora_rank = 0",
        ),
        ({"frozen_layers": 1}, "frozen_layers is for models with one encoder"),
        ({"pooling": "cls"}, "pooling is for models with one encoder; set pooling = checkpoint"),
    ],
)
def test_what_needs_one_encoder_is_refused(router_dir, rows, tmp_path, values, said):
    with pytest.raises(InputError, match=said):
        fit(now(rows), dev=rows, backbone=router_dir, out=tmp_path / "out", **FAST | values)


def test_several_processes_are_refused(router_dir, rows, monkeypatch, tmp_path):
    monkeypatch.setattr("angle_train.reading.process_count", lambda: 2)
    with pytest.raises(InputError, match="trains in one process"):
        fit(now(rows), dev=rows, backbone=router_dir, out=tmp_path / "unused", **FAST)


def test_a_loss_of_ones_own_is_for_a_trainer_of_ones_own(router_dir, rows):
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    with pytest.raises(InputError, match="router_mapping says which column goes where"):
        train(str(router_dir), rows, **FAST | {"loss": CoSENTLoss})


def test_routes_that_are_not_for_queries_and_documents_are_refused(tiny_model_dir, tmp_path):
    router = Router({"title": encoder(tiny_model_dir), "body": encoder(tiny_model_dir)}, default_route="body")
    SentenceTransformer(modules=[router], device="cpu").save_pretrained(
        str(tmp_path / "odd"), create_model_card=False
    )
    with pytest.raises(InputError, match=r"routes title and body.*none takes texts as a query"):
        load_backbone(str(tmp_path / "odd"), device="cpu")
