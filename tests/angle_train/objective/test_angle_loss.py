"""The loss for anyone's trainer: the library's own losses, fit's objective, and its wrappers."""

import json
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from letter_model import batch_of, papers
from process_runs import run_program
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.base.training_args import BatchSamplers
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.modules import Pooling

from angle_train import AngleLoss
from angle_train.objective.angle_loss import _keys_of
from angle_train.objective.batches import EpochSampler
from angle_train.objective.loss import CombinedLoss
from angle_train.objective.terms import in_batch_objective, not_negatives

FIRST = ["disk full", "node rebooted", "the pod was evicted", "latency rose", "certificate expired"]
SECOND = ["no space left", "the host restarted", "kubernetes removed it", "requests are slow", "tls fails"]
THIRD = ["disk empty", "the host was removed", "the pod runs", "requests are fast", "tls works"]
SCORES = torch.tensor([1.0, 0.9, 0.4, 0.4, 0.0])
NONE = (torch.tensor([], dtype=torch.long),) * 2


@pytest.fixture
def model(tiny_model):
    """Without dropout, so that the same texts have the same embeddings."""
    return tiny_model.eval()


def columns(model, *texts):
    return [dict(model.preprocess(list(column))) for column in texts]


def value(loss, features, labels=None):
    return loss([dict(column) for column in features], labels).item()


