"""The combined loss: weights, terms, and that chunking and dedup change nothing but the cost."""

from dataclasses import replace

import pytest
import torch
from letter_model import LetterModel, batch_of, papers, spelled

from angle_data.errors import InputError
from angle_train.objective.loss import CombinedLoss, combined_objective
from angle_train.objective.terms import (
    in_batch_objective,
    not_negatives,
    ranking_objective,
)
from angle_train.recipe import ObjectiveConfig

ROWS = [
    {"text1": "disk full", "text2": "no space left on the volume", "score": 1.0},
    {"text1": "disk full", "text2": "disk empty", "score": 0.0},
    {"text1": "node rebooted", "text2": "the host was restarted", "score": 1.0},
    {"text1": "node rebooted", "text2": "disk full", "score": 0.0},
]


def run(config, chunk_size=32, rows=ROWS):
    model = LetterModel()
    batch = batch_of(rows, chunk_size=chunk_size, isp=config.isp, transitive=config.transitive)
    terms = CombinedLoss(model, config)(*batch)
    sum(terms.values()).backward()
    return model, {name: value.item() for name, value in terms.items()}


def distinct(rows, model):
    """Embeddings of the distinct texts of `rows` in alphabetical order, and the rows as indices of them."""
    texts = sorted({text for row in rows for text in (row["text1"], row["text2"])})
    first = torch.tensor([texts.index(row["text1"]) for row in rows])
    second = torch.tensor([texts.index(row["text2"]) for row in rows])
    positive = torch.tensor([row["score"] > 0.5 for row in rows])
    return model(spelled(texts))["sentence_embedding"], first, second, positive


def test_chunking_changes_neither_loss_nor_gradient():
    whole, whole_terms = run(papers(), chunk_size=100)
    chunked, chunked_terms = run(papers(), chunk_size=2)
    assert len(whole.calls) == 1
    assert len(chunked.calls) == 3
    assert sum(rows for (rows, _), _ in chunked.calls) == 5  # the distinct texts; the pairs hold 8
    assert chunked_terms == {name: pytest.approx(value, rel=1e-5) for name, value in whole_terms.items()}
    torch.testing.assert_close(chunked.letters.weight.grad, whole.letters.weight.grad)


def test_several_threads_give_the_same_gradient_each_time():
    random = torch.Generator().manual_seed(0)
    texts, pairs = 100, 3_000  # few texts in many pairs: each gradient is a long sum
    labels = {
        "first": torch.randint(texts, (pairs,), generator=random),
        "second": torch.randint(texts, (pairs,), generator=random),
        "score": torch.rand(pairs, generator=random),
        "weight": torch.ones(pairs),
        "scale": torch.zeros(pairs, dtype=torch.long),
        "positive": torch.rand(pairs, generator=random) > 0.5,
        "neutral": torch.zeros(pairs, dtype=torch.bool),
        "group": torch.arange(texts),
    }
    embeddings = torch.randn(texts, 384, generator=random)
    config = papers()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        gradients = []
        for _ in range(5):
            free = embeddings.clone().requires_grad_()
            sum(combined_objective(free, labels, config).values()).backward()
            gradients.append(free.grad)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(gradients[0], other) for other in gradients[1:])


def test_a_weight_of_zero_leaves_the_term_out():
    _, terms = run(papers(cosine_weight=0, in_batch_weight=0, angle_weight=1))
    assert list(terms) == ["angle"]


def test_every_setting_of_the_objective_reaches_its_term():
    rows = [*ROWS, {"text1": "host restarted twice", "text2": "disk full", "score": 0.5}]
    config = papers(
        cosine_weight=1,
        in_batch_weight=1,
        angle_weight=1,
        cosine_tau=0.2,
        in_batch_tau=0.3,
        angle_tau=0.7,
        angle_mode="published",
    )
    model, terms = run(config, rows=rows)
    chunks, labels = batch_of(rows)
    emb = torch.cat([model(chunk)["sentence_embedding"] for chunk in chunks])
    first, second, score = labels["first"], labels["second"], labels["score"]
    expected = {
        "cosine": ranking_objective(emb[first], emb[second], score, tau=0.2),
        "in_batch": in_batch_objective(
            emb,
            first,
            second,
            labels["positive"],
            not_negatives(labels["group"], first[labels["neutral"]], second[labels["neutral"]]),
            tau=0.3,
        ),
        # The published similarity depends on which text comes first.
        "angle": ranking_objective(emb[first], emb[second], score, "published", tau=0.7),
    }
    assert labels["neutral"].any()
    assert terms == {name: pytest.approx(value.item(), rel=1e-5) for name, value in expected.items()}


MIXED = [
    *({**row, "scale": 1} for row in ROWS),
    {"text1": "disk full", "text2": "volume at its limit", "score": 0.7, "scale": 2},
    {"text1": "disk full", "text2": "node rebooted", "score": 0.3, "scale": 2},
    {"text1": "certificate expired", "text2": "disk full", "score": 0.0, "scale": 0},
]


def test_the_scales_of_rows_reach_the_ranking_terms_and_leave_the_other_alone():
    model, mixed = run(papers(), rows=MIXED)
    _, together = run(papers(), rows=[{**row, "scale": 1} for row in MIXED])
    chunks, labels = batch_of(MIXED)
    emb = torch.cat([model(chunk)["sentence_embedding"] for chunk in chunks])
    ends = emb[labels["first"]], emb[labels["second"]]
    scale = torch.tensor([row["scale"] for row in MIXED])
    expected = {
        "cosine": ranking_objective(*ends, labels["score"], tau=0.05, scale=scale).item(),
        "in_batch": together["in_batch"],
        "angle": ranking_objective(*ends, labels["score"], "symmetric", tau=1.0, scale=scale).item(),
    }
    assert mixed == pytest.approx(expected, rel=1e-5)
    assert mixed["cosine"] < together["cosine"]
    assert mixed["angle"] < together["angle"]


