"""The combined loss: weights, terms, and that chunking and dedup change nothing but the cost."""

import pytest
import torch
from torch import nn

from angle_train.batching import PairCollator, positive_groups
from angle_train.loss import CombinedLoss, combined_objective
from angle_train.objectives import angle_objective, cosine_objective, in_batch_objective
from angle_train.settings import ObjectiveConfig

ROWS = [
    {"text1": "disk full", "text2": "no space left on the volume", "score": 1.0},
    {"text1": "disk full", "text2": "disk empty", "score": 0.0},
    {"text1": "node rebooted", "text2": "the host was restarted", "score": 1.0},
    {"text1": "node rebooted", "text2": "disk full", "score": 0.0},
]


class LetterModel(nn.Module):
    """Mean of letter embeddings: the smallest model whose output must not depend on padding."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.letters = nn.Embedding(128, 8)
        self.calls = []

    def forward(self, features):
        ids = features["input_ids"]
        self.calls.append(tuple(ids.shape))
        mask = (ids > 0).float()[:, :, None]
        return {"sentence_embedding": (self.letters(ids) * mask).sum(1) / mask.sum(1)}


def spelled(texts, prompt=None):
    width = max(len(text) for text in texts)
    return {"input_ids": torch.tensor([[ord(c) for c in t] + [0] * (width - len(t)) for t in texts])}


def run(config, chunk_size=32, rows=ROWS):
    model = LetterModel()
    batch = PairCollator(spelled, swap=False, chunk_size=chunk_size)(rows)
    labels = batch.pop("label")
    features = [{"input_ids": batch[name]} for name in sorted(batch)]
    terms = CombinedLoss(model, config)(features, labels)
    sum(terms.values()).backward()
    return model, {name: value.item() for name, value in terms.items()}


def reference_terms(model):
    """Every pair encoded on its own, no dedup, no chunks; equal texts appear several times."""
    texts = [row["text1"] for row in ROWS] + [row["text2"] for row in ROWS]
    emb = torch.cat([model(spelled([text]))["sentence_embedding"] for text in texts])
    score = torch.tensor([row["score"] for row in ROWS])
    first, second = torch.arange(4), torch.arange(4, 8)
    identity = torch.tensor([sorted(set(texts)).index(text) for text in texts])
    group = positive_groups(first, second, score > 0.5, identity)
    return emb, first, second, score, group


def test_terms_equal_the_objectives_on_separately_encoded_pairs():
    model, terms = run(ObjectiveConfig(cosine_weight=1.0, in_batch_weight=0.0, angle_weight=0.5))
    emb, first, second, score, _ = reference_terms(model)
    assert terms["cosine"] == pytest.approx(cosine_objective(emb[first], emb[second], score).item(), rel=1e-5)
    angle = angle_objective(emb[first], emb[second], score)
    assert terms["angle"] == pytest.approx(0.5 * angle.item(), rel=1e-5)


def test_in_batch_term_counts_every_distinct_text_once():
    model, terms = run(ObjectiveConfig(cosine_weight=0, angle_weight=0, in_batch_weight=2.0))
    texts = sorted({text for row in ROWS for text in (row["text1"], row["text2"])})
    emb = model(spelled(texts))["sentence_embedding"]
    first = torch.tensor([texts.index(row["text1"]) for row in ROWS])
    second = torch.tensor([texts.index(row["text2"]) for row in ROWS])
    positive = torch.tensor([row["score"] > 0.5 for row in ROWS])
    group = positive_groups(first, second, positive, torch.arange(len(texts)))
    expected = in_batch_objective(emb, first, second, positive, group)
    assert terms == {"in_batch": pytest.approx(2 * expected.item(), rel=1e-5)}


def test_chunking_changes_neither_loss_nor_gradient():
    whole, whole_terms = run(ObjectiveConfig(), chunk_size=100)
    chunked, chunked_terms = run(ObjectiveConfig(), chunk_size=2)
    assert len(whole.calls) == 1
    assert len(chunked.calls) == 3
    assert sum(rows for rows, _ in chunked.calls) == 5  # the distinct texts; the pairs hold 8
    assert chunked_terms == {name: pytest.approx(value, rel=1e-5) for name, value in whole_terms.items()}
    torch.testing.assert_close(chunked.letters.weight.grad, whole.letters.weight.grad)


def test_a_weight_of_zero_leaves_the_term_out():
    _, terms = run(ObjectiveConfig(cosine_weight=0, in_batch_weight=0, angle_weight=1))
    assert list(terms) == ["angle"]


def test_every_setting_of_the_objective_reaches_its_term():
    rows = [*ROWS, {"text1": "host restarted twice", "text2": "disk full", "score": 0.5}]
    config = ObjectiveConfig(
        cosine_weight=1,
        in_batch_weight=1,
        angle_weight=1,
        cosine_tau=0.2,
        in_batch_tau=0.3,
        angle_tau=0.7,
        angle_mode="published",
    )
    model, terms = run(config, rows=rows)
    batch = PairCollator(spelled, swap=False)(rows)
    labels = batch.pop("label")
    emb = torch.cat([model({"input_ids": batch[name]})["sentence_embedding"] for name in sorted(batch)])
    first, second, score = labels["first"], labels["second"], labels["score"]
    expected = {
        "cosine": cosine_objective(emb[first], emb[second], score, tau=0.2),
        "in_batch": in_batch_objective(
            emb,
            first,
            second,
            labels["positive"],
            labels["group"],
            tau=0.3,
            neutral=labels["neutral"],
        ),
        # The published similarity depends on which text comes first.
        "angle": angle_objective(emb[first], emb[second], score, tau=0.7, mode="published"),
    }
    assert labels["neutral"].any()
    assert terms == {name: pytest.approx(value.item(), rel=1e-5) for name, value in expected.items()}


def test_row_weights_reach_every_term():
    rows = [{**row, "weight": weight} for row, weight in zip(ROWS, (0.3, 0.2, 1.0, 0.5), strict=True)]
    _, weighted = run(ObjectiveConfig(), rows=rows)
    _, plain = run(ObjectiveConfig())
    assert all(weighted[name] != pytest.approx(plain[name], rel=1e-3) for name in plain)


def test_loss_learns_the_pairs():
    config = ObjectiveConfig()
    model = LetterModel()
    batch = PairCollator(spelled, swap=False)(ROWS)
    labels = batch.pop("label")
    features = [{"input_ids": batch[name]} for name in sorted(batch)]
    loss, optimiser = CombinedLoss(model, config), torch.optim.Adam(model.parameters(), lr=0.05)
    values = []
    for _ in range(60):
        value = sum(loss(features, labels).values())
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] < 0.35 * values[0]
    emb = torch.cat([model(chunk)["sentence_embedding"] for chunk in features])
    terms = combined_objective(emb, labels, ObjectiveConfig(in_batch_weight=0, angle_weight=0))
    assert terms["cosine"].item() < 0.1  # the paraphrases now outrank the antonym and the random pair
