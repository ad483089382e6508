"""Large batches in small memory: the activations of one chunk at a time, and the same gradients.

The objective of a batch is a function of its embeddings alone. So they are made without a graph, and when
their gradient is known, each chunk is encoded again, with a graph that its part of the gradient goes through
and that is freed before the next one. Costs one more forward pass. Gao et al. 2021,
https://arxiv.org/abs/2101.06983; knows nothing of the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from sentence_transformers.base.losses.gradcache import RandContext
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

Context = Callable[[], AbstractContextManager[Any]]


def encode_cached(model: nn.Module, chunks: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the embeddings (N, D) of all chunks, whose gradient reaches the model chunk by chunk.

    Whatever scales the gradient on its way (accumulation, a scaler of mixed precision) scales it here too,
    and dropout draws the same in both passes. With processes in parallel, gradients are synchronised once,
    after the last chunk.

    Args:
        model: Turns a chunk into `sentence_embedding`.
        chunks: Model inputs; at least one.
    """
    precision = _mixed_precision(next(model.parameters()).device.type)
    draws, parts = [], []
    for chunk in chunks:
        draws.append(RandContext(*chunk.values()))
        with torch.no_grad(), precision():
            parts.append(_encode(model, chunk))
    embeddings = torch.cat(parts)
    if torch.is_grad_enabled():
        embeddings.requires_grad_()
        replay = partial(_encode_again, model, chunks, draws, precision)
        embeddings.register_hook(replay)  # type: ignore[no-untyped-call]
    return embeddings


def _encode_again(
    model: nn.Module,
    chunks: Sequence[Mapping[str, Any]],
    draws: Sequence[RandContext],
    precision: Context,
    gradient: Tensor,
) -> None:
    """Give the model the gradient (N, D) of its embeddings, one chunk after the other."""
    start = 0
    for number, (chunk, draw) in enumerate(zip(chunks, draws, strict=True), start=1):
        with torch.enable_grad(), _unsynchronised(model) if number < len(chunks) else nullcontext():
            with draw, precision():
                part = _encode(model, chunk)
            gradients = gradient[start : start + len(part)].to(part.dtype)
            part.backward(gradients)  # type: ignore[no-untyped-call]
        start += len(part)


def _encode(model: nn.Module, chunk: Mapping[str, Any]) -> Tensor:
    """Return the embeddings of a chunk, which stays as it is."""
    # A copy: models leave their token embeddings in what they get.
    embeddings: Tensor = model(dict(chunk))["sentence_embedding"]
    return embeddings


def _mixed_precision(device: str) -> Context:
    """Return a context that repeats the mixed precision that is on now."""
    if not torch.is_autocast_enabled(device):
        return nullcontext
    return partial(torch.autocast, device, dtype=torch.get_autocast_dtype(device))


def _unsynchronised(model: nn.Module) -> AbstractContextManager[Any]:
    """Return a context in which a backward pass leaves its gradients to a later one to synchronise."""
    inner = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    return inner.no_sync() if isinstance(inner, DistributedDataParallel) else nullcontext()