def gradient(loss, features, labels=None):
    loss.model.zero_grad()
    loss([dict(column) for column in features], labels).backward()
    return torch.cat([p.grad.reshape(-1) for p in loss.model.parameters() if p.grad is not None])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"weights": {"cosine": 1}, "temperatures": {"cosine": 0.1}}, lambda m: losses.CoSENTLoss(m, 10.0)),
        (
            {"weights": {"angle": 1}, "temperatures": {"angle": 0.05}, "mode": "published"},
            lambda m: losses.AnglELoss(m, 20.0),
        ),
    ],
    ids=["CoSENTLoss", "AnglELoss"],
)
def test_a_ranking_term_alone_is_the_librarys_loss(model, ours, theirs):
    features = columns(model, FIRST, SECOND)
    mine, other = AngleLoss(model, **ours), theirs(model)
    assert value(mine, features, SCORES) == pytest.approx(value(other, features, SCORES), rel=1e-5)
    assert value(mine, features, SCORES) > 0.5
    torch.testing.assert_close(
        gradient(mine, features, SCORES), gradient(other, features, SCORES), rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("labels", [None, SCORES], ids=["without labels", "with labels"])
def test_triplets_are_read_as_by_the_library(model, labels):
    features = columns(model, FIRST, SECOND, THIRD, [*THIRD[1:], THIRD[0]])
    mine = AngleLoss(model, {"angle": 1}, {"angle": 0.05}, "published")
    assert value(mine, features, labels) == pytest.approx(value(losses.AnglELoss(model), features, labels))


def test_the_in_batch_term_alone_is_the_librarys_loss_in_both_directions(model):
    """Of distinct texts: each text looks for its partner among all others."""
    features = columns(model, FIRST, SECOND)
    of_all = {"directions": ("query_to_doc", "query_to_query"), "scale": 20.0}
    theirs = losses.MultipleNegativesRankingLoss(model, **of_all)
    expected = (value(theirs, features) + value(theirs, features[::-1])) / 2
    assert value(AngleLoss(model, {"in_batch": 1}), features) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("scored", [True, False], ids=["scored pairs", "triplets"])
def test_it_is_the_objective_of_fit(model, scored):
    """Repeated texts, paraphrases of paraphrases and neutral pairs among them."""
    weights = {"cosine": 0.5, "in_batch": 2, "angle": 0.3}
    first = [*FIRST, FIRST[0], FIRST[0], SECOND[1]]
    second = [*SECOND, "the volume is full", THIRD[1], "it booted"]
    if scored:
        scores = [*SCORES.tolist(), 0.9, 0.0, 0.8]
        rows = [{"text1": a, "text2": b, "score": s} for a, b, s in zip(first, second, scores, strict=True)]
        features, labels = columns(model, first, second), torch.tensor(scores)
    else:
        third = [*THIRD, *THIRD[2:]]
        rows = [{"text1": a, "text2": b, "score": 1.0} for a, b in zip(first, second, strict=True)]
        rows += [{"text1": a, "text2": b, "score": 0.0} for a, b in zip(first, third, strict=True)]
        features, labels = columns(model, first, second, third), None
    config = papers(**{f"{term}_weight": weight for term, weight in weights.items()})
    terms = CombinedLoss(model, config)(*batch_of(rows, model.preprocess))
    mine = AngleLoss(model, weights, {"angle": 1.0})
    assert value(mine, features, labels) == pytest.approx(sum(t.item() for t in terms.values()), rel=1e-5)


def test_what_is_known_to_mean_the_same_is_no_negative(model):
    """A repeated row changes nothing, and a false negative in the batch is not pushed away."""
    loss = AngleLoss(model, {"in_batch": 1})
    once = value(loss, columns(model, FIRST, SECOND))
    assert value(loss, columns(model, FIRST * 2, SECOND * 2)) == pytest.approx(once, rel=1e-5)
    library = losses.MultipleNegativesRankingLoss(model)
    doubled = value(library, columns(model, FIRST * 2, SECOND * 2))
    assert doubled > value(library, columns(model, FIRST, SECOND)) + 0.5  # it takes the copies for negatives
    # All of one family: nothing is left to tell them from.
    family = columns(model, ["disk full"] * 3, ["no space left", "the disk is full", "volume full"])
    assert value(loss, family) == pytest.approx(0, abs=1e-6)


def test_scores_between_the_two_are_neither(model):
    features = columns(model, FIRST, SECOND)
    loss = AngleLoss(model, {"in_batch": 1}, neutral_scores=(0.2, 0.95))
    neutral = torch.tensor([1.0, 0.9, 0.9, 0.9, 0.9])
    negative = torch.tensor([1.0, 0.1, 0.1, 0.1, 0.1])
    # The negatives' own partners are among the texts that the one positive pair is told from, either way.
    assert value(loss, features, neutral) == pytest.approx(value(loss, features, negative))
    assert value(AngleLoss(model, {"in_batch": 1}), features, neutral) != pytest.approx(
        value(loss, features, neutral)
    )
    # A text that is neutral to the anchor is no negative of it.
    again = columns(model, [FIRST[0], FIRST[0], FIRST[1]], [SECOND[0], THIRD[0], SECOND[1]])
    near, far = (value(loss, again, torch.tensor([1.0, score, 1.0])) for score in (0.5, 0.0))
    assert near < far - 1e-3


def test_two_routes_take_a_text_as_two_inputs_of_one_meaning(tiny_model_dir):
    """A query that is a document too: each route embeds it, and neither is a negative of the other."""
    modules = [Transformer(str(tiny_model_dir)), Pooling(32, "mean")]
    others = [Transformer(str(tiny_model_dir)), Pooling(32, "max")]
    router = Router({"query": modules, "document": others})
    model = SentenceTransformer(modules=[router], device="cpu").eval()
    texts = {"query": FIRST[:2], "document": [SECOND[0], FIRST[0]]}
    features = [dict(model.preprocess(column, task=task)) | {"task": task} for task, column in texts.items()]
    first, second = (model(dict(column))["sentence_embedding"] for column in features)
    emb = torch.cat([first, second])
    assert not emb[0].allclose(emb[3])
    groups = torch.tensor([0, 0, 0, 0])  # the first query, which is a document too, and its partners
    expected = in_batch_objective(
        emb,
        torch.tensor([0, 1]),
        torch.tensor([2, 3]),
        torch.tensor([True, True]),
        not_negatives(groups, *NONE),
    )
    assert value(AngleLoss(model, {"in_batch": 1}), features) == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize(
    ("weights", "labels"), [(None, SCORES), (None, None), ({"cosine": 1, "angle": 1}, SCORES)]
)
def test_with_the_gradient_cache_loss_and_gradient_are_the_same(model, weights, labels):
    features = columns(model, FIRST, SECOND)
    plain, cached = AngleLoss(model, weights), AngleLoss(model, weights, mini_batch_size=2)
    assert value(cached, features, labels) == pytest.approx(value(plain, features, labels), rel=1e-5)
    wanted = gradient(plain, features, labels)
    assert wanted.norm() > 1e-3
    torch.testing.assert_close(gradient(cached, features, labels), wanted, rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        assert value(cached, features, labels) == pytest.approx(value(plain, features, labels), rel=1e-5)


@pytest.mark.parametrize("mini_batch_size", [None, 2])
def test_matryoshka_around_it_is_the_sum_over_the_dimensions(model, mini_batch_size):
    features = columns(model, FIRST, SECOND)
    loss = AngleLoss(model, mini_batch_size=mini_batch_size)
    whole = AngleLoss(model)
    expected = value(whole, features, SCORES)
    cut = [model(dict(column))["sentence_embedding"][:, :8] for column in features]
    expected += whole._loss(cut, {"scores": SCORES[:, None], **_keys_of(features, SCORES)}).item()
    wrapped = losses.MatryoshkaLoss(model, loss, [32, 8])
    assert value(wrapped, features, SCORES) == pytest.approx(expected, rel=1e-5)
    assert gradient(wrapped, features, SCORES).norm() > 1e-3


@pytest.mark.parametrize(
    ("made", "given", "said"),
    [
        ({"weights": {"cosin": 1}}, (), "no term 'cosin'; its terms are cosine, in_batch, angle"),
        ({"temperatures": {"tau": 1}}, (), "no term 'tau'"),
        ({"weights": {}}, (), "at least one of the three weights"),
        ({"temperatures": {"cosine": 0.0}}, (), r"temperatures\['cosine'\] must be greater than 0, got 0.0$"),
        ({"weights": {"cosine": -1}}, (), r"^AngleLoss: weights\['cosine'\] must be greater .*, got -1.0$"),
        ({"mode": "angular"}, (), "mode must be 'symmetric' or 'published', got 'angular'$"),
        ({"mini_batch_size": 0}, (), "mini_batch_size must be at least 1"),
        ({"weights": {"cosine": 1}}, (2, None), "learns nothing from pairs without scores"),
        ({}, (1, None), "at least two columns"),
        ({}, (2, 5 * SCORES), "scores from 0 to 1, got 0 to 5"),
        ({}, (3, SCORES[:, None].repeat(1, 3)), r"shape \(5, 3\) beside 3 columns"),
    ],
)
def test_what_cannot_be_learned_is_said(model, made, given, said):
    def learn(count=2, labels=None):
        AngleLoss(model, **made)(columns(model, FIRST, SECOND, THIRD)[:count], labels)

    with pytest.raises(ValueError, match=said):
        learn(*given)


def test_any_range_of_scores_can_be_ranked(model):
    loss = AngleLoss(model, {"cosine": 1})
    features = columns(model, FIRST, SECOND)
    assert value(loss, features, 5 * SCORES) == pytest.approx(value(loss, features, SCORES))


@pytest.mark.parametrize(
    "made",
    [
        {},
        {"weights": {"angle": 2.0}, "temperatures": {"angle": 0.5}, "mode": "published"},
        {"neutral_scores": (0.1, 0.6), "mini_batch_size": 2, "gather_across_devices": True},
    ],
)
def test_its_settings_make_it_again(model, made):
    loss = AngleLoss(model, **made)
    again = AngleLoss(model, **json.loads(json.dumps(loss.get_config_dict())))
    assert again.get_config_dict() == loss.get_config_dict()
    assert loss.get_config_dict().items() >= made.items()
    assert set(loss.state_dict()) == {f"model.{name}" for name in model.state_dict()}  # nothing of its own
    assert "2024.acl-long.101" in loss.citation


ROWS = [
    {"text1": a, "text2": b, "score": s}
    for a, b, s in [
        *zip(FIRST, SECOND, [1.0] * 5, strict=True),
        *zip(FIRST, THIRD, [0.0] * 5, strict=True),
        *zip(FIRST, [*SECOND[1:], SECOND[0]], [0.0] * 5, strict=True),
        (FIRST[0], "the volume is full", 1.0),
    ]
]
PAIRS = Dataset.from_list(ROWS)
TRIPLETS = Dataset.from_dict({"anchor": FIRST, "positive": SECOND, "negative": THIRD})
ONLY_POSITIVES = TRIPLETS.remove_columns("negative")


def trained(model, data, loss, out, **settings):
    """What the library's trainer logs of each epoch: the loss."""
    given = {"num_train_epochs": 8, "per_device_train_batch_size": 8, "learning_rate": 2e-3, "seed": 1}
    given |= {"report_to": "none", "logging_strategy": "epoch", "save_strategy": "no", "use_cpu": True}
    args = SentenceTransformerTrainingArguments(str(out), disable_tqdm=True, **(given | settings))
    trainer = SentenceTransformerTrainer(model=model, args=args, train_dataset=data, loss=loss)
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        (PAIRS, {}),
        (TRIPLETS, {"batch_sampler": BatchSamplers.NO_DUPLICATES}),
        (ONLY_POSITIVES, {"batch_sampler": EpochSampler}),
        (PAIRS, {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4}),
        (PAIRS, {"bf16": True, "num_train_epochs": 4}),  # slow without a processor that has it
    ],
    ids=["pairs", "triplets without duplicates", "positives in our batches", "accumulated", "bf16"],
)
def test_the_librarys_trainer_learns_by_it(tiny_model, data, settings, tmp_path):
    curve = trained(tiny_model, data, AngleLoss(tiny_model), tmp_path / "run", **settings)
    assert curve[-1] < 0.8 * curve[0]
    tiny_model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    # accelerate leaves a model that it trained in bf16 computing in that.
    rounding = 1e-2 if "bf16" in settings else 1e-5
    assert loaded.encode(FIRST) == pytest.approx(tiny_model.encode(FIRST), abs=rounding)
    anchor, near, far = loaded.encode([FIRST[0], SECOND[0], THIRD[0]], normalize_embeddings=True)
    if data is not ONLY_POSITIVES:
        assert anchor @ near > anchor @ far


