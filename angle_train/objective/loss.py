"""The combined AnglE objective as a Sentence Transformers loss: one forward pass, three terms.

Texts to keep and pairs that a teacher scored add a term each, see `combined_objective`.

It works on the batches of `batches.PairCollator`, with little memory, or shared among several processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import all_gather
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from angle_data.errors import InputError
from angle_train.objective.kept import kept_objective
from angle_train.objective.terms import (
    in_batch_objective,
    not_negatives,
    ranking_objective,
    unit_rows,
)
from angle_train.recipe import ObjectiveConfig


def combined_objective(
    embeddings: Tensor, labels: dict[str, Tensor], config: ObjectiveConfig
) -> dict[str, Tensor]:
    """Return the weighted terms w1·cosine, w2·in-batch, w3·angle (scalars); their sum is the loss (Eq. 8).

    With texts to keep there is one more, `keep`, see `kept.kept_objective`, and with pairs that a teacher
    scored another, `teacher`: these are ranked among themselves, by their cosine alone.

    With `matryoshka_dims` each term is the sum of its values on all dimensions and on the first d, for each
    d (https://arxiv.org/abs/2205.13147, with equal weights).

    Args:
        embeddings: The distinct texts of a batch (N, D), and behind them those to keep (M, D).
        labels: The tensors under `label` of a `PairCollator` batch.
        config: Weights, temperatures and angle mode; terms of weight 0 are left out.

    Raises:
        InputError: As `widths`.
        ValueError: No term has a weight: the recipe was not settled.
    """
    if not (config.cosine_weight or config.in_batch_weight or config.angle_weight):
        raise ValueError("no term has a weight; settle the recipe first, see training.presets")
    terms: dict[str, Tensor] = {}
    if (table := labels.get("table")) is not None:
        kept = embeddings[len(embeddings) - len(table) :]
        terms["keep"] = config.keep_weight * kept_objective(kept, table)
        embeddings = embeddings[: len(embeddings) - len(table)]
    for width in widths(config, embeddings.shape[1]):
        for name, term in _terms(embeddings[:, :width], labels, config).items():
            terms[name] = terms[name] + term if name in terms else term
    return terms


def widths(config: ObjectiveConfig, width: int) -> list[int]:
    """Return how many dimensions to compute the objective on, first of all `width` of them.

    Raise an InputError if embeddings of that width lack the dimensions that the settings speak of.
    """
    found = [width, *(d for d in config.matryoshka_dims if d != width)]
    if max(found) > width:
        raise InputError(
            f"[objective] matryoshka_dims {max(found)} is more than the {width} dimensions that the "
            f"backbone's embeddings have; give at most {width}"
        )
    odd = [d for d in found if d % 2]
    if odd and config.angle_weight and config.angle_mode == "published":
        raise InputError(
            f"[objective] angle_mode published pairs the halves of a vector and cannot take "
            f"{odd[0]} dimensions; give an even number or another angle_mode"
        )
    return found


def _terms(embeddings: Tensor, labels: dict[str, Tensor], config: ObjectiveConfig) -> dict[str, Tensor]:
    first, second, score, weight = (labels[name] for name in ("first", "second", "score", "weight"))
    # `embeddings[first]` would be the same, but several threads add up its gradient in any order.
    emb1 = embeddings.index_select(0, first)
    emb2 = embeddings.index_select(0, second)
    taught = labels["scale"] < 0  # see `data.pairs.APART`
    rows: tuple[Tensor, ...] = (emb1, emb2, score, weight, labels["scale"])
    terms: dict[str, Tensor] = {}
    if bool(taught.any()):
        one, other, wanted, trust, _ = (column[taught] for column in rows)
        terms["teacher"] = ranking_objective(one, other, wanted, tau=config.cosine_tau, weight=trust)
    emb1, emb2, score, trust, scale = (column[~taught] for column in rows)
    if config.cosine_weight:
        term = ranking_objective(emb1, emb2, score, tau=config.cosine_tau, weight=trust, scale=scale)
        terms["cosine"] = config.cosine_weight * term
    if config.in_batch_weight:
        neutral = labels["neutral"]
        excluded = not_negatives(labels["group"], first[neutral], second[neutral])
        positive = labels["positive"]
        tau = config.in_batch_tau
        term = in_batch_objective(embeddings, first, second, positive, excluded, tau=tau, weight=weight)
        terms["in_batch"] = config.in_batch_weight * term
    if config.angle_weight:
        tau = config.angle_tau
        mode = config.angle_mode
        term = ranking_objective(emb1, emb2, score, mode, tau=tau, weight=trust, scale=scale)
        terms["angle"] = config.angle_weight * term
    return terms


def embed_chunk(model: nn.Module, chunk: Mapping[str, Any]) -> Tensor:
    """Return the embeddings (n, D) of a chunk of n texts; the chunk itself stays as it is."""
    # A copy: models leave their token embeddings in what they get.
    embeddings: Tensor = model(dict(chunk))["sentence_embedding"]
    return embeddings


def encode_cached(model: nn.Module, chunks: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the embeddings (N, D) of all chunks, holding the activations of one chunk at a time.

    Every chunk but the last is encoded again in the backward pass, with the same draws of dropout and in the
    same precision, which costs one more forward pass; the gradients are those of the plain step. Of a
    data-parallel model the last chunk goes through the wrapper, which prepares its one synchronisation.

    Args:
        model: Turns a chunk into `sentence_embedding`.
        chunks: Model inputs; at least one.
    """
    bare = model.module if isinstance(model, DistributedDataParallel) else model
    parts = [checkpoint(embed_chunk, bare, chunk, use_reentrant=False) for chunk in chunks[:-1]]
    return torch.cat([*parts, embed_chunk(model, chunks[-1])])


def world_size() -> int:
    """Return how many processes train together; 1 where torch.distributed is not initialised."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def gather_embeddings(own: Tensor, labels: dict[str, Tensor]) -> Tensor:
    """Return the embeddings (N, D) of a whole batch in the order of its labels, in every process.

    All processes then compute the same loss. A process passes back the gradient of its own embeddings times
    the number of processes, since data-parallel training takes the mean over processes: the mean is the
    gradient that one process would get from the whole batch.

    Args:
        own: What this process encoded (counts[rank], D).
        labels: `counts` (processes,) and `rows` (N,), see `batches.PairCollator`.

    Raises:
        ValueError: The batch was not made for these processes.
    """
    if "counts" not in labels or len(labels["counts"]) != world_size():
        raise ValueError(
            f"the batch is not divided among {world_size()} processes: give every process all its rows "
            "and build PairCollator with process=rank, processes=world size"
        )
    counts: list[int] = labels["counts"].tolist()
    most = max(counts)  # collectives want equal shapes
    padded = nn.functional.pad(own, (0, 0, 0, most - len(own)))
    if padded.requires_grad:
        padded.register_hook(lambda gradient: gradient * len(counts))  # type: ignore[no-untyped-call]
    parts = all_gather(padded).reshape(len(counts), most, -1)  # this process's own is in the graph
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])[labels["rows"]]


class CombinedLoss(nn.Module):
    """Sentence Transformers loss around `combined_objective`, with each term on its own for the log.

    Inputs: the chunks of a `PairCollator` batch as `features`, its label dictionary as `labels`. With
    `gradient_cache` the activations of one chunk are held at a time, see `encode_cached`. In each of
    several processes the terms are those of the whole batch.
    """

    def __init__(self, model: nn.Module, config: ObjectiveConfig, gradient_cache: bool = False) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self._gradient_cache = gradient_cache

    def forward(self, features: Iterable[dict[str, Tensor]], labels: dict[str, Tensor]) -> dict[str, Tensor]:
        """Encode every chunk and return the weighted terms; the trainer sums them."""
        if self._gradient_cache:
            embeddings = encode_cached(self.model, list(features))
        else:
            embeddings = torch.cat([embed_chunk(self.model, chunk) for chunk in features])
        embeddings = gather_embeddings(embeddings, labels) if world_size() > 1 else embeddings
        return self._terms(embeddings, labels)

    def _terms(self, embeddings: Tensor, labels: dict[str, Tensor]) -> dict[str, Tensor]:
        return combined_objective(embeddings, labels, self.config)


class TargetLoss(CombinedLoss):
    """The mean of 1 - cosine of embeddings (N, D) and the targets of a `TargetCollator` batch.

    With `matryoshka_dims` the sum of that on all dimensions and on the first d, for each d.
    """

    def _terms(self, embeddings: Tensor, labels: dict[str, Tensor]) -> dict[str, Tensor]:
        losses = []
        with torch.autocast(embeddings.device.type, enabled=False):
            for width in widths(self.config, embeddings.shape[1]):
                own, wanted = (unit_rows(rows[:, :width]) for rows in (embeddings, labels["target"]))
                losses.append((1 - (own * wanted).sum(dim=1)).mean())
        return {"target": torch.stack(losses).sum()}


@contextmanager
def sparse_lookups(model: SentenceTransformer) -> Iterator[None]:
    """Let the token embeddings of `model` collect sparse gradients; `.grad` is dense as ever afterwards.

    The gradient of a lookup is as large as the vocabulary, and nearly all zeros. With many small chunks in a
    batch, filling and adding those zeros takes a tenth of the time of a small encoder on a CPU. Here each
    chunk gives only the rows that it looked up. The sums are the same up to the order of additions.

    For training in one process. Does nothing where the token embeddings are frozen or no `nn.Embedding`.
    """
    transformer = model.transformers_model
    embeddings = transformer.get_input_embeddings() if transformer is not None else None
    if not isinstance(embeddings, nn.Embedding) or embeddings.sparse or not embeddings.weight.requires_grad:
        yield
        return
    embeddings.sparse = True
    hook = embeddings.weight.register_post_accumulate_grad_hook(_make_dense)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        hook.remove()
        embeddings.sparse = False


def _make_dense(weight: Tensor) -> None:
    if weight.grad is not None and weight.grad.is_sparse:
        weight.grad = weight.grad.to_dense()
