"""The combined objective as a loss of Sentence Transformers, for anyone's `SentenceTransformerTrainer`.

It works on the batches of the library's own collator: columns of texts, with labels or without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.gradcache import CachedLossMixin
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.util import all_gather, all_gather_with_grad
from sentence_transformers.util.distributed import get_rank
from torch import Tensor, nn

from angle_train.objective.labels import batch_labels
from angle_train.objective.loss import combined_objective, world_size
from angle_train.recipe import AngleMode, checked_objective

Term = Literal["cosine", "in_batch", "angle"]
"""The terms of the objective, see `terms`."""

_WEIGHTS: dict[Term, float] = {"in_batch": 1.0, "cosine": 0.2}
_TEMPERATURES: dict[Term, float] = {"cosine": 0.05, "in_batch": 0.05, "angle": 0.1}
# How the values of the objective are called here.
_ARGUMENTS = {f"{term}_weight": f"weights[{term!r}]" for term in _TEMPERATURES}
_ARGUMENTS |= {f"{term}_tau": f"temperatures[{term!r}]" for term in _TEMPERATURES}
_ARGUMENTS |= {"angle_mode": "mode", "negative_score": "neutral_scores", "positive_score": "neutral_scores"}
_MINI_BATCH = 32  # where the cache is off; the library wants a number
_NOT_TEXT = {"pixel_values", "pixel_values_videos", "input_features", "input_values"}


class AngleLoss(CachedLossMixin, nn.Module):
    """The cosine, in-batch and angle terms in one forward pass, as a plain Sentence Transformers loss.

    Texts of a batch that are equal, that positive pairs connect, or whose score is neither that of a positive
    nor of a negative are never each other's in-batch negatives, and each distinct text counts once: no batch
    sampler has to keep duplicates apart. Equal means equal tokens: the same text behind two prompts is two.

    | columns | labels | what they say |
    | --- | --- | --- |
    | two texts | a score from 0 to 1 | how similar they are |
    | anchor, positive | none | positive pairs; needs the in-batch term |
    | anchor, positive, negatives … | none | positives score 1, negatives 0 |
    | anchor, positive, negatives … | a score for each row | the positive's; negatives score 1 minus it |
    | anchor, others … | a list of scores for each row | one for each text after the anchor |

    With `{"cosine": 1}` it is the library's `CoSENTLoss`, with `{"angle": 1}` and `mode="published"` its
    `AnglELoss`, both with `scale` = 1/τ.

    Args:
        model: The model to train.
        weights: Of the terms `cosine`, `in_batch` and `angle`; a term that is not named is off. The default,
            0.2 cosine + in-batch, suits labels of two kinds and rows without scores; `{"cosine": 1}` with
            the temperature `{"cosine": 0.1}` suits graded pairs (benchmarks/log/objectives.md).
        temperatures: Of the terms, in the papers' units: they divide.
        mode: What the angle term ranks by, `symmetric` or `published`, see `terms.SIMILARITIES`.
        neutral_scores: Pairs with a score up to the first of these are negatives, from the second on
            positives, and between them neither. The ranking terms, cosine and angle, use every score.
        mini_batch_size: Hold the activations of so many texts at a time, with the library's gradient cache;
            the loss and its gradient stay the same.
        gather_across_devices: In several processes, take the loss of their batches together.

    Raises:
        ValueError: There is no such term, no term has a weight, or a value is out of its range.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        weights: Mapping[Term, float] | None = None,
        temperatures: Mapping[Term, float] | None = None,
        mode: AngleMode = "symmetric",
        neutral_scores: tuple[float, float] = (0.0, 0.8),
        mini_batch_size: int | None = None,
        gather_across_devices: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        weights = _WEIGHTS if weights is None else weights
        temperatures = temperatures or {}
        if unknown := {*weights, *temperatures} - _TEMPERATURES.keys():
            known = ", ".join(_TEMPERATURES)
            raise ValueError(f"AngleLoss has no term {sorted(unknown)[0]!r}; its terms are {known}")
        values: dict[str, Any] = {f"{term}_weight": float(weights.get(term, 0.0)) for term in _TEMPERATURES}
        values |= {f"{term}_tau": float(tau) for term, tau in (_TEMPERATURES | dict(temperatures)).items()}
        low, high = neutral_scores
        values |= {"angle_mode": mode, "negative_score": float(low), "positive_score": float(high)}
        self.objective = checked_objective(values, _ARGUMENTS)
        if mini_batch_size is not None and mini_batch_size < 1:
            raise ValueError(f"mini_batch_size must be at least 1, got {mini_batch_size}")
        self.mini_batch_size = mini_batch_size or _MINI_BATCH
        self.uses_gradient_cache = mini_batch_size is not None
        self.gather_across_devices = gather_across_devices

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the loss (scalar) of columns of B texts; see the class for what `labels` say.

        Raises:
            ValueError: The columns and labels do not go together, or there is nothing to learn from them.
        """
        columns = list(sentence_features)
        scores = self._scores(len(columns), labels, columns[0])
        batch = {"scores": scores, **_keys_of(columns, scores)}
        if self.uses_gradient_cache:
            return self.forward_cached(columns, cast(Any, batch))
        return self._loss(embed_columns(self.model, columns), batch)

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Any = None, *, with_backward: bool = False
    ) -> Tensor:
        """Return the loss of mini-batches of embeddings; the library's gradient cache calls this."""
        loss = self._loss([torch.cat(parts) for parts in reps], labels)
        if with_backward:
            loss.backward()  # type: ignore[no-untyped-call]
            loss = loss.detach()
        return loss

    def _scores(self, columns: int, labels: Tensor | None, features: Mapping[str, Any]) -> Tensor:
        """Return the scores (B, C - 1) of the texts after the anchor."""
        others = columns - 1
        if others < 1:
            raise ValueError(f"AngleLoss needs at least two columns of texts, got {columns}")
        if labels is None:
            if others == 1 and not self.objective.in_batch_weight:
                raise ValueError(
                    "AngleLoss without the in-batch term learns nothing from pairs without scores; add a "
                    "column score, or give in_batch a weight"
                )
            positive = torch.ones(_count(features), 1)
            return torch.cat([positive, torch.zeros(len(positive), others - 1)], dim=1)
        scores = labels.detach().float()
        if scores.ndim == 1:
            scores = scores[:, None]
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = torch.cat([scores, (1 - scores).expand(-1, others - 1)], dim=1)
        if scores.ndim != 2 or scores.shape[1] != others:
            raise ValueError(
                f"AngleLoss got labels of shape {tuple(labels.shape)} beside {columns} columns of texts; "
                f"give one score a row, or {others}"
            )
        if self.objective.in_batch_weight and bool(((scores < 0) | (scores > 1)).any()):
            found = f"{float(scores.min()):g} to {float(scores.max()):g}"
            raise ValueError(
                f"AngleLoss needs scores from 0 to 1, got {found}; divide them by the highest, or give "
                "weights without in_batch"
            )
        return scores

    def _loss(self, columns: Sequence[Tensor], batch: Mapping[str, Tensor]) -> Tensor:
        """Return the loss (scalar) of the embeddings (B, D) of each column; see `_keys_of` for the batch."""
        embeddings = list(columns)
        device = embeddings[0].device
        tables = {name: table.to(device) for name, table in batch.items()}
        if self.gather_across_devices and world_size() > 1:
            # Every process takes the whole loss. Passing a gradient back adds those of all processes, of
            # which data-parallel training takes the mean.
            embeddings = [all_gather_with_grad(column) for column in embeddings]
            tables = {name: all_gather(table) for name, table in tables.items()}
        rows, count = tables["inputs"].shape
        number, places = _distinct(tables["inputs"].T.reshape(-1))
        identity, _ = _distinct(tables["texts"].T.reshape(-1)[places])
        anchor = torch.arange(rows, device=device).repeat(count - 1)
        score = tables["scores"].T.reshape(-1)
        labelled = {
            "first": number[anchor],
            "second": number[rows:],
            "score": score,
            "weight": torch.ones_like(score),
            "scale": torch.ones_like(anchor),
        }
        # Groups are found on the processor.
        on_cpu = {name: values.cpu() for name, values in labelled.items()}
        labels = batch_labels(on_cpu, identity.cpu(), self.objective)
        terms = combined_objective(
            torch.cat(embeddings).index_select(0, places),
            {name: values.to(device) for name, values in labels.items()},
            self.objective,
        )
        return torch.stack(list(terms.values())).sum()

    def get_config_dict(self) -> dict[str, Any]:
        """Return the arguments with which this loss was made, as the library's model card shows them."""
        values = self.objective
        weights = {term: getattr(values, f"{term}_weight") for term in _TEMPERATURES}
        on = [term for term, weight in weights.items() if weight]
        return {
            "weights": {term: weights[term] for term in on},
            "temperatures": {term: getattr(values, f"{term}_tau") for term in on},
            "mode": values.angle_mode,
            "neutral_scores": (values.negative_score, values.positive_score),
            "mini_batch_size": self.mini_batch_size if self.uses_gradient_cache else None,
            "gather_across_devices": self.gather_across_devices,
        }

    @property
    def citation(self) -> str:
        """The paper of the objective, in BibTeX."""
        return """
@inproceedings{li-li-2024-aoe,
    title = "{A}o{E}: Angle-optimized Embeddings for Semantic Textual Similarity",
    author = "Li, Xianming and Li, Jing",
    year = "2024",
    publisher = "Association for Computational Linguistics",
    url = "https://aclanthology.org/2024.acl-long.101/",
    doi = "10.18653/v1/2024.acl-long.101"
}
"""


