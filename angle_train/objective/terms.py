"""The three objectives of the AnglE papers as pure functions of embeddings; plain torch, nothing else.

Shapes, used throughout: B pairs, D embedding width, N texts. Similarities are computed in fp32 whatever
the embeddings' type, and every function is finite on zero, tiny and huge vectors. Temperatures are in the
papers' units: they divide (τ = 0.05 is the papers' choice for cosine and in-batch, 1.0 for angle).

Sources: AnglE (https://arxiv.org/abs/2309.12871) Eq. 1, 2, 5-8; CoSENT (https://kexue.fm/archives/8847);
SimCSE's weight α of hard negatives (https://arxiv.org/abs/2104.08821, ablation on hard negatives).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

_EPS = 1e-12
_CLOSEST = 0.1  # distance of unit vectors, about 6 degrees, below which `fisher` stops telling pairs apart


def _unit(embeddings: Tensor) -> Tensor:
    """Return the rows (…, D) scaled to length 1 in fp32; zero rows stay zero.

    Dividing by the largest component first keeps the squares of huge and tiny rows inside fp32. The
    gradient grows as 1/length, so rows too short for their type's gradient to be finite (largest component
    below 0.004 in fp16, 1e-12 otherwise) are divided by that floor instead and end up shorter than 1.
    """
    floor = max(_EPS, 256 / torch.finfo(embeddings.dtype).max)
    rows = embeddings.float()
    largest = rows.detach().abs().amax(dim=-1, keepdim=True).clamp_min(floor)
    return normalize(rows / largest, dim=-1, eps=1.0)


def _missing_length(unit: Tensor) -> Tensor:
    """Return 1 - |u|² (…) for the rows that `_unit` had to leave short, 0 for rows of length 1.

    Adding it to |x-y|² gives 2 - 2·x·y for short rows too, so a zero vector is at right angles to all.
    """
    square = unit.square().sum(dim=-1)
    return torch.where(square < 0.999, 1 - square, 0.0)


def cosine_similarity(emb1: Tensor, emb2: Tensor) -> Tensor:
    """Return the cosine (B,) in [-1, 1] of the rows of two (B, D) matrices; 0 where a row is zero."""
    return (_unit(emb1) * _unit(emb2)).sum(dim=-1)


def published_angle_similarity(emb1: Tensor, emb2: Tensor) -> Tensor:
    """Return the authors' released "angle" (B,) in [0, √2]: |cos(x, y) + sin(x, y)|.

    Rows are read as complex vectors (first half real, second half imaginary part). Dividing them as in
    Eq. 5 and summing over the dimensions before the absolute value, as the released loss does, gives the
    real plus the imaginary part of the normalised complex inner product. It grows with similarity, but
    depends on the order of the two texts, and its maximum lies at cos = 0.707; see `angle_mode` in the
    README. Needs an even D.
    """
    (a, b), (c, d) = _unit(emb1).chunk(2, dim=-1), _unit(emb2).chunk(2, dim=-1)
    real = (a * c + b * d).sum(dim=-1)
    imaginary = (b * c - a * d).sum(dim=-1)
    return (real + imaginary).abs()


def symmetric_angle_similarity(emb1: Tensor, emb2: Tensor) -> Tensor:
    """Return 1 - 2Δθ/π (B,) in [-1, 1], where Δθ in [0, π] is the angle between the two rows.

    This is the angle difference the papers argue for: unlike the cosine its gradient does not vanish
    where two embeddings are nearly parallel. It does not depend on the order of the texts and is largest
    for equal directions. Δθ = 2·atan2(|x̂-ŷ|, |x̂+ŷ|) is accurate at both ends, where arccos is not
    (W. Kahan, "How Futile are Mindless Assessments of Roundoff", §12).
    """
    apart, together = _chords(emb1, emb2)
    return 1 - 4 / torch.pi * torch.atan2(apart, together)


def fisher_angle_similarity(emb1: Tensor, emb2: Tensor) -> Tensor:
    """Return log((|x̂+ŷ| + ε) / (|x̂-ŷ| + ε)) (B,) in [-3.04, 3.04]: the angle on a scale of ratios, ε = 0.1.

    With ε = 0 it is -log tan(Δθ/2) = artanh(cos Δθ), Fisher's z of the cosine, the scale on which a
    correlation is as precise everywhere. There, angles of 2° and 4° are as far apart as 20° and 40°, so the
    zone where the cosine saturates is told apart best instead of worst. exp(-s/τ) is a power of the angle:
    with the papers' τ = 1 the objective compares the angles themselves, where similarities that end at ±1
    make e² of the largest difference there is and push all pairs to the ends. ε bounds similarity and
    gradient (at most 1/ε), so that pairs that are close enough do not attract each other for ever. Does not
    depend on the order of the texts.
    """
    apart, together = _chords(emb1, emb2)
    return torch.log((together + _CLOSEST) / (apart + _CLOSEST))


def complex_angle_similarity(emb1: Tensor, emb2: Tensor) -> Tensor:
    """Return Σ_k |z_k||w_k|·(1 - 2Δθ_k/π) (B,) in [-1, 1]: the papers' angle in complex space, repaired.

    z, w are the normalised rows as complex vectors (first half real, second half imaginary part) and
    Δθ_k in [0, π] is the angle between z_k and w_k. Since cos(x, y) = Σ_k |z_k||w_k|·cos Δθ_k, this is the
    cosine with each coordinate's saturating cos Δθ_k replaced by the angle itself. The published form divides
    the moduli out and sums before the absolute value; here they stay as weights and the absolute value is
    taken of each angle. So the order of the texts does not matter, opposite texts have -1, and 1 is
    reached by equal directions alone (Cauchy-Schwarz). Needs an even D.
    """
    (a, b), (c, d) = _unit(emb1).chunk(2, dim=-1), _unit(emb2).chunk(2, dim=-1)
    real, imaginary = a * c + b * d, (b * c - a * d).abs()
    square = real.square() + imaginary.square()
    none = square < 1e-30  # no angle there, and no finite gradient of one
    modulus = square.masked_fill(none, 1.0).sqrt()
    angle = torch.atan2(imaginary, real.masked_fill(none, 1.0))
    return (modulus * (1 - 2 / torch.pi * angle)).masked_fill(none, 0.0).sum(dim=-1)


def _chords(emb1: Tensor, emb2: Tensor) -> tuple[Tensor, Tensor]:
    """Return |x̂-ŷ| and |x̂+ŷ| (B,), both in [0, 2] and √2 where a row is zero."""
    x, y = _unit(emb1), _unit(emb2)
    missing = _missing_length(x) + _missing_length(y)
    apart = ((x - y).square().sum(dim=-1) + missing + _EPS).sqrt()
    together = ((x + y).square().sum(dim=-1) + missing + _EPS).sqrt()
    return apart, together


ANGLE_SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "symmetric": symmetric_angle_similarity,
    "published": published_angle_similarity,
    "fisher": fisher_angle_similarity,
    "complex": complex_angle_similarity,
}
"""Name in a recipe -> function of two (B, D) matrices; larger (B,) for more similar pairs."""

COMPLEX_ANGLES = frozenset({"published", "complex"})
"""The angle similarities that pair the two halves of a vector and so need an even D."""


def ranking_loss(similarity: Tensor, score: Tensor, *, tau: float, weight: Tensor | None = None) -> Tensor:
    """Return log(1 + Σ w_i·w_j·exp((s_j - s_i)/τ)) over all i, j with score_i > score_j (Eq. 1 and 7).

    Args:
        similarity: s (B,), larger for more similar pairs.
        score: Gold similarity (B,); only its order matters. With all scores equal the loss is 0.
        tau: Temperature; divides.
        weight: Trust in each pair (B,), in (0, 1]; default 1.

    O(B log B) time and O(B) memory: the double sum is Σ_i w_i·exp(-s_i/τ)·Σ_{j lower} w_j·exp(s_j/τ).
    """
    order = score.argsort()
    sorted_score = score[order]
    logits = similarity.float()[order] / tau
    log_weight = torch.zeros_like(logits) if weight is None else weight.float()[order].log()
    # For each i, the pairs with a lower score are a prefix of this order: one cumulative sum serves all i.
    lower = torch.searchsorted(sorted_score, sorted_score)
    ranked = lower > 0
    prefix = (log_weight + logits).logcumsumexp(dim=0)[lower[ranked] - 1]
    terms = prefix + (log_weight - logits)[ranked]
    return torch.cat([terms.new_zeros(1), terms]).logsumexp(dim=0)


def cosine_objective(
    emb1: Tensor, emb2: Tensor, score: Tensor, *, tau: float = 0.05, weight: Tensor | None = None
) -> Tensor:
    """Return the cosine objective (scalar, ≥ 0): pairs with a higher score should have a higher cosine.

    Eq. 1 of the AnglE paper, the CoSENT loss. Shapes: emb1, emb2 (B, D), score and weight (B,).
    """
    return ranking_loss(cosine_similarity(emb1, emb2), score, tau=tau, weight=weight)


def angle_objective(
    emb1: Tensor,
    emb2: Tensor,
    score: Tensor,
    *,
    tau: float = 1.0,
    mode: str = "symmetric",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the angle objective (scalar, ≥ 0): Eq. 7, ranking by the angle instead of its cosine.

    Args:
        emb1: Embeddings (B, D) of the first texts.
        emb2: Embeddings (B, D) of the second texts.
        score: Gold similarity (B,).
        tau: Temperature; divides.
        mode: A key of `ANGLE_SIMILARITIES`: `symmetric` ranks by the angle between the embeddings,
            `published` reproduces the authors' released loss; see the similarity functions.
        weight: Trust in each pair (B,).
    """
    return ranking_loss(ANGLE_SIMILARITIES[mode](emb1, emb2), score, tau=tau, weight=weight)


