"""The three objectives of the AnglE papers as pure functions of embeddings; plain torch, nothing else.

Similarities are computed in fp32 whatever the embeddings' type, and every function is finite on zero, tiny
and huge vectors. Arguments mean the same throughout, for B pairs of N texts with embeddings of width D:

    emb1, emb2      embeddings (B, D) of the pairs' first and second texts
    score           gold similarity (B,); only its order matters, and NaN has none: ValueError
    tau             temperature in the papers' units: it divides
    weight          trust in each pair (B,), in (0, 1]; default 1
    scale           number of the scale (B,) that each score is on; default one scale for all. Scores of two
                    scales are not compared; 0 is the low end of every other scale, and compared with them
    embeddings      the distinct texts (N, D)
    first, second   index (B,) of each pair's texts, in 0..N-1

Sources: AnglE (https://arxiv.org/abs/2309.12871) Eq. 1, 2, 5-8; CoSENT (https://kexue.fm/archives/8847).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

_EPS = 1e-12


def unit_rows(embeddings: Tensor) -> Tensor:
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
    """Return 1 - |u|² (…) for the rows that `unit_rows` had to leave short, 0 for rows of length 1.

    Adding it to |x-y|² gives 2 - 2·x·y for short rows too, so a zero vector is at right angles to all.
    """
    square = unit.square().sum(dim=-1)
    return torch.where(square < 0.999, 1 - square, 0.0)


def cosine_similarity(emb1: Tensor, emb2: Tensor) -> Tensor:
    """Return the cosine (B,) in [-1, 1] of the rows of two (B, D) matrices; 0 where a row is zero."""
    return (unit_rows(emb1) * unit_rows(emb2)).sum(dim=-1)


def published_angle_similarity(emb1: Tensor, emb2: Tensor) -> Tensor:
    """Return the authors' released "angle" (B,) in [0, √2]: |cos(x, y) + sin(x, y)|.

    Rows are read as complex vectors (first half real, second half imaginary part). Dividing them as in
    Eq. 5 and summing over the dimensions before the absolute value, as the released loss does, gives the
    real plus the imaginary part of the normalised complex inner product. It grows with similarity, but
    depends on the order of the two texts, and its maximum lies at cos = 0.707; see docs/maths.md. Needs
    an even D.
    """
    (a, b), (c, d) = unit_rows(emb1).chunk(2, dim=-1), unit_rows(emb2).chunk(2, dim=-1)
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
    x, y = unit_rows(emb1), unit_rows(emb2)
    missing = _missing_length(x) + _missing_length(y)
    apart = ((x - y).square().sum(dim=-1) + missing + _EPS).sqrt()
    together = ((x + y).square().sum(dim=-1) + missing + _EPS).sqrt()
    return 1 - 4 / torch.pi * torch.atan2(apart, together)


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine_similarity,
    "symmetric": symmetric_angle_similarity,
    "published": published_angle_similarity,
}
"""Name -> function of two (B, D) matrices; larger (B,) for more similar pairs."""


def ranking_loss(
    similarity: Tensor,
    score: Tensor,
    *,
    tau: float,
    weight: Tensor | None = None,
    scale: Tensor | None = None,
) -> Tensor:
    """Return log(1 + Σ w_i·w_j·exp((s_j - s_i)/τ)) over all i, j with score_i > score_j (Eq. 1 and 7).

    `similarity` is s (B,), larger for more similar pairs. With all scores equal the loss is 0.
    O(B log B) time and O(B) memory: the double sum is Σ_i w_i·exp(-s_i/τ)·Σ_{j lower} w_j·exp(s_j/τ). With
    several scales it is divided by the scale of j: every comparable i, j is in one part.

    Raises:
        ValueError: A score is NaN.
    """
    if bool(score.isnan().any()):
        raise ValueError(f"{int(score.isnan().sum())} of {len(score)} scores are NaN and cannot be ranked")
    order = score.argsort()
    score = score[order]
    logits = similarity.float()[order] / tau
    log_weight = torch.zeros_like(logits) if weight is None else weight.float()[order].log()
    scale = torch.ones_like(order) if scale is None else scale[order]
    parts = [logits.new_zeros(1)]
    for one in scale.unique():  # type: ignore[no-untyped-call]
        of_one = scale == one
        above = of_one | (scale == 0) | (one == 0)
        # For each i, the pairs of a lower score are a prefix of this order: one cumulative sum serves all i.
        lower = torch.searchsorted(score[of_one], score[above])
        ranked = lower > 0
        below = (log_weight + logits)[of_one].logcumsumexp(dim=0)
        prefix = below.index_select(0, lower[ranked] - 1)
        parts.append(prefix + (log_weight - logits)[above][ranked])
    return torch.cat(parts).logsumexp(dim=0)


def ranking_objective(
    emb1: Tensor,
    emb2: Tensor,
    score: Tensor,
    by: str = "cosine",
    *,
    tau: float,
    weight: Tensor | None = None,
    scale: Tensor | None = None,
) -> Tensor:
    """Return the ranking objective (scalar, ≥ 0): pairs with a higher score should be more similar.

    `by` is a key of `SIMILARITIES`: `cosine` gives Eq. 1 of the AnglE paper, the CoSENT loss; the others rank
    by the angle, Eq. 7: `symmetric` by that between the embeddings, `published` as the authors' loss does.
    """
    return ranking_loss(SIMILARITIES[by](emb1, emb2), score, tau=tau, weight=weight, scale=scale)


def not_negatives(groups: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return which texts (N, N), boolean, are not negatives of each other.

    Texts of one group are not, nor are texts of two groups that a pair connects which is no negative itself.
    `groups` (N,) has a number in 0..N-1 for each text, see `labels.positive_groups`; `left` and `right` (P,)
    are the texts of such pairs.
    """
    excluded = groups[:, None] == groups[None, :]
    if not len(left):
        return excluded
    related = torch.zeros_like(excluded)
    related[groups[left], groups[right]] = True
    return excluded | (related | related.T)[groups[:, None], groups[None, :]]


def in_batch_objective(
    embeddings: Tensor,
    first: Tensor,
    second: Tensor,
    positive: Tensor,
    excluded: Tensor,
    *,
    tau: float = 0.05,
    weight: Tensor | None = None,
) -> Tensor:
    """Return the in-batch-negatives objective (scalar, ≥ 0): each text should find its partner (Eq. 2).

    For every positive pair (i, j), in both directions, -log of the softmax probability of j among j
    itself and all texts that are not excluded for i. Second texts of other pairs (antonyms too) are
    negatives. The mean over positive pairs is weighted by `weight`; without a positive pair the loss is 0.

    `positive` (B,), boolean, says which pairs are positive; `excluded` (N, N) is from `not_negatives`.
    """
    anchor = torch.cat([first[positive], second[positive]])
    target = torch.cat([second[positive], first[positive]])
    unit = unit_rows(embeddings)
    # Mixed precision would take this product in bf16, whose step near cosine 1 is 1/256: too coarse for τ.
    with torch.autocast(unit.device.type, enabled=False):
        logits = unit.index_select(0, anchor) @ unit.T / tau
    logits = logits.masked_fill(excluded[anchor].scatter(1, target[:, None], False), -torch.inf)
    terms = logits.logsumexp(dim=1) - logits.gather(1, target[:, None]).squeeze(1)
    trust = torch.ones_like(terms) if weight is None else weight[positive].float().repeat(2)
    return (terms * trust).sum() / trust.sum().clamp_min(_EPS)