def _count(features: Mapping[str, Any]) -> int:
    """Return how many texts a column has."""
    if "cu_seq_lens_q" in features:
        return len(features["cu_seq_lens_q"]) - 1
    for name in ("offsets", "input_ids", "attention_mask", "sentence_embedding", *sorted(_NOT_TEXT)):
        if name in features:
            return len(features[name])
    raise ValueError(f"AngleLoss cannot count the texts of a column with {', '.join(features)}")


def _keys_of(columns: Sequence[Mapping[str, Any]], scores: Tensor) -> dict[str, Tensor]:
    """Return numbers (B, C) of all texts: `inputs` that equal inputs of the model share, and `texts`.

    Two routes of an asymmetric model take one text as two inputs.
    """
    inputs, texts = [], []
    for column, features in enumerate(columns):
        tokens = _tokens_of(features)
        if tokens is None:  # images, say: none is known to equal another
            tokens = [(get_rank(), column, row) for row in range(len(scores))]
        texts.append([hash(row) for row in tokens])
        inputs.append([hash((*map(ord, str(features.get("task", ""))), -1, *row)) for row in tokens])
    return {"inputs": torch.tensor(inputs).T, "texts": torch.tensor(texts).T}


def _tokens_of(features: Mapping[str, Any]) -> list[tuple[int, ...]] | None:
    """Return the tokens of every text of a column, without padding; None where the texts are no tokens."""
    ids = features.get("input_ids")
    if ids is None or _NOT_TEXT & features.keys():
        return None
    if "offsets" in features or "cu_seq_lens_q" in features:  # one row of tokens after the other
        flat = ids.reshape(-1).tolist()
        starts = (
            features["offsets"].tolist() if "offsets" in features else features["cu_seq_lens_q"].tolist()[:-1]
        )
        return [tuple(flat[a:b]) for a, b in zip(starts, [*starts[1:], len(flat)], strict=True)]
    mask = features.get("attention_mask", torch.ones_like(ids))
    return [tuple(row[kept].tolist()) for row, kept in zip(ids.cpu(), mask.cpu().bool(), strict=True)]


def _distinct(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each key (M,) its number among the N distinct ones, and the first place (N,) of each."""
    found, number = torch.unique(keys, return_inverse=True)
    places = torch.full((len(found),), len(keys), device=keys.device)
    every = torch.arange(len(keys), device=keys.device)
    return number, places.scatter_reduce(0, number, every, "amin")
