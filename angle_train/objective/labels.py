"""What the labels of a batch say: its positives, its neutral pairs, and which texts are paraphrases."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from angle_data.disjoint import DisjointSets
from angle_train.recipe import ObjectiveConfig


def positive_groups(first: Tensor, second: Tensor, positive: Tensor, identity: Tensor) -> Tensor:
    """Return the group (N,) of every text: texts of one group are never each other's negatives.

    Identical-sentence-pair detection (AnglE §3.3) as union-find over two relations, equal texts and
    positive pairs: with (A, B) and (A', C) positive and A equal to A', the texts A, A', B, C are one group.

    Args:
        first: Index (B,) of each pair's first text, in 0..N-1.
        second: Index (B,) of each pair's second text.
        positive: Whether each pair is positive (B,), boolean.
        identity: For each text (N,) a number that equal texts share.
    """
    sets = DisjointSets(range(len(identity)))
    representative: dict[int, int] = {}
    for text, same in enumerate(identity.tolist()):
        sets.join(representative.setdefault(same, text), text)
    for a, b in zip(first[positive].tolist(), second[positive].tolist(), strict=True):
        sets.join(a, b)
    return torch.tensor([sets.leader(text) for text in range(len(identity))])


def transitive_pairs(
    first: Tensor,
    second: Tensor,
    score: Tensor,
    weight: Tensor,
    scale: Tensor,
    positive: Tensor,
    group: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return first, second, row, weight (P,) of all pairs of texts that the rows label, directly or not.

    What is known of a text holds for its paraphrases: two texts of one group are paraphrases, and a row that
    joins two groups (an antonym, a random pair) says the same of every text of one with every text of the
    other. Costs no encoding, since the texts are in the batch anyway. `row` says which row a pair's score and
    scale follow from. A row's own label always wins; inside a group the others get the lowest score and
    weight of its positive rows, between groups those of the lowest-scored row. Rows whose scale is below 0
    label their own pair alone.

    The arguments are the labels of the rows, see `batch_labels`; `group` is from `positive_groups`.
    """
    count = len(group)
    source = torch.full((count, count), -1)  # the row; indexed by groups first, by texts below
    weights = torch.full((count, count), torch.inf)
    # In falling order of score the lowest-scored row of two groups is written last, and stays.
    falling = torch.stack([score, weight, scale]).T.tolist()
    rows = sorted(range(len(score)), key=falling.__getitem__, reverse=True)
    for row in rows:
        a, b = group[first[row]], group[second[row]]
        if scale[row] >= 0 and (a != b or positive[row]):
            source[a, b] = source[b, a] = row
            weights[a, b] = weights[b, a] = (
                torch.minimum(weights[a, b], weight[row]) if a == b else weight[row]
            )
    source, weights = source[group][:, group], weights[group][:, group]
    for row in rows:  # where two rows disagree about one pair, the lower score counts
        a, b = first[row], second[row]
        source[a, b] = source[b, a] = row
        weights[a, b] = weights[b, a] = weight[row]
    left, right = (source >= 0).triu(diagonal=1).nonzero(as_tuple=True)
    return left, right, source[left, right], weights[left, right]


def batch_labels(
    rows: Mapping[str, Tensor],
    identity: Tensor,
    objective: ObjectiveConfig,
    swap: torch.Generator | None = None,
) -> dict[str, Tensor]:
    """Return what the objective reads of a batch: the rows, and what follows from them.

    `positive`, `neutral` (B,), boolean, and `group` (N,), see `positive_groups`, stand beside the rows. With
    `transitive` there are more pairs than rows, see `transitive_pairs`.

    Args:
        rows: Of every labelled pair (B,): `first`, `second`, its texts in 0..N-1; `score`; `weight`; `scale`.
        identity: For each text (N,) a number that equal texts share.
        objective: From which score on a pair is positive, and what is detected.
        swap: Exchanges the texts of derived pairs at random.
    """
    first, second, score, weight, scale = (
        rows[name] for name in ("first", "second", "score", "weight", "scale")
    )

    # A text is no partner of itself: such a row would only teach what is true by construction.
    positive = _mean_the_same(score, scale, objective) & (identity[first] != identity[second])
    group = positive_groups(first, second, positive, identity)
    if objective.transitive:
        first, second, row, weight = transitive_pairs(first, second, score, weight, scale, positive, group)
        score = score[row]
        scale = scale[row]
        if swap is not None:
            flip = torch.rand(len(first), generator=swap) < 0.5
            first, second = torch.where(flip, second, first), torch.where(flip, first, second)
        positive = _mean_the_same(score, scale, objective) & (identity[first] != identity[second])
    if objective.isp == "equal":
        group = positive_groups(first, second, torch.zeros_like(positive), identity)
    elif objective.isp == "none":
        group = torch.arange(len(identity))
    return {
        "first": first,
        "second": second,
        "score": score,
        "weight": weight,
        "scale": scale,
        "positive": positive,
        "neutral": (scale < 0) | (score > objective.negative_score) & (score < objective.positive_score),
        "group": group,
    }


def _mean_the_same(score: Tensor, scale: Tensor, objective: ObjectiveConfig) -> Tensor:
    """Return which rows (B,) say that two texts mean the same: no model's cosine (scale below 0) does."""
    return (score >= objective.positive_score) & (scale >= 0)
