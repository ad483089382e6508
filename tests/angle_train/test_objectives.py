"""Golden tests: the objectives against slow loops written from the equations and against other code."""

import cmath
import itertools
import math
from functools import partial
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_train.objective.batches import positive_groups
from angle_train.objective.terms import (
    ANGLE_SIMILARITIES,
    angle_objective,
    cosine_objective,
    cosine_similarity,
    in_batch_objective,
    ranking_loss,
)
from angle_train.settings import AngleMode


def embeddings(count, width=8, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


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


def slow_complex(x, y):
    """Σ_k |z_k||w_k|·(1 - 2·|arg z_k - arg w_k|/π) of the normalised complex vectors."""
    half, total = len(x) // 2, 0.0
    z = [complex(a, b) for a, b in zip(x[:half].tolist(), x[half:].tolist(), strict=True)]
    w = [complex(a, b) for a, b in zip(y[:half].tolist(), y[half:].tolist(), strict=True)]
    for a, b in zip(z, w, strict=True):
        apart = abs(cmath.phase(a) - cmath.phase(b))
        total += abs(a) * abs(b) * (1 - 2 * min(apart, 2 * math.pi - apart) / math.pi)
    return total / math.sqrt(sum(abs(a) ** 2 for a in z)) / math.sqrt(sum(abs(b) ** 2 for b in w))


def slow_fisher(x, y):
    """log((2·cos(Δθ/2) + 0.1) / (2·sin(Δθ/2) + 0.1))."""
    half_angle = math.acos(slow_cosine(x, y)) / 2
    return math.log((2 * math.cos(half_angle) + 0.1) / (2 * math.sin(half_angle) + 0.1))


def slow_ranking(similarity, score, tau, weight=None):
    """log(1 + Σ_{score_i > score_j} w_i w_j exp((s_j - s_i)/τ)): Eq. 1, and Eq. 7 with Δθ for s."""
    weight = weight or [1.0] * len(score)
    total = 1.0
    for i, j in itertools.product(range(len(score)), repeat=2):
        if score[i] > score[j]:
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


# --- values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.05, 0.3, 1.0])
def test_cosine_objective_equals_the_loop(tau):
    x, y, score = embeddings(6), embeddings(6, seed=1), [1.0, 0.5, 0.5, 0.0, 0.2, 1.0]
    expected = slow_ranking([slow_cosine(a, b) for a, b in zip(x, y, strict=True)], score, tau)
    assert cosine_objective(x, y, torch.tensor(score), tau=tau).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("tau", [0.05, 1.0])
def test_published_angle_objective_equals_the_loop(tau):
    x, y, score = embeddings(6), embeddings(6, seed=1), [1.0, 0.5, 0.5, 0.0, 0.2, 1.0]
    expected = slow_ranking([slow_published(a, b) for a, b in zip(x, y, strict=True)], score, tau)
    actual = angle_objective(x, y, torch.tensor(score), tau=tau, mode="published")
    assert actual.item() == pytest.approx(expected, rel=1e-5)


def test_symmetric_angle_objective_equals_the_loop():
    x, y, score = embeddings(6), embeddings(6, seed=1), [1.0, 0.5, 0.5, 0.0, 0.2, 1.0]
    angles = [1 - 2 * math.acos(slow_cosine(a, b)) / math.pi for a, b in zip(x, y, strict=True)]
    expected = slow_ranking(angles, score, 1.0)
    assert angle_objective(x, y, torch.tensor(score)).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("mode", "slow"), [("fisher", slow_fisher), ("complex", slow_complex)])
def test_other_angle_objectives_equal_the_loop(mode, slow):
    x, y, score = embeddings(6), embeddings(6, seed=1), [1.0, 0.5, 0.5, 0.0, 0.2, 1.0]
    expected = slow_ranking([slow(a, b) for a, b in zip(x, y, strict=True)], score, 0.5)
    actual = angle_objective(x, y, torch.tensor(score), tau=0.5, mode=mode)
    assert actual.item() == pytest.approx(expected, rel=1e-5)


def test_ranking_loss_weights_multiply_the_terms():
    similarity, score, weight = [0.1, 0.9, 0.4], [1.0, 0.0, 0.5], [0.5, 1.0, 0.25]
    actual = ranking_loss(torch.tensor(similarity), torch.tensor(score), tau=0.5, weight=torch.tensor(weight))
    assert actual.item() == pytest.approx(slow_ranking(similarity, score, 0.5, weight), rel=1e-5)