@pytest.mark.parametrize("mini_batch_size", [None, 3])
def test_matryoshka_around_it_trains_in_the_librarys_trainer(tiny_model, tmp_path, mini_batch_size):
    inner = AngleLoss(tiny_model, mini_batch_size=mini_batch_size)
    curve = trained(tiny_model, PAIRS, losses.MatryoshkaLoss(tiny_model, inner, [32, 8]), tmp_path)
    assert curve[-1] < 0.6 * curve[0]


def test_several_data_sets_have_a_loss_each(tiny_model, tmp_path):
    data = {"scored": PAIRS, "triplets": TRIPLETS}
    loss = {
        "scored": AngleLoss(tiny_model, {"cosine": 1}, {"cosine": 0.1}),
        "triplets": AngleLoss(tiny_model),
    }
    curve = trained(tiny_model, data, loss, tmp_path)
    assert curve[-1] < 0.6 * curve[0]


def test_the_librarys_card_shows_its_settings(tiny_model, tmp_path):
    trained(tiny_model, PAIRS, AngleLoss(tiny_model), tmp_path / "run", num_train_epochs=1)
    tiny_model.save_pretrained(str(tmp_path / "model"))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "AngleLoss" in card
    assert '"in_batch": 1.0' in card
    assert "2024.acl-long.101" in card


def test_two_processes_together_learn_as_one(tiny_model_dir, tmp_path):
    run_program(Path(__file__).with_name("loss_in_processes.py"), str(tiny_model_dir), str(tmp_path))
    alone, *both = (torch.load(tmp_path / f"{name}.pt") for name in ("single", "rank0", "rank1"))
    for name, (loss, weights) in alone.items():
        for found in both:
            assert found[name][0] == pytest.approx(loss, rel=1e-4)
            torch.testing.assert_close(found[name][1], weights, rtol=1e-4, atol=1e-5)
