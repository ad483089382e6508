"""The angle similarities one by one: known angles, symmetry, optimum, gradients, what they teach alone."""

import cmath
import math

import pytest
import torch
from scipy.stats import spearmanr

from angle_train.objective.terms import (
    ANGLE_SIMILARITIES,
    angle_objective,
    complex_angle_similarity,
    cosine_similarity,
    fisher_angle_similarity,
    published_angle_similarity,
    symmetric_angle_similarity,
)

SQRT2 = math.sqrt(2)


def embeddings(count, width=8, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


# --- published behaviour -------------------------------------------------------------------------------


def complex_rotation(x, degrees):
    half = x.shape[-1] // 2
    z = torch.complex(x[..., :half], x[..., half:]) * cmath.exp(1j * math.radians(degrees))
    return torch.cat([z.real, z.imag], dim=-1)


def test_published_similarity_is_the_cosine_after_a_rotation_by_45_degrees():
    x, y = embeddings(20, 64), embeddings(20, 64, seed=1)
    expected = SQRT2 * cosine_similarity(complex_rotation(x, -45), y).abs()
    torch.testing.assert_close(published_angle_similarity(x, y), expected)


def test_published_similarity_peaks_at_cosine_0707_not_at_identity():
    x = embeddings(3, 64)
    rotated = complex_rotation(x, 45)
    assert cosine_similarity(rotated, x).tolist() == pytest.approx([0.7071068] * 3, abs=1e-5)
    assert published_angle_similarity(rotated, x).tolist() == pytest.approx([SQRT2] * 3, abs=1e-5)
    assert published_angle_similarity(x, x).tolist() == pytest.approx([1.0] * 3, abs=1e-5)
    assert published_angle_similarity(-x, x).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


def test_published_objective_of_the_similarities_that_were_measured_of_the_released_code():
    # Of the released code: a text and itself 1, rotated by 45 degrees 1.414, opposite texts 1 again.
    x = embeddings(1, 64)
    pair, others = torch.cat([x, x]), torch.cat([complex_rotation(x, 45), x])

    def loss(score, tau):
        return angle_objective(others, pair, torch.tensor(score), tau=tau, mode="published").item()

    assert loss([1.0, 0.0], 1.0) == pytest.approx(0.50734, abs=1e-4)  # log(1 + e^(1 - 1.41421))
    assert loss([0.0, 1.0], 1.0) == pytest.approx(0.92155, abs=1e-4)  # log(1 + e^(1.41421 - 1))
    assert loss([0.0, 1.0], 1 / 20) == pytest.approx(8.28452, abs=1e-3)  # the same with its later scale of 20
    others[1] = -x
    assert loss([1.0, 0.0], 1.0) == pytest.approx(0.50734, abs=1e-4)


def test_published_similarity_depends_on_the_order_and_symmetric_does_not():
    width = 768
    x, y = embeddings(4000, width), embeddings(4000, width, seed=1)
    gap = (published_angle_similarity(x, y) - published_angle_similarity(y, x)).abs().mean()
    # |cos+sin| - |cos-sin| = ±2·min(|cos|, |sin|), both nearly normal with variance 1/width;
    # the expected minimum of two half-normals of unit variance is 2(√2-1)/√π.
    assert gap.item() == pytest.approx(4 * (SQRT2 - 1) / math.sqrt(math.pi * width), rel=0.05)
    torch.testing.assert_close(symmetric_angle_similarity(x, y), symmetric_angle_similarity(y, x))


def test_symmetric_similarity_of_known_angles():
    x = torch.tensor([[1.0, 0], [1, 0], [1, 0], [1, 0], [1, 0]])
    y = torch.tensor([[2.0, 0], [1, 1], [0, 3], [-1, 1], [-5, 0]])  # 0°, 45°, 90°, 135°, 180°
    assert symmetric_angle_similarity(x, y).tolist() == pytest.approx([1, 0.5, 0, -0.5, -1], abs=1e-5)


def test_symmetric_angle_keeps_its_gradient_where_the_cosine_saturates():
    x = torch.tensor([[1.0, 0.0]])
    for degrees in (0.1, 1.0, 10.0):
        angle = math.radians(degrees)
        y = torch.tensor([[math.cos(angle), math.sin(angle)]], requires_grad=True)
        (cosine_slope,) = torch.autograd.grad(cosine_similarity(x, y).sum(), y)
        (angle_slope,) = torch.autograd.grad(symmetric_angle_similarity(x, y).sum(), y)
        assert cosine_slope.norm().item() == pytest.approx(math.sin(angle), rel=1e-2)
        assert angle_slope.norm().item() == pytest.approx(2 / math.pi, rel=1e-2)


# --- the other angles ----------------------------------------------------------------------------------


def test_complex_similarity_of_known_angles():
    # Every complex coordinate is turned by the same angle, so the similarity is 1 - 2·angle/π.
    x = embeddings(3, 64)
    for degrees, expected in ((0, 1), (45, 0.5), (-45, 0.5), (90, 0), (180, -1)):
        turned = complex_rotation(x, degrees)
        assert complex_angle_similarity(x, turned).tolist() == pytest.approx([expected] * 3, abs=1e-5)
    # Equal angles are not enough: (1+0i, 0+0i) against (1+0i, 1+0i) has the cosine of the moduli.
    apart = complex_angle_similarity(torch.tensor([[1.0, 0, 0, 0]]), torch.tensor([[1.0, 1, 0, 0]]))
    assert apart.item() == pytest.approx(1 / SQRT2, abs=1e-6)


def test_complex_angle_keeps_its_gradient_where_the_cosine_saturates():
    x = torch.tensor([[1.0, 0.0]])
    for degrees in (0.1, 1.0, 10.0):
        angle = math.radians(degrees)
        y = torch.tensor([[math.cos(angle), math.sin(angle)]], requires_grad=True)
        (slope,) = torch.autograd.grad(complex_angle_similarity(x, y).sum(), y)
        assert slope.norm().item() == pytest.approx(2 / math.pi, rel=1e-2)


def test_fisher_similarity_of_known_angles():
    x = torch.tensor([[1.0, 0], [1, 0], [1, 0]])
    y = torch.tensor([[3.0, 0], [0, 2], [-1, 0]])  # 0°, 90°, 180°
    most = math.log(2.1 / 0.1)
    assert fisher_angle_similarity(x, y).tolist() == pytest.approx([most, 0, -most], abs=1e-4)
    x, y = embeddings(50), embeddings(50, seed=1)
    torch.testing.assert_close(fisher_angle_similarity(x, -y), -fisher_angle_similarity(x, y))


def test_fisher_angle_tells_close_pairs_apart_best():
    def gap(degrees, similarity):
        turned = [[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in (degrees, 2 * degrees)]
        near, far = similarity(torch.tensor([[1.0, 0.0]] * 2), torch.tensor(turned)).tolist()
        return near - far

    # At 4° against 8° the cosine sees a hundredth of the difference that it sees at 40° against 80°.
    assert gap(4.0, cosine_similarity) < 0.02 * gap(40.0, cosine_similarity)
    assert gap(4.0, symmetric_angle_similarity) == pytest.approx(
        0.1 * gap(40.0, symmetric_angle_similarity), 1e-2
    )
    assert gap(4.0, fisher_angle_similarity) > 0.4 * gap(40.0, fisher_angle_similarity)


@pytest.mark.parametrize("mode", [mode for mode in ANGLE_SIMILARITIES if mode != "published"])
def test_angles_do_not_depend_on_the_order_of_texts_and_peak_at_equal_directions(mode):
    similarity = ANGLE_SIMILARITIES[mode]
    x, y = embeddings(200, 64), embeddings(200, 64, seed=1)
    torch.testing.assert_close(similarity(x, y), similarity(y, x))
    same = similarity(x, 3 * x)
    for other in (y, x + 0.05 * y, complex_rotation(x, 45), -x):
        assert (similarity(x, other) < same).all()


def toy_spearman(mode, tau, seed, count=64, width=64, steps=100):
    """Spearman of cosine and label of free embeddings that were trained by the angle objective alone."""
    draw = torch.Generator().manual_seed(seed)
    common = 1.5 * torch.randn(1, width, generator=draw)  # initial cosines are about 0.7
    x, y = (common + torch.randn(count, width, generator=draw) for _ in range(2))
    score = torch.arange(count) % 6 / 5
    optimiser = torch.optim.Adam([x.requires_grad_(), y.requires_grad_()], lr=0.05)
    for _ in range(steps):
        loss = angle_objective(x, y, score, tau=tau, mode=mode)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return spearmanr(cosine_similarity(x, y).detach().numpy(), score.numpy()).statistic


@pytest.mark.parametrize(
    ("mode", "tau", "least", "most"),
    [
        ("symmetric", 0.05, 0.98, 1),
        ("complex", 0.05, 0.98, 1),
        ("fisher", 1.0, 0.98, 1),
        (
            "symmetric",
            1.0,
            0.9,
            0.975,
        ),  # at τ = 1 a similarity that ends at ±1 pushes middle grades to the ends
        ("published", 1.0, 0.5, 0.85),  # its optimum is not at equal directions
    ],
)
def test_what_the_angle_alone_teaches_free_embeddings(mode, tau, least, most):
    assert all(least < toy_spearman(mode, tau, seed) < most for seed in range(3))