def test_in_batch_objective_equals_the_loop():
    # Texts: A=0 B=1 C=2 D=3 E=4; (A,B,+) (A,C,+) (B,D,-) (E,C,-)
    emb, pairs = embeddings(5), [(0, 1, True), (0, 2, True), (1, 3, False), (4, 2, False)]
    group = [0, 0, 0, 3, 4]
    actual = in_batch_objective(
        emb,
        torch.tensor([p[0] for p in pairs]),
        torch.tensor([p[1] for p in pairs]),
        torch.tensor([p[2] for p in pairs]),
        torch.tensor(group),
        tau=0.05,
    )
    assert actual.item() == pytest.approx(slow_in_batch(emb, pairs, group, 0.05), rel=1e-4)


def test_in_batch_objective_of_two_pairs_by_hand():
    # Orthonormal texts 0..3, pairs (0,1) and (2,3) with 0=1 and 2=3 in direction: own cosine 1, others 0.
    emb = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    first, second = torch.tensor([0, 2]), torch.tensor([1, 3])
    positive, group = torch.tensor([True, True]), torch.tensor([0, 0, 2, 2])
    # -log(e^2 / (e^2 + 2·e^0)) at τ = 0.5
    expected = -math.log(math.exp(2) / (math.exp(2) + 2))
    assert in_batch_objective(emb, first, second, positive, group, tau=0.5).item() == pytest.approx(expected)


def test_in_batch_weight_is_a_weighted_mean():
    emb = embeddings(4)
    first, second, group = torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([0, 0, 2, 2])
    both = torch.tensor([True, True])

    def loss(weight):
        return in_batch_objective(emb, first, second, both, group, weight=torch.tensor(weight)).item()

    only_first, only_second = loss([1.0, 1e-9]), loss([1e-9, 1.0])
    assert loss([0.75, 0.25]) == pytest.approx(0.75 * only_first + 0.25 * only_second, rel=1e-4)


def test_in_batch_weight_of_a_pair_covers_both_directions_of_that_pair():
    emb = embeddings(4)
    first, second, group = torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([0, 0, 2, 2])
    both = torch.tensor([True, True])
    alone = in_batch_objective(emb, first, second, torch.tensor([True, False]), group)
    weighted = in_batch_objective(emb, first, second, both, group, weight=torch.tensor([1.0, 1e-9]))
    assert weighted.item() == pytest.approx(alone.item(), rel=1e-5)


@pytest.mark.parametrize("swapped", [False, True])
def test_neutral_holds_in_both_directions_and_for_whole_groups(swapped):
    # Groups {0,1} and {2,3}, one neutral row between 0 and 2: no text of one is a negative of the other.
    emb = embeddings(4)
    link = [2, 0] if swapped else [0, 2]
    first, second = torch.tensor([0, 2, link[0]]), torch.tensor([1, 3, link[1]])
    positive = torch.tensor([True, True, False])
    loss = in_batch_objective(
        emb, first, second, positive, torch.tensor([0, 0, 2, 2]), neutral=torch.tensor([False, False, True])
    )
    assert loss.item() == 0.0


def test_neutral_pairs_leave_the_denominator():
    emb = embeddings(3)  # A=0, B=1 paraphrases; D=2 an antonym of A
    first, second, group = torch.tensor([0, 0]), torch.tensor([1, 2]), torch.tensor([0, 0, 2])
    positive = torch.tensor([True, False])
    without = in_batch_objective(emb, first, second, positive, group, neutral=torch.tensor([False, True]))
    with_it = in_batch_objective(emb, first, second, positive, group)
    # D was the only negative of A and of its paraphrase B: nothing is left to tell apart.
    assert without.item() == 0.0
    assert with_it.item() > 0.01


# --- weights as repetitions ----------------------------------------------------------------------------


def each_objective_of_rows(emb, first, second, score, positive, weight):
    """Every objective of rows over the same texts, named."""
    group = positive_groups(first, second, positive, torch.arange(len(emb)))
    yield "cosine", cosine_objective(emb[first], emb[second], score, weight=weight)
    for mode in ANGLE_SIMILARITIES:
        yield mode, angle_objective(emb[first], emb[second], score, mode=mode, weight=weight)
    yield (
        "in_batch",
        in_batch_objective(
            emb, first, second, positive, group, weight=weight, hard=score == 0, hard_weight=3.0
        ),
    )


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


# --- hard negatives ------------------------------------------------------------------------------------


