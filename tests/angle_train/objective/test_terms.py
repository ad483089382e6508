"""Golden tests: the objectives against slow loops written from the equations and against other code."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_train.objective.labels import positive_groups
from angle_train.objective.terms import (
    SIMILARITIES,
    cosine_similarity,
    in_batch_objective,
    not_negatives,
    ranking_loss,
    ranking_objective,
)


def embeddings(count, width=8, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


def in_batch(emb, first, second, positive, groups, neutral=None, **options):
    """The in-batch objective where groups and neutral pairs say which texts are no negatives."""
    neutral = torch.zeros_like(positive) if neutral is None else neutral
    excluded = not_negatives(groups, first[neutral], second[neutral])
    return in_batch_objective(emb, first, second, positive, excluded, **options)


# --- slow oracles, straight from the papers ------------------------------------------------------------


def slow_cosine(x, y):
    x, y = x.tolist(), y.tolist()
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    return dot / math.sqrt(sum(a * a for a in x)) / math.sqrt(sum(b * b for b in y))


def slow_published(x, y):
    """|Σ_d (re + im of z_d·conj(w_d))| / (|z||w|): Eq. 5 divided by the moduli, summed, then abs."""
    half = len(x) // 2
    z = [complex(a, b) for a, b in zip(x[:half].tolist(), x[half:].tolist(), strict=True)]
    w = [complex(a, b) for a, b in zip(y[:half].tolist(), y[half:].tolist(), strict=True)]
    norm_z = math.sqrt(sum(abs(a) ** 2 for a in z))
    norm_w = math.sqrt(sum(abs(b) ** 2 for b in w))
    total = sum(a * b.conjugate() for a, b in zip(z, w, strict=True)) / (norm_z * norm_w)
    return abs(total.real + total.imag)


def slow_ranking(similarity, score, tau, scale=None, weight=None):
    """log(1 + Σ_{score_i > score_j} w_i·w_j·exp((s_j - s_i)/τ)): Eq. 1, and Eq. 7 with Δθ for s.

    Pairs of one scale are compared, and those of scale 0 with all.
    """
    total, scale, weight = 1.0, scale or [1] * len(score), weight or [1] * len(score)
    for i, j in itertools.product(range(len(score)), repeat=2):
        if score[i] > score[j] and (scale[i] == scale[j] or 0 in (scale[i], scale[j])):
            total += weight[i] * weight[j] * math.exp((similarity[j] - similarity[i]) / tau)
    return math.log(total)


def slow_in_batch(emb, pairs, group, tau):
    """Mean over positive pairs, both directions, of Eq. 2's term without the anchor's own group."""
    terms = []
    for i, j in [(a, b) for a, b, positive in pairs if positive] + [
        (b, a) for a, b, positive in pairs if positive
    ]:
        own = math.exp(slow_cosine(emb[i], emb[j]) / tau)
        others = sum(
            math.exp(slow_cosine(emb[i], emb[k]) / tau) for k in range(len(emb)) if group[k] != group[i]
        )
        terms.append(-math.log(own / (own + others)))
    return sum(terms) / len(terms)


def ranking(x, y, score):
    """The ranking loss of two embeddings, by their cosine."""
    return ranking_loss(cosine_similarity(x, y), score, tau=0.05)


# --- values --------------------------------------------------------------------------------------------


def slow_symmetric(x, y):
    return 1 - 2 * math.acos(slow_cosine(x, y)) / math.pi


@pytest.mark.parametrize("tau", [0.05, 1.0])
@pytest.mark.parametrize(
    ("by", "slow"),
    [
        ("cosine", slow_cosine),
        ("published", slow_published),
        ("symmetric", slow_symmetric),
    ],
)
def test_ranking_objectives_equal_the_loop(by, slow, tau):
    x, y, score = embeddings(6), embeddings(6, seed=1), [1.0, 0.5, 0.5, 0.0, 0.2, 1.0]
    expected = slow_ranking([slow(a, b) for a, b in zip(x, y, strict=True)], score, tau)
    assert ranking_objective(x, y, torch.tensor(score), by, tau=tau).item() == pytest.approx(
        expected, rel=1e-5
    )


ON_SCALES = st.lists(
    st.tuples(
        st.floats(-1, 1),  # similarity
        st.sampled_from([0.0, 0.2, 0.5, 1.0]),
        st.sampled_from([0, 1, 2, 3]),  # scale
        st.sampled_from([0.25, 1.0]),  # weight
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(ON_SCALES, st.sampled_from([0.05, 1.0]), st.randoms(use_true_random=False))
def test_scores_are_compared_within_their_scale_and_with_random_pairs(rows, tau, seed):
    """Random pairs may differ in score too, and then are compared with each other once, not once a scale."""

    def loss(rows):
        similarity, score, scale, weight = (torch.tensor(column) for column in zip(*rows, strict=True))
        return ranking_loss(similarity, score, tau=tau, weight=weight, scale=scale).item()

    similarity, score, scale, weight = map(list, zip(*rows, strict=True))
    assert loss(rows) == pytest.approx(
        slow_ranking(similarity, score, tau, scale, weight), rel=1e-4, abs=1e-6
    )
    assert loss(seed.sample(rows, len(rows))) == pytest.approx(loss(rows), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("by", ["cosine", "symmetric"])
def test_one_scale_for_all_is_no_scale_to_the_last_bit(by):
    results = []
    for options in ({}, {"scale": torch.ones(50, dtype=torch.long)}, {"scale": torch.full((50,), 3)}):
        x = embeddings(50).requires_grad_()
        loss = ranking_objective(x, embeddings(50, seed=1), torch.arange(50) % 6 / 5, by, tau=0.05, **options)
        loss.backward()
        results.append((loss, x.grad))
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_in_batch_objective_equals_the_loop():
    # Texts: A=0 B=1 C=2 D=3 E=4; (A,B,+) (A,C,+) (B,D,-) (E,C,-)
    emb, pairs = embeddings(5), [(0, 1, True), (0, 2, True), (1, 3, False), (4, 2, False)]
    group = [0, 0, 0, 3, 4]
    actual = in_batch(
        emb,
        torch.tensor([p[0] for p in pairs]),
        torch.tensor([p[1] for p in pairs]),
        torch.tensor([p[2] for p in pairs]),
        torch.tensor(group),
        tau=0.05,
    )
    assert actual.item() == pytest.approx(slow_in_batch(emb, pairs, group, 0.05), rel=1e-4)


@pytest.mark.parametrize("swapped", [False, True])
def test_neutral_holds_in_both_directions_and_for_whole_groups(swapped):
    # Groups {0,1} and {2,3}, one neutral row between 0 and 2: no text of one is a negative of the other.
    emb = embeddings(4)
    link = [2, 0] if swapped else [0, 2]
    first, second = torch.tensor([0, 2, link[0]]), torch.tensor([1, 3, link[1]])
    positive = torch.tensor([True, True, False])
    groups = torch.tensor([0, 0, 2, 2])
    neutral = torch.tensor([False, False, True])
    assert in_batch(emb, first, second, positive, groups, neutral=neutral).item() == 0.0
    assert in_batch(emb, first, second, positive, groups).item() > 0.01


# --- weights as repetitions ----------------------------------------------------------------------------


def each_objective_of_rows(emb, first, second, score, positive, weight):
    """Every objective of rows over the same texts, named."""
    group = positive_groups(first, second, positive, torch.arange(len(emb)))
    for by in SIMILARITIES:
        yield by, ranking_objective(emb[first], emb[second], score, by, tau=0.5, weight=weight)
    yield "in_batch", in_batch(emb, first, second, positive, group, weight=weight)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=5, max_size=5), st.integers(0, 5))
def test_a_row_of_weight_w_counts_as_w_equal_rows_in_every_objective(times, seed):
    emb = embeddings(6, seed=seed)
    first, second = torch.tensor([0, 0, 2, 1, 3]), torch.tensor([1, 2, 3, 4, 5])
    score = torch.tensor([1.0, 0.0, 1.0, 0.5, 0.0])
    repeats = torch.tensor(times)
    weighted = each_objective_of_rows(emb, first, second, score, score == 1, repeats.float())
    first, second, score = (column.repeat_interleave(repeats) for column in (first, second, score))
    repeated = each_objective_of_rows(emb, first, second, score, score == 1, None)
    for (name, ours), (_, expected) in zip(weighted, repeated, strict=True):
        torch.testing.assert_close(ours, expected, msg=lambda text, name=name: f"{name}: {text}")


# --- sentence-transformers -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def st_losses():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import AnglELoss, CoSENTLoss

    empty = SentenceTransformer(modules=[torch.nn.Identity()], device="cpu")
    return CoSENTLoss(empty, scale=20.0), AnglELoss(empty, scale=20.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_cosine_and_published_angle_equal_sentence_transformers(st_losses, seed):
    cosent, angle = st_losses
    x, y = embeddings(16, 32, seed=seed), embeddings(16, 32, seed=seed + 100)
    score = torch.rand(16, generator=torch.Generator().manual_seed(seed)).mul(5).round().div(5)
    ours = ranking_objective(x, y, score, tau=1 / 20)
    torch.testing.assert_close(ours, cosent.compute_loss_from_embeddings([x, y], score))
    ours = ranking_objective(x, y, score, "published", tau=1 / 20)
    torch.testing.assert_close(ours, angle.compute_loss_from_embeddings([x, y], score))


# --- edges ---------------------------------------------------------------------------------------------


def test_scores_that_are_nan_are_refused():
    # Sorted to one end, they would rank silently as the best or the worst.
    score = torch.tensor([0.1, math.nan, 0.3, math.nan, 0.2])
    with pytest.raises(ValueError, match="2 of 5 scores are NaN and cannot be ranked"):
        ranking(embeddings(5), embeddings(5, seed=1), score)


def test_in_batch_without_positives_is_zero_with_gradient():
    emb = embeddings(2).requires_grad_()
    loss = in_batch(emb, torch.tensor([0]), torch.tensor([1]), torch.tensor([False]), torch.tensor([0, 1]))
    loss.backward()
    assert loss.item() == 0.0
    assert emb.grad.abs().max().item() == 0.0


def every_objective(emb):
    first, second = torch.tensor([0, 0, 1]), torch.tensor([2, 3, 4])
    score, positive = torch.tensor([1.0, 1.0, 0.0]), torch.tensor([True, True, False])
    group = positive_groups(first, second, positive, torch.arange(5))
    for scale in ([1, 2, 0], [1, 2, 3], [0, 0, 0]):  # with one pair or none to compare a pair with
        yield ranking_objective(emb[first], emb[second], score, tau=0.05, scale=torch.tensor(scale))
    for by in SIMILARITIES:
        yield ranking_objective(emb[first], emb[second], score, by, tau=0.05 if by == "cosine" else 1.0)
    yield in_batch(emb, first, second, positive, group)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("length", [0.0, 1e-30, 1e-6, 0.006, 1.0, 480.0, 6e4, 1e30])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [0, 0, 0, 0, 0]], ids=["different", "parallel"])
def test_losses_and_gradients_are_finite(dtype, length, rows):
    if length > torch.finfo(dtype).max:
        length = torch.finfo(dtype).max / 8
    signs = torch.tensor([[1.0], [-1], [1], [1], [-1]])  # parallel rows are equal or opposite
    emb = torch.nn.functional.normalize(embeddings(5))[rows] * signs
    emb = (emb * length).to(dtype).requires_grad_()
    for loss in every_objective(emb):
        (gradient,) = torch.autograd.grad(loss, emb)
        assert loss.isfinite()
        assert gradient.isfinite().all()
        assert gradient.dtype == dtype


def test_mixed_precision_does_not_coarsen_the_similarities():
    emb = embeddings(1) + 0.05 * embeddings(5, seed=1)  # cosines near 1, where bf16 has steps of 1/256
    expected = [loss.item() for loss in every_objective(emb)]
    with torch.autocast("cpu", torch.bfloat16):
        actual = [loss.item() for loss in every_objective(emb)]
    assert actual == pytest.approx(expected, rel=1e-5)