TAUGHT = [
    {"text1": "disk full", "text2": "certificate expired", "score": 0.9, "weight": 0.5, "scale": -1},
    {"text1": "node rebooted", "text2": "certificate expired", "score": 0.4, "scale": -1},
    {"text1": "pod evicted", "text2": "node rebooted", "score": 0.45, "scale": -1},
]


@pytest.mark.parametrize("transitive", [False, True])
def test_what_a_teacher_scored_is_a_term_of_its_own_and_changes_no_ranking_of_labels(transitive):
    config = papers(cosine_tau=0.2, transitive=transitive)
    model, terms = run(config, rows=[*ROWS, *TAUGHT])
    _, alone = run(config, rows=ROWS)
    assert list(terms) == ["teacher", "cosine", "in_batch", "angle"]
    assert {name: terms[name] for name in ("cosine", "angle")} == pytest.approx(
        {name: alone[name] for name in ("cosine", "angle")}, rel=1e-5
    )
    first, second = ([row[name] for row in TAUGHT] for name in ("text1", "text2"))
    ends = (model(spelled(texts))["sentence_embedding"] for texts in (first, second))
    score, weight = torch.tensor([0.9, 0.4, 0.45]), torch.tensor([0.5, 1.0, 1.0])
    expected = ranking_objective(*ends, score, tau=0.2, weight=weight)
    assert terms["teacher"] == pytest.approx(expected.item(), rel=1e-5)


def test_pairs_that_a_teacher_scored_are_no_positives_and_no_negatives_of_each_other():
    _, labels = batch_of([*ROWS, *TAUGHT])
    taught = labels["scale"] < 0
    assert labels["neutral"][taught].all()
    assert not labels["positive"][taught].any()


def test_a_batch_of_taught_pairs_alone_trains():
    model, terms = run(papers(), rows=TAUGHT)
    assert terms["teacher"] > 0
    assert terms["cosine"] == terms["in_batch"] == terms["angle"] == 0
    assert model.letters.weight.grad.abs().sum() > 0


def test_an_objective_that_was_left_open_is_refused():
    with pytest.raises(ValueError, match=r"no term has a weight; settle the recipe first"):
        run(ObjectiveConfig())


ONLY_IN_BATCH = papers(cosine_weight=0, angle_weight=0)
# A with two paraphrases and a negative; A once more in another spelling; and a pair apart.
FAMILY = [
    {"text1": "disk full", "text2": "no space left", "score": 1.0},
    {"text1": "disk full", "text2": "volume at its limit", "score": 1.0},
    {"text1": "Disk  full", "text2": "disk empty", "score": 0.0},
    {"text1": "node rebooted", "text2": "host restarted", "score": 1.0},
]


@pytest.mark.parametrize(
    ("isp", "groups"),
    # "Disk  full", "disk empty", "disk full", "host restarted", "no space left", "node rebooted", "volume …"
    [("groups", [0, 1, 0, 3, 0, 3, 0]), ("equal", [0, 1, 0, 3, 4, 5, 6]), ("none", [0, 1, 2, 3, 4, 5, 6])],
)
def test_isp_decides_which_texts_are_no_negatives_of_each_other(isp, groups):
    model, terms = run(replace(ONLY_IN_BATCH, isp=isp), rows=FAMILY)
    group = torch.tensor(groups)
    emb, first, second, positive = distinct(FAMILY, model)
    expected = in_batch_objective(emb, first, second, positive, group[:, None] == group)
    assert terms == {"in_batch": pytest.approx(expected.item(), rel=1e-5)}


def test_matryoshka_adds_every_term_on_the_first_dimensions():
    config = papers(matryoshka_dims=[4, 2], angle_mode="published")
    model, terms = run(config)
    chunks, labels = batch_of(ROWS)
    emb = torch.cat([model(chunk)["sentence_embedding"] for chunk in chunks])
    parts = [combined_objective(emb[:, :d], labels, replace(config, matryoshka_dims=())) for d in (8, 4, 2)]
    assert terms == {name: pytest.approx(sum(p[name].item() for p in parts), rel=1e-5) for name in parts[0]}
    assert list(terms) == ["cosine", "in_batch", "angle"]


def test_matryoshka_counts_the_whole_width_once():
    assert run(papers(matryoshka_dims=(8,)))[1] == run(papers())[1]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (papers(matryoshka_dims=(4, 9)), r"matryoshka_dims 9 is more than the 8 dimensions"),
        (papers(matryoshka_dims=(3,), angle_mode="published"), r"cannot take 3 dimensions"),
    ],
)
def test_dimensions_that_the_backbone_lacks_are_named(config, message):
    with pytest.raises(InputError, match=message) as caught:
        run(config)
    assert "\n" not in str(caught.value)


def test_odd_dimensions_are_fine_without_the_published_angle():
    run(papers(matryoshka_dims=(3,)))
    run(papers(matryoshka_dims=(3,), angle_mode="published", angle_weight=0))


def test_row_weights_reach_every_term():
    rows = [{**row, "weight": weight} for row, weight in zip(ROWS, (0.3, 0.2, 1.0, 0.5), strict=True)]
    _, weighted = run(papers(), rows=rows)
    _, plain = run(papers())
    assert all(weighted[name] != pytest.approx(plain[name], rel=1e-3) for name in plain)