@pytest.mark.parametrize("swapped", [False, True])
def test_a_hard_negative_counts_as_often_as_its_weight_says(swapped):
    # Texts A=0 B=1 (positive), D=2 (A's negative), X=3 Y=4 (positive): SimCSE's α = 3 for A and D only.
    emb, tau = embeddings(5), 0.5
    first, second = torch.tensor([0, 0, 3]), torch.tensor([1, 2, 4])
    if swapped:
        first, second = second, first
    positive, group = torch.tensor([True, False, True]), torch.tensor([0, 0, 2, 3, 3])
    candidates = {  # of each anchor: how often each text stands in its denominator
        (0, 1): [0, 1, 3, 1, 1],
        (1, 0): [1, 0, 1, 1, 1],  # B's negatives are not A's
        (3, 4): [1, 1, 1, 0, 1],
        (4, 3): [1, 1, 1, 1, 0],
    }
    terms = []
    for (i, j), times in candidates.items():
        share = [n * math.exp(slow_cosine(emb[i], emb[k]) / tau) for k, n in enumerate(times)]
        terms.append(-math.log(share[j] / sum(share)))
    actual = in_batch_objective(
        emb, first, second, positive, group, tau=tau, hard=torch.tensor([False, True, False]), hard_weight=3.0
    )
    assert actual.item() == pytest.approx(sum(terms) / 4, rel=1e-5)


def test_a_hard_negative_repels_its_own_anchor_more():
    emb = embeddings(3).requires_grad_()
    first, second, group = torch.tensor([0, 0]), torch.tensor([1, 2]), torch.tensor([0, 0, 2])
    positive, hard = torch.tensor([True, False]), torch.tensor([False, True])
    pulls = []
    for weight in (0.5, 1.0, 2.0):
        loss = in_batch_objective(emb, first, second, positive, group, tau=1.0, hard=hard, hard_weight=weight)
        pulls.append(torch.autograd.grad(loss, emb)[0][2].norm().item())
    assert pulls[0] < pulls[1] < pulls[2]


def test_where_rows_contradict_a_partner_is_no_hard_negative_of_its_anchor():
    # (A,B,1) and (B,A,0): the partner keeps its place in the numerator and counts once below it.
    emb = embeddings(4)
    first, second = torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3])
    positive, group = torch.tensor([True, False, True]), torch.tensor([0, 0, 2, 2])
    hard = torch.tensor([False, True, False])
    plain = in_batch_objective(emb, first, second, positive, group)
    weighted = in_batch_objective(emb, first, second, positive, group, hard=hard, hard_weight=100.0)
    assert weighted.item() == plain.item()


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
    ours = cosine_objective(x, y, score, tau=1 / 20)
    torch.testing.assert_close(ours, cosent.compute_loss_from_embeddings([x, y], score))
    ours = angle_objective(x, y, score, tau=1 / 20, mode="published")
    torch.testing.assert_close(ours, angle.compute_loss_from_embeddings([x, y], score))


# --- identical-sentence pairs --------------------------------------------------------------------------


def test_a_paraphrase_is_never_its_own_texts_negative():
    # (A,B,1) (A,C,1): moving C away from B must not lower the loss through "C is B's negative".
    emb = embeddings(3).requires_grad_()
    first, second, positive = torch.tensor([0, 0]), torch.tensor([1, 2]), torch.tensor([True, True])
    group = positive_groups(first, second, positive, torch.arange(3))
    loss = in_batch_objective(emb, first, second, positive, group)
    assert loss.item() == 0.0  # no text is left outside the group
    apart = in_batch_objective(emb, first, second, positive, torch.arange(3))
    assert apart.item() > 0.1  # without detection they would repel each other


def test_the_antonym_of_a_text_is_a_negative_of_its_paraphrases_too():
    # (A,B,1) (A,C,1) (B,D,0): D repels A, B and C.
    emb = embeddings(4).requires_grad_()
    first, second = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 3])
    positive = torch.tensor([True, True, False])
    group = positive_groups(first, second, positive, torch.arange(4))
    in_batch_objective(emb, first, second, positive, group).backward()
    assert emb.grad[3].norm().item() > 1e-4


# --- edges ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [cosine_objective, angle_objective])
def test_equal_scores_give_zero_loss_and_zero_gradient(objective):
    x, y = embeddings(5).requires_grad_(), embeddings(5, seed=1)
    loss = objective(x, y, torch.full((5,), 0.4))
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad.abs().max().item() == 0.0


