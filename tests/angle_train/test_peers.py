"""The losses of the registry: what each must do, and that the peers are the stock losses."""

import subprocess
import sys

import pytest
import torch
from sentence_transformers.sentence_transformer import losses as stock
from torch import nn

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.objective.batches import PairCollator
from angle_train.objective.loss import CombinedLoss
from angle_train.objective.losses import LOSSES, OWN_LOSS, make_loss
from angle_train.recipe import Recipe
from angle_train.settings import ObjectiveConfig, TrainingConfig
from angle_train.train.trainer import make_collator, train

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROWS = [
    {"text1": "the disk is full", "text2": "no space left on the volume", "score": 1.0},
    {"text1": "a node rebooted", "text2": "the host was restarted", "score": 0.9},
    {"text1": "a cable is loose", "text2": "the network link is down", "score": 0.5},
    {"text1": "the disk is full", "text2": "the disk is empty", "score": 0.0},
    {"text1": "a node rebooted", "text2": "the node kept running", "score": 0.0},
]
PEERS = [name for name in LOSSES if name != OWN_LOSS]


class LetterModel(nn.Module):
    """Mean of letter embeddings."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.letters = nn.Embedding(128, 8)

    def forward(self, features):
        ids = features["input_ids"]
        mask = (ids > 0).float()[:, :, None]
        return {"sentence_embedding": (self.letters(ids) * mask).sum(1) / mask.sum(1)}


def spelled(texts, prompt=None):
    width = max(len(text) for text in texts)
    return {"input_ids": torch.tensor([[ord(c) for c in t] + [0] * (width - len(t)) for t in texts])}


def batch_of(rows, preprocess=spelled, chunk_size=3):
    """The chunks and the labels of a batch, as the trainer hands them to a loss."""
    batch = PairCollator(preprocess, swap=False, chunk_size=chunk_size)(rows)
    labels = batch.pop("label")
    numbers = sorted({name.split("_")[0] for name in batch})
    chunks = [
        {name.removeprefix(f"{n}_"): batch[name] for name in batch if name.startswith(n)} for n in numbers
    ]
    return chunks, labels


def value_of(name, rows, model=None, preprocess=spelled):
    """The loss of one batch, and the gradient of a letter model."""
    model = model or LetterModel()
    terms = make_loss(model, ObjectiveConfig(loss=name))(*batch_of(rows, preprocess))
    sum(terms.values()).backward()
    gradient = model.letters.weight.grad if isinstance(model, LetterModel) else None
    return sum(terms.values()).item(), gradient


@pytest.mark.parametrize("name", LOSSES)
def test_loss_trains_and_does_not_depend_on_the_order_of_rows(name):
    value, gradient = value_of(name, ROWS)
    assert value > 0
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 1e-4
    other, _ = value_of(name, [ROWS[i] for i in (3, 0, 4, 2, 1)])
    assert other == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_loss_has_the_same_gradient_when_chunks_are_encoded_twice(name):
    model = LetterModel()
    loss = make_loss(model, ObjectiveConfig(loss=name), gradient_cache=True)
    sum(loss(*batch_of(ROWS)).values()).backward()
    torch.testing.assert_close(model.letters.weight.grad, value_of(name, ROWS)[1])


@pytest.mark.parametrize("name", LOSSES)
def test_steps_bring_the_loss_down(name):
    model = LetterModel()
    loss, batch = make_loss(model, ObjectiveConfig(loss=name)), batch_of(ROWS)
    optimiser, values = torch.optim.Adam(model.parameters(), lr=0.05), []
    for _ in range(40):
        value = sum(loss(*batch).values())
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] < 0.7 * values[0]


@pytest.mark.parametrize("name", LOSSES)
def test_loss_owns_one_model_reports_its_terms_and_describes_itself(name):
    model, seen = LetterModel(), []
    loss = make_loss(model, ObjectiveConfig(loss=name), seen.append)
    assert isinstance(loss, CombinedLoss)
    terms = loss(*batch_of(ROWS))
    assert seen == [terms]
    # A second model inside would be saved, moved and wrapped along with the first.
    assert [name for name, _ in loss.named_modules() if name] == ["model", "model.letters"]
    assert loss.get_config_dict()
    assert loss.citation == "" or loss.citation.strip().startswith("@")


@pytest.mark.parametrize(
    ("name", "stock_class"),
    [
        ("cosent", stock.CoSENTLoss),
        ("st-angle", stock.AnglELoss),
        ("sbert", stock.CosineSimilarityLoss),
        ("mnrl", stock.MultipleNegativesRankingLoss),
    ],
)
def test_peer_equals_the_stock_loss_on_the_same_pairs(name, stock_class, tiny_model):
    tiny_model.eval()
    rows = [row for row in ROWS if row["score"] >= 0.8] if name == "mnrl" else ROWS
    columns = [tiny_model.preprocess([row[column] for row in rows]) for column in ("text1", "text2")]
    scores = torch.tensor([row["score"] for row in rows])
    with torch.no_grad():
        expected = stock_class(tiny_model)(columns, scores)
        loss = make_loss(tiny_model, ObjectiveConfig(loss=name))
        (value,) = loss(*batch_of(ROWS, tiny_model.preprocess)).values()  # mnrl picks its rows itself
    assert value.item() == pytest.approx(expected.item(), abs=1e-5)
    assert expected.item() > 0.01


def test_simcse_is_the_stock_loss_on_triplets(tiny_model):
    tiny_model.eval()
    triplets = [("disk full", "no space left", "disk empty"), ("node down", "host failed", "node is fine")]
    rows = [{"text1": a, "text2": p, "score": 1.0} for a, p, _ in triplets]
    rows += [{"text1": a, "text2": n, "score": 0.0} for a, _, n in triplets]
    columns = [tiny_model.preprocess(list(column)) for column in zip(*triplets, strict=True)]
    with torch.no_grad():
        expected = stock.MultipleNegativesRankingLoss(tiny_model)(columns, None)
        loss = make_loss(tiny_model, ObjectiveConfig(loss="simcse"))
        (value,) = loss(*batch_of(rows, tiny_model.preprocess)).values()
        (without,) = make_loss(tiny_model, ObjectiveConfig(loss="mnrl"))(
            *batch_of(rows, tiny_model.preprocess)
        ).values()
    assert value.item() == pytest.approx(expected.item(), abs=1e-5)
    assert value > without + 0.1  # four candidates instead of two


def test_simcse_follows_the_threshold_of_negatives():
    def value(negative_score):
        terms = make_loss(LetterModel(), ObjectiveConfig(loss="simcse", negative_score=negative_score))(
            *batch_of(ROWS)
        )
        return terms["simcse"].item()

    assert value(0.5) > value(0.0)  # the half-similar pair's second text is one more candidate


@pytest.mark.parametrize("name", ["mnrl", "simcse"])
def test_a_batch_without_positives_teaches_nothing(name):
    value, gradient = value_of(name, [row for row in ROWS if row["score"] < 0.8])
    assert value == 0
    assert gradient.abs().max() == 0


def test_the_registry_loads_nothing_heavy():
    code = "import sys, angle_train.objective.losses, angle_train.settings; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_losses_are_imported_on_use(monkeypatch):
    monkeypatch.setitem(LOSSES, "broken", "no_such_module:Loss")
    make_loss(LetterModel(), ObjectiveConfig())
    with pytest.raises(ImportError, match="no_such_module"):
        make_loss(LetterModel(), ObjectiveConfig(loss="broken"))


def test_peers_take_pairs_in_order(tiny_model):
    rows = [{"text1": f"{'x' * n}", "text2": f"{'y' * (n + 30)}", "score": 1.0} for n in range(1, 30)]
    for name in PEERS:
        labels = make_collator(tiny_model, Recipe(objective=ObjectiveConfig(loss=name)))(rows)["label"]
        assert (labels["first"] < labels["second"]).all()  # texts are indexed from short to long


def test_unknown_losses_and_transitive_peers_are_refused():
    with pytest.raises(InputError, match=r"loss must be one of angle, cosent, .*'cosnet'"):
        ObjectiveConfig(loss="cosnet")
    with pytest.raises(InputError, match="transitive is for loss 'angle' alone"):
        ObjectiveConfig(loss="mnrl", transitive=True)


def test_a_run_trains_with_the_loss_of_its_recipe(tiny_model, tmp_path):
    texts = [row["text1"] for row in ROWS], [row["text2"] for row in ROWS]
    scores, ones = torch.tensor([row["score"] for row in ROWS]).double().numpy(), torch.ones(5).numpy()
    pairs = PairSet("few", *texts, scores, ones)
    recipe = Recipe(
        objective=ObjectiveConfig(loss="sbert"),
        training=TrainingConfig(epochs=1, batch_size=5, evals_per_epoch=1),
    )
    similarity = tiny_model.similarity_pairwise(
        *(tiny_model.encode(t, convert_to_tensor=True) for t in texts)
    )
    expected = (similarity.double() - torch.tensor(scores)).square().mean().item()
    for module in tiny_model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    (point,) = train(tiny_model, pairs, [pairs], recipe, tmp_path).curve
    assert point.terms["loss"] == pytest.approx(expected, rel=1e-3)
    assert "loss:Regression" in tiny_model.model_card_data.tags