def in_batch_objective(
    embeddings: Tensor,
    first: Tensor,
    second: Tensor,
    positive: Tensor,
    groups: Tensor,
    *,
    tau: float = 0.05,
    weight: Tensor | None = None,
    neutral: Tensor | None = None,
    hard: Tensor | None = None,
    hard_weight: float = 1.0,
) -> Tensor:
    """Return the in-batch-negatives objective (scalar, ≥ 0): each text should find its partner (Eq. 2).

    For every positive pair (i, j), in both directions, -log of the softmax probability of j among j
    itself and all texts outside i's group. Members of i's group (paraphrases, equal texts) are neither
    target nor negative in that term, and second texts of other pairs (antonyms too) are negatives. The
    mean over positive pairs is weighted by `weight`; without a positive pair the loss is 0.

    Args:
        embeddings: The distinct texts (N, D).
        first: Index (B,) of each pair's first text.
        second: Index (B,) of each pair's second text.
        positive: Whether each pair is positive (B,), boolean.
        groups: Group (N,) of each text; `batching.positive_groups` finds them.
        tau: Temperature; divides.
        weight: Trust in each pair (B,).
        neutral: Pairs (B,), boolean, whose two groups are no negatives of each other; default none.
        hard: Pairs (B,), boolean, whose two texts are each other's hard negatives; default none.
        hard_weight: How often a hard negative counts among the negatives: SimCSE's α.
    """
    anchor = torch.cat([first[positive], second[positive]])
    target = torch.cat([second[positive], first[positive]])
    unit = _unit(embeddings)
    excluded = groups[:, None] == groups[None, :]
    if neutral is not None and bool(neutral.any()):
        related = torch.zeros_like(excluded)
        related[groups[first[neutral]], groups[second[neutral]]] = True
        excluded = excluded | (related | related.T)[groups[:, None], groups[None, :]]
    # Mixed precision would take this product in bf16, whose step near cosine 1 is 1/256: too coarse for τ.
    with torch.autocast(unit.device.type, enabled=False):
        logits = unit[anchor] @ unit.T / tau
    if hard is not None and hard_weight != 1:
        times = torch.ones_like(excluded, dtype=logits.dtype)
        times[first[hard], second[hard]] = times[second[hard], first[hard]] = hard_weight
        # Where another row contradicts, the partner stays what it is for its anchor.
        logits = logits + times.log()[anchor].scatter(1, target[:, None], 0.0)
    excluded = excluded[anchor].scatter(1, target[:, None], False)
    logits = logits.masked_fill(excluded, -torch.inf)
    terms = logits.logsumexp(dim=1) - logits.gather(1, target[:, None]).squeeze(1)
    trust = torch.ones_like(terms) if weight is None else weight[positive].float().repeat(2)
    return (terms * trust).sum() / trust.sum().clamp_min(_EPS)