def test_in_batch_without_positives_is_zero_with_gradient():
    emb = embeddings(2).requires_grad_()
    loss = in_batch_objective(
        emb, torch.tensor([0]), torch.tensor([1]), torch.tensor([False]), torch.tensor([0, 1])
    )
    loss.backward()
    assert loss.item() == 0.0
    assert emb.grad.abs().max().item() == 0.0


def every_objective(emb):
    first, second = torch.tensor([0, 0, 1]), torch.tensor([2, 3, 4])
    score, positive = torch.tensor([1.0, 1.0, 0.0]), torch.tensor([True, True, False])
    group = positive_groups(first, second, positive, torch.arange(5))
    yield cosine_objective(emb[first], emb[second], score)
    for mode in ANGLE_SIMILARITIES:
        yield angle_objective(emb[first], emb[second], score, mode=mode)
    yield in_batch_objective(emb, first, second, positive, group)
    yield in_batch_objective(emb, first, second, positive, group, hard=score == 0, hard_weight=1e6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("length", [0.0, 1e-30, 1e-6, 0.006, 1.0, 480.0, 6e4, 1e30])
def test_losses_and_gradients_are_finite(dtype, length):
    if length > torch.finfo(dtype).max:
        length = torch.finfo(dtype).max / 8
    emb = (torch.nn.functional.normalize(embeddings(5)) * length).to(dtype).requires_grad_()
    for loss in every_objective(emb):
        (gradient,) = torch.autograd.grad(loss, emb)
        assert loss.isfinite()
        assert gradient.isfinite().all()
        assert gradient.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_identical_and_opposite_vectors_have_finite_gradients(dtype):
    row = embeddings(1).to(dtype)
    emb = torch.cat([row, -row, row, row, -row]).requires_grad_()
    for loss in every_objective(emb):
        (gradient,) = torch.autograd.grad(loss, emb)
        assert loss.isfinite()
        assert gradient.isfinite().all()


def test_mixed_precision_does_not_coarsen_the_similarities():
    emb = embeddings(1) + 0.05 * embeddings(5, seed=1)  # cosines near 1, where bf16 has steps of 1/256
    expected = [loss.item() for loss in every_objective(emb)]
    with torch.autocast("cpu", torch.bfloat16):
        actual = [loss.item() for loss in every_objective(emb)]
    assert actual == pytest.approx(expected, rel=1e-5)


def test_similarities_do_not_depend_on_the_lengths_of_vectors():
    x, y = embeddings(4), embeddings(4, seed=1)
    lengths = torch.tensor([[1e-6], [1.0], [480.0], [1e18]])
    for similarity in (cosine_similarity, *ANGLE_SIMILARITIES.values()):
        torch.testing.assert_close(similarity(x * lengths, y), similarity(x, y))


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(6)), st.integers(0, 5))
def test_losses_do_not_depend_on_the_order_of_pairs(order, seed):
    x, y = embeddings(6, seed=seed), embeddings(6, seed=seed + 50)
    score = torch.tensor([1.0, 0.5, 0.5, 0.0, 0.2, 1.0])
    angles = [partial(angle_objective, mode=mode) for mode in ANGLE_SIMILARITIES]
    for objective in (cosine_objective, *angles):
        torch.testing.assert_close(
            objective(x[list(order)], y[list(order)], score[list(order)]), objective(x, y, score)
        )
    emb, first, second = torch.cat([x, y]), torch.arange(6), torch.arange(6, 12)
    positive = score >= 0.5
    group = positive_groups(first, second, positive, torch.arange(12))
    picked, hard = torch.tensor(order), score == 0
    torch.testing.assert_close(
        in_batch_objective(
            emb, first[picked], second[picked], positive[picked], group, hard=hard[picked], hard_weight=2.0
        ),
        in_batch_objective(emb, first, second, positive, group, hard=hard, hard_weight=2.0),
    )


def test_recipes_can_name_every_angle_mode():
    assert set(get_args(AngleMode)) == set(ANGLE_SIMILARITIES)


@pytest.mark.parametrize("mode", list(ANGLE_SIMILARITIES))
def test_a_right_ranking_beats_a_wrong_one(mode):
    anchor = torch.tensor([[1.0, 0.2, 0.1, 0.0]]).repeat(2, 1)
    others = torch.tensor([[1.0, 0.1, 0.0, 0.0], [0.0, 0.1, 1.0, -0.5]])
    right = angle_objective(anchor, others, torch.tensor([1.0, 0.0]), mode=mode)
    wrong = angle_objective(anchor, others, torch.tensor([0.0, 1.0]), mode=mode)
    assert right.item() < wrong.item()
